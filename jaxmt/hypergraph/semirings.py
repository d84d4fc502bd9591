"""Semirings for passes over forests on the device.

Elements are arrays, or named tuples of arrays, with the items along the first
axis. Probabilities may be tiny, so their logarithms are stored. Expectations
are stored as means: with `r̄ = r / p`, the pair `(p, r)` of Li and Eisner (2009)
becomes `(log p, r̄)`. A product adds means and a sum averages them. Nothing
underflows, and means may have any sign.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Elements = Any  # a tree of arrays [N, ...]
Leaf = Any  # an array [N, ...]; a number in `Semiring.constants`


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Semiring:
  """What a pass over a forest needs.

  Attributes:
    name: its name.
    lift: `(values, edges) -> elements` of edges, given what the caller knows of
      them and their numbers int32 `[N]`.
    constants: the leaves' values in zero.
    one: `(zeros) -> ones`.
    times: `(a, b) -> a ⊗ b` item by item. Where it matters, a is the edge.
    plus: `(a, b) -> a ⊕ b` item by item.
    reduce: `(elements [N, ...], segments [N], size) -> [size, ...]`: sums
      within segments, which are sorted; those of number `size` are dropped.
    fold: `(elements [K, ...]) -> [...]`: sums along the first axis of dense
      arrays, for scalar semirings; None: pairwise by `plus`, see `total`.
    slope: `(edges, nodes, heads, numbers) -> d head / d edge` for scalar
      semirings: `edges` are elements of edges with their tails, `nodes` those
      of all nodes, `heads` and `numbers` the edges' heads and numbers. None if
      gradients are left to JAX.
  """

  name: str
  lift: Callable[[Any, jax.Array], Elements]
  constants: Elements
  one: Callable[[Elements], Elements]
  times: Callable[[Elements, Elements], Elements]
  plus: Callable[[Elements, Elements], Elements]
  reduce: Callable[[Elements, jax.Array, int], Elements]
  slope: (
    Callable[[Elements, Elements, jax.Array, jax.Array], jax.Array] | None
  ) = None
  fold: Callable[[Elements], Elements] | None = None

  def zeros(self, like: Elements, size: int) -> Elements:
    """Returns zeros of the same kind as the elements `like`."""
    make = lambda leaf, fill: jnp.full(
      (size, *leaf.shape[1:]), fill, leaf.dtype
    )
    return jax.tree.map(make, like, self.constants)

  def product(self, a: Elements, b: Elements, *, axes: int) -> Elements:
    """Returns `a ⊗ b` of dense charts: items along the first `axes` axes."""
    return _flattened(self.times, a, b, axes=axes)

  def total(self, elements: Elements, *, axes: int) -> Elements:
    """Returns sums along the first of `axes` axes of items of a dense chart.

    Charts may hold zeros anywhere; gradients are numbers all the same.
    """
    if self.fold is not None:
      return self.fold(elements)
    while (size := len(jax.tree.leaves(elements)[0])) > 1:
      half = size // 2
      low, high, rest = (
        _rows(elements, *cut)
        for cut in ((0, half), (half, 2 * half), (2 * half, size))
      )
      pairs = _flattened(self.plus, low, high, axes=axes)
      elements = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), pairs, rest)
    return jax.tree.map(lambda x: x[0], elements)


def _rows(elements, start, stop):
  return jax.tree.map(lambda x: x[start:stop], elements)


def _flattened(function, a, b, *, axes):
  """Applies a function of items along one axis to items along several."""
  shape = jax.tree.leaves(a)[0].shape[:axes]
  flat = lambda tree: jax.tree.map(
    lambda x: jnp.reshape(x, (-1, *x.shape[axes:])), tree
  )
  return jax.tree.map(
    lambda x: jnp.reshape(x, (*shape, *x.shape[1:])),
    function(flat(a), flat(b)),
  )


_sum = functools.partial(jax.ops.segment_sum, indices_are_sorted=True)
_max = functools.partial(jax.ops.segment_max, indices_are_sorted=True)
_min = functools.partial(jax.ops.segment_min, indices_are_sorted=True)


def _finite(array):
  """0 in place of -inf, so that differences stay numbers."""
  return jnp.where(array > -jnp.inf, array, 0.0)


def _log(array):
  """log, with a gradient at 0 that is 0."""
  some = array > 0
  return jnp.where(some, jnp.log(jnp.where(some, array, 1.0)), -jnp.inf)


# --- sums of derivations ----------------------------------------------------


def _weigh(log_p, segments, size):
  """(log sums `[size]`, each item's share of its segment's sum `[N]`)."""
  top = _finite(_max(jax.lax.stop_gradient(log_p), segments, size))
  lifted = jnp.append(top, jnp.zeros((1,), top.dtype))[segments]
  weight = jnp.exp(log_p - lifted)
  total = _sum(weight, segments, size)
  safe = jnp.append(jnp.where(total > 0, total, 1.0), jnp.ones((1,)))
  return top + _log(total), weight / safe[segments].astype(weight.dtype)


def _shares(edges, nodes, heads, _):
  """Each edge's share of its head's sum.

  That the shares of a node add up to 1 is made sure of once more: rounding
  would add up over the levels.
  """
  weight = jnp.exp(edges - _finite(nodes)[heads])
  total = jax.ops.segment_sum(weight, heads, len(nodes))
  return weight / jnp.where(total > 0, total, 1.0)[heads]


def _log_sum_exp(scores):
  """Along the first axis; zeros have no gradient."""
  top = _finite(jnp.max(jax.lax.stop_gradient(scores), axis=0))
  return top + _log(jnp.sum(jnp.exp(scores - top), axis=0))


LOG = Semiring(
  name="log",
  lift=lambda scores, _: scores,
  constants=-jnp.inf,
  one=jnp.zeros_like,
  times=jnp.add,
  plus=jnp.logaddexp,
  reduce=lambda scores, segments, size: _weigh(scores, segments, size)[0],
  slope=_shares,
  fold=_log_sum_exp,
)

COUNTING = Semiring(
  name="counting",
  lift=lambda counts, _: counts,
  constants=0.0,
  one=jnp.ones_like,
  times=jnp.multiply,
  plus=jnp.add,
  reduce=_sum,
  fold=lambda counts: jnp.sum(counts, axis=0),
)


# --- the best derivation ----------------------------------------------------


class Best(NamedTuple):
  """Best scores `[N]`, and the edges that have them int32 `[N]`, -1: none."""

  score: Leaf
  back: Leaf


def _best_of(elements, segments, size):
  score = _max(elements.score, segments, size)
  known = jnp.append(score, jnp.zeros((1,), score.dtype))[segments]
  # The first edge of that score; edges of one node stand in their order.
  is_best = (elements.score == known) & (known > -jnp.inf)
  most = jnp.iinfo(jnp.int32).max
  back = _min(jnp.where(is_best, elements.back, most), segments, size)
  return Best(score=score, back=jnp.where(back == most, -1, back))


def _better(a, b):
  right = b.score > a.score
  return Best(
    score=jnp.where(right, b.score, a.score),
    back=jnp.where(right, b.back, a.back),
  )


def _first_best(elements):
  """Along the first axis; all of the gradient goes to one of equal items."""
  place = jnp.argmax(elements.score, axis=0)[None]
  pick = lambda leaf: jnp.take_along_axis(leaf, place, axis=0)[0]
  return jax.tree.map(pick, elements)


MAX = Semiring(
  name="max",
  lift=lambda scores, edges: Best(score=scores, back=edges),
  constants=Best(score=-jnp.inf, back=-1),
  one=lambda zeros: Best(score=jnp.zeros_like(zeros.score), back=zeros.back),
  times=lambda a, b: Best(score=a.score + b.score, back=a.back),
  plus=_better,
  reduce=_best_of,
  slope=lambda edges, nodes, heads, numbers: (
    (nodes.back[heads] == numbers) & (numbers >= 0)
  ).astype(edges.score.dtype),
  fold=_first_best,
)


# --- the k best scores ------------------------------------------------------


@functools.cache
def kbest(size: int) -> Semiring:
  """Returns the semiring of the `size` best scores, falling, `[N, size]`."""

  def lift(scores, _):
    rest = jnp.full((len(scores), size - 1), -jnp.inf, scores.dtype)
    return jnp.concatenate([scores[:, None], rest], 1)

  def times(a, b):
    both = (a[:, :, None] + b[:, None, :]).reshape(len(a), size * size)
    return jax.lax.top_k(both, size)[0]

  def reduce(scores, segments, number):
    items = jnp.repeat(segments, size)
    items, falling = jax.lax.sort((items, -scores.reshape(-1)), num_keys=2)
    place = jnp.arange(len(items))
    begin = _min(place, items, number + 1)[items]
    out = jnp.full((number, size), -jnp.inf, scores.dtype)
    return out.at[items, place - begin].set(-falling, mode="drop")

  return Semiring(
    name=f"{size} best",
    lift=lift,
    constants=-jnp.inf,
    one=lambda zeros: zeros.at[:, 0].set(0.0),
    times=times,
    plus=lambda a, b: jax.lax.top_k(jnp.concatenate([a, b], 1), size)[0],
    reduce=reduce,
  )


# --- expectations -----------------------------------------------------------


class Expectation(NamedTuple):
  """log p `[N]` and the mean of a vector `[N, F]`."""

  log_p: Leaf
  mean: Leaf


class Covariation(NamedTuple):
  """log p `[N]`, means of two vectors `[N, F]`, `[N, G]`, of their products.

  `product` is `[N, F, G]`. Less the product of the means it is the covariance.
  """

  log_p: Leaf
  left: Leaf
  right: Leaf
  product: Leaf


def _averaged(elements, segments, size):
  """Averages all leaves but the first, by the first."""
  total, share = _weigh(elements[0], segments, size)
  mean = lambda leaf: _sum(
    leaf * share.reshape(-1, *(1,) * (leaf.ndim - 1)), segments, size
  )
  return type(elements)(total, *map(mean, elements[1:]))


def _mixed(a, b):
  total = jnp.logaddexp(a[0], b[0])
  share = jnp.exp(b[0] - _finite(total))
  mix = lambda x, y: x + share.reshape(-1, *(1,) * (x.ndim - 1)) * (y - x)
  return type(a)(total, *map(mix, a[1:], b[1:]))


def _outer(a, b):
  return a[:, :, None] * b[:, None, :]


EXPECTATION = Semiring(
  name="expectation",
  lift=lambda values, _: Expectation(*values),
  constants=Expectation(log_p=-jnp.inf, mean=0.0),
  one=lambda zeros: zeros._replace(log_p=jnp.zeros_like(zeros.log_p)),
  times=lambda a, b: Expectation(a.log_p + b.log_p, a.mean + b.mean),
  plus=_mixed,
  reduce=_averaged,
)

COVARIATION = Semiring(
  name="second-order expectation",
  lift=lambda values, _: Covariation(
    values[0], values[1], values[2], _outer(values[1], values[2])
  ),
  constants=Covariation(log_p=-jnp.inf, left=0.0, right=0.0, product=0.0),
  one=lambda zeros: zeros._replace(log_p=jnp.zeros_like(zeros.log_p)),
  times=lambda a, b: Covariation(
    a.log_p + b.log_p,
    a.left + b.left,
    a.right + b.right,
    a.product + b.product + _outer(a.left, b.right) + _outer(b.left, a.right),
  ),
  plus=_mixed,
  reduce=_averaged,
)
