"""Which words occur together, and where: the index all aligners work on.

The translation tables hold an entry only for word pairs that stand in one
sentence pair. Pairs are numbered in the order (source word, target word), and
every cell of every sentence pair's I x J grid holds its pair's number, so that
an E-step is gathers and segment sums. Both directions share the numbering.

Sentence pairs are grouped by the longer of their lengths into square grids
[W, W] of few widths: few shapes to compile, and one program for both
directions. Memory: 4 bytes for every cell of the padded grids.
"""

import dataclasses

import numpy as np

from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairTable:
  """The P distinct word pairs of a bitext, sorted by (source, target).

  Attributes:
    source: source word id of each pair, int32 `[P]`.
    target: target word id of each pair, int32 `[P]`.
    source_size: number of source word ids, Vs.
    target_size: number of target word ids, Vt.
  """

  source: np.ndarray
  target: np.ndarray
  source_size: int
  target_size: int

  def __len__(self) -> int:
    return len(self.source)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bucket:
  """Sentence pairs padded to one width W.

  Attributes:
    sentences: their line numbers from 0, int64 `[N]`.
    pairs: pair number per cell, `P` where padded, int32 `[N, W, W]`
      (source x target).
    source: source word ids, `Vs` where padded, int32 `[N, W]`.
    target: target word ids, `Vt` where padded, int32 `[N, W]`.
    source_length: int32 `[N]`.
    target_length: int32 `[N]`.
  """

  sentences: np.ndarray
  pairs: np.ndarray
  source: np.ndarray
  target: np.ndarray
  source_length: np.ndarray
  target_length: np.ndarray

  @property
  def width(self) -> int:
    """W."""
    return self.pairs.shape[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cooccurrence:
  """A bitext ready for EM.

  Attributes:
    table: the word pairs.
    buckets: the sentence pairs with words on both sides, narrowest first.
    source_lengths: of all lines, int64 `[N]`.
    target_lengths: of all lines, int64 `[N]`.
  """

  table: PairTable
  buckets: tuple[Bucket, ...]
  source_lengths: np.ndarray
  target_lengths: np.ndarray


def build(
  source: Ragged, target: Ragged, *, bucket_cost: int = 1 << 20
) -> Cooccurrence:
  """Indexes a bitext.

  Args:
    source: word ids per line, not negative.
    target: the same number of lines.
    bucket_cost: see `bucket_widths`.
  """
  if len(source) != len(target):
    raise ValueError(f"{len(source)} source and {len(target)} target lines")
  source_size = int(source.flat.max(initial=-1)) + 1
  target_size = int(target.flat.max(initial=-1)) + 1
  plan = _plan(source.lengths, target.lengths, bucket_cost)
  flat_source = np.ascontiguousarray(source.flat, np.int32)
  flat_target = np.ascontiguousarray(target.flat, np.int32)
  sentence_of = np.repeat(np.arange(len(source)), source.lengths)
  order = np.argsort(flat_source, kind="stable")
  starts = np.searchsorted(flat_source[order], np.arange(source_size + 1))
  arguments = (
    order,
    starts,
    sentence_of,
    source.offsets,
    flat_target,
    target.offsets,
    np.empty(target_size, np.int32),
  )
  count = _count_pairs(*arguments)
  pair_source = np.empty(count, np.int32)
  pair_target = np.empty(count, np.int32)
  cells = np.full(plan.cells, count, np.int32)
  _number_pairs(
    *arguments, plan.base, plan.stride, pair_source, pair_target, cells
  )
  buckets = []
  for width, rows in plan.groups:
    first = plan.base[rows[0]]
    pairs = cells[first : first + len(rows) * width * width]
    buckets.append(
      Bucket(
        sentences=rows,
        pairs=pairs.reshape(len(rows), width, width),
        source=_padded(source, rows, width, source_size),
        target=_padded(target, rows, width, target_size),
        source_length=source.lengths[rows].astype(np.int32),
        target_length=target.lengths[rows].astype(np.int32),
      )
    )
  table = PairTable(
    source=pair_source,
    target=pair_target,
    source_size=source_size,
    target_size=target_size,
  )
  return Cooccurrence(
    table=table,
    buckets=tuple(buckets),
    source_lengths=source.lengths,
    target_lengths=target.lengths,
  )


def _padded(text: Ragged, rows: np.ndarray, width: int, fill: int):
  """Rows of words as int32 `[N, width]`."""
  return ragged.pad(ragged.select(text, rows), width=width, fill=fill)[
    0
  ].astype(np.int32)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _GridLayout:
  """Where each sentence pair's grid lies in one flat array of cells.

  Attributes:
    groups: `(width, line numbers)` per bucket.
    base: first cell of each line's grid, -1 without one, int64 `[N]`.
    stride: width of each line's grid, int64 `[N]`.
    cells: how many there are.
  """

  groups: list[tuple[int, np.ndarray]]
  base: np.ndarray
  stride: np.ndarray
  cells: int


def _plan(
  source_lengths: np.ndarray, target_lengths: np.ndarray, bucket_cost: int
) -> _GridLayout:
  longest = np.maximum(source_lengths, target_lengths)
  longest[np.minimum(source_lengths, target_lengths) == 0] = 0
  base = np.full(len(longest), -1, np.int64)
  stride = np.zeros(len(longest), np.int64)
  groups, cells = [], 0
  widths = bucket_widths(longest[longest > 0], bucket_cost=bucket_cost)
  group_of = np.searchsorted(widths, longest)
  for group, width in enumerate(widths.tolist()):
    rows = np.flatnonzero((group_of == group) & (longest > 0))
    base[rows] = cells + np.arange(len(rows)) * width * width
    stride[rows] = width
    cells += len(rows) * width * width
    groups.append((width, rows))
  return _GridLayout(groups=groups, base=base, stride=stride, cells=cells)


def bucket_widths(lengths: np.ndarray, *, bucket_cost: int) -> np.ndarray:
  """Chooses grid widths by dynamic programming.

  Minimises the number of padded cells, the sum of W^2 over sentence pairs,
  plus `bucket_cost` for each width: every width is a program to compile, so a
  small bitext gets one and a large one gets many.

  Args:
    lengths: the longer length of each sentence pair, at least 1, `[N]`.
    bucket_cost: price of one width in cells.

  Returns:
    Rising widths, the last being the longest length, int64 `[K]`.
  """
  if not len(lengths):
    return np.zeros(0, np.int64)
  sizes, counts = np.unique(lengths, return_counts=True)
  below = ragged.row_offsets(counts)
  cost = np.zeros(len(sizes) + 1)
  previous = np.zeros(len(sizes) + 1, np.int64)
  for end in range(1, len(sizes) + 1):
    padded = (below[end] - below[:end]) * float(sizes[end - 1]) ** 2
    options = cost[:end] + padded + bucket_cost
    previous[end] = np.argmin(options)
    cost[end] = options[previous[end]]
  ends = [len(sizes)]
  while previous[ends[-1]]:
    ends.append(int(previous[ends[-1]]))
  return sizes[np.array(ends[::-1]) - 1]


@njit
def _count_pairs(
  order, starts, sentence_of, offsets, target, target_offsets, stamp
):
  """Returns the number of distinct pairs."""
  stamp[:] = -1
  count = 0
  for word in range(len(starts) - 1):
    for k in range(starts[word], starts[word + 1]):
      sentence = sentence_of[order[k]]
      for j in range(target_offsets[sentence], target_offsets[sentence + 1]):
        if stamp[target[j]] != word:
          stamp[target[j]] = word
          count += 1
  return count


@njit
def _number_pairs(
  order,
  starts,
  sentence_of,
  offsets,
  target,
  target_offsets,
  stamp,
  base,
  stride,
  pair_source,
  pair_target,
  cells,
):
  """Fills in the sorted pairs, and each cell with its pair's number."""
  stamp[:] = -1
  slot = np.empty_like(stamp)
  first = 0
  for word in range(len(starts) - 1):
    end = first
    for k in range(starts[word], starts[word + 1]):
      sentence = sentence_of[order[k]]
      for j in range(target_offsets[sentence], target_offsets[sentence + 1]):
        if stamp[target[j]] != word:
          stamp[target[j]] = word
          pair_target[end] = target[j]
          end += 1
    pair_target[first:end].sort()
    for pair in range(first, end):
      pair_source[pair] = word
      slot[pair_target[pair]] = pair
    for k in range(starts[word], starts[word + 1]):
      sentence = sentence_of[order[k]]
      begin = target_offsets[sentence]
      row = base[sentence] + (order[k] - offsets[sentence]) * stride[sentence]
      for j in range(begin, target_offsets[sentence + 1]):
        cells[row + j - begin] = slot[target[j]]
    first = end
