"""Compiled scanning of rule table lines: bytes to fields to tokens."""

import dataclasses

import numpy as np

from jaxmt.text import scan
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import row_offsets
from jaxmt.text.scan import NEWLINE, is_space

_BAR, _EQUALS, _SEMICOLON, _MINUS = ord("|"), ord("="), ord(";"), ord("-")
_OPEN, _CLOSE, _ZERO, _NINE = ord("("), ord(")"), ord("0"), ord("9")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tokens:
  """Spans of bytes in rows.

  Attributes:
    starts: first byte of each token, int64 `[T]`.
    ends: one past its last byte, int64 `[T]`.
    offsets: row n's tokens are `offsets[n] : offsets[n + 1]`, int64 `[N + 1]`.
  """

  starts: np.ndarray
  ends: np.ndarray
  offsets: np.ndarray

  @property
  def rows(self) -> np.ndarray:
    """The row of each token, int64 `[T]`."""
    return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lines:
  """The N rule lines of a block of text.

  Attributes:
    data: the text, uint8 `[B]`.
    starts: first byte of each token except separators, int64 `[T]`.
    ends: one past its last byte, int64 `[T]`.
    field: the field it stands in, int8 `[T]`.
    row: the rule it belongs to, int32 `[T]`.
    fields: how many fields each rule has, int32 `[N]`.
    line: the line of each rule within the block, from 0, int64 `[N]`.
  """

  data: np.ndarray
  starts: np.ndarray
  ends: np.ndarray
  field: np.ndarray
  row: np.ndarray
  fields: np.ndarray
  line: np.ndarray


def scan_lines(data: np.ndarray, *, comment: int = -1) -> Lines:
  """Splits newline-ended lines at ` ||| ` and white space.

  Blank lines, and lines that begin with the byte `comment`, are passed over.
  """
  number = int(np.count_nonzero(data == NEWLINE))
  starts, ends, field, row, fields, line = _scan(data, number, comment)
  return Lines(
    data=data,
    starts=starts,
    ends=ends,
    field=field,
    row=row,
    fields=fields,
    line=line,
  )


@njit
def _scan(data, number, comment):
  room = 1
  blank = True
  for byte in data:
    now = is_space(byte)
    if blank and not now:
      room += 1
    blank = now
  starts = np.empty(room, np.int64)
  ends = np.empty(room, np.int64)
  field = np.empty(room, np.int8)
  row = np.empty(room, np.int32)
  fields = np.empty(number, np.int32)
  line = np.empty(number, np.int64)
  tokens = rows = lines = 0
  position = 0
  while position < len(data):
    here, seen, skip = 0, False, data[position] == comment
    while data[position] != NEWLINE:
      if is_space(data[position]):
        position += 1
        continue
      start = position
      while not is_space(data[position]):
        position += 1
      seen = True
      if (
        position - start == 3
        and data[start] == _BAR
        and data[start + 1] == _BAR
        and data[start + 2] == _BAR
      ):
        here = min(here + 1, 100)
      elif not skip:
        starts[tokens] = start
        ends[tokens] = position
        field[tokens] = here
        row[tokens] = rows
        tokens += 1
    if seen and not skip:
      fields[rows] = here + 1
      line[rows] = lines
      rows += 1
    lines += 1
    position += 1
  return (
    starts[:tokens].copy(),
    ends[:tokens].copy(),
    field[:tokens].copy(),
    row[:tokens].copy(),
    fields[:rows].copy(),
    line[:rows].copy(),
  )


def take_field(lines: Lines, field: np.ndarray, number: int) -> Tokens:
  """Returns the tokens whose entry in `field` is `number`."""
  chosen = np.flatnonzero(field == number)
  return Tokens(
    starts=lines.starts[chosen],
    ends=lines.ends[chosen],
    offsets=count_offsets(lines.row[chosen], len(lines.fields)),
  )


def count_offsets(rows: np.ndarray, size: int) -> np.ndarray:
  """Returns the offsets of sorted row numbers, int64 `[size + 1]`."""
  counts = np.bincount(rows, minlength=size)
  return row_offsets(counts)


def intern_tokens(
  data: np.ndarray, tokens: Tokens
) -> tuple[np.ndarray, list[str]]:
  """Returns `(ids int32 [T], strings)`: equal tokens have equal ids."""
  ids, first = scan.intern_spans(data, tokens.starts, tokens.ends)
  return ids, scan.strings(data, tokens.starts[first], tokens.ends[first])


def merge_rows(one: Tokens, other: Tokens) -> Tokens:
  """Appends each row of `other` to the same row of `one`."""
  rows = np.concatenate([one.rows, other.rows])
  order = np.argsort(rows, kind="stable")
  return Tokens(
    starts=np.concatenate([one.starts, other.starts])[order],
    ends=np.concatenate([one.ends, other.ends])[order],
    offsets=one.offsets + other.offsets,
  )


def split_at(data: np.ndarray, tokens: Tokens, *, brackets: bool) -> Tokens:
  """Splits tokens further: round brackets apart, or at semicolons."""
  starts, ends, counts = _split(
    data, tokens.starts, tokens.ends, tokens.offsets, brackets
  )
  return Tokens(starts=starts, ends=ends, offsets=counts)


@njit
def _split(data, starts, ends, offsets, brackets):
  room = len(starts) * 2 + 1
  new_starts = np.empty(room, np.int64)
  new_ends = np.empty(room, np.int64)
  counts = np.zeros(len(offsets), np.int64)
  size = 0
  for row in range(len(offsets) - 1):
    for token in range(offsets[row], offsets[row + 1]):
      begin = starts[token]
      for place in range(starts[token], ends[token] + 1):
        cut = place == ends[token]
        mark = False
        if not cut:
          if brackets:
            mark = data[place] == _OPEN or data[place] == _CLOSE
          cut = mark or (not brackets and data[place] == _SEMICOLON)
        if not cut:
          continue
        if size + 2 > room:
          room *= 2
          new_starts = np.concatenate((new_starts, np.empty_like(new_starts)))
          new_ends = np.concatenate((new_ends, np.empty_like(new_ends)))
          room = len(new_starts)
        if begin < place:
          new_starts[size], new_ends[size] = begin, place
          size += 1
        if mark:
          new_starts[size], new_ends[size] = place, place + 1
          size += 1
        begin = place + 1
    counts[row + 1] = size
  return new_starts[:size].copy(), new_ends[:size].copy(), counts


@njit
def find_equals(data, starts, ends):
  """Where each token's last `=` is, -1 for none; int64 `[T]`."""
  where = np.full(len(starts), -1, np.int64)
  for token in range(len(starts)):
    for place in range(ends[token] - 1, starts[token] - 1, -1):
      if data[place] == _EQUALS:
        where[token] = place
        break
  return where


@njit
def parse_pairs(data, starts, ends):
  """Reads tokens `12-3` as pairs, int32 `[T, 2]`; -1, -1 where they are not."""
  pairs = np.full((len(starts), 2), -1, np.int32)
  for token in range(len(starts)):
    side = 0
    value = 0
    digits = 0
    for place in range(starts[token], ends[token]):
      byte = data[place]
      if _ZERO <= byte <= _NINE and digits < 5:
        value = 10 * value + np.int32(byte - _ZERO)
        digits += 1
      elif byte == _MINUS and side == 0 and digits:
        pairs[token, 0] = value
        side, value, digits = 1, 0, 0
      else:
        side = 2
        break
    if side == 1 and digits:
      pairs[token, 1] = value
    else:
      pairs[token, 0] = -1
  return pairs
