"""Verbs with their objects: the cores of clauses, in both languages.

Each production takes the subject and the setting (whose aspect particle it
puts behind the Chinese verb) and returns a `Core`.
"""

from collections.abc import Callable, Sequence

from jaxmt.corpora.treebank import (
  adverbials,
  lexicon,
  names,
  nominals,
  nouns,
  patterns,
  people,
  verbs,
)
from jaxmt.corpora.treebank.english import Setting, infinitive, template
from jaxmt.corpora.treebank.nouns import Noun
from jaxmt.corpora.treebank.structure import (
  Core,
  Draw,
  Leaf,
  Nominal,
  Scope,
  Tree,
  Verbal,
  node,
  words,
)
from jaxmt.corpora.treebank.verbs import Frame

# Kinds of things named in pairs.
_PAIRED = ("food", "item", "text", "clothes", "drink", "animal")
# What one can be by profession.
_ROLES = tuple(
  noun
  for noun in nouns.BY_TAG["person"]
  if not {"care", "thief", "guest", "friend"} & set(noun.tags)
  or noun.word == "学生"
)


def subject_for(scope: Scope, specs: Sequence[str], *, depth: int) -> Nominal:
  """A subject of one of the kinds a verb takes."""
  draw = scope.draw
  spec = draw.pick(specs)
  if spec == "h":
    return nominals.person(scope, depth=depth, subject=True)
  if spec == "kin":
    return people.kin(scope)
  tag = "org" if spec == "o" else spec
  return nominals.common(
    scope,
    draw.zipf(nouns.BY_TAG[tag]),
    definite="the",
    depth=depth,
    subject=True,
  )


def object_for(
  scope: Scope,
  frame: Frame,
  *,
  setting: Setting,
  subject: Nominal | None,
  depth: int,
  known: bool = False,
) -> Nominal:
  """An object a frame takes; what a bare one means depends on the tense.

  One that is `known` is definite and not counted.
  """
  tag = frame.object
  definite = "the" if known else _definiteness(frame, setting)
  if tag == "kin":
    return people.kin(scope, antecedent=subject)
  if tag in ("person", "friend", "star"):
    return nominals.person(
      scope,
      definite="the" if tag == "person" else definite,
      depth=depth,
      tag=tag,
      antecedent=subject,
    )
  if tag == "visit" and scope.draw.chance(0.3):
    return people.geography(scope, names.PLACES)
  noun = scope.draw.zipf(nouns.BY_TAG[tag])
  plain = "n" in frame.flags
  shape = ""
  if known and not plain and noun.count not in "tz":
    shape = scope.draw.choose(bare=4, point=1.5, own=1.5, relate=1.5)
  elif "g" in frame.flags:
    shape = scope.draw.choose(bare=5, point=1.5 * (noun.count == "c"), own=1)
  elif not plain and depth == 0 and noun.kind in _PAIRED:
    others = [n for n in nouns.BY_TAG[tag] if n.kind == noun.kind]
    others.remove(noun)
    if others and scope.draw.chance(0.08):
      return _pair(scope, noun, others, definite)
  return nominals.common(
    scope,
    noun,
    definite=definite,
    depth=depth,
    plain=plain,
    antecedent=subject,
    force=shape,
  )


def _definiteness(frame: Frame, setting: Setting) -> str:
  if "d" in frame.flags:
    return "the"
  return "generic" if setting.habitual or "g" in frame.flags else "a"


def _pair(
  scope: Scope, noun: Noun, others: Sequence[Noun], definite: str
) -> Nominal:
  """Two different things of one sort: 面包 和 牛奶."""
  draw = scope.draw
  members = [
    nominals.common(
      scope,
      one,
      definite=definite,
      depth=3,
      force=draw.choose(bare=2, count=bool(one.measures)),
    )
    for one in (noun, draw.zipf(others))
  ]
  return nominals.together(scope, members)


def verb_leaves(verb: Sequence[str]) -> tuple[Tree | Leaf, tuple[Leaf, ...]]:
  """The Chinese verb: a leaf, or a VRD over a verb and its result."""
  leaves = tuple([Leaf("VV", word) for word in verb])
  return (leaves[0] if len(leaves) == 1 else node("VRD", *leaves)), leaves


def verbal_of(
  frame: Frame, leaves: tuple[Leaf, ...], obj: Nominal | None
) -> Callable[[Draw], Verbal]:
  """The English of a frame; without `obj` its object stands elsewhere."""

  def verbal(draw: Draw) -> Verbal:
    filler = obj.english(draw, "object") if obj else []
    return template(draw.wording(frame.english), leaves, filler)

  return verbal


def transitive(frame: Frame, *, setting: Setting, obj: Nominal) -> Core:
  """看 书: read a book."""
  verb, leaves = verb_leaves(frame.verb)
  return Core(
    tree=node("VP", verb, setting.aspect, obj.tree),
    verbal=verbal_of(frame, leaves, obj),
  )


def intransitive(scope: Scope, row: tuple, *, setting: Setting) -> Core:
  """工作, 游泳; with 了 also for how long."""
  draw = scope.draw
  word, _, wordings, flags, _ = row
  leaf = Leaf("VV", word)
  timed = setting.aspect and not flags and setting.tense == "past"
  if timed and len(word) == 2 and word in patterns.LASTING and draw.chance(0.7):
    return _lasting(scope, leaf, wordings, setting)
  return Core(
    tree=node("VP", leaf, setting.aspect),
    verbal=lambda d: template(d.wording(wordings).split(), (leaf,), ()),
  )


