"""Rules as rows of int32: what extraction emits, sorts, merges and counts.

A rule and its word links are one row,

    source ... SEP target ... SEP lhs kind fragment ... SEP link ...

with symbols as in `table.py`, `SEP` smaller than any symbol, and each link
`source position * 65536 + target position`. Rows are ordered as sequences of
integers, a shorter one before its extensions, so that rules with one source
side are neighbours, and so are a rule's variants with different links.
"""

import dataclasses

import numpy as np

from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import RuleTable
from jaxmt.text import scan
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

SEP = -(2**31)
LINK_BASE = 1 << 16

# Counts are whole multiples of 1 / COUNT_UNIT, so that sums do not depend on
# their order: any split of the corpus gives the same bits.
COUNT_UNIT = 1 << 32

_BLOCK = 12  # rows sorted by insertion before merging starts


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnpackedRules:
  """The columns of `RuleTable` that a row holds; N rules."""

  lhs: np.ndarray
  kind: np.ndarray
  source: Ragged
  target: Ragged
  links: Ragged
  fragments: Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class Emission:
  """N rule occurrences, in no particular order.

  Attributes:
    rows: the rules with their links, see `packed_rules`.
    sentences: the sentence each was found in, int32 `[N]`.
    shares: its count in units of 1 / `COUNT_UNIT`, int64 `[N]`.
  """

  rows: Ragged
  sentences: np.ndarray
  shares: np.ndarray


def pack(table: RuleTable) -> Ragged:
  """Returns each rule of a table as a row."""
  parts = (table.source, table.target, table.fragments, table.links)
  lengths = sum(part.lengths for part in parts) + 5
  offsets = row_offsets(lengths)
  flat = np.empty(offsets[-1], np.int32)
  links = table.links.flat.astype(np.int32)
  codes = np.ascontiguousarray(links[:, 0] * LINK_BASE + links[:, 1])
  _pack(
    flat,
    offsets,
    (table.lhs, table.kind),
    (table.source.flat, table.source.offsets),
    (table.target.flat, table.target.offsets),
    (table.fragments.flat, table.fragments.offsets),
    (codes, table.links.offsets),
  )
  return Ragged(flat=flat, offsets=offsets)


@njit
def _copy(flat, position, symbols, start, end):
  for item in range(start, end):
    flat[position] = symbols[item]
    position += 1
  return position


@njit
def _copy_row(flat, position, text, row):
  """Appends a row of a text, a flat array with its offsets."""
  symbols, offsets = text
  return _copy(flat, position, symbols, offsets[row], offsets[row + 1])


@njit
def _pack(flat, offsets, heads, source, target, fragments, links):
  """Writes all rows; texts are pairs of flat arrays and offsets."""
  lhs, kind = heads
  for row in range(len(offsets) - 1):
    position = _copy_row(flat, offsets[row], source, row)
    flat[position] = SEP
    position = _copy_row(flat, position + 1, target, row)
    flat[position] = SEP
    flat[position + 1] = lhs[row]
    flat[position + 2] = kind[row]
    position = _copy_row(flat, position + 3, fragments, row)
    flat[position] = SEP
    _copy_row(flat, position + 1, links, row)


