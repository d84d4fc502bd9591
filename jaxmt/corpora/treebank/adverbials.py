"""Times, places, company: before the verb in Chinese, elsewhere in English."""

from collections.abc import Sequence

from jaxmt.corpora.treebank import lexicon, names, nominals, nouns, people
from jaxmt.corpora.treebank.nouns import Noun
from jaxmt.corpora.treebank.structure import (
  Adverbial,
  Draw,
  Leaf,
  Nominal,
  Scope,
  Token,
  Tree,
  Wording,
  node,
  words,
)

_TIME_TAGS = {
  **dict.fromkeys(("上", "下", "这", "每"), "DT"),
  **dict.fromkeys(("个", "天", "年"), "M"),
  **dict.fromkeys(("前", "以后"), "LC"),
  **dict.fromkeys(("星期", "月", "周末"), "NN"),
}

# Places that belong to someone.
OWNED = ("room", "company", "surface", "opened", "work")


def time(scope: Scope, tense: str) -> Adverbial:
  """A time that goes with a tense: yesterday, three days ago, every week."""
  draw = scope.draw
  parts, wordings = draw.zipf(lexicon.TIMES[tense])
  scope.tags.append("time")
  leaves: list[Leaf] = []
  number = ""
  for part in parts:
    if part == "#":
      word, english_numbers = draw.zipf(lexicon.NUMERALS[:10])
      number = english_numbers[0]
      leaves.append(Leaf("CD", word))
    else:
      tag = _TIME_TAGS.get(part, "NT") if len(parts) > 1 else "NT"
      leaves.append(Leaf(tag, part))

  def links(word: str) -> tuple[Leaf, ...]:
    if leaves[0].tag == "NT":
      return tuple(leaves)
    if leaves[0].tag == "CD":
      return (leaves[1 if word in ("days", "years") else 2],)
    first = word in ("last", "next", "every", "this")
    return (leaves[0 if first else -1],)

  def english(draw: Draw) -> list[Token]:
    return [
      (number, (leaves[0],)) if word == "#" else (word, links(word))
      for word in draw.wording(wordings).split()
    ]

  places = ("end",) if tense == "ever" else ("end", "front")
  return Adverbial(
    trees=(_time_tree(leaves),), english=english, places=places, rank=5
  )


def _time_tree(leaves: list[Leaf]) -> Tree:
  if leaves[0].tag == "CD":
    count = node("QP", leaves[0], node("CLP", leaves[1]))
    return node("LCP", count, leaves[2])
  if leaves[0].tag == "DT":
    pointed = node("DP", leaves[0], node("CLP", leaves[1]))
    if len(leaves) == 2:
      return pointed
    return node("NP", pointed, node("NP", leaves[2]))
  return node("NP", *leaves)


def located(
  scope: Scope, noun: Noun, *, depth: int = 2
) -> tuple[Tree, Wording]:
  """A place without 在: 桌子 上, 学校; its English has a preposition."""
  draw = scope.draw
  shape = "bare"
  if noun.count not in "tz" and noun.measures:
    owned = any(tag in noun.tags for tag in OWNED)
    shape = draw.choose(bare=7, point=1.2, own=1.8 * owned, relate=0.5)
  thing = nominals.common(scope, noun, definite="the", depth=depth, force=shape)
  options: Sequence = ()
  for tag in ("surface", "wall", "opened", "room"):
    if tag in noun.tags:
      options = lexicon.LOCALIZERS[tag]
  if not options and noun.count != "z" and draw.chance(0.45):
    options = lexicon.LOCALIZERS["place"]
  assert thing.tree is not None
  if not options:
    preposition = "at" if "at" in noun.tags or noun.count == "z" else "in"
    return thing.tree, lambda d: [
      *words(preposition),
      *thing.english(d, "object"),
    ]
  word, prepositions = draw.zipf(options)
  leaf = Leaf("LC", word)
  return node("LCP", thing.tree, leaf), lambda d: [
    *words(d.wording(prepositions), leaf),
    *thing.english(d, "object"),
  ]


def linked_first(wording: Wording, leaf: Leaf) -> Wording:
  """The same words, the first of which also translates `leaf`."""

  def english(draw: Draw) -> list[Token]:
    (first, leaves), *rest = wording(draw)
    return [(first, (leaf, *leaves)), *rest]

  return english


def place(scope: Scope, tags: Sequence[str]) -> Adverbial:
  """在 图书馆: at the library."""
  draw = scope.draw
  tag = draw.pick(tags)
  if tag == "*":
    tag = draw.pick(("city", "venue", "out", "room"))
  scope.tags.append("preposed PP")
  preposition = Leaf("P", "在")
  if tag in ("city", "country"):
    rows = names.CITIES if tag == "city" else names.COUNTRIES
    where = people.geography(scope, rows)
    return Adverbial(
      trees=(node("PP", preposition, where.tree),),
      english=lambda d: [("in", (preposition,)), *where.english(d, "object")],
      rank=3,
    )
  tree, wording = located(scope, draw.zipf(nouns.BY_TAG[tag]))
  return Adverbial(
    trees=(node("PP", preposition, tree),),
    english=linked_first(wording, preposition),
    rank=3,
  )


def company(scope: Scope, other: Nominal) -> Adverbial:
  """和 朋友 一起: with a friend."""
  draw = scope.draw
  scope.tags.append("preposed PP")
  preposition = Leaf("P", draw.zipf(("和", "跟")))
  trees = (node("PP", preposition, other.tree),)
  also = None
  if draw.chance(0.6):
    also = Leaf("AD", "一起")
    trees = (*trees, node("ADVP", also))

  def english(draw: Draw) -> list[Token]:
    start: list[Token] = [("with", (preposition,))]
    if also and draw.chance(0.35):
      start = [("together", (also,)), *start]
    elif also:
      start = [("with", (preposition, also))]
    return [*start, *other.english(draw, "object")]

  return Adverbial(trees=trees, english=english, rank=1)


def benefit(scope: Scope, other: Nominal) -> Adverbial:
  """给 妈妈, 为 客人: for someone."""
  preposition = Leaf("P", scope.draw.zipf(("给", "为")))
  scope.tags.append("preposed PP")
  return Adverbial(
    trees=(node("PP", preposition, other.tree),),
    english=lambda d: [("for", (preposition,)), *other.english(d, "object")],
    rank=1,
  )


def language(scope: Scope) -> Adverbial:
  """用 汉语: in Chinese."""
  noun = scope.draw.zipf(nouns.BY_TAG["lang"])
  scope.tags.append("preposed PP")
  preposition, leaf = Leaf("P", "用"), Leaf("NN", noun.word)
  return Adverbial(
    trees=(node("PP", preposition, node("NP", leaf)),),
    english=lambda d: [("in", (preposition,)), (noun.english[0], (leaf,))],
    rank=1,
  )
