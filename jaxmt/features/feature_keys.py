"""Features by the hash of their name: no table of names is needed.

A name is a polynomial in its bytes modulo the prime 2^61 - 1, so the key of a
concatenation follows from the keys of its parts:

    key(a + b) = key(a) * BASE^len(b) + key(b)

Kernels put keys together from the parts of a name (words, separators) without
spelling it, and weights read from a file have the same keys. Two given names of
at most L bytes collide with probability L / 2^61: among a million features with
names of 64 bytes, any two do with probability 1.4e-5.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jaxmt.text import scan
from jaxmt.text.kernels import njit
from jaxmt.text.key_table import KeyTable, key_table, look_up

_MODULUS = np.uint64((1 << 61) - 1)
_BASE = np.uint64(0x0B3C5A1D7F2E9641)  # any number below the modulus
_LOW31 = np.uint64((1 << 31) - 1)
_LOW30 = np.uint64((1 << 30) - 1)


class NamePieces(NamedTuple):
  """Parts of names: text, key and how a key shifts when they are appended."""

  data: np.ndarray
  offsets: np.ndarray
  keys: np.ndarray
  powers: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeyedWeights(Mapping[str, float]):
  """Weights of few features by name, and of many by key.

  As a mapping it has the weights of all names that are asked for, and lists
  those of `named` only.

  Attributes:
    named: weights by name.
    table: weights by key.
  """

  named: Mapping[str, float]
  table: KeyTable

  def __getitem__(self, name: str) -> float:
    """Returns the weight of a name."""
    if name in self.named:
      return self.named[name]
    value = look_up(keys_of([name])[0], self.table)
    if not value:
      raise KeyError(name)
    return float(value)

  def __iter__(self) -> Iterator[str]:
    """Lists the names of `named`."""
    return iter(self.named)

  def __len__(self) -> int:
    """Returns how many `named` has."""
    return len(self.named)


@njit
def multiply(a, b):
  """Returns `a * b` modulo 2^61 - 1, for numbers below it; uint64."""
  a_high, a_low = a >> np.uint64(31), a & _LOW31
  b_high, b_low = b >> np.uint64(31), b & _LOW31
  middle = a_low * b_high + a_high * b_low
  total = (
    np.uint64(2) * a_high * b_high
    + (middle >> np.uint64(30))
    + ((middle & _LOW30) << np.uint64(31))
    + a_low * b_low
  )
  total = (total & _MODULUS) + (total >> np.uint64(61))
  return total - _MODULUS if total >= _MODULUS else total


@njit
def append(key, power, more):
  """Returns the key of a name followed by a piece of (power, key)."""
  total = multiply(key, power) + more
  return total - _MODULUS if total >= _MODULUS else total


@njit
def _hash_lines(data, count):
  """Keys, powers and begins of newline-ended lines."""
  keys = np.zeros(count, np.uint64)
  powers = np.ones(count, np.uint64)
  offsets = np.zeros(count + 1, np.int64)
  line, hashed = 0, 0
  for place in range(len(data)):
    if data[place] == scan.NEWLINE:
      line += 1
      offsets[line] = hashed
      continue
    keys[line] = append(
      keys[line], _BASE, np.uint64(data[place]) + np.uint64(1)
    )
    powers[line] = multiply(powers[line], _BASE)
    hashed += 1
  return keys, powers, offsets


def make_pieces(texts: Sequence[str]) -> NamePieces:
  """Returns the pieces with these texts, in this order."""
  data = scan.join_lines(texts)
  keys, powers, offsets = _hash_lines(data, len(texts))
  return NamePieces(
    data=data[data != scan.NEWLINE], offsets=offsets, keys=keys, powers=powers
  )


def join_pieces(first: NamePieces, second: NamePieces) -> NamePieces:
  """Returns the pieces of both, those of `second` numbered after the first."""
  return NamePieces(
    data=np.concatenate([first.data, second.data]),
    offsets=np.concatenate(
      [first.offsets, second.offsets[1:] + first.offsets[-1]]
    ),
    keys=np.concatenate([first.keys, second.keys]),
    powers=np.concatenate([first.powers, second.powers]),
  )


def keys_of(names: Sequence[str]) -> np.ndarray:
  """Returns the keys of names, uint64 `[N]`."""
  data = scan.join_lines(names)
  return _hash_lines(data, len(names))[0]


def make_table(weights: Mapping[str, float]) -> KeyTable:
  """Returns non-zero weights by key; those of `KeyedWeights` are not copied."""
  if isinstance(weights, KeyedWeights):
    return weights.table
  nonzero = {name: value for name, value in weights.items() if value}
  return key_table(
    keys_of(tuple(nonzero)), np.array([*nonzero.values()], np.float64)
  )


@njit
def append_number(key, power, number):
  """Returns key and power of a sequence of numbers with one more, from 0.

  Sequences of numbers (word ids) have keys as names do: that of the empty one
  is 0, and `append(key, power of the second, second key)` joins two.
  """
  return (
    append(key, _BASE, np.uint64(number) + np.uint64(1)),
    multiply(power, _BASE),
  )


@njit
def sum_rows(keys, offsets, table):
  """Returns the summed values of each row of keys, float64 `[N]`."""
  out = np.zeros(len(offsets) - 1, np.float64)
  for row in range(len(out)):
    for place in range(offsets[row], offsets[row + 1]):
      out[row] += look_up(keys[place], table)
  return out
