"""Where to update: the update rules of the paper, on groups of both sides.

For every group, d+ is its best y-good partial derivation and d- the best
hypothesis of its beam that is not y-good (the paper, section 3.1). Its
violation is `w·Φ(d-) - w·Φ(d+)`. An update is *valid* if its violation is not
negative; with a margin, if the good one leads by no more than that.
"""

import dataclasses

import numpy as np

from jaxmt.grammar.match.matching import GOAL
from jaxmt.train.violation import partial_derivations
from jaxmt.train.violation.partial_derivations import Partials


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choices:
  """The updates of D of B sentences.

  Attributes:
    sentence: rising, int64 `[D]`.
    group: where, int64 `[D]`.
    plus: node of d+, int64 `[D]`: of the good side, or for local updates of
      the searched one.
    minus: node of d- on the searched side, int64 `[D]`.
    towards: whether d+ is y-good; only those of local updates may not be, bool
      `[D]`.
    right: sentences whose best hypothesis is y-good, for local updates the best
      of its group, bool `[B]`.
  """

  sentence: np.ndarray
  group: np.ndarray
  plus: np.ndarray
  minus: np.ndarray
  towards: np.ndarray
  right: np.ndarray

  def __len__(self) -> int:
    return len(self.sentence)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pairs:
  """Groups of both sides: G of them, rising.

  Attributes:
    group: int64 `[G]`.
    plus: the best good node of each, int64 `[G]`.
    minus: the best bad hypothesis of each, int64 `[G]`.
    violation: score of the bad one less that of the good one, `[G]`.
    lost: whether the beam has no good hypothesis, bool `[G]`.
  """

  group: np.ndarray
  plus: np.ndarray
  minus: np.ndarray
  violation: np.ndarray
  lost: np.ndarray


def _best(group: np.ndarray, score: np.ndarray, nodes: np.ndarray):
  """The groups of some nodes, rising, and the best node of each."""
  order = nodes[np.lexsort((nodes, -score[nodes], group[nodes]))]
  groups, first = np.unique(group[order], return_index=True)
  return groups, order[first]


def pair_groups(
  good: Partials,
  good_score: np.ndarray,
  searched: Partials,
  score: np.ndarray,
  is_good: np.ndarray,
) -> Pairs:
  """Pairs the best good and the best bad derivation of every group.

  Args:
    good: N+ nodes.
    good_score: of the best derivation of each, `[N+]`.
    searched: N- hypotheses.
    score: of each, `[N-]`.
    is_good: from `partial_derivations.are_good`, bool `[N-]`.
  """
  good_group, group = good.group, searched.group
  ours, plus = _best(good_group, good_score, np.arange(len(good_group)))
  theirs, minus = _best(group, score, np.flatnonzero(~is_good))
  both, one, two = np.intersect1d(
    ours, theirs, assume_unique=True, return_indices=True
  )
  plus, minus = plus[one], minus[two]
  return Pairs(
    group=both,
    plus=plus,
    minus=minus,
    violation=score[minus] - good_score[plus],
    lost=~np.isin(both, group[is_good]),
  )


def choose(
  update: str,
  pairs: Pairs,
  searched: Partials,
  is_good: np.ndarray,
  *,
  only_wrong: bool = False,
  margin: float = 0.0,
) -> Choices:
  """Chooses at most one group of each sentence.

  Args:
    update: one of `config.UPDATES` but "local".
    pairs: the groups.
    searched: the hypotheses of B sentences.
    is_good: which are y-good, bool `[N-]`.
    only_wrong: leave out sentences whose best hypothesis is y-good.
    margin: the lead that good derivations must have. Search keeps one goal, so
      that there is no bad one to lead in sentences that are right.
  """
  roots = searched.forest.roots
  right = np.zeros(len(roots), bool)
  right[roots >= 0] = is_good[roots[roots >= 0]]
  sentence = partial_derivations.group_sentence(pairs.group)
  at_goal = partial_derivations.group_category(pairs.group) == GOAL
  valid = pairs.violation >= -margin
  wrong_goal = at_goal & ~right[sentence]
  if update == "max-violation":
    usable, order = valid, -pairs.violation
  elif update == "standard":
    usable, order = wrong_goal, np.zeros(len(valid))
  elif update == "skip":
    usable, order = wrong_goal & valid, np.zeros(len(valid))
  elif update == "early":
    # Groups rise in the order of search: the goal stands last.
    usable, order = valid & (pairs.lost | wrong_goal), np.zeros(len(valid))
  else:
    raise ValueError(f"update '{update}' has no groups")
  if only_wrong:
    usable = usable & ~right[sentence]
  places = np.flatnonzero(usable)
  places = places[np.lexsort((places, order[places], sentence[places]))]
  _, first = np.unique(sentence[places], return_index=True)
  chosen = places[first]
  return Choices(
    sentence=sentence[chosen],
    group=pairs.group[chosen],
    plus=pairs.plus[chosen],
    minus=pairs.minus[chosen],
    towards=np.ones(len(chosen), bool),
    right=right,
  )


def choose_local(
  searched: Partials,
  score: np.ndarray,
  *,
  nodes: np.ndarray,
  best: np.ndarray,
  quality: np.ndarray,
  is_good: np.ndarray,
) -> Choices:
  """Chooses the best hypothesis and that of the best translation.

  Sentences whose best hypothesis is the best translation have no update.

  Args:
    searched: hypotheses of B sentences.
    score: of each, `[N]`.
    nodes: see `partial_derivations.root_group`, `[H]`.
    best: likewise, `[B]`.
    quality: sentence-level quality of each of `nodes`, higher is better, `[H]`.
    is_good: whether each says a reference; read for `nodes` alone, bool `[N]`.
  """
  sentence = searched.node_sentence[nodes]
  order = np.lexsort((nodes, -score[nodes], -quality, sentence))
  rows, first = np.unique(sentence[order], return_index=True)
  oracle = order[first]
  minus = best[rows]
  of_node = np.full(len(score), -np.inf)
  of_node[nodes] = quality
  better = quality[oracle] > of_node[minus]
  right = np.zeros(len(searched.forest), bool)
  right[rows] = ~better
  plus = nodes[oracle][better]
  return Choices(
    sentence=rows[better],
    group=searched.group[plus],
    plus=plus,
    minus=minus[better],
    towards=is_good[plus],
    right=right,
  )
