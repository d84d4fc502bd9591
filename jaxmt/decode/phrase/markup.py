"""Markup in the input of phrase-based translation, as Moses users know it.

    <zone> das alte haus </zone>   translated together, without a break
    er kommt , <wall/> sagt sie    words before it are translated first
    das <n translation="house||home" prob="0.8||0.2">haus</n>

Phrases do not cross a wall, nor part of a zone's border. A tag of any other
name has translations of the words in it with their probabilities (1 if they are
not given). They are used instead of all phrases that touch these words
(*exclusive*), or beside them (*inclusive*). Such a phrase pair scores ln p,
shared equally by the phrase table's probabilities, and counts as a phrase; the
reordering model says nothing of it.
"""

import dataclasses
import math
import re
from collections.abc import Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged, row_offsets

LONGEST = 31  # words of a marked span: see `phrase_order.WINDOW`

_TAG = re.compile(
  r"<(?P<close>/)?(?P<name>[A-Za-z][\w.-]*)"
  r"(?P<values>(?:\s+[\w-]+\s*=\s*\"[^\"]*\")*)\s*(?P<empty>/)?>"
)
_VALUE = re.compile(r"([\w-]+)\s*=\s*\"([^\"]*)\"")
_BETWEEN = "||"  # alternatives


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarkedPhrase:
  """A translation that the markup gives.

  Attributes:
    source: source words.
    target: target words.
    log_probability: ln p.
  """

  source: tuple[str, ...]
  target: tuple[str, ...]
  log_probability: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Marks:
  """The markup of B sentences.

  Attributes:
    walls: words before which a wall stands, B rows of int32.
    zones: begin and end of zones, int32 `[Z, 2]` in B rows.
    options: begin and end of marked translations and which one, or which rule
      of the model once it has them (`phrase_model.with_marked`), int32 `[O, 3]`
      in B rows.
    phrases: the marked translations.
    exclusive: whether they alone translate their words.
  """

  walls: Ragged
  zones: Ragged
  options: Ragged
  phrases: tuple[MarkedPhrase, ...] = ()
  exclusive: bool = True

  def __len__(self) -> int:
    return len(self.walls)


def make_marks(
  walls: Sequence[Sequence[int]],
  zones: Sequence[Sequence[tuple[int, int]]],
  options: Sequence[Sequence[tuple[int, int, int]]] | None = None,
  *,
  phrases: Sequence[MarkedPhrase] = (),
  exclusive: bool = True,
) -> Marks:
  """Returns the marks of B sentences, each given as a list; see `Marks`."""
  if options is None:
    options = [[]] * len(walls)
  return Marks(
    walls=_rows(walls, ()),
    zones=_rows(zones, (2,)),
    options=_rows(options, (3,)),
    phrases=tuple(phrases),
    exclusive=exclusive,
  )


def no_marks(size: int) -> Marks:
  """Returns sentences without marks."""
  return make_marks([[]] * size, [[]] * size)


def _rows(rows: Sequence[Sequence], shape: tuple[int, ...]) -> Ragged:
  flat = [item for row in rows for item in row]
  return Ragged(
    flat=np.array(flat, np.int32).reshape(-1, *shape),
    offsets=row_offsets([len(row) for row in rows]),
  )


def select_marks(marks: Marks, rows: np.ndarray) -> Marks:
  """Returns the marks of some sentences."""
  return dataclasses.replace(
    marks,
    walls=ragged.select(marks.walls, rows),
    zones=ragged.select(marks.zones, rows),
    options=ragged.select(marks.options, rows),
  )


def parse(
  lines: Sequence[str], *, path: str | None = None, exclusive: bool = True
) -> tuple[list[str], Marks]:
  """Returns the lines without tags, and their marks.

  Args:
    lines: sentences with markup.
    path: their file, for messages.
    exclusive: see `Marks`.

  Raises:
    InputError: for a tag that does not begin or end, or that says nothing.
  """
  plain, walls, zones, options = [], [], [], []
  phrases: list[MarkedPhrase] = []
  for number, line in enumerate(lines, start=1):
    try:
      words, own = _parse_line(line)
    except InputError as error:
      raise InputError(str(error), path=path, line=number) from error
    plain.append(" ".join(words))
    walls.append([wall for wall in own.walls if 0 < wall < len(words)])
    zones.append([span for span in own.zones if span[1] - span[0] > 1])
    row = []
    for begin, end, alternatives in own.translations:
      for target, log_probability in alternatives:
        row.append((begin, end, len(phrases)))
        phrases.append(
          MarkedPhrase(
            source=tuple(words[begin:end]),
            target=target,
            log_probability=log_probability,
          )
        )
    options.append(row)
  return plain, make_marks(
    walls, zones, options, phrases=phrases, exclusive=exclusive
  )


@dataclasses.dataclass
class _Line:
  """What the tags of a line say."""

  walls: list[int] = dataclasses.field(default_factory=list)
  zones: list[tuple[int, int]] = dataclasses.field(default_factory=list)
  translations: list = dataclasses.field(default_factory=list)


def _parse_line(line: str) -> tuple[list[str], _Line]:
  words: list[str] = []
  found, begun = _Line(), []
  place = 0
  for tag in _TAG.finditer(line):
    words += line[place : tag.start()].split()
    place = tag.end()
    name, alternatives = tag["name"], _alternatives(tag)
    if name == "wall" and tag["empty"] and not tag["close"]:
      found.walls.append(len(words))
    elif tag["close"] and begun and begun[-1][0] == name:
      _, begin, inner = begun.pop()
      if inner is None:
        found.zones.append((begin, len(words)))
      else:
        _add(found, begin, len(words), inner)
    elif tag["close"] or tag["empty"] or (name != "zone") == (not alternatives):
      raise InputError(f"unexpected tag '{tag[0]}'")
    else:
      begun.append((name, len(words), alternatives or None))
  if begun:
    tag = begun[-1][0]
    what = "a zone" if tag == "zone" else f"tag '<{tag}>'"
    raise InputError(f"{what} does not end")
  return words + line[place:].split(), found


def _add(found: _Line, begin: int, end: int, alternatives) -> None:
  """Adds marked translations of a span."""
  if not 0 < end - begin <= LONGEST:
    raise InputError(
      f"{end - begin} words with a given translation: 1 to {LONGEST} can be"
    )
  for other in found.translations:
    if begin < other[1] and other[0] < end:
      raise InputError("words with given translations overlap")
  found.translations.append((begin, end, alternatives))


def _alternatives(tag: re.Match) -> list[tuple[tuple[str, ...], float]]:
  """Target words and ln p of the translations of a tag; none without any."""
  values = dict(_VALUE.findall(tag["values"]))
  if "translation" not in values:
    return []
  texts = values["translation"].split(_BETWEEN)
  numbers = values.get("prob", _BETWEEN.join(["1"] * len(texts)))
  shares = numbers.split(_BETWEEN)
  if len(shares) != len(texts):
    raise InputError(f"{len(texts)} translations, {len(shares)} probabilities")
  out = []
  for text, share in zip(texts, shares, strict=True):
    if not text.split():
      raise InputError("an empty translation")
    try:
      value = float(share)
    except ValueError:
      value = 0.0
    if not 0 < value <= 1:
      raise InputError(f"'{share}' is no probability above 0")
    out.append((tuple(text.split()), math.log(value)))
  return out
