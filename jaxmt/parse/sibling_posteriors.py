"""Host kernels of `sibling_parser`: sums over trees, posteriors, likelihood.

The items are those of `sibling_kernel`. Values are plain probabilities: each
arc with its nearer sibling, divided by the largest value of any arc to the same
word; every tree has one arc to each word.
"""

import numpy as np

from jaxmt.parse import eisner_kernel
from jaxmt.parse.sibling_kernel import (
  ROOM,
  arc_rows,
  pair_rows,
  scores,
  sentence_keys,
  shift_of,
)
from jaxmt.text.kernels import njit

_TINY = 1e-4  # differences of posteriors that change nothing


@njit
def posteriors(arcs, pairs, n):
  """Returns p(head, nearer sibling of each word) and the log of the sum.

  Args:
    arcs: scores `[n + 1, n]`.
    pairs: scores `[n, n + 1, n]`.
    n: words.

  Returns:
    `[n + 1, n + 1, n]`: head (0 the root), sibling (0 none), dependent; and the
    log of the sum over trees, -inf if it is too small for a number.
  """
  value = np.zeros((n + 1, n + 1, n))
  log = 0.0
  for c in range(n):
    top = np.float64(arcs[0, c])
    for h in range(n):
      if h != c:
        top = max(top, arcs[h + 1, c] + pairs[h, 0, c])
        for s in range(min(h, c) + 1, max(h, c)):
          top = max(top, arcs[h + 1, c] + pairs[h, s + 1, c])
    log += top
    value[0, 0, c] = np.exp(arcs[0, c] - top)
    for h in range(n):
      if h != c:
        value[h + 1, 0, c] = np.exp(arcs[h + 1, c] + pairs[h, 0, c] - top)
        for s in range(min(h, c) + 1, max(h, c)):
          value[h + 1, s + 1, c] = np.exp(
            arcs[h + 1, c] + pairs[h, s + 1, c] - top
          )
  inside = np.zeros((5, n, n))
  total = _inside(value, n, inside)
  if not total > 1e-290:
    return value, -np.inf
  _outside(value, n, inside, 1.0 / total)
  return value, log + np.log(total)


@njit
def _inside(value, n, inside):
  """Sets the sums of all items; returns the sum over trees."""
  right, left, open_right, open_left, between = inside
  for i in range(n):
    right[i, i] = left[i, i] = 1.0
  for width in range(1, n):
    for i in range(n - width):
      j = i + width
      total = 0.0
      for m in range(i, j):
        total += right[i, m] * left[m + 1, j]
      between[i, j] = total
      to_right = value[i + 1, 0, j] * left[i + 1, j]
      to_left = value[j + 1, 0, i] * right[i, j - 1]
      for s in range(i + 1, j):
        to_right += open_right[i, s] * between[s, j] * value[i + 1, s + 1, j]
        to_left += between[i, s] * open_left[s, j] * value[j + 1, s + 1, i]
      open_right[i, j], open_left[i, j] = to_right, to_left
      to_right, to_left = 0.0, 0.0
      for k in range(i + 1, j + 1):
        to_right += open_right[i, k] * right[k, j]
      for k in range(i, j):
        to_left += left[i, k] * open_left[k, j]
      right[i, j], left[i, j] = to_right, to_left
  total = 0.0
  for r in range(n):
    total += value[0, 0, r] * left[0, r] * right[r, n - 1]
  return total


@njit
def _outside(value, n, inside, scale):
  """Replaces values by posteriors."""
  right, left, open_right, open_left, between = inside
  slope = np.zeros((5, n, n))
  by_right, by_left, by_open_right, by_open_left, by_between = slope
  for r in range(n):
    by_left[0, r] += scale * value[0, 0, r] * right[r, n - 1]
    by_right[r, n - 1] += scale * value[0, 0, r] * left[0, r]
    value[0, 0, r] *= scale * left[0, r] * right[r, n - 1]
  for width in range(n - 1, 0, -1):
    for i in range(n - width):
      j = i + width
      by = by_right[i, j]
      for k in range(i + 1, j + 1):
        by_open_right[i, k] += by * right[k, j]
        by_right[k, j] += by * open_right[i, k]
      by = by_left[i, j]
      for k in range(i, j):
        by_left[i, k] += by * open_left[k, j]
        by_open_left[k, j] += by * left[i, k]
    for i in range(n - width):
      j = i + width
      by = by_open_right[i, j]
      by_left[i + 1, j] += by * value[i + 1, 0, j]
      value[i + 1, 0, j] *= by * left[i + 1, j]
      for s in range(i + 1, j):
        own = by * value[i + 1, s + 1, j]
        by_open_right[i, s] += own * between[s, j]
        by_between[s, j] += own * open_right[i, s]
        value[i + 1, s + 1, j] = own * open_right[i, s] * between[s, j]
      by = by_open_left[i, j]
      by_right[i, j - 1] += by * value[j + 1, 0, i]
      value[j + 1, 0, i] *= by * right[i, j - 1]
      for s in range(i + 1, j):
        own = by * value[j + 1, s + 1, i]
        by_between[i, s] += own * open_left[s, j]
        by_open_left[s, j] += own * between[i, s]
        value[j + 1, s + 1, i] = own * between[i, s] * open_left[s, j]
    for i in range(n - width):
      j = i + width
      by = by_between[i, j]
      for m in range(i, j):
        by_right[i, m] += by * left[m + 1, j]
        by_left[m + 1, j] += by * right[i, m]


