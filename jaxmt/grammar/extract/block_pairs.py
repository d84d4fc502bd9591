"""Neighbouring blocks of aligned sentences: examples of straight and inverted.

A *block* is a source span and the target span its words are linked to, such
that no word inside either is linked to one outside (a phrase pair of any
length). Two blocks that meet in the source at position k and follow each other
in the target, with nothing linked in between, are an example: straight if the
left one comes first in the target, otherwise inverted. As in Xiong, Liu & Lin
(2006) every k gives at most two examples: the smallest and the largest pair of
blocks.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from jaxmt.grammar.extract.shards import AlignedShard
from jaxmt.text.kernels import grown_rows, njit
from jaxmt.text.ragged import Ragged

# Columns of an example: words at the edges of the left and of the right block.
ENDS = ("source first", "source last", "target first", "target last")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockPairs:
  """N examples.

  Attributes:
    words: word ids at the edges, `ENDS` of the left block in the source, then
      of the right one, int32 `[N, 8]`.
    inverted: whether the right block comes first in the target, bool `[N]`.
    sentence: where each comes from, int32 `[N]`.
  """

  words: np.ndarray
  inverted: np.ndarray
  sentence: np.ndarray

  def __len__(self) -> int:
    return len(self.inverted)


def find(
  source: Ragged, target: Ragged, links: Ragged, *, longest: int = 40
) -> BlockPairs:
  """Returns the examples of aligned sentence pairs.

  Args:
    source: word ids, B rows.
    target: word ids, B rows.
    links: (source, target) positions, int `[L, 2]` in B rows.
    longest: most source words of a block.
  """
  rows, count = _find(
    np.ascontiguousarray(source.flat, np.int32),
    np.asarray(source.offsets, np.int64),
    np.ascontiguousarray(target.flat, np.int32),
    np.asarray(target.offsets, np.int64),
    np.ascontiguousarray(links.flat, np.int32).reshape(-1, 2),
    np.asarray(links.offsets, np.int64),
    longest,
  )
  rows = rows[:count]
  return BlockPairs(
    words=np.ascontiguousarray(rows[:, :8]),
    inverted=rows[:, 8] > 0,
    sentence=rows[:, 9].copy(),
  )


def find_all(parts: Iterable[AlignedShard], *, longest: int = 40) -> BlockPairs:
  """Returns the examples of a corpus in shards; see `find`."""
  pairs = [
    (
      shard.first,
      find(shard.source, shard.target, shard.links, longest=longest),
    )
    for shard in parts
  ]
  return BlockPairs(
    words=np.concatenate(
      [np.zeros((0, 8), np.int32), *(one.words for _, one in pairs)]
    ),
    inverted=np.concatenate(
      [np.zeros(0, bool), *(one.inverted for _, one in pairs)]
    ),
    sentence=np.concatenate(
      [np.zeros(0, np.int32), *(one.sentence + n for n, one in pairs)]
    ).astype(np.int32),
  )


@njit
def _find(source, source_offsets, target, target_offsets, links, offsets, most):
  out = np.empty((1024, 10), np.int32)
  count = np.int64(0)
  for row in range(len(source_offsets) - 1):
    words = source[source_offsets[row] : source_offsets[row + 1]]
    others = target[target_offsets[row] : target_offsets[row + 1]]
    pairs = links[offsets[row] : offsets[row + 1]]
    out = grown_rows(out, count + 2 * len(words))
    count = _sentence(words, others, pairs, most, row, out, count)
  return out, count


@njit
def block_spans(length, other_length, links):
  """The target span of every source span, -1 if it is no block.

  Returns:
    `(low int32 [n + 1, n + 1], high)`: of source span [i, j) the first target
    word and one past the last.
  """
  low = np.full((length + 1, length + 1), -1, np.int32)
  high = np.full((length + 1, length + 1), -1, np.int32)
  # Source words that each target word is linked to: first and last.
  first = np.full(other_length, length, np.int32)
  last = np.full(other_length, -1, np.int32)
  lowest = np.full(length, other_length, np.int32)
  highest = np.full(length, -1, np.int32)
  for item in range(len(links)):
    one, other = links[item, 0], links[item, 1]
    first[other] = min(first[other], one)
    last[other] = max(last[other], one)
    lowest[one] = min(lowest[one], other)
    highest[one] = max(highest[one], other)
  for begin in range(length):
    bottom, top = np.int32(other_length), np.int32(-1)
    for end in range(begin + 1, length + 1):
      bottom = min(bottom, lowest[end - 1])
      top = max(top, highest[end - 1])
      good = top >= 0
      for other in range(bottom, top + 1):
        if last[other] >= 0 and (first[other] < begin or last[other] >= end):
          good = False
          break
      if good:
        low[begin, end], high[begin, end] = bottom, top + 1
  return low, high


@njit
def _sentence(words, others, links, most, row, out, count):
  """Appends the examples of one sentence; returns their new number."""
  length, other_length = len(words), len(others)
  low, high = block_spans(length, other_length, links)
  linked = np.zeros(other_length + 1, np.int32)  # linked words up to a place
  flags = np.zeros(other_length, np.int32)
  for item in range(len(links)):
    flags[links[item, 1]] = 1
  for other in range(other_length):
    linked[other + 1] = linked[other] + flags[other]
  for middle in range(1, length):
    small, large = np.int64(0), np.int64(0)  # sizes of the two pairs
    pair = np.zeros((2, 2), np.int32)
    for begin in range(max(middle - most, 0), middle):
      if low[begin, middle] < 0:
        continue
      for end in range(middle + 1, min(middle + most, length) + 1):
        if low[middle, end] < 0:
          continue
        after = high[begin, middle] <= low[middle, end]
        left = high[begin, middle] if after else high[middle, end]
        right = low[middle, end] if after else low[begin, middle]
        if right < left or linked[right] > linked[left]:
          continue  # they overlap, or something stands in between
        size = end - begin
        if small == 0 or size < small:
          small = size
          pair[0, 0], pair[0, 1] = begin, end
        if size > large:
          large = size
          pair[1, 0], pair[1, 1] = begin, end
    for which in range(int(small > 0) + int(large > small)):
      begin, end = pair[which, 0], pair[which, 1]
      out[count, 0], out[count, 1] = words[begin], words[middle - 1]
      out[count, 2] = others[low[begin, middle]]
      out[count, 3] = others[high[begin, middle] - 1]
      out[count, 4], out[count, 5] = words[middle], words[end - 1]
      out[count, 6] = others[low[middle, end]]
      out[count, 7] = others[high[middle, end] - 1]
      out[count, 8] = low[middle, end] < low[begin, middle]
      out[count, 9] = row
      count += 1
  return count
