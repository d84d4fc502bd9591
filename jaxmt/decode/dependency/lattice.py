"""Phrase lattices: graphs whose paths are translations.

Node 0 is the start. Nodes stand in topological order: every edge leads to a
higher node. An edge is a phrase pair. To tell the lattice's own from those of
dependency trees, *edge* is said of lattices and *arc* of trees.

E: edges. V: nodes.
"""

import dataclasses
import itertools

import numpy as np

from jaxmt import hypergraph
from jaxmt.hypergraph import Forest
from jaxmt.text.kernels import njit


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lattice:
  """The lattice of a sentence.

  Attributes:
    start: node each edge leaves, int32 `[E]`, rising.
    end: node it leads to, int32 `[E]`.
    score: what it adds to the score of a path, float32 `[E]`.
    final: what ending at each node adds, -inf where no path may end, float32
      `[V]`.
    words: target words of each edge, int32 `[E]`.
    span: source words `[begin, end)` of each edge, int32 `[E, 2]`.
  """

  start: np.ndarray
  end: np.ndarray
  score: np.ndarray
  final: np.ndarray
  words: np.ndarray
  span: np.ndarray

  def __len__(self) -> int:
    """Returns E."""
    return len(self.start)


def check(lattice: Lattice) -> None:
  """Checks what comes from outside.

  Raises:
    ValueError: if an edge leads back, or out of the lattice.
  """
  if len(lattice) and (
    np.any(lattice.start >= lattice.end)
    or lattice.start.min() < 0
    or lattice.end.max() >= len(lattice.final)
  ):
    raise ValueError("an edge does not lead to a higher node")
  if np.any(np.diff(lattice.start) < 0):
    raise ValueError("edges are not sorted by their starts")


def longest_paths(lattice: Lattice) -> np.ndarray:
  """Returns words on the longest path between nodes, -1: none; `[V, V]`.

  One sweep over the edges for each start, O(VE): the order of the nodes
  saves Floyd and Warshall's third loop.
  """
  return _longest_paths(
    lattice.start, lattice.end, lattice.words, len(lattice.final)
  )


@njit
def _longest_paths(start, end, words, nodes):
  longest = np.full((nodes, nodes), -1, np.int32)
  for source in range(nodes):
    longest[source, source] = 0
    for edge in range(len(start)):
      before = longest[source, start[edge]]
      if before >= 0 and before + words[edge] > longest[source, end[edge]]:
        longest[source, end[edge]] = before + words[edge]
  return longest


def source_gaps(lattice: Lattice) -> np.ndarray:
  """Returns source words between the phrases of two edges, int32 `[E, E]`.

  -1 where they overlap, which no path allows.
  """
  return span_gaps(lattice.span)


def span_gaps(spans: np.ndarray) -> np.ndarray:
  """Returns words between spans `[begin, end)`, -1 for overlaps, `[S, S]`."""
  begin, end = spans.T
  after = begin[None] - end[:, None]  # the second follows the first
  return np.maximum(np.maximum(after, after.T), -1).astype(np.int32)


def allowed_arcs(
  lattice: Lattice,
  longest: np.ndarray,
  *,
  source_limit: int | None = None,
  target_limit: int | None = None,
) -> np.ndarray:
  """Returns pairs of edges that may be linked, bool `[E, E]`: left, right.

  The right one must be reachable from the left one. The vine limits bound the
  source words between both phrases, and the target words between them on the
  longest path.
  """
  between = longest[lattice.end][:, lattice.start]
  allowed = between >= 0
  if target_limit is not None:
    allowed &= between <= target_limit
  if source_limit is not None:
    allowed &= source_gaps(lattice) <= source_limit
  return allowed


def prune_to_budget(forest: Forest, *, edges: int) -> Forest:
  """Drops lattice edges, those of the lowest max-marginals first.

  The threshold is the lowest one that leaves at most `edges` edges in every
  sentence; the best path stays in any case.

  Args:
    forest: lattices: forests of arity 1.
    edges: E at most.
  """
  marginals = hypergraph.max_marginals(forest)
  cuts = forest.edge_cuts
  stays = np.zeros(forest.num_edges, bool)
  for low, high in itertools.pairwise(cuts):
    posterior = marginals[low:high]
    if high - low <= edges:
      stays[low:high] = posterior > -np.inf
      continue
    # Edges of equal marginals stay or go together, but for the best path.
    limit = -np.partition(-posterior, edges)[edges]
    best = posterior.max()
    stays[low:high] = (posterior > limit) | (
      posterior >= best - 1e-9 * (1 + abs(best))
    )
  return hypergraph.restrict(forest, np.flatnonzero(stays))
