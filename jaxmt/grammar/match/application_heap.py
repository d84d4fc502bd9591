"""The best applications of a cell, as compiled kernels keep them."""

import numpy as np

from jaxmt.text.kernels import njit


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
  found = -np.inf
  for place in range(size):
    found = max(found, values[place])
  return found


@njit
def offer(heap, items, size, bound, rule, source):
  """Puts one application into a min-heap that keeps the best.

  Equal bounds leave the earlier application in place.
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
  items[place, 0], items[place, 1] = rule, source
  return size
