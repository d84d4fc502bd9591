"""Word clusters by class-based bigrams (Brown et al. 1992).

Words join in the order of their frequency. There are always C clusters; each
further word is a cluster of its own, until the two clusters whose merger loses
least average mutual information are merged,

    I = ∑_(a, b) q(a, b),    q(a, b) = p(a, b) log(p(a, b) / (l(a) r(b))),

over adjacent clusters, with l and r the shares of all bigrams that begin or end
in a cluster. Losses of all pairs are kept and changed by what a merger changes,
so a word takes O(C²) time (Liang 2005). At the end the clusters are merged on
to one; the order of mergers gives every word a path of bits.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.text import vocabulary
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordClusters:
  """Clusters of W words.

  Attributes:
    words: most frequent first.
    counts: int64 `[W]`.
    cluster: number of each word's cluster, from 0 to C - 1, int32 `[W]`.
    paths: bits of each cluster, C strings.
    information: average mutual information of the C clusters, in nats.
  """

  words: tuple[str, ...]
  counts: np.ndarray
  cluster: np.ndarray
  paths: tuple[str, ...]
  information: float


def cluster_words(
  lines: Sequence[str], *, clusters: int, min_count: int = 1
) -> WordClusters:
  """Clusters the words of a text.

  Args:
    lines: one tokenised sentence a line.
    clusters: C.
    min_count: rarer words are left out; their bigrams still count.

  Raises:
    ValueError: if there are less than two clusters, or no words.
  """
  if clusters < 2:
    raise ValueError("at least 2 clusters")
  ids, words = vocabulary.intern(lines)
  counts = np.bincount(ids.flat, minlength=len(words))
  # By frequency; of equals, the one that comes first.
  order = np.argsort(-counts, kind="stable")
  order = order[counts[order] >= min_count]
  if not len(order):
    raise ValueError(f"no word occurs {min_count} times")
  rank = np.full(len(words), len(order), np.int64)
  rank[order] = np.arange(len(order))
  size = min(clusters, len(order))
  bigrams, left, right = _bigrams(ids, rank, len(order))
  cluster, merged, information = _merge(*bigrams, left, right, size)
  return WordClusters(
    words=tuple(words[word] for word in order),
    counts=counts[order],
    cluster=cluster,
    paths=_paths(merged, size),
    information=float(information),
  )


def _bigrams(ids: Ragged, rank: np.ndarray, size: int):
  """Bigrams among ranked words, both ways, and totals of all bigrams.

  A word's bigrams are listed with those words that come no later by rank: when
  it joins, only they have clusters.
  """
  flat = rank[ids.flat]
  inside = np.ones(max(len(flat) - 1, 0), bool)
  ends = ids.offsets[1:-1]
  inside[ends[(ends > 0) & (ends < len(flat))] - 1] = False
  first, second = flat[:-1][inside], flat[1:][inside]
  total = max(len(first), 1)
  share = lambda words: np.bincount(words, minlength=size + 1)[:size] / total
  known = (first < size) & (second < size)
  pairs, number = np.unique(
    first[known] * size + second[known], return_counts=True
  )
  first, second = pairs // size, pairs % size
  later = np.maximum(first, second)
  order = np.argsort(later, kind="stable")
  offsets = row_offsets(np.bincount(later, minlength=size))
  columns = (offsets, first[order], second[order], number[order] / total)
  return columns, *(
    np.ascontiguousarray(x)
    for x in (share(flat[:-1][inside]), share(flat[1:][inside]))
  )


@njit
def _q(p, l, r):
  return p * np.log(p / (l * r)) if p > 0.0 else 0.0


@njit
def _with(p, left, right, i, k):
  """What the pair of different clusters i and k adds, both ways."""
  return _q(p[i, k], left[i], right[k]) + _q(p[k, i], left[k], right[i])


@njit
def _joint_with(p, left, right, i, j, k):
  """The same of k and the union of i and j."""
  l, r = left[i] + left[j], right[i] + right[j]
  return _q(p[i, k] + p[j, k], l, right[k]) + _q(p[k, i] + p[k, j], left[k], r)


@njit
def _change(p, left, right, pairs, i, j, k):
  """How much of the loss of merging i and j comes from k.

  0 if k has no bigram with either, as is so for most words that join.
  """
  if p[i, k] + p[j, k] == 0.0 and p[k, i] + p[k, j] == 0.0:
    return 0.0
  return pairs[i, k] + pairs[j, k] - _joint_with(p, left, right, i, j, k)


@njit
def _refresh(p, left, right, pairs, k):
  """Sets what all pairs with a cluster add, after its bigrams changed."""
  for i in range(len(p)):
    if i != k:
      pairs[i, k] = pairs[k, i] = _with(p, left, right, i, k)


@njit
def _own_loss(p, left, right, i, j):
  """The rest of that loss: bigrams among i and j."""
  inside = _q(p[i, i], left[i], right[i]) + _q(p[j, j], left[j], right[j])
  inside += _with(p, left, right, i, j)
  union = p[i, i] + p[j, j] + p[i, j] + p[j, i]
  return inside - _q(union, left[i] + left[j], right[i] + right[j])


@njit
def _enter(p, left, right, pairs, alive, loss, new):
  """Adds a cluster to the losses of all pairs."""
  size = len(p)
  _refresh(p, left, right, pairs, new)
  for i in range(size):
    if not alive[i] or i == new:
      continue
    for j in range(i + 1, size):
      if alive[j] and j != new:
        loss[i, j] += _change(p, left, right, pairs, i, j, new)
    total = _own_loss(p, left, right, i, new)
    for k in range(size):
      if alive[k] and k != i and k != new:
        total += _change(p, left, right, pairs, i, new, k)
    loss[min(i, new), max(i, new)] = total
  alive[new] = True


@njit
def _leave(p, left, right, pairs, alive, loss, old):
  """Takes a cluster out of the losses of all pairs."""
  alive[old] = False
  for i in range(len(p)):
    if alive[i]:
      for j in range(i + 1, len(p)):
        if alive[j]:
          loss[i, j] -= _change(p, left, right, pairs, i, j, old)


@njit
def _best_pair(loss, alive):
  best, one, other = np.inf, -1, -1
  for i in range(len(loss)):
    if alive[i]:
      for j in range(i + 1, len(loss)):
        if alive[j] and loss[i, j] < best:
          best, one, other = loss[i, j], i, j
  return one, other


@njit
def _unite(p, left, right, pairs, alive, loss, one, other):
  """Merges two clusters into the first."""
  _leave(p, left, right, pairs, alive, loss, one)
  _leave(p, left, right, pairs, alive, loss, other)
  for k in range(len(p)):
    p[one, k] += p[other, k]
    p[other, k] = 0.0
  for k in range(len(p)):
    p[k, one] += p[k, other]
    p[k, other] = 0.0
  left[one] += left[other]
  right[one] += right[other]
  left[other], right[other] = 0.0, 0.0
  _refresh(p, left, right, pairs, other)
  _enter(p, left, right, pairs, alive, loss, one)


@njit
def _merge(offsets, first, second, share, word_left, word_right, clusters):
  """Clusters of words, mergers `[C - 1, 2]` of the rest, and information."""
  words = len(offsets) - 1
  size = clusters + 1
  p = np.zeros((size, size))
  left, right = np.zeros(size), np.zeros(size)
  alive = np.zeros(size, np.bool_)
  loss = np.zeros((size, size))
  pairs = np.zeros((size, size))  # what each pair adds to the information
  slot = np.full(words, -1, np.int32)  # cluster a word joined with
  # A slot's words change slots together: the slots form chains by merger.
  union = np.arange(words)  # word that stands for the word's cluster
  owner = np.full(size, -1, np.int64)  # such a word of each slot
  for word in range(words):
    new = 0
    while alive[new]:
      new += 1
    owner[new] = word
    slot[word] = new
    # Bigrams of the new word with those that have clusters.
    for item in range(offsets[word], offsets[word + 1]):
      a, b = first[item], second[item]
      while union[a] != a:
        union[a] = union[union[a]]
        a = union[a]
      while union[b] != b:
        union[b] = union[union[b]]
        b = union[b]
      p[slot[a], slot[b]] += share[item]
    left[new], right[new] = word_left[word], word_right[word]
    _enter(p, left, right, pairs, alive, loss, new)
    if word >= clusters:
      one, other = _best_pair(loss, alive)
      union[owner[other]] = owner[one]
      _unite(p, left, right, pairs, alive, loss, one, other)
  information = 0.0
  for a in range(size):
    for b in range(size):
      information += _q(p[a, b], left[a], right[b])
  # Numbers from 0 without the free slot.
  number = np.full(size, -1, np.int32)
  count = 0
  for place in range(size):
    if alive[place]:
      number[place] = count
      count += 1
  cluster = np.zeros(words, np.int32)
  for word in range(words):
    a = word
    while union[a] != a:
      a = union[a]
    cluster[word] = number[slot[a]]
  merged = np.zeros((max(count - 1, 0), 2), np.int32)
  for step in range(count - 1):
    one, other = _best_pair(loss, alive)
    merged[step, 0], merged[step, 1] = number[one], number[other]
    _unite(p, left, right, pairs, alive, loss, one, other)
  return cluster, merged, information


def _paths(merged: np.ndarray, size: int) -> tuple[str, ...]:
  """Bits of each cluster: 0 and 1 for the two sides of every merger."""
  members = {cluster: [cluster] for cluster in range(size)}
  paths = [""] * size
  for one, other in merged.tolist():
    for bit, side in (("0", one), ("1", other)):
      for cluster in members[side]:
        paths[cluster] = bit + paths[cluster]
    members[one] += members.pop(other)
  return tuple(paths)


def to_lines(clusters: WordClusters) -> list[str]:
  """Returns `path TAB word TAB count` lines, clusters together."""
  order = sorted(
    range(len(clusters.words)),
    key=lambda word: (clusters.paths[clusters.cluster[word]], word),
  )
  return [
    f"{clusters.paths[clusters.cluster[word]]}\t{clusters.words[word]}"
    f"\t{clusters.counts[word]}"
    for word in order
  ]


def read_lines(lines: Sequence[str], *, path: str = "") -> dict[str, str]:
  """Returns the path of each word, from lines as `to_lines` has them.

  Raises:
    InputError: naming the first line that is none.
  """
  clusters: dict[str, str] = {}
  for number, line in enumerate(lines, start=1):
    columns = line.split("\t")
    bits = columns[0]
    if len(columns) not in (2, 3) or not columns[1] or set(bits) - {"0", "1"}:
      cause = "not 'bits TAB word TAB count'"
      raise InputError(cause, path=path or None, line=number)
    clusters[columns[1]] = bits
  return clusters
