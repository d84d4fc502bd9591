"""Writing rule tables: every line is a sequence of pieces from a pool.

A piece is a string such as `word ` or `[X,1] ` or `||| `; what the dialects
decide is which pieces a rule has. The pieces are laid out by one compiled loop;
a piece that begins with `GLUE` takes the place of the space before it.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import CLOSE, RuleTable
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

GLUE = "\b"

_BACK, _SPACE, _NEWLINE = 8, 32, 10


class Pool:
  """Strings by number."""

  def __init__(self):
    self._strings: list[str] = []

  def add(self, strings: Sequence[str]) -> int:
    """Takes strings; returns the number of the first."""
    first = len(self._strings)
    self._strings.extend(strings)
    return first

  def packed(self) -> tuple[np.ndarray, np.ndarray]:
    """Returns `(bytes, offsets)` of all strings end to end."""
    parts = [string.encode("utf-8") for string in self._strings]
    lengths = np.array([len(part) for part in parts], np.int64)
    offsets = row_offsets(lengths)
    return np.frombuffer(b"".join(parts), np.uint8), offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class Speller:
  """A pool, and the pieces of a table's words and labels in it.

  Attributes:
    pool: the strings.
    source: first piece of the source words.
    target: first piece of the target words.
    write_site: `(label, index from 1, is target)` to the piece of a site.
    labels: the labels' names.
  """

  pool: Pool
  source: int
  target: int
  write_site: Callable[[str, int, bool], str]
  labels: tuple[str, ...]


def make_speller(
  table: RuleTable,
  *,
  write_word: Callable[[str], str],
  write_site: Callable[[str, int, bool], str],
) -> Speller:
  """Starts a pool with a table's words."""
  pool = Pool()
  spell = [write_word(word) + " " for word in table.source_words.words]
  source = pool.add(spell)
  spell = [write_word(word) + " " for word in table.target_words.words]
  target = pool.add(spell)
  return Speller(
    pool=pool,
    source=source,
    target=target,
    write_site=write_site,
    labels=table.labels,
  )


def source_pieces(speller: Speller, table: RuleTable) -> Ragged:
  """Returns the pieces of the source sides."""
  flat = np.array(table.source.flat, np.int64)
  holes = np.flatnonzero(flat < 0)
  rule = np.searchsorted(table.source.offsets, holes, side="right") - 1
  sites = table_lib.nonterminals(table)
  number = np.arange(len(holes)) - sites.offsets[rule]
  pieces = flat + speller.source
  pieces[holes] = _site_pieces(speller, sites.flat, number, False)
  return Ragged(flat=pieces, offsets=table.source.offsets)


def target_pieces(speller: Speller, table: RuleTable) -> Ragged:
  """Returns the pieces of the target sides."""
  flat = np.array(table.target.flat, np.int64)
  holes = np.flatnonzero(flat < 0)
  rule = np.searchsorted(table.target.offsets, holes, side="right") - 1
  sites = table_lib.nonterminals(table)
  number = -1 - flat[holes]
  label = sites.flat[sites.offsets[rule] + number]
  pieces = flat + speller.target
  pieces[holes] = _site_pieces(speller, label, number, True)
  return Ragged(flat=pieces, offsets=table.target.offsets)


def _site_pieces(speller, labels, numbers, is_target: bool) -> np.ndarray:
  """The piece of each (label, number from 0)."""
  keys = labels.astype(np.int64) << 32 | numbers
  distinct, inverse = np.unique(keys, return_inverse=True)
  first = speller.pool.add(
    [
      speller.write_site(
        speller.labels[key >> 32], (key & 0xFFFFFFFF) + 1, is_target
      )
      + " "
      for key in distinct.tolist()
    ]
  )
  return first + inverse.reshape(-1)


def column_pieces(
  speller: Speller, values: np.ndarray, write: Callable[[int], str]
) -> Ragged:
  """Returns one piece per rule, for integer values `[N]`; no space is added."""
  distinct, inverse = np.unique(values, return_inverse=True)
  first = speller.pool.add([write(value) for value in distinct.tolist()])
  return Ragged(
    flat=first + inverse.reshape(-1), offsets=np.arange(len(values) + 1)
  )


def constant_pieces(speller: Speller, text: str, size: int) -> Ragged:
  """Returns the same piece for every rule."""
  first = speller.pool.add([text])
  return Ragged(
    flat=np.full(size, first, np.int64), offsets=np.arange(size + 1)
  )


def keep_pieces(pieces: Ragged, keep: np.ndarray) -> Ragged:
  """Returns single pieces of some rules `[N]`, nothing for the others."""
  return Ragged(flat=pieces.flat[keep], offsets=row_offsets(keep))


def drop_rows(pieces: Ragged, drop: np.ndarray) -> Ragged:
  """Returns the pieces, none for the rules given by bool `[N]`."""
  lengths = np.where(drop, 0, pieces.lengths)
  return Ragged(
    flat=pieces.flat[np.repeat(~drop, pieces.lengths)],
    offsets=row_offsets(lengths),
  )


def number_pieces(
  speller: Speller, values: np.ndarray, write: Callable[[np.float32], str]
) -> np.ndarray:
  """Returns the pieces of numbers (with a space after each), like `values`."""
  distinct, inverse = np.unique(values, return_inverse=True)
  first = speller.pool.add([write(value) + " " for value in distinct])
  return first + inverse.reshape(values.shape)


