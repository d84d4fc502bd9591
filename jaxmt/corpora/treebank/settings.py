"""Tense, aspect, modality and negation of a clause, drawn for both languages.

Chinese verbs have no tense. A time word, often far from the verb, an aspect
particle, an adverb or a sentence-final particle decides the English form.
"""

from jaxmt.corpora.treebank import adverbials, lexicon
from jaxmt.corpora.treebank.english import Setting
from jaxmt.corpora.treebank.structure import Adverbial, Leaf, Scope, node, words


def draw_setting(
  scope: Scope,
  *,
  state: bool = False,
  instant: bool = False,
  skill: bool = False,
  marked: bool = False,
  modal: bool = True,
  negator: str = "不",
) -> Setting:
  """A setting that suits a verb.

  Args:
    scope: the sentence.
    state: the verb is a state (know, like): no aspect, no progressive.
    instant: it happens in an instant: no progressive, no habit.
    skill: 会 says that one can.
    marked: a past has 了.
    modal: it can be allowed, wanted, ...
    negator: 没 for 有.
  """
  draw = scope.draw
  if state:
    kind = draw.choose(present=8, past_state=1.6)
    return _state(scope, past=kind == "past_state", negator=negator)
  kind = draw.choose(
    past=36,
    future=14,
    progressive=0 if instant else 9,
    perfect=12,
    experience=5,
    habit=0 if instant else 14,
    modal=14 * modal,
  )
  return setting(scope, kind, skill=skill, marked=marked)


def setting(
  scope: Scope,
  kind: str,
  *,
  timed: bool = True,
  positive: bool = False,
  skill: bool = False,
  marked: bool = False,
) -> Setting:
  """A setting of one kind.

  Args:
    scope: the sentence.
    kind: past, future, progressive, perfect, experience, habit or modal.
    timed: whether a time may be named.
    positive: never negated.
    skill: see `draw_setting`.
    marked: a past has 了.
  """
  rates = dict(past=0.13, future=0.1, perfect=0.2, experience=0.4, habit=0.15)
  rate = 0.18 if kind == "modal" else rates.get(kind, 0.0)
  negative = scope.draw.chance(rate) and not (positive or scope.positive)
  if negative:
    scope.tags.append("negation")
  scope.tags.append("modal" if kind == "modal" else f"tense: {kind}")
  if kind == "past":
    return _past(scope, negative, timed, marked)
  if kind == "future":
    return _future(scope, negative, timed)
  if kind == "progressive":
    return _progressive(scope, timed)
  if kind == "perfect":
    return _perfect(scope, negative)
  if kind == "experience":
    return _experience(scope, negative, timed)
  if kind == "habit":
    return _habit(scope, negative)
  if kind == "modal":
    return _modal(scope, negative, timed, skill)
  raise ValueError(f"no setting {kind!r}")


def _adverb(scope: Scope, out: Setting, kind: str) -> None:
  """Maybe an adverb that goes with the tense."""
  draw = scope.draw
  if scope.asking or not draw.chance(0.13):
    return
  fitting = [row for row in lexicon.ADVERBS if kind in row[2]]
  if not fitting:
    return
  word, wordings, _, places = draw.zipf(fitting)
  leaf = Leaf("AD", word)
  out.before.append(node("ADVP", leaf))
  if "middle" in places:
    out.middle.append(lambda d: words(d.wording(wordings), leaf))
    return
  out.adverbials.append(
    Adverbial(
      trees=(),
      english=lambda d: words(d.wording(wordings), leaf),
      places=places,
      rank=4,
    )
  )


def _past(scope: Scope, negative: bool, timed: bool, marked: bool) -> Setting:
  draw = scope.draw
  out = Setting(tense="past")
  named = timed and draw.chance(0.72)
  if named:
    out.adverbials.append(adverbials.time(scope, "past"))
  if negative:
    out.negation = Leaf("AD", draw.zipf(("没", "没有")))
    out.before.append(node("ADVP", out.negation))
    return out
  _adverb(scope, out, "past")
  if marked or not named or draw.chance(0.55):
    out.aspect = Leaf("AS", "了")
    out.marker = (out.aspect,)
  return out


def _future(scope: Scope, negative: bool, timed: bool) -> Setting:
  draw = scope.draw
  out = Setting(tense="future")
  named = timed and draw.chance(0.7)
  if named:
    out.adverbials.append(adverbials.time(scope, "future"))
  if negative:
    out.negation = Leaf("AD", "不")
    out.before.append(node("ADVP", out.negation))
  else:
    _adverb(scope, out, "future")
  if negative or not named or draw.chance(0.6):
    leaf = Leaf("VV", draw.zipf(("会", "要")))
    if not negative and draw.chance(0.2):
      leaf = Leaf("AD", "将")
      out.before.append(node("ADVP", leaf))
    else:
      out.before.append(leaf)
    out.marker = (leaf,)
    if negative:
      leaf.word = "会"
  return out


