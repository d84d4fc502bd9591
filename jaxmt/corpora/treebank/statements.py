"""The menu of statements: which kinds of clause there are and how often."""

from collections.abc import Callable

from jaxmt.corpora.treebank import (
  adverbials,
  constructions,
  english,
  nominals,
  patterns,
  predicates,
  settings,
  states,
  verbs,
)
from jaxmt.corpora.treebank.clauses import (
  Clause,
  Manner,
  build,
  frame_setting,
  plain,
)
from jaxmt.corpora.treebank.english import Setting
from jaxmt.corpora.treebank.structure import (
  Core,
  Draw,
  Leaf,
  Nominal,
  Scope,
  Token,
  Verbal,
  node,
  words,
)

_WEIGHTS = dict(
  plain=36,
  motion=9,
  intransitive=6,
  copula=5,
  quality=6,
  comparison=6,
  existence=6,
  possession=3,
  location=2,
  report=9,
  catenative=7,
  pivot=5,
  giving=4,
  ba=9,
  bei=10,
  manner=3,
  topic=9,
  cleft=2.5,
  weather=1,
)

# Kinds that take a given subject, and kinds for a given tense.
_PERSONAL = ("plain", "motion", "intransitive", "catenative", "giving", "ba")
_TENSED = ("plain", "motion", "intransitive", "giving", "ba")


def statement(
  scope: Scope,
  *,
  depth: int = 0,
  subject: Nominal | None = None,
  tense: str = "",
  timed: bool = True,
) -> Clause:
  """A clause of some kind.

  Args:
    scope: the sentence.
    depth: 0 for a sentence; clauses inside others are simpler.
    subject: when it is given.
    tense: the kind of setting, when it is given.
    timed: whether a time may be named (only where `tense` is given).
  """
  names = tuple(_WEIGHTS)
  if tense:
    names = _TENSED
  elif subject is not None:
    names = _PERSONAL
  kind = scope.draw.choose(**{name: _WEIGHTS[name] for name in names})
  if depth and kind in ("report", "cleft", "topic"):
    kind = "plain"
  given = None
  if tense:
    given = settings.setting(scope, tense, timed=timed, positive=tense == "if")
  return clause_of(scope, kind, depth=depth, subject=subject, setting=given)


def clause_of(
  scope: Scope,
  kind: str,
  *,
  depth: int = 0,
  subject: Nominal | None = None,
  setting: Setting | None = None,
) -> Clause:
  """A clause of one kind."""
  if kind == "plain":
    return _plain(scope, depth=depth, subject=subject, setting=setting)
  if kind in _PERSONAL:
    who = subject or nominals.person(scope, depth=depth, subject=True)
    return _SUBJECTED[kind](scope, who, setting, depth)
  return _FREE[kind](scope, depth)


def _plain(
  scope: Scope,
  *,
  depth: int,
  subject: Nominal | None,
  setting: Setting | None,
) -> Clause:
  frame = None
  if setting is not None:
    slow = setting.tense in ("progressive", "present", "past progressive")
    frame = scope.draw.weighted(*(verbs.HABITS if slow else verbs.ACTIONS))
  return plain(
    scope, depth=depth, frame=frame, subject=subject, setting=setting
  )


def _motion(
  scope: Scope, who: Nominal, setting: Setting | None, depth: int
) -> Clause:
  if setting is None:
    setting = settings.draw_setting(scope, instant=True)
  core = predicates.motion(scope, setting=setting, subject=who, depth=depth)
  return build(scope, subject=who, core=core, setting=setting)


def _intransitive(
  scope: Scope, who: Nominal, setting: Setting | None, depth: int
) -> Clause:
  draw = scope.draw
  given = setting is not None
  rows = patterns.INTRANSITIVE
  if given:
    rows = tuple(r for r in rows if r[1][0] == "h" and "i" not in r[3])
  row = draw.zipf(rows)
  if row[1][0] != "h":
    who = predicates.subject_for(scope, row[1], depth=depth)
  if setting is None and not who.human:
    kind = draw.choose(past=4, perfect=2, future=1.5)
    setting = settings.setting(scope, kind)
  elif setting is None:
    setting = settings.draw_setting(
      scope, instant="i" in row[3], skill="k" in row[3]
    )
  core = predicates.intransitive(scope, row, setting=setting)
  others = []
  if row[4] and setting.tense != "progressive" and draw.chance(0.6):
    others.append(adverbials.place(scope, row[4]))
  return build(scope, subject=who, core=core, setting=setting, others=others)


