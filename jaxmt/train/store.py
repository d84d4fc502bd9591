"""What a long training keeps of its way, so that it can go on after a kill."""

from collections.abc import Mapping
from typing import Any, Protocol


class Store(Protocol):
  """Named results that are whole or absent; `checkpoint.Partial` is one."""

  def get(self, name: str) -> Mapping[str, Any] | None:
    """Returns the values kept under a name, None if there are none."""

  def put(self, name: str, values: Mapping[str, Any]) -> None:
    """Keeps arrays, lists of strings and JSON values under a name."""

  def drop(self, name: str) -> None:
    """Forgets what is kept under a name, if anything is."""


class Memory:
  """A `Store` that lives as long as the process."""

  def __init__(self):
    self._values: dict[str, Mapping[str, Any]] = {}

  def get(self, name: str) -> Mapping[str, Any] | None:
    """See `Store`."""
    return self._values.get(name)

  def put(self, name: str, values: Mapping[str, Any]) -> None:
    """See `Store`."""
    self._values[name] = dict(values)

  def drop(self, name: str) -> None:
    """See `Store`."""
    self._values.pop(name, None)
