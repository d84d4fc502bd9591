"""Checkpoint store for resumable training, and shards of iterations in it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.runtime.checkpoint import Store
from jaxmt.text.ragged import Ragged
from jaxmt.train import counts as counts_lib
from jaxmt.train.counts import Contributions
from jaxmt.train.shard_counting import Counted, Shard

Values = Mapping[str, Any]


class MemoryStore:
  """A `Store` in memory."""

  def __init__(self):
    self._values: dict[str, Values] = {}

  def get(self, name: str) -> Values | None:
    """See `Store`."""
    return self._values.get(name)

  def put(self, name: str, values: Values) -> None:
    """See `Store`."""
    self._values[name] = dict(values)

  def drop(self, name: str) -> None:
    """See `Store`."""
    self._values.pop(name, None)


def entry(name: str, number: int, shard: Shard) -> str:
  """Returns the name of a shard of an iteration in the store."""
  return f"{name}{number}-shard{shard.number}"


def put(store: Store, name: str, counted: Counted) -> None:
  """Stores the counts of a shard."""
  store.put(
    name,
    {
      **own_values(counted.made),
      "values": counted.values,
      "admissible": counted.admissible,
      "derived": counted.derived,
    },
  )


def load(store: Store, name: str) -> Counted:
  """Returns the counts of a shard.

  Raises:
    ValueError: if the store lacks it.
  """
  values = store.get(name)
  if values is None:
    raise ValueError(f"the store has no '{name}'")
  return Counted(
    made=own_of(values),
    values=values["values"],
    admissible=values["admissible"],
    derived=values["derived"],
  )


def own_values(contributions: Contributions) -> dict[str, np.ndarray]:
  """Returns contributions as named arrays."""
  return {
    "rules": contributions.rules.flat,
    "offsets": contributions.rules.offsets,
    "units": contributions.units,
  }


def own_of(values: Values) -> Contributions:
  """Returns the contributions that `own_values` took apart."""
  return Contributions(
    rules=Ragged(
      flat=np.asarray(values["rules"]), offsets=np.asarray(values["offsets"])
    ),
    units=np.asarray(values["units"]),
  )


def collect(
  store: Store, name: str, number: int, shards: Sequence[Shard]
) -> Contributions | None:
  """Returns what all sentences gave to an iteration, in order of the text.

  None if the store lacks a shard, or has only sums.
  """
  entries = [entry(name, number, shard) for shard in shards]
  stored = [store.get(one) for one in entries]
  contributions = [own_of(values) for values in stored if values is not None]
  sizes = [len(shard.rows) for shard in shards]
  if [len(part) for part in contributions] != sizes:
    return None
  rows = np.concatenate([shard.rows for shard in shards])
  return counts_lib.select(
    counts_lib.concatenate(contributions), np.argsort(rows)
  )