def _catenative(
  scope: Scope, who: Nominal, setting: Setting | None, depth: int
) -> Clause:
  del depth
  row = scope.draw.zipf(patterns.VERB_VERBS)
  if setting is None and "s" in row[2]:
    setting = settings.draw_setting(scope, state=True)
  elif setting is None:
    kind = scope.draw.choose(past=5, future=2, perfect=2, modal=1)
    setting = settings.setting(scope, kind)
  core = constructions.catenative(scope, row, setting=setting, subject=who)
  return build(scope, subject=who, core=core, setting=setting)


def _giving(
  scope: Scope, who: Nominal, setting: Setting | None, depth: int
) -> Clause:
  del depth
  if setting is None:
    setting = settings.draw_setting(scope, instant=True)
  core = constructions.giving(
    scope, setting=setting, subject=who, with_ba=False
  )
  return build(scope, subject=who, core=core, setting=setting)


def _ba(
  scope: Scope, who: Nominal, setting: Setting | None, depth: int
) -> Clause:
  del depth
  draw = scope.draw
  kind = draw.choose(result=5, moving=4, giving=2)
  given = setting is not None and setting.tense in ("past", "future")
  if not given or setting is None:
    name = draw.choose(past=6, perfect=2, future=1.5, modal=1.5)
    setting = settings.setting(scope, name, marked=True)
  if kind == "moving":
    core = constructions.moving(scope, setting=setting, subject=who)
  elif kind == "giving":
    core = constructions.giving(
      scope, setting=setting, subject=who, with_ba=True
    )
  else:
    frame = draw.weighted(*verbs.BA_FRAMES)
    if frame.subjects[0] != "h" and who.tree is not None:
      who = predicates.subject_for(scope, frame.subjects, depth=1)
    if len(frame.verb) == 1 and setting.aspect is None:
      frame = next(f for f in verbs.BA_FRAMES[0] if len(f.verb) == 2)
    core = constructions.ba(scope, frame, setting=setting, subject=who)
  return build(scope, subject=who, core=core, setting=setting)


def _bei(scope: Scope, depth: int) -> Clause:
  draw = scope.draw
  frame = draw.weighted(*verbs.BEI_FRAMES)
  name = draw.choose(past=7, perfect=2, future=0.6)
  setting = settings.setting(scope, name, marked=True)
  patient = predicates.object_for(
    scope,
    frame,
    setting=setting,
    subject=None,
    depth=depth,
    known=draw.chance(0.8),
  )
  done = constructions.bei(scope, frame, setting=setting, patient=patient)
  active = (done.agent, done.active) if done.agent else None
  others = []
  if frame.places and draw.chance(0.2):
    others.append(adverbials.place(scope, frame.places))
  return build(
    scope,
    subject=patient,
    core=done.core,
    setting=setting,
    others=others,
    active=active,
  )


def _report(scope: Scope, depth: int) -> Clause:
  """他 说 …: he said (that) ..."""
  draw = scope.draw
  scope.tags.append("clausal object")
  word, wordings, flags = draw.zipf(patterns.CLAUSE_VERBS)
  official = word in ("宣布", "表示")
  who = predicates.subject_for(
    scope, ("official", "o", "star") if official else ("h",), depth=1
  )
  if "s" in flags:
    setting = settings.draw_setting(scope, state=True)
  else:
    setting = settings.setting(
      scope, draw.choose(past=8, perfect=1.5), positive=True
    )
    if setting.tense == "past" and word != "宣布":
      # 说 and its like take no 了 before a clause: the past is unmarked.
      setting.aspect, setting.marker = None, ()
  verb = Leaf("VV", word)
  hope = word in ("希望", "担心")
  scope.single, single = False, scope.single
  inner = statement(
    scope, depth=depth + 1, tense="future" if hope else "", timed=False
  )
  scope.single = single
  comma = Leaf("PU", "，") if draw.chance(0.2) else None
  inside = Manner(front="heavy", shifted=setting.tense == "past")

  def verbal(draw: Draw) -> Verbal:
    lemma, *others = draw.wording(wordings).split()
    said = inner.english(draw, inside)
    brief = not others and len(said) < 9 and draw.chance(0.4)
    tail = said if brief else [*words("that"), *said]
    return Verbal(lemma, (verb,), [(o, (verb,)) for o in others], tail)

  core = Core(
    tree=node("VP", verb, setting.aspect, comma, inner.tree), verbal=verbal
  )
  clause = build(scope, subject=who, core=core, setting=setting)
  return clause if inner.final is None else _ended(clause, inner.final)


