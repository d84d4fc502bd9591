"""Growing buffer that the extractors write packed rules into; compiled.

A buffer is a tuple of arrays, of which the first parts are in use:

    flat:      symbols of all rows, see `packed_rules`, int32
    ends:      where each row ends in `flat`, int64
    sentences: the sentence each row comes from, int32
    shares:    the count of each row in units of 1 / COUNT_UNIT, int64

How much is in use is in `size`, int64 `[2]`: number of symbols, of rows.
"""

import numpy as np

from jaxmt.grammar.extract.packed_rules import COUNT_UNIT, Emission
from jaxmt.text.kernels import grown, njit
from jaxmt.text.ragged import Ragged


@njit
def new_buffer():
  """Returns `(buffer, size)` without rows."""
  buffer = (
    np.empty(1 << 16, np.int32),
    np.empty(1 << 12, np.int64),
    np.empty(1 << 12, np.int32),
    np.empty(1 << 12, np.int64),
  )
  return buffer, np.zeros(2, np.int64)


@njit
def with_room(buffer, size, symbols):
  """Returns the buffer with room for one more row of `symbols` symbols."""
  flat, ends, sentences, shares = buffer
  rows = size[1] + 1
  return (
    grown(flat, size[0] + symbols),
    grown(ends, rows),
    grown(sentences, rows),
    grown(shares, rows),
  )


@njit
def add_row(buffer, size, stop, sentence):
  """Adds the row from `size[0]` to `stop`; nothing if it is empty."""
  if stop > size[0]:
    buffer[1][size[1]] = stop
    buffer[2][size[1]] = sentence
    size[0] = stop
    size[1] += 1


@njit
def set_shares(buffer, size, before, fractional):
  """Sets the counts of all rows from number `before` on.

  Args:
    buffer: see above.
    size: see above.
    before: the first row.
    fractional: whether the rows share one count equally, or have one each.
  """
  share = COUNT_UNIT
  if fractional and size[1] > before:
    rows = size[1] - before
    share = (2 * COUNT_UNIT + rows) // (2 * rows)  # rounded
  buffer[3][before : size[1]] = share


@njit
def buffer_arrays(buffer, size):
  """Returns the part in use as `(flat, offsets, sentences, shares)`."""
  flat, ends, sentences, shares = buffer
  offsets = np.zeros(size[1] + 1, np.int64)
  offsets[1:] = ends[: size[1]]
  return (
    flat[: size[0]].copy(),
    offsets,
    sentences[: size[1]].copy(),
    shares[: size[1]].copy(),
  )


def emission(arrays: tuple[np.ndarray, ...], *, first: int) -> Emission:
  """Returns the rows of `buffer_arrays`.

  Args:
    arrays: what `buffer_arrays` returned.
    first: the number of the first sentence.
  """
  flat, offsets, sentences, shares = arrays
  return Emission(
    rows=Ragged(flat=flat, offsets=offsets),
    sentences=sentences + np.int32(first),
    shares=shares,
  )
