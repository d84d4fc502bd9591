"""Statements of how things are: being, having, comparing, the weather."""

from jaxmt.corpora.treebank import (
  adverbials,
  constructions,
  lexicon,
  names,
  nominals,
  nouns,
  people,
  predicates,
  settings,
)
from jaxmt.corpora.treebank.clauses import Clause, build
from jaxmt.corpora.treebank.english import Setting
from jaxmt.corpora.treebank.structure import (
  Adverbial,
  Core,
  Leaf,
  Nominal,
  Scope,
  Verbal,
  node,
  words,
)


def _there(leaf: Leaf, agreement: str) -> Nominal:
  return Nominal(
    tree=None,
    english=lambda d, case: [("there", (leaf,))],
    agreement=agreement,
    pronoun="it",
    human=False,
  )


def copula(scope: Scope, depth: int) -> Clause:
  """他 是 老师: he is a teacher."""
  named = scope.draw.chance(0.4)
  if named:
    who = people.name(scope)
  else:
    who = nominals.person(scope, depth=max(depth, 1), subject=True)
  setting = settings.draw_setting(scope, state=True)
  core = predicates.copula(scope, subject=who, depth=depth, family=named)
  return build(scope, subject=who, core=core, setting=setting)


def _thing(
  scope: Scope, depth: int, *, bare: bool
) -> tuple[Nominal, tuple[str, ...]]:
  """Something adjectives can be said of, with its tags."""
  draw = scope.draw
  if draw.chance(0.4):
    return (
      nominals.person(scope, depth=max(depth, 1), subject=True),
      ("person",),
    )
  tag = draw.pick(("goods", "place", "text", "food", "matter", "vehicle"))
  fitting = [
    n
    for n in nouns.BY_TAG[tag]
    if n.count in "cpm"
    and any(
      a.comparative and a.use != "a"
      for t in n.tags
      for a in lexicon.ADJECTIVES.get(t, ())
    )
  ]
  noun = draw.zipf(fitting)
  shape = draw.choose(bare=bare, near=3, own=2, relate=2 if depth == 0 else 0.5)
  thing = nominals.common(
    scope, noun, definite="the", depth=1, subject=True, force=shape
  )
  return thing, noun.tags


def quality(scope: Scope, depth: int) -> Clause:
  """这 本 书 很 贵: this book is very expensive."""
  thing, tags = _thing(scope, depth, bare=True)
  setting = settings.draw_setting(scope, state=True)
  if setting.middle:  # 也 很 高 is fine, 只 很 高 is not: keep degrees alone
    setting = Setting(tense="present")
  core = constructions.quality(scope, tags, setting)
  return build(scope, subject=thing, core=core, setting=setting)


def comparison(scope: Scope, depth: int) -> Clause:
  """他 比 我 高: he is taller than me."""
  draw = scope.draw
  if draw.chance(0.5):
    who = nominals.person(scope, depth=2, subject=True)
    other = nominals.person(scope, depth=2, antecedent=who)
    tags: tuple[str, ...] = ("person",)
  else:
    who, tags = _thing(scope, depth, bare=False)
    if tags == ("person",):
      other = nominals.person(scope, depth=2, antecedent=who)
    else:
      like = [n for n in nouns.NOUNS if n.tags == tags]
      other = nominals.common(
        scope, like[0], definite="the", depth=2, force="far"
      )
  core = constructions.comparison(scope, tags, other)
  return build(scope, subject=who, core=core, setting=Setting(tense="present"))


def existence(scope: Scope, depth: int) -> Clause:
  """桌子 上 有 三 本 书: there are three books on the table."""
  draw = scope.draw
  scope.tags.append("existence")
  kind = draw.choose(surface=3, opened=2, room=2, place=4)
  what = {
    "surface": ("thing", "cup"),
    "opened": ("thing", "lost"),
    "room": ("furniture", "person"),
    "place": ("person", "shop", "eat", "tree", "animal"),
  }[kind]
  tree, where = adverbials.located(
    scope, draw.zipf(nouns.BY_TAG["venue" if kind == "place" else kind])
  )
  noun = draw.zipf(nouns.BY_TAG[draw.pick(what)])
  shape = draw.choose(
    count=6 * bool(noun.measures), many=2, one=1 if noun.measures else 0
  )
  if depth == 0 and noun.measures and draw.chance(0.12):
    shape = "one related"

  thing = nominals.common(scope, noun, definite="a", depth=1, force=shape)
  verb = Leaf("VE", "有")
  core = Core(
    tree=node("VP", verb, thing.tree),
    verbal=lambda d: Verbal("be", (verb,), thing.english(d, "object")),
  )
  scope.tags.append("tense: state")
  setting = Setting(tense="present")
  setting.adverbials.append(
    Adverbial(trees=(tree,), english=where, places=("end", "end", "front"))
  )
  return build(
    scope,
    subject=_there(verb, thing.agreement),
    core=core,
    setting=setting,
    first=True,
  )


