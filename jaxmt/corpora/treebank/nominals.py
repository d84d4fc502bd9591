"""Noun phrases of the synthetic grammar: Chinese tree and English side by side.

Chinese marks neither number nor definiteness on a bare noun; English must. A
bare subject is `the` and singular, a bare object `a` or, in habits and states,
plural without an article: what the context says, not the word.
"""

from collections.abc import Sequence

from jaxmt.corpora.treebank import modifiers, morphology, names, nouns, people
from jaxmt.corpora.treebank.modifiers import Parts
from jaxmt.corpora.treebank.nouns import Noun
from jaxmt.corpora.treebank.structure import (
  Draw,
  Leaf,
  Nominal,
  Scope,
  Token,
  Tree,
  node,
  words,
)

_FEMALE = ("女孩", "护士", "秘书")
# Belongs to no single person.
_PUBLIC = ("policy", "law", "economy", "environment", "price", "level")
# People one can call one's own.
_RELATED = ("friend", "teacher", "boss", "pupil", "doctor", "expert")
_ABOUT = ("text", "lecture", "movie", "program", "paper")


def _owner(
  scope: Scope, noun: Noun, antecedent: Nominal | None, depth: int
) -> Nominal:
  """Someone or something a noun can belong to."""
  draw = scope.draw
  public = any(tag in _PUBLIC for tag in noun.tags)
  if public or (noun.kind in ("matter", "subject") and draw.chance(0.5)):
    if draw.chance(0.4):
      return people.geography(scope, names.COUNTRIES)
    org = draw.zipf(nouns.BY_TAG["org"])
    return common(scope, org, definite="the", depth=depth + 2)
  if antecedent is not None and draw.chance(0.35):
    scope.tags.append("自己")
    return people.myself(antecedent)
  kind = draw.choose(pronoun=4, name=2, kin=2, common=3)
  if kind == "pronoun":
    return people.pronoun(scope)
  if kind == "name":
    return people.name(scope)
  if kind == "kin":
    return people.kin(scope)
  if depth < 2 and draw.chance(0.6):
    friend = draw.zipf(nouns.BY_TAG["friend"])
    return common(scope, friend, definite="the", depth=2, force="own")
  someone = draw.zipf(nouns.BY_TAG["person"])
  return common(scope, someone, definite="the", depth=depth + 2)


def _own(
  scope: Scope,
  noun: Noun,
  parts: Parts,
  antecedent: Nominal | None,
  depth: int,
) -> None:
  """老师 的 书: the teacher's book; 公司 的 计划: the plan of the company."""
  before = scope.tags.count("的 possessive")
  owner = _owner(scope, noun, antecedent, depth)
  if scope.tags.count("的 possessive") > before:
    scope.tags.append("的 chain")
  scope.tags.append("的 possessive")
  particle = Leaf("DEG", "的")
  parts.outer.append(node("DNP", owner.tree, particle))
  determiner = people.possessive(owner, particle)
  if owner.pronominal:
    parts.determiner = determiner
    return
  rate = 0.15 if owner.human and not owner.heavy else 0.6

  def around(draw: Draw) -> tuple[list[Token], list[Token]]:
    if not draw.chance(rate):
      return determiner(draw), []
    return words("the"), [
      ("of", (particle,)),
      *owner.english(draw, "object"),
    ]

  parts.around = around


def _about(scope: Scope, parts: Parts) -> None:
  """关于 历史 的 书: a book about history."""
  draw = scope.draw
  preposition = Leaf("P", "关于")
  if draw.chance(0.3):
    topic = people.geography(scope, names.COUNTRIES)
  else:
    about = draw.zipf(nouns.BY_TAG[draw.pick(("field", "law", "animal"))])
    topic = common(scope, about, definite="generic", depth=3)
  scope.tags.append("关于 modifier")
  phrase = node("PP", preposition, topic.tree)
  parts.outer.append(node("DNP", phrase, Leaf("DEG", "的")))
  parts.post = lambda d: [
    *words(d.wording(("about", "on")), preposition),
    *topic.english(d, "object"),
  ]


