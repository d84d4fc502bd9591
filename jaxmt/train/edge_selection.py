"""Which derivations of a forest are learned from, and how much each counts.

`select` gives every edge of the forests of a loss-augmented search a weight:

- "viterbi": 1 on the edges of d̂, equation (7);
- "nbest": the posteriors of the n best derivations, whose augmented scores are
  computed exactly: model score - α1 Σ l(rank) - α2 goodness of the string;
- "forest": edge posteriors under the edges' augmented scores.

Derivations whose string is not near the reference do not count. That is exact
for all three: d̂ and the n best are checked one by one, and forest posteriors
are those of derivations drawn from the forest and checked one by one
(`constrained_posteriors`). d̂ is found among the best derivations of the root
edges. Augmented scores of the best derivations are exact. In the forest, those
of others are approximated: an edge adds what it adds to the best derivations of
its tails, because goodness is a ratio of sums, not a sum over edges, and a
derivation merged into another shares its rank.

Goodness other than "bleu" cannot be told from what hypotheses carry; inside the
search something like it stands in (`augmentations.GOODNESS`). At the root edges
whole strings are known: there the exact value replaces it.
"""

import dataclasses

import numpy as np

from jaxmt.decode import translation_forest
from jaxmt.decode.model import Model, Source
from jaxmt.hypergraph import (
  DerivationLists,
  Forest,
  best_derivations,
  marginals,
  root_edges,
  sum_values,
  viterbi,
)
from jaxmt.metrics import base
from jaxmt.metrics.named_metrics import METRICS
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.train import derivation_losses
from jaxmt.train.constrained_posteriors import constrained_posteriors
from jaxmt.train.theta_config import ThetaConfig

_OUT = -1e30  # finite, for sums of several


@dataclasses.dataclass(frozen=True, kw_only=True)
class Selection:
  """Derivations selected from the forests of B sentences.

  Attributes:
    weights: how often each edge counts, float64 `[E]`.
    admissible: sentences that have a derivation to learn from, bool `[B]`.
    searched: best model score in the forest, float64 `[B]`; nan without one.
    model: model score of the best derivation chosen, float64 `[B]`; nan if
      there is none.
    augmented: its augmented score, float64 `[B]`; nan if there is none.
    nearest: the best derivation by augmented score whether admissible or not:
      its edges in B rows, int64.
    chosen: the best derivation chosen: its edges in B rows, int64; empty if
      there is none.
    near: share of the forest's posterior that is admissible, float64 `[B]`;
      nan if counts are not forest counts.
  """

  weights: np.ndarray
  admissible: np.ndarray
  searched: np.ndarray
  model: np.ndarray
  augmented: np.ndarray
  nearest: Ragged
  chosen: Ragged
  near: np.ndarray


def encode_references(model: Model, source: Source, lines) -> Ragged:
  """Numbers the words of references as derivations number theirs.

  Target words have their ids, words that can be copied from the source follow
  (as in `derivation.Yields`), then those no derivation can write.
  """
  ids, words = vocabulary.intern(lines)
  size = len(model.table.target_words)
  known = model.table.target_words.index
  copied = {word: size + n for n, word in enumerate(source.words)}
  after = size + len(source.words)
  numbers = np.array(
    [known.get(w, copied.get(w, after + n)) for n, w in enumerate(words)],
    np.int32,
  )
  return Ragged(flat=numbers[ids.flat], offsets=ids.offsets)


def select(
  model: Model,
  source: Source,
  forest: Forest,
  references: Ragged,
  config: ThetaConfig,
) -> Selection:
  """Selects from the forests of a loss-augmented search.

  Args:
    model: the rules.
    source: B sentences.
    forest: their forests, with augmented scores.
    references: one for each, from `encode_references`, B rows.
    config: see `ThetaConfig`.
  """
  augmented = forest.edges.augmented
  scores = forest.score if augmented is None else augmented
  scores = scores.astype(np.float64)
  best = viterbi(forest, scores)
  edges, sentence = root_edges(forest)
  edge_strings = translation_forest.edge_strings(model, source, forest)
  paths, strings = best_derivations(forest, best, edges, strings=edge_strings)
  if config.goodness != "bleu" and augmented is not None:
    exact = sum_values(paths, forest.score)
    exact -= _loss(forest, paths, strings, references, sentence, config)
    scores[edges] += exact - best.through[edges]
    best.through[edges] = exact
  admissible = derivation_losses.admissible(
    strings, references, sentence, share=config.constraint
  )
  return _weighed(
    model,
    source,
    forest,
    references,
    config,
    scores,
    best,
    (edges, sentence, admissible, paths),
  )


