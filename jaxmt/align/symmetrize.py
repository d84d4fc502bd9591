"""One set of links from two directions.

Och & Ney (2003); Koehn, Och & Marcu (2003). All methods start from the links
both directions have (their intersection) and stay within those at least one has
(the union):

  grow-diag   adds links of the union that touch an accepted one, in any of
              eight neighbouring cells, and cover a word not yet linked;
  final       then adds, of forward and then of backward, links with a word not
              yet linked; "final-and" asks that neither word be linked.

The order matters, as each added link changes what is covered. As in
fast_align's `atools`, growing goes over the remaining links of the union by
(source, target), accepts at once, and repeats until a round adds nothing. Moses
(`symal`) goes over the *accepted* links by (target, source) and offers their
neighbours in a fixed order; where two links compete for the same word, it can
keep the other one.
"""

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

METHODS = (
  "grow-diag-final-and",
  "grow-diag-final",
  "grow-diag",
  "intersect",
  "union",
  "forward",
  "backward",
)

# What the kernel does after the intersection.
_GROW, _FINAL, _FINAL_AND, _ALL = 1, 2, 4, 8
_STEPS = {
  "grow-diag-final-and": _GROW | _FINAL_AND,
  "grow-diag-final": _GROW | _FINAL,
  "grow-diag": _GROW,
  "intersect": 0,
  "union": _ALL,
}
# Marks in a cell of the grid.
_FORWARD, _BACKWARD, _ACCEPTED = 1, 2, 4


def symmetrize(forward: Ragged, backward: Ragged, *, method: str) -> Ragged:
  """Combines the links of two directions.

  Args:
    forward: int32 pairs (source, target), N rows.
    backward: int32 pairs (source, target), N rows.
    method: one of `METHODS`.

  Returns:
    Pairs (source, target), N rows, each sorted and without repetition.
  """
  if method not in METHODS:
    raise ValueError(f"method '{method}' is none of {', '.join(METHODS)}")
  if len(forward) != len(backward):
    raise ValueError(
      f"{len(forward)} forward and {len(backward)} backward rows"
    )
  if method == "forward":
    forward, backward, steps = forward, forward, 0
  elif method == "backward":
    forward, backward, steps = backward, backward, 0
  else:
    steps = _STEPS[method]
  flat, offsets = _symmetrize(
    np.ascontiguousarray(forward.flat, np.int32).reshape(-1, 2),
    np.ascontiguousarray(forward.offsets, np.int64),
    np.ascontiguousarray(backward.flat, np.int32).reshape(-1, 2),
    np.ascontiguousarray(backward.offsets, np.int64),
    steps,
  )
  return Ragged(flat=flat, offsets=offsets)


@njit
def _symmetrize(forward, forward_offsets, backward, backward_offsets, steps):
  """All sentences, one after the other."""
  size = len(forward_offsets) - 1
  out = np.empty((len(forward) + len(backward), 2), np.int32)
  offsets = np.zeros(size + 1, np.int64)
  count = 0
  for row in range(size):
    first = forward[forward_offsets[row] : forward_offsets[row + 1]]
    second = backward[backward_offsets[row] : backward_offsets[row + 1]]
    width, height = np.int64(0), np.int64(0)
    for links in (first, second):
      for link in range(len(links)):
        width = max(width, links[link, 0] + 1)
        height = max(height, links[link, 1] + 1)
    # A rim of empty cells: every cell has eight neighbours.
    grid = np.zeros((width + 2, height + 2), np.uint8)
    for link in range(len(first)):
      grid[first[link, 0] + 1, first[link, 1] + 1] |= _FORWARD
    for link in range(len(second)):
      grid[second[link, 0] + 1, second[link, 1] + 1] |= _BACKWARD
    _combine(grid, len(first) + len(second), steps)
    for i in range(1, width + 1):
      for j in range(1, height + 1):
        if grid[i, j] & _ACCEPTED:
          out[count, 0] = i - 1
          out[count, 1] = j - 1
          count += 1
    offsets[row + 1] = count
  return out[:count].copy(), offsets


@njit
def _combine(grid, room, steps):
  """Marks the accepted cells of one sentence pair."""
  source = np.zeros(grid.shape[0], np.bool_)
  target = np.zeros(grid.shape[1], np.bool_)
  waiting = np.empty((room, 2), np.int64)
  count = 0
  for i in range(1, grid.shape[0] - 1):
    for j in range(1, grid.shape[1] - 1):
      if grid[i, j] == _FORWARD | _BACKWARD or (grid[i, j] and steps & _ALL):
        grid[i, j] |= _ACCEPTED
        source[i] = True
        target[j] = True
      elif grid[i, j]:
        waiting[count, 0] = i
        waiting[count, 1] = j
        count += 1
  growing = steps & _GROW
  while growing:
    growing = 0
    for k in range(count):
      i, j = waiting[k]
      if grid[i, j] & _ACCEPTED or (source[i] and target[j]):
        continue
      near = np.uint8(0)
      for di in range(-1, 2):
        for dj in range(-1, 2):
          near |= grid[i + di, j + dj]
      if near & _ACCEPTED:
        grid[i, j] |= _ACCEPTED
        source[i] = True
        target[j] = True
        growing = 1
  if steps & (_FINAL | _FINAL_AND):
    for mark in (_FORWARD, _BACKWARD):
      for k in range(count):
        i, j = waiting[k]
        if grid[i, j] != mark:
          continue
        covered = np.int64(source[i]) + np.int64(target[j])
        if covered == 0 or (covered == 1 and steps & _FINAL):
          grid[i, j] |= _ACCEPTED
          source[i] = True
          target[j] = True
