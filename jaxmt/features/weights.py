"""Weights files, and the units in which other toolkits measure features.

A file has lines `name value` and `#` comments. Also read: `name=value`,
`name= value`, `name = value`, tabs for spaces, and section headers in brackets
such as Travatar's `[weight_vals]`, so that weights of other toolkits need no
conversion. Of a file that has a section `[weight]`, Moses' moses.ini, only this
section is read; likewise of Travatar's travatar.ini `[weight_vals]`.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar import reordering

_MOSES_SECTION = "[weight]"
_TRAVATAR_SECTION = "[weight_vals]"
_BINARIZERS = {"none": "", "left": "left", "right": "right"}

_LIMIT = re.compile("-?[0-9]{1,9}")  # of a search
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
  """Numbers from 1 and lines, of an ini file those of the weights alone."""
  present = {line.strip() for line in lines}
  sections = present & {_MOSES_SECTION}
  if _is_ini(lines):
    sections = present & {_MOSES_SECTION, _TRAVATAR_SECTION}
  inside = not sections
  for number, line in enumerate(lines, start=1):
    text = line.strip()
    if sections and text[:1] == "[" and text[-1:] == "]":
      inside = text in sections
    elif inside:
      yield number, line


def _is_ini(lines: Sequence[str]) -> bool:
  """Whether everything stands in some section, but for comments."""
  texts = (line.strip() for line in lines)
  first = next((text for text in texts if text and text[0] != "#"), "")
  return first[:1] == "[" and first[-1:] == "]"


def moses_limits(lines: Sequence[str]) -> dict[str, int]:
  """Returns the limits of the search that a moses.ini sets.

  Returns:
    "span": the longest Hiero span (`[max-chart-span]`, its first value);
    "pop" (`[cube-pruning-pop-limit]`); "distortion" (`[distortion-limit]`, -1
    for none); "beam" (`[stack]`); "targets" (`[ttable-limit]`, or the setting
    `table-limit` of a feature), as far as they are there.
  """
  names = {
    "[max-chart-span]": "span",
    "[cube-pruning-pop-limit]": "pop",
    "[distortion-limit]": "distortion",
    "[stack]": "beam",
    "[ttable-limit]": "targets",
  }
  limits: dict[str, int] = {}
  section = ""
  for line in lines:
    text = line.strip()
    if text.startswith("["):
      section = text
    elif section in names and _LIMIT.fullmatch(text):
      name, value = names[section], int(text)
      if value > 0 or name == "distortion":  # others: Moses has no limit
        limits.setdefault(name, value)
    elif section == "[feature]":
      for setting in text.split():
        name, _, value = setting.partition("=")
        known = name == "table-limit" and _LIMIT.fullmatch(value)
        if known and int(value) > 0:
          limits.setdefault("targets", int(value))
  return limits


def travatar_binarizer(lines: Sequence[str], *, path: str | None = None) -> str:
  """Returns how a travatar.ini makes trees binary: "", "left" or "right".

  Raises:
    InputError: naming file and line, for a way that is not known here.
  """
  section = ""
  for number, line in enumerate(lines, start=1):
    text = line.strip()
    if text.startswith("["):
      section = text
    elif section == "[binarize]" and text:
      if text not in _BINARIZERS:
        raise InputError(
          f"unknown binarisation '{text}'", path=path, line=number
        )
      return _BINARIZERS[text]
  return ""


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
  return format_pairs(
    tuple(weights), np.array([*weights.values()], np.float64), comment=comment
  )


def format_pairs(
  names: Sequence[str], values: np.ndarray, *, comment: str | None = None
) -> list[str]:
  """Returns the same for names and values `[N]`, which may be millions."""
  lines = [f"# {line}" for line in (comment or "").splitlines()]
  return lines + [
    f"{name}{' =' if name.endswith('=') else ''} {value!r}"
    for name, value in zip(names, values.tolist(), strict=True)
  ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Units:
  """Names and units of the features that are not columns of the table.

  Attributes:
    lm: name of the language model feature.
    lm_scale: its value is this times ln p.
    unknown: name of the count of words the language model does not know.
    words: name of the word penalty.
    per_word: its value for one target word.
    match: name of the count of children whose label is their site's.
    mismatch: name of the count of the others.
    glue: name of the feature of glue rules that join two parts.
    pass_through: name of the feature of copied words.
    distortion: name of the feature of source words jumped over between
      phrases, minus their number.
    reordering: names of the six features of lexicalised reordering.
    phrases: name of the count of phrases, if it is no column of the table.
  """

  lm: str = "LanguageModel"
  lm_scale: float = 1.0
  unknown: str = "LanguageModel_OOV"
  words: str = "WordPenalty"
  per_word: float = -1.0
  match: str = "Match"
  mismatch: str = "Mismatch"
  glue: str = "Glue"
  pass_through: str = "PassThrough"
  distortion: str = "Distortion"
  reordering: tuple[str, ...] = reordering.NAMES
  phrases: str = "PhrasePenalty"

  @functools.cached_property
  def search_names(self) -> tuple[str, ...]:
    """The features that are not columns of the table."""
    return (self.lm, self.unknown, self.words, self.match, self.mismatch)


DIALECTS: Mapping[str, Units] = {
  "jaxmt": Units(),
  "cdec": Units(lm_scale=1 / math.log(10), per_word=-0.434294),
  "moses": Units(
    lm="LM0",
    words="WordPenalty0",
    unknown="LM0_OOV",
    distortion="Distortion0",
    reordering=tuple(f"LexicalReordering0_{n}" for n in range(6)),
    phrases="PhrasePenalty0",
  ),
  "joshua": Units(
    lm="lm_0",
    lm_scale=1 / math.log(10),
    per_word=-0.434294,
    unknown="lm_0_oov",
  ),
  "travatar": Units(
    lm="lm",
    lm_scale=1 / math.log(10),
    words="word",
    per_word=1.0,
    unknown="lmunk",
  ),
}
