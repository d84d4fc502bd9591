"""What k-best records say: spelling, hashing and finding word strings.

Columns of a record: edge, left, right (of the node's skew heap), next (of the
node's list), kids (one record per tail; -1 stands for the tail's first).
"""

import numpy as np

from jaxmt.text.kernels import GOLDEN, mixed, njit

EDGE, LEFT, RIGHT, NEXT, KIDS = 0, 1, 2, 3, 4
_BASE = GOLDEN  # odd, so that powers never vanish
_OTHER_BASE = np.uint64(0xD1B54A32D192ED03)


@njit
def _mix(value):
  """A 64-bit number that looks random, also of 0."""
  return mixed(np.uint64(value) + GOLDEN)


@njit
def grown(array, size):
  """The same array with room for `size` items."""
  out = np.empty(size, np.int32)
  for item in range(len(array)):
    out[item] = array[item]
  return out


@njit
def deeper(stack):
  """The same stack with room for as many again."""
  out = np.empty((2 * len(stack), 2), np.int64)
  for item in range(len(stack)):
    out[item, 0], out[item, 1] = stack[item, 0], stack[item, 1]
  return out


@njit
def code(record, records, hashes, forest, target):
  """Two polynomial hashes of a record's words, and powers for its length."""
  rule = forest[3][records[record, EDGE]]
  flat, offsets, copied = target
  num_rules = len(offsets) - 1
  low, high = 0, 1
  if rule < num_rules:
    low, high = offsets[rule], offsets[rule + 1]
  one, two = np.uint64(0), np.uint64(0)
  one_power, two_power = np.uint64(1), np.uint64(1)
  for place in range(low, high):
    symbol = np.int64(-1)  # the goal's: its tail
    if rule > num_rules:
      symbol = np.int64(copied[rule - num_rules - 1])
    elif rule < num_rules:
      symbol = np.int64(flat[place])
    if symbol >= 0:
      word = _mix(symbol)
      one = one * _BASE + word
      two = two * _OTHER_BASE + _mix(word)
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
def spell(record, records, forest, target, words, stack):
  """Writes a record's words; returns `(number, words, stack)`, grown ones."""
  flat, offsets, copied = target
  num_rules = len(offsets) - 1
  count, top = 0, 1
  stack[0, 0], stack[0, 1] = record, 0
  while top:
    now, place = stack[top - 1, 0], stack[top - 1, 1]
    rule = forest[3][records[now, EDGE]]
    symbol = np.int64(0)
    if rule > num_rules:
      symbol, top = np.int64(copied[rule - num_rules - 1]), top - 1
    elif rule == num_rules:
      symbol, top = np.int64(-1), top - 1
    elif place == offsets[rule + 1] - offsets[rule]:
      top -= 1
      continue
    else:
      symbol = np.int64(flat[offsets[rule] + place])
      stack[top - 1, 1] += 1
    if symbol >= 0:
      if count == len(words):
        words = grown(words, 2 * count)
      words[count] = symbol
      count += 1
      continue
    if top == len(stack):
      stack = deeper(stack)
    stack[top, 0], stack[top, 1] = records[now, KIDS - 1 - symbol], 0
    top += 1
  return count, words, stack


@njit
def seen_before(record, node, recorded, forest, target, table):
  """Finds the words of a record among those kept at its node.

  Equal hashes of 128 bits count as equal words below the root; at the root,
  where strings are returned, they are compared.

  Returns:
    `(place, words, words, stack)`: the free place of the table, -1 if the same
    words are there; and the buffers, which may have grown.
  """
  slots, one, two, stack, compare = table
  records, hashes = recorded
  mask = np.uint64(len(slots) - 1)
  place = _mix(hashes[record, 0] ^ _mix(node)) & mask
  while slots[place, 0] >= 0:
    other = slots[place, 0]
    same = (
      slots[place, 1] == node
      and hashes[other, 0] == hashes[record, 0]
      and hashes[other, 1] == hashes[record, 1]
    )
    if same and compare:
      length, one, stack = spell(record, records, forest, target, one, stack)
      size, two, stack = spell(other, records, forest, target, two, stack)
      same = length == size
      for word in range(min(length, size)):
        same = same and one[word] == two[word]
    if same:
      return np.int64(-1), one, two, stack
    place = (place + np.uint64(1)) & mask
  return np.int64(place), one, two, stack


@njit
def rehash(slots, hashes):
  """A table of twice the size with the same entries."""
  more = np.full((2 * len(slots), 2), -1, np.int32)
  mask = np.uint64(len(more) - 1)
  for item in range(len(slots)):
    if slots[item, 0] >= 0:
      node = slots[item, 1]
      place = _mix(hashes[slots[item, 0], 0] ^ _mix(node)) & mask
      while more[place, 0] >= 0:
        place = (place + np.uint64(1)) & mask
      more[place, 0], more[place, 1] = slots[item, 0], node
  return more
