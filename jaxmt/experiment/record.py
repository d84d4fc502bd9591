"""What stages return and receive: frozen dataclasses that artefacts can hold.

A stage's function is annotated with records; `jaxmt.experiment.pipeline` takes
them apart into named values when it writes an artefact, and puts them together
again when a later stage asks for them.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Self


class Record:
  """Base of the frozen dataclasses that stages exchange.

  A subclass whose fields are arrays, lists of strings or JSON values is done;
  one with other fields writes both methods itself.
  """

  def to_values(self) -> dict[str, Any]:
    """Returns the fields by name; those that are None are left out."""
    names = [field.name for field in dataclasses.fields(self)]  # pyrefly: ignore
    values = {name: getattr(self, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}

  @classmethod
  def from_values(cls, values: Mapping[str, Any]) -> Self:
    """Returns the record of `to_values`; ignores values of other names."""
    names = [field.name for field in dataclasses.fields(cls)]  # pyrefly: ignore
    return cls(**{name: values[name] for name in names if name in values})


def to_values(result: Any) -> dict[str, Any]:
  """Returns the named values of a record; a dict is its own."""
  return result.to_values() if isinstance(result, Record) else result


def result_type(function: Callable) -> type[Record] | None:
  """Returns the record that a function returns, None for a dict."""
  return _record_of(typing.get_type_hints(function).get("return"))


def arguments(
  function: Callable, inputs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
  """Returns named values as the records that a function takes.

  Args:
    function: its parameters may be annotated with a record or `record | None`,
      a `**` parameter for all inputs that no other parameter names.
    inputs: values by parameter. Those of others stay dicts.
  """
  hints = typing.get_type_hints(function)
  parameters = inspect.signature(function).parameters.values()
  rest = [one.name for one in parameters if one.kind == one.VAR_KEYWORD]
  named = {one.name for one in parameters} - set(rest)
  built: dict[str, Any] = {}
  for name, values in inputs.items():
    key = name if name in named or not rest else rest[0]
    kind = _record_of(hints.get(key))
    built[name] = dict(values) if kind is None else kind.from_values(values)
  return built


def _record_of(hint: Any) -> type[Record] | None:
  """Returns the record of an annotation such as `Corpus` or `Corpus | None`."""
  union = isinstance(hint, types.UnionType)
  for option in typing.get_args(hint) if union else (hint,):
    if isinstance(option, type) and issubclass(option, Record):
      return option
  return None
