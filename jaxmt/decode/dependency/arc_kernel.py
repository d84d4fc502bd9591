"""Host kernels of `configurations`: which arcs there are, relations, sums.

Arcs differ by the spans of their phrases, their phrase pairs (*options*), the
target gap, and the words between both on the longest path. There are far fewer
spans and options than edges, so that all but the last sum is computed for pairs
of these.

E: edges of the lattice. S: spans. U: options.
"""

import numpy as np

from jaxmt.text.kernels import njit

NO_LIMIT = 1 << 30
# How words are related; the last one stands for all others.
OTHER = 5


@njit
def linked_pairs(
  start, end, place, option, longest, gaps, source_limit, target_limit, options
):
  """Returns what arcs link: spans bool `[S, S]`, options bool `[2, U, U]`.

  Rows are left ones, the first axis of options is the target gap.

  Args:
    start: node that each edge leaves, rising, `[E]`.
    end: node that it leads to, `[E]`.
    place: number of its span, `[E]`.
    option: number of its option, `[E]`.
    longest: words on the longest path between nodes, -1 for none, `[V, V]`.
    gaps: words between spans, -1 where they overlap, `[S, S]`.
    source_limit: most source words between.
    target_limit: most target words between.
    options: U.
  """
  spans = np.zeros(gaps.shape, np.bool_)
  pairs = np.zeros((2, options, options), np.bool_)
  first = np.searchsorted(start, end)
  for left in range(len(start)):
    for right in range(first[left], len(start)):
      between = longest[end[left], start[right]]
      if between < 0 or between > target_limit:
        continue
      if gaps[place[left], place[right]] > source_limit:
        continue
      spans[place[left], place[right]] = True
      gap = np.int64(end[left] != start[right])
      pairs[gap, option[left], option[right]] = True
  return spans, pairs


@njit
def add_up(
  start, end, place, option, longest, gaps, source_limit, target_limit,
  spans, pairs, word_weight,
):  # fmt: skip
  """Returns scores of arcs with the child left, and right, `[E, E]` each.

  Args:
    start: as in `linked_pairs`, like the other arguments before `spans`.
    end: the same.
    place: the same.
    option: the same.
    longest: the same.
    gaps: the same.
    source_limit: the same.
    target_limit: the same.
    spans: scores by side of the child, target gap and spans, `[2, 2, S, S]`.
    pairs: scores by target gap, side of the child, and options `[2, 2, U, U]`.
    word_weight: of a target word between.
  """
  edges = len(start)
  sides = np.full((2, edges, edges), np.float32(-np.inf), np.float32)
  first = np.searchsorted(start, end)
  for left in range(edges):
    row, own = place[left], option[left]
    for right in range(first[left], edges):
      between = longest[end[left], start[right]]
      column = place[right]
      if between < 0 or between > target_limit:
        continue
      if gaps[row, column] > source_limit:
        continue
      gap = np.int64(end[left] != start[right])
      base = word_weight * np.float32(between)
      for side in range(2):
        sides[side, left, right] = (
          base
          + spans[side, gap, row, column]
          + pairs[gap, side, own, option[right]]
        )
  return sides[0], sides[1]


@njit
def relations(spans, heads, depth, linked):
  """Relation `[2, S, S]`, sums of 1 / path length, and of directed ones.

  The first axis is the side of the child, left or right; rows are the left
  spans of arcs. The relation is that of the word pair which stands farthest
  apart; words on the path between both must lie outside both phrases.

  Args:
    spans: source words `[begin, end)`, `[S, 2]`.
    heads: of the source tree, `[n]`.
    depth: arcs from its root, `[n]`.
    linked: which spans are linked, bool `[S, S]`.
  """
  size = len(spans)
  relation = np.full((2, size, size), OTHER, np.int8)
  path = np.zeros((2, size, size), np.float32)
  directed = np.zeros((2, size, size), np.float32)
  steps, below = _paths(heads, depth)
  for left in range(size):
    for right in range(size):
      if not linked[left, right]:
        continue
      for side in range(2):
        parent, child = (right, left) if side == 0 else (left, right)
        far = -1
        for j in range(spans[parent, 0], spans[parent, 1]):
          for k in range(spans[child, 0], spans[child, 1]):
            if steps[j, k] > 0:
              share = np.float32(1.0 / steps[j, k])
              path[side, left, right] += share
              if below[j, k]:
                directed[side, left, right] += share
            kind = _relation(heads, below, j, k, spans[parent], spans[child])
            if kind != OTHER and abs(j - k) > far:
              far = abs(j - k)
              relation[side, left, right] = kind
  return relation, path, directed


@njit
def _paths(heads, depth):
  """Arcs between words `[n, n]`, and whether the second is below the first."""
  size = len(heads)
  steps = np.zeros((size, size), np.int32)
  below = np.zeros((size, size), np.bool_)
  for j in range(size):
    for k in range(size):
      a, b = j, k
      while a != b:
        if depth[a] >= depth[b]:
          a = heads[a]
        else:
          b = heads[b]
        steps[j, k] += 1
      below[j, k] = j != k and b == j
  return steps, below


@njit
def _outside(word, one, other):
  return word >= 0 and not (
    one[0] <= word < one[1] or other[0] <= word < other[1]
  )


@njit
def _relation(heads, below, j, k, parent, child):
  """How the words j of the parent and k of the child are related."""
  if heads[k] == j:
    return 0
  if heads[j] == k:
    return 1
  middle = heads[k]
  if _outside(middle, parent, child):
    if heads[middle] == j:
      return 2
    if middle == heads[j]:
      return 3
  # The parent of one is an ancestor of the other.
  for top, other in ((heads[j], k), (middle, j)):
    if _outside(top, parent, child) and below[top, other]:
      return 4
  return OTHER
