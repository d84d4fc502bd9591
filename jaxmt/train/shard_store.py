"""What shards of an iteration gave, in a `Store`."""

from collections.abc import Sequence

import numpy as np

from jaxmt.text.ragged import Ragged
from jaxmt.train import counts as counts_lib
from jaxmt.train.checkpoint_store import Store, Values
from jaxmt.train.counts import Contributions
from jaxmt.train.shard_counting import Counted, Shard


def entry(name: str, number: int, shard: Shard) -> str:
  """What a shard of an iteration is called in the store."""
  return f"{name}{number}-shard{shard.number}"


def put(store: Store, name: str, counted: Counted) -> None:
  """Keeps what a shard gave."""
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
  """Returns what a shard gave.

  Raises:
    ValueError: if the store does not have it.
  """
  values = store.get(name)
  if values is None:
    raise ValueError(f"'{name}' is gone from the store")
  return Counted(
    made=own_of(values),
    values=values["values"],
    admissible=values["admissible"],
    derived=values["derived"],
  )


def own_values(made: Contributions) -> dict[str, np.ndarray]:
  """Contributions as named arrays."""
  return {
    "rules": made.rules.flat,
    "offsets": made.rules.offsets,
    "units": made.units,
  }


def own_of(values: Values) -> Contributions:
  """Contributions from named arrays, see `own_values`."""
  return Contributions(
    rules=Ragged(
      flat=np.asarray(values["rules"]), offsets=np.asarray(values["offsets"])
    ),
    units=np.asarray(values["units"]),
  )


def collect(
  store: Store, name: str, number: int, shards: Sequence[Shard]
) -> Contributions | None:
  """What all sentences gave to an iteration, in the order of the text.

  None if the store does not have all shards, or has sums only.
  """
  entries = [entry(name, number, shard) for shard in shards]
  found = [store.get(one) for one in entries]
  made = [own_of(values) for values in found if values is not None]
  sizes = [len(shard.rows) for shard in shards]
  if [len(part) for part in made] != sizes:
    return None
  rows = np.concatenate([shard.rows for shard in shards])
  return counts_lib.select(counts_lib.concatenate(made), np.argsort(rows))
