r"""Text as bytes for compiled kernels: joining lines, splitting, interning.

The readers of this package turn their lines into one UTF-8 byte array, let a
compiled kernel find spans `[start, end)` in it, and give equal spans equal ids
with `intern_spans`. White space is ASCII white space only, so that U+00A0,
U+3000 and the like stay inside their word.
"""

from collections.abc import Sequence

import numpy as np

from jaxmt.text.kernels import njit

NEWLINE = 10


def join_lines(lines: Sequence[str]) -> np.ndarray:
  r"""Returns the UTF-8 bytes of `lines`, each ended by `\n`; uint8 `[B]`.

  Raises:
    ValueError: if a line contains `\n`.
  """
  text = "".join([line + "\n" for line in lines])
  if text.count("\n") != len(lines):
    raise ValueError("a line contains a newline character")
  return np.frombuffer(text.encode("utf-8"), np.uint8)


def strings(data: np.ndarray, starts: np.ndarray, ends: np.ndarray):
  r"""Returns the strings at spans of `data` that contain no `\n`; a list."""
  if not len(starts):
    return []
  return _gather(data, starts, ends).tobytes().decode("utf-8").split("\n")


@njit
def is_space(byte):
  r"""ASCII white space: space, \t, \n, \v, \f, \r."""
  return byte == 32 or 9 <= byte <= 13


@njit
def _gather(data, starts, ends):
  """The bytes at the spans, with newlines between them."""
  out = np.empty(np.sum(ends - starts) + len(starts) - 1, np.uint8)
  position = 0
  for span in range(len(starts)):
    if span:
      out[position] = NEWLINE
      position += 1
    for byte in range(starts[span], ends[span]):
      out[position] = data[byte]
      position += 1
  return out


@njit
def tokenize(data, number_of_lines):
  """Splits each line at white space.

  Args:
    data: the bytes of newline-ended lines, `[B]`.
    number_of_lines: N.

  Returns:
    `(starts [T], ends [T], offsets [N + 1])`, int64: the tokens' spans and for
    each line the number of its first token.
  """
  starts = np.empty(len(data) // 2, np.int64)
  ends = np.empty(len(data) // 2, np.int64)
  offsets = np.zeros(number_of_lines + 1, np.int64)
  tokens = 0
  line = 0
  start = -1
  for position in range(len(data)):
    byte = data[position]
    if is_space(byte):
      if start >= 0:
        starts[tokens] = start
        ends[tokens] = position
        tokens += 1
        start = -1
      if byte == NEWLINE:
        line += 1
        offsets[line] = tokens
    elif start < 0:
      start = position
  return starts[:tokens].copy(), ends[:tokens].copy(), offsets


@njit
def _hash(data, start, end):
  """FNV-1a over the bytes with a final mix, uint64."""
  value = np.uint64(0xCBF29CE484222325)
  for position in range(start, end):
    value = (value ^ np.uint64(data[position])) * np.uint64(0x100000001B3)
  value ^= value >> np.uint64(32)
  value *= np.uint64(0xD6E8FEB86659FD93)
  return value ^ (value >> np.uint64(32))


@njit
def _equal(data, start, end, other_start, other_end):
  if end - start != other_end - other_start:
    return False
  for shift in range(end - start):
    if data[start + shift] != data[other_start + shift]:
      return False
  return True


@njit
def _grown(hashes, distinct):
  """A slot table for `distinct` ids at a quarter load, filled from hashes."""
  size = 1024
  while size < 4 * distinct:
    size *= 2
  slots = np.full(size, -1, np.int32)
  mask = np.uint64(size - 1)
  for number in range(distinct):
    slot = hashes[number] & mask
    while slots[slot] >= 0:
      slot = (slot + np.uint64(1)) & mask
    slots[slot] = number
  return slots


@njit
def intern_spans(data, starts, ends):
  """Gives equal byte strings equal ids, numbered by first occurrence.

  Open addressing with linear probing; the hash only finds the slot, equality
  is decided on the bytes.

  Args:
    data: bytes, uint8 `[B]`.
    starts: where each span begins, int64 `[T]`.
    ends: where each span ends, exclusive, int64 `[T]`.

  Returns:
    `(ids int32 [T], first int64 [V])`: the id of each span, and for each id
    the number of the span that introduced it.
  """
  ids = np.empty(len(starts), np.int32)
  first = np.empty(256, np.int64)
  hashes = np.empty(256, np.uint64)
  slots = _grown(hashes, 0)
  distinct = 0
  for span in range(len(starts)):
    value = _hash(data, starts[span], ends[span])
    mask = np.uint64(len(slots) - 1)
    slot = value & mask
    number = slots[slot]
    while number >= 0:
      known = first[number]
      if hashes[number] == value and _equal(
        data, starts[span], ends[span], starts[known], ends[known]
      ):
        break
      slot = (slot + np.uint64(1)) & mask
      number = slots[slot]
    if number < 0:
      if distinct == len(first):
        first = np.concatenate((first, np.empty_like(first)))
        hashes = np.concatenate((hashes, np.empty_like(hashes)))
      number = np.int32(distinct)
      first[distinct] = span
      hashes[distinct] = value
      slots[slot] = number
      distinct += 1
      if 2 * distinct > len(slots):
        slots = _grown(hashes, distinct)
    ids[span] = number
  return ids, first[:distinct].copy()
