"""Learning the weights of ITG aligners from hand-aligned sentence pairs.

    model = train(evidence, source, target, gold, config)

First the pruner (rank-MERT on the bi-spans of gold trees), then the weights of
the aligner: by minimum error rate training on k-best alignments with the counts
of links as statistics, or by a loss over all derivations of the ITG forests
(softmax, hinges, ramps, risk), whose costs are wrong links and missing sure
links. All are the tuners of translation.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from jaxmt import hypergraph
from jaxmt.align.itg import (
  gold_spans,
  itg_model,
  link_features,
  pruning,
  terminals,
)
from jaxmt.align.itg.evidence import Evidence
from jaxmt.align.itg.itg_model import FEATURES, ItgModel
from jaxmt.align.itg.pruning import Pruner
from jaxmt.align.itg.rules import ItgRuleTable
from jaxmt.decode import candidate_lists
from jaxmt.hypergraph import Forest
from jaxmt.losses import registry as losses
from jaxmt.metrics import link_accuracy as metrics
from jaxmt.runtime.runner import Runner
from jaxmt.text import links as links_lib
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.tune import options
from jaxmt.tune.forests import forest_loss
from jaxmt.tune.forests.forest_data import ForestData
from jaxmt.tune.forests.forest_ngrams import NgramForests
from jaxmt.tune.lists import mert, owlqn, rank_mert
from jaxmt.tune.pool import make_pool

METRICS = ("aer", "link-f1")
_HERE = Runner(kind="serial", workers=1)
_THRESHOLDS = np.arange(0.05, 0.96, 0.025)  # least posteriors that are tried


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gold:
  """Hand-aligned sentence pairs of a bitext.

  Attributes:
    lines: which lines of the bitext they are, int64 `[N]`.
    sure: links (source, target), N rows.
    possible: links that count as right, sure ones included, N rows.
  """

  lines: np.ndarray
  sure: Ragged
  possible: Ragged

  def take(self, rows: np.ndarray) -> "Gold":
    """Returns some of the pairs, in that order."""
    return Gold(
      lines=self.lines[rows],
      sure=ragged.select(self.sure, rows),
      possible=ragged.select(self.possible, rows),
    )

  def parseable(self, source: Ragged, target: Ragged) -> "Gold":
    """Returns the pairs of lines that ITG aligners parse."""
    usable = np.isin(self.lines, itg_model.parseable(source, target))
    return self.take(np.flatnonzero(usable))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ItgConfig:
  """What to train, and how.

  Attributes:
    kind: "w", "p", "h" or "hp".
    method: "mert", or the name of a loss that is defined on forests.
    metric: what MERT optimises, one of `METRICS`.
    pruner: one of `pruning.PRUNERS`.
    beam: target spans for each source span.
    pruner_pairs: sentence pairs that the pruner is trained on, at most.
    pruner_samples: gold bi-spans of these that are drawn, about; each has all
      target spans of its sentence as candidates, so this bounds memory.
    rounds: of parsing with the weights of the round before.
    density: edges of a forest for each word, those of the best derivations.
    kbest: alignments of a sentence pair that MERT adds in each of its passes.
    passes: of MERT over its lists, at most.
    restarts: of MERT.
    steps: of L-BFGS, for losses.
    l2: strength of the pull towards 0, for losses.
    blocks: whether one or two words may be linked with up to four neighbouring
      words without a rule (kinds with phrase pairs).
    max_words: on a side of a rule.
    max_span: source words of a rule with its gap.
  """

  kind: str = "hp"
  method: str = "softmax"
  metric: str = "aer"
  pruner: str = "dpdi"
  beam: int = 10
  pruner_pairs: int = 250
  pruner_samples: int = 3000
  rounds: int = 2
  density: float = 200.0
  kbest: int = 100
  passes: int = 6
  restarts: int = 8
  steps: int = 60
  l2: float = 0.01
  blocks: bool = True
  max_words: int = 3
  max_span: int = 10

  def __post_init__(self):
    options.one_of(self, kind=itg_model.KINDS, metric=METRICS)
    options.one_of(self, pruner=pruning.PRUNERS, method=methods())
    options.at_least(self, beam=1, rounds=1, kbest=1, passes=1, restarts=1)
    options.at_least(self, steps=1, l2=0, pruner_pairs=1, pruner_samples=1)


def methods() -> tuple[str, ...]:
  """Returns the names of all training methods."""
  usable = [
    name
    for name in losses.names()
    if losses.find(name).forest is not None
    and not losses.find(name).statistics_of
  ]
  return ("mert", *usable)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldForests:
  """Forests of hand-aligned sentence pairs, pruned.

  Attributes:
    forest: B sentence pairs.
    rows: row of each edge, int32 `[E]`.
    table: features of rows, float32 `[R, F]`.
    statistics: what rows add to the counts of links, float64 `[R, 4]`.
    links: links of rows, R rows.
    sure: sure links of each sentence pair, float64 `[B]`.
  """

  forest: Forest
  rows: np.ndarray
  table: np.ndarray
  statistics: np.ndarray
  links: Ragged
  sure: np.ndarray

  def scores(self, weights: np.ndarray) -> np.ndarray:
    """Returns the score of each edge, float64 `[E]`."""
    return (self.table @ np.asarray(weights, np.float64))[self.rows]

  def counts(self, weights: np.ndarray) -> np.ndarray:
    """Returns the counts of links of the best derivations, float64 `[4]`."""
    best = hypergraph.viterbi(self.forest, self.scores(weights))
    edges, _ = hypergraph.best_derivations(
      self.forest, best, best.back[self.forest.roots]
    )
    total = self.statistics[self.rows[edges.flat]].sum(0)
    total[1] = self.sure.sum()
    return total


def train(
  evidence: Evidence,
  source: Ragged,
  target: Ragged,
  gold: Gold,
  config: ItgConfig,
  *,
  seed: int = 0,
  start: np.ndarray | None = None,
  runner: Runner = _HERE,
  report: Callable[[str], None] = lambda line: None,
) -> ItgModel:
  """Returns a trained aligner.

  Args:
    evidence: learnt on the whole bitext, hand-aligned lines included.
    source: word ids per line.
    target: word ids per line.
    gold: the hand-aligned lines.
    config: what to train.
    seed: of random starts.
    start: weights to start from; those of `model.start_weights` if None.
    runner: where rules are collected.
    report: takes lines about progress.
  """
  gold = gold.parseable(source, target)
  how = train_pruner(
    evidence, source, target, gold, config, seed=seed, report=report
  )
  table = itg_model.collect_rules(
    evidence,
    source,
    target,
    config.kind,
    blocks=config.blocks,
    runner=runner,
    max_words=config.max_words,
    max_span=config.max_span,
  )
  report(f"{len(table):,} rules")
  weights = itg_model.start_weights() if start is None else np.array(start)
  aligner = ItgModel(
    evidence=evidence, pruner=how, rules=table, weights=weights
  )
  for number in range(config.rounds):
    data = gold_forests(aligner, source, target, gold, config)
    before = _score(config.metric, data.counts(aligner.weights))
    if config.method == "mert":
      weights = _minimum_error(data, aligner.weights, config, seed + number)
    else:
      weights = _minimum_loss(data, aligner.weights, config)
    after = _score(config.metric, data.counts(weights))
    report(
      f"{config.kind} {config.method} round {number + 1}: {config.metric}"
      f" {before:.4f} -> {after:.4f} on {len(data.forest)} pairs"
    )
    aligner = dataclasses.replace(aligner, weights=weights)
  return aligner


def _score(metric: str, counts: np.ndarray) -> float:
  return float(mert.find_metric(metric).corpus_score(counts))


# --- the pruner ---------------------------------------------------------------


def train_pruner(
  evidence: Evidence,
  source: Ragged,
  target: Ragged,
  gold: Gold,
  config: ItgConfig,
  *,
  seed: int = 0,
  report: Callable[[str], None] = lambda line: None,
) -> Pruner:
  """Returns the pruner of a config, DPDI trained by rank-MERT."""
  how = pruning.pruner(
    config.pruner, beam=config.beam, ratio=1.0 / max(evidence.ratio, 1e-9)
  )
  if config.pruner != "dpdi":
    return how
  gold = gold.parseable(source, target)
  part = gold.take(np.arange(min(len(gold.lines), config.pruner_pairs)))
  features, places = [], []
  # A tree has at most two bi-spans for each link.
  share = config.pruner_samples / max(2 * len(part.possible.flat), 1)
  rng = np.random.default_rng(seed)
  where = {line: row for row, line in enumerate(part.lines.tolist())}
  groups = link_features.batches(evidence, source, target, part.lines)
  for lines, matrices in groups:
    gold_part = part.take(np.array([where[line] for line in lines.tolist()]))
    samples = gold_spans.samples(
      gold_part.possible, np.asarray(matrices.posterior)
    )
    samples = samples[rng.random(len(samples)) < share]
    rows, golds = pruning.sample_features(matrices, samples, how)
    features.append(rows)
    places.append(golds)
  candidates, place = ragged.concatenate(features), np.concatenate(places)
  settings = rank_mert.RankMertConfig(beam=config.beam)
  weights, history = rank_mert.optimise(
    candidates, place, how.weights, settings, seed
  )
  report(
    f"pruner: {len(place):,} samples, mean gain"
    f" {rank_mert.gain(candidates, place, how.weights, config=settings):.1f} ->"
    f" {max(record['gain'] for record in history):.1f}"
  )
  return dataclasses.replace(how, weights=weights)


def pruning_errors(
  aligner: ItgModel, source: Ragged, target: Ragged, gold: Gold
) -> dict[str, float]:
  """Returns how much of the gold a pruner leaves: PER and F's upper bound.

  The pruning error rate is the share of gold bi-spans that are not in the
  lists. The bound is F1 with as many sure links as one derivation can have, at
  precision 1.
  """
  gold = gold.parseable(source, target)
  where = {line: row for row, line in enumerate(gold.lines.tolist())}
  absent, number, hits, sure = 0, 0, 0.0, 0
  for batch in itg_model.forests(aligner, source, target, gold.lines):
    pairs = gold.take(np.array([where[line] for line in batch.lines.tolist()]))
    spans = gold_spans.samples(
      pairs.possible, np.asarray(batch.matrices.posterior)
    )
    chart = pruning.prune(batch.matrices, len(batch.lines), aligner.pruner)
    missing, total = pruning.missing_share(chart, spans)
    absent, number = absent + missing, number + total
    counts = terminals.statistics(
      batch.parsed, aligner.rules, pairs.sure, pairs.possible
    )
    forest = batch.parsed.forest
    best = hypergraph.viterbi(forest, counts[batch.rows, 2])
    hits += float(best.score[forest.roots].sum())
    sure += len(pairs.sure.flat)
  recall = hits / max(sure, 1)
  return {
    "per": absent / max(number, 1),
    "f_bound": 2.0 * recall / (1.0 + recall),
    "samples": float(number),
  }


def choose_threshold(
  aligner: ItgModel, source: Ragged, target: Ragged, gold: Gold, metric: str
) -> float:
  """Returns the least posterior of a link that scores best on gold links.

  Args:
    aligner: a trained aligner.
    source: word ids per line.
    target: word ids per line.
    gold: the hand-aligned lines that the threshold is chosen on.
    metric: one of `METRICS`.
  """
  gold = gold.parseable(source, target)
  where = {line: row for row, line in enumerate(gold.lines.tolist())}
  counts = np.zeros((len(_THRESHOLDS), 4))
  for batch in itg_model.forests(aligner, source, target, gold.lines):
    gold_part = gold.take(
      np.array([where[line] for line in batch.lines.tolist()])
    )
    row, flat, mass = itg_model.link_posteriors(batch, aligner)
    keys = (row.astype(np.int64) << 40) + (flat[:, 0].astype(np.int64) << 20)
    keys += flat[:, 1]
    sure = np.isin(keys, metrics.link_keys(gold_part.sure))
    possible = np.isin(keys, metrics.link_keys(gold_part.possible))
    for place, threshold in enumerate(_THRESHOLDS):
      taken = mass > threshold
      counts[place] += (
        taken.sum(),
        len(gold_part.sure.flat),
        sure[taken].sum(),
        possible[taken].sum(),
      )
  sign = 1.0 if mert.find_metric(metric).higher_is_better else -1.0
  scores = [sign * _score(metric, row) for row in counts]
  return float(_THRESHOLDS[int(np.argmax(scores))])


# --- the weights --------------------------------------------------------------


def gold_forests(
  aligner: ItgModel,
  source: Ragged,
  target: Ragged,
  gold: Gold,
  config: ItgConfig,
) -> GoldForests:
  """Parses the hand-aligned lines; keeps the edges of the best derivations.

  The best derivations by the model, and by the model with a bonus for gold
  links, so that what training should reach stays in the forests.
  """
  where = {line: row for row, line in enumerate(gold.lines.tolist())}
  parts, tables, counts, rows, listed, sure = [], [], [], [], [], []
  base = 0
  for batch in itg_model.forests(aligner, source, target, gold.lines):
    pairs = gold.take(np.array([where[line] for line in batch.lines.tolist()]))
    parsed = batch.parsed
    right = terminals.statistics(
      parsed, aligner.rules, pairs.sure, pairs.possible
    )
    words = source.lengths[batch.lines] + target.lengths[batch.lines]
    most = np.ceil(config.density * words / 2).astype(np.int64)
    scores = batch.scores(aligner.weights)
    spread = max(float(np.abs(scores).max(initial=0.0)), 1.0)
    bonus = spread * (right[:, 2] + right[:, 3] - right[:, 0])[batch.rows]
    chosen = np.union1d(
      hypergraph.prune(parsed.forest, edges=most, scores=scores)[1],
      hypergraph.prune(parsed.forest, edges=most, scores=scores + bonus)[1],
    )
    parts.append(_bare(hypergraph.restrict(parsed.forest, chosen)))
    used, row = np.unique(batch.rows[chosen], return_inverse=True)
    rows.append(row + base)
    base += len(used)
    tables.append(batch.table[used])
    counts.append(right[used])
    listed.append(_row_links(parsed, aligner.rules, used))
    sure.append(pairs.sure.lengths)
  return GoldForests(
    forest=hypergraph.concatenate(parts),
    rows=np.concatenate(rows).astype(np.int32),
    table=np.concatenate(tables),
    statistics=np.concatenate(counts),
    links=ragged.concatenate(listed),
    sure=np.concatenate(sure).astype(np.float64),
  )


def _bare(forest: Forest) -> Forest:
  """Returns a forest without annotation."""
  return dataclasses.replace(forest, nodes=None, edges=None)


def _row_links(parsed, table: ItgRuleTable, used: np.ndarray) -> Ragged:
  """Links of some rows; rows beyond the terminals have none."""
  links = terminals.links(parsed, table)
  last = links.offsets[-1]
  padded = Ragged(
    flat=links.flat, offsets=np.append(links.offsets, [last, last, last])
  )
  return ragged.select(padded, used)


def _candidates(data: GoldForests, weights: np.ndarray, size: int):
  """K-best alignments with features and counts of links."""
  lists = hypergraph.kbest(data.forest, size=size, scores=data.scores(weights))
  sentence = lists.sentence
  rows = data.rows[lists.edges.flat]
  starts = lists.edges.offsets[:-1]
  # Sums over the rows of each derivation, in pieces that fit memory.
  dense = np.empty((len(sentence), data.table.shape[1]))
  counts = np.empty((len(sentence), 4))
  for low in range(0, len(sentence), 4096):
    high = min(low + 4096, len(sentence))
    part = rows[starts[low] : lists.edges.offsets[high]]
    cuts = starts[low:high] - starts[low]
    dense[low:high] = np.add.reduceat(
      data.table[part].astype(np.float64), cuts, axis=0
    )
    counts[low:high] = np.add.reduceat(data.statistics[part], cuts, axis=0)
  counts[:, 1] = data.sure[sentence]
  names = [name.replace(" ", "_") for name in FEATURES]
  candidates = candidate_lists.from_dense(
    sentence, _lines(data, rows, lists.edges.offsets), dense, names
  )
  statistics = {name: counts for name in METRICS}
  return dataclasses.replace(
    candidates, sentences=len(data.forest), statistics=statistics
  )


def _lines(data: GoldForests, rows, offsets) -> list[str]:
  """The links of each derivation as a Pharaoh line."""
  links = ragged.select(data.links, rows)
  ends = links.offsets[offsets]
  return links_lib.format_links(
    links_lib.normalize(Ragged(flat=links.flat, offsets=ends))
  )


def _minimum_error(
  data: GoldForests, weights: np.ndarray, config: ItgConfig, seed: int
) -> np.ndarray:
  """Runs MERT on growing lists of alignments."""
  pool = None
  names = [name.replace(" ", "_") for name in FEATURES]
  settings = mert.MertConfig(
    metric=config.metric, restarts=config.restarts, random_directions=4
  )
  best = (_score(config.metric, data.counts(weights)), weights)
  sign = 1.0 if mert.find_metric(config.metric).higher_is_better else -1.0
  for number in range(config.passes):
    candidates = _candidates(data, weights, config.kbest)
    parts = [candidates] if pool is None else [pool, candidates]
    size = 0 if pool is None else len(pool)
    pool = make_pool(
      candidate_lists.concatenate(parts),
      sentences=len(data.forest),
      dense_names=names,
    )
    if len(pool) == size:
      break
    weights, _ = mert.optimise(pool, weights, settings, seed + number)
    score = _score(config.metric, data.counts(weights))
    if sign * score > sign * best[0]:
      best = (score, weights)
  return best[1]


def _minimum_loss(
  data: GoldForests, weights: np.ndarray, config: ItgConfig
) -> np.ndarray:
  """Minimises a loss over the derivations of forests by L-BFGS."""
  loss = losses.find(config.method)
  costs = data.statistics[:, 0] - data.statistics[:, 2] - data.statistics[:, 3]
  statistics = np.zeros((len(data.rows), 8), np.float32)
  statistics[:, 0] = costs[data.rows]
  prepared = ForestData(
    split=NgramForests(
      forest=data.forest, edge=data.rows, statistics=statistics, pruned=0
    ),
    features=data.table,
    references=np.zeros(len(data.forest)),
    slopes=np.eye(8)[0],
  )
  groups = forest_loss.group_sentences(prepared, edges=_GROUP_EDGES)
  evaluate = forest_loss.Evaluation(
    forest_loss.make_batches(prepared, groups),
    loss.cost_scale * prepared.slopes,
    loss=loss.name,
    settings=loss.settings,
    l2=config.l2,
    initial=np.zeros(len(weights)),
  )
  iterates = owlqn.minimise(evaluate, weights, l1=0.0, steps=config.steps)
  return iterates[-1] if iterates else weights


_GROUP_EDGES = 1 << 18
