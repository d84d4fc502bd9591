"""Questions, requests and suggestions.

Chinese leaves the question word where the answer would stand, and marks a
yes-no question or a suggestion by the sentence's last word; English moves the
question word and an auxiliary (or `let 's`) to the front.
"""

from jaxmt.corpora.treebank import (
  adverbials,
  english,
  names,
  nouns,
  predicates,
  settings,
  statements,
  verbs,
)
from jaxmt.corpora.treebank.clauses import Manner, build, sides, verb_phrase
from jaxmt.corpora.treebank.english import Setting
from jaxmt.corpora.treebank.nouns import Noun
from jaxmt.corpora.treebank.structure import (
  Adverbial,
  Core,
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
from jaxmt.corpora.treebank.verbs import Frame

Sentence = tuple[Tree, Wording]  # a tree without its root's punctuation


def _tense(scope: Scope, frame: Frame) -> Setting:
  """A positive setting without a frequency adverb."""
  draw = scope.draw
  if "s" in frame.flags:
    return Setting(tense="present", habitual=True)
  slow = "i" not in frame.flags
  kind = draw.choose(
    past=5, future=3, modal=2, experience=1.5, progressive=1.5 * slow
  )
  return settings.setting(scope, kind, positive=True, skill="k" in frame.flags)


def _asker(scope: Scope, specs: tuple[str, ...]) -> Nominal:
  """Questions are often about the one who is asked."""
  if "h" in specs and scope.draw.chance(0.4):
    leaf = Leaf("PN", "你")
    forms = {"subject": "you", "object": "you", "possessive": "your"}
    return Nominal(
      tree=node("NP", leaf),
      english=lambda d, case: [(forms[case], (leaf,))],
      agreement="pl",
      pronoun="you",
      pronominal=True,
    )
  return predicates.subject_for(scope, specs, depth=1)


def yes_no(scope: Scope) -> Sentence:
  """你 认识 他 吗: do you know him."""
  draw = scope.draw
  scope.tags.append("yes-no question")
  scope.asking = scope.positive = True
  particle = Leaf("SP", "吗")
  kind = draw.choose(
    plain=7, motion=2, quality=1, copula=1, existence=1, possession=1, bei=0.7
  )
  if kind in ("plain", "motion"):
    frame = draw.weighted(*(verbs.FRAMES if kind == "plain" else verbs.ACTIONS))
    setting = _tense(scope, frame)
    who = _asker(scope, frame.subjects if kind == "plain" else ("h",))
    if kind == "plain":
      obj = predicates.object_for(
        scope, frame, setting=setting, subject=who, depth=0
      )
      core = predicates.transitive(frame, setting=setting, obj=obj)
      others = sides(scope, frame, subject=who, setting=setting)
    else:
      if setting.tense == "progressive":
        setting = settings.setting(scope, "past", positive=True)
      core = predicates.motion(scope, setting=setting, subject=who, depth=1)
      others = []
    clause = build(
      scope, subject=who, core=core, setting=setting, others=others
    )
  else:
    clause = statements.clause_of(scope, kind, depth=1)
  manner = Manner(invert=(particle,))
  return (
    node("CP", clause.tree, particle),
    lambda d: clause.english(d, manner),
  )


def _asked_thing(scope: Scope, noun: Noun) -> tuple[Tree, Wording]:
  """什么, 哪 本 书, 几 本 书, 什么 书."""
  draw = scope.draw
  counted = noun.measures and noun.count == "c"
  kind = draw.choose(
    what=3, which=2 * bool(counted), many=1.5 * bool(counted), sort=1.5
  )
  if kind == "what" and not noun.human:
    leaf = Leaf("PN", "什么")
    return node("NP", leaf), lambda d: words("what", leaf)
  if kind == "what":
    leaf = Leaf("PN", "谁")
    return node("NP", leaf), lambda d: words("who", leaf)
  head = Leaf("NN", noun.word)
  name = noun.english
  if kind == "sort":
    leaf = Leaf("DT", "什么")
    tree = node("NP", node("DP", leaf), node("NP", head))
    return tree, lambda d: [
      *words("what", leaf),
      *words(d.wording(name), head),
    ]
  scope.tags.append("measure word")
  measure = Leaf("M", draw.zipf(noun.measures))
  if kind == "which":
    leaf = Leaf("DT", "哪")
    front = node("DP", leaf, node("CLP", measure))
    return node("NP", front, node("NP", head)), lambda d: [
      *words("which", leaf),
      *words(d.wording(name), head),
    ]
  leaf = Leaf("CD", "几")
  front = node("QP", leaf, node("CLP", measure))
  return node("NP", front, node("NP", head)), lambda d: [
    *words("how many", leaf),
    *words(english.morphology.plural(d.wording(name)), head),
  ]


def _what(scope: Scope) -> Sentence:
  """他 买 什么: what does he buy."""
  draw = scope.draw
  frame = draw.weighted(*verbs.FREE_OBJECT)
  setting = _tense(scope, frame)
  who = _asker(scope, frame.subjects)
  tree, asked = _asked_thing(scope, draw.zipf(nouns.BY_TAG[frame.object]))
  verb, leaves = predicates.verb_leaves(frame.verb)
  core = Core(
    tree=node("VP", verb, setting.aspect, tree),
    verbal=predicates.verbal_of(frame, leaves, None),
  )
  clause = build(scope, subject=who, core=core, setting=setting)
  return clause.tree, lambda d: clause.english(
    d, Manner(invert=(), asked=tuple(asked(d)))
  )


def _who(scope: Scope) -> Sentence:
  """谁 买 了 书: who bought the book; English keeps this order too."""
  draw = scope.draw
  frame = draw.weighted(*verbs.BY_SUBJECT["h"])
  setting = _tense(scope, frame)
  leaf = Leaf("PN", "谁")
  who = Nominal(
    tree=node("NP", leaf),
    english=lambda d, case: [("who", (leaf,))],
    agreement="3s",
    pronoun="they",
    pronominal=True,
  )
  obj = predicates.object_for(
    scope, frame, setting=setting, subject=None, depth=0
  )
  core = predicates.transitive(frame, setting=setting, obj=obj)
  others = sides(scope, frame, subject=who, setting=setting)
  clause = build(scope, subject=who, core=core, setting=setting, others=others)
  return clause.tree, lambda d: clause.english(d, Manner(front="no"))


def _circumstance(scope: Scope) -> Sentence:
  """When, where, why, how, with whom."""
  draw = scope.draw
  kind = draw.choose(when=3, where=3, why=3, how=1.5, company=1)
  stranded: list[Token] = []
  subject_specs: tuple[str, ...] = ("h",)
  if kind == "when":
    which, moment = Leaf("DT", "什么"), Leaf("NN", "时候")
    trees = (node("NP", node("DP", which), node("NP", moment)),)
    asked = words("when", which, moment)
  elif kind == "where":
    at, where = Leaf("P", "在"), Leaf("PN", draw.zipf(("哪儿", "哪里")))
    trees = (node("PP", at, node("NP", where)),)
    asked = words("where", at, where)
  elif kind == "company":
    who_with, other = Leaf("P", draw.zipf(("和", "跟"))), Leaf("PN", "谁")
    together = Leaf("AD", "一起")
    trees = (
      node("PP", who_with, node("NP", other)),
      node("ADVP", together),
    )
    asked = words("who", other)
    stranded = words("with", who_with, together)
  else:
    leaf = Leaf("AD", "为什么" if kind == "why" else "怎么")
    trees = (node("ADVP", leaf),)
    asked = words(kind, leaf)
  tense = draw.choose(past=3, future=4)
  if kind == "why":
    tense = draw.choose(past=4, future=1, modal=2)
  setting = settings.setting(
    scope, tense, timed=kind != "when", positive=kind != "why"
  )
  who = _asker(scope, subject_specs)
  if kind == "how":
    core = predicates.motion(scope, setting=setting, subject=who, depth=1)
  else:
    frame = draw.weighted(*verbs.ACTIONS)
    obj = predicates.object_for(
      scope, frame, setting=setting, subject=who, depth=0
    )
    core = predicates.transitive(frame, setting=setting, obj=obj)
  # Its English is not placed with the others: it comes first of all.
  silent = Adverbial(trees=trees, english=lambda d: list(stranded), rank=0)
  first = kind == "why"
  if first:
    setting.before[:0] = list(trees)
    silent = Adverbial(trees=(), english=lambda d: list(stranded))
  clause = build(
    scope, subject=who, core=core, setting=setting, others=(silent,)
  )
  return clause.tree, lambda d: clause.english(
    d, Manner(invert=(), asked=tuple(asked))
  )


def wh(scope: Scope) -> Sentence:
  """A question with a question word."""
  scope.tags.append("wh-question")
  scope.asking = True
  kind = scope.draw.choose(what=5, who=2, circumstance=5)
  if kind == "what":
    return _what(scope)
  if kind == "who":
    return _who(scope)
  return _circumstance(scope)


def request(scope: Scope) -> Sentence:
  """请 … (please), 别 … (do not), 我们 … 吧 (let us)."""
  draw = scope.draw
  scope.tags.append("request")
  kind = draw.choose(please=4, dont=2, lets=4)
  word = {"please": "你", "dont": "你", "lets": "我们"}[kind]
  row = names.PRONOUNS[word]
  leaf = Leaf("PN", word)
  who = Nominal(
    tree=node("NP", leaf),
    english=lambda d, case: [(row[0], (leaf,))],
    agreement="pl",
    pronoun=row[0],
  )
  setting = Setting(tense="base")
  if kind == "lets" and draw.chance(0.4):
    setting.adverbials.append(adverbials.time(scope, "future"))
  if kind == "lets" and draw.chance(0.4):
    core = predicates.motion(
      scope, setting=setting, subject=who, depth=1, away=True
    )
  else:
    core = predicates.action(scope, subject=who, depth=0)
  phrase = verb_phrase(core.tree, setting, ())
  opening: list[Token] = []
  if kind == "please":
    please = Leaf("VV", "请")
    tree = node("IP", node("VP", please, phrase))
    opening = words("please", please)
  elif kind == "dont":
    no = Leaf("AD", "别")
    setting.negation = no
    tree = node("IP", node("VP", node("ADVP", no), phrase))
  else:
    final = Leaf("SP", "吧")
    tree = node("CP", node("IP", who.tree, phrase), final)
    opening = [("let", (final,)), ("'s", (leaf,))]

  def worded(draw: Draw) -> list[Token]:
    return opening + english.clause(
      draw,
      subject=None,
      verbal=core.verbal(draw),
      setting=setting,
      front="no",
    )

  return tree, worded
