"""Mutations of what a file says: arrays, lines and JSON, encoded again.

A byte that is changed at random is mostly found by a checksum, or by a length
that no longer agrees. Here a file is taken apart, one to three of its values
are changed, and it is put together with the right headers, offsets and sums:
what is tested are the checks of content, and what uses the content after them.

Three kinds of input are known: those of `folder_readers` (files of a folder,
each after its name), npz archives, and JSON, one value or one a line.
"""

import io
import json
import random
import zipfile
from typing import Any

import numpy as np

from tests.faults.folder_readers import FILE

_NUMBERS = (0, 1, -1, 2, 7, 100, 2**31 - 1, -(2**31), 2**31, 2**63 - 1)
_FLOATS = (0.0, -0.0, 0.5, 1.0, -1.0, 1e-30, 1e30, np.nan, np.inf, -np.inf)
_TYPES = ("i1", "i2", "i4", "i8", "u4", "u8", "f4", "f8", ">i4", "?", "U2")
_WORDS = ("", " ", "a", "<unk>", "<s>", "a b", "中", "\x85", "[X]", "-1", "X")
_JSON: tuple[Any, ...] = (
  *(None, True, 0, 1, -1, 0.5, 2**31, 2**63, 1e308, "", "a", "x/../y"),
  *([], {}, [0], {"a": 1}, [[]], ["a", "a"], float("nan"), float("inf")),
)

# Files by name: an array, lines, a JSON value, or bytes that stay.
Parts = dict[str, Any]


def mutate(data: bytes, rng: random.Random, pool: list[bytes]) -> bytes | None:
  """Returns an input with changed values; None for inputs of no known kind."""
  if data.startswith(FILE) or data.startswith(b"PK"):
    packed = data.startswith(b"PK")
    take = _from_zip if packed else _from_folder
    put = _to_zip if packed else _to_folder
    parts = take(data)
    if not parts:
      return None
    other = rng.choice(pool)
    start = data[:2]
    others = (take(other) if other[:2] == start else None) or parts
    try:
      for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change_parts(parts, others, rng)
    except (ValueError, TypeError, IndexError, OverflowError):
      return None  # what was changed before does not allow it
    return put(parts)
  return _mutate_json(data, rng)


def _from_folder(data: bytes) -> Parts:
  """The files of an input of `folder_readers`."""
  parts: Parts = {}
  for part in data.split(FILE)[1:]:
    name, _, content = part.partition(b"\0")
    parts[name.decode("latin-1")] = _decoded(name, content)
  return parts


def _to_folder(parts: Parts) -> bytes:
  return b"".join(
    FILE + name.encode("latin-1", "replace") + b"\0" + _encoded(value)
    for name, value in parts.items()
  )


def _from_zip(data: bytes) -> Parts | None:
  try:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
      return {
        name: _decoded(b"x.npy", packed.read(name))
        for name in packed.namelist()
      }
  except Exception:
    return None


def _to_zip(parts: Parts) -> bytes:
  out = io.BytesIO()
  with zipfile.ZipFile(out, "w") as packed:
    for name, value in parts.items():
      packed.writestr(name, _encoded(value))
  return out.getvalue()


def _decoded(name: bytes, content: bytes) -> Any:
  """The value in a file; its bytes, if they cannot be read."""
  try:
    if name.endswith(b".npy"):
      return np.load(io.BytesIO(content), allow_pickle=False)
    if name.endswith(b".txt"):
      return content.decode().split("\n")[:-1]
    return {"json": json.loads(content)}
  except Exception:
    return content


def _encoded(value: Any) -> bytes:
  if isinstance(value, np.ndarray):
    out = io.BytesIO()
    np.save(out, value, allow_pickle=False)
    return out.getvalue()
  if isinstance(value, list):
    return "".join(line + "\n" for line in value).encode()
  return (
    value if isinstance(value, bytes) else json.dumps(value["json"]).encode()
  )


def _change_parts(parts: Parts, others: Parts, rng: random.Random) -> None:
  """Changes one of the files, or the same row in all that belong together."""
  if not parts:
    return
  name = rng.choice(sorted(parts))
  value = parts[name]
  what = rng.randrange(20)
  if what < 3 and name in others:  # of another input
    parts[name] = others[name]
  elif what == 3 and rng.random() < 0.2:
    del parts[name]
  elif what < 9:
    _change_rows(parts, name, rng)
  elif isinstance(value, np.ndarray):
    parts[name] = _changed_array(value, rng)
  elif isinstance(value, list):
    parts[name] = _changed_lines(value, rng)
  elif isinstance(value, dict):
    parts[name] = {"json": _changed_json(value["json"], rng)}


def _length(value: Any) -> int:
  if isinstance(value, np.ndarray):
    return len(value) if value.ndim else -1
  return len(value) if isinstance(value, list) else -1


def _change_rows(parts: Parts, name: str, rng: random.Random) -> None:
  """Removes, doubles or moves a row everywhere where there are as many.

  Rows of ragged columns, `NAME` with `NAME_offsets`, go with them.
  """
  stem = name.replace("_offsets.", ".")
  ragged = stem.replace(".npy", "_offsets.npy")
  size = _length(parts[ragged]) - 1 if ragged in parts else _length(parts[name])
  if size < 1:
    return
  rows = list(range(size))
  row = rng.randrange(size)
  what = rng.randrange(3)
  if what == 0:
    del rows[row]
  elif what == 1:
    rows.insert(rng.randrange(size + 1), row)
  else:
    rng.shuffle(rows)
  offsets = {
    key.replace("_offsets.npy", ".npy"): key
    for key in parts
    if key.endswith("_offsets.npy")
  }
  for key in sorted(parts):
    if key in offsets:
      _take_ragged(parts, key, offsets[key], rows, size)
    elif key not in offsets.values() and _length(parts[key]) == size:
      value = parts[key]
      array = isinstance(value, np.ndarray)
      parts[key] = value[rows] if array else [value[r] for r in rows]