def _progressive(scope: Scope, timed: bool) -> Setting:
  draw = scope.draw
  out = Setting(tense="progressive")
  if timed and draw.chance(0.25):
    out.adverbials.append(adverbials.time(scope, "present"))
  _adverb(scope, out, "progressive")
  leaf = Leaf("AD", draw.zipf(("在", "正在")))
  out.before.append(node("ADVP", leaf))
  out.marker = (leaf,)
  return out


def _perfect(scope: Scope, negative: bool) -> Setting:
  out = Setting(tense="perfect")
  if negative:
    still, no = Leaf("AD", "还"), Leaf("AD", "没")
    out.negation = no
    out.before += [node("ADVP", still), node("ADVP", no)]
    out.adverbials.append(
      Adverbial(
        trees=(),
        english=lambda d: words("yet", still),
        places=("end", "middle"),
        rank=9,
      )
    )
    return out
  just = scope.draw.chance(0.2)
  leaf = Leaf("AD", "刚" if just else "已经")
  out.before.append(node("ADVP", leaf))
  out.middle.append(lambda d: words("just" if just else "already", leaf))
  if not just:
    out.aspect = Leaf("AS", "了")
    out.marker = (out.aspect,)
  return out


def _experience(scope: Scope, negative: bool, timed: bool) -> Setting:
  draw = scope.draw
  out = Setting(tense="experience", habitual=True, aspect=Leaf("AS", "过"))
  assert out.aspect is not None
  out.marker = (out.aspect,)
  if negative:
    if draw.chance(0.4):
      out.before.append(node("ADVP", Leaf("AD", "从来")))
    out.negation = Leaf("AD", "没")
    out.before.append(node("ADVP", out.negation))
  elif timed and draw.chance(0.5):
    out.adverbials.append(adverbials.time(scope, "ever"))
  return out


def _habit(scope: Scope, negative: bool) -> Setting:
  draw = scope.draw
  out = Setting(tense="present", habitual=True)
  if negative:
    no = Leaf("AD", "不")
    if draw.chance(0.6):
      # The particle at the sentence's end turns `does not` into `no longer`.
      final = Leaf("SP", "了")
      out.final = final
      out.middle.append(lambda d: words("no longer", no, final))
    else:
      ever = Leaf("AD", "从来")
      out.before.append(node("ADVP", ever))
      out.middle.append(lambda d: words("never", ever, no))
    out.before.append(node("ADVP", no))
    return out
  often = draw.chance(0.5)
  if not often or draw.chance(0.25):
    out.adverbials.append(adverbials.time(scope, "habit"))
  if often:
    word, wordings = draw.zipf(lexicon.FREQUENCY)
    leaf = Leaf("AD", word)
    out.before.append(node("ADVP", leaf))
    out.middle.append(lambda d: words(d.wording(wordings), leaf))
  return out


def _modal(scope: Scope, negative: bool, timed: bool, skill: bool) -> Setting:
  draw = scope.draw
  rows = [
    row
    for row in lexicon.MODALS
    if (row[2] or not negative) and not (scope.asking and row[0] == "可能")
  ]
  word, plain, negated = draw.zipf(rows)
  if skill and draw.chance(0.5):
    word, plain, negated = lexicon.SKILL
  leaf = Leaf("VV", word)
  out = Setting(tense="present", marker=(leaf,))
  out.modal = negated if negative else plain
  if negative:
    out.negation = Leaf("AD", "不")
    out.before.append(node("ADVP", out.negation))
  else:
    _adverb(scope, out, "modal")
  out.before.append(leaf)
  if timed and word not in ("会", "敢") and draw.chance(0.2):
    out.adverbials.append(adverbials.time(scope, "future"))
  return out


def _state(scope: Scope, *, past: bool, negator: str) -> Setting:
  draw = scope.draw
  out = Setting(tense="past" if past else "present", habitual=True)
  scope.tags.append("tense: state")
  if past:
    out.adverbials.append(adverbials.time(scope, "state"))
  if not scope.positive and draw.chance(0.15):
    scope.tags.append("negation")
    out.negation = Leaf("AD", negator)
    out.before.append(node("ADVP", out.negation))
  elif not past:
    _adverb(scope, out, "present")
  return out
