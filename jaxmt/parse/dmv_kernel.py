"""Expected counts of the dependency model with valence, as a host kernel.

The same numbers as `dmv.expected_counts`, sentence by sentence: inside sums of
Eisner's items as plain probabilities in float64, then their derivatives from
the widest items to the narrowest. The arcs to each word are divided by the
largest of them, so that the best trees of long sentences have no tiny
probability; every tree has one arc to each word, so the sum is off by a known
factor. If even that is too small for a number, callers turn to logarithms.

n: words of a sentence. T: tags.
"""

import numpy as np

from jaxmt.parse.eisner_kernel import best_tree
from jaxmt.text.kernels import njit

_LEAST = 1e-12  # probability of what was never seen


@njit
def expected_counts(root, child, stop, tags, lengths, weight):
  """Returns expected counts and the log likelihood of some sentences.

  Args:
    root: probabilities as in `dmv.Dmv`, float64 `[T]`.
    child: `[2, T, T]`.
    stop: `[2, T, 2]`.
    tags: `[B, N]`.
    lengths: `[B]`.
    weight: how often each sentence occurs, `[B]`.

  Returns:
    (root `[T]`, child `[2, T, T]`, stop and go `[2, T, 2, 2]`, log likelihood);
    the last is -inf, and the counts are of no use, if a sum was too small.
  """
  size = tags.shape[1]
  root_count = np.zeros_like(root)
  child_count = np.zeros_like(child)
  stop_count = np.zeros((2, len(root), 2, 2))
  later, first = np.zeros((size, size)), np.zeros((size, size))
  top = np.zeros(size)
  inside, slope = np.zeros((4, size, size)), np.zeros((4, size, size))
  value = 0.0
  for row in range(len(tags)):
    n = lengths[row]
    if n == 0 or weight[row] == 0:
      continue
    own = tags[row]
    value += weight[row] * _arcs(root, child, stop, own, n, top, later, first)
    total = _inside(top, later, first, n, inside)
    if not total > 0:
      return root_count, child_count, stop_count, -np.inf
    value += weight[row] * np.log(total)
    scale = weight[row] / total
    _slopes(top, later, first, n, inside, slope, scale)
    _count(
      top, later, first, n, inside, slope, scale, weight[row], own,
      root_count, child_count, stop_count,
    )  # fmt: skip
  return root_count, child_count, stop_count, value


@njit
def _least(probability):
  return max(probability, _LEAST)


@njit
def _arcs(root, child, stop, tags, n, top, later, first):
  """Sets scaled values of arcs; returns the log of what was divided out."""
  value = 0.0
  for d in range(n):
    top[d] = _least(root[tags[d]])
    most = top[d]
    for h in range(n):
      if h == d:
        continue
      side = int(h < d)
      tag = tags[h]
      chosen = _least(child[side, tag, tags[d]])
      later[h, d] = chosen * _least(1.0 - stop[side, tag, 1])
      first[h, d] = (
        chosen
        * _least(1.0 - stop[side, tag, 0])
        * _least(stop[side, tag, 1])
        / _least(stop[side, tag, 0])
      )
      most = max(most, later[h, d], first[h, d])
    top[d] /= most
    for h in range(n):
      later[h, d] /= most
      first[h, d] /= most
    value += np.log(most)
    for side in range(2):
      value += np.log(_least(stop[side, tags[d], 0]))
  return value


# Items of `inside` and `slope`, by their left and right ends.
_CR, _CL, _IR, _IL = 0, 1, 2, 3


@njit
def _inside(top, later, first, n, inside):
  """Sets the sums of all items; returns the sum over trees."""
  right, left = inside[_CR], inside[_CL]
  open_right, open_left = inside[_IR], inside[_IL]
  for i in range(n):
    right[i, i] = left[i, i] = 1.0
  for width in range(1, n):
    for i in range(n - width):
      j = i + width
      # Both heads take each other; the first dependents have their own value.
      inner = 0.0
      for k in range(i + 1, j - 1):
        inner += right[i, k] * left[k + 1, j]
      no_right, no_left = left[i + 1, j], right[i, j - 1]
      with_right = inner + (no_left if width > 1 else 0.0)
      with_left = inner + (no_right if width > 1 else 0.0)
      open_right[i, j] = first[i, j] * no_right + later[i, j] * with_right
      open_left[i, j] = first[j, i] * no_left + later[j, i] * with_left
      sum_right, sum_left = 0.0, 0.0
      for k in range(i + 1, j + 1):
        sum_right += open_right[i, k] * right[k, j]
      for k in range(i, j):
        sum_left += left[i, k] * open_left[k, j]
      right[i, j], left[i, j] = sum_right, sum_left
  total = 0.0
  for r in range(n):
    total += top[r] * left[0, r] * right[r, n - 1]
  return total


