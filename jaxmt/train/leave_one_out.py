"""Decoding a training sentence without its own counts in θ.

Only θ is as if the sentence had not been in the corpus. The language model
still knows its target side, unless it was estimated from other text.

A rule that a sentence itself gave is more probable than it would be elsewhere,
and rules nothing else supports make memorising look good. Matching is done
with θ as it is; then the static score of every application on the sentence's
chart is changed to that under θ without the sentence's own counts (compare
`estimate.leave_one_out`). A rule that only this sentence gave would not be in
the table at all: what smoothing and other sentences' derivations gave it goes
too. What matching cut off stays cut off.

With leaving one out by lengths such a rule stays, and each of its probabilities
is e^-5 for each word of both sides (Wuebker, Mauser & Ney 2010, section 4.2).
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE, Chart
from jaxmt.grammar import estimate
from jaxmt.grammar.estimate import FLOOR, Groups, Totals
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.grammar.match.matching import Matches
from jaxmt.grammar.table import RuleTable
from jaxmt.hypergraph.forest import Forest
from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.train.counts import Contributions

# Score of a rule seen only in this sentence, where it may be used at all. Any
# other rule is better, and scores that include it stay readable.
LAST_RESORT_SCORE = -50.0
LENGTH_SCORE = -5.0  # ln p for each word of such a rule, by lengths
_NOTHING = 0.5 / COUNT_UNIT  # less than a unit is rounding


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeldOut:
  """What is needed to leave a sentence's own counts out of θ.

  Attributes:
    kind: "counts", "lengths" or "singletons", see
      `ThetaConfig.leave_one_out`.
    total: sums of the counts that θ came from.
    groups: of the same rules.
    alpha: what smoothing added to each of them.
    weights: of the five features in the order of `estimate.THETA`, `[5]`.
    one_word: rules that translate one word by itself, bool `[R]`.
    words: words of both sides of each rule, int64 `[R]`.
    alone: for every sentence of the training text the rules that it alone gave
      at extraction, N rows; None if the counts are those of extraction.
  """

  kind: str
  total: Totals
  groups: Groups
  alpha: float
  weights: np.ndarray
  one_word: np.ndarray
  words: np.ndarray
  alone: Ragged | None = None


def hold_out(
  chart: Chart,
  matches: Matches,
  own: Contributions,
  held: HeldOut,
  rows: np.ndarray,
) -> Chart:
  """Returns the chart with static scores without the sentences' own counts.

  Args:
    chart: B sentences.
    matches: their applications.
    own: what its sentences gave to the counts, B rows.
    held: the counts.
    rows: numbers of the sentences in the training text, int `[B]`.
  """
  static = np.array(chart.static)
  sentence = np.asarray(chart.sentence)
  cell = np.argsort(sentence, kind="stable")
  here = static[cell] > POSSIBLE
  row, column = np.nonzero(here)
  cell = cell[row]
  rules = matches.rules[np.asarray(chart.rule)[cell, column]]
  static[cell, column] += changes(rules, sentence[cell], own, held, rows)
  return dataclasses.replace(chart, static=np.maximum(static, NONE))


def option_changes(
  rule: np.ndarray, own: Contributions, held: HeldOut, rows: np.ndarray
) -> np.ndarray:
  """Returns how scores of phrases in sentences change without own counts.

  Args:
    rule: the options of B sentences, -1 for none, int32 `[B, ., .]`.
    own: what the sentences gave to the counts, B rows.
    held: the counts.
    rows: numbers of the sentences in the training text, int `[B]`.
  """
  out = np.zeros(rule.shape, np.float32)
  place = np.nonzero(rule >= 0)
  out[place] = changes(rule[place], place[0], own, held, rows)
  return out


def hold_out_forest(
  forest: Forest, own: Contributions, held: HeldOut, rows: np.ndarray
) -> Forest:
  """Returns the forest with scores without the sentences' own counts.

  For "counts" and "lengths", where nothing is forbidden; see `changes` for the
  arguments.
  """
  edges = np.diff(forest.edge_offsets[forest.node_offsets])
  sentence = np.repeat(np.arange(len(forest)), edges)
  change = changes(forest.edges.rule, sentence, own, held, rows)
  score = (forest.score + change).astype(np.float32)
  return dataclasses.replace(forest, score=score)


def rule_words(table: RuleTable) -> np.ndarray:
  """Returns the number of words of both sides of each rule, int64 `[R]`."""
  counts = [
    np.diff(ragged.row_offsets(side.flat >= 0)[side.offsets])
    for side in (table.source, table.target)
  ]
  return counts[0] + counts[1]


def theta_weights(weights: Mapping[str, float]) -> np.ndarray:
  """Weights of `estimate.THETA` from weights by name, float64 `[5]`."""
  return np.array([weights.get(name, 0.0) for name in estimate.THETA])


def changes(
  rules: np.ndarray,
  sentence: np.ndarray,
  own: Contributions,
  held: HeldOut,
  rows: np.ndarray,
) -> np.ndarray:
  """How the scores of rule applications change without own counts.

  Args:
    rules: rule of each application, int `[N]`; beyond the table nothing
      changes.
    sentence: its sentence, int `[N]`, rising.
    own: what the sentences gave, B rows.
    held: the counts.
    rows: numbers of the sentences in the training text, int `[B]`.

  Returns:
    float32 `[N]`; `NONE` for a forbidden rule, `LAST_RESORT_SCORE` for one that
    translates a single word, so that every sentence keeps a derivation.
  """
  total, groups = held.total, held.groups
  alone = Ragged(
    flat=np.zeros(0, np.int32), offsets=np.zeros(len(rows) + 1, np.int64)
  )
  if held.alone is not None:
    alone = ragged.select(held.alone, rows)
  return _changes(
    np.asarray(rules, np.int32),
    np.asarray(sentence, np.int32),
    (own.rules.flat, own.rules.offsets, own.units),
    (alone.flat, alone.offsets),
    (groups.member, groups.lhs, groups.source, groups.target, groups.pair),
    np.bincount(groups.pair[groups.member], minlength=len(groups.pair_member)),
    _Sums(
      *(
        np.asarray(column, np.float64)
        for column in (
          *(total.rules, total.pairs, total.lhs, total.source, total.target),
          *(total.source_pairs, total.target_pairs),
        )
      )
    ),
    (
      np.asarray(held.weights, np.float64),
      np.asarray(held.one_word, np.bool_),
      held.kind == "singletons",
      held.kind == "lengths",
      float(held.alpha),
      np.asarray(held.words, np.int64),
    ),
  )


class _Sums(NamedTuple):
  """Counts of rules, and of what they have in common; float64 each."""

  rule: np.ndarray
  pair: np.ndarray
  lhs: np.ndarray
  source: np.ndarray
  target: np.ndarray
  source_pair: np.ndarray
  target_pair: np.ndarray


@njit
def _shift(above, below, less_above, less_below):
  """How ln(above / below) changes, both floored as θ is."""
  before = _log_share(above, below)
  if less_below < _NOTHING:
    return np.log(FLOOR) - before
  return np.log(max(max(less_above, 0.0) / less_below, FLOOR)) - before


@njit
def _changes(rules, sentence, own, alone, groups, pair_rules, totals, settings):
  """See `changes`; `pair_rules` counts the rules of each pair."""
  own_rules, own_offsets, own_units = own
  alone_rules, alone_offsets = alone
  member, pair = groups[0], groups[4]
  weights, one_word, forbid, by_length, alpha, words = settings
  # What the present sentence gave.
  less = _Sums(
    np.zeros(len(totals.rule)),
    np.zeros(len(totals.pair)),
    np.zeros(len(totals.lhs)),
    np.zeros(len(totals.source)),
    np.zeros(len(totals.target)),
    np.zeros(len(totals.source)),
    np.zeros(len(totals.target)),
  )
  removed = np.zeros(len(totals.pair), np.int64)
  out = np.zeros(len(rules), np.float32)
  place = 0
  for row in range(len(own_offsets) - 1):
    low, high = own_offsets[row], own_offsets[row + 1]
    first, last = alone_offsets[row], alone_offsets[row + 1]
    # Its own counts.
    for item in range(low, high):
      which = own_rules[item]
      if member[which]:
        value = own_units[item] / COUNT_UNIT
        _add(which, groups, less, value, value)
    # All counts of the rules that it alone gave.
    for item in range(first, last):
      which = alone_rules[item]
      if member[which]:
        left = totals.rule[which] - less.rule[which]  # others' use, and alpha
        _add(which, groups, less, left, left - alpha)
        removed[pair[which]] += 1
        if removed[pair[which]] == pair_rules[pair[which]]:
          _add_pair(which, groups, less, alpha)
    # The scores of its applications.
    while place < len(rules) and sentence[place] == row:
      which = rules[place]
      if which < len(member) and member[which]:
        only_own = (
          less.rule[which] > 0
          and totals.rule[which] - less.rule[which] < _NOTHING
        )
        if forbid:
          if only_own:
            out[place] = LAST_RESORT_SCORE if one_word[which] else NONE
        elif by_length and only_own:
          score = LENGTH_SCORE * words[which] * weights.sum()
          out[place] = score - _score(which, groups, totals, weights)
        else:
          out[place] = _change(which, groups, totals, less, weights)
      place += 1
    # Clear what was written.
    for which in own_rules[low:high]:
      _clear(which, groups, less)
    for which in alone_rules[first:last]:
      _clear(which, groups, less)
      removed[pair[which]] = 0
  return out


@njit
def _log_share(above, below):
  """Ln(above / below), floored as θ is."""
  if below < _NOTHING:
    return np.log(FLOOR)
  return np.log(max(above / below, FLOOR))


@njit
def _score(which, groups, totals, weights):
  """The weighted θ of a rule."""
  _, lhs, source, target, pair = groups
  s, t, l, p = source[which], target[which], lhs[which], pair[which]
  one, both = totals.rule[which], totals.pair[p]
  return (
    weights[0] * _log_share(both, totals.target_pair[t])
    + weights[1] * _log_share(both, totals.source_pair[s])
    + weights[2] * _log_share(one, totals.lhs[l])
    + weights[3] * _log_share(one, totals.source[s])
    + weights[4] * _log_share(one, totals.target[t])
  )


@njit
def _change(which, groups, totals, less, weights):
  """How the weighted θ of a rule changes with counts taken off."""
  _, lhs, source, target, pair = groups
  s, t, l, p = source[which], target[which], lhs[which], pair[which]
  one, both = totals.rule[which], totals.pair[p]
  rest, rest_both = one - less.rule[which], both - less.pair[p]
  total = weights[0] * _shift(
    both,
    totals.target_pair[t],
    rest_both,
    totals.target_pair[t] - less.target_pair[t],
  )
  total += weights[1] * _shift(
    both,
    totals.source_pair[s],
    rest_both,
    totals.source_pair[s] - less.source_pair[s],
  )
  total += weights[2] * _shift(
    one, totals.lhs[l], rest, totals.lhs[l] - less.lhs[l]
  )
  total += weights[3] * _shift(
    one, totals.source[s], rest, totals.source[s] - less.source[s]
  )
  total += weights[4] * _shift(
    one, totals.target[t], rest, totals.target[t] - less.target[t]
  )
  return total


@njit
def _add(which, groups, sums, value, pair_value):
  """Adds to the sums that a rule is part of."""
  _, lhs, source, target, _ = groups
  sums.rule[which] += value
  sums.lhs[lhs[which]] += value
  sums.source[source[which]] += value
  sums.target[target[which]] += value
  _add_pair(which, groups, sums, pair_value)


@njit
def _add_pair(which, groups, sums, value):
  """Adds to the sums that a rule's pair of sides is part of."""
  _, _, source, target, pair = groups
  sums.pair[pair[which]] += value
  sums.source_pair[source[which]] += value
  sums.target_pair[target[which]] += value


@njit
def _clear(which, groups, sums):
  """Sets the sums that a rule is part of to 0."""
  _, lhs, source, target, pair = groups
  sums.rule[which] = 0.0
  sums.pair[pair[which]] = 0.0
  sums.lhs[lhs[which]] = 0.0
  sums.source[source[which]] = 0.0
  sums.target[target[which]] = 0.0
  sums.source_pair[source[which]] = 0.0
  sums.target_pair[target[which]] = 0.0
