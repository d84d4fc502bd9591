"""Keeping the loop's state, so that a killed run goes on where it was."""

from collections.abc import Mapping
from typing import Any, Protocol

from jaxmt.tune import loop
from jaxmt.tune.loop import LoopState


class Store(Protocol):
  """Named results that are whole or absent; `checkpoint.Partial` is one."""

  def get(self, name: str) -> Mapping[str, Any] | None:
    """Returns the values kept under a name, None if there are none."""

  def put(self, name: str, values: Mapping[str, Any]) -> None:
    """Keeps arrays and JSON values under a name."""

  def drop(self, name: str) -> None:
    """Forgets what is kept under a name, if anything is."""


def save(
  store: Store, state: LoopState, *, prefix: str, notes: Any = None
) -> None:
  """Keeps a state; the one before is forgotten only when this one is whole.

  Args:
    store: where to.
    state: after a round.
    prefix: tells several runs in one store apart.
    notes: JSON, kept beside it.
  """
  values = {**loop.to_arrays(state), "notes": {"notes": notes}}
  store.put(f"{prefix}{state.round}", values)
  store.drop(f"{prefix}{state.round - 1}")


def restore(
  store: Store, *, prefix: str, rounds: int
) -> tuple[LoopState, Any] | None:
  """Returns the last state and its notes, or None if there is none.

  Args:
    store: see `save`.
    prefix: see `save`.
    rounds: T; a run has at most T + 1 states.
  """
  for number in range(rounds + 1, 0, -1):
    values = store.get(f"{prefix}{number}")
    if values is not None:
      return loop.from_arrays(values), values["notes"]["notes"]
  return None