def _shape(scope: Scope, noun: Noun, *, depth: int, subject: bool) -> str:
  """Which modifiers a noun phrase gets."""
  if noun.count in "tz" or depth >= 3:
    return "bare"
  deep = depth >= 1
  stuff = noun.count == "m" and not noun.measures
  owned = not noun.human or any(tag in _RELATED for tag in noun.tags)
  return scope.draw.choose(
    bare=5 if deep else 3.3,
    count=(0.6 if subject else 3) * bool(noun.measures),
    point=0 if stuff else 2 if subject else 1.2,
    quantify=0 if noun.kind in ("subject", "sport", "show") else 0.5,
    own=(0.8 if deep else 1.6) * owned,
    relate=0.5 if depth >= 2 else 1.4 if deep else 2.4,
    about=2 if depth < 2 and any(t in _ABOUT for t in noun.tags) else 0,
    men=0.8 if noun.kind == "person" else 0,
  )


def common(
  scope: Scope,
  noun: Noun,
  *,
  definite: str,
  depth: int = 0,
  subject: bool = False,
  plain: bool = False,
  antecedent: Nominal | None = None,
  force: str = "",
) -> Nominal:
  """A noun phrase around a common noun.

  Args:
    scope: the sentence.
    noun: its head.
    definite: what a bare noun means here: `the`, `a`, or `generic`.
    depth: how deep in the sentence; deep phrases are simple.
    subject: whether it is one.
    plain: nothing but the noun.
    antecedent: what 自己 would refer to.
    force: the shape, when it is not to be drawn.
  """
  shape = "bare" if plain else force
  shape = shape or _shape(scope, noun, depth=depth, subject=subject)
  generic = definite == "generic" and noun.count == "c"
  parts = Parts(plural=generic and shape in ("bare", "about"))
  if shape in ("count", "one"):
    modifiers.count(scope, noun, parts, one=shape == "one")
  elif shape in ("point", "near", "far"):
    near = None if shape == "point" else shape == "near"
    modifiers.point(scope, noun, parts, near=near)
  elif shape in ("quantify", "many"):
    modifiers.quantify(scope, noun, parts, every=shape == "quantify")
  elif shape == "own":
    _own(scope, noun, parts, antecedent, depth)
  elif shape == "about":
    _about(scope, parts)
  elif shape == "men":
    parts.plural, parts.several = True, "all"
    noun = nouns.marked_plural(noun)
    definite = "the"
  elif shape in ("relate", "one related"):
    one = shape == "one related"
    if modifiers.relate(scope, noun, parts, depth, one=one):
      definite = "the"
    else:
      parts.plural = generic
  return _finish(
    scope, noun, parts, definite=definite, plain=plain, depth=depth
  )


def _article(
  draw: Draw, noun: Noun, *, definite: str, plural: bool, plain: bool
) -> list[Token]:
  """The article that English needs and Chinese does not have."""
  if noun.count == "z":
    return []
  if noun.count == "t" or definite == "the":
    return words("the")
  if definite == "generic":
    return []
  if plural or noun.count == "m":
    return words("some") if draw.chance(0.15) and not plain else []
  return words("the" if draw.chance(0.08) else "a")