def _ended(clause: Clause, final: Leaf) -> Clause:
  """The same clause before another sentence-final particle."""
  return Clause(
    tree=clause.tree,
    english=clause.english,
    subject=clause.subject,
    final=final,
    tense=clause.tense,
  )


def _pivot(scope: Scope, depth: int) -> Clause:
  row = scope.draw.zipf(patterns.PIVOT_VERBS)
  specs = ("h", "teacher") if row[2] == "h" else ("boss", "o", "teacher")
  who = predicates.subject_for(scope, specs, depth=max(depth, 1))
  setting = settings.draw_setting(scope, instant=True)
  if setting.aspect:  # 让 takes no 了
    setting.aspect, setting.marker = None, ()
    if setting.tense == "past" and not setting.adverbials:
      setting.adverbials.append(adverbials.time(scope, "past"))
    elif setting.tense == "experience":
      setting = settings.setting(scope, "future")
  core = constructions.pivot(scope, row, setting=setting, subject=who)
  return build(scope, subject=who, core=core, setting=setting)


def _topic(scope: Scope, depth: int) -> Clause:
  """那 本 书 ， 我 已经 看 完 了: the object comes first."""
  draw = scope.draw
  scope.tags.append("topic")
  frame = draw.weighted(*verbs.FREE_OBJECT)
  setting = frame_setting(scope, frame, marked=True)
  who = predicates.subject_for(scope, frame.subjects, depth=1)
  obj = predicates.object_for(
    scope, frame, setting=setting, subject=who, depth=depth, known=True
  )
  verb, leaves = predicates.verb_leaves(frame.verb)
  core = Core(
    tree=node("VP", verb, setting.aspect),
    verbal=predicates.verbal_of(frame, leaves, obj),
  )
  return build(
    scope,
    subject=who,
    core=core,
    setting=setting,
    topic=obj,
    bare=predicates.verbal_of(frame, leaves, None),
  )


def _cleft(scope: Scope, depth: int) -> Clause:
  """他 是 昨天 来 的: it was yesterday that he came."""
  draw = scope.draw
  scope.tags.append("是…的 cleft")
  frame = draw.weighted(*verbs.ACTIONS)
  who = nominals.person(scope, depth=max(depth, 1), subject=True)
  setting = Setting(tense="past")
  obj = predicates.object_for(
    scope, frame, setting=setting, subject=who, depth=1
  )
  core = predicates.transitive(frame, setting=setting, obj=obj)
  places = [tag for tag in frame.places if tag != "home"]
  if places and draw.chance(0.4):
    stressed = adverbials.place(scope, places)
  else:
    stressed = adverbials.time(scope, "past")
  be = Leaf("VC", "是")
  inner = node("VP", *stressed.trees, core.tree)
  tree = node("IP", who.tree, node("VP", be, inner, Leaf("SP", "的")))

  def worded(draw: Draw, manner: Manner) -> list[Token]:
    if manner.invert is None and draw.chance(0.4):
      plain_clause = english.clause(
        draw, subject=who, verbal=core.verbal(draw), setting=setting
      )
      start = [*words("it"), ("was", (be,)), *stressed.english(draw)]
      return [*start, *words("that"), *plain_clause]
    return english.clause(
      draw,
      subject=who,
      verbal=core.verbal(draw),
      setting=setting,
      adverbials=(stressed,),
      front=manner.front,
      invert=manner.invert,
    )

  return Clause(tree=tree, english=worded, subject=who, tense="past")


_SUBJECTED: dict[str, Callable[..., Clause]] = dict(
  motion=_motion,
  intransitive=_intransitive,
  catenative=_catenative,
  giving=_giving,
  ba=_ba,
)
_FREE: dict[str, Callable[[Scope, int], Clause]] = dict(
  copula=states.copula,
  quality=states.quality,
  comparison=states.comparison,
  existence=states.existence,
  possession=states.possession,
  location=states.location,
  report=_report,
  pivot=_pivot,
  bei=_bei,
  manner=states.manner,
  topic=_topic,
  cleft=_cleft,
  weather=states.weather,
)
