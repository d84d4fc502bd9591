"""Tables of phrase dependencies: the value of a feature for each event.

The value of an event is its log probability, shifted so that it is positive
(Gimpel 2012, section 4.4): `C + log p` with `C = 0.01 - min log p` of its
feature. Events that were never seen have the value 0: what was seen is never
worse.
"""

import dataclasses

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar import dependency_events as events
from jaxmt.text import array_folder
from jaxmt.text.key_table import KeyTable, key_table

FORMAT, VERSION = "jaxmt phrase dependencies", 1
LEAST = 0.01  # value of the least likely event


@dataclasses.dataclass(frozen=True, kw_only=True)
class DependencyTable:
  """Values of K events.

  Attributes:
    keys: of the events, rising, uint64 `[K]`; see `dependency_events`.
    values: float32 `[K]`.
    sizes: events of each feature, int64 `[len(FEATURES)]`.
    slots: the same as keys and values, for looking up.
  """

  keys: np.ndarray
  values: np.ndarray
  sizes: np.ndarray
  slots: KeyTable

  def __len__(self) -> int:
    return len(self.keys)


def make_table(
  keys: np.ndarray, logs: np.ndarray, kinds: np.ndarray
) -> DependencyTable:
  """Returns a table.

  Args:
    keys: of the events, uint64 `[K]`.
    logs: their log probabilities, `[K]`.
    kinds: the feature of each, `[K]`.
  """
  size = len(events.FEATURES)
  least = np.zeros(size)
  np.minimum.at(least, kinds, logs)
  values = (LEAST - least[kinds] + logs).astype(np.float32)
  order = np.argsort(keys, kind="stable")
  sizes = np.bincount(kinds, minlength=size)
  return of_columns(keys[order], values[order], sizes)


def of_columns(
  keys: np.ndarray, values: np.ndarray, sizes: np.ndarray
) -> DependencyTable:
  """Returns the table with these columns, see `DependencyTable`."""
  return DependencyTable(
    keys=keys,
    values=values,
    sizes=np.asarray(sizes, np.int64),
    slots=key_table(keys, values.astype(np.float64)),
  )


def save(path: str, table: DependencyTable) -> None:
  """Writes a table as a folder of arrays.

  Raises:
    InputError: if something else is there, or writing fails.
  """
  with array_folder.open_writer(path) as out:
    out.meta = {"format": FORMAT, "version": VERSION}
    for name in ("keys", "values", "sizes"):
      out.append(name, getattr(table, name))


def load(path: str) -> DependencyTable:
  """Reads a table.

  Raises:
    InputError: naming the file that is missing, damaged, or does not fit.
  """
  folder = array_folder.open_folder(path, verify=True)
  if folder.meta.get("format") != FORMAT:
    raise InputError("no table of phrase dependencies", path=path)
  if folder.meta.get("version") != VERSION:
    version = folder.meta.get("version")
    raise InputError(f"version {version}, not {VERSION}", path=path)
  keys, values, sizes = map(folder.array, ("keys", "values", "sizes"))
  fits = (
    keys.dtype == np.uint64
    and values.dtype == np.float32
    and sizes.dtype == np.int64
    and keys.ndim == 1
    and keys.shape == values.shape
    and sizes.shape == (len(events.FEATURES),)
    and (sizes >= 0).all()
    and sizes.sum() == len(keys)
  )
  if not fits:
    raise InputError("its columns do not fit", path=path)
  if len(keys) and not (keys[0] > 0 and np.all(keys[1:] > keys[:-1])):
    raise InputError("its keys do not rise", path=path)
  if not np.all((values > 0) & (values < 1e3)):
    raise InputError("it has values that cannot be", path=path)
  return of_columns(np.array(keys), np.array(values), sizes)
