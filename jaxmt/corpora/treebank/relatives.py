"""Relative clauses: before the noun in Chinese, behind it in English."""

from jaxmt.corpora.treebank import (
  adverbials,
  english,
  patterns,
  predicates,
  settings,
  verbs,
)
from jaxmt.corpora.treebank.clauses import verb_phrase
from jaxmt.corpora.treebank.english import Setting
from jaxmt.corpora.treebank.nouns import Noun
from jaxmt.corpora.treebank.structure import (
  Draw,
  Leaf,
  Relative,
  Scope,
  Token,
  node,
  words,
)
from jaxmt.corpora.treebank.verbs import Frame


def _relative_setting(
  scope: Scope, frame: Frame, *, object_gap: bool
) -> Setting:
  """Relative clauses: past without a mark where the object is missing."""
  draw = scope.draw
  if "s" in frame.flags:
    return Setting(tense="present", habitual=True)
  slow = "i" not in frame.flags
  kind = draw.choose(past=6, habit=2 * slow, progressive=1.5 * slow, future=0.5)
  # Adverbs of comment belong to main clauses.
  scope.asking, asking = True, scope.asking
  timed = draw.chance(0.6 if kind == "past" else 0.3)
  setting = settings.setting(scope, kind, timed=timed, positive=True)
  scope.asking = asking
  if kind == "past" and object_gap and setting.aspect:
    return Setting(
      tense="past",
      before=setting.before,
      middle=setting.middle,
      adverbials=setting.adverbials,
    )
  return setting


def _gap_frame(
  scope: Scope, noun: Noun, index: dict[str, verbs.Choice], generic: bool
) -> Frame | None:
  """A frame in which the noun can be what is missing."""
  tags = [tag for tag in noun.tags if tag in index]
  if generic and noun.human:
    tags.append("h")
  if not tags:
    return None
  return scope.draw.weighted(*index[scope.draw.pick(tags)])


def relative(scope: Scope, noun: Noun, depth: int) -> Relative | None:
  """A relative clause for a noun, or None when no verb fits it."""
  draw = scope.draw
  if noun.kind == "place" and draw.chance(0.35):
    return _where(scope)
  if draw.chance(0.75 if noun.human else 0.1):
    frame = _gap_frame(scope, noun, verbs.BY_SUBJECT, True)
    if frame is not None:
      return _subject_gap(scope, frame, depth)
  frame = _gap_frame(scope, noun, verbs.BY_OBJECT, False)
  return None if frame is None else _object_gap(scope, frame)


def _subject_gap(scope: Scope, frame: Frame, depth: int) -> Relative:
  """买 书 的 人: the man who bought a book."""
  draw = scope.draw
  setting = _relative_setting(scope, frame, object_gap=False)
  obj = predicates.object_for(
    scope, frame, setting=setting, subject=None, depth=depth + 1
  )
  core = predicates.transitive(frame, setting=setting, obj=obj)
  others = []
  if frame.places and setting.tense != "progressive" and draw.chance(0.25):
    others.append(adverbials.place(scope, frame.places))
  particle = Leaf("DEC", "的")
  phrase = verb_phrase(core.tree, setting, others)
  tree = node("CP", node("IP", phrase), particle)

  def worded(draw: Draw, agreement: str, human: bool) -> list[Token]:
    verbal = core.verbal(draw)
    if setting.tense == "progressive" and draw.chance(0.75):
      return english.infinitive(verbal, "ing")
    which = draw.wording(("who", "that") if human else ("that", "which"))
    return [
      (which, (particle,)),
      *english.clause(
        draw,
        subject=None,
        verbal=verbal,
        setting=setting,
        adverbials=others,
        agreement=agreement,
        front="no",
      ),
    ]

  return Relative(tree=tree, english=worded)


def _object_gap(scope: Scope, frame: Frame) -> Relative:
  """他 买 的 书: the book (that) he bought."""
  draw = scope.draw
  setting = _relative_setting(scope, frame, object_gap=True)
  subject = predicates.subject_for(scope, frame.subjects, depth=3)
  verb, leaves = predicates.verb_leaves(frame.verb)
  verbal = predicates.verbal_of(frame, leaves, None)
  others = []
  if frame.places and setting.tense != "progressive" and draw.chance(0.2):
    others.append(adverbials.place(scope, frame.places))
  particle = Leaf("DEC", "的")
  phrase = verb_phrase(node("VP", verb, setting.aspect), setting, others)
  tree = node("CP", node("IP", subject.tree, phrase), particle)

  def worded(draw: Draw, agreement: str, human: bool) -> list[Token]:
    del agreement
    which = draw.wording(
      ("that", "who", "") if human else ("that", "which", "")
    )
    return [
      *words(which, particle),
      *english.clause(
        draw,
        subject=subject,
        verbal=verbal(draw),
        setting=setting,
        adverbials=others,
        front="no",
      ),
    ]

  return Relative(tree=tree, english=worded)


def _where(scope: Scope) -> Relative:
  """他 工作 的 公司: the company where he works."""
  draw = scope.draw
  row = draw.zipf(patterns.LASTING_ROWS)
  subject = predicates.subject_for(scope, row[1], depth=3)
  past = draw.chance(0.3)
  setting = Setting(tense="past" if past else "present")
  if past:
    setting.adverbials.append(adverbials.time(scope, "past"))
  core = predicates.intransitive(scope, row, setting=setting)
  particle = Leaf("DEC", "的")
  phrase = verb_phrase(core.tree, setting, ())
  tree = node("CP", node("IP", subject.tree, phrase), particle)

  def worded(draw: Draw, agreement: str, human: bool) -> list[Token]:
    del agreement, human
    return [
      ("where", (particle,)),
      *english.clause(
        draw,
        subject=subject,
        verbal=core.verbal(draw),
        setting=setting,
        front="no",
      ),
    ]

  return Relative(tree=tree, english=worded)
