"""Values by 64-bit keys: a hash table of two arrays, for host kernels."""

from typing import NamedTuple

import numpy as np

from jaxmt.text.kernels import njit


class KeyTable(NamedTuple):
  """Values by key: open addressing, slots of key 0 are free."""

  keys: np.ndarray
  values: np.ndarray


def key_table(keys: np.ndarray, values: np.ndarray) -> KeyTable:
  """Returns a table of distinct keys, uint64 `[N]`, none of them 0."""
  size = 16
  while size < 2 * len(keys):
    size *= 2
  table = KeyTable(np.zeros(size, np.uint64), np.zeros(size, np.float64))
  _fill(keys, values, table)
  return table


@njit
def _fill(keys, values, table):
  slots, out = table
  mask = np.uint64(len(slots) - 1)
  for number in range(len(keys)):
    slot = keys[number] & mask
    while slots[slot] != 0:
      slot = (slot + np.uint64(1)) & mask
    slots[slot], out[slot] = keys[number], values[number]


@njit
def look_up(key, table):
  """Returns the value of a key, 0 if it has none."""
  slots, values = table
  mask = np.uint64(len(slots) - 1)
  slot = key & mask
  while slots[slot] != 0:
    if slots[slot] == key:
      return values[slot]
    slot = (slot + np.uint64(1)) & mask
  return 0.0
