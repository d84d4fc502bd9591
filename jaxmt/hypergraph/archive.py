"""Forests as named arrays and as npz files.

The structure has the names of its fields. Annotation is named by where it
stands: a dataclass or dict with a column `begin` at the nodes is the array
`nodes/begin`. Classes are not stored: annotation is read as dicts, from which
the caller builds its own.
"""

import io
from collections.abc import Mapping

import jax
import numpy as np

from jaxmt.errors import InputError
from jaxmt.hypergraph.forest import Annotation, Forest, check
from jaxmt.text import array_folder, files

_STRUCTURE = ("node_offsets", "edge_offsets", "tails", "score")


def to_arrays(forest: Forest) -> dict[str, np.ndarray]:
  """Returns all arrays of forests by name."""
  arrays = {name: np.asarray(getattr(forest, name)) for name in _STRUCTURE}
  for part in ("nodes", "edges"):
    leaves = jax.tree_util.tree_leaves_with_path(getattr(forest, part))
    for path, leaf in leaves:
      place = jax.tree_util.keystr(path, simple=True, separator="/")
      arrays[f"{part}/{place}" if place else part] = np.asarray(leaf)
  return arrays


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Forest:
  """Returns the forests of named arrays; other names are left alone.

  Raises:
    ValueError: if they are no forests.
  """
  for name in _STRUCTURE:
    if name not in arrays:
      raise ValueError(f"no array '{name}'")
  forest = Forest(
    **{name: arrays[name] for name in _STRUCTURE},
    nodes=_annotation(arrays, "nodes"),
    edges=_annotation(arrays, "edges"),
  )
  check(forest)
  return forest


def save(path: str, forest: Forest) -> None:
  """Writes forests to an npz file."""
  buffer = io.BytesIO()
  np.savez_compressed(buffer, allow_pickle=False, **to_arrays(forest))
  with files.atomic_writer(path) as out:
    out.write(buffer.getvalue())


def load(path: str) -> Forest:
  """Reads forests from an npz file, annotation as dicts.

  Raises:
    InputError: if it is no such file.
  """
  try:
    return from_arrays(array_folder.read_npz(path))
  except InputError:
    raise
  except (ValueError, TypeError, AttributeError, IndexError) as error:
    raise InputError(f"bad forest file: {error}", path=path) from error


def _annotation(arrays: Mapping[str, np.ndarray], part: str) -> Annotation:
  """The arrays below a name, as nested dicts; None if there are none."""
  if part in arrays:
    return arrays[part]
  out: dict = {}
  for name, array in arrays.items():
    steps = name.split("/")
    if steps[0] == part:
      place = out
      for step in steps[1:-1]:
        place = place.setdefault(step, {})
      place[steps[-1]] = array
  return out or None
