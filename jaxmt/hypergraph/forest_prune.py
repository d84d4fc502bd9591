"""Smaller forests: the edges of the best derivations.

An edge is worth as much as the best derivation that uses it (its
max-marginal). All edges worth more than some value together are a forest again:
whatever the derivation of a kept edge uses is worth as much.
"""

import numpy as np

from jaxmt.hypergraph.forest import Forest
from jaxmt.hypergraph.forest_sets import EDGE_FIELDS, NODE_FIELDS
from jaxmt.text.kernels import njit


def max_marginals(
  forest: Forest, scores: np.ndarray | None = None
) -> np.ndarray:
  """Returns the score of the best derivation through each edge.

  Args:
    forest: E edges.
    scores: what each edge adds, `[E]`; `forest.score` if None.

  Returns:
    float64 `[E]`, -inf for edges no derivation uses.
  """
  scores = forest.score if scores is None else scores
  return _max_marginals(
    forest.node_offsets,
    forest.edge_offsets,
    np.ascontiguousarray(forest.tails),
    np.ascontiguousarray(scores, np.float64),
  )


def prune(
  forest: Forest,
  *,
  edges: np.ndarray,
  scores: np.ndarray | None = None,
) -> tuple[Forest, np.ndarray]:
  """Keeps the edges of the highest max-marginals of each sentence.

  Args:
    forest: B sentences.
    edges: about how many to keep of each, int `[B]`. Edges worth the same as
      the last one are kept, too, so the best derivation is always there.
    scores: what each edge adds, `[E]`; `forest.score` if None.

  Returns:
    The forests, and which edge each of their edges was, int64.
  """
  worth = max_marginals(forest, scores)
  kept = _chosen(
    forest.edge_offsets[forest.node_offsets], worth, np.asarray(edges, np.int64)
  )
  heads = forest.heads[kept]
  counts = np.bincount(heads, minlength=len(forest.begin))
  alive = np.flatnonzero(counts)
  number = np.full(len(forest.begin) + 1, -1, np.int32)
  number[alive] = np.arange(len(alive), dtype=np.int32)
  before = np.concatenate([[0], np.cumsum(counts > 0)])
  augmented = forest.augmented
  made = Forest(
    node_offsets=before[forest.node_offsets].astype(np.int64),
    edge_offsets=np.concatenate(
      [np.zeros(1, np.int64), np.cumsum(counts[alive])]
    ).astype(np.int64),
    tails=number[forest.tails[kept]],
    augmented=None if augmented is None else augmented[kept],
    **{name: getattr(forest, name)[alive] for name in NODE_FIELDS},
    **{name: getattr(forest, name)[kept] for name in EDGE_FIELDS},
  )
  return made, kept


@njit
def _max_marginals(node_offsets, edge_offsets, tails, scores):
  edges, arity = tails.shape
  nodes = len(edge_offsets) - 1
  inside = np.full(nodes, -np.inf)
  below = np.empty(edges)
  for node in range(nodes):
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      value = scores[edge]
      for part in range(arity):
        tail = tails[edge, part]
        if tail < 0:
          break
        value += inside[tail]
      below[edge] = value
      inside[node] = max(inside[node], value)
  outside = np.full(nodes, -np.inf)
  for row in range(len(node_offsets) - 1):
    if node_offsets[row + 1] > node_offsets[row]:
      outside[node_offsets[row + 1] - 1] = 0.0
  for node in range(nodes - 1, -1, -1):
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      if below[edge] == -np.inf or outside[node] == -np.inf:
        below[edge] = -np.inf
        continue
      below[edge] += outside[node]
      for part in range(arity):
        tail = tails[edge, part]
        if tail < 0:
          break
        outside[tail] = max(outside[tail], below[edge] - inside[tail])
  return below


@njit
def _chosen(cuts, worth, wanted):
  """Edges to keep. Rounding must not part a derivation: hence the margin."""
  kept = np.empty(len(worth), np.int64)
  count = 0
  for row in range(len(cuts) - 1):
    low, high = cuts[row], cuts[row + 1]
    if low == high:
      continue
    size = min(max(wanted[row], 1), high - low)
    last = np.sort(worth[low:high])[high - low - size]
    last -= 1e-9 * (1.0 + abs(last))
    for edge in range(low, high):
      if worth[edge] >= last and worth[edge] > -np.inf:
        kept[count] = edge
        count += 1
  return kept[:count]