def possession(scope: Scope, depth: int) -> Clause:
  """他 有 一 只 猫: he has a cat."""
  draw = scope.draw
  who = nominals.person(scope, depth=depth, subject=True)
  setting = settings.draw_setting(scope, state=True, negator="没")
  tag = draw.pick(("pet", "goods", "thing", "want", "friend", "house", "time"))
  noun = draw.zipf(nouns.BY_TAG[tag])
  shape = "bare"
  if noun.measures and not setting.negation:
    shape = draw.choose(count=5, bare=1, many=1)
  thing = nominals.common(
    scope, noun, definite="a", depth=1, force=shape, antecedent=who
  )
  verb = Leaf("VE", "有")
  core = Core(
    tree=node("VP", verb, thing.tree),
    verbal=lambda d: Verbal("have", (verb,), thing.english(d, "object")),
  )
  return build(scope, subject=who, core=core, setting=setting)


def location(scope: Scope, depth: int) -> Clause:
  """书 在 桌子 上: the book is on the table."""
  draw = scope.draw
  if draw.chance(0.5):
    who = nominals.person(scope, depth=max(1, depth), subject=True)
    tag = draw.pick(("room", "venue", "shop"))
  else:
    tag, where = draw.pick(
      (("thing", "surface"), ("lost", "opened"), ("shop", "venue"))
    )
    who = nominals.common(
      scope,
      draw.zipf(nouns.BY_TAG[tag]),
      definite="the",
      depth=1,
      subject=True,
    )
    tag = where
  tree, english_place = adverbials.located(scope, draw.zipf(nouns.BY_TAG[tag]))
  verb = Leaf("VV", "在")
  core = Core(
    tree=node("VP", verb, tree),
    verbal=lambda d: Verbal("be", (verb,), english_place(d)),
  )
  setting = settings.draw_setting(scope, state=True)
  return build(scope, subject=who, core=core, setting=setting)


def manner(scope: Scope, depth: int) -> Clause:
  """他 跑 得 很 快: he runs very fast."""
  who = nominals.person(scope, depth=max(depth, 1), subject=True)
  setting = Setting(tense="present")
  if scope.draw.chance(0.4):
    setting = Setting(tense="past")
    setting.adverbials.append(adverbials.time(scope, "past"))
  core = constructions.manner(scope)
  return build(scope, subject=who, core=core, setting=setting)


def weather(scope: Scope, depth: int) -> Clause:
  """昨天 北京 下 了 大 雨: it rained heavily in Beijing yesterday."""
  del depth
  draw = scope.draw
  setting = settings.setting(
    scope, draw.choose(past=5, future=3, progressive=1), positive=True
  )
  setting.middle, setting.before = (
    [],
    [item for item in setting.before if setting.tense != "past"],
  )
  setting.adverbials = [a for a in setting.adverbials if a.trees]
  rain = draw.chance(0.65)
  verb = Leaf("VV", "下")
  what = Leaf("NN", "雨" if rain else "雪")
  much = Leaf("JJ", "大") if draw.chance(0.4) else None
  thing = node("NP", node("ADJP", much) if much else None, what)
  lemma = "rain" if rain else "snow"
  heavily = words("heavily", much) if much else []
  core = Core(
    tree=node("VP", verb, setting.aspect, thing),
    verbal=lambda d: Verbal(lemma, (verb, what), list(heavily)),
  )
  where = people.geography(scope, names.CITIES)
  it = Nominal(
    tree=where.tree,
    english=lambda d, case: words("it"),
    agreement="3s",
    pronoun="it",
    human=False,
  )
  place = Adverbial(
    trees=(),
    english=lambda d: [*words("in"), *where.english(d, "object")],
    rank=3,
  )
  return build(scope, subject=it, core=core, setting=setting, others=(place,))
