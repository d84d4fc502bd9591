"""Parsers and taggers as folders of arrays, checked when they are read.

A folder (`jaxmt.text.array_folder`) says in its manifest that it holds a
parser, of which kind, and in which version. The kinds are those of `KINDS`. The
same arrays, lines and JSON values can be a dict, see `to_values`.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from jaxmt.errors import InputError
from jaxmt.parse import arc_features
from jaxmt.parse.arc_parser import ArcParser
from jaxmt.parse.dmv import Dmv
from jaxmt.parse.induction import TagParser, num_tags
from jaxmt.parse.sibling_parser import LOSSES, SiblingParser
from jaxmt.parse.tagger import Tagger
from jaxmt.text import array_folder

FORMAT, VERSION = "jaxmt parser", 2
_KIND = "parser_kind"  # of a dict, where a folder has a manifest


class _Writer(Protocol):
  """What a parser is written to, an `array_folder.FolderWriter` or a dict."""

  def append(self, name: str, rows: np.ndarray) -> None: ...

  def write_lines(self, name: str, lines: Sequence[str]) -> None: ...

  def write_json(self, name: str, value: Any) -> None: ...


class _Reader(Protocol):
  """What a parser is read from, an `array_folder.Folder` or a dict."""

  @property
  def path(self) -> str: ...

  def array(self, name: str) -> np.ndarray: ...

  def lines(self, name: str) -> list[str]: ...

  def json(self, name: str) -> Any: ...


@dataclasses.dataclass(frozen=True)
class _Values:
  """A dict as a writer and a reader."""

  values: dict[str, Any]
  path: str = ""

  def append(self, name: str, rows: np.ndarray) -> None:
    self.values[name] = np.asarray(rows)

  def write_lines(self, name: str, lines: Sequence[str]) -> None:
    self.values[name] = list(lines)

  def write_json(self, name: str, value: Any) -> None:
    self.values[name] = value

  def array(self, name: str) -> np.ndarray:
    return self._value(name, np.ndarray)

  def lines(self, name: str) -> list[str]:
    return self._value(name, list)

  def json(self, name: str) -> Any:
    return self._value(name, object)

  def _value(self, name: str, kind: type) -> Any:
    if not isinstance(self.values.get(name), kind) or name not in self.values:
      raise InputError(f"lacks '{name}'", path=self.path or None)
    return self.values[name]


def save(path: str, parser: Any) -> None:
  """Writes a parser; a folder that holds one already is replaced.

  Raises:
    InputError: if something else is there, or writing fails.
  """
  kind = _kind_of(parser)
  with array_folder.open_writer(path) as out:
    out.meta = {"format": FORMAT, "version": VERSION, "kind": kind}
    KINDS[kind][1](out, parser)


def _kind_of(parser: Any) -> str:
  return next(k for k, (cls, _, _) in KINDS.items() if isinstance(parser, cls))


def to_values(parser: Any) -> dict[str, Any]:
  """Returns a parser as named arrays, lists of strings and JSON values."""
  kind = _kind_of(parser)
  values: dict[str, Any] = {_KIND: kind}
  KINDS[kind][1](_Values(values), parser)
  return values


def from_values(values: Mapping[str, Any], *, path: str = "") -> Any:
  """Returns the parser of `to_values`.

  Args:
    values: what it returned.
    path: where they were read, for error messages.

  Raises:
    InputError: naming a value that is missing, or does not fit.
  """
  kind = values.get(_KIND)
  if kind not in list(KINDS):
    raise InputError("not a parser", path=path or None)
  return KINDS[kind][2](_Values(dict(values), path))


def load(path: str) -> Any:
  """Reads a parser.

  Raises:
    InputError: naming the file that is missing, damaged, or does not fit.
  """
  folder = array_folder.open_folder(path, verify=True)
  kind = folder.meta.get("kind")
  if folder.meta.get("format") != FORMAT or kind not in list(KINDS):
    raise InputError("not a parser", path=path)
  if folder.meta.get("version") != VERSION:
    found = folder.meta.get("version")
    raise InputError(f"version {found} of parsers, not {VERSION}", path=path)
  return KINDS[kind][2](folder)


def read_array(
  folder: _Reader,
  name: str,
  shape: tuple[int, ...],
  *,
  lowest: float = float(np.finfo(np.float32).min),
  highest: float = float(np.finfo(np.float32).max),
) -> np.ndarray:
  """Returns an array of float32 after checking its type, shape and values."""
  array = folder.array(name)
  if array.dtype != np.float32 or array.shape != shape:
    cause = f"'{name}' is {array.dtype} {array.shape}, not float32 {shape}"
    raise InputError(cause, path=folder.path or None)
  if not np.all((array >= lowest) & (array <= highest)):
    raise InputError(
      f"'{name}' has numbers that cannot be", path=folder.path or None
    )
  return array


def read_names(folder: _Reader, name: str) -> tuple[str, ...]:
  """Returns distinct names."""
  names = tuple(folder.lines(name))
  if len(set(names)) != len(names):
    raise InputError(f"'{name}' has a name twice", path=folder.path or None)
  return names


def _write_arc(out: _Writer, parser: ArcParser) -> None:
  for name, array in parser.weights.items():
    out.append(name, np.asarray(array, np.float32))
  out.write_lines("tags", parser.tag_names)


def _read_arc(folder: _Reader) -> ArcParser:
  names = read_names(folder, "tags")
  bits = _bits(folder, "hashed")
  tags = arc_features.SPECIAL_TAGS + len(names)
  weights = {
    "hashed": read_array(folder, "hashed", (1 << bits,)),
    "between": read_array(folder, "between", (2, tags, tags, tags)),
  }
  return ArcParser(weights=weights, tag_names=names)


def _bits(folder: _Reader, name: str) -> int:
  """Returns the logarithm of the size of a hashed table."""
  size = folder.array(name).size
  bits = int(size).bit_length() - 1
  if not 8 <= bits <= 30 or size != 1 << bits:
    cause = f"'{name}' is no table of 2^bits weights"
    raise InputError(cause, path=folder.path or None)
  return bits


def _write_siblings(out: _Writer, parser: SiblingParser) -> None:
  out.write_json("loss", parser.loss)
  out.append("weights", parser.weights)


def _read_siblings(folder: _Reader) -> SiblingParser:
  bits, loss = _bits(folder, "weights"), folder.json("loss")
  if loss not in LOSSES:
    raise InputError(f"no loss '{loss}'", path=folder.path or None)
  weights = read_array(folder, "weights", (1 << bits,))
  return SiblingParser(loss=loss, weights=weights)


def _write_tags(out: _Writer, parser: TagParser) -> None:
  out.write_json("kind", parser.kind)
  out.write_lines("tags", parser.tag_names)
  for field in dataclasses.fields(Dmv):
    out.append(field.name, np.asarray(getattr(parser.model, field.name)))


def _read_tags(folder: _Reader) -> TagParser:
  kind = folder.json("kind")
  if kind not in ("dmv", "concave"):
    raise InputError(f"no parser of kind '{kind}'", path=folder.path or None)
  names = read_names(folder, "tags")
  size = num_tags(names)
  shapes = {"root": (size,), "child": (2, size, size), "stop": (2, size, 2)}
  model = Dmv(
    **{
      name: jnp.asarray(
        read_array(folder, name, shape, lowest=0.0, highest=1.0)
      )
      for name, shape in shapes.items()
    }
  )
  return TagParser(kind=kind, model=model, tag_names=names)


_TAGGER_ARRAYS = ("weights", "normalizer", "start", "transition")


def _write_tagger(out: _Writer, found: Tagger) -> None:
  out.write_json("kind", found.kind)
  out.write_lines("tags", found.tag_names)
  out.write_lines("features", found.features)
  for name in _TAGGER_ARRAYS:
    out.append(name, getattr(found, name))


def _read_tagger(folder: _Reader) -> Tagger:
  kind = folder.json("kind")
  if kind not in ("plain", "features"):
    raise InputError(f"no tagger of kind '{kind}'", path=folder.path or None)
  names, features = read_names(folder, "tags"), read_names(folder, "features")
  tags = len(names)
  shapes = ((tags, len(features)), (tags,), (tags,), (tags, tags))
  arrays = {
    name: read_array(folder, name, shape)
    for name, shape in zip(_TAGGER_ARRAYS, shapes, strict=True)
  }
  return Tagger(kind=kind, tag_names=names, features=features, **arrays)


# Class, writer and reader of each kind.
KINDS: Mapping[str, tuple[type, Callable, Callable]] = {
  "arc": (ArcParser, _write_arc, _read_arc),
  "sibling": (SiblingParser, _write_siblings, _read_siblings),
  "tags": (TagParser, _write_tags, _read_tags),
  "tagger": (Tagger, _write_tagger, _read_tagger),
}
