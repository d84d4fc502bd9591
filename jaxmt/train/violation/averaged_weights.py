"""Sparse averaged weights: few dense features by name, millions by key.

The weights of sparse features stand in an open-addressing table that kernels
read as `feature_keys.KeyTable`. Beside each stands its *lagged* sum: every
update times the number of steps before it, from which the average of the
weights after each step follows without touching those that did not change. A
*witness* says where a feature was first seen, so that its name can be spelled
when weights are written.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.features import feature_keys
from jaxmt.features.feature_keys import KeyedWeights, KeyTable
from jaxmt.text.kernels import njit

WITNESS = 5  # columns: sentence, rule, begin, end, slot
_LOAD = 0.6  # a table fuller than this grows


@dataclasses.dataclass(kw_only=True)
class AveragedWeights:
  """The state of a learner; updates change it in place.

  Attributes:
    names: the F dense features.
    dense: their weights, float64 `[F]`.
    dense_lagged: their lagged sums, float64 `[F]`.
    table: current weights by key, S slots.
    lagged: float64 `[S]`.
    place: number of the key in each slot in order of appearance, int32 `[S]`.
    witness: of the keys in that order, int32 `[C, 5]`, C at least `count`.
    count: keys in the table.
    steps: minibatches so far.
  """

  names: tuple[str, ...]
  dense: np.ndarray
  dense_lagged: np.ndarray
  table: KeyTable
  lagged: np.ndarray
  place: np.ndarray
  witness: np.ndarray
  count: int = 0
  steps: int = 0

  @property
  def current(self) -> KeyedWeights:
    """The weights that decode the next minibatch; not a copy."""
    named = dict(zip(self.names, self.dense.tolist(), strict=True))
    return KeyedWeights(named=named, table=self.table)

  def average(self) -> KeyedWeights:
    """Returns the mean of the weights after each step."""
    steps = max(self.steps, 1)
    dense = self.dense - self.dense_lagged / steps
    values = self.table.values - self.lagged / steps
    return KeyedWeights(
      named=dict(zip(self.names, dense.tolist(), strict=True)),
      table=KeyTable(self.table.keys, values),
    )

  @property
  def nonzero(self) -> int:
    """Sparse features whose current weight is not 0."""
    return int(np.count_nonzero(self.table.values))


def begin(weights: Mapping[str, float], names: Sequence[str]):
  """Returns the state before learning, with given dense weights."""
  return AveragedWeights(
    names=tuple(names),
    dense=np.array([weights.get(name, 0.0) for name in names], np.float64),
    dense_lagged=np.zeros(len(names)),
    table=_empty(1 << 10),
    lagged=np.zeros(1 << 10),
    place=np.zeros(1 << 10, np.int32),
    witness=np.zeros((0, WITNESS), np.int32),
  )


def _empty(size: int) -> KeyTable:
  return KeyTable(np.zeros(size, np.uint64), np.zeros(size, np.float64))


def step(
  state: AveragedWeights,
  *,
  dense: np.ndarray,
  keys: np.ndarray,
  values: np.ndarray,
  witness: np.ndarray,
) -> None:
  """Adds an update to the weights and counts a step.

  Args:
    state: is changed.
    dense: `[F]`.
    keys: uint64 `[N]`; a key may stand there several times.
    values: float64 `[N]`.
    witness: of each key, int32 `[N, 5]`; used for new keys.
  """
  state.dense += dense
  state.dense_lagged += state.steps * dense
  _reserve(state, state.count + len(keys))
  state.count = _add(
    np.ascontiguousarray(keys, np.uint64),
    np.ascontiguousarray(values, np.float64),
    np.ascontiguousarray(witness, np.int32),
    tuple(state.table),
    (state.lagged, state.place, state.witness),
    state.count,
    float(state.steps),
  )
  state.steps += 1


def put(state: AveragedWeights, keys: np.ndarray, values: np.ndarray) -> None:
  """Adds weights that were there before the first step.

  Args:
    state: is changed.
    keys: uint64 `[N]`.
    values: float64 `[N]`.
  """
  witness = np.full((len(keys), WITNESS), -1, np.int32)
  nothing = np.zeros(len(state.names))
  steps, state.steps = state.steps, 0
  step(state, dense=nothing, keys=keys, values=values, witness=witness)
  state.steps = steps


def between(
  start: Mapping[str, float], weights: KeyedWeights, share: float
) -> KeyedWeights:
  """Returns `start + share * (weights - start)`.

  Args:
    start: by name; sparse features of the start have their keys in `weights`.
    weights: where learning has come to.
    share: of the way; 1 gives the weights themselves, bit by bit.
  """
  if share == 1.0:
    return weights
  named = {
    name: start.get(name, 0.0) + share * (value - start.get(name, 0.0))
    for name, value in weights.named.items()
  }
  keys, values = weights.table
  sparse = {
    name: value for name, value in start.items() if value and name not in named
  }
  order = np.argsort(keys, kind="stable")
  wanted = feature_keys.keys_of(tuple(sparse))
  base = np.zeros(len(values))
  base[order[np.searchsorted(keys, wanted, sorter=order)]] = [*sparse.values()]
  moved = base + share * (values - base)
  return KeyedWeights(named=named, table=KeyTable(keys, moved))


def _reserve(state: AveragedWeights, needed: int) -> None:
  """Makes room for some keys."""
  if needed > len(state.witness):
    larger = np.zeros((max(needed, 2 * state.count), WITNESS), np.int32)
    larger[: state.count] = state.witness[: state.count]
    state.witness = larger
  size = len(state.table.keys)
  if needed <= _LOAD * size:
    return
  while needed > _LOAD * size:
    size *= 2
  table, lagged = _empty(size), np.zeros(size)
  place = np.zeros(size, np.int32)
  _move((*state.table, state.lagged, state.place), (*table, lagged, place))
  state.table, state.lagged, state.place = table, lagged, place


@njit
def _slot(key, keys):
  """The slot of a key, or the free one for it."""
  mask = np.uint64(len(keys) - 1)
  slot = key & mask
  while keys[slot] != 0 and keys[slot] != key:
    slot = (slot + np.uint64(1)) & mask
  return slot


@njit
def _move(old, new):
  keys, values, lagged, place = old
  for item in range(len(keys)):
    if keys[item] != 0:
      slot = _slot(keys[item], new[0])
      new[0][slot], new[1][slot] = keys[item], values[item]
      new[2][slot], new[3][slot] = lagged[item], place[item]


@njit
def _add(new_keys, new_values, new_witness, table, columns, count, steps):
  keys, values = table
  lagged, place, witness = columns
  for item in range(len(new_keys)):
    slot = _slot(new_keys[item], keys)
    if keys[slot] == 0:
      keys[slot] = new_keys[item]
      place[slot] = count
      for column in range(witness.shape[1]):
        witness[count, column] = new_witness[item, column]
      count += 1
    values[slot] += new_values[item]
    lagged[slot] += steps * new_values[item]
  return count


def to_values(state: AveragedWeights) -> dict[str, Any]:
  """Returns the state as arrays and JSON values, keys as they appeared."""
  used = np.flatnonzero(state.table.keys)
  order = used[np.argsort(state.place[used])]
  return {
    "names": list(state.names),
    "dense": state.dense,
    "dense_lagged": state.dense_lagged,
    "keys": state.table.keys[order],
    "values": state.table.values[order],
    "lagged": state.lagged[order],
    "witness": state.witness[: state.count],
    "steps": state.steps,
  }


def from_values(values: Mapping[str, Any]) -> AveragedWeights:
  """Returns the state that `to_values` took apart, bit by bit."""
  state = begin({}, values["names"])
  state.dense = np.array(values["dense"])
  state.dense_lagged = np.array(values["dense_lagged"])
  keys = np.array(values["keys"])
  _reserve(state, len(keys))
  state.count = _add(
    keys,
    np.array(values["values"]),
    np.array(values["witness"]),
    tuple(state.table),
    (state.lagged, state.place, state.witness),
    0,
    0.0,
  )
  _set(keys, np.array(values["lagged"]), state.table.keys, state.lagged)
  state.steps = int(values["steps"])
  return state


@njit
def _set(keys, values, slots, out):
  for item in range(len(keys)):
    out[_slot(keys[item], slots)] = values[item]
