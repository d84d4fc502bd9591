"""Edge posteriors of forests on the host, for expected counts.

The inside pass leaves at each edge its share of its head's sum; the outside
pass then only multiplies: one exponential for each edge, one logarithm for
each node. `inside_outside` has the same as a device computation with gradients
and for other semirings; this is the fast way to counts on a CPU.
"""

import numpy as np

from jaxmt.hypergraph.forest import Forest
from jaxmt.text.kernels import njit


def posteriors(
  forest: Forest, scores: np.ndarray | None = None, *, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
  """Returns `p(edge | sentence)` with `p(d) ~ exp(scale * score(d))`.

  Args:
    forest: B sentences, E edges.
    scores: score of each edge `[E]`; `forest.score` if None. An edge of score
      -inf is left out.
    scale: inverse temperature, not negative; 0 weighs all derivations alike.

  Returns:
    Posteriors float64 `[E]`, and the log of each sentence's sum over
    derivations float64 `[B]`, -inf where there is none.
  """
  scores = forest.score if scores is None else scores
  scores = np.ascontiguousarray(scores, np.float64)
  if scores.shape != forest.rule.shape:
    raise ValueError(f"{scores.shape} scores, {len(forest.rule)} edges")
  if scale < 0:
    raise ValueError(f"scale {scale} is negative")
  return _posteriors(
    forest.node_offsets,
    forest.edge_offsets,
    np.ascontiguousarray(forest.tails),
    scores,
    float(scale),
  )


@njit
def _posteriors(node_offsets, edge_offsets, tails, scores, scale):
  edges, arity = tails.shape
  nodes = len(edge_offsets) - 1
  share = np.empty(edges)  # of the edge in its head's sum
  inside = np.empty(nodes)
  for node in range(nodes):
    low, high = edge_offsets[node], edge_offsets[node + 1]
    top = -np.inf
    for edge in range(low, high):
      value = -np.inf
      if scores[edge] > -np.inf:  # scale 0 must not bring it back
        value = scale * scores[edge]
      for part in range(arity):
        tail = tails[edge, part]
        if tail < 0:
          break
        value += inside[tail]
      share[edge] = value
      top = value if value > top else top
    total = 0.0
    if top == -np.inf:
      share[low:high] = 0.0
      inside[node] = top
      continue
    for edge in range(low, high):
      share[edge] = np.exp(share[edge] - top)
      total += share[edge]
    inside[node] = top + np.log(total)
    for edge in range(low, high):
      share[edge] /= total
  mass = np.zeros(nodes)
  totals = np.full(len(node_offsets) - 1, -np.inf)
  for row in range(len(totals)):
    if node_offsets[row + 1] > node_offsets[row]:
      root = node_offsets[row + 1] - 1
      totals[row] = inside[root]
      mass[root] = 1.0
  for node in range(nodes - 1, -1, -1):
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      share[edge] *= mass[node]
      for part in range(arity):
        tail = tails[edge, part]
        if tail < 0:
          break
        mass[tail] += share[edge]
  return share, totals