def select_all(
  model: Model, source: Source, forest: Forest, config: ThetaConfig
) -> Selection:
  """Selects by model score alone, from forests where everything may be used.

  The forests of forced decoding have no other derivations (equations 4, 5).
  """
  scores = forest.score.astype(np.float64)
  best = viterbi(forest, scores)
  edges, sentence = root_edges(forest)
  possible = best.through[edges] > -np.inf
  edges, sentence = edges[possible], sentence[possible]
  admissible = np.ones(len(edges), np.bool_)
  paths, _ = best_derivations(forest, best, edges)
  return _weighed(
    model,
    source,
    forest,
    None,
    config,
    scores,
    best,
    (edges, sentence, admissible, paths),
  )


def _weighed(
  model, source, forest, references, config, scores, best, roots
) -> Selection:
  edges, sentence, admissible, listed = roots
  batch = len(forest)
  nearest = _argmax(best.through[edges], sentence, batch)
  allowed = np.where(admissible, best.through[edges], -np.inf)
  top = _argmax(allowed, sentence, batch)
  paths = _rows_of(listed, top)
  augmented = np.full(batch, np.nan)
  augmented[top >= 0] = best.through[edges[top[top >= 0]]]
  counted = top >= 0
  weights = np.zeros(forest.num_edges)
  share = np.full(batch, np.nan)
  if config.counts == "forest":
    weights, share, paths, augmented = _forest_weights(
      model, source, forest, references, config, scores, (paths, augmented)
    )
    counted = paths.lengths > 0
  elif config.counts == "nbest":
    scores = scores.copy()
    scores[edges[~admissible]] = -np.inf
    weights, counted = _nbest_weights(
      model, source, forest, references, config, scores
    )
    counted &= top >= 0
    paths = _without(paths, ~counted)
    augmented[~counted] = np.nan
  else:
    weights[paths.flat] = 1.0  # a tree: no edge twice
  first = np.full(batch, np.nan)
  first[counted] = sum_values(ragged.select(paths, counted), forest.score)
  plain = viterbi(forest)
  last = forest.node_offsets[1:] - 1
  some = np.diff(forest.node_offsets) > 0
  searched = np.full(batch, np.nan)
  searched[some] = plain.score[last[some]]
  return Selection(
    weights=weights,
    admissible=counted,
    searched=searched,
    model=first,
    augmented=augmented,
    nearest=_rows_of(listed, nearest),
    chosen=paths,
    near=share,
  )


def _forest_weights(
  model, source, forest, references, config, scores, best
) -> tuple[np.ndarray, np.ndarray, Ragged, np.ndarray]:
  """Edge weights from the posteriors of all admissible derivations.

  A sentence without one among those drawn counts its best derivation, if that
  is admissible. Without one among the best of the root edges, the best one
  drawn is the best.

  Args:
    model: the rules.
    source: the sentences.
    forest: their forests.
    references: B rows, or None if every derivation is admissible.
    config: the settings.
    scores: of the edges, `[E]`.
    best: edges of the best admissible derivations in B rows, and their
      augmented scores, `[B]`.

  Returns:
    Weights `[E]`, the share of the posterior that is admissible `[B]`, and
    `best` completed.
  """
  paths, augmented = best
  if references is None:
    weights = marginals(forest, scores, scale=config.posterior_scale)
    return weights, np.ones(len(forest)), paths, augmented
  posteriors = constrained_posteriors(
    forest,
    scores,
    translation_forest.edge_strings(model, source, forest),
    references,
    limit=config.constraint,
    scale=config.posterior_scale,
    size=config.samples,
  )
  weights = posteriors.weights
  alone = (posteriors.share == 0) & (paths.lengths > 0)
  weights[_without(paths, ~alone).flat] = 1.0
  drawn = (paths.lengths == 0) & (posteriors.best.lengths > 0)
  augmented = augmented.copy()
  augmented[drawn] = sum_values(ragged.select(posteriors.best, drawn), scores)
  return (
    weights,
    posteriors.share,
    _either(paths, posteriors.best, drawn),
    augmented,
  )


def _without(rows: Ragged, empty: np.ndarray) -> Ragged:
  """Returns the rows with some of them empty, bool `[B]`."""
  lengths = np.where(empty, 0, rows.lengths)
  return Ragged(
    flat=rows.flat[~np.repeat(empty, rows.lengths)],
    offsets=ragged.row_offsets(lengths),
  )


def _either(one: Ragged, two: Ragged, second: np.ndarray) -> Ragged:
  """Returns the rows of `one`, those of `two` where `second` says so `[B]`."""
  both = Ragged(
    flat=np.concatenate([one.flat, two.flat]),
    offsets=np.concatenate([one.offsets, one.offsets[-1] + two.offsets[1:]]),
  )
  return ragged.select(both, np.arange(len(one)) + second * len(one))


def _argmax(values, sentence, batch: int) -> np.ndarray:
  """Place of each sentence's largest value, the first of equals; -1: none."""
  order = np.lexsort((np.arange(len(values)), -values, sentence))
  out = np.full(batch, -1, np.int64)
  rows, first = np.unique(sentence[order], return_index=True)
  places = order[first]
  possible = values[places] > -np.inf
  out[rows[possible]] = places[possible]
  return out


