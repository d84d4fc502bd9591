"""Hash sets of strings: which strings a node of a forest has yielded already.

Strings are not built to compare them. Every record of the k-best enumeration
(see `lazy_kbest`) has two polynomial hashes of its words, which follow from
those of its parts.
"""

import numpy as np

from jaxmt.hypergraph.derivations import (
  spell_item,
  string_range,
  symbol_at,
)
from jaxmt.text.kernels import GOLDEN, mixed, njit

# Columns of a record: the edge, both sides of the node's skew heap, the next
# record of the node's list, and one record for each tail.
EDGE, LEFT, RIGHT, NEXT, KIDS = 0, 1, 2, 3, 4
_BASE = GOLDEN  # odd, so that powers never vanish
_OTHER_BASE = np.uint64(0xD1B54A32D192ED03)


@njit
def mix(value):
  """A 64-bit number that looks random, also of 0."""
  return mixed(np.uint64(value) + GOLDEN)


@njit
def hash_string(record, records, hashes, strings):
  """Sets the hashes of a record's words, and the powers for its length."""
  row, flat, offsets, extra = strings
  low, high = string_range(row[records[record, EDGE]], flat, offsets)
  one, two = np.uint64(0), np.uint64(0)
  one_power, two_power = np.uint64(1), np.uint64(1)
  for place in range(low, high):
    symbol = symbol_at(place, flat, extra)
    if symbol >= 0:
      word = mix(symbol)
      one = one * _BASE + word
      two = two * _OTHER_BASE + mix(word)
      one_power *= _BASE
      two_power *= _OTHER_BASE
    else:
      kid = records[record, KIDS - 1 - symbol]
      one = one * hashes[kid, 2] + hashes[kid, 0]
      two = two * hashes[kid, 3] + hashes[kid, 1]
      one_power *= hashes[kid, 2]
      two_power *= hashes[kid, 3]
  hashes[record, 0], hashes[record, 1] = one, two
  hashes[record, 2], hashes[record, 3] = one_power, two_power


@njit
def first_place(record, node, slots, hashes):
  """Returns the place of the table at which a search begins."""
  mask = np.uint64(len(slots) - 1)
  return np.int64(mix(hashes[record, 0] ^ mix(node)) & mask)


@njit
def find_place(place, record, node, slots, hashes):
  """Looks the words of a record up among those of its node, by their hashes.

  Args:
    place: where to begin.
    record: the record.
    node: its node.
    slots: the table, int32 `[S, 2]`: a record and its node, -1 if free.
    hashes: of all records, uint64 `[R, 4]`.

  Returns:
    The first place that is free or has a record with the same hashes.
  """
  mask = np.int64(len(slots) - 1)
  while slots[place, 0] >= 0:
    other = slots[place, 0]
    if (
      slots[place, 1] == node
      and hashes[other, 0] == hashes[record, 0]
      and hashes[other, 1] == hashes[record, 1]
    ):
      break
    place = (place + 1) & mask
  return place


@njit
def compare_strings(one, other, records, strings, buffers):
  """Returns whether the words of two records are equal, and the buffers.

  Args:
    one: a record.
    other: another one.
    records: all records.
    strings: `EdgeStrings.columns`.
    buffers: room for the words of both and for a stack; they may grow.
  """
  first, second, stack = buffers
  length, first, stack = spell_item(one, records, KIDS, strings, first, stack)
  size, second, stack = spell_item(other, records, KIDS, strings, second, stack)
  same = length == size
  for word in range(min(length, size)):
    same = same and first[word] == second[word]
  return same, (first, second, stack)


@njit
def rehash(slots, hashes):
  """A table of twice the size with the same entries."""
  more = np.full((2 * len(slots), 2), -1, np.int32)
  mask = np.uint64(len(more) - 1)
  for item in range(len(slots)):
    if slots[item, 0] >= 0:
      node = slots[item, 1]
      place = mix(hashes[slots[item, 0], 0] ^ mix(node)) & mask
      while more[place, 0] >= 0:
        place = (place + np.uint64(1)) & mask
      more[place, 0], more[place, 1] = slots[item, 0], node
  return more
