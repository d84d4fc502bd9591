"""Weights files: `name value` lines, `#` comments.

Also read: `name=value`, `name= value`, `name = value`, tabs for spaces, and
section headers in brackets such as Travatar's `[weight_vals]`, so that weights
of other toolkits need no conversion. Of a file that has a section `[weight]`,
Moses' moses.ini, only this section is read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from jaxmt.errors import InputError

_MOSES_SECTION = "[weight]"

_SPACE = re.compile(r"[ \t\r\v\f]+")  # other white space is part of a name


def parse_weights(
  lines: Sequence[str], *, path: str | None = None
) -> dict[str, float]:
  """Returns the weight of each name, in the order of the file.

  Moses' `name= v0 v1 ...` with several values gives `name_0`, `name_1`, ...

  Raises:
    InputError: naming file and line, for a line without a value, a value that
      is not a finite number, or a duplicate name.
  """
  weights: dict[str, float] = {}
  for number, line in _weight_lines(lines):
    text = line.split("#", 1)[0] if line.lstrip().startswith("#") else line
    text = text.strip(" \t\r\v\f")
    if not text or (text[0] == "[" and text[-1] == "]"):
      continue
    name, values = _split(text)
    if not name or not values:
      raise InputError(
        f"expected 'name value', found '{text}'", path=path, line=number
      )
    for index, value in enumerate(values):
      key = name if len(values) == 1 else f"{name}_{index}"
      if key in weights:
        raise InputError(f"duplicate name '{key}'", path=path, line=number)
      weights[key] = _number(value, path=path, line=number)
  return weights


def _weight_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
  """Numbers from 1 and lines, of moses.ini those of the weights alone."""
  sections = is_moses_ini(lines)
  inside = not sections
  for number, line in enumerate(lines, start=1):
    if sections and line.strip().startswith("["):
      inside = line.strip() == _MOSES_SECTION
    elif inside:
      yield number, line


def is_moses_ini(lines: Sequence[str]) -> bool:
  """Whether lines are those of Moses' moses.ini."""
  return any(line.strip() == _MOSES_SECTION for line in lines)


def moses_limits(lines: Sequence[str]) -> dict[str, int]:
  """Returns the limits of the search that a moses.ini sets.

  Returns:
    "span": the longest Hiero span (`[max-chart-span]`, its first value) and
    "pop" (`[cube-pruning-pop-limit]`), as far as they are there.
  """
  names = {"[max-chart-span]": "span", "[cube-pruning-pop-limit]": "pop"}
  found: dict[str, int] = {}
  section = ""
  for line in lines:
    text = line.strip()
    if text.startswith("["):
      section = text
    elif section in names and text.isdecimal():
      found.setdefault(names[section], int(text))
  return found


def _split(text: str) -> tuple[str, list[str]]:
  """Splits a line into a name and its values."""
  parts = [part for part in _SPACE.split(text) if part]
  if len(parts) == 1:
    name, _, value = text.rpartition("=")
    return name, [value] if value else []
  name, values = parts[0], parts[1:]
  if values[0] == "#" or values[0].startswith("#"):
    return "", []
  if values[0] == "=":
    values = values[1:]
  elif name.endswith("="):
    name = name[:-1]
  for place, value in enumerate(values):
    if value.startswith("#"):
      return name, values[:place]
  return name, values


def _number(text: str, *, path: str | None, line: int) -> float:
  try:
    value = float(text)
  except ValueError:
    value = np.nan
  if not np.isfinite(value) or "_" in text:
    raise InputError(f"not a finite number: '{text}'", path=path, line=line)
  return value


def format_weights(
  weights: Mapping[str, float], *, comment: str | None = None
) -> list[str]:
  """Returns the lines of a weights file; values are written exactly.

  A name that ends in `=` is followed by another, or it would lose its own.
  """
  lines = [f"# {line}" for line in (comment or "").splitlines()]
  return lines + [
    f"{name}{' =' if name.endswith('=') else ''} {float(v)!r}"
    for name, v in weights.items()
  ]


def to_vector(weights: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
  """Returns the weights of `names`, 0 for those without one; float64."""
  return np.array([weights.get(name, 0.0) for name in names], np.float64)


def from_vector(
  vector: np.ndarray, names: Sequence[str], *, keep: int | None = None
) -> dict[str, float]:
  """Returns the mapping from names to weights.

  Args:
    vector: one weight per name.
    names: feature names.
    keep: from this place on, zeros are left out; all are kept when None.
  """
  keep = len(names) if keep is None else keep
  pairs = zip(names, np.asarray(vector, float).tolist(), strict=True)
  return {
    name: value
    for place, (name, value) in enumerate(pairs)
    if place < keep or value != 0.0
  }