def best_bleu(
  model: Model,
  source: Source,
  forest: Forest,
  references: Ragged,
  config: ThetaConfig,
) -> Selection:
  """Selects the best sentence BLEU (BLEU+1) of each n-best list.

  Of equally good strings the one of the better model score is taken. There is
  no constraint: the best of a bad list is used too.
  """
  lists = translation_forest.kbest(model, source, forest, size=config.nbest)
  metric = METRICS["bleu+1"]
  counts = np.ones(len(references), np.int64)
  known = metric.prepare(base.make_references(references, counts))
  values = metric.statistics(known, lists.words, lists.sentence, threads=1)
  bleu = np.asarray(metric.sentence_score(values), np.float64)
  return best_listed(forest, lists, bleu)


def best_listed(
  forest: Forest, lists: DerivationLists, merit: np.ndarray
) -> Selection:
  """Selects the listed derivation of most merit, the first of equals.

  Args:
    forest: B sentences.
    lists: their n-best derivations by model score, D in all.
    merit: of each derivation, `[D]`.
  """
  best = _argmax(merit, lists.sentence, len(forest))
  listed = best >= 0
  paths = ragged.select(lists.edges, best[listed])
  weights = np.zeros(forest.num_edges)
  weights[paths.flat] = 1.0
  lengths = np.zeros(len(forest), np.int64)
  lengths[listed] = paths.lengths
  score = np.full(len(forest), np.nan)
  score[listed] = lists.score[best[listed]]
  searched = np.full(len(forest), np.nan)
  searched[listed] = lists.score[lists.offsets[:-1][listed]]
  rows = Ragged(
    flat=paths.flat.astype(np.int64), offsets=ragged.row_offsets(lengths)
  )
  return Selection(
    weights=weights,
    admissible=listed,
    searched=searched,
    model=score,
    augmented=score,
    nearest=rows,
    chosen=rows,
    near=np.full(len(forest), np.nan),
  )


def _rows_of(listed: Ragged, places: np.ndarray) -> Ragged:
  """Returns listed derivations, int64; no edges where a place is -1."""
  exists = places >= 0
  paths = ragged.select(listed, places[exists])
  lengths = np.zeros(len(places), np.int64)
  lengths[exists] = paths.lengths
  return Ragged(
    flat=paths.flat.astype(np.int64), offsets=ragged.row_offsets(lengths)
  )


def _nbest_weights(model, source, forest, references, config, scores):
  """Edge weights from the posteriors of exactly scored n-best derivations.

  Returns:
    Weights, float64 `[E]`, and which sentences have an admissible derivation
    among the n best, bool `[B]`.
  """
  lists = translation_forest.kbest(
    model,
    source,
    forest,
    size=config.nbest,
    scores=np.maximum(scores, _OUT),
  )
  exact = sum_values(lists.edges, forest.score)
  exact[lists.score < _OUT / 2] = -np.inf
  sentence = lists.sentence
  if references is not None:
    if forest.edges.augmented is not None:
      exact -= _loss(
        forest, lists.edges, lists.words, references, sentence, config
      )
    admissible = derivation_losses.admissible(
      lists.words, references, sentence, share=config.constraint
    )
    exact[~admissible] = -np.inf
  exact *= config.posterior_scale
  top = np.full(len(forest), -np.inf)
  np.maximum.at(top, sentence, exact)
  use = exact > -np.inf
  value = np.zeros(len(exact))
  value[use] = np.exp(exact[use] - top[sentence[use]])
  total = np.bincount(sentence, value, minlength=len(forest))
  value /= np.where(total > 0, total, 1.0)[sentence]
  spread = np.repeat(value, lists.edges.lengths)
  weights = np.bincount(lists.edges.flat, spread, minlength=forest.num_edges)
  return weights, total > 0


def _loss(forest, edges, strings, references, sentence, config):
  """Equation (8) of derivations given by their edges and words, `[D]`."""
  loss = config.alpha1 * beam_losses(forest, edges, config)
  if config.alpha2:
    good = derivation_losses.goodness(config.goodness)
    loss += config.alpha2 * good(strings, references, sentence)
  return loss


def beam_losses(
  forest: Forest, edges: Ragged, config: ThetaConfig
) -> np.ndarray:
  """loss_beam of derivations given by their edges, the goal's left out, `[D]`.

  The rank of a part is that of its node: of the hypothesis it was merged into.
  As in the search, hypotheses that differ by rounding only share a rank.
  """
  heads = np.searchsorted(forest.edge_offsets, edges.flat, side="right") - 1
  ends = forest.node_offsets[1:]
  row = np.searchsorted(forest.node_offsets, heads, side="right") - 1
  below = heads != ends[row] - 1
  seen = ragged.row_offsets(below)
  ranks = Ragged(
    flat=forest.nodes.rank[heads[below]] + 1, offsets=seen[edges.offsets]
  )
  return derivation_losses.derivation_beam_loss(
    ranks, k=config.k, margin=config.margin, cost=config.cost
  )