@njit
def _slopes(top, later, first, n, inside, slope, scale):
  """Sets derivatives of the sum over trees times `scale`, by all items."""
  right, left = inside[_CR], inside[_CL]
  open_right, open_left = inside[_IR], inside[_IL]
  for item in range(4):
    for i in range(n):
      for j in range(i, n):
        slope[item, i, j] = 0.0
  for r in range(n):
    slope[_CL, 0, r] += scale * top[r] * right[r, n - 1]
    slope[_CR, r, n - 1] += scale * top[r] * left[0, r]
  for width in range(n - 1, 0, -1):
    for i in range(n - width):
      j = i + width
      by = slope[_CR, i, j]
      for k in range(i + 1, j + 1):
        slope[_IR, i, k] += by * right[k, j]
        slope[_CR, k, j] += by * open_right[i, k]
      by = slope[_CL, i, j]
      for k in range(i, j):
        slope[_CL, i, k] += by * open_left[k, j]
        slope[_IL, k, j] += by * left[i, k]
    for i in range(n - width):
      j = i + width
      to_right, to_left = slope[_IR, i, j], slope[_IL, i, j]
      both = to_right * later[i, j] + to_left * later[j, i]
      for k in range(i + 1, j - 1):
        slope[_CR, i, k] += both * left[k + 1, j]
        slope[_CL, k + 1, j] += both * right[i, k]
      # No dependents of i on the right, and none of j on the left.
      by_left, by_right = to_right * first[i, j], to_left * first[j, i]
      if width > 1:
        by_left += to_left * later[j, i]
        by_right += to_right * later[i, j]
      slope[_CL, i + 1, j] += by_left
      slope[_CR, i, j - 1] += by_right


@njit
def _count(
  top, later, first, n, inside, slope, scale, weight, tags,
  root_count, child_count, stop_count,
):  # fmt: skip
  """Adds the expected counts of a sentence."""
  right, left = inside[_CR], inside[_CL]
  for r in range(n):
    root_count[tags[r]] += scale * top[r] * left[0, r] * right[r, n - 1]
    for side in range(2):
      stop_count[side, tags[r], 0, 0] += weight
  for i in range(n):
    for j in range(i + 1, n):
      inner = 0.0
      for k in range(i + 1, j - 1):
        inner += right[i, k] * left[k + 1, j]
      no_right, no_left = left[i + 1, j], right[i, j - 1]
      more = j - i > 1
      for side in range(2):
        # Rightward arcs have their head at i, leftward ones at j.
        h, d = (i, j) if side == 1 else (j, i)
        by = slope[_IR, i, j] if side == 1 else slope[_IL, i, j]
        none, other = (no_right, no_left) if side == 1 else (no_left, no_right)
        starts = by * first[h, d] * none
        goes_on = by * later[h, d] * (inner + (other if more else 0.0))
        child_count[side, tags[h], tags[d]] += starts + goes_on
        stop_count[side, tags[h], 0, 1] += starts
        stop_count[side, tags[h], 1, 1] += goes_on
        # One who has dependents stops after them, not before.
        stop_count[side, tags[h], 0, 0] -= starts
        stop_count[side, tags[h], 1, 0] += starts


@njit
def least_risk_trees(root, child, stop, tags, lengths):
  """Returns heads of the trees with most expected right arcs.

  Args:
    root: probabilities as in `expected_counts`.
    child: the same.
    stop: the same.
    tags: `[B, N]`.
    lengths: `[B]`.

  Returns:
    (heads `[B, N]`, which sentences had sums too small for a number).
  """
  size = tags.shape[1]
  later, first = np.zeros((size, size)), np.zeros((size, size))
  top = np.zeros(size)
  inside, slope = np.zeros((4, size, size)), np.zeros((4, size, size))
  small = np.zeros(len(tags), np.bool_)
  arcs = np.zeros((size + 1, size))
  heads = np.full(tags.shape, -1, np.int32)
  for row in range(len(tags)):
    n = lengths[row]
    if n == 0:
      continue
    _arcs(root, child, stop, tags[row], n, top, later, first)
    total = _inside(top, later, first, n, inside)
    if not total > 1e-290:
      small[row] = True
      continue
    _slopes(top, later, first, n, inside, slope, 1.0 / total)
    for r in range(n):
      arcs[0, r] = top[r] * inside[_CL, 0, r] * inside[_CR, r, n - 1] / total
    for i in range(n):
      for j in range(i + 1, n):
        arcs[1 + i, j] = slope[_IR, i, j] * inside[_IR, i, j]
        arcs[1 + j, i] = slope[_IL, i, j] * inside[_IL, i, j]
    best_tree(arcs, n, heads[row])
  return heads, small
