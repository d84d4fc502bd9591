"""Packs sparse rows into one table so that a lookup is one addition.

Row displacement (Tarjan & Yao 1979; as a trie: Aoe's double array 1989; for
language models: Yasuhara et al., EMNLP 2013). Every row (state) has a few
columns (words). It gets an offset such that slot `offset + column` is free for
all of its columns; the slot then holds the row's offset as a check. No two
rows share an offset, because column 0 belongs to every row. A lookup reads
exactly one slot and never takes one key for another.
"""

import numpy as np

from jaxmt.text.kernels import njit

_PATIENCE = 8  # failures before a block of 64 offsets is closed to its class
_FULL = np.uint64(0)
_ONE = np.uint64(1)


@njit
def _window(free, start):
  """The 64 bits of `free` from bit `start` on."""
  block = start >> 6
  shift = np.uint64(start & 63)
  low = free[block] >> shift
  if shift == np.uint64(0):
    return low
  return low | (free[block + 1] << (np.uint64(64) - shift))


@njit
def _lowest_bit(bits):
  count = 0
  while bits & _ONE == _FULL:
    bits >>= _ONE
    count += 1
  return count


@njit
def _take(free, slot):
  free[slot >> 6] &= ~(_ONE << np.uint64(slot & 63))


@njit
def _open_all(following, tries):
  """Makes every block a candidate again."""
  for block in range(len(following)):
    following[block] = block + 1
    tries[block] = 0


@njit
def _doubled(free, following, tries):
  """The three arrays at twice their length, the new blocks free and open."""
  size = len(free)
  more_free = np.empty(2 * size, np.uint64)
  more_following = np.empty(2 * size, np.int64)
  more_tries = np.zeros(2 * size, np.int64)
  for block in range(2 * size):
    more_free[block] = free[block] if block < size else ~_FULL
    more_following[block] = following[block] if block < size else block + 1
    more_tries[block] = tries[block] if block < size else 0
  return more_free, more_following, more_tries


@njit
def _fit(free, block, columns, first, last):
  """The offsets in a block at which a row fits, as bits."""
  bits = free[block]
  for arc in range(first, last):
    if bits == _FULL:
      break
    bits &= _window(free, (block << 6) + columns[arc])
  return bits


@njit
def place_rows(starts, columns, order, reserved):
  """Chooses an offset for every row.

  First fit, 64 offsets at a time by their bits. A block of offsets where rows
  have failed a few times is left out until rows of a shorter class come: that
  keeps the time linear, and shorter rows fill the holes.

  Args:
    starts: row r has columns `columns[starts[r] : starts[r + 1]]`, all at
      least 1 and different; int64 `[R + 1]`. Column 0 is added to each.
    columns: int32 `[A]`.
    order: the rows, longest first; int64 `[R]`.
    reserved: slots `0 .. reserved - 1` are taken already.

  Returns:
    `(offsets int64 [R], size)`; `size` is one past the last taken slot.
  """
  rows = len(starts) - 1
  widest = np.int64(reserved)
  for column in columns:
    widest = max(widest, np.int64(column))
  blocks = (reserved + len(columns) + rows + widest) // 32 + 8
  free = np.full(blocks, ~_FULL, np.uint64)
  for slot in range(reserved):
    _take(free, slot)
  following = np.arange(1, blocks + 1)  # the next block that is still open
  tries = np.zeros(blocks, np.int64)
  offsets = np.zeros(rows, np.int64)
  head = np.int64(0)
  width = np.int64(len(columns))
  end = np.int64(reserved)
  for index in range(rows):
    row = order[index]
    first, last = starts[row], starts[row + 1]
    if 4 * (last - first) <= 3 * width:
      width = last - first
      head = np.int64(0)
      _open_all(following, tries)
    before, block = np.int64(-1), head
    while True:
      while (block << 6) + widest + 128 >= (len(free) << 6):
        free, following, tries = _doubled(free, following, tries)
      bits = _fit(free, block, columns, first, last)
      if bits != _FULL:
        break
      tries[block] += 1
      if free[block] != _FULL and tries[block] <= _PATIENCE:
        before = block
      elif before < 0:
        head = following[block]
      else:
        following[before] = following[block]
      block = following[block]
    offset = (block << 6) + _lowest_bit(bits)
    offsets[row] = offset
    _take(free, offset)
    end = max(end, offset + 1)
    for arc in range(first, last):
      _take(free, offset + columns[arc])
      end = max(end, offset + columns[arc] + 1)
  return offsets, end
