"""The envelope semiring: all derivations of forests along a direction.

Elements are upper envelopes of lines, a line being a derivation's score along
`w + step * direction`. The product of envelopes is their Minkowski sum: walk
over the breakpoints of all factors, left to right, adding the lines that are
highest. The sum is the envelope of all lines (Kumar et al. 2009). Lines know
the edge they come from and the lines of its tails, so that those that reach the
root can be spelled.

Intercepts and slopes should be multiples of a power of two (`on_grid`): sums
are then exact, and derivations with the same rules in another order have the
same line. Otherwise rounding makes them cross far out.
"""

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.tune.envelope import envelope

_GRID = 2.0**32


def on_grid(values: np.ndarray) -> np.ndarray:
  """Rounds to multiples of 2^-32: sums below 2^20 are exact in float64."""
  return np.round(np.asarray(values, np.float64) * _GRID) / _GRID


@njit
def _longer(array, size):
  """The same array with room for `size` rows."""
  out = np.empty((size, *array.shape[1:]), array.dtype)
  out[: len(array)] = array
  return out


@njit
def _multiply(edge, low, tails, own, known, found, place, count):
  """Adds the lines of an edge with its tails to those found for its head.

  Args:
    edge: the edge.
    low: the sentence's first node.
    tails: tail nodes of all edges, `[E, A]`.
    own: intercepts and slopes of edges, two of `[E]`.
    known: lines of the sentence's nodes: (first line of each, number of lines,
      values `[L, 3]`: intercept, slope, step from which it is highest).
    found: (intercepts, slopes, edges and lines of tails `[C, 1 + A]`).
    place: work space `[A]`.
    count: lines found so far.

  Returns:
    How many there are now.
  """
  first, sizes, values = known
  intercepts, slopes, origins = found
  arity = 0
  a, b = own[0][edge], own[1][edge]
  for part in range(tails.shape[1]):
    if tails[edge, part] < 0:
      break
    tail = tails[edge, part] - low
    if sizes[tail] == 0:
      return count
    place[part] = first[tail]
    a += values[place[part], 0]
    b += values[place[part], 1]
    arity += 1
  while True:
    intercepts[count], slopes[count] = a, b
    origins[count, 0] = edge
    for part in range(tails.shape[1]):
      origins[count, 1 + part] = place[part] if part < arity else -1
    count += 1
    soonest, moved = np.inf, -1
    for part in range(arity):
      tail = tails[edge, part] - low
      following = place[part] + 1
      if following < first[tail] + sizes[tail]:
        if values[following, 2] < soonest:
          soonest, moved = values[following, 2], part
    if moved < 0:
      return count
    old = place[moved]
    a += values[old + 1, 0] - values[old, 0]
    b += values[old + 1, 1] - values[old, 1]
    place[moved] += 1


@njit
def _sum_up(low, high, edge_offsets, tails, own):
  """Envelopes of the nodes from `low` up to `high`, the last being the root.

  Returns:
    Values `[L, 3]` and origins `[L, 1 + A]` of lines, and the root's first.
  """
  arity = tails.shape[1]
  first = np.zeros(high - low, np.int64)
  sizes = np.zeros(high - low, np.int64)
  values = np.empty((1024, 3), np.float64)
  origins = np.empty((1024, 1 + arity), np.int32)
  intercepts = np.empty(1024, np.float64)
  slopes = np.empty(1024, np.float64)
  sources = np.empty((1024, 1 + arity), np.int32)
  lines = np.empty(1025, np.int64)
  pending = np.empty(1025, np.int64)
  starts = np.empty(1025, np.float64)
  place = np.zeros(arity, np.int64)
  filled = 0
  for node in range(low, high):
    count = 0
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      room = 1
      for part in range(arity):
        if tails[edge, part] >= 0:
          room += sizes[tails[edge, part] - low]
      if count + room > len(intercepts):
        larger = 2 * (count + room)
        intercepts, slopes = (
          _longer(intercepts, larger),
          _longer(slopes, larger),
        )
        sources = _longer(sources, larger)
        lines = np.empty(larger + 1, np.int64)
        pending = np.empty(larger + 1, np.int64)
        starts = np.empty(larger + 1, np.float64)
      count = _multiply(
        edge,
        low,
        tails,
        own,
        (first, sizes, values),
        (intercepts, slopes, sources),
        place,
        count,
      )
    size = envelope(intercepts, slopes, 0, count, lines, starts, pending)
    if filled + size > len(values):
      values = _longer(values, 2 * (filled + size))
      origins = _longer(origins, 2 * (filled + size))
    first[node - low], sizes[node - low] = filled, size
    for item in range(size):
      line = lines[item]
      values[filled, 0], values[filled, 1] = intercepts[line], slopes[line]
      values[filled, 2] = starts[item]
      origins[filled] = sources[line]
      filled += 1
  return values[:filled], origins[:filled], first[high - low - 1]


@njit
def _spell(line, origins, target, offsets, words, stack):
  """Writes the words of a line's derivation; returns `(words, number)`.

  `stack [S, 2]` must be as deep as any derivation.
  """
  count, top = 0, 1
  stack[0, 0] = line
  stack[0, 1] = offsets[origins[line, 0]]
  while top:
    here, symbol = stack[top - 1, 0], stack[top - 1, 1]
    if symbol == offsets[origins[here, 0] + 1]:
      top -= 1
      continue
    stack[top - 1, 1] += 1
    if target[symbol] >= 0:
      if count == len(words):
        words = _longer(words, 2 * count)
      words[count] = target[symbol]
      count += 1
    else:
      below = origins[here, -target[symbol]]
      stack[top, 0] = below
      stack[top, 1] = offsets[origins[below, 0]]
      top += 1
  return words, count


@njit
def trace_forests(node_offsets, edge_offsets, tails, own, target, offsets):
  """Returns the lines on the envelope of each sentence, spelled.

  Args:
    node_offsets: nodes of the sentences, int64 `[B + 1]`.
    edge_offsets: edges of the nodes, int64 `[N + 1]`.
    tails: int32 `[E, A]`.
    own: intercepts and slopes of edges, two of float64 `[E]`, on the grid.
    target: target sides of edges, end to end: words, `-1 - k` for tail k.
    offsets: of `target`, int64 `[E + 1]`.

  Returns:
    `(counts [B], lines [L, 2], words, word_offsets [L + 1])`: how many lines
    each sentence has, their intercepts and slopes, their words.
  """
  batch = len(node_offsets) - 1
  counts = np.zeros(batch, np.int64)
  lines = np.empty((4 * batch + 64, 2), np.float64)
  ends = np.zeros(4 * batch + 65, np.int64)
  words = np.empty(1024, np.int32)
  spelled = np.empty(256, np.int32)
  total, filled = 0, 0
  for row in range(batch):
    low, high = node_offsets[row], node_offsets[row + 1]
    if low == high:
      continue
    values, origins, first = _sum_up(low, high, edge_offsets, tails, own)
    stack = np.empty((high - low + 1, 2), np.int64)
    size = len(values) - first
    if total + size > len(lines):
      lines = _longer(lines, 2 * (total + size))
      ends = _longer(ends, 2 * (total + size) + 1)
    counts[row] = size
    for line in range(first, len(values)):
      lines[total, 0], lines[total, 1] = values[line, 0], values[line, 1]
      spelled, count = _spell(line, origins, target, offsets, spelled, stack)
      if filled + count > len(words):
        words = _longer(words, 2 * (filled + count))
      words[filled : filled + count] = spelled[:count]
      filled += count
      total += 1
      ends[total] = filled
  return counts, lines[:total], words[:filled], ends[: total + 1]
