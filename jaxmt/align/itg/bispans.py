"""Bi-spans: a run of source words with a run of target words.

ITG parsing fills a chart whose cells are bi-spans. A sentence pair of n and m
words has about n^2 m^2 / 4 of them, so parsers work on a list of the promising
ones: for each source span the best K target spans (`pruning`), or all of them
for small inputs.
"""

import dataclasses

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class BiSpans:
  """Lists of bi-spans of B sentence pairs, N in all.

  Those of a pair are sorted by source length, source start, target length and
  target start: whatever a bi-span is composed of stands before it.

  Attributes:
    spans: int32 `[N, 4]`: source start and end, target start and end.
    offsets: those of pair b are `offsets[b] : offsets[b + 1]`, int64 `[B + 1]`.
    source_lengths: words, int64 `[B]`.
    target_lengths: words, int64 `[B]`.
  """

  spans: np.ndarray
  offsets: np.ndarray
  source_lengths: np.ndarray
  target_lengths: np.ndarray

  def __len__(self) -> int:
    return len(self.offsets) - 1


def from_rows(
  rows: Ragged, source_lengths: np.ndarray, target_lengths: np.ndarray
) -> BiSpans:
  """Sorts lists of bi-spans.

  Args:
    rows: int `[N, 4]` in B rows, without repetition in a row.
    source_lengths: int `[B]`.
    target_lengths: int `[B]`.
  """
  spans = np.asarray(rows.flat, np.int32).reshape(-1, 4)
  pair = np.repeat(np.arange(len(rows)), rows.lengths)
  order = np.lexsort(
    (
      spans[:, 2],
      spans[:, 3] - spans[:, 2],
      spans[:, 0],
      spans[:, 1] - spans[:, 0],
      pair,
    )
  )
  return BiSpans(
    spans=np.ascontiguousarray(spans[order]),
    offsets=np.asarray(rows.offsets, np.int64),
    source_lengths=np.asarray(source_lengths, np.int64),
    target_lengths=np.asarray(target_lengths, np.int64),
  )


def every(source_lengths: np.ndarray, target_lengths: np.ndarray) -> BiSpans:
  """Returns all bi-spans of B sentence pairs: the unpruned chart."""
  source_lengths = np.asarray(source_lengths, np.int64)
  target_lengths = np.asarray(target_lengths, np.int64)
  counts = (
    source_lengths
    * (source_lengths + 1)
    * target_lengths
    * (target_lengths + 1)
    // 4
  )
  offsets = row_offsets(counts)
  return BiSpans(
    spans=_every(source_lengths, target_lengths, offsets),
    offsets=offsets,
    source_lengths=source_lengths,
    target_lengths=target_lengths,
  )


@njit
def _every(source_lengths, target_lengths, offsets):
  """All bi-spans in the order of `BiSpans`."""
  out = np.empty((offsets[-1], 4), np.int32)
  count = 0
  for pair in range(len(source_lengths)):
    n, m = source_lengths[pair], target_lengths[pair]
    for width in range(1, n + 1):
      for start in range(n - width + 1):
        for height in range(1, m + 1):
          for low in range(m - height + 1):
            out[count, 0], out[count, 1] = start, start + width
            out[count, 2], out[count, 3] = low, low + height
            count += 1
  return out


@njit
def triangle(start, end, size):
  """Returns the number of a span in a sentence of `size` words.

  Spans are counted by start, then by end: 0 to `size (size + 1) / 2 - 1`.
  """
  return start * size - start * (start - 1) // 2 + end - start - 1
