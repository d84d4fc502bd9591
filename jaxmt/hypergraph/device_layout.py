"""Layout of forests for device programs: nodes and edges by level, padded.

The height of a node is one more than that of its highest tail. All nodes of one
height, over all sentences, form a *level*. They depend on lower levels only.

Nodes are numbered by level, and edges are sorted by their heads. A pass from
the leaves up is then a loop over *tiles*: runs of edges of one level, whose
heads are consecutive too. Passes from the root down loop over *uses* instead. A
use is a pair of an edge and one of its tails; uses are sorted by tail.

Row 0 of the nodes stands for tails beyond an edge's arity. Row 1 stands for the
root of a sentence without derivation.
"""

import dataclasses

import jax
import numpy as np

from jaxmt.hypergraph.forest import Forest
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import bucket

_NULL, _NOTHING, _FIRST = 0, 1, 2


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Tiles:
  """G tiles of items, sorted by the node they belong to.

  Attributes:
    start: first item of each tile, int32 `[G]`.
    stop: one past its last; `start` in padding, int32 `[G]`.
    first: node of its first item, int32 `[G]`.
  """

  start: jax.Array | np.ndarray
  stop: jax.Array | np.ndarray
  first: jax.Array | np.ndarray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Levels:
  """Forests of B sentences: E edges, U uses, M nodes in rows by level.

  All sizes are padded. Node numbers here are rows; `row` and `edge` lead from
  and to the forest's own numbers.

  Attributes:
    row: row of each of the forest's nodes, int32 `[N]`.
    root: row of each sentence's root, int32 `[B]`.
    edge: the forest's number of each edge, -1 in padding, int32 `[E]`.
    head: row of its head, int32 `[E]`.
    tails: rows of its tails, int32 `[E, A]`.
    edge_tiles: tiles of edges, by head.
    use_edge: edge (an index into `edge`) of each use, int32 `[U]`.
    use_part: which of its tails, int32 `[U]`.
    use_tail: row of that tail, int32 `[U]`.
    use_tiles: tiles of uses, by tail.
    nodes: M.
    tile: items in a tile.
  """

  row: jax.Array | np.ndarray
  root: jax.Array | np.ndarray
  edge: jax.Array | np.ndarray
  head: jax.Array | np.ndarray
  tails: jax.Array | np.ndarray
  edge_tiles: Tiles
  use_edge: jax.Array | np.ndarray
  use_part: jax.Array | np.ndarray
  use_tail: jax.Array | np.ndarray
  use_tiles: Tiles
  nodes: int = dataclasses.field(metadata={"static": True})
  tile: int = dataclasses.field(metadata={"static": True})


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayoutSizes:
  """Sizes of `Levels`: of forest nodes, sentences, edges, uses, tiles."""

  nodes: int
  sentences: int
  edges: int
  uses: int
  edge_tiles: int
  use_tiles: int


def bucketed(sizes: LayoutSizes, *others: LayoutSizes) -> LayoutSizes:
  """Returns sizes into which all fit, of few possible values."""
  names = [field.name for field in dataclasses.fields(LayoutSizes)]
  most = {n: max(getattr(s, n) for s in (sizes, *others)) for n in names}
  return LayoutSizes(**{name: bucket(max(16, most[name])) for name in names})


def needed_sizes(forest: Forest, *, tile: int) -> LayoutSizes:
  """Returns the least sizes of a layout."""
  return _sizes(forest, *_sort(forest, tile))


def _sort(forest, tile):
  return _by_level(
    forest.edge_offsets, np.ascontiguousarray(forest.tails), tile
  )


def _sizes(forest, order, heads, uses, tiles, use_tiles):
  return LayoutSizes(
    nodes=forest.num_nodes,
    sentences=len(forest),
    edges=len(heads),
    uses=len(uses),
    edge_tiles=len(tiles),
    use_tiles=len(use_tiles),
  )


