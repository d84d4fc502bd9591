"""Lists of candidates that a recursive recurrent network learns from.

A good candidate of a cell has the string of a forced derivation of the same
span (Liu et al. 2014, section 4.2). The *local* lists are the beams of all
cells with a good and another candidate. The *global* list of a sentence is the
first beam, by length of the span, that no good candidate is left in although
some were scored: there the search went wrong beyond repair, and the good ones
that fell off are added. If there is no such beam, it is that of the goal.

Candidates are given as the nodes of their derivations, so that the network can
be applied to them again.
"""

import collections
import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxmt.decode.chart import feature_states
from jaxmt.decode.chart.chart_layout import POSSIBLE
from jaxmt.decode.chart.decoder import Result
from jaxmt.decode.forced.forced import ForcedForests
from jaxmt.decode.model import Model, device_parameters, rule_column
from jaxmt.features import recursive_scores
from jaxmt.features.recursive_scores import RecursiveScore
from jaxmt.grammar.match.matching import GOAL
from jaxmt.models.recursive_recurrent import NOTHING

KINDS = ("local", "global")
Oracles = Mapping[tuple[int, int, int], set[tuple[str, ...]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CandidateTrees:
  """L lists of candidates, and the N nodes of their derivations.

  Attributes:
    pair: phrase pair of leaves, `NOTHING` for others, int32 `[N]`.
    parts: left and right part of the others, `NOTHING` for none, `[N, 2]`.
    x: scaled features, float32 `[N, X]`.
    base: score without the network, float32 `[N]`.
    height: of each node, leaves having 0, int32 `[N]`.
    candidates: nodes of each list, rows of int32.
    good: which of them are good, rows of bool.
    early: whether a list is of a beam that lost all good candidates, `[L]`.
  """

  pair: np.ndarray
  parts: np.ndarray
  x: np.ndarray
  base: np.ndarray
  height: np.ndarray
  candidates: list[np.ndarray]
  good: list[np.ndarray]
  early: list[bool]


def oracles(forced: ForcedForests, references: list[str]) -> list[Oracles]:
  """Returns the strings of forced derivations, by category and span."""
  out: list[Oracles] = []
  forest = forced.forest
  for row, line in enumerate(references):
    words = tuple(line.split())
    strings = collections.defaultdict(set)
    for node in range(*forest.node_offsets[row : row + 2].tolist()):
      first, last = int(forced.first[node]), int(forced.last[node])
      key = (
        int(forced.category[node]),
        int(forest.nodes.begin[node]),
        int(forest.nodes.end[node]),
      )
      strings[key].add(words[first:last] if first >= 0 else ())
    out.append(dict(strings))
  return out


@dataclasses.dataclass
class _Searched:
  """What is read off a search, in host memory."""

  model: Model
  result: Result
  number: int  # of the network among the features

  def __post_init__(self):
    beams, feature = self.result.beams, self.model.features[self.number]
    assert isinstance(feature, RecursiveScore)
    self.feature = feature
    self.score = np.asarray(beams.score)
    self.back = np.asarray(beams.back)
    self.states = np.asarray(beams.states[self.number])
    bound = self.model.parameters[self.number]
    self.output = bound.model.output
    self.pairs = bound.model
    self.kind = self.model.columns.inputs[self.number].arrays[0]
    self.spelled: dict[tuple[int, int], tuple[str, ...]] = {}

  def column(self, rules, pick):
    """A column of rules of any kind."""
    return rule_column(self.model, self.result.source, rules, pick)

  def words(self, rule: int, tails: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The string of a rule applied to strings."""
    table = self.model.table
    if rule == len(table):
      return tails[0]
    if rule > len(table):
      return (self.result.source.words[rule - len(table) - 1],)
    out: list[str] = []
    for symbol in table.target[rule].tolist():
      if symbol >= 0:
        out.append(table.target_words.words[symbol])
      else:
        out += tails[-1 - symbol]
    return tuple(out)

  def tails(self, item: int, entry: int, ranks) -> list[tuple[int, int]]:
    """Cells and ranks of an application's children."""
    children = self.result.matches.child[entry]
    return [
      (int(cell), int(rank))
      for cell, rank in zip(children, ranks, strict=True)
      if cell >= 0
    ]

  def own(self, item: int, rank: int):
    """Rule and children of a hypothesis."""
    matches = self.result.matches
    application, *ranks = self.back[matches.place[item], rank].tolist()
    entry = int(matches.offsets[item]) + application
    return int(matches.rule[entry]), self.tails(item, entry, ranks)

  def string(self, item: int, rank: int) -> tuple[str, ...]:
    """The string of a hypothesis."""
    key = (item, rank)
    if key not in self.spelled:
      rule, tails = self.own(item, rank)
      below = [self.string(*tail) for tail in tails]
      self.spelled[key] = self.words(rule, below)
    return self.spelled[key]

  def hypotheses(self, item: int) -> list[int]:
    """Ranks of a cell's hypotheses."""
    row = self.result.matches.place[item]
    return np.flatnonzero(self.score[row] > POSSIBLE).tolist()

  def lost(self, item: int, strings: set[tuple[str, ...]]):
    """Good candidates of a cell that fell off its beam: rule, tails, score."""
    matches, candidates = self.result.matches, self.result.beams.candidates
    assert candidates is not None
    row, out = matches.place[item], []
    fell = (candidates.head[row] < 0) & (candidates.score[row] > POSSIBLE)
    for place in np.flatnonzero(fell).tolist():
      application = int(candidates.application[row, place])
      entry = int(matches.offsets[item]) + application
      tails = self.tails(item, entry, candidates.ranks[row, place].tolist())
      rule = int(matches.rule[entry])
      below = [self.string(*tail) for tail in tails]
      if self.words(rule, below) in strings:
        out.append((rule, tails, float(candidates.score[row, place])))
    return out


class _Nodes:
  """Collects the nodes of derivations."""

  def __init__(self, searched: _Searched, first: int):
    self.searched, self.first = searched, first
    self.index: dict[tuple, int] = {}
    self.rows: list[tuple[int, int, int, int]] = []  # pair, parts, height
    self.states: list[np.ndarray] = []
    self.scores: list[float] = []

  def _add(self, key, rule, tails, state, score) -> int:
    """A node's number; its parts are added before it."""
    searched = self.searched
    below = [self.hypothesis(*tail) for tail in tails]
    swap = len(below) == 2 and _is_inverted(searched, rule)
    parts = below[::-1] if swap else below
    height = 1 + max(
      (self.rows[part - self.first][3] for part in below), default=-1
    )
    pair = NOTHING
    if not below:
      pair = _pair(searched, rule)
    parts = [*parts, NOTHING, NOTHING][:2]
    self.index[key] = self.first + len(self.rows)
    self.rows.append((pair, parts[0], parts[1], height))
    self.states.append(state)
    self.scores.append(score)
    return self.index[key]

  def hypothesis(self, item: int, rank: int) -> int:
    """The node of a hypothesis of a beam."""
    if (item, rank) in self.index:
      return self.index[item, rank]
    searched = self.searched
    row = searched.result.matches.place[item]
    rule, tails = searched.own(item, rank)
    return self._add(
      (item, rank),
      rule,
      tails,
      searched.states[row, rank],
      searched.score[row, rank],
    )

  def candidate(self, rule, tails, score) -> int:
    """The node of a candidate that is in no beam."""
    key = (rule, *tails)
    if key in self.index:
      return self.index[key]
    return self._add(
      key, rule, tails, _state(self.searched, rule, tails), score
    )


def _is_inverted(searched: _Searched, rule: int) -> bool:
  return (
    rule < len(searched.kind)
    and searched.kind[rule] == recursive_scores.INVERTED
  )


def _pair(searched: _Searched, rule: int) -> int:
  """The phrase pair of a rule without parts."""
  table = searched.model.table
  if rule > len(table):
    word = searched.result.source.words[rule - len(table) - 1]
    return searched.pairs.pair_number((word,), (word,))
  spell = lambda row, words: tuple(words.words[symbol] for symbol in row)
  return searched.pairs.pair_number(
    spell(table.source[rule].tolist(), table.source_words),
    spell(table.target[rule].tolist(), table.target_words),
  )


def _state(searched: _Searched, rule: int, tails) -> np.ndarray:
  """The network's state of a rule applied to hypotheses."""
  rules = np.array([rule])
  arity = searched.model.arity
  below = np.zeros((1, arity, searched.feature.columns), np.int32)
  for place, (item, rank) in enumerate(tails):
    below[0, place] = searched.states[searched.result.matches.place[item], rank]
  number = searched.number
  (states,), _ = feature_states.apply_rules(
    (searched.feature,),
    (device_parameters(searched.model)[number],),
    (searched.column(rules, lambda c: c.inputs[number].arrays),),
    searched.column(rules, lambda c: c.slots),
    (below,),
  )
  return states[0]


def collect(
  model: Model, parts: list[Result], known: list[Oracles], kind: str
) -> CandidateTrees:
  """Returns the lists of searched sentences.

  Args:
    model: with the network among its features.
    parts: searches, with `forest=True`.
    known: good strings of all sentences.
    kind: one of `KINDS`.
  """
  (number,) = [
    place
    for place, feature in enumerate(model.features)
    if isinstance(feature, RecursiveScore)
  ]
  candidates, good, early = [], [], []
  groups: list[_Nodes] = []
  first = 0
  for result in parts:
    searched = _Searched(model, result, number)
    nodes = _Nodes(searched, first)
    cells = collections.defaultdict(list)
    for item, sentence in enumerate(result.matches.sentence.tolist()):
      cells[sentence].append(item)
    for sentence, items in sorted(cells.items()):
      strings = known[int(result.rows[sentence])]
      for listed, flags, fell in _lists(searched, nodes, items, strings, kind):
        candidates.append(np.array(listed, np.int32))
        good.append(np.array(flags, bool))
        early.append(fell)
    groups.append(nodes)
    first += len(nodes.rows)
  return _assembled(model, number, groups, (candidates, good, early))


def _lists(
  searched: _Searched, nodes: _Nodes, items, strings: Oracles, kind: str
):
  """The lists of a sentence: nodes, which are good, whether all fell off."""
  matches = searched.result.matches
  order = sorted(
    items,
    key=lambda item: (
      matches.category[item] == GOAL,
      matches.end[item] - matches.begin[item],
      matches.begin[item],
      matches.category[item],
    ),
  )
  for item in order:
    key = (
      int(matches.category[item]),
      int(matches.begin[item]),
      int(matches.end[item]),
    )
    references = strings.get(key)
    if not references:
      continue
    ranks = searched.hypotheses(item)
    flags = [searched.string(item, rank) in references for rank in ranks]
    if kind == "local":
      if any(flags) and not all(flags):
        yield [nodes.hypothesis(item, rank) for rank in ranks], flags, False
      continue
    is_goal = key[0] == GOAL
    fell = [] if any(flags) else searched.lost(item, references)
    if fell or (is_goal and any(flags)):
      listed = [nodes.hypothesis(item, rank) for rank in ranks]
      listed += [nodes.candidate(*one) for one in fell]
      yield listed, flags + [True] * len(fell), bool(fell)
      return


def _assembled(model: Model, number: int, groups, lists) -> CandidateTrees:
  feature = model.features[number]
  assert isinstance(feature, RecursiveScore)
  rows = [row for nodes in groups for row in nodes.rows]
  table = np.array(rows, np.int32).reshape(-1, 4)
  states = [state for nodes in groups for state in nodes.states]
  whole = np.array(states, np.int32).reshape(-1, feature.columns)
  _, _, s, x = feature.split(whole)
  floats = lambda part: np.ascontiguousarray(part).view(np.float32)
  score = np.array([one for nodes in groups for one in nodes.scores])
  weight = model.weights.get(recursive_scores.NAME, 0.0)
  bound = model.parameters[number]
  network_scores = floats(s).astype(np.float64) @ bound.model.output
  return CandidateTrees(
    pair=table[:, 0],
    parts=table[:, 1:3],
    x=floats(x),
    base=(score - weight * network_scores).astype(np.float32),
    height=table[:, 3],
    candidates=lists[0],
    good=lists[1],
    early=lists[2],
  )
