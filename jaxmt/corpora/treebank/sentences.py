"""Whole sentences: single clauses, questions, and clauses joined together."""

import dataclasses

from jaxmt.corpora.treebank import (
  clauses,
  morphology,
  nominals,
  people,
  questions,
  relatives,
  statements,
)
from jaxmt.corpora.treebank.clauses import INNER, Clause
from jaxmt.corpora.treebank.english import Setting
from jaxmt.corpora.treebank.structure import (
  Draw,
  Leaf,
  Scope,
  Token,
  Tree,
  Wording,
  node,
  words,
)

_JOINTS = (
  ("但是", ("but",)),
  ("可是", ("but", "yet")),
  ("而且", ("and",)),
  ("所以", ("so",)),
)

# The setting of a clause that goes on after a clause in some tense.
_GOES_ON = {"present": "habit", "perfect": "past"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sentence:
  """One source sentence and its way into English.

  Attributes:
    tree: the source tree.
    leaves: its words, in order; their `index` is set.
    english: `draw -> tokens`, another wording at each call.
    tags: the phenomena in it, in the order built, with repetitions.
  """

  tree: Tree
  leaves: tuple[Leaf, ...]
  english: Wording
  tags: tuple[str, ...]


def sentence(draw: Draw) -> Sentence:
  """Draws a sentence."""
  scope = Scope(draw=draw, relative=relatives.relative)
  kind = draw.choose(
    single=58, yes_no=7, wh=8, request=3, joined=11, linked=17, long=4
  )
  mark = "。"
  scope.single = kind in ("single", "yes_no", "wh")
  if kind == "single":
    tree, wording = _single(scope)
  elif kind == "yes_no":
    (tree, wording), mark = questions.yes_no(scope), "？"
  elif kind == "wh":
    (tree, wording), mark = questions.wh(scope), "？"
  elif kind == "request":
    tree, wording = questions.request(scope)
    mark = "！" if draw.chance(0.4) else "。"
  elif kind == "joined":
    tree, wording = _joined(scope)
  else:
    tree, wording = _linked(scope)
    if kind == "long":
      tree, wording = _continued(scope, tree, wording)
  stop = Leaf("PU", mark)
  root = Tree(tree.label, (*tree.children, stop))
  leaves = _leaves(root)
  ending = ({"。": ".", "？": "?", "！": "!"}[mark], (stop,))
  return Sentence(
    tree=root,
    leaves=leaves,
    english=lambda d: _articles([*wording(d), ending]),
    tags=tuple(scope.tags),
  )


def _leaves(tree: Tree) -> tuple[Leaf, ...]:
  leaves: list[Leaf] = []
  stack: list[Tree | Leaf] = [tree]
  while stack:
    top = stack.pop()
    if isinstance(top, Leaf):
      top.index = len(leaves)
      leaves.append(top)
    else:
      stack.extend(reversed(top.children))
  return tuple(leaves)


def _articles(tokens: list[Token]) -> list[Token]:
  """Settles `a` and `an` by the word that follows."""
  following = [word for word, _ in tokens[1:]] + ["."]
  return [
    (morphology.article(after) if word == "a" else word, leaves)
    for (word, leaves), after in zip(tokens, following, strict=True)
  ]


def _final(clause: Clause) -> Tree:
  if clause.final is None:
    return clause.tree
  return node("CP", clause.tree, clause.final)


def _single(scope: Scope) -> tuple[Tree, Wording]:
  clause = statements.statement(scope)
  return _final(clause), lambda d: clause.english(d, clauses.STATEMENT)


def _continued(
  scope: Scope, tree: Tree, wording: Wording
) -> tuple[Tree, Wording]:
  """One more clause behind a sentence that already has two."""
  scope.tags.append("coordination")
  comma = Leaf("PU", "，")
  word, wordings = scope.draw.zipf(_JOINTS[2:])  # no second `but`
  leaf = Leaf("AD", word)
  clause = statements.statement(scope, depth=1)
  later = node("IP", node("ADVP", leaf), *clause.tree.children)
  return node("IP", tree, comma, later, clause.final), lambda d: [
    *wording(d),
    (",", (comma,)),
    *words(d.wording(wordings), leaf),
    *clause.english(d, INNER),
  ]


def _joined(scope: Scope) -> tuple[Tree, Wording]:
  """Two clauses side by side: 而且, 但是, or the same subject going on."""
  draw = scope.draw
  scope.tags.append("coordination")
  first = statements.statement(scope, depth=1)
  comma = Leaf("PU", "，")
  same = first.subject.human and draw.chance(0.5)
  if same:
    return _going_on(scope, first, comma)
  word, wordings = draw.zipf(_JOINTS)
  second = statements.statement(scope, depth=1)
  leaf = Leaf("AD", word)
  tree = node(
    "IP",
    _final(first),
    comma,
    node("IP", node("ADVP", leaf), *second.tree.children),
    second.final,
  )
  return tree, lambda d: [
    *first.english(d, clauses.STATEMENT),
    (",", (comma,)),
    *words(d.wording(wordings), leaf),
    *second.english(d, INNER),
  ]


def _going_on(scope: Scope, first: Clause, comma: Leaf) -> tuple[Tree, Wording]:
  """… ， 然后 …: the second clause leaves its subject out."""
  scope.tags.append("dropped subject")
  who = people.dropped(first.subject)
  tense = _GOES_ON.get(first.tense, first.tense)
  second = statements.statement(
    scope, depth=1, subject=who, tense=tense, timed=False
  )
  then = Leaf("AD", "然后") if tense in ("past", "future") else None
  later = second.tree
  if then:
    later = node("IP", node("ADVP", then), *second.tree.children)
  tree = node("IP", _final(first), comma, later, second.final)

  def worded(draw: Draw) -> list[Token]:
    joint = words("and")
    if then:
      joint = words(draw.wording(("and then", "and")), then)
    return [
      *first.english(draw, clauses.STATEMENT),
      (",", (comma,)),
      *joint,
      *second.english(draw, INNER),
    ]

  return tree, worded


def _linked(scope: Scope) -> tuple[Tree, Wording]:
  """Because, although, if, when, after, before, in order to."""
  scope.tags.append("subordinate clause")
  kind = scope.draw.choose(because=3, although=2.5, when=3, after=3, iff=3)
  if kind in ("because", "although"):
    return _conceded(scope, kind)
  if kind == "iff":
    return _conditional(scope)
  return _timed(scope, kind)


def _second(
  scope: Scope, first: Clause, *, tense: str = "", timed: bool = True
) -> Clause:
  """A clause after another: same subject left out or repeated, or a new one."""
  draw = scope.draw
  who = None
  if first.subject.human:
    kind = draw.choose(drop=2, repeat=2, new=3)
    if kind == "drop":
      scope.tags.append("dropped subject")
      who = people.dropped(first.subject)
    elif kind == "repeat":
      who = people.repeated(first.subject)
  return statements.statement(
    scope, depth=1, subject=who, tense=tense, timed=timed
  )


def _conceded(scope: Scope, kind: str) -> tuple[Tree, Wording]:
  """因为 … 所以 …, 虽然 … 但是 …: English keeps one of the two words."""
  draw = scope.draw
  because = kind == "because"
  opening = Leaf("CS", "因为" if because else "虽然")
  comma = Leaf("PU", "，")
  joint = None
  if not because or draw.chance(0.7):
    joint = Leaf("AD", "所以" if because else "但是")
  first = statements.statement(scope, depth=1)
  second = _second(scope, first)
  before = node("CP", node("ADVP", opening), _final(first))
  rest = second.tree.children
  if joint:
    rest = (node("ADVP", joint), *rest)
  tree = node("IP", before, comma, *rest, second.final)
  early = ("because", "since") if because else ("although", "though")
  late = "so" if because else "but"

  def worded(draw: Draw) -> list[Token]:
    form = draw.choose(early=4, middle=3, late=1.5 if because else 0.5)
    if form == "middle" and joint:
      return [
        *first.english(draw, clauses.STATEMENT),
        (",", (comma,)),
        *words(late, joint),
        *second.english(draw, INNER),
      ]
    lead = words(draw.wording(early), opening)
    if form == "late" and second.subject.tree is not None:
      return [
        *second.english(draw, clauses.STATEMENT),
        *lead,
        *first.english(draw, INNER),
      ]
    return [
      *lead,
      *first.english(draw, INNER),
      (",", (comma,)),
      *second.english(draw, INNER),
    ]

  return tree, worded


def _conditional(scope: Scope) -> tuple[Tree, Wording]:
  """如果 … ， … 就 …: if."""
  draw = scope.draw
  opening, comma = Leaf("CS", "如果"), Leaf("PU", "，")
  who = nominals.person(scope, depth=1, subject=True)
  frame_clause = clauses.plain(
    scope, depth=1, subject=who, setting=_condition(scope)
  )
  second = _second(
    scope,
    frame_clause,
    tense=draw.choose(future=3, modal=2),
    timed=False,
  )
  before = node("CP", node("ADVP", opening), frame_clause.tree)
  rest = second.tree.children
  tree = node("IP", before, comma, *rest, second.final)

  def worded(draw: Draw) -> list[Token]:
    condition = [
      *words("if", opening),
      *frame_clause.english(draw, INNER),
    ]
    if second.subject.tree is not None and draw.chance(0.3):
      return [*second.english(draw, INNER), *condition]
    return [*condition, (",", (comma,)), *second.english(draw, INNER)]

  return tree, worded


def _condition(scope: Scope) -> Setting:
  setting = Setting(tense="present")
  if scope.draw.chance(0.25):
    scope.tags.append("negation")
    setting.negation = Leaf("AD", "不")
    setting.before.append(node("ADVP", setting.negation))
  return setting


def _timed(scope: Scope, kind: str) -> tuple[Tree, Wording]:
  """… 的 时候 (when), … 以后 (after), … 以前 (before)."""
  draw = scope.draw
  who = nominals.person(scope, depth=1, subject=True)
  setting = Setting(tense="past")
  first = statements.clause_of(
    scope,
    draw.choose(plain=5, motion=3, intransitive=1.5),
    depth=1,
    subject=who,
    setting=setting,
  )
  comma = Leaf("PU", "，")
  tense = "past"
  if kind == "when":
    particle, moment = Leaf("DEC", "的"), Leaf("NN", "时候")
    before = node("NP", node("CP", first.tree, particle), node("NP", moment))
    lead = words("when", particle, moment)
  else:
    earlier = draw.chance(0.35)
    word = draw.zipf(("以前", "之前") if earlier else ("以后", "之后"))
    leaf = Leaf("LC", word)
    before = node("LCP", first.tree, leaf)
    lead = words("before" if earlier else "after", leaf)
  second = _second(scope, first, tense=tense, timed=False)
  tree = node("IP", before, comma, *second.tree.children, second.final)

  def worded(draw: Draw) -> list[Token]:
    time = [*lead, *first.english(draw, INNER)]
    if second.subject.tree is not None and draw.chance(0.4):
      return [*second.english(draw, INNER), *time]
    return [*time, (",", (comma,)), *second.english(draw, INNER)]

  return tree, worded