def _finish(
  scope: Scope,
  noun: Noun,
  parts: Parts,
  *,
  definite: str,
  plain: bool,
  depth: int,
) -> Nominal:
  """Adds adjectives and articles, builds the tree and the wording."""
  draw = scope.draw
  head = Leaf("NN", noun.word)
  nation = None if plain or depth > 1 else modifiers.national(scope, noun)
  tree = node("NP", nation[0] if nation else None, head)
  quality = None
  if not plain and noun.count not in "tz":
    if draw.chance(0.15 if parts.outer else 0.27):
      quality = modifiers.adjective(scope, noun)
  if quality:
    tree = node("NP", quality[0], tree)
  if parts.outer:
    tree = node("NP", *parts.outer, tree)
  plural = parts.plural or noun.count == "p"

  def noun_words(draw: Draw) -> list[Token]:
    tokens = quality[1](draw) if quality else []
    if nation:
      tokens = [*tokens, *nation[1](draw)]
    word = draw.wording(noun.english)
    if parts.plural and noun.count == "c":
      word = morphology.plural(word)
    return [*tokens, *words(word, head)]

  def english(draw: Draw, case: str) -> list[Token]:
    post: list[Token] | None = None
    tokens: list[Token] | None = None
    if parts.around:
      tokens, post = parts.around(draw)
    elif parts.determiner:
      tokens = parts.determiner(draw)
    if tokens is None:
      tokens = _article(
        draw, noun, definite=definite, plural=plural, plain=plain
      )
    if parts.unit:
      tokens = [*tokens, *parts.unit(draw)]
    after = parts.post(draw) if post is None else post
    tokens = [*tokens, *noun_words(draw), *after]
    if case == "possessive":
      ending = "'" if plural and tokens[-1][0].endswith("s") else "'s"
      tokens = [*tokens, *words(ending)]
    return tokens

  counted = parts.plural if parts.unit else plural
  return Nominal(
    tree=tree,
    english=english,
    agreement="pl" if counted else "3s",
    pronoun="they" if counted else _refer(noun),
    human=noun.human,
    heavy=parts.heavy,
    several=parts.several,
  )


def _refer(noun: Noun) -> str:
  """The English pronoun for one of them."""
  if not noun.human:
    return "it"
  return "she" if noun.word in _FEMALE else "he"


def together(scope: Scope, members: Sequence[Nominal]) -> Nominal:
  """A 和 B, A 、 B 和 C."""
  scope.tags.append("coordination")
  joint = Leaf("CC", scope.draw.zipf(("和", "与")))
  commas = [Leaf("PU", "、") for _ in members[2:]]
  children: list[Tree | Leaf | None] = [members[0].tree]
  for comma, member in zip(commas, members[1:], strict=False):
    children += [comma, member.tree]
  children += [joint, members[-1].tree]

  def english(draw: Draw, case: str) -> list[Token]:
    inner = "object" if case == "possessive" else case
    tokens = members[0].english(draw, inner)
    for comma, member in zip(commas, members[1:], strict=False):
      tokens = [*tokens, (",", (comma,)), *member.english(draw, inner)]
    tokens = [*tokens, ("and", (joint,)), *members[-1].english(draw, inner)]
    return [*tokens, *words("'s")] if case == "possessive" else tokens

  return Nominal(
    tree=node("NP", *children),
    english=english,
    agreement="pl",
    pronoun="they",
    human=members[0].human,
    heavy=any(member.heavy for member in members),
    several="all" if len(members) > 2 else "both",
  )


def person(
  scope: Scope,
  *,
  definite: str = "the",
  depth: int = 0,
  subject: bool = False,
  tag: str = "person",
  antecedent: Nominal | None = None,
  reflexive: bool = True,
) -> Nominal:
  """Anyone: a pronoun, a name, a relative, a role, several of them."""
  draw = scope.draw
  kind = draw.choose(
    pronoun=3.3 if subject else 1.5,
    name=1.8 if subject else 1.5,
    kin=1.2,
    role=4 if depth < 2 else 1.5,
    both=0.7 if depth < 2 else 0,
  )
  if kind == "pronoun":
    return people.pronoun(scope, antecedent=antecedent)
  if kind == "name":
    return people.name(scope)
  owner = antecedent if reflexive else None
  if kind == "kin":
    return people.kin(scope, antecedent=owner)
  if kind == "both":
    members = [people.name(scope), people.kin(scope)]
    if draw.chance(0.2):
      members.append(people.name(scope))
    elif draw.chance(0.5):
      members.reverse()
    return together(scope, members)
  return common(
    scope,
    draw.zipf(nouns.BY_TAG[tag]),
    definite=definite,
    depth=depth,
    subject=subject,
    antecedent=owner,
  )
