"""Posteriors of the derivations near the reference, for forest counts.

Whether a derivation is near its reference depends on its whole string. Nodes
of a forest do not carry that much: a root edge has derivations on both sides
of the limit. So derivations are drawn from the forest's posterior, and those
whose string is too far are dropped. What is left is a sample of

    p(d | sentence, d is near) ~ exp(score(d))

- Every derivation that counts has been checked by itself: the constraint is
  exact, no mass is on the wrong side.
- Edge weights are means over the draws that are left, n of them: unbiased, with
  a standard error of sqrt(p (1 - p) / n) in a sentence.
- If no derivation of a sentence can be too far, since none is long enough, its
  weights are the forest's marginals.

Draws depend on the sentence's place in its batch alone, not on devices or
processes.
"""

import dataclasses

import numpy as np

from jaxmt.hypergraph import (
  EdgeStrings,
  Forest,
  marginals,
  sample,
  sum_values,
  viterbi,
)
from jaxmt.hypergraph.derivations import string_range, symbol_at
from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.train import derivation_losses

_SEED = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConstrainedPosteriors:
  """Posteriors over the near derivations of B sentences.

  Attributes:
    weights: of the edges, float64 `[E]`; 0 in sentences without a near draw.
    share: share of the forest's mass that is near, as drawn, float64 `[B]`;
      1 where nothing can be too far, 0 without derivations.
    best: the near derivation of the best score among the draws: its edges in B
      rows, empty in sentences without draws.
  """

  weights: np.ndarray
  share: np.ndarray
  best: Ragged


def constrained_posteriors(
  forest: Forest,
  scores: np.ndarray,
  strings: EdgeStrings,
  references: Ragged,
  *,
  limit: float,
  scale: float,
  size: int,
) -> ConstrainedPosteriors:
  """Weighs edges by the posteriors of the derivations near the references.

  Args:
    forest: B sentences, E edges.
    scores: of the edges, float64 `[E]`.
    strings: what edges add to the strings.
    references: one for each sentence, B rows.
    limit: edits allowed, as a share of the reference's words.
    scale: scores are multiplied by it.
    size: derivations drawn from each sentence.
  """
  batch = len(forest)
  free = np.zeros(batch, np.bool_)
  if limit >= 1.0:  # below it a short string can miss the whole reference
    free = _longest(forest, strings) <= limit * references.lengths + 1e-9
  weights = np.zeros(forest.num_edges)
  if free.any():
    weights = marginals(forest, scores, scale=scale)
  derived = np.diff(forest.node_offsets) > 0
  share = (free & derived).astype(np.float64)
  best = np.full(batch, -1, np.int64)
  if free.all():
    nothing = np.zeros(0, np.int64)
    return ConstrainedPosteriors(
      weights=weights,
      share=share,
      best=Ragged(flat=nothing, offsets=np.zeros(batch + 1, np.int64)),
    )
  drawn = sample(
    forest, size=size, seed=_SEED, scores=scale * scores, strings=strings
  )
  sentence = drawn.sentence
  admissible = derivation_losses.admissible(
    drawn.words, references, sentence, share=limit
  )
  admissible &= ~free[sentence]
  left = np.bincount(sentence, admissible, minlength=batch)
  share[~free] = left[~free] / size
  # Every draw that is left weighs the same.
  bound = ~free[_edge_sentences(forest)]
  weights[bound] = 0.0
  each = np.where(admissible, 1.0 / np.maximum(left, 1.0)[sentence], 0.0)
  spread = np.repeat(each, drawn.edges.lengths)
  weights += np.bincount(drawn.edges.flat, spread, minlength=forest.num_edges)
  # The best of them.
  value = np.where(admissible, sum_values(drawn.edges, scores), -np.inf)
  order = np.lexsort((np.arange(len(value)), -value, sentence))
  rows, first = np.unique(sentence[order], return_index=True)
  some = admissible[order[first]]
  best[rows[some]] = order[first][some]
  lengths = np.zeros(batch, np.int64)
  chosen = ragged.select(drawn.edges, best[best >= 0])
  lengths[best >= 0] = chosen.lengths
  return ConstrainedPosteriors(
    weights=weights,
    share=share,
    best=Ragged(
      flat=chosen.flat.astype(np.int64), offsets=ragged.row_offsets(lengths)
    ),
  )


def _edge_sentences(forest: Forest) -> np.ndarray:
  """The sentence of every edge, int64 `[E]`."""
  edges = np.diff(forest.edge_offsets[forest.node_offsets])
  return np.repeat(np.arange(len(forest)), edges)


def _longest(forest: Forest, strings: EdgeStrings) -> np.ndarray:
  """Words of the longest string of each sentence, float64 `[B]`."""
  longest = viterbi(forest, _words_added(*strings.columns)).score
  out = np.zeros(len(forest))
  some = np.diff(forest.node_offsets) > 0
  out[some] = longest[forest.node_offsets[1:][some] - 1]
  return out


@njit
def _words_added(row, flat, offsets, extra):
  """Words that each edge adds, float64 `[E]`; see `EdgeStrings.columns`."""
  out = np.zeros(len(row))
  for edge in range(len(row)):
    low, high = string_range(row[edge], flat, offsets)
    for place in range(low, high):
      out[edge] += symbol_at(place, flat, extra) >= 0
  return out
