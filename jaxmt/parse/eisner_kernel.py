"""The best projective single-root tree of a sentence, as a host kernel.

The same trees as `eisner.best_trees`, one sentence after the other; see there
for the items.
"""

import numpy as np

from jaxmt.text.kernels import njit


@njit
def best_tree(arcs, n, heads):
  """Writes the heads of the best tree; -1 is the root.

  Args:
    arcs: scores `[N + 1, N]`: row 0 is the root, row 1 + h the head h.
    n: words of the sentence, at least 1.
    heads: where to write, int32 `[>= n]`.
  """
  right, left = np.zeros((n, n)), np.zeros((n, n))
  split = np.zeros((n, n), np.int32)
  from_right = np.zeros((n, n), np.int32)
  from_left = np.zeros((n, n), np.int32)
  open_right, open_left = np.zeros((n, n)), np.zeros((n, n))
  for width in range(1, n):
    for i in range(n - width):
      j = i + width
      best, place = -np.inf, i
      for k in range(i, j):
        value = right[i, k] + left[k + 1, j]
        if value > best:
          best, place = value, k
      split[i, j] = place
      open_right[i, j] = best + arcs[1 + i, j]
      open_left[i, j] = best + arcs[1 + j, i]
      best, place = -np.inf, j
      for k in range(i + 1, j + 1):
        value = open_right[i, k] + right[k, j]
        if value > best:
          best, place = value, k
      right[i, j], from_right[i, j] = best, place
      best, place = -np.inf, i
      for k in range(i, j):
        value = left[i, k] + open_left[k, j]
        if value > best:
          best, place = value, k
      left[i, j], from_left[i, j] = best, place
  best, root = -np.inf, 0
  for r in range(n):
    value = arcs[0, r] + left[0, r] + right[r, n - 1]
    if value > best:
      best, root = value, r
  _trace(split, from_right, from_left, root, n, heads)


@njit
def _trace(split, from_right, from_left, root, n, heads):
  heads[root] = -1
  # Complete spans to take apart: left end, right end, whether the head is left.
  todo = np.zeros((2 * n + 4, 3), np.int32)
  todo[0, 0], todo[0, 1], todo[0, 2] = 0, root, 0
  todo[1, 0], todo[1, 1], todo[1, 2] = root, n - 1, 1
  size = 2
  while size:
    size -= 1
    i, j, head_left = todo[size]
    if i == j:
      continue
    if head_left:
      k = from_right[i, j]
      heads[k] = i
      low, high = i, k
      todo[size, 0], todo[size, 1], todo[size, 2] = k, j, 1
    else:
      k = from_left[i, j]
      heads[k] = j
      low, high = k, j
      todo[size, 0], todo[size, 1], todo[size, 2] = i, k, 0
    middle = split[low, high]
    todo[size + 1, 0], todo[size + 1, 1] = low, middle
    todo[size + 1, 2] = 1
    todo[size + 2, 0], todo[size + 2, 1] = middle + 1, high
    todo[size + 2, 2] = 0
    size += 3


@njit
def best_trees(arcs, lengths):
  """Returns heads of the best trees of a batch, int32 `[B, N]`.

  Args:
    arcs: `[B, N + 1, N]`.
    lengths: `[B]`.
  """
  heads = np.full((len(arcs), arcs.shape[2]), -1, np.int32)
  for row in range(len(arcs)):
    if lengths[row]:
      best_tree(arcs[row], lengths[row], heads[row])
  return heads
