"""Word-aligned sentence pairs as kernels of extraction read them."""

from typing import Any, NamedTuple

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged


class PairArrays(NamedTuple):
  """Flat arrays and row offsets of B sentence pairs."""

  source: np.ndarray  # ids of words, int32, or their keys, uint64
  source_offsets: np.ndarray  # int64 [B + 1]
  target: np.ndarray
  target_offsets: np.ndarray
  links: np.ndarray  # (source, target) positions, int32 [L, 2]
  link_offsets: np.ndarray


def pair_arrays(
  source: Ragged, target: Ragged, links: Ragged, *, words: Any = np.int32
) -> PairArrays:
  """Returns the arrays of both sides and of the links between them.

  Args:
    source: ids or keys of words, B rows.
    target: likewise.
    links: `[L, 2]` (source, target) positions, B rows.
    words: type of the ids or keys.
  """
  arrays: list[np.ndarray] = []
  for rows, kind in ((source, words), (target, words), (links, np.int32)):
    arrays.append(np.ascontiguousarray(rows.flat, kind))
    arrays.append(np.asarray(rows.offsets, np.int64))
  return PairArrays(*arrays)


@njit
def sentence_pair(pairs, row):
  """Returns source words, target words and links of one sentence pair."""
  begin, end = pairs.source_offsets[row], pairs.source_offsets[row + 1]
  low, high = pairs.target_offsets[row], pairs.target_offsets[row + 1]
  first, last = pairs.link_offsets[row], pairs.link_offsets[row + 1]
  return (
    pairs.source[begin:end],
    pairs.target[low:high],
    pairs.links[first:last],
  )


@njit
def link_extents(source_size, target_size, links):
  """Returns the first and the last word that each word is linked to.

  Returns:
    `(low, high, left, right)`, int32: target words of source words, source
    words of target words. Words without links have more than all words for
    the first one and -1 for the last one.
  """
  low = np.full(source_size, target_size, np.int32)
  high = np.full(source_size, -1, np.int32)
  left = np.full(target_size, source_size, np.int32)
  right = np.full(target_size, -1, np.int32)
  for link in range(len(links)):
    word, other = links[link, 0], links[link, 1]
    low[word] = min(low[word], other)
    high[word] = max(high[word], other)
    left[other] = min(left[other], word)
    right[other] = max(right[other], word)
  return low, high, left, right
