"""What stands before a Chinese noun: numerals, demonstratives, adjectives.

Each production adds a Chinese tree and its English to the `Parts` of a noun
phrase under construction.
"""

import dataclasses
from collections.abc import Callable

from jaxmt.corpora.treebank import lexicon, morphology, names, nouns
from jaxmt.corpora.treebank.nouns import Noun
from jaxmt.corpora.treebank.structure import (
  Draw,
  Leaf,
  Scope,
  Token,
  Tree,
  Wording,
  node,
  words,
)

Around = Callable[[Draw], tuple[list[Token] | None, list[Token]]]

_NATIONAL = ("person", "vehicle", "org", "movie", "company", "dish")


def _nothing(draw: Draw) -> list[Token]:
  del draw
  return []


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Parts:
  """A noun phrase under construction.

  Attributes:
    outer: Chinese modifiers outside the adjectives, left to right.
    determiner: English before the adjectives; None for an article that the
      context decides.
    around: instead of `determiner` and `post`: both drawn together.
    post: English after the noun.
    plural: English number.
    unit: the English unit of a noun that is not counted.
    heavy: there is a relative clause.
    several: what 都 would mean after it.
  """

  outer: list[Tree] = dataclasses.field(default_factory=list)
  determiner: Wording | None = None
  around: Around | None = None
  post: Wording = _nothing
  plural: bool = False
  unit: Wording | None = None
  heavy: bool = False
  several: str = ""


def adjective(scope: Scope, noun: Noun) -> tuple[Tree, Wording] | None:
  """An adjective that fits the noun, with or without 的 and a degree."""
  draw = scope.draw
  fitting = {
    a.word: a
    for tag in noun.tags
    for a in lexicon.ADJECTIVES.get(tag, ())
    if a.use != "p"
  }
  if not fitting:
    return None
  chosen = draw.zipf(tuple(fitting.values()))
  if chosen.use not in "ac" and draw.chance(0.3):
    degree, wordings = draw.zipf(lexicon.DEGREES[:2])
    adverb, leaf = Leaf("AD", degree), Leaf("VA", chosen.word)
    inner = node("VP", node("ADVP", adverb), node("VP", leaf))
    tree = node("CP", node("IP", inner), Leaf("DEC", "的"))
    return tree, lambda d: [
      *words(d.wording(wordings), adverb),
      *words(d.wording(chosen.english), leaf),
    ]
  leaf = Leaf("JJ", chosen.word)
  tree = node("ADJP", leaf)
  if chosen.use != "j":
    tree = node("DNP", tree, Leaf("DEG", "的"))
  return tree, lambda d: words(d.wording(chosen.english), leaf)


def national(scope: Scope, noun: Noun) -> tuple[Leaf, Wording] | None:
  """中国 学生, 历史 老师: a noun before the noun."""
  draw = scope.draw
  if "teacher" in noun.tags and draw.chance(0.25):
    subject = draw.zipf(nouns.BY_TAG["subject"])
    leaf = Leaf("NN", subject.word)
    return leaf, lambda d: words(d.wording(subject.english), leaf)
  if any(tag in _NATIONAL for tag in noun.tags) and draw.chance(0.06):
    word, _, people = draw.zipf(names.COUNTRIES)
    leaf = Leaf("NR", word)
    return leaf, lambda d: words(d.wording(people), leaf)
  return None


def _measure(scope: Scope, noun: Noun) -> Leaf:
  scope.tags.append("measure word")
  return Leaf("M", scope.draw.zipf(noun.measures))


def _unit(noun: Noun, measure: Leaf, *, many: bool) -> Wording | None:
  """`cups of`, for nouns that English does not count."""
  if noun.count not in ("m", "p"):
    return None
  units = lexicon.UNITS["双" if "pair" in noun.tags else measure.word]

  def english(draw: Draw) -> list[Token]:
    unit = draw.wording(units)
    unit = morphology.plural(unit) if many else unit
    return words(f"{unit} of", measure)

  return english


