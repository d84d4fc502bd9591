"""Cores that Chinese and English build in different ways.

把 and 被, giving and moving, verbs with a verb or an actor inside, adjectives
as verbs, comparison with 比, manner with 得.
"""

import dataclasses
from collections.abc import Callable

from jaxmt.corpora.treebank import (
  adverbials,
  lexicon,
  nominals,
  nouns,
  patterns,
  people,
)
from jaxmt.corpora.treebank.english import (
  Setting,
  infinitive,
  passive,
  template,
)
from jaxmt.corpora.treebank.predicates import (
  action,
  object_for,
  verb_leaves,
  verbal_of,
)
from jaxmt.corpora.treebank.structure import (
  Core,
  Draw,
  Leaf,
  Nominal,
  Scope,
  Token,
  Tree,
  Verbal,
  Wording,
  node,
  words,
)
from jaxmt.corpora.treebank.verbs import Frame


def _with_ba(obj: Nominal, inner: Tree) -> Tree:
  return node("VP", Leaf("BA", "把"), node("IP", obj.tree, inner))


def ba(
  scope: Scope, frame: Frame, *, setting: Setting, subject: Nominal
) -> Core:
  """把 门 关 上 了: closed the door."""
  scope.tags.append("把")
  obj = object_for(
    scope, frame, setting=setting, subject=subject, depth=1, known=True
  )
  verb, leaves = verb_leaves(frame.verb)
  return Core(
    tree=_with_ba(obj, node("VP", verb, setting.aspect)),
    verbal=verbal_of(frame, leaves, obj),
  )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passive:
  """A 被 core with its active counterpart.

  Attributes:
    core: with a passive English verb.
    agent: who did it; None when that is not said.
    active: the English verb phrase with the agent as its subject.
  """

  core: Core
  agent: Nominal | None
  active: Callable[[Draw], Verbal]


def bei(
  scope: Scope, frame: Frame, *, setting: Setting, patient: Nominal
) -> Passive:
  """被 老师 批评 了: was criticized by the teacher."""
  draw = scope.draw
  scope.tags.append("被")
  verb, leaves = verb_leaves(frame.verb)
  inner = node("VP", verb, setting.aspect)
  agent = None
  if draw.chance(0.7):
    agent = _agent(scope, frame, patient)
    particle = Leaf("LB", "被")
    tree = node("VP", particle, node("IP", agent.tree, inner))
  else:
    particle = Leaf("SB", "被")
    tree = node("VP", particle, inner)
  bare = verbal_of(frame, leaves, None)

  def verbal(draw: Draw) -> Verbal:
    rest = passive(bare(draw))
    if agent:
      rest += [("by", (particle,)), *agent.english(draw, "object")]
    return Verbal("be", (particle,), rest)

  return Passive(
    core=Core(tree=tree, verbal=verbal),
    agent=agent,
    active=verbal_of(frame, leaves, patient),
  )


def _agent(scope: Scope, frame: Frame, patient: Nominal) -> Nominal:
  spec = scope.draw.pick(frame.subjects)
  if spec == "h":
    return nominals.person(scope, depth=2, antecedent=patient, reflexive=False)
  if spec == "kin":
    return people.kin(scope)
  noun = scope.draw.zipf(nouns.BY_TAG["org" if spec == "o" else spec])
  definite = "a" if "thief" in noun.tags else "the"
  return nominals.common(scope, noun, definite=definite, depth=2)


