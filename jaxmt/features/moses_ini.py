"""Weights as a moses.ini, which Moses runs as it is.

    lines = moses_ini.replace_weights(lines_of_a_moses_ini, weights)
    lines = moses_ini.make(weights, files)

Names are those of the dialect "moses": `TranslationModel0_2` is the third
weight of the feature TranslationModel0.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from jaxmt.errors import InputError

SUFFIX = ".ini"
_SECTION = "[weight]"
_INDEXED = re.compile(r"(.*[0-9])_([0-9]{1,3})")
_OOV = "_OOV"
# Features without settings, by name without their number.
_PLAIN = ("UnknownWordPenalty", "WordPenalty", "PhrasePenalty", "Distortion")
_TABLES = ("TranslationModel", "LexicalReordering", "LM")
_ORIENTATIONS = {"word": "wbe", "phrase": "phrase", "hierarchical": "hier"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MosesFiles:
  """What a moses.ini names beside its weights.

  Attributes:
    table: path of the phrase or rule table; tables after the first, such as a
      glue grammar's, are named `glue-grammar`.
    lm: path of the language model.
    order: its order.
    reordering: path of the reordering table, "" for none.
    orientation: what its orientations are towards: "word", "phrase" or
      "hierarchical".
    span: of hierarchical rules, words of the longest; 0 for phrases.
    distortion: limit of phrases, -1 for none.
    stack: hypotheses of a stack.
    pop: candidates of cube pruning.
  """

  table: str
  lm: str
  order: int
  reordering: str = ""
  orientation: str = "word"
  span: int = 0
  distortion: int = 6
  stack: int = 100
  pop: int = 100


def _grouped(weights: Mapping[str, float]) -> dict[str, list[float]]:
  """Weights of each feature in order.

  Raises:
    InputError: for a feature whose weights are not all there.
  """
  numbered: dict[str, dict[int, float]] = {}
  for name, value in weights.items():
    match = _INDEXED.fullmatch(name)
    if name.endswith(_OOV):
      if value:  # the second weight of a language model
        numbered.setdefault(name.removesuffix(_OOV), {})[1] = value
      continue
    base, place = (match[1], int(match[2])) if match else (name, 0)
    numbered.setdefault(base, {})[place] = value
  for name, own in numbered.items():
    if sorted(own) != list(range(len(own))):
      raise InputError(f"no weight of {name} for every place of a moses.ini")
  return {
    name: [own[place] for place in range(len(own))]
    for name, own in numbered.items()
  }


def _weight_lines(
  weights: Mapping[str, float], known: Sequence[str] = ()
) -> list[str]:
  """Lines of a section of weights.

  Args:
    weights: by name; 0 for what Moses does not have.
    known: features that Moses has, beside the usual ones.
  """
  usual = (*_PLAIN, *_TABLES)
  weights = {
    name: value
    for name, value in weights.items()
    if value or name.startswith((*usual, *known))
  }
  return [
    f"{name}= {' '.join(map(repr, values))}"
    for name, values in _grouped(weights).items()
  ]


def replace_weights(
  lines: Sequence[str], weights: Mapping[str, float]
) -> list[str]:
  """Returns the lines of a moses.ini with other weights.

  Weights of 0 for features that it does not name are left out.

  Raises:
    InputError: if it has no weights.
  """
  out, inside, seen = [], False, False
  own = [line.partition("=")[0] for line in lines if "= " in line]
  for line in lines:
    text = line.strip()
    if text.startswith("["):
      inside = text == _SECTION
      if inside and not seen:
        out += [line, *_weight_lines(weights, own)]
        seen = True
        continue
    if not inside:
      out.append(line)
  if not seen:
    raise InputError(f"no section {_SECTION} to put weights into")
  return out


def make(weights: Mapping[str, float], files: MosesFiles) -> list[str]:
  """Returns the lines of a moses.ini.

  Raises:
    InputError: for a weight that is of no feature of Moses.
  """
  grouped = _grouped(
    {
      name: value
      for name, value in weights.items()
      if value or name.startswith((*_PLAIN, *_TABLES))
    }
  )
  features = [_feature(name, values, files) for name, values in grouped.items()]
  tables = sum(name.startswith("TranslationModel") for name in grouped)
  mapping = [f"{number} T {number}" for number in range(max(tables, 1))]
  if files.span:
    search = ["[non-terminals]", "X", "", "[search-algorithm]", "3", ""]
    search += ["[inputtype]", "3", "", "[max-chart-span]", str(files.span)]
    search += ["1000"] if tables > 1 else []
  else:
    search = ["[search-algorithm]", "1", "", "[stack]", str(files.stack), ""]
    search += ["[distortion-limit]", str(files.distortion)]
  return [
    "[input-factors]",
    "0",
    "",
    "[mapping]",
    *mapping,
    "",
    *search,
    "",
    "[cube-pruning-pop-limit]",
    str(files.pop),
    "",
    "[feature]",
    *features,
    "",
    _SECTION,
    *_weight_lines(weights),
  ]


def _feature(name: str, values: list[float], files: MosesFiles) -> str:
  """The line that declares a feature."""
  kind = name.rstrip("0123456789")
  if kind in _PLAIN:
    return kind
  if kind == "TranslationModel":
    path = files.table if name.endswith("l0") else "glue-grammar"
    return (
      f"PhraseDictionaryMemory name={name} num-features={len(values)}"
      f" path={path} input-factor=0 output-factor=0"
    )
  if kind == "LexicalReordering" and files.reordering:
    return (
      f"LexicalReordering name={name} num-features={len(values)}"
      f" type={_ORIENTATIONS[files.orientation]}-msd-bidirectional-fe-allff"
      f" input-factor=0 output-factor=0 path={files.reordering}"
    )
  if kind == "LM":
    more = " oov-feature=1" if len(values) > 1 else ""
    return (
      f"KENLM name={name} factor=0 path={files.lm} order={files.order}{more}"
    )
  raise InputError(f"a moses.ini has no feature for the weight {name}")