def _lasting(
  scope: Scope, leaf: Leaf, wordings: Sequence[str], setting: Setting
) -> Core:
  """工作 了 三 年: worked for three years."""
  draw = scope.draw
  scope.tags.append("duration")
  word, numbers = draw.zipf(lexicon.NUMERALS[:10])
  unit, name = draw.zipf((("天", "days"), ("年", "years"), ("分钟", "minutes")))
  number, measure = Leaf("CD", word), Leaf("M", unit)
  count = node("QP", number, node("CLP", measure))
  rest = [*words("for"), (numbers[0], (number,)), (name, (measure,))]

  def verbal(draw: Draw) -> Verbal:
    base = template(draw.wording(wordings).split(), (leaf,), ())
    return Verbal(base.lemma, base.leaves, [*base.rest, *rest])

  return Core(tree=node("VP", leaf, setting.aspect, count), verbal=verbal)


def destination(scope: Scope) -> tuple[Nominal, bool]:
  """Where someone goes, and whether it is home (`go home`, no `to`)."""
  draw = scope.draw
  if draw.chance(0.35):
    return people.geography(scope, names.PLACES), False
  tag = draw.pick(("venue", "visit", "shop", "home", "at", "in"))
  noun = draw.zipf(nouns.BY_TAG[tag])
  shape = "bare"
  if noun.count == "c":
    owned = any(tag in noun.tags for tag in adverbials.OWNED)
    shape = draw.choose(bare=6, own=1.5 * owned, point=1, relate=1)
  thing = nominals.common(scope, noun, definite="the", depth=1, force=shape)
  return thing, noun.count == "z"


def motion(
  scope: Scope,
  *,
  setting: Setting,
  subject: Nominal,
  depth: int,
  away: bool = False,
) -> Core:
  """去 图书馆 (借 书): go to the library (to borrow books); `away` is 去."""
  draw = scope.draw
  where, home = destination(scope)
  ways = patterns.MOTION[:1] if away else patterns.MOTION
  word, wordings = draw.zipf(patterns.HOMEWARD if home else ways)
  leaf = Leaf("VV", word)
  purpose = None
  if draw.chance(0.5):
    scope.tags.append("serial verb")
    purpose = action(scope, subject=subject, depth=depth + 1)
  by = None
  if not home and word == "去" and draw.chance(0.3):
    by = _vehicle(scope)
  tree = node("VP", leaf, setting.aspect, where.tree)
  if purpose:
    # The aspect particle of a series stands behind its last verb or nowhere.
    tree = node(
      "VP", node("VP", leaf, setting.aspect, where.tree), purpose.tree
    )
  if by:
    tree = node("VP", by[0], tree)

  def verbal(draw: Draw) -> Verbal:
    to = [] if home else words("to")
    rest = [*to, *where.english(draw, "object")]
    if by:
      rest += by[1](draw)
    base = template(draw.wording(wordings).split(), (leaf,), ())
    tail = infinitive(purpose.verbal(draw), "to") if purpose else []
    return Verbal(base.lemma, base.leaves, [*base.rest, *rest, *tail])

  return Core(tree=tree, verbal=verbal)


def _vehicle(scope: Scope):
  """坐 火车 before a motion: by train."""
  noun = scope.draw.zipf(nouns.BY_TAG["transit"])
  verb, leaf = Leaf("VV", "坐"), Leaf("NN", noun.word)
  tree = node("VP", verb, node("NP", leaf))
  return tree, lambda d: [("by", (verb,)), (d.wording(noun.english), (leaf,))]


def action(
  scope: Scope,
  *,
  subject: Nominal,
  depth: int,
  habit: bool = False,
) -> Core:
  """A verb phrase without tense, for series, pivots and catenatives."""
  draw = scope.draw
  if draw.chance(0.15):
    rows = [r for r in patterns.INTRANSITIVE if r[1][0] == "h" and r[3] != "i"]
    return intransitive(scope, draw.zipf(rows), setting=Setting())
  frame = draw.weighted(*verbs.HABITS)
  bare = Setting(tense="base", habitual=habit)
  obj = object_for(scope, frame, setting=bare, subject=subject, depth=depth)
  return transitive(frame, setting=bare, obj=obj)


def copula(scope: Scope, *, subject: Nominal, depth: int, family: bool) -> Core:
  """他 是 老师: he is a teacher; `family`: he can be someone's brother."""
  draw = scope.draw
  leaf = Leaf("VC", "是")
  many = subject.agreement == "pl" and subject.pronoun != "you"
  many = many or subject.several
  kind = draw.choose(role=6, kin=0 if many or not family else 1.5, own=1.5)
  if kind == "kin":
    what = people.kin(scope, gender=subject.pronoun)
  else:
    noun = draw.zipf(nouns.BY_TAG["friend"] if kind == "own" else _ROLES)
    shape = "own" if kind == "own" and not many else "bare"
    if kind == "role" and not many and draw.chance(0.35):
      shape = "relate" if depth == 0 and draw.chance(0.3) else "one"
    what = nominals.common(
      scope,
      noun,
      definite="generic" if many else "a",
      depth=1,
      force=shape,
    )
  return Core(
    tree=node("VP", leaf, what.tree),
    verbal=lambda d: Verbal("be", (leaf,), what.english(d, "object")),
  )