def giving(
  scope: Scope, *, setting: Setting, subject: Nominal, with_ba: bool
) -> Core:
  """送 给 朋友 一 本 书, 把 书 送 给 朋友: give a friend a book."""
  draw = scope.draw
  row = draw.zipf(patterns.GIVING[1:] if with_ba else patterns.GIVING)
  chinese, wordings, tag, both = row
  leaves = tuple([Leaf("VV", word) for word in chinese])
  verb = leaves[0] if len(leaves) == 1 else node("VCP", *leaves)
  whom = nominals.person(scope, definite="the", depth=2, antecedent=subject)
  frame = Frame(chinese, ("h",), tag, (("give", "o"),), "", ())
  what = object_for(
    scope,
    frame,
    setting=setting,
    subject=subject,
    depth=1,
    known=with_ba,
  )
  if with_ba:
    scope.tags.append("把")
    tree = _with_ba(what, node("VP", verb, setting.aspect, whom.tree))
  else:
    scope.tags.append("double object")
    tree = node("VP", verb, setting.aspect, whom.tree, what.tree)

  def verbal(draw: Draw) -> Verbal:
    who = whom.english(draw, "object")
    thing = what.english(draw, "object")
    first = both and len(who) <= 4 and draw.chance(0.3 if with_ba else 0.65)
    to = words("to", *leaves[1:])
    rest = [*who, *thing] if first else [*thing, *to, *who]
    return Verbal(draw.wording(wordings), leaves[:1], rest)

  return Core(tree=tree, verbal=verbal)


def moving(scope: Scope, *, setting: Setting, subject: Nominal) -> Core:
  """把 书 放 在 桌子 上: put the book on the table."""
  draw = scope.draw
  scope.tags.append("把")
  (word, particle), wordings, tag, where = draw.zipf(patterns.MOVING)
  verb, preposition = Leaf("VV", word), Leaf("P", particle)
  frame = Frame((word,), ("h",), tag, (("put", "o"),), "", ())
  what = object_for(
    scope, frame, setting=setting, subject=subject, depth=1, known=True
  )
  noun = draw.zipf(nouns.BY_TAG[where])
  if particle == "在":
    tree, place = adverbials.located(scope, noun)
    english: Wording = adverbials.linked_first(place, preposition)
  else:
    goal = nominals.common(scope, noun, definite="the", depth=3)
    tree, to = goal.tree, "into" if particle == "成" else "to"
    if noun.count == "z" and particle == "到":
      to = ""
    english = lambda d: [
      *words(to, preposition),
      *goal.english(d, "object"),
    ]
  # Behind the place, where 了 stands when a preposition follows the verb.
  inner = node("VP", verb, node("PP", preposition, tree), setting.aspect)

  def verbal(draw: Draw) -> Verbal:
    rest = [*what.english(draw, "object"), *english(draw)]
    return Verbal(draw.wording(wordings), (verb,), rest)

  return Core(tree=_with_ba(what, inner), verbal=verbal)


def catenative(
  scope: Scope, row: tuple, *, setting: Setting, subject: Nominal
) -> Core:
  """打算 买 书: plan to buy books."""
  word, wordings, _ = row
  leaf = Leaf("VV", word)
  inner = action(scope, subject=subject, depth=1, habit=word == "喜欢")

  def verbal(draw: Draw) -> Verbal:
    lead, form = draw.wording(wordings)
    lemma, *others = lead.split()
    rest = [(other, (leaf,)) for other in others]
    inside = infinitive(inner.verbal(draw), form)
    return Verbal(lemma, (leaf,), [*rest, *inside])

  # 开始 做 作业 了: the particle stands behind the whole.
  tree = node("VP", leaf, inner.tree, setting.aspect)
  return Core(tree=tree, verbal=verbal)


def pivot(
  scope: Scope, row: tuple, *, setting: Setting, subject: Nominal
) -> Core:
  """老师 让 学生 写 作业: the object of one verb does the other."""
  scope.tags.append("pivot")
  word, wordings, _ = row
  leaf = Leaf("VV", word)
  whom = nominals.person(
    scope,
    definite="the",
    depth=2,
    tag="pupil" if scope.draw.chance(0.5) else "person",
    antecedent=subject,
  )
  inner = action(scope, subject=whom, depth=1)

  def verbal(draw: Draw) -> Verbal:
    lemma, form = draw.wording(wordings)
    inside = infinitive(inner.verbal(draw), form)
    return Verbal(lemma, (leaf,), [*whom.english(draw, "object"), *inside])

  tree = node("VP", leaf, setting.aspect, whom.tree, node("IP", inner.tree))
  return Core(tree=tree, verbal=verbal)


def _predicate_adjectives(tags: tuple[str, ...], *, compared: bool):
  fitting = {
    a.word: a
    for tag in tags
    for a in lexicon.ADJECTIVES.get(tag, ())
    if a.use != "a" and (a.comparative or not compared)
  }
  return tuple(fitting.values())


