"""Inside, outside, marginals, Viterbi, expectations and pruning of forests.

    scores = inside(forest)                      # log sums of nodes, [N]
    best = viterbi(forest)                       # best derivation of each node
    posteriors = marginals(forest)               # p(edge | sentence), [E]
    means = expectations(forest, features)       # [B, F]
    smaller = prune(forest, edges)               # edges of the best derivations

All take the scores of edges, `forest.score` if None. `backend="host"` runs
compiled kernels on the CPU in float64 (`host_passes`), `backend="device"` the
JAX program in float32 (`inside_outside`). They agree up to rounding: about 1e-4
in log sums of some dozens of edges. For gradients, other semirings or jitted
programs use `lay_out` and `inside_outside` directly.

The max-marginal of an edge is the score of the best derivation that uses it.
All edges with a max-marginal above some value are a forest again: whatever the
derivation of such an edge uses has as high a max-marginal.
"""

import dataclasses
import functools

import jax
import numpy as np

from jaxmt.hypergraph import host_passes, inside_outside, semirings
from jaxmt.hypergraph.derivations import EdgeStrings, list_items
from jaxmt.hypergraph.device_layout import lay_out
from jaxmt.hypergraph.forest import Forest, edge_scores, restrict
from jaxmt.hypergraph.inside_outside import Passes
from jaxmt.hypergraph.semirings import LOG, MAX, Best, Semiring
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

BACKENDS = ("host", "device")


def inside(
  forest: Forest,
  scores: np.ndarray | None = None,
  *,
  semiring: Semiring = LOG,
  backend: str = "host",
) -> np.ndarray | Best:
  """Returns the sum over the derivations below each node.

  Args:
    forest: N nodes, E edges.
    scores: of edges, `[E]`; -inf leaves an edge out.
    semiring: `LOG` or `MAX`.
    backend: "host" or "device".

  Returns:
    `[N]` for `LOG`, `Best` of `[N]` for `MAX`: the edge at the top of the best
    derivation is its `back`.
  """
  if on_host(backend, semiring):
    values = edge_scores(forest, scores)
    if semiring is LOG:
      return host_passes.inside_log(*_below(forest), values)[0]
    score, back, _ = host_passes.inside_max(*_below(forest), values)
    return Best(score=score, back=back)
  return _trimmed(
    device_passes(forest, scores, semiring).inside, forest.num_nodes
  )


def outside(
  forest: Forest,
  scores: np.ndarray | None = None,
  *,
  semiring: Semiring = LOG,
  backend: str = "host",
) -> np.ndarray | Best:
  """Returns the sum over what can be around each node.

  Arguments as for `inside`.

  Returns:
    `[N]` for `LOG`, `Best` of `[N]` for `MAX`, whose `back` is the edge that
    uses the node as a tail. -inf for nodes that no derivation uses.
  """
  if on_host(backend, semiring):
    values = edge_scores(forest, scores)
    if semiring is LOG:
      below, _, through = host_passes.inside_log(*_below(forest), values)
      return host_passes.outside_log(*_all(forest), below, through)
    below, _, through = host_passes.inside_max(*_below(forest), values)
    score, back, _ = host_passes.outside_max(*_all(forest), below, through)
    return Best(score=score, back=back)
  return _trimmed(
    device_passes(forest, scores, semiring).outside, forest.num_nodes
  )


def log_totals(
  forest: Forest, scores: np.ndarray | None = None, *, backend: str = "host"
) -> np.ndarray:
  """Returns the log of the sum of `exp(score)` over all derivations, `[B]`.

  It is -inf for a sentence without derivation.
  """
  sums = np.asarray(inside(forest, scores, backend=backend))
  roots = forest.roots
  out = np.full(len(forest), -np.inf)
  out[roots >= 0] = sums[roots[roots >= 0]]
  return out