def lay_out(
  forest: Forest, *, tile: int = 1024, sizes: LayoutSizes | None = None
) -> Levels:
  """Lays forests out by levels.

  Args:
    forest: the forests.
    tile: items in a tile. A level takes at least one tile.
    sizes: sizes to pad to; those needed, bucketed, if None. Layouts of equal
      sizes and tiles can be stacked.

  Raises:
    ValueError: if the forest does not fit the sizes.
  """
  order, heads, uses, tiles, use_tiles = _sort(forest, tile)
  needed = _sizes(forest, order, heads, uses, tiles, use_tiles)
  sizes = sizes or bucketed(needed)
  for field in dataclasses.fields(LayoutSizes):
    if getattr(needed, field.name) > getattr(sizes, field.name):
      raise ValueError(f"{needed} does not fit {sizes}")
  nodes = needed.nodes
  rows = np.full(nodes + 1, _NULL, np.int32)  # the last: that of tail -1
  rows[order] = np.arange(_FIRST, _FIRST + nodes, dtype=np.int32)
  filled = forest.node_offsets[1:] > forest.node_offsets[:-1]
  last = np.where(filled, forest.node_offsets[1:] - 1, 0)
  root = np.where(filled, rows[last], _NOTHING)
  edges = sizes.edges + tile  # so that the last slice ends within
  return Levels(
    row=_padded(rows[:-1], sizes.nodes, _NOTHING),
    root=_padded(root, sizes.sentences, _NOTHING),
    edge=_padded(heads[:, 0], edges, -1),
    head=_padded(rows[heads[:, 1]], edges, _NOTHING),
    tails=_padded(rows[forest.tails[heads[:, 0]]], edges, _NULL),
    edge_tiles=_tiles(tiles, sizes.edge_tiles),
    use_edge=_padded(uses[:, 0], sizes.uses + tile, 0),
    use_part=_padded(uses[:, 1], sizes.uses + tile, 0),
    use_tail=_padded(rows[uses[:, 2]], sizes.uses + tile, _NOTHING),
    use_tiles=_tiles(use_tiles, sizes.use_tiles),
    nodes=_FIRST + sizes.nodes + tile,
    tile=tile,
  )


def _padded(array, size, fill):
  out = np.full((size, *array.shape[1:]), fill, np.int32)
  out[: len(array)] = array
  return out


def _tiles(tiles, size):
  columns = _padded(tiles, size, 0)
  columns[len(tiles) :, 2] = _FIRST
  start, stop, first = columns.T.copy()
  return Tiles(start=start, stop=stop, first=first)


@njit
def _by_level(edge_offsets, tails, tile):
  """Sorts nodes, edges and uses.

  Returns:
    Nodes by level; (edge, head) of each edge by head; (place of the edge,
    part, tail) of each use by tail; (start, stop, row) of each tile of both.
  """
  nodes = len(edge_offsets) - 1
  edges, arity = tails.shape
  level = np.zeros(nodes, np.int32)
  uses = np.zeros(nodes + 1, np.int64)
  num_uses = 0
  for node in range(nodes):
    height = 0
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      for part in range(arity):
        tail = tails[edge, part]
        if tail >= 0:
          height = max(height, level[tail] + 1)
          uses[tail] += 1
          num_uses += 1
    level[node] = height
  order = np.argsort(level, kind="mergesort")
  heads = np.empty((edges, 2), np.int64)
  place = np.empty(edges, np.int64)
  filled = 0
  for node in order:
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      heads[filled, 0], heads[filled, 1] = edge, node
      place[edge] = filled
      filled += 1
  begin = np.empty(nodes + 1, np.int64)  # of each node's uses
  filled = 0
  for node in order:
    begin[node] = filled
    filled += uses[node]
  by_tail = np.empty((num_uses, 3), np.int64)
  for item in range(edges):
    edge = heads[item, 0]
    for part in range(arity):
      tail = tails[edge, part]
      if tail >= 0:
        at = begin[tail]
        by_tail[at, 0], by_tail[at, 1], by_tail[at, 2] = item, part, tail
        begin[tail] += 1
  row = np.empty(nodes, np.int64)
  for item in range(nodes):
    row[order[item]] = 2 + item
  edge_tiles = _cut(heads[:, 1], level, row, tile)
  use_tiles = _cut(by_tail[:, 2], level, row, tile)
  return order, heads, by_tail, edge_tiles, use_tiles


@njit
def _cut(owner, level, row, tile):
  """Cuts items, sorted by their node, into tiles of one level."""
  tiles = np.empty((len(owner), 3), np.int64)
  count = 0
  for item in range(len(owner)):
    node = owner[item]
    if (
      count == 0
      or item - tiles[count - 1, 0] == tile
      or row[node] - tiles[count - 1, 2] >= tile
      or level[node] != level[owner[tiles[count - 1, 0]]]
    ):
      tiles[count, 0], tiles[count, 2] = item, row[node]
      count += 1
    tiles[count - 1, 1] = item + 1
  return tiles[:count]