def write_number(value: np.float32) -> str:
  """The shortest text that is read as the same float32."""
  text = str(np.float32(value) + np.float32(0))  # no minus zero
  return text[:-2] if text.endswith(".0") else text


def write_exactly(value: np.floating) -> str:
  """The shortest text that is read as the same float64."""
  text = repr(float(value))
  return text[:-2] if text.endswith(".0") else text


def feature_pieces(
  speller: Speller,
  names: Sequence[str],
  values: np.ndarray,
  write: Callable[[np.float32], str] = write_number,
) -> Ragged:
  """Returns `name=value` of every feature; an empty name gives bare values.

  Args:
    speller: the pool.
    names: F names, empty for values without one.
    values: `[N, F]`.
    write: how numbers are written.
  """
  size, width = values.shape
  for name in names:
    if any(sign in name for sign in " \t=;"):
      raise ValueError(f"feature name {name!r} cannot be written")
  numbers = number_pieces(speller, np.ascontiguousarray(values), write)
  first = speller.pool.add([f"{name}=" if name else "" for name in names])
  flat = np.empty((size, width, 2), np.int64)
  flat[:, :, 0] = first + np.arange(width)
  flat[:, :, 1] = numbers
  return Ragged(
    flat=flat.reshape(-1), offsets=np.arange(size + 1) * (2 * width)
  )


def link_pieces(speller: Speller, links: Ragged) -> Ragged:
  """Returns the pieces `0-1 ` of word links."""
  pairs = np.asarray(links.flat, np.int64).reshape(-1, 2)
  keys = pairs[:, 0] << 16 | pairs[:, 1]
  distinct, inverse = np.unique(keys, return_inverse=True)
  first = speller.pool.add(
    [f"{key >> 16}-{key & 0xFFFF} " for key in distinct.tolist()]
  )
  return Ragged(flat=first + inverse.reshape(-1), offsets=links.offsets)


def fragment_pieces(
  speller: Speller,
  table: RuleTable,
  *,
  write_open: Callable[[str], str],
  write_word: Callable[[str], str],
  write_site: Callable[[str, int], str],
  close: str,
) -> Ragged:
  """Returns the pieces of the tree fragments; pieces have their own spaces."""
  codes = np.asarray(table.fragments.flat, np.int64)
  labels = np.unique(-2 - codes[codes < CLOSE])
  words, word_of = np.unique(codes[codes >= 0], return_inverse=True)
  opens = np.zeros(len(table.labels), np.int64)
  opens[labels] = speller.pool.add(
    [write_open(table.labels[label]) for label in labels.tolist()]
  ) + np.arange(len(labels))
  end = speller.pool.add([close])
  first = speller.pool.add(
    [write_word(table.source_words.words[word]) for word in words.tolist()]
  )
  flat = np.empty(len(codes), np.int64)
  flat[codes >= 0] = first + word_of.reshape(-1)
  flat[codes == CLOSE] = end
  flat[codes < CLOSE] = opens[-2 - codes[codes < CLOSE]]
  # A node closed at once is a site: one piece in place of two.
  site = np.zeros(len(codes), np.bool_)
  site[:-1] = (codes[:-1] < CLOSE) & (codes[1:] == CLOSE)
  places = np.flatnonzero(site)
  rule = np.searchsorted(table.fragments.offsets, places, side="right") - 1
  seen = row_offsets(site)
  number = seen[places] - seen[table.fragments.offsets[rule]]
  keys = (-2 - codes[places]) << 32 | number
  distinct, inverse = np.unique(keys, return_inverse=True)
  flat[places] = speller.pool.add(
    [
      write_site(table.labels[key >> 32], (key & 0xFFFFFFFF) + 1)
      for key in distinct.tolist()
    ]
  ) + inverse.reshape(-1)
  keep = np.ones(len(codes), np.bool_)
  keep[places + 1] = False
  ends = row_offsets(keep)
  return Ragged(flat=flat[keep], offsets=ends[table.fragments.offsets])


def spell_lines(speller: Speller, parts: Sequence[Ragged]) -> bytes:
  """Lays out N lines, the pieces of all parts in order.

  Spaces before a line's end are dropped.
  """
  data, offsets = speller.pool.packed()
  flat = np.concatenate([part.flat.astype(np.int64) for part in parts])
  starts = np.cumsum([0, *(len(part.flat) for part in parts)])
  rows = np.stack(
    [part.offsets + start for part, start in zip(parts, starts, strict=False)]
  )
  return _spell(data, offsets, flat, rows).tobytes()


@njit
def _spell(data, offsets, flat, rows):
  parts, size = rows.shape
  room = size
  for piece in flat:
    room += offsets[piece + 1] - offsets[piece]
  out = np.empty(room, np.uint8)
  position = 0
  for row in range(size - 1):
    for part in range(parts):
      for item in range(rows[part, row], rows[part, row + 1]):
        start = offsets[flat[item]]
        end = offsets[flat[item] + 1]
        if start < end and data[start] == _BACK:
          position -= 1
          start += 1
        for byte in range(start, end):
          out[position] = data[byte]
          position += 1
    while position and out[position - 1] == _SPACE:
      position -= 1
    out[position] = _NEWLINE
    position += 1
  return out[:position]