@njit
def nearer_sibling(heads, child):
  """Returns the next dependent towards the head on the same side, or -1."""
  head = heads[child]
  step = -1 if head < child else 1
  word = child + step
  while word != head:
    if heads[word] == head:
      return word
    word += step
  return -1


@njit
def _move(weights, squares, late, out, size, gain, rate, decay, steps):
  """One step of Adagrad on the weights of an arc or a pair."""
  for place in range(size):
    at = out[place]
    slope = gain - decay * weights[at]
    squares[at] += np.float32(slope * slope)
    change = rate * slope / np.sqrt(squares[at] + 1e-2)
    weights[at] += np.float32(change)
    late[at] += steps * change


@njit
def learn(
  columns, offsets, gold, order, weights, squares, late, steps, rate, decay
):
  """Goes through the sentences once; returns the sum of losses."""
  shift = shift_of(weights)
  loss = 0.0
  for number in range(len(order)):
    row = order[number]
    first, stop = offsets[row], offsets[row + 1]
    n = stop - first
    keys, rows = sentence_keys(columns, first, stop)
    arcs, pairs = scores(keys, rows, n, weights, shift)
    shares, log = posteriors(arcs, pairs, n)
    if log == -np.inf:
      continue
    right = gold[first:stop]
    loss += log
    out = np.empty(ROOM + n, np.int64)
    for child in range(n):
      sibling = nearer_sibling(right, child) if right[child] >= 0 else -1
      for head in range(-1, n):
        if head == child:
          continue
        share = 0.0
        for s in range(n + 1):
          share += shares[head + 1, s, child]
        gain = (1.0 if head == right[child] else 0.0) - share
        if abs(gain) > _TINY:
          size = arc_rows(keys, rows, head, child, shift, out)
          _move(
            weights, squares, late, out, size, gain, rate, decay, steps + number
          )
        if head == right[child]:
          loss -= arcs[head + 1, child]
        if head < 0:
          continue
        for s in range(-1, n):
          same = head == right[child] and s == sibling
          gain = (1.0 if same else 0.0) - shares[head + 1, s + 1, child]
          if abs(gain) > _TINY:
            size = pair_rows(rows, head, s, child, shift, out)
            _move(
              weights, squares, late, out, size, gain, rate, decay,
              steps + number,
            )  # fmt: skip
          if same:
            loss -= pairs[head, s + 1, child]
  return loss


@njit
def add_arcs(columns, offsets, weights, sums, whole):
  """Adds posteriors of arcs to the sums of some sentences.

  Args:
    columns: of the tokens, see `sibling_parser.token_columns`.
    offsets: where sentences start, `[N + 1]`.
    weights: of a parser.
    sums: a table `[n + 1, n]` for each sentence of n words, one after the
      other; head (0 the root), dependent.
    whole: set to False for sentences whose sum over trees is too small for a
      number, `[N]`.
  """
  shift = shift_of(weights)
  place = 0
  for row in range(len(offsets) - 1):
    n = offsets[row + 1] - offsets[row]
    own = sums[place : place + (n + 1) * n].reshape(n + 1, n)
    place += (n + 1) * n
    if n == 0:
      continue
    keys, rows = sentence_keys(columns, offsets[row], offsets[row + 1])
    arcs, pairs = scores(keys, rows, n, weights, shift)
    shares, log = posteriors(arcs, pairs, n)
    if log == -np.inf:
      whole[row] = False
      continue
    for head in range(n + 1):
      for s in range(n + 1):
        for child in range(n):
          own[head, child] += shares[head, s, child]


@njit
def least_risk_trees(sums, offsets):
  """Returns heads of the trees with the largest sums of arcs, int32 `[T]`."""
  heads = np.full(offsets[-1], -1, np.int32)
  place = 0
  for row in range(len(offsets) - 1):
    n = offsets[row + 1] - offsets[row]
    own = sums[place : place + (n + 1) * n].reshape(n + 1, n)
    place += (n + 1) * n
    if n > 0:
      eisner_kernel.best_tree(own, n, heads[offsets[row] : offsets[row + 1]])
  return heads
