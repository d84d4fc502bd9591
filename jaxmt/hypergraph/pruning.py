"""Smaller forests: the edges of the best derivations.

The max-marginal of an edge is the score of the best derivation that uses it.
All edges with a max-marginal above some value are a forest again: whatever the
derivation of such an edge uses has as high a max-marginal.
"""

import numpy as np

from jaxmt.hypergraph import host_passes
from jaxmt.hypergraph.forest import Forest, edge_scores, restrict
from jaxmt.hypergraph.passes import device_passes, on_host
from jaxmt.hypergraph.semirings import MAX
from jaxmt.text.kernels import njit


def max_marginals(
  forest: Forest, scores: np.ndarray | None = None, *, backend: str = "host"
) -> np.ndarray:
  """Returns the score of the best derivation through each edge.

  Args:
    forest: E edges.
    scores: what each edge adds, `[E]`; `forest.score` if None.
    backend: "host" or "device", see `passes`.

  Returns:
    `[E]`, -inf for edges no derivation uses.
  """
  if not on_host(backend, MAX):
    return device_passes(forest, scores, MAX).through.score
  tails = np.ascontiguousarray(forest.tails)
  below, _, through = host_passes.inside_max(
    forest.edge_offsets, tails, edge_scores(forest, scores)
  )
  return host_passes.outside_max(
    forest.node_offsets, forest.edge_offsets, tails, below, through
  )[2]


def prune(
  forest: Forest,
  *,
  edges: np.ndarray,
  scores: np.ndarray | None = None,
) -> tuple[Forest, np.ndarray]:
  """Keeps the edges of the highest max-marginals of each sentence.

  Args:
    forest: B sentences.
    edges: about how many to keep of each, int `[B]`. Edges with the same value
      as the last one are kept, too, so the best derivation always stays.
    scores: what each edge adds, `[E]`; `forest.score` if None.

  Returns:
    The forests, and which edge each of their edges was, int64.
  """
  chosen = _highest(
    forest.edge_cuts,
    max_marginals(forest, scores),
    np.asarray(edges, np.int64),
  )
  return restrict(forest, chosen), chosen


@njit
def _highest(cuts, values, sizes):
  """Edges to keep. Rounding must not part a derivation: hence the margin."""
  chosen = np.empty(len(values), np.int64)
  count = 0
  for row in range(len(cuts) - 1):
    low, high = cuts[row], cuts[row + 1]
    if low == high:
      continue
    # The value of the last edge that fits, and a little less.
    size = min(max(sizes[row], 1), high - low)
    last = np.sort(values[low:high])[high - low - size]
    last -= 1e-9 * (1.0 + abs(last))
    for edge in range(low, high):
      if values[edge] >= last and values[edge] > -np.inf:
        chosen[count] = edge
        count += 1
  return chosen[:count]