def unpack(rows: Ragged) -> UnpackedRules:
  """Returns the columns of packed rows."""
  lhs, kind, offsets = _measure(rows.flat, rows.offsets)
  flats = _unpack(rows.flat, rows.offsets, *offsets)
  source, target, fragments, links = (
    Ragged(flat=flat, offsets=offset)
    for flat, offset in zip(flats, offsets, strict=True)
  )
  pairs = np.stack([links.flat // LINK_BASE, links.flat % LINK_BASE], axis=1)
  return UnpackedRules(
    lhs=lhs,
    kind=kind,
    source=source,
    target=target,
    links=Ragged(flat=pairs.astype(np.int16), offsets=links.offsets),
    fragments=fragments,
  )


@njit
def _measure(flat, offsets):
  """The scalar columns, and the offsets of the four ragged ones."""
  size = len(offsets) - 1
  lhs = np.empty(size, np.int32)
  kind = np.empty(size, np.int8)
  source = np.zeros(size + 1, np.int64)
  target = np.zeros(size + 1, np.int64)
  fragments = np.zeros(size + 1, np.int64)
  links = np.zeros(size + 1, np.int64)
  for row in range(size):
    first = field_end(flat, offsets[row])
    second = field_end(flat, first + 1)
    third = field_end(flat, second + 1)
    lhs[row] = flat[second + 1]
    kind[row] = flat[second + 2]
    source[row + 1] = source[row] + first - offsets[row]
    target[row + 1] = target[row] + second - first - 1
    fragments[row + 1] = fragments[row] + third - second - 3
    links[row + 1] = links[row] + offsets[row + 1] - third - 1
  return lhs, kind, (source, target, fragments, links)


@njit
def _unpack(flat, offsets, source, target, fragments, links):
  size = len(offsets) - 1
  source_flat = np.empty(source[size], np.int32)
  target_flat = np.empty(target[size], np.int32)
  fragment_flat = np.empty(fragments[size], np.int32)
  link_flat = np.empty(links[size], np.int32)
  for row in range(size):
    first = field_end(flat, offsets[row])
    second = field_end(flat, first + 1)
    third = field_end(flat, second + 1)
    _copy(source_flat, source[row], flat, offsets[row], first)
    _copy(target_flat, target[row], flat, first + 1, second)
    _copy(fragment_flat, fragments[row], flat, second + 3, third)
    _copy(link_flat, links[row], flat, third + 1, offsets[row + 1])
  return source_flat, target_flat, fragment_flat, link_flat


@njit
def field_end(flat, position):
  """Where the next `SEP` at or after `position` is."""
  while flat[position] != SEP:
    position += 1
  return position


@njit
def _less(flat, offsets, left, right, depth):
  """Whether row `left` sorts before row `right`; both agree before `depth`."""
  left_start = offsets[left]
  right_start = offsets[right]
  left_size = offsets[left + 1] - left_start
  right_size = offsets[right + 1] - right_start
  for place in range(depth, min(left_size, right_size)):
    one = flat[left_start + place]
    other = flat[right_start + place]
    if one != other:
      return one < other
  return left_size < right_size


@njit
def _prefixes(flat, offsets):
  """The first two symbols of each row as one number that sorts alike."""
  keys = np.zeros(len(offsets) - 1, np.uint64)
  for row in range(len(keys)):
    for place in range(2):
      keys[row] <<= np.uint64(32)
      if offsets[row] + place < offsets[row + 1]:
        symbol = np.int64(flat[offsets[row] + place])
        # SEP maps to 1: a missing symbol, 0, sorts before everything.
        keys[row] |= np.uint64(symbol - SEP + 1) & np.uint64(0xFFFFFFFF)
  return keys


@njit
def _sort_blocks(flat, offsets, keys, order):
  """Sorts blocks of `_BLOCK` rows by insertion, in place."""
  size = len(order)
  for start in range(0, size, _BLOCK):
    for item in range(start + 1, min(start + _BLOCK, size)):
      row = order[item]
      key = keys[item]
      place = item
      while place > start and (
        key < keys[place - 1]
        or (
          key == keys[place - 1]
          and _less(flat, offsets, row, order[place - 1], 2)
        )
      ):
        keys[place] = keys[place - 1]
        order[place] = order[place - 1]
        place -= 1
      keys[place] = key
      order[place] = row


@njit
def _merge_pair(
  flat, offsets, keys, order, new_keys, new_order, start, middle, end
):
  """Merges two sorted neighbours; equal rows keep their order."""
  left = start
  right = middle
  for place in range(start, end):
    if right >= end:
      take_left = True
    elif left >= middle:
      take_left = False
    elif keys[left] != keys[right]:
      take_left = keys[left] < keys[right]
    else:
      take_left = not _less(flat, offsets, order[right], order[left], 2)
    source = left if take_left else right
    new_keys[place] = keys[source]
    new_order[place] = order[source]
    if take_left:
      left += 1
    else:
      right += 1


@njit
def _merge_all(flat, offsets, keys, order, bounds):
  """Merges neighbouring sorted stretches until one is left."""
  other_keys = np.empty_like(keys)
  other_order = np.empty_like(order)
  stretches = len(bounds) - 1
  while stretches > 1:
    merged = 0
    for pair in range(0, stretches, 2):
      start = bounds[pair]
      middle = bounds[min(pair + 1, stretches)]
      end = bounds[min(pair + 2, stretches)]
      _merge_pair(
        flat, offsets, keys, order, other_keys, other_order, start, middle, end
      )
      merged += 1
      bounds[merged] = end
    stretches = merged
    keys, other_keys = other_keys, keys
    order, other_order = other_order, order
  return order


@njit
def sort_rows(flat, offsets, bounds):
  """Returns the stable order that sorts rows.

  Args:
    flat: int32 `[T]`.
    offsets: int64 `[N + 1]`.
    bounds: int64, the ends of stretches known to be sorted, `0, ..., N`; an
      empty array if nothing is known.

  Returns:
    int64 `[N]`.
  """
  size = len(offsets) - 1
  keys = _prefixes(flat, offsets)
  order = np.arange(size)
  if len(bounds):
    stretches = bounds.copy()
  else:
    _sort_blocks(flat, offsets, keys, order)
    blocks = (size + _BLOCK - 1) // _BLOCK
    stretches = np.minimum(np.arange(blocks + 1) * _BLOCK, size)
  return _merge_all(flat, offsets, keys, order, stretches)


def take(rows: Ragged, order: np.ndarray) -> Ragged:
  """Returns the given rows of a one-dimensional `Ragged`, in that order."""
  lengths = rows.offsets[order + 1] - rows.offsets[order]
  offsets = row_offsets(lengths)
  flat = _take(np.asarray(rows.flat), rows.offsets, order, offsets)
  return Ragged(flat=flat, offsets=offsets)


@njit
def _take(flat, offsets, order, new_offsets):
  out = np.empty(new_offsets[-1], flat.dtype)
  for item in range(len(order)):
    start = offsets[order[item]]
    _copy(out, new_offsets[item], flat, start, offsets[order[item] + 1])
  return out


def group(rows: Ragged) -> tuple[np.ndarray, np.ndarray]:
  """Gives equal int32 rows equal ids.

  Returns:
    `(ids int32 [N], first int64 [G])`: ids in order of first occurrence, and
    the row that introduced each.
  """
  data = np.ascontiguousarray(rows.flat, np.int32).view(np.uint8)
  return scan.intern_spans(data, 4 * rows.offsets[:-1], 4 * rows.offsets[1:])


def sort_canonical(table: RuleTable) -> RuleTable:
  """Returns the rules in the order of their rows: by source side first."""
  rows = pack(table)
  order = sort_rows(rows.flat, rows.offsets, np.zeros(0, np.int64))
  return table_lib.select(table, order)
