"""ITG aligners: W, P, H and HP, from features to links.

A model has the evidence of simpler aligners, a pruner, a table of rules and one
weight per feature. `forests` parses batches; `align` returns links: of the best
derivation ("viterbi"), or all whose posterior in the forest is above a
threshold ("posterior").
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxmt import hypergraph
from jaxmt.align.itg import link_features, parse, pruning, rules, terminals
from jaxmt.align.itg.evidence import Evidence
from jaxmt.align.itg.parse import ItgForest
from jaxmt.align.itg.pruning import Pruner
from jaxmt.align.itg.rules import ItgRuleTable, RuleOptions
from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.runner import Runner
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged

KINDS = ("w", "p", "h", "hp")
FEATURES = (
  *link_features.LINK_FEATURES,
  *(f"source {name}" for name in link_features.WORD_FEATURES),
  *(f"target {name}" for name in link_features.WORD_FEATURES),
  *terminals.RULE_FEATURES,
  *terminals.TREE_FEATURES,
)
# Where training starts: a link needs a posterior of about a half.
_START = {"both posteriors": 6.0, "mean posterior": 6.0, "links": -4.0}
_LONGEST = 100  # words of a sentence
_SHARD = 8192  # sentence pairs that are linked at a time
_HERE = Runner(kind="serial", workers=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ItgModel:
  """An ITG aligner.

  Attributes:
    evidence: features of links and words.
    pruner: chooses bi-spans.
    rules: phrase pairs and hierarchical pairs; empty for W.
    weights: of `FEATURES`, float64 `[F]`.
  """

  evidence: Evidence
  pruner: Pruner
  rules: ItgRuleTable
  weights: np.ndarray


def start_weights() -> np.ndarray:
  """Returns weights that follow the HMM's posteriors, float64 `[F]`."""
  return np.array([_START.get(name, 0.0) for name in FEATURES])


def rule_options(
  kind: str, *, blocks: bool = False, **options: int
) -> RuleOptions:
  """Returns which rules a kind of ITG has.

  Raises:
    ValueError: if the kind is none of `KINDS`.
  """
  if kind not in KINDS:
    raise ValueError(f"kind '{kind}' is none of {', '.join(KINDS)}")
  return RuleOptions(
    phrases="p" in kind,
    hierarchical="h" in kind,
    blocks=blocks and "p" in kind,
    **options,
  )


def collect_rules(
  evidence: Evidence,
  source: Ragged,
  target: Ragged,
  kind: str,
  *,
  blocks: bool = False,
  chunk: int = 10_000,
  runner: Runner = _HERE,
  **options: int,
) -> ItgRuleTable:
  """Returns the rules of a bitext by the evidence's links.

  Args:
    evidence: has links of all lines.
    source: word ids per line.
    target: word ids per line.
    kind: one of `KINDS`.
    blocks: whether links of neighbouring words need no rule, see `rules`.
    chunk: lines of one map step.
    runner: where the map steps run.
    **options: of `RuleOptions`.
  """
  chosen = rule_options(kind, blocks=blocks, **options)
  if kind == "w":
    return rules.empty()
  texts = (source, target, evidence.links)
  shards = (
    tuple(ragged.select(text, rows) for text in texts)
    for rows in _cut(np.arange(len(source)), chunk)
  )
  work = functools.partial(_collect_shard, options=chosen)
  return rules.table(
    list(runner_lib.map_shards(work, shards, runner=runner)), chosen
  )


def _collect_shard(
  shard: tuple[Ragged, Ragged, Ragged], options: RuleOptions
) -> rules.Instances:
  """The map step of `collect_rules`."""
  return rules.collect(*shard, options)


