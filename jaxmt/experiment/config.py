"""Configs: mutable outside, frozen inside.

A config file is Python with `get_config(variant="")` returning an
`ml_collections.ConfigDict`; flags change single values by dotted path
(`--config.search.beam=100`). At the border of the pipeline it becomes frozen
dataclasses (`freeze`), which are typed, hashable and have a canonical JSON form
(`to_json`), the part of an artefact's key that says how it was made.
"""

import dataclasses
import difflib
import importlib.util
import json
import pathlib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import ml_collections

from jaxmt import errors
from jaxmt.errors import InputError

Frozen = TypeVar("Frozen")
_LARGEST = 1e300


def load(reference: str) -> ml_collections.ConfigDict:
  """Loads `path.py` or `path.py:variant`.

  Raises:
    InputError: if the file does not exist or does not define the variant.
  """
  path, _, variant = reference.partition(":")
  module = load_module(path)
  if not hasattr(module, "get_config"):
    raise InputError("defines no get_config()", path=path)
  try:
    config = module.get_config(variant)
  except (KeyError, ValueError) as error:
    raise InputError(f"variant '{variant}': {error}", path=path) from error
  except Exception as error:
    raise errors.failure(error, path) from error
  if not isinstance(config, ml_collections.ConfigDict):
    raise InputError("get_config() returns no ConfigDict", path=path)
  config.lock()
  return config


def of_flag(value: Any) -> ml_collections.ConfigDict:
  """Returns the value of a config flag, which keeps a load error until used.

  Raises:
    InputError: for such an error, or if the file made something else.
  """
  try:
    usable = hasattr(value, "lock")
  except OSError as error:
    raise InputError(str(error)) from error
  if not usable:
    raise InputError("--config: get_config() returns no ConfigDict")
  return value


def load_module(path: str) -> types.ModuleType:
  """Imports a config or study file by its path."""
  if not pathlib.Path(path).is_file():
    raise InputError("no such config file", path=path)
  spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
  if spec is None or spec.loader is None:
    raise InputError("not a Python file", path=path)
  module = importlib.util.module_from_spec(spec)
  try:
    spec.loader.exec_module(module)
  except Exception as error:
    raise errors.failure(error, path) from error
  return module


def apply(
  config: ml_collections.ConfigDict, changes: Mapping[str, Any]
) -> ml_collections.ConfigDict:
  """Returns a copy with dotted-path changes, e.g. `{"search.beam": 100}`.

  Raises:
    InputError: for a key that does not exist (with a suggestion), or a value
      of another type.
  """
  config = config.copy_and_resolve_references()
  for path, value in changes.items():
    *parents, last = path.split(".")
    node = config
    for name in parents:
      node = _child(node, name, path)
    _child(node, last, path)
    try:
      node[last] = value
    except TypeError as error:
      raise InputError(f"config key '{path}': {error}") from error
  config.lock()
  return config


def _child(node: Any, name: str, path: str) -> Any:
  if not isinstance(node, ml_collections.ConfigDict) or name not in node:
    options = node.keys() if isinstance(node, ml_collections.ConfigDict) else ()
    raise InputError(unknown_key(path, name, options))
  return node[name]


def unknown_key(path: str, name: str, options: Sequence[str] | Any) -> str:
  """Returns the error text for an unknown key, with the nearest known one."""
  closest = difflib.get_close_matches(name, list(options), n=1)
  hint = f"; did you mean '{closest[0]}'?" if closest else ""
  return f"unknown config key '{path}'{hint}"


def freeze(
  cls: type[Frozen], config: Mapping[str, Any] | ml_collections.ConfigDict
) -> Frozen:
  """Builds the frozen dataclass `cls` from a config of the same shape.

  Missing keys take the field's default. Sequences become tuples. Integers
  serve where floats are expected; nothing else is converted.

  Raises:
    InputError: for an unknown key, a missing one without default, or a value
      of the wrong type.
  """
  if isinstance(config, ml_collections.ConfigDict):
    config = config.to_dict()
  return _freeze(cls, config, "")


def _freeze(cls: type, config: Mapping[str, Any], prefix: str) -> Any:
  hints = typing.get_type_hints(cls)
  fields = {field.name: field for field in dataclasses.fields(cls)}
  for name in config:
    if name not in fields:
      raise InputError(unknown_key(prefix + name, name, fields))
  values = {}
  for name, field in fields.items():
    if name in config:
      values[name] = _convert(hints[name], config[name], prefix + name)
    elif (
      field.default is dataclasses.MISSING
      and field.default_factory is dataclasses.MISSING
    ):
      raise InputError(f"config key '{prefix}{name}' is missing")
  return cls(**values)


def _convert(hint: Any, value: Any, path: str) -> Any:
  if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
    return _freeze(typing.cast(type, hint), value, path + ".")
  origin = typing.get_origin(hint)
  if origin in (typing.Union, types.UnionType):
    options = typing.get_args(hint)
    if value is None and type(None) in options:
      return None
    hint = next(option for option in options if option is not type(None))
    return _convert(hint, value, path)
  if origin is tuple and isinstance(value, list | tuple):
    inner = typing.get_args(hint)[0]
    return tuple(_convert(inner, item, path) for item in value)
  if hint is float and type(value) is int:
    return float(value)
  if hint is typing.Any or type(value) is hint:
    return value
  type_name = getattr(hint, "__name__", str(hint))
  raise InputError(f"config key '{path}': {value!r} is not of type {type_name}")


def is_number(value: Any) -> bool:
  """Whether a value of JSON is a number that float64 can hold."""
  # JSON has whole numbers of any size.
  return type(value) in (int, float) and abs(value) < _LARGEST


def to_json(value: Any) -> str:
  """Returns the canonical JSON of a config: sorted keys, no white space."""
  return json.dumps(
    plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False
  )


def plain(value: Any, *, essential: bool = False) -> Any:
  """Returns dataclasses and ConfigDicts as dicts, tuples as lists.

  Args:
    value: the config.
    essential: leave out fields that make no difference to any result, as the
      number of threads: those with `metadata={"matters": False}`.
  """
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return {
      field.name: plain(getattr(value, field.name), essential=essential)
      for field in dataclasses.fields(value)
      if field.metadata.get("matters", True) or not essential
    }
  if isinstance(value, Mapping | ml_collections.ConfigDict):
    pairs = value.items()
    return {str(name): plain(one, essential=essential) for name, one in pairs}
  if isinstance(value, list | tuple):
    return [plain(item, essential=essential) for item in value]
  if value is None or isinstance(value, str | int | float | bool):
    return value
  raise ValueError(f"{value!r} has no place in a config")
