"""Which derivations of a forest are learned from, and how much each counts.

`select` gives every edge of the forests of a loss-augmented search a weight:

- "viterbi": 1 on the edges of d̂, equation (7);
- "nbest": the posteriors of the n best derivations, whose augmented scores are
  computed exactly: model score - α1 Σ l(rank) - α2 goodness of the string;
- "forest": edge posteriors under the edges' augmented scores.

Derivations whose string is not near the reference are left out first: a root
edge whose best derivation is not admissible. For the best derivations
themselves all of this is exact. In the forest, other derivations are
approximated: an edge adds what it adds to the best derivations of its tails,
because goodness is a ratio of sums, not a sum over edges, and a derivation
merged into another shares its rank and its admissibility.

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
  Viterbi,
  best_derivations,
  marginals,
  root_edges,
  sum_values,
  viterbi,
)
from jaxmt.metrics import base
from jaxmt.metrics.registry import METRICS
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.train import derivation_losses
from jaxmt.train.config import ThetaConfig

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
  """

  weights: np.ndarray
  admissible: np.ndarray
  searched: np.ndarray
  model: np.ndarray
  augmented: np.ndarray
  nearest: Ragged


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
  paths, strings = best_derivations(
    forest,
    best,
    edges,
    strings=translation_forest.edge_strings(model, source, forest),
  )
  if config.goodness != "bleu" and augmented is not None:
    exact = sum_values(paths, forest.score)
    exact -= _loss(forest, paths, strings, references, sentence, config)
    scores[edges] += exact - best.through[edges]
    best.through[edges] = exact
  near = derivation_losses.admissible(
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
    (edges, sentence, near),
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
  near = np.ones(len(edges), np.bool_)
  return _weighed(
    model,
    source,
    forest,
    None,
    config,
    scores,
    best,
    (edges, sentence, near),
  )


def _weighed(
  model, source, forest, references, config, scores, best, roots
) -> Selection:
  edges, sentence, near = roots
  batch = len(forest)
  nearest = _argmax(best.through[edges], sentence, batch)
  allowed = np.where(near, best.through[edges], -np.inf)
  chosen = _argmax(allowed, sentence, batch)
  scores = scores.copy()
  scores[edges[~near]] = -np.inf
  there = chosen >= 0
  weights = np.zeros(forest.num_edges)
  if config.counts == "forest":
    weights = marginals(forest, scores, scale=config.posterior_scale)
  elif config.counts == "nbest":
    weights, listed = _nbest_weights(
      model, source, forest, references, config, scores
    )
    there = there & listed
  top = np.full(batch, np.nan)
  top[there] = best.through[edges[chosen[there]]]
  paths, _ = best_derivations(forest, best, edges[chosen[there]])
  if config.counts == "viterbi":
    weights[paths.flat] = 1.0  # a tree: no edge twice
  first = np.full(batch, np.nan)
  first[there] = sum_values(paths, forest.score)
  plain = viterbi(forest)
  last = forest.node_offsets[1:] - 1
  some = np.diff(forest.node_offsets) > 0
  searched = np.full(batch, np.nan)
  searched[some] = plain.score[last[some]]
  return Selection(
    weights=weights,
    admissible=there,
    searched=searched,
    model=first,
    augmented=top,
    nearest=_rows_of(forest, best, edges, nearest),
  )


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
  there = best >= 0
  paths = ragged.select(lists.edges, best[there])
  weights = np.zeros(forest.num_edges)
  weights[paths.flat] = 1.0
  lengths = np.zeros(len(forest), np.int64)
  lengths[there] = paths.lengths
  score = np.full(len(forest), np.nan)
  score[there] = lists.score[best[there]]
  searched = np.full(len(forest), np.nan)
  searched[there] = lists.score[lists.offsets[:-1][there]]
  return Selection(
    weights=weights,
    admissible=there,
    searched=searched,
    model=score,
    augmented=score,
    nearest=Ragged(
      flat=paths.flat.astype(np.int64),
      offsets=ragged.row_offsets(lengths),
    ),
  )


def _rows_of(forest: Forest, best: Viterbi, edges, places) -> Ragged:
  """Edges of the best derivations of root edges; no row where place is -1."""
  there = places >= 0
  paths, _ = best_derivations(forest, best, edges[places[there]])
  lengths = np.zeros(len(places), np.int64)
  lengths[there] = paths.lengths
  ends = ragged.row_offsets(lengths)
  return Ragged(flat=paths.flat.astype(np.int64), offsets=ends)


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
    near = derivation_losses.admissible(
      lists.words, references, sentence, share=config.constraint
    )
    exact[~near] = -np.inf
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
