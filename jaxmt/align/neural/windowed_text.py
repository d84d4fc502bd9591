"""A side of a bitext laid out for windows of words.

    side = make_side(text, vocabulary=100_000, window=5)
    ids = windows(side.ids, places, 5)

One array holds all sentences with room around each, so that the words around a
place are neighbours in it.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.text.ragged import Ragged, row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowedSide:
  """One side of a bitext as windows see it.

  Ids: 0 is unknown, then words; the last three are the place before the first
  word, that after the last, and NULL.

  Attributes:
    ids: all sentences, `window` places before and after each; then NULL as
      often as a window is wide. int32.
    starts: place of each sentence's first word, int64 `[N]`.
    lengths: words, int64 `[N]`.
    null: the place of NULL.
    size: number of ids.
    number: id of each word of the text's own numbering, int32 `[V]`.
  """

  ids: np.ndarray
  starts: np.ndarray
  lengths: np.ndarray
  null: int
  size: int
  number: np.ndarray


def make_side(text: Ragged, *, vocabulary: int, window: int) -> WindowedSide:
  """Lays a side out for windows.

  Args:
    text: word ids, N rows.
    vocabulary: how many of the most frequent words are known.
    window: words on either side of a word.
  """
  counts = np.bincount(text.flat, minlength=1)
  frequent = np.argsort(-counts, kind="stable")[:vocabulary]
  frequent = np.sort(frequent[counts[frequent] > 0])
  number = np.zeros(len(counts), np.int32)
  number[frequent] = np.arange(1, len(frequent) + 1)
  before, after, null = np.arange(3) + len(frequent) + 1
  w = window
  starts = row_offsets(text.lengths + 2 * w)
  ids = np.full(starts[-1] + 2 * w + 1, null, np.int32)
  for place in range(w):
    ids[starts[:-1] + place] = before
    ids[starts[1:] - 1 - place] = after
  row = np.repeat(np.arange(len(text)), text.lengths)
  within = np.arange(len(text.flat)) - text.offsets[row]
  ids[starts[row] + w + within] = number[text.flat]
  return WindowedSide(
    ids=ids,
    starts=starts[:-1] + w,
    lengths=text.lengths,
    null=int(starts[-1] + w),
    size=len(frequent) + 4,
    number=number,
  )


def windows(ids: Array, places: Array, window: int) -> Array:
  """Returns ids around places, `[..., 2 w + 1]`."""
  around = jnp.arange(-window, window + 1)
  return ids.at[places[..., None] + around].get(mode="clip")
