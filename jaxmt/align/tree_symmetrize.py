"""Symmetrisation that looks at a parse tree: IDG, IDSG.

Liu, Li, Li & Zhou (EMNLP 2012), section 3. All start from the links that both
directions have and add links of one direction, one at a time:

  idg        a link that does not make phrase pairs overlap, in order of
             (source, target). A phrase pair is a group of words that are
             linked with one another, from its first to its last word on either
             side; two overlap if they share a word on a side.
  idsg       of the links that idg could add, the one after which most nodes of
             the tree are frontier nodes.
  idsg-diag  the same, of the links that grow-diag could add: neighbours of an
             accepted link with a word not yet linked.

The span of a node is the interval of the words linked to its words. A node is
a frontier node (Galley et al., 2004) if no word outside of it is linked to a
word of its span. A node without links is none.
"""

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.text.trees import Trees

METHODS = ("idg", "idsg", "idsg-diag")
SIDES = ("source", "target")


def symmetrize(
  forward: Ragged,
  backward: Ragged,
  *,
  method: str,
  trees: Trees | None = None,
  side: str = "target",
) -> Ragged:
  """Combines the links of two directions.

  Args:
    forward: int32 pairs (source, target), N rows.
    backward: int32 pairs (source, target), N rows.
    method: one of `METHODS`.
    trees: N trees, for all methods but idg; a failed parse has no nodes.
    side: which side the trees are of, one of `SIDES`.

  Returns:
    Pairs (source, target), N rows, each sorted.

  Raises:
    ValueError: if trees are missing, or the numbers of rows differ.
  """
  if method not in METHODS:
    raise ValueError(f"method '{method}' is none of {', '.join(METHODS)}")
  if side not in SIDES:
    raise ValueError(f"side '{side}' is none of {', '.join(SIDES)}")
  if method != "idg" and trees is None:
    raise ValueError(f"method '{method}' needs trees")
  none = np.zeros(len(forward) + 1, np.int64)
  offsets = none if trees is None else trees.offsets
  for rows in (len(backward), len(offsets) - 1):
    if rows != len(forward):
      raise ValueError(f"{len(forward)} and {rows} rows")
  empty = np.zeros(0, np.int32)
  flat, starts = _symmetrize(
    np.ascontiguousarray(forward.flat, np.int32).reshape(-1, 2),
    np.ascontiguousarray(forward.offsets, np.int64),
    np.ascontiguousarray(backward.flat, np.int32).reshape(-1, 2),
    np.ascontiguousarray(backward.offsets, np.int64),
    np.ascontiguousarray(offsets, np.int64),
    np.ascontiguousarray(empty if trees is None else trees.start, np.int32),
    np.ascontiguousarray(empty if trees is None else trees.end, np.int32),
    SIDES.index(side),
    method == "idsg-diag",
    method != "idg",
  )
  return Ragged(flat=flat, offsets=starts)


def frontier_sizes(links: Ragged, trees: Trees, *, side: str) -> np.ndarray:
  """Returns the number of frontier nodes of each sentence pair, int64 `[N]`."""
  out = np.zeros(len(links), np.int64)
  place = SIDES.index(side)
  for row in range(len(links)):
    low, high = trees.offsets[row], trees.offsets[row + 1]
    pairs = np.asarray(links[row], np.int64).reshape(-1, 2)
    size = int(pairs.max(initial=-1)) + 1
    size = max(size, int(trees.end[low:high].max(initial=0)))
    grid = np.zeros((size, size), np.bool_)
    grid[pairs[:, place], pairs[:, 1 - place]] = True
    out[row] = _frontier_size(grid, trees.start[low:high], trees.end[low:high])
  return out


