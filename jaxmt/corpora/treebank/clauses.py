"""Clauses: subject, setting, adverbials and core in the order of each language.

Chinese: (time) subject (time) adverbs, negation, modal, PPs, core. English:
see `jaxmt.corpora.treebank.english.clause`.
"""

import dataclasses
from collections.abc import Callable, Sequence

from jaxmt.corpora.treebank import (
  adverbials,
  english,
  nominals,
  predicates,
  settings,
  verbs,
)
from jaxmt.corpora.treebank.english import Setting
from jaxmt.corpora.treebank.structure import (
  Adverbial,
  Core,
  Draw,
  Leaf,
  Nominal,
  Scope,
  Token,
  Tree,
  Verbal,
  node,
  words,
)
from jaxmt.corpora.treebank.verbs import Frame


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Manner:
  """How a clause is to be worded in English.

  Attributes:
    front: whether adverbials may come first: free, heavy or no.
    shifted: it is reported in the past.
    invert: what the auxiliary before the subject translates; None in
      statements.
    asked: the question phrase.
  """

  front: str = "free"
  shifted: bool = False
  invert: tuple[Leaf, ...] | None = None
  asked: tuple[Token, ...] = ()


_BEFORE_ALL = ("其实", "当然", "终于", "可能", "也", "突然", "一定")

STATEMENT = Manner()
INNER = Manner(front="heavy")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clause:
  """A clause without final punctuation.

  Attributes:
    tree: the Chinese IP.
    english: `(draw, manner) -> tokens`.
    subject: for the clauses that refer back to it.
    final: a particle that ends the Chinese sentence.
    tense: the English tense.
  """

  tree: Tree
  english: Callable[[Draw, Manner], list[Token]]
  subject: Nominal
  final: Leaf | None = None
  tense: str = ""


def verb_phrase(
  core: Tree, setting: Setting, others: Sequence[Adverbial], times: bool = True
) -> Tree:
  """Puts adverbs, modals and PPs before the core, each at its level."""
  items: list[Tree | Leaf] = []
  if times:
    for adverbial in setting.adverbials:
      items.extend(adverbial.trees)
  items.extend(setting.before)
  for adverbial in others:
    items.extend(adverbial.trees)
  tree, adjuncts = core, []
  for item in reversed(items):
    if isinstance(item, Leaf):  # a modal verb governs what follows
      tree = node("VP", *adjuncts, tree) if adjuncts else tree
      tree, adjuncts = node("VP", item, tree), []
    else:
      adjuncts.insert(0, item)
  return node("VP", *adjuncts, tree) if adjuncts else tree


def build(
  scope: Scope,
  *,
  subject: Nominal,
  core: Core,
  setting: Setting,
  others: Sequence[Adverbial] = (),
  topic: Nominal | None = None,
  bare: Callable[[Draw], Verbal] | None = None,
  active: tuple[Nominal, Callable[[Draw], Verbal]] | None = None,
  first: bool = False,
) -> Clause:
  """Puts a clause together.

  Args:
    scope: the sentence.
    subject: what the verb agrees with.
    core: the verb and its complements.
    setting: tense and polarity.
    others: places, company and the like.
    topic: an object that comes first in Chinese.
    bare: the English verb phrase without that object.
    active: of a 被 clause: who did it and the active verb phrase.
    first: the time (or place) of the setting comes first.
  """
  negative = setting.negation or setting.final
  every = subject.several and subject.tree and not (negative or active)
  if every and scope.draw.chance(0.35):
    _all(setting, subject.several)
  tree = _chinese(scope, subject, core, setting, others, topic, first=first)

  def worded(draw: Draw, manner: Manner) -> list[Token]:
    who, verbal = subject, core.verbal
    topical: list[Token] = []
    if active and manner.invert is None and draw.chance(0.2):
      who, verbal = active
    elif topic and bare and manner == STATEMENT and draw.chance(0.3):
      verbal = bare
      topical = [*topic.english(draw, "object"), *words(",")]
    return topical + english.clause(
      draw,
      subject=who,
      verbal=verbal(draw),
      setting=setting,
      adverbials=others,
      front="no" if topical else manner.front,
      shifted=manner.shifted,
      invert=manner.invert,
      asked=manner.asked,
    )

  return Clause(
    tree=tree,
    english=worded,
    subject=subject,
    final=setting.final,
    tense="modal" if setting.modal else setting.tense,
  )


