"""Inside and outside passes over forests as a JAX program, in any semiring.

    levels = lay_out(forest)
    totals = total(levels, scores, semirings.LOG)              # [B]
    nodes = inside(levels, scores, semirings.MAX)              # Best, [N]
    edges = passes(levels, ones, semirings.COUNTING).through   # [E]

The value of a derivation is the product of its edges' values. The value of a
set of derivations is the sum of theirs.

All of these may be jitted, mapped over stacked layouts and sharded. For the log
and the max semiring the gradient is the outside pass. Only the values of nodes
are stored for it, so memory is linear in nodes and edges. Other semirings are
differentiated by JAX, which stores the result of every tile. `passes` has
shorter functions for arrays on the host.

B: sentences. N: nodes. E: edges, padded ones included. A: arity.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxmt.hypergraph.device_layout import Levels, Tiles
from jaxmt.hypergraph.device_layout import lay_out as lay_out
from jaxmt.hypergraph.semirings import LOG, Elements, Semiring

_NULL = 0


class Passes(NamedTuple):
  """What both passes give, in the forest's own numbering.

  Attributes:
    total: sum over the derivations of each sentence, `[B, ...]`.
    inside: over what may stand below each node, `[N, ...]`.
    outside: over what may stand around it, `[N, ...]`.
    through: over the derivations that use each edge, one row for each row of
      the values; zero where that is no edge.
  """

  total: Elements
  inside: Elements
  outside: Elements
  through: Elements


def inside(levels: Levels, values, semiring: Semiring) -> Elements:
  """Returns the sum over the derivations below each node, `[N, ...]`.

  Args:
    levels: forests.
    values: of each edge, as `semiring.lift` takes them; rows beyond the
      forest's edges do not matter.
    semiring: how to add and multiply.
  """
  levels = _on_device(levels)
  return _pick(_inside(levels, values, semiring), levels.row)


def total(levels: Levels, values, semiring: Semiring) -> Elements:
  """Returns the sum over all derivations of each sentence, `[B, ...]`.

  That of a sentence without derivations is zero. Arguments as for `inside`.
  """
  levels = _on_device(levels)
  return _pick(_inside(levels, values, semiring), levels.root)


def passes(levels: Levels, values, semiring: Semiring) -> Passes:
  """Runs the inside and the outside pass. Arguments as for `inside`."""
  levels = _on_device(levels)
  elements = _edges(levels, values, semiring)
  below = _inside(levels, values, semiring)
  around = _outside(levels, elements, below, semiring)
  through = semiring.times(elements, _pick(around, levels.head))
  through = _with_tails(through, below, levels.tails, semiring)
  rows = len(jax.tree.leaves(values)[0])
  place = jnp.where(levels.edge >= 0, levels.edge, rows)
  put = lambda out, leaf: out.at[place].set(leaf, mode="drop")
  return Passes(
    total=_pick(below, levels.root),
    inside=_pick(below, levels.row),
    outside=_pick(around, levels.row),
    through=jax.tree.map(put, semiring.zeros(through, rows), through),
  )


def marginals(levels: Levels, scores: jax.Array) -> jax.Array:
  """Returns `p(edge | sentence)` with `p(d) ~ exp(score(d))`, `[E]`.

  The gradient of the log totals. `passes.marginals` is the same on the host.
  """
  summed = lambda x: jnp.sum(_finite(total(levels, x, LOG)))
  return jax.grad(summed)(scores)


def _finite(array):
  return jnp.where(array > -jnp.inf, array, 0.0)


def _on_device(levels):
  return jax.tree.map(jnp.asarray, levels)


def _pick(elements, rows):
  return jax.tree.map(lambda leaf: leaf[rows], elements)


def _edges(levels, values, semiring):
  """The edges' own elements, in the order of the levels."""

  def take(leaf):
    if not len(leaf):  # nothing to index, and nothing to find
      return jnp.zeros((len(levels.edge), *leaf.shape[1:]), leaf.dtype)
    return jnp.asarray(leaf)[jnp.maximum(levels.edge, 0)]

  elements = semiring.lift(jax.tree.map(take, values), levels.edge)
  exists = levels.edge >= 0
  mask = lambda leaf, fill: jnp.where(
    exists.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, fill
  )
  return jax.tree.map(mask, elements, semiring.constants)


def _with_tails(elements, nodes, tails, semiring):
  """Elements times those of their tails, `tails [N, A]`."""
  for part in range(tails.shape[1]):
    elements = semiring.times(elements, _pick(nodes, tails[:, part]))
  return elements