def _take_ragged(
  parts: Parts, flat: str, offsets: str, rows: list[int], size: int
) -> None:
  ends, values = parts[offsets], parts[flat]
  arrays = isinstance(ends, np.ndarray) and isinstance(values, np.ndarray)
  if not arrays or ends.ndim != 1 or len(ends) != size + 1 or not values.ndim:
    return
  if ends.dtype.kind not in "iu":
    return
  taken = [values[ends[row] : ends[row + 1]] for row in rows]
  parts[flat] = np.concatenate([values[:0], *taken])
  lengths = np.array([0, *(len(one) for one in taken)])
  parts[offsets] = np.cumsum(lengths).astype(ends.dtype)


def _changed_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
  """An array with another element; rarely of another shape or type."""
  what = rng.randrange(24)
  if what == 0:
    return array.astype(rng.choice(_TYPES), casting="unsafe")
  if what == 1 and array.ndim:
    return array[: rng.randrange(len(array) + 1)]
  if what == 2:
    return rng.choice((array[None], array[..., None], array.T, array.ravel()))
  if what == 3 and array.ndim:
    return np.concatenate([array, array])
  if not array.size:
    return array
  array = array.copy()
  flat = array.reshape(-1)
  place = rng.randrange(flat.size)
  if what < 9:  # a value that is there already
    flat[place] = flat[rng.randrange(flat.size)]
  elif what < 15 and array.dtype.kind in "iuf":
    with np.errstate(all="ignore"):
      flat[place] += array.dtype.type(
        rng.choice((1, -1, 2) if array.dtype.kind != "u" else (1, 2))
      )
  elif what < 17 and place:  # what offsets do when a symbol changes its row
    flat[place] = flat[place - 1]
  elif what < 19:
    other = rng.randrange(flat.size)
    flat[place], flat[other] = flat[other], flat[place]
  else:
    _put(flat, place, rng)
  return array


def _put(flat: np.ndarray, place: int, rng: random.Random) -> None:
  """Writes a number of the type's own odd ones."""
  if flat.dtype.kind == "f":
    flat[place] = rng.choice(_FLOATS)
  elif flat.dtype.kind in "iu":
    limits = np.iinfo(flat.dtype)
    values = [*_NUMBERS, limits.min, limits.max, flat.max(), flat.min()]
    value = int(rng.choice(values)) + rng.choice((0, 0, 1, -1))
    flat[place] = min(max(value, limits.min), limits.max)


def _changed_lines(lines: list[str], rng: random.Random) -> list[str]:
  lines = list(lines)
  place = rng.randrange(len(lines) + 1)
  what = rng.randrange(6)
  if what == 0 and place < len(lines):
    del lines[place]
  elif what == 1:
    lines.insert(place, rng.choice(_WORDS))
  elif what == 2 and lines:
    lines.insert(place, rng.choice(lines))
  elif what == 3 and place < len(lines):
    other = rng.randrange(len(lines))
    lines[place], lines[other] = lines[other], lines[place]
  elif place < len(lines):
    lines[place] = rng.choice((*_WORDS, lines[place] + "x"))
  return lines


def _mutate_json(data: bytes, rng: random.Random) -> bytes | None:
  """JSON, or lines of it, with changed values."""
  try:
    rows = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    one_each = True
  except (ValueError, RecursionError):
    try:
      rows, one_each = [json.loads(data)], False
    except (ValueError, RecursionError):
      return None
  if not rows or not any(isinstance(row, dict | list) for row in rows):
    return None
  for _ in range(rng.choice((1, 1, 2, 3))):
    place = rng.randrange(len(rows))
    if one_each and rng.random() < 0.1:
      rows.insert(rng.randrange(len(rows) + 1), rows[place])
    else:
      rows[place] = _changed_json(rows[place], rng)
  try:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
  except (ValueError, RecursionError):
    return None


def _changed_json(value: Any, rng: random.Random) -> Any:
  """A value of which one part is another."""
  if isinstance(value, dict) and value and rng.random() < 0.9:
    key = rng.choice(sorted(value))
    changed = dict(value)
    what = rng.randrange(12)
    if what == 0:
      del changed[key]
    elif what == 1:
      changed[rng.choice((key + "x", *_WORDS))] = value[key]
    elif what == 2:
      changed[key] = value[rng.choice(sorted(value))]
    else:
      changed[key] = _changed_json(value[key], rng)
    return changed
  if isinstance(value, list) and value and rng.random() < 0.9:
    place = rng.randrange(len(value))
    changed = list(value)
    what = rng.randrange(10)
    if what == 0:
      del changed[place]
    elif what == 1:
      changed.insert(rng.randrange(len(value) + 1), value[place])
    else:
      changed[place] = _changed_json(value[place], rng)
    return changed
  return _changed_leaf(value, rng)


def _changed_leaf(value: Any, rng: random.Random) -> Any:
  number = isinstance(value, int | float) and not isinstance(value, bool)
  if number and rng.random() < 0.7:
    return rng.choice((value + 1, value - 1, -value, value * 2, value * 1.5, 0))
  if isinstance(value, str) and rng.random() < 0.5:
    return rng.choice((*_WORDS, value + "x", value[1:]))
  return rng.choice(_JSON)