@njit
def _symmetrize(
  forward,
  forward_offsets,
  backward,
  backward_offsets,
  node_offsets,
  start,
  end,
  side,
  diagonal,
  by_frontier,
):
  """All sentence pairs, one after the other: `(links, offsets)`."""
  out = np.empty((len(forward) + len(backward), 2), np.int32)
  offsets = np.zeros(len(forward_offsets), np.int64)
  count = 0
  for row in range(len(forward_offsets) - 1):
    first = forward[forward_offsets[row] : forward_offsets[row + 1]]
    second = backward[backward_offsets[row] : backward_offsets[row + 1]]
    nodes = start[node_offsets[row] : node_offsets[row + 1]]
    ends = end[node_offsets[row] : node_offsets[row + 1]]
    # Rows of the grid are words of the side that has the tree.
    height, width = 0, 0
    for links in (first, second):
      for link in range(len(links)):
        height = max(height, links[link, side] + 1)
        width = max(width, links[link, 1 - side] + 1)
    for node in range(len(ends)):
      height = max(height, ends[node])
    votes = np.zeros((height, width), np.int8)
    for links in (first, second):
      for link in range(len(links)):
        votes[links[link, side], links[link, 1 - side]] += 1
    grid = votes == 2
    _grow(grid, votes, nodes, ends, side, diagonal, by_frontier)
    for i in range(width if side else height):
      for j in range(height if side else width):
        if grid[j, i] if side else grid[i, j]:
          out[count, 0], out[count, 1] = i, j
          count += 1
    offsets[row + 1] = count
  return out[:count].copy(), offsets


@njit
def _grow(grid, votes, nodes, ends, side, diagonal, by_frontier):
  """Adds links of one direction until none may be added."""
  height, width = grid.shape
  growing = True
  while growing:
    growing = False
    best, best_i, best_j = -1, -1, -1
    # In order of (source, target), whichever side the rows are.
    for a in range(width if side else height):
      for b in range(height if side else width):
        i, j = (b, a) if side else (a, b)
        if grid[i, j] or not votes[i, j]:
          continue
        if diagonal:
          allowed = _is_neighbour(grid, i, j)
        else:
          allowed = _stays_apart(grid, i, j)
        if not allowed:
          continue
        if not by_frontier:
          grid[i, j] = True
          continue
        grid[i, j] = True
        size = _frontier_size(grid, nodes, ends)
        grid[i, j] = False
        if size > best:
          best, best_i, best_j = size, i, j
    if best >= 0:
      grid[best_i, best_j] = True
      growing = True


@njit
def _is_neighbour(grid, i, j):
  """Whether a cell touches a link and links a word that has none."""
  height, width = grid.shape
  near, row, column = False, False, False
  for a in range(max(i - 1, 0), min(i + 2, height)):
    for b in range(max(j - 1, 0), min(j + 2, width)):
      near |= grid[a, b]
  for b in range(width):
    row |= grid[i, b]
  for a in range(height):
    column |= grid[a, j]
  return near and not (row and column)


@njit
def _group(grid, i, j, rows, columns):
  """Marks the words linked with a cell's; returns their bounds.

  Args:
    grid: links.
    i: row of the cell, which need not be a link.
    j: its column.
    rows: marks to set, bool.
    columns: marks to set, bool.

  Returns:
    First and last row, first and last column.
  """
  height, width = grid.shape
  rows[:] = False
  columns[:] = False
  rows[i] = columns[j] = True
  growing = True
  while growing:
    growing = False
    for a in range(height):
      for b in range(width):
        if grid[a, b] and rows[a] != columns[b]:
          rows[a] = columns[b] = True
          growing = True
  low, high, left, right = i, i, j, j
  for a in range(height):
    if rows[a]:
      low, high = min(low, a), max(high, a)
  for b in range(width):
    if columns[b]:
      left, right = min(left, b), max(right, b)
  return low, high, left, right


@njit
def _stays_apart(grid, i, j):
  """Whether the group of a new link overlaps no other group's words."""
  height, width = grid.shape
  rows, columns = np.zeros(height, np.bool_), np.zeros(width, np.bool_)
  others, crossed = np.zeros(height, np.bool_), np.zeros(width, np.bool_)
  seen = np.zeros(height, np.bool_)
  low, high, left, right = _group(grid, i, j, rows, columns)
  for a in range(height):
    for b in range(width):
      if not grid[a, b] or rows[a] or seen[a]:
        continue
      first, last, start, end = _group(grid, a, b, others, crossed)
      seen |= others
      if first <= high and low <= last:
        return False
      if start <= right and left <= end:
        return False
  return True


@njit
def _frontier_size(grid, nodes, ends):
  """How many nodes are frontier nodes."""
  height, width = grid.shape
  count = 0
  for node in range(len(nodes)):
    left, right = width, -1
    for a in range(nodes[node], ends[node]):
      for b in range(width):
        if grid[a, b]:
          left, right = min(left, b), max(right, b)
    free = right >= 0
    for a in range(height):
      if nodes[node] <= a < ends[node]:
        continue
      for b in range(left, right + 1):
        free &= not grid[a, b]
    count += free
  return count
