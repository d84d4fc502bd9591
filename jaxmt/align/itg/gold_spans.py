"""Bi-spans of the ITG tree of gold links: what pruning should keep.

Liu, Li & Zhou (ACL 2010) parse with gold links as the only terminals. With
one-to-one links that tree is found without a chart: reading links from left to
right, neighbours that are next to each other on the other side, too, are
combined at once (Zhang & Gildea, 2007, shift and reduce), which is the left
branching of the normal form. Where gold links share words, the one-to-one
links of the largest total posterior are taken, which stands for the papers'
choice by inside times outside under the HMM. What no ITG derives stays in
pieces; their trees are used.
"""

import numpy as np
import scipy.optimize

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged


def one_to_one(links: np.ndarray, posterior: np.ndarray) -> np.ndarray:
  """Returns one-to-one links of the largest total posterior.

  Args:
    links: int `[L, 2]`.
    posterior: of all cells, `[n, m]`.

  Returns:
    int64 `[K, 2]`, sorted by source.
  """
  if not len(links):
    return np.zeros((0, 2), np.int64)
  # Every link is worth more than no link, however small its posterior.
  worth = np.zeros(posterior.shape)
  worth[links[:, 0], links[:, 1]] = 1.0 + posterior[links[:, 0], links[:, 1]]
  rows, columns = scipy.optimize.linear_sum_assignment(worth, maximize=True)
  chosen = worth[rows, columns] > 0
  return np.stack([rows[chosen], columns[chosen]], axis=1).astype(np.int64)


def samples(gold: Ragged, posterior: np.ndarray) -> np.ndarray:
  """Returns the gold bi-spans of a batch.

  Args:
    gold: links (source, target), N rows.
    posterior: of the batch, `[B, W, W]`, `B >= N`.

  Returns:
    int64 `[S, 5]`: sentence pair, bi-span (source from and to, target from and
    to).
  """
  found = [np.zeros((0, 5), np.int64)]
  for row in range(len(gold)):
    links = one_to_one(np.asarray(gold[row]).reshape(-1, 2), posterior[row])
    spans = _reduce(links)
    found.append(np.concatenate([np.full((len(spans), 1), row), spans], axis=1))
  return np.concatenate(found)


@njit
def _reduce(links):
  """Bi-spans of the tree of one-to-one links, sorted by source: `[_, 4]`.

  Unlinked words belong to the link that follows them on their side.
  """
  count = len(links)
  order = np.argsort(links[:, 1])
  before = np.zeros(count, np.int64)
  rank = np.zeros(count, np.int64)
  last = 0
  for place in range(count):
    before[order[place]] = last
    rank[order[place]] = place
    last = links[order[place], 1] + 1
  out = np.empty((2 * count, 4), np.int64)
  # A stack of trees: bi-span, first and last rank on the target side.
  stack = np.empty((count, 6), np.int64)
  top, number, last = 0, 0, 0
  for link in range(count):
    stack[top, 0], stack[top, 1] = last, links[link, 0] + 1
    stack[top, 2], stack[top, 3] = before[link], links[link, 1] + 1
    stack[top, 4], stack[top, 5] = rank[link], rank[link]
    last = links[link, 0] + 1
    top += 1
    out[number] = stack[top - 1, :4]
    number += 1
    while top > 1 and (
      stack[top - 2, 5] + 1 == stack[top - 1, 4]
      or stack[top - 1, 5] + 1 == stack[top - 2, 4]
    ):
      left, right = stack[top - 2], stack[top - 1]
      left[1] = right[1]
      left[2], left[3] = min(left[2], right[2]), max(left[3], right[3])
      left[4], left[5] = min(left[4], right[4]), max(left[5], right[5])
      top -= 1
      out[number] = stack[top - 1, :4]
      number += 1
  return out[:number]
