"""Options of tuning methods: read from text, and checked.

A config checks itself when it is made (`__post_init__`) with the functions
here, so that a bad option is one line, wherever it comes from.
"""

import dataclasses
import math
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from jaxmt.errors import InputError

Config = TypeVar("Config")


def at_least(config: Any, **least: float) -> None:
  """Checks lower bounds of options, given by name.

  Raises:
    InputError: naming the option.
  """
  for name, bound in least.items():
    value = getattr(config, name)
    if not value >= bound:
      raise InputError(f"option '{name}' must be at least {bound}, not {value}")


def above(config: Any, **bounds: float) -> None:
  """Checks that options exceed bounds; see `at_least`."""
  for name, bound in bounds.items():
    value = getattr(config, name)
    if not value > bound:
      raise InputError(f"option '{name}' must be above {bound}, not {value}")


def at_most(config: Any, **most: float) -> None:
  """Checks upper bounds of options; see `at_least`."""
  for name, bound in most.items():
    value = getattr(config, name)
    if not value <= bound:
      raise InputError(f"option '{name}' must be at most {bound}, not {value}")


def one_of(config: Any, **choices: Sequence[Any]) -> None:
  """Checks that options are among given values; see `at_least`."""
  for name, values in choices.items():
    value = getattr(config, name)
    if value not in values:
      known = ", ".join(map(str, values))
      raise InputError(f"option '{name}': '{value}' is none of: {known}")


def change(config: Config, changes: Mapping[str, str]) -> Config:
  """Returns a config with fields changed, given as text.

  Names are fields, or keys of a field that holds a mapping of numbers.

  Args:
    config: a frozen dataclass.
    changes: texts by name; all of them are set at once.

  Raises:
    InputError: for an unknown name, or a value that does not fit.
  """
  kinds = typing.get_type_hints(type(config))
  mappings: dict[str, dict[str, float]] = {}
  for name in kinds:
    value = getattr(config, name)
    if isinstance(value, Mapping):
      mappings[name] = dict(value)
  fields: dict[str, Any] = {}
  for name, text in changes.items():
    holders = [field for field, keys in mappings.items() if name in keys]
    if name in kinds and name not in mappings:
      fields[name] = _read(text, kinds[name], name)
    elif holders:
      mappings[holders[0]][name] = _read(text, float, name)
    else:
      known = {*kinds} - {*mappings}
      known |= {key for keys in mappings.values() for key in keys}
      raise InputError(
        f"no option '{name}'; there are: {', '.join(sorted(known))}"
      )
  return dataclasses.replace(typing.cast(Any, config), **fields, **mappings)


def _read(text: str, kind: Any, name: str) -> Any:
  """A value of a field's type."""
  try:
    if kind is bool:
      return {"true": True, "false": False}[text.lower()]
    if kind in (int, str):
      return kind(text)
    if typing.get_origin(kind) is tuple:
      return tuple(_number(part) for part in text.split(",") if part)
    return _number(text)
  except (KeyError, ValueError) as error:
    raise InputError(f"option '{name}': cannot read '{text}'") from error


def _number(text: str) -> float:
  value = float(text)
  if not math.isfinite(value):
    raise ValueError(text)
  return value
