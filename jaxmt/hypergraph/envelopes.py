"""The best derivations of forests along a direction, for line searches.

An edge's score is a line: an intercept plus `step` times a slope. The upper
envelope of a sentence consists of the derivations that are best for some step
(Kumar et al. 2009, "Efficient minimum error rate training and minimum
Bayes-risk decoding for translation hypergraphs and lattices").

It is an inside pass in the semiring of envelopes. The product of envelopes is
their Minkowski sum: walk over the breakpoints of all factors, left to right,
adding the lines that are highest. The sum is the envelope of all lines. Lines
know the edge they come from and the lines of its tails, so that those that
reach the root can be listed and spelled.

Intercepts and slopes are rounded to multiples of 2^-32. Their sums are then
exact, and derivations with the same edge scores in another order have the same
line. Otherwise rounding makes them cross far out.

The envelope of lines is found from the outside in, without sorting. Of two
lines known to be on it, evaluate all lines where these two cross. The highest
there, if it is above the crossing, is on the envelope between them. An envelope
of E lines takes about 2 E passes over contiguous arrays, which the compiler
vectorises. E is small (about 5 of 100), so this is faster than a sort by slope.
"""

import dataclasses

import numpy as np

from jaxmt.hypergraph.derivations import (
  EdgeStrings,
  list_item,
  no_strings,
  spell_item,
)
from jaxmt.hypergraph.forest import Forest, edge_scores
from jaxmt.text.kernels import grown, grown_rows, njit
from jaxmt.text.ragged import Ragged, row_offsets

_GRID = 2.0**32


@dataclasses.dataclass(frozen=True, kw_only=True)
class Envelopes:
  """Upper envelopes of B sentences: L lines, left to right within each.

  Attributes:
    offsets: sentence b's lines are `offsets[b] : offsets[b + 1]`, int64 `[B +
      1]`.
    intercept: scores at step 0, float64 `[L]`.
    slope: change of scores per step, float64 `[L]`; rising.
    start: the step from which each line is highest, float64 `[L]`; -inf for the
      first of a sentence.
    edges: the derivation of each line, edges in preorder, L rows of int32.
    words: its words, L rows; empty rows if the edges have no strings.
  """

  offsets: np.ndarray
  intercept: np.ndarray
  slope: np.ndarray
  start: np.ndarray
  edges: Ragged
  words: Ragged


def on_grid(values: np.ndarray) -> np.ndarray:
  """Rounds to multiples of 2^-32: sums below 2^20 are exact in float64."""
  return np.round(np.asarray(values, np.float64) * _GRID) / _GRID


def envelope(
  forest: Forest,
  intercepts: np.ndarray,
  slopes: np.ndarray,
  *,
  strings: EdgeStrings | None = None,
) -> Envelopes:
  """Returns the derivations that are best for some step along a direction.

  Args:
    forest: B sentences, E edges.
    intercepts: scores of edges at step 0, finite, `[E]`.
    slopes: change of scores per step, finite, `[E]`.
    strings: what edges add to the strings of derivations.
  """
  strings = no_strings(forest) if strings is None else strings
  counts, lines, ends, edges, words = _trace(
    forest.node_offsets,
    forest.edge_offsets,
    np.ascontiguousarray(forest.tails),
    tuple(
      on_grid(edge_scores(forest, values)) for values in (intercepts, slopes)
    ),
    strings.columns,
  )
  return Envelopes(
    offsets=row_offsets(counts),
    intercept=lines[:, 0].copy(),
    slope=lines[:, 1].copy(),
    start=lines[:, 2].copy(),
    edges=Ragged(flat=edges, offsets=ends[:, 0].copy()),
    words=Ragged(flat=words, offsets=ends[:, 1].copy()),
  )


# --- envelopes of lines -------------------------------------------------------

# A line counts as above a crossing only beyond this relative margin, so that
# rounding makes no intervals of its own.
_MARGIN = 1e-11


# Far out, only the outermost slope counts, and among equals the intercept.
_FAR = 1e30


@njit(fastmath={"nnan", "nsz"})
def _highest(intercepts, slopes, low, high, step, shift):
  """The largest `intercept + step * (slope - shift)`.

  Like the next, a loop without branches: it becomes vector instructions.
  """
  top = -np.inf
  for place in range(low, high):
    value = intercepts[place] + step * (slopes[place] - shift)
    top = value if value > top else top
  return top


@njit(fastmath={"nnan", "nsz"})
def _first_at(intercepts, slopes, low, high, step, shift, top):
  """The first line with the value `top`."""
  first = high
  for place in range(low, high):
    value = intercepts[place] + step * (slopes[place] - shift)
    here = place if value == top else high
    first = here if here < first else first
  return first


@njit(fastmath={"nnan", "nsz"})
def _outermost(intercepts, slopes, low, high, step, shift):
  top = _highest(intercepts, slopes, low, high, step, shift)
  return _first_at(intercepts, slopes, low, high, step, shift, top)


@njit(fastmath={"nnan", "nsz"})
def _steepest(slopes, low, high):
  """The least and the largest slope."""
  least = np.inf
  most = -np.inf
  for place in range(low, high):
    least = slopes[place] if slopes[place] < least else least
    most = slopes[place] if slopes[place] > most else most
  return least, most


