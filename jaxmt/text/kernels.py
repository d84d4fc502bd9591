"""What all host kernels share: compiler, growing arrays, heap, sort, hash.

    from jaxmt.text.kernels import njit

    @njit
    def total(values): ...

Kernels release the interpreter lock, so plain Python threads keep all cores
busy, and are compiled once per version of their code: see `kernel_cache`.
"""

import os
from typing import Any

import numba
import numpy as np

from jaxmt.text import kernel_cache


def njit(function: Any = None, **options: Any) -> Any:
  """Compiles a function with numba; the machine code is kept between runs.

  Args:
    function: the function, if used as a plain decorator.
    **options: of `numba.njit`.
  """
  if function is None:
    return lambda function: njit(function, **options)
  dispatcher = numba.njit(function, nogil=True, **options)
  if hasattr(dispatcher, "_cache"):  # not when NUMBA_DISABLE_JIT is set
    dispatcher._cache = kernel_cache.KernelCache(function)
  return dispatcher


def available_threads() -> int:
  """Returns how many cores this process may use."""
  return len(os.sched_getaffinity(0))


# Loops, not slices: assigning to a slice takes seconds to compile.


@njit
def grown(array, needed):
  """Returns `array`, or a longer copy if it has fewer than `needed` items.

  A copy is at least twice as long, so that appending takes linear time. What
  follows the old items is not set.

  Args:
    array: `[N]`.
    needed: number of items that must fit.
  """
  if needed <= len(array):
    return array
  larger = np.empty(max(needed, 2 * len(array)), array.dtype)
  for item in range(len(array)):
    larger[item] = array[item]
  return larger


@njit
def grown_rows(rows, needed):
  """Returns `rows`, or a longer copy if it has fewer than `needed` rows.

  Args:
    rows: `[N, C]`; see `grown`.
    needed: number of rows that must fit.
  """
  if needed <= len(rows):
    return rows
  larger = np.empty((max(needed, 2 * len(rows)), rows.shape[1]), rows.dtype)
  for row in range(len(rows)):
    for column in range(rows.shape[1]):
      larger[row, column] = rows[row, column]
  return larger


GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd


@njit
def mixed(value):
  """Returns a 64-bit number whose every bit depends on all bits of `value`.

  The finaliser of splitmix64 (Steele et al., 2014), a bijection; the generator
  itself is `state += GOLDEN; mixed(state)`.

  Args:
    value: uint64.
  """
  value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
  value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
  return value ^ (value >> np.uint64(31))


@njit
def copy_row(out, place, rows, row):
  """Copies a row of one array to a row of another."""
  for column in range(rows.shape[1]):
    out[place, column] = rows[row, column]


@njit
def clear_row(out, row):
  """Sets a row to -1."""
  for column in range(out.shape[1]):
    out[row, column] = -1


@njit
def by_falling_value(values, size):
  """Places of the first `size` values, largest first, equal ones in order."""
  order = np.arange(size)
  sorted_values = values[:size].copy()
  gap = size
  while gap > 1:  # Shell's sort: short to compile, fast for some hundreds
    gap = max((5 * gap - 1) // 11, 1)
    for last in range(gap, size):
      item, value = order[last], sorted_values[last]
      place = last
      while place >= gap:
        other = sorted_values[place - gap]
        if other > value or (other == value and order[place - gap] < item):
          break
        sorted_values[place] = other
        order[place] = order[place - gap]
        place -= gap
      order[place], sorted_values[place] = item, value
  return order


@njit
def largest(values, size):
  """The largest of the first `size` values, -inf of none."""
  best = -np.inf
  for place in range(size):
    best = max(best, values[place])
  return best


@njit
def offer(heap, items, size, bound, one, two):
  """Puts an item, two numbers, into a min-heap that keeps the best.

  Equal bounds leave the earlier item in place.

  Returns:
    The new size of the heap.
  """
  if size < len(heap):
    place = size
    size += 1
    while place:
      parent = (place - 1) >> 1
      if heap[parent] <= bound:
        break
      heap[place] = heap[parent]
      items[place, 0], items[place, 1] = items[parent, 0], items[parent, 1]
      place = parent
  elif bound > heap[0]:
    place = 0
    while True:
      below = 2 * place + 1
      if below >= size:
        break
      if below + 1 < size and heap[below + 1] < heap[below]:
        below += 1
      if heap[below] >= bound:
        break
      heap[place] = heap[below]
      items[place, 0], items[place, 1] = items[below, 0], items[below, 1]
      place = below
  else:
    return size
  heap[place] = bound
  items[place, 0], items[place, 1] = one, two
  return size


@njit
def push_heap(keys, items, size, key, item):
  """Puts an item into a heap of `size` items, largest key first.

  Args:
    keys: `[N]`, changed in place.
    items: whatever the keys belong to, `[N]`, likewise.
    size: how many of them are used.
    key: the new item's.
    item: the new item.

  Returns:
    The new size.
  """
  place = size
  while place > 0:
    parent = (place - 1) >> 1
    if keys[parent] >= key:
      break
    keys[place], items[place] = keys[parent], items[parent]
    place = parent
  keys[place], items[place] = key, item
  return size + 1


@njit
def pop_heap(keys, items, size):
  """Takes the largest item off a heap of `push_heap`; returns the new size."""
  size -= 1
  key, item = keys[size], items[size]
  place, child = 0, 1
  while child < size:
    if child + 1 < size and keys[child + 1] > keys[child]:
      child += 1
    if keys[child] <= key:
      break
    keys[place], items[place] = keys[child], items[child]
    place = child
    child = 2 * place + 1
  keys[place], items[place] = key, item
  return size


@njit
def longest_row(offsets):
  """Returns the length of the longest row, 0 without rows."""
  longest = 0
  for row in range(len(offsets) - 1):
    longest = max(longest, offsets[row + 1] - offsets[row])
  return longest
