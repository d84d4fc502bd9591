"""What a long training keeps of its way, so that it can go on after a kill."""

from collections.abc import Mapping
from typing import Any, Protocol

Values = Mapping[str, Any]


class Store(Protocol):
  """Named results that are whole or absent; `checkpoint.Partial` is one."""

  def get(self, name: str) -> Values | None:
    """Returns the values kept under a name, None if there are none."""

  def put(self, name: str, values: Values) -> None:
    """Keeps arrays, lists of strings and JSON values under a name."""

  def drop(self, name: str) -> None:
    """Forgets what is kept under a name, if anything is."""


class Memory:
  """A `Store` that lives as long as the process."""

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