def _cut(rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
  """Yields rows in pieces."""
  for start in range(0, len(rows), size):
    yield rows[start : start + size]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParsedBatch:
  """Parsed sentence pairs.

  Attributes:
    lines: which lines they are, int64 `[N]`.
    parsed: their forests.
    table: features of rows, float32 `[T + 3, F]`.
    rows: row of each edge, int32 `[E]`.
    matrices: features on the device.
  """

  lines: np.ndarray
  parsed: ItgForest
  table: np.ndarray
  rows: np.ndarray
  matrices: link_features.Matrices

  def scores(self, weights: np.ndarray) -> np.ndarray:
    """Returns the score of each edge, float64 `[E]`."""
    # A product in float64 would first copy the whole table.
    values = self.table @ np.asarray(weights, np.float32)
    return values.astype(np.float64)[self.rows]


def parseable(source: Ragged, target: Ragged) -> np.ndarray:
  """Returns the lines that are parsed: some words, not too many; int64."""
  shorter = np.minimum(source.lengths, target.lengths)
  longer = np.maximum(source.lengths, target.lengths)
  return np.flatnonzero((shorter > 0) & (longer <= _LONGEST))


def forests(
  model: ItgModel,
  source: Ragged,
  target: Ragged,
  lines: np.ndarray,
  *,
  tables: Any = None,
) -> Iterator[ParsedBatch]:
  """Yields the forests of some lines, in batches of similar length.

  Args:
    model: the aligner.
    source: word ids per line.
    target: word ids per line.
    lines: int64, from `parseable`.
    tables: see `link_features.batches`.
  """
  groups = link_features.batches(
    model.evidence, source, target, lines, tables=tables
  )
  for own, matrices in groups:
    chart = pruning.prune(matrices, len(own), model.pruner)
    cores = rules.match(
      chart,
      ragged.select(source, own),
      ragged.select(target, own),
      model.rules,
    )
    parsed = parse.parse(chart, cores)
    arrays = link_features.arrays(matrices, len(own))
    yield ParsedBatch(
      lines=own,
      parsed=parsed,
      table=terminals.features(parsed, arrays, model.rules),
      rows=terminals.edge_rows(parsed),
      matrices=matrices,
    )


def align(
  model: ItgModel,
  source: Ragged,
  target: Ragged,
  *,
  lines: np.ndarray | None = None,
  decoder: str = "viterbi",
  threshold: float = 0.5,
  runner: Runner = _HERE,
) -> Ragged:
  """Links the words of a bitext, in shards.

  Lines that are not `parseable` have the links of the evidence. The result is
  the same on every runner.

  Args:
    model: the aligner.
    source: word ids per line.
    target: word ids per line.
    lines: which lines to link, others stay empty; None for all.
    decoder: "viterbi" or "posterior".
    threshold: least posterior of a link.
    runner: where shards are linked.

  Returns:
    int32 pairs (source, target), one row per line.
  """
  usable = parseable(source, target)
  if lines is None:
    rest = np.setdiff1d(np.arange(len(source)), usable)
  else:
    rest = np.setdiff1d(lines, usable)
    usable = np.intersect1d(lines, usable)
  own = ragged.select(model.evidence.links, rest)
  rows = [np.repeat(rest, own.lengths)]
  flats = [own.flat.reshape(-1, 2)]
  # Workers elsewhere make these for themselves: they are larger than a shard.
  away = runner.kind == "ray"
  work = functools.partial(
    _link_shard,
    model=model,
    decoder=decoder,
    threshold=threshold,
    tables=None if away else link_features.device_tables(model.evidence),
  )
  shards = (
    (ragged.select(source, part), ragged.select(target, part))
    for part in _cut(usable, _SHARD)
  )
  found = runner_lib.map_shards(work, shards, runner=runner)
  for part, (row, flat) in zip(_cut(usable, _SHARD), found, strict=True):
    rows.append(part[row])
    flats.append(flat)
  row, flat = np.concatenate(rows), np.concatenate(flats)
  order = np.lexsort((flat[:, 1], flat[:, 0], row))
  return Ragged(
    flat=np.ascontiguousarray(flat[order], np.int32),
    offsets=np.searchsorted(row[order], np.arange(len(source) + 1)),
  )


def _link_shard(
  shard: tuple[Ragged, Ragged],
  *,
  model: ItgModel,
  decoder: str,
  threshold: float,
  tables: Any,
) -> tuple[np.ndarray, np.ndarray]:
  """The map step of `align`: rows of the shard `[L]`, links `[L, 2]`."""
  rows, flats = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.int32)]
  every = np.arange(len(shard[0]))
  for batch in forests(model, *shard, every, tables=tables):
    row, flat = decode(batch, model, decoder=decoder, threshold=threshold)
    rows.append(batch.lines[row])
    flats.append(flat.reshape(-1, 2))
  return np.concatenate(rows), np.concatenate(flats)


def decode(
  batch: ParsedBatch, model: ItgModel, *, decoder: str, threshold: float
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the links of a batch: sentence pairs `[L]`, links `[L, 2]`."""
  parsed, scores = batch.parsed, batch.scores(model.weights)
  if decoder == "posterior":
    cells = link_posteriors(batch, model)
    row, flat, mass = cells
    return row[mass > threshold], flat[mass > threshold]
  best = hypergraph.viterbi(parsed.forest, scores)
  edges, _ = hypergraph.best_derivations(
    parsed.forest, best, best.back[parsed.forest.roots]
  )
  links = terminals.derivation_links(parsed, model.rules, edges)
  return np.repeat(np.arange(len(links)), links.lengths), links.flat


def link_posteriors(
  batch: ParsedBatch, model: ItgModel
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Returns p(link | sentence pair) of all links that a forest has.

  Returns:
    `(sentence pair [L], link [L, 2], posterior [L])`, sorted.
  """
  parsed = batch.parsed
  mass = hypergraph.marginals(parsed.forest, batch.scores(model.weights))
  terminal = parsed.forest.edges["terminal"]
  used = terminal >= 0
  by_terminal = np.bincount(
    terminal[used], mass[used], minlength=len(parsed.places)
  )
  links = terminals.links(parsed, model.rules)
  owner = np.repeat(np.arange(len(links)), links.lengths)
  pair = parsed.places[owner, 0].astype(np.int64)
  keys = (pair << 40) | (links.flat[:, 0].astype(np.int64) << 20)
  keys |= links.flat[:, 1]
  keys, place = np.unique(keys, return_inverse=True)
  total = np.bincount(place, by_terminal[owner], minlength=len(keys))
  low = (1 << 20) - 1
  flat = np.stack([(keys >> 20) & low, keys & low], axis=1).astype(np.int32)
  return keys >> 40, flat, total