@njit(fastmath={"nnan", "nsz"})
def upper_envelope(intercepts, slopes, low, high, lines, starts, pending):
  """Finds the upper envelope of some lines.

  Args:
    intercepts: a, `[N]`.
    slopes: b, `[N]`.
    low: the first line.
    high: one past its last.
    lines: room for the lines on the envelope, left to right; int64.
    starts: room for the step from which each is best; -inf first.
    pending: work space, int64.

  Returns:
    How many lines are on the envelope.
  """
  if low >= high:
    return 0
  least, most = _steepest(slopes, low, high)
  lines[0] = _outermost(intercepts, slopes, low, high, -_FAR, least)
  starts[0] = -np.inf
  if least == most:
    return 1
  pending[0] = _outermost(intercepts, slopes, low, high, _FAR, most)
  # Slopes that differ by rounding only: one line is highest on both sides.
  if slopes[pending[0]] <= slopes[lines[0]]:
    return 1
  waiting = 1
  size = 1
  while waiting:
    left = lines[size - 1]
    right = pending[waiting - 1]
    turn = slopes[right] - slopes[left]
    step = (intercepts[left] - intercepts[right]) / turn
    level = intercepts[left] + step * slopes[left]
    top = _highest(intercepts, slopes, low, high, step, 0.0)
    between = left
    if top > level + _MARGIN * (1.0 + abs(level)):
      between = _first_at(intercepts, slopes, low, high, step, 0.0, top)
    if slopes[left] < slopes[between] < slopes[right]:
      pending[waiting] = between
      waiting += 1
    else:
      lines[size] = right
      starts[size] = step
      size += 1
      waiting -= 1
  return size


# --- envelopes of forests -----------------------------------------------------


@njit
def _multiply(edge, low, tails, lines, known, envelope, place, count):
  """Adds the lines of an edge with its tails to those found for its head.

  Args:
    edge: the edge.
    low: the sentence's first node.
    tails: tail nodes of all edges, `[E, A]`.
    lines: intercepts and slopes of edges, two of `[E]`.
    known: lines of the sentence's nodes: (first line of each, number of lines,
      values `[L, 3]`: intercept, slope, step from which it is highest).
    envelope: (intercepts, slopes, edges and lines of tails `[C, 1 + A]`).
    place: work space `[A]`.
    count: lines found so far.

  Returns:
    How many there are now.
  """
  first, sizes, values = known
  intercepts, slopes, origins = envelope
  arity = 0
  a, b = lines[0][edge], lines[1][edge]
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
        intercepts = grown(intercepts, count + room)
        slopes = grown(slopes, count + room)
        sources = grown_rows(sources, count + room)
        lines = np.empty(len(slopes) + 1, np.int64)
        pending = np.empty(len(slopes) + 1, np.int64)
        starts = np.empty(len(slopes) + 1, np.float64)
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
    size = upper_envelope(intercepts, slopes, 0, count, lines, starts, pending)
    values = grown_rows(values, filled + size)
    origins = grown_rows(origins, filled + size)
    first[node - low], sizes[node - low] = filled, size
    for item in range(size):
      line = lines[item]
      values[filled, 0], values[filled, 1] = intercepts[line], slopes[line]
      values[filled, 2] = starts[item]
      origins[filled] = sources[line]
      filled += 1
  return values[:filled], origins[:filled], first[high - low - 1]


@njit
def _trace(node_offsets, edge_offsets, tails, own, strings):
  """Finds, lists and spells the lines on the envelope of each sentence.

  Args:
    node_offsets: `Forest.node_offsets`.
    edge_offsets: `Forest.edge_offsets`.
    tails: `Forest.tails`.
    own: intercepts and slopes of edges, two of float64 `[E]`, on the grid.
    strings: `EdgeStrings.columns`.

  Returns:
    `(counts [B], lines [L, 3], ends [L + 1, 2], edges, words)`: how many lines
    each sentence has; their intercepts, slopes and starts; where the edges and
    the words of each begin and end.
  """
  batch = len(node_offsets) - 1
  counts = np.zeros(batch, np.int64)
  lines = np.empty((4 * batch + 64, 3), np.float64)
  ends = np.empty((4 * batch + 65, 2), np.int64)
  ends[0, 0], ends[0, 1] = 0, 0
  edges, words = np.empty(1024, np.int32), np.empty(1024, np.int32)
  spelled = np.empty(256, np.int32)
  stack = np.empty((256, 2), np.int64)
  total, num_edges, num_words = 0, np.int64(0), np.int64(0)
  for row in range(batch):
    low, high = node_offsets[row], node_offsets[row + 1]
    if low == high:
      continue
    values, origins, first = _sum_up(low, high, edge_offsets, tails, own)
    size = len(values) - first
    lines = grown_rows(lines, total + size)
    ends = grown_rows(ends, total + size + 1)
    counts[row] = size
    for line in range(first, len(values)):
      lines[total] = values[line]
      # The words of the line's derivation, then its edges.
      length, spelled, stack = spell_item(
        line, origins, 1, strings, spelled, stack
      )
      words = grown(words, num_words + length)
      words[num_words : num_words + length] = spelled[:length]
      num_words += length
      num_edges, edges, stack = list_item(
        line, origins, 1, tails, edges, num_edges, stack
      )
      total += 1
      ends[total, 0], ends[total, 1] = num_edges, num_words
  return (
    counts,
    lines[:total],
    ends[: total + 1],
    edges[:num_edges],
    words[:num_words],
  )
