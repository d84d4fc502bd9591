"""Parsers and taggers as folders of arrays, checked when they are read.

A folder (`jaxmt.text.array_folder`) says in its manifest that it holds a
parser, of which kind, and in which version. The kinds are those of `KINDS`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

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
from jaxmt.text.array_folder import Folder, FolderWriter

FORMAT, VERSION = "jaxmt parser", 2


def save(path: str, parser: Any) -> None:
  """Writes a parser; a folder that holds one already is replaced.

  Raises:
    InputError: if something else is there, or writing fails.
  """
  kind = next(k for k, (cls, _, _) in KINDS.items() if isinstance(parser, cls))
  with array_folder.open_writer(path) as out:
    out.meta = {"format": FORMAT, "version": VERSION, "kind": kind}
    KINDS[kind][1](out, parser)


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
  folder: Folder,
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
    raise InputError(cause, path=folder.path)
  if not np.all((array >= lowest) & (array <= highest)):
    raise InputError(f"'{name}' has numbers that cannot be", path=folder.path)
  return array


def read_names(folder: Folder, name: str) -> tuple[str, ...]:
  """Returns distinct names."""
  names = tuple(folder.lines(name))
  if len(set(names)) != len(names):
    raise InputError(f"'{name}' has a name twice", path=folder.path)
  return names


def _write_arc(out: FolderWriter, parser: ArcParser) -> None:
  for name, array in parser.weights.items():
    out.append(name, np.asarray(array, np.float32))
  out.write_lines("tags", parser.tag_names)


def _read_arc(folder: Folder) -> ArcParser:
  names = read_names(folder, "tags")
  bits = _bits(folder, "hashed")
  tags = arc_features.SPECIAL_TAGS + len(names)
  weights = {
    "hashed": read_array(folder, "hashed", (1 << bits,)),
    "between": read_array(folder, "between", (2, tags, tags, tags)),
  }
  return ArcParser(weights=weights, tag_names=names)


def _bits(folder: Folder, name: str) -> int:
  """Returns the logarithm of the size of a hashed table."""
  size = folder.array(name).size
  bits = int(size).bit_length() - 1
  if not 8 <= bits <= 30 or size != 1 << bits:
    cause = f"'{name}' is no table of 2^bits weights"
    raise InputError(cause, path=folder.path)
  return bits


def _write_siblings(out: FolderWriter, parser: SiblingParser) -> None:
  out.write_json("loss", parser.loss)
  out.append("weights", parser.weights)


def _read_siblings(folder: Folder) -> SiblingParser:
  bits, loss = _bits(folder, "weights"), folder.json("loss")
  if loss not in LOSSES:
    raise InputError(f"no loss '{loss}'", path=folder.path)
  weights = read_array(folder, "weights", (1 << bits,))
  return SiblingParser(loss=loss, weights=weights)


def _write_tags(out: FolderWriter, parser: TagParser) -> None:
  out.write_json("kind", parser.kind)
  out.write_lines("tags", parser.tag_names)
  for field in dataclasses.fields(Dmv):
    out.append(field.name, np.asarray(getattr(parser.model, field.name)))


def _read_tags(folder: Folder) -> TagParser:
  kind = folder.json("kind")
  if kind not in ("dmv", "concave"):
    raise InputError(f"no parser of kind '{kind}'", path=folder.path)
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


def _write_tagger(out: FolderWriter, found: Tagger) -> None:
  out.write_json("kind", found.kind)
  out.write_lines("tags", found.tag_names)
  out.write_lines("features", found.features)
  for name in _TAGGER_ARRAYS:
    out.append(name, getattr(found, name))


def _read_tagger(folder: Folder) -> Tagger:
  kind = folder.json("kind")
  if kind not in ("plain", "features"):
    raise InputError(f"no tagger of kind '{kind}'", path=folder.path)
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