def _walk(tiles: Tiles, owner, width, nodes, make, *, add, reduce, reverse):
  """Walks over tiles, adding the sums of items to the nodes that own them.

  Args:
    tiles: the tiles.
    owner: the node each item belongs to, int32 `[I]`.
    width: items in a tile.
    nodes: elements to add to, `[M, ...]`.
    make: `(nodes, slice) -> elements [width, ...]` of a tile's items; `slice`
      takes a tile's rows of an array `[I, ...]`.
    add: adds elements item by item.
    reduce: adds them within segments.
    reverse: from the last tile to the first.
  """

  def step(nodes, tile):
    cut = lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, tile.start, width)
    items = make(nodes, cut)
    inside_tile = tile.start + jnp.arange(width) < tile.stop
    segments = jnp.where(inside_tile, cut(owner) - tile.first, width)
    sums = reduce(items, segments, width)
    old = jax.tree.map(
      lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, tile.first, width), nodes
    )
    put = lambda leaf, new: jax.lax.dynamic_update_slice_in_dim(
      leaf, new, tile.first, 0
    )
    return jax.tree.map(put, nodes, add(old, sums)), None

  return jax.lax.scan(step, nodes, tiles, reverse=reverse)[0]


def _inside(levels, values, semiring):
  """Inside elements by row, `[M, ...]`."""
  if semiring.slope is None:
    return _sum_up(levels, values, semiring)
  return _sum_up_scalar(semiring, levels, values)


def _sum_up(levels, values, semiring):
  elements = _edges(levels, values, semiring)
  nodes = semiring.zeros(elements, levels.nodes)
  ones = semiring.one(semiring.zeros(elements, 1))
  nodes = jax.tree.map(lambda n, one: n.at[_NULL].set(one[0]), nodes, ones)

  def make(nodes, cut):
    items = jax.tree.map(cut, elements)
    return _with_tails(items, nodes, cut(levels.tails), semiring)

  return _walk(
    levels.edge_tiles,
    levels.head,
    levels.tile,
    nodes,
    make,
    add=semiring.plus,
    reduce=semiring.reduce,
    reverse=False,
  )


def _outside(levels, elements, below, semiring):
  """Outside elements by row, `[M, ...]`."""
  nodes = semiring.zeros(elements, levels.nodes)
  ones = semiring.one(semiring.zeros(elements, len(levels.root)))
  # Empty sentences all have row 1 as root; nothing is below it.
  nodes = jax.tree.map(lambda n, one: n.at[levels.root].set(one), nodes, ones)

  def make(nodes, cut):
    edge, part = cut(levels.use_edge), cut(levels.use_part)
    items = semiring.times(
      _pick(elements, edge), _pick(nodes, levels.head[edge])
    )
    this_tail = jnp.arange(levels.tails.shape[1]) == part[:, None]
    others = jnp.where(this_tail, _NULL, levels.tails[edge])
    return _with_tails(items, below, others, semiring)

  return _walk(
    levels.use_tiles,
    levels.use_tail,
    levels.tile,
    nodes,
    make,
    add=semiring.plus,
    reduce=semiring.reduce,
    reverse=True,
  )


# --- gradients of scalar semirings ------------------------------------------


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _sum_up_scalar(semiring, levels, values):
  return _sum_up(levels, values, semiring)


def _forward(semiring, levels, values):
  nodes = _sum_up(levels, values, semiring)
  return nodes, (levels, values, nodes)


def _backward(semiring, saved, slopes):
  """What reaches a node is passed on to its edges and their tails.

  With the slope of the root's value 1, what arrives at an edge is its
  posterior (log), or whether it is in the best derivation (max).
  """
  levels, values, nodes = saved
  slopes = jax.tree.leaves(slopes)[0]  # the score is the only float
  elements = _edges(levels, values, semiring)
  elements = _with_tails(elements, nodes, levels.tails, semiring)
  share = semiring.slope(elements, nodes, levels.head, levels.edge)

  def make(slopes, cut):
    edge = cut(levels.use_edge)
    return slopes[levels.head[edge]] * share[edge]

  slopes = _walk(
    levels.use_tiles,
    levels.use_tail,
    levels.tile,
    slopes,
    make,
    add=jnp.add,
    reduce=functools.partial(jax.ops.segment_sum, indices_are_sorted=True),
    reverse=True,
  )
  rows = len(values)
  place = jnp.where(levels.edge >= 0, levels.edge, rows)
  out = (
    jnp.zeros_like(values)
    .at[place]
    .set(slopes[levels.head] * share, mode="drop")
  )
  return None, out


_sum_up_scalar.defvjp(_forward, _backward)