def marginals(
  forest: Forest,
  scores: np.ndarray | None = None,
  *,
  scale: float = 1.0,
  backend: str = "host",
) -> np.ndarray:
  """Returns `p(edge | sentence)` with `p(d) ~ exp(scale * score(d))`, `[E]`.

  Args:
    forest: E edges.
    scores: of edges, `[E]`; -inf leaves an edge out.
    scale: inverse temperature, not negative; 0 weighs all derivations alike.
    backend: "host" or "device".
  """
  if scale < 0:
    raise ValueError(f"scale {scale} is negative")
  values = edge_scores(forest, scores)
  if scale != 1.0:  # 0 must not bring back what is left out
    possible = values > -np.inf
    values = np.where(possible, scale * np.where(possible, values, 0), values)
  if on_host(backend, LOG):
    _, share, _ = host_passes.inside_log(*_below(forest), values)
    return host_passes.spread_mass(*_all(forest), share)
  return np.asarray(
    _device_marginals(lay_out(forest), values.astype(np.float32))
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Viterbi:
  """The best derivation of every node and of every edge.

  Attributes:
    score: score of each node's best derivation, float64 `[N]`.
    back: the edge at its top, -1 where there is none, int64 `[N]`.
    through: score of the best derivation with each edge at its top, `[E]`.
  """

  score: np.ndarray
  back: np.ndarray
  through: np.ndarray


def viterbi(forest: Forest, scores: np.ndarray | None = None) -> Viterbi:
  """Finds the best derivation of every node; the first of equal edges wins.

  Args:
    forest: N nodes, E edges.
    scores: of edges, `[E]`; `forest.score` if None; -inf leaves an edge out.
  """
  score, back, through = host_passes.inside_max(
    *_below(forest), edge_scores(forest, scores)
  )
  return Viterbi(score=score, back=back, through=through)


def best_derivations(
  forest: Forest,
  best: Viterbi,
  edges: np.ndarray,
  *,
  strings: EdgeStrings | None = None,
) -> tuple[Ragged, Ragged]:
  """Returns the best derivations that have some edges at their top.

  Args:
    forest: the forests.
    best: from `viterbi`.
    edges: int `[D]`; each with a derivation.
    strings: what edges add to strings.

  Returns:
    The edges of each in preorder and its words, D rows of int32 each.
  """
  items = np.full((forest.num_edges, 1 + forest.tails.shape[1]), -1, np.int32)
  items[:, 0] = np.arange(forest.num_edges)
  items[:, 1:] = np.append(best.back, -1)[forest.tails]
  return list_items(forest, items, edges, strings=strings)


def expectations(
  forest: Forest,
  values: np.ndarray,
  scores: np.ndarray | None = None,
  *,
  backend: str = "host",
) -> np.ndarray:
  """Returns the expected sum of edge values over a derivation, `[B, F]`.

  Derivations have `p(d) ~ exp(score(d))`. The host weighs the values by the
  marginals; the device computes in the expectation semiring. A sentence without
  derivations has 0.

  Args:
    forest: B sentences, E edges.
    values: `[E, F]`, such as features.
    scores: of edges, `[E]`.
    backend: "host" or "device".
  """
  values = np.asarray(values)
  if values.ndim != 2 or len(values) != forest.num_edges:
    raise ValueError(f"values {values.shape} for {forest.num_edges} edges")
  if on_host(backend, LOG):
    weighted = marginals(forest, scores)[:, None] * values
    sums = np.zeros((forest.num_edges + 1, values.shape[1]))
    np.cumsum(weighted, axis=0, out=sums[1:])
    return np.diff(sums[forest.edge_cuts], axis=0)
  laid, rounded = lay_out(forest), _rounded(forest, scores)
  means = _device_means(laid, rounded, values.astype(np.float32))
  return np.asarray(means)[: len(forest)]


def device_passes(forest: Forest, scores, semiring: Semiring) -> Passes:
  """Runs both passes on the device; the nodes and sentences are padded."""
  both = _compiled(semiring)(lay_out(forest), _rounded(forest, scores))
  return jax.tree.map(np.asarray, both)


@functools.cache
def _compiled(semiring):
  return jax.jit(
    lambda levels, scores: inside_outside.passes(levels, scores, semiring)
  )


_device_marginals = jax.jit(inside_outside.marginals)


@jax.jit
def _device_means(levels, scores, values):
  totals = inside_outside.total(levels, (scores, values), semirings.EXPECTATION)
  return totals.mean


def on_host(backend: str, semiring: Semiring) -> bool:
  """Returns whether the backend is the host.

  Raises:
    ValueError: for other backends and semirings than there are.
  """
  if backend not in BACKENDS:
    raise ValueError(f"backend '{backend}' is none of {BACKENDS}")
  if semiring is not LOG and semiring is not MAX:
    raise ValueError(f"the {semiring.name} semiring: use inside_outside.passes")
  return backend == "host"


def _below(forest: Forest):
  return forest.edge_offsets, np.ascontiguousarray(forest.tails)


def _all(forest: Forest):
  return (forest.node_offsets, *_below(forest))


def _rounded(forest: Forest, scores) -> np.ndarray:
  return edge_scores(forest, scores).astype(np.float32)


def _trimmed(elements, size: int):
  return jax.tree.map(lambda leaf: leaf[:size], elements)


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