def quality(scope: Scope, tags: tuple[str, ...], setting: Setting) -> Core:
  """很 高: is very tall."""
  draw = scope.draw
  chosen = draw.zipf(_predicate_adjectives(tags, compared=False))
  leaf = Leaf("VA", chosen.word)
  if setting.negation:
    return Core(
      tree=node("VP", leaf),
      verbal=lambda d: Verbal("be", (), words(d.wording(chosen.english), leaf)),
    )
  word, wordings = draw.zipf(lexicon.DEGREES)
  adverb = Leaf("AD", word)
  return Core(
    tree=node("VP", node("ADVP", adverb), node("VP", leaf)),
    verbal=lambda d: Verbal(
      "be",
      (),
      [
        *words(d.wording(wordings), adverb),
        *words(d.wording(chosen.english), leaf),
      ],
    ),
  )


def comparison(scope: Scope, tags: tuple[str, ...], other: Nominal) -> Core:
  """比 我 高 (得多): (much) taller than me."""
  draw = scope.draw
  scope.tags.append("comparison")
  than = Leaf("P", "比")
  chosen = draw.zipf(_predicate_adjectives(tags, compared=True))
  adjective, higher = Leaf("VA", chosen.word), chosen.comparative
  more: Tree | None = None
  extent: Wording = lambda d: []
  after: Tree | Leaf | None = None
  kind = draw.choose(plain=5, even=2, much=1.5, little=1.5)
  if "person" in tags and draw.chance(0.25):
    # Of people 大 is older, not bigger; only the subject says so.
    older = draw.chance(0.6)
    adjective.word = "大" if older else "小"
    higher = ("older",) if older else ("younger",)
    if draw.chance(0.5):
      kind, extent, after = "years", *_years(scope)
  if kind == "even":
    leaf = Leaf("AD", "更")
    more, extent = node("ADVP", leaf), lambda d: words("even", leaf)
  elif kind == "much":
    leaf = Leaf("AD", "得多")
    after, extent = node("ADVP", leaf), lambda d: words("much", leaf)
  elif kind == "little":
    leaf = Leaf("AD", "一点儿")
    after = node("ADVP", leaf)
    extent = lambda d: words(d.wording(("a little", "a bit", "slightly")), leaf)
  inner = node("VP", more, node("VP", adjective, after))
  if more is None:
    inner = node("VP", adjective, after)

  def verbal(draw: Draw) -> Verbal:
    rest = [*extent(draw), *words(draw.wording(higher), adjective)]
    rest.append(("than", (than,)))
    return Verbal("be", (), [*rest, *other.english(draw, "object")])

  tree = node("VP", node("PP", than, other.tree), inner)
  return Core(tree=tree, verbal=verbal)


def _years(scope: Scope) -> tuple[Wording, Tree]:
  word, numbers = scope.draw.zipf(lexicon.NUMERALS[:8])
  number, measure = Leaf("CD", word), Leaf("M", "岁")
  tokens: list[Token] = [(numbers[0], (number,)), ("years", (measure,))]
  return lambda d: list(tokens), node("QP", number, node("CLP", measure))


def manner(scope: Scope) -> Core:
  """跑 得 很 快: runs very fast."""
  draw = scope.draw
  scope.tags.append("得 manner")
  verb, lemma, adverb, wordings = draw.zipf(patterns.MANNERS)
  word, degrees = draw.zipf(lexicon.DEGREES[:4])
  leaf, how = Leaf("VV", verb), Leaf("VA", adverb)
  degree = Leaf("AD", word)
  extent = node("VP", node("ADVP", degree), node("VP", how))

  def verbal(draw: Draw) -> Verbal:
    base = template(lemma.split(), (leaf,), ())
    rest = [
      *base.rest,
      *words(draw.wording(degrees), degree),
      *words(draw.wording(wordings), how),
    ]
    return Verbal(base.lemma, base.leaves, rest)

  return Core(tree=node("VP", leaf, Leaf("DER", "得"), extent), verbal=verbal)