def count(scope: Scope, noun: Noun, parts: Parts, *, one: bool = False) -> None:
  """一 本, 三 杯: a numeral and a measure word."""
  draw = scope.draw
  measure = _measure(scope, noun)
  if one or draw.chance(0.4):
    number = Leaf("CD", "一")
    wordings: tuple[str, ...] = ("a", "a", "one")
    if noun.human or noun.count != "c":
      wordings = ("a",)
    parts.plural = False
  elif draw.chance(0.15) and noun.count == "c":
    number, wordings = Leaf("CD", "几"), ("several", "a few")
    parts.plural = True
  else:
    rare = draw.chance(0.12)
    if rare:
      word, wordings = draw.pick(lexicon.RARE_NUMERALS)
    else:
      word, wordings = draw.zipf(lexicon.NUMERALS)
    number = Leaf("CD", word)
    parts.plural = True
  parts.outer.append(node("QP", number, node("CLP", measure)))
  parts.determiner = lambda d: words(d.wording(wordings), number)
  parts.unit = _unit(noun, measure, many=parts.plural)


def point(
  scope: Scope, noun: Noun, parts: Parts, *, near: bool | None = None
) -> None:
  """这 本, 那 三 本, 这些; `near` is 这, not 那, None either."""
  draw = scope.draw
  if near is None:
    near = draw.chance(0.5)
  one, many = ("this", "these") if near else ("that", "those")
  if not noun.measures or draw.chance(0.25):
    leaf = Leaf("DT", "这些" if near else "那些")
    parts.plural = noun.count == "c"
    parts.several = "all" if parts.plural else ""
    text = many if noun.count in "cp" else one
    parts.outer.append(node("DP", leaf))
    parts.determiner = lambda d: words(text, leaf)
    return
  measure = _measure(scope, noun)
  leaf, clp = Leaf("DT", "这" if near else "那"), node("CLP", measure)
  parts.plural = False
  if draw.chance(0.25) and noun.count == "c":
    word, wordings = draw.zipf(lexicon.NUMERALS[:4])
    number = Leaf("CD", word)
    parts.plural = True
    parts.several = "both" if word == "两" else "all"
    parts.outer.append(node("DP", leaf, node("QP", number, clp)))
    parts.determiner = lambda d: [
      (many, (leaf,)),
      *words(d.wording(wordings), number),
    ]
    return
  parts.outer.append(node("DP", leaf, clp))
  parts.unit = _unit(noun, measure, many=False)
  parts.determiner = lambda d: words(one, leaf)


def quantify(
  scope: Scope, noun: Noun, parts: Parts, *, every: bool = True
) -> None:
  """很多, 一些; if `every` also 所有, 每 个."""
  draw = scope.draw
  if every and noun.measures and noun.count == "c" and draw.chance(0.25):
    measure, leaf = _measure(scope, noun), Leaf("DT", "每")
    parts.outer.append(node("DP", leaf, node("CLP", measure)))
    parts.determiner = lambda d: words(d.wording(("every", "each")), leaf)
    return
  rows = lexicon.QUANTITIES if every else lexicon.QUANTITIES[:4]
  word, tag, counted, mass = draw.zipf(rows)
  leaf = Leaf(tag, word)
  parts.outer.append(node("DP" if tag == "DT" else "QP", leaf))
  options = counted if noun.count in "cp" else mass
  parts.plural = noun.count == "c"
  parts.determiner = lambda d: words(d.wording(options), leaf)


def relate(
  scope: Scope, noun: Noun, parts: Parts, depth: int, *, one: bool
) -> bool:
  """A relative clause, before or after a demonstrative or numeral.

  `one`: with a numeral. Returns whether there is a verb for the noun.
  """
  draw = scope.draw
  relative = scope.relative(scope, noun, depth)
  if relative is None:
    return False
  scope.tags.append("relative clause")
  if noun.measures and (one or draw.chance(0.45)):
    counted = one or draw.chance(0.4)
    (count if counted else point)(scope, noun, parts)
  outside = draw.chance(0.6)
  parts.outer.insert(0 if outside else len(parts.outer), relative.tree)
  parts.heavy = True
  many = parts.plural or (noun.count == "p" and parts.unit is None)
  agreement = "pl" if many else "3s"
  parts.post = lambda d: relative.english(d, agreement, noun.human)
  return True
