"""Projective dependency trees with a single root, in any semiring.

Arc-factored parsing (Eisner 1996) of a batch of padded sentences. A complete
span has its head at one end and lacks no dependents on the other side:

    J(i, j)  = ⊕_k CR(i, k) ⊗ CL(k + 1, j)
    IR(i, j) = J(i, j) ⊗ arc(i -> j)          IL(i, j) = J(i, j) ⊗ arc(j -> i)
    CR(i, j) = ⊕_k IR(i, k) ⊗ CR(k, j)        CL(i, j) = ⊕_k CL(i, k) ⊗ IL(k, j)
    total    = ⊕_r arc(root -> r) ⊗ CL(0, r) ⊗ CR(r, n - 1)

Each step computes all spans of one width. Charts are stored by an end of the
span and its width, so that the products of a step are products of slices; each
is stored twice where both ends are needed. Gradients of the log total are arc
posteriors, gradients of the best score are the best tree.

Arc scores are `[B, N + 1, N]`: row 0 is the root, row 1 + h the head h, the
column is the dependent. What lies beyond a sentence's length is not read.

B: sentences. N: longest sentence, padding included.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.hypergraph.semirings import LOG, MAX, Elements, Semiring
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

_map = jax.tree.map


def total(
  arcs: Elements,
  lengths: jax.Array | np.ndarray,
  semiring: Semiring,
  *,
  first: Elements | None = None,
) -> Elements:
  """Returns the sum over all trees of each sentence, `[B, ...]`.

  Args:
    arcs: values of arcs as `semiring.lift` takes them: arrays whose first axes
      are `[B, N + 1, N]`.
    lengths: words of each sentence, int32 `[B]`. Without words there is no
      tree, and the sum is zero.
    semiring: how to add and multiply.
    first: values of arcs to the first dependent of a head on its side, the one
      next to it, if they differ; like `arcs`. Those of the root are not read.
  """
  batch, _, size = jax.tree.leaves(arcs)[0].shape[:3]
  elements = lift(arcs, semiring)
  root = _map(lambda x: x[:, 0], elements)
  between = _map(lambda x: x[:, 1:], elements)
  if first is not None:
    first = _map(lambda x: x[:, 1:], lift(first, semiring))
  left, right = _complete(between, first, semiring)
  # The root r: CL(0, r) has width r, CR(r, n - 1) has width n - 1 - r.
  place = jnp.arange(size)
  rest = lengths[:, None] - 1 - place
  rows = jnp.arange(batch)[:, None]
  pick_left = _map(lambda x: x[:, place, place], left)
  pick_right = _map(lambda x: x[rows, place[None], jnp.maximum(rest, 0)], right)
  trees = semiring.product(pick_left, pick_right, axes=2)
  trees = semiring.product(root, trees, axes=2)
  trees = _where(rest >= 0, trees, semiring)
  return semiring.total(_map(lambda x: jnp.swapaxes(x, 0, 1), trees), axes=2)


def lift(values, semiring: Semiring) -> Elements:
  """Returns elements of a chart `[B, I, J, ...]` of values."""
  shape = jax.tree.leaves(values)[0].shape[:3]
  flat = _map(lambda x: jnp.asarray(x).reshape(-1, *x.shape[3:]), values)
  count = len(jax.tree.leaves(flat)[0])
  elements = semiring.lift(flat, jnp.arange(count, dtype=jnp.int32))
  return _map(lambda x: x.reshape(*shape, *x.shape[1:]), elements)


def _where(there, elements, semiring):
  """Zeros where something is not, `there` has the first axes of items."""
  fill = lambda x, zero: jnp.where(
    there.reshape(*there.shape, *(1,) * (x.ndim - there.ndim)), x, zero
  )
  return _map(fill, elements, semiring.constants)


def _complete(between, first, semiring):
  """Complete spans: CL by (end, width) and CR by (start, width).

  A chart that is read backwards in its width is stored reversed, with room for
  zeros: row j, column `size - 1 - w` holds the span of width w that ends at j,
  in an array of twice the size, so that a slice lines up with its partner.
  """
  batch, size = jax.tree.leaves(between)[0].shape[:2]
  like = _map(lambda x: x.reshape(-1, *x.shape[3:]), between)

  def zeros(rows, columns):
    flat = semiring.zeros(like, batch * rows * columns)
    return _map(lambda x: x.reshape(batch, rows, columns, *x.shape[1:]), flat)

  ones = semiring.one(semiring.zeros(like, batch * size))
  ones = _map(lambda x: x.reshape(batch, size, 1, *x.shape[1:]), ones)
  put = lambda chart, new, row, column: _map(
    lambda x, y: jax.lax.dynamic_update_slice(
      x, y, (0, row, column, *(0,) * (x.ndim - 3))
    ),
    chart,
    new,
  )
  cut = lambda chart, row, column: _map(
    lambda x: jax.lax.dynamic_slice(
      x,
      (0, row, column, *(0,) * (x.ndim - 3)),
      (batch, size, size, *x.shape[3:]),
    ),
    chart,
  )

  def summed(elements):
    """Sums over the last item axis, as a column."""
    elements = _map(lambda x: jnp.moveaxis(x, 2, 0), elements)
    return _map(lambda x: x[:, :, None], semiring.total(elements, axes=3))

  joined = lambda left, right: summed(semiring.product(left, right, axes=3))

  start = {
    "right": put(zeros(size, size), ones, 0, 0),  # CR by start
    "right_end": put(zeros(2 * size, 2 * size), ones, 0, size - 1),
    "left": put(zeros(2 * size, size), ones, 0, 0),  # CL by end
    "left_end": put(zeros(2 * size, 2 * size), ones, 0, size - 1),
    "left_start": put(zeros(size, 2 * size), ones, 0, size - 1),
    "open_right": zeros(size, size),  # IR by start
    "open_left": zeros(2 * size, size),  # IL by end
  }
  row = jnp.arange(size)

  def step(charts, width):
    # J(i, i + width): CR(i, i + k) and CL(i + 1 + k, i + width).
    partner = cut(charts["left_end"], width, size - width)
    # Spans that would end beyond the arrays: their right parts are zeros.
    end = jnp.minimum(row + width, size - 1)
    to_right = lambda arcs: _map(lambda x: x[:, row, end][:, :, None], arcs)
    to_left = lambda arcs: _map(lambda x: x[:, end, row][:, :, None], arcs)
    times = functools.partial(semiring.product, axes=3)
    if first is None:
      split = joined(charts["right"], partner)
      open_right = times(to_right(between), split)
      open_left = times(to_left(between), split)
    else:
      # Without dependents yet: CR(i, i) to the right, CL(j, j) to the left.
      place = jnp.arange(size)
      no_right = place == 0
      no_left = place == width - 1
      pairs = times(charts["right"], partner)
      there = lambda which: jnp.broadcast_to(which, (batch, size, size))
      some = lambda which: summed(_where(there(which), pairs, semiring))
      plus = lambda a, b: semiring.total(
        _map(lambda x, y: jnp.stack([x, y]), a, b), axes=4
      )
      open_right = plus(
        times(to_right(first), some(no_right)),
        times(to_right(between), some(~no_right)),
      )
      open_left = plus(
        times(to_left(first), some(no_left)),
        times(to_left(between), some(~no_left)),
      )
    charts["open_right"] = put(charts["open_right"], open_right, 0, width)
    charts["open_left"] = put(charts["open_left"], open_left, width, width)
    # CR(i, i + width): IR(i, i + k) and CR(i + k, i + width).
    right = joined(
      charts["open_right"], cut(charts["right_end"], width, size - 1 - width)
    )
    # CL(i, i + width): IL(i + width - k, i + width) and CL(i, i + width - k).
    left = joined(
      cut(charts["open_left"], width, 0),
      cut(charts["left_start"], 0, size - 1 - width),
    )
    charts["right"] = put(charts["right"], right, 0, width)
    charts["left"] = put(charts["left"], left, width, width)
    charts["left_start"] = put(charts["left_start"], left, 0, size - 1 - width)
    backward = size - 1 - width
    charts["right_end"] = put(charts["right_end"], right, width, backward)
    charts["left_end"] = put(charts["left_end"], left, width, backward)
    return charts, None

  charts, _ = jax.lax.scan(step, start, jnp.arange(1, size))
  return _map(lambda x: x[:, :size], charts["left"]), charts["right"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class ProjectiveTrees:
  """The trees of a batch, as a space for the losses of `losses.forest_losses`.

  Scores, costs and oracles of these losses are then arrays over arcs.

  Attributes:
    lengths: words of each sentence, int32 `[B]`.
  """

  lengths: jax.Array | np.ndarray

  def log_sums(self, arcs: jax.Array) -> jax.Array:
    """Returns log sums of exponentiated scores, `[B]`."""
    return total(arcs, self.lengths, LOG)

  def maxima(self, arcs: jax.Array) -> jax.Array:
    """Returns best scores, `[B]`."""
    return total(arcs, self.lengths, MAX).score


def _finite_sum(values):
  return jnp.sum(jnp.where(values > -jnp.inf, values, 0.0))


@jax.jit
def marginals(arcs: jax.Array, lengths: jax.Array) -> jax.Array:
  """Returns posteriors of arcs under `p(tree) ~ exp(score)`."""
  trees = ProjectiveTrees(lengths=lengths)
  return jax.grad(lambda x: _finite_sum(trees.log_sums(x)))(arcs)


@jax.jit
def best_trees(arcs: jax.Array, lengths: jax.Array) -> jax.Array:
  """Returns heads of the best tree: -1 is the root; int32 `[B, N]`.

  Beyond a sentence's length they are -1 as well.
  """
  trees = ProjectiveTrees(lengths=lengths)
  used = jax.grad(lambda x: _finite_sum(trees.maxima(x)))(arcs)
  return jnp.argmax(used, axis=1).astype(jnp.int32) - 1


@jax.jit
def risk_trees(arcs: jax.Array, lengths: jax.Array) -> jax.Array:
  """Returns heads of the trees with most expected right arcs (MBR)."""
  return best_trees(marginals(arcs, lengths), lengths)


def arc_mask(heads: np.ndarray, lengths: np.ndarray) -> np.ndarray:
  """Returns which arcs trees have, bool `[B, N + 1, N]`.

  Args:
    heads: -1 is the root, int `[B, N]`; padding is not read.
    lengths: `[B]`.
  """
  batch, size = heads.shape
  mask = np.zeros((batch, size + 1, size), bool)
  row, column = np.nonzero(np.arange(size) < np.asarray(lengths)[:, None])
  mask[row, heads[row, column] + 1, column] = True
  return mask


def projective(heads: Ragged) -> np.ndarray:
  """Returns which trees have no crossing arcs, bool `[N]`.

  The arc of the root counts: it crosses an arc that spans the root.
  """
  return _projective(heads.flat, heads.offsets)


@njit
def _projective(heads, offsets):
  out = np.ones(len(offsets) - 1, np.bool_)
  for row in range(len(offsets) - 1):
    base, size = offsets[row], offsets[row + 1] - offsets[row]
    for one in range(size):
      low = min(one, heads[base + one])
      high = max(one, heads[base + one])
      for other in range(low + 1, high):
        head = heads[base + other]
        if head < low or head > high:
          out[row] = False
  return out