def _chinese(
  scope: Scope,
  subject: Nominal,
  core: Core,
  setting: Setting,
  others: Sequence[Adverbial],
  topic: Nominal | None,
  *,
  first: bool,
) -> Tree:
  """The IP; a time comes before the subject or after it."""
  draw = scope.draw
  timed = any(adverbial.trees for adverbial in setting.adverbials)
  # Before a relative clause, an early time would seem to belong to it.
  early = timed and not subject.heavy and draw.chance(0.35)
  early = early or first
  if early and not first:
    scope.tags.append("early time")
  phrase = verb_phrase(core.tree, setting, others, times=not early)
  opening: list[Tree | Leaf] = []
  if topic is not None and topic.tree is not None:
    opening += [topic.tree, Leaf("PU", "，")]
  if early:
    for adverbial in setting.adverbials:
      opening.extend(adverbial.trees)
    if scope.single and subject.tree and draw.chance(0.3):
      opening.append(Leaf("PU", "，"))
  return node("IP", *opening, subject.tree, phrase)


def _all(setting: Setting, meaning: str) -> None:
  """都 after several: all, or both."""
  leaf = Leaf("AD", "都")
  # 都 stands after the adverbs of the whole clause.
  early = bool(setting.before) and _word(setting.before[0]) in _BEFORE_ALL
  setting.before.insert(int(early), node("ADVP", leaf))
  setting.middle.insert(int(early), lambda d: words(meaning, leaf))


def _word(item: Tree | Leaf) -> str:
  """The word of a leaf or of a node over one leaf."""
  while isinstance(item, Tree):
    item = item.children[0]
  return item.word


def sides(
  scope: Scope, frame: Frame, *, subject: Nominal, setting: Setting
) -> list[Adverbial]:
  """Maybe a place, company, someone it is done for."""
  draw = scope.draw
  out: list[Adverbial] = []
  state = "s" in frame.flags
  if not state and subject.human and draw.chance(0.1):
    other = nominals.person(scope, definite="a", depth=2, antecedent=subject)
    out.append(adverbials.company(scope, other))
  if setting.tense != "progressive" and frame.places and draw.chance(0.55):
    out.append(adverbials.place(scope, frame.places))
  elif frame.object in ("dish", "goods", "gift") and draw.chance(0.12):
    if frame.verb[0] in ("买", "做", "准备"):
      other = nominals.person(scope, depth=2, antecedent=subject)
      out.append(adverbials.benefit(scope, other))
  elif frame.object == "writing" and frame.verb[0] == "写":
    if draw.chance(0.25):
      out.append(adverbials.language(scope))
  return out


def frame_setting(
  scope: Scope, frame: Frame, *, marked: bool = False
) -> Setting:
  """A setting that suits a frame; if `marked`, a past has 了."""
  return settings.draw_setting(
    scope,
    state="s" in frame.flags,
    instant="i" in frame.flags,
    skill="k" in frame.flags,
    marked=marked,
    modal="w" not in frame.flags,
  )


def plain(
  scope: Scope,
  *,
  depth: int = 0,
  frame: Frame | None = None,
  setting: Setting | None = None,
  subject: Nominal | None = None,
) -> Clause:
  """Subject, transitive verb, object."""
  draw = scope.draw
  if frame is None:
    choice = verbs.FRAMES
    if subject is not None:
      choice = verbs.BY_SUBJECT["h"]
    frame = draw.weighted(*choice)
  setting = setting or frame_setting(scope, frame)
  who = subject or predicates.subject_for(scope, frame.subjects, depth=depth)
  obj = predicates.object_for(
    scope, frame, setting=setting, subject=who, depth=depth
  )
  core = predicates.transitive(frame, setting=setting, obj=obj)
  # Behind a relative clause a place or a companion would seem part of it.
  others = []
  if not obj.heavy:
    others = sides(scope, frame, subject=who, setting=setting)
  return build(scope, subject=who, core=core, setting=setting, others=others)
