"""Decoding a training sentence as if it had not been in the corpus.

A rule that a sentence itself gave is more probable than it would be elsewhere,
and rules nothing else supports make memorising look good. Matching is done
with θ as it is; then the static score of every application on the sentence's
chart is changed to that under θ without the sentence's own counts (compare
`estimate.leave_one_out`). A rule that only this sentence gave would not be in
the table at all: what smoothing and other sentences' derivations gave it goes
too. What matching cut off stays cut off.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE, Chart, Layout
from jaxmt.grammar import estimate
from jaxmt.grammar.estimate import FLOOR, Groups, Totals
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.hypergraph.forest import Forest
from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.train.counts import Contributions

# Score of a rule seen only in this sentence, where it may be used at all. Any
# other rule is better, and scores that include it stay readable.
LAST_RESORT_SCORE = -50.0
_NOTHING = 0.5 / COUNT_UNIT  # less than a unit is rounding


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeldOut:
  """What is needed to leave a sentence's own counts out of θ.

  Attributes:
    kind: "counts" or "singletons", see `ThetaConfig.leave_one_out`.
    total: sums of the counts that θ came from.
    groups: of the same rules.
    alpha: what smoothing added to each of them.
    weights: of the five features in the order of `estimate.THETA`, `[5]`.
    one_word: rules that translate one word by itself, bool `[R]`.
    alone: for every sentence of the training text the rules that it alone gave
      at extraction, N rows; None if the counts are those of extraction.
  """

  kind: str
  total: Totals
  groups: Groups
  alpha: float
  weights: np.ndarray
  one_word: np.ndarray
  alone: Ragged | None = None


def hold_out(
  chart: Chart,
  layout: Layout,
  own: Contributions,
  held: HeldOut,
  rows: np.ndarray,
) -> Chart:
  """Returns the chart with static scores without the sentences' own counts.

  Args:
    chart: B sentences.
    layout: of the chart.
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
  rules = layout.rules[np.asarray(chart.rule)[cell, column]]
  static[cell, column] += changes(rules, sentence[cell], own, held, rows)
  return dataclasses.replace(chart, static=np.maximum(static, NONE))


def hold_out_forest(
  forest: Forest, own: Contributions, held: HeldOut, rows: np.ndarray
) -> Forest:
  """Returns the forest with scores without the sentences' own counts.

  For "counts", where nothing is forbidden; see `changes` for the arguments.
  """
  edges = np.diff(forest.edge_offsets[forest.node_offsets])
  sentence = np.repeat(np.arange(len(forest)), edges)
  change = changes(forest.edges.rule, sentence, own, held, rows)
  score = (forest.score + change).astype(np.float32)
  return dataclasses.replace(forest, score=score)


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
    (
      np.asarray(total.rules, np.float64),
      np.asarray(total.pairs, np.float64),
      np.asarray(total.lhs, np.float64),
      np.asarray(total.source, np.float64),
      np.asarray(total.target, np.float64),
      np.asarray(total.source_pairs, np.float64),
      np.asarray(total.target_pairs, np.float64),
    ),
    np.asarray(held.weights, np.float64),
    np.asarray(held.one_word, np.bool_),
    held.kind == "singletons",
    float(held.alpha),
  )


@njit
def _shift(above, below, less_above, less_below):
  """How ln(above / below) changes, both floored as θ is."""
  before = (
    np.log(FLOOR) if below < _NOTHING else np.log(max(above / below, FLOOR))
  )
  if less_below < _NOTHING:
    return np.log(FLOOR) - before
  return np.log(max(max(less_above, 0.0) / less_below, FLOOR)) - before


@njit
def _changes(
  rules,
  sentence,
  own,
  alone,
  groups,
  pair_rules,
  totals,
  weights,
  one_word,
  forbid,
  alpha,
):
  own_rules, own_offsets, own_units = own
  alone_rules, alone_offsets = alone
  member, lhs, source, target, pair = groups
  t_rule, t_pair, t_lhs, t_source, t_target, t_spair, t_tpair = totals
  o_rule, o_pair = np.zeros(len(t_rule)), np.zeros(len(t_pair))
  o_lhs, o_source = np.zeros(len(t_lhs)), np.zeros(len(t_source))
  o_target = np.zeros(len(t_target))
  o_spair, o_tpair = np.zeros(len(t_source)), np.zeros(len(t_target))
  gone = np.zeros(len(t_pair), np.int64)
  out = np.zeros(len(rules), np.float32)
  place = 0
  for row in range(len(own_offsets) - 1):
    low, high = own_offsets[row], own_offsets[row + 1]
    first, last = alone_offsets[row], alone_offsets[row + 1]
    for item in range(low, high):
      which = own_rules[item]
      if member[which]:
        value = own_units[item] / COUNT_UNIT
        o_rule[which] += value
        o_lhs[lhs[which]] += value
        o_source[source[which]] += value
        o_target[target[which]] += value
        o_pair[pair[which]] += value
        o_spair[source[which]] += value
        o_tpair[target[which]] += value
    for item in range(first, last):
      which = alone_rules[item]
      if member[which]:
        left = t_rule[which] - o_rule[which]  # others' use of it, and alpha
        o_rule[which] += left
        o_lhs[lhs[which]] += left
        o_source[source[which]] += left
        o_target[target[which]] += left
        o_pair[pair[which]] += left - alpha
        o_spair[source[which]] += left - alpha
        o_tpair[target[which]] += left - alpha
        gone[pair[which]] += 1
        if gone[pair[which]] == pair_rules[pair[which]]:
          o_pair[pair[which]] += alpha
          o_spair[source[which]] += alpha
          o_tpair[target[which]] += alpha
    while place < len(rules) and sentence[place] == row:
      which = rules[place]
      place += 1
      if which >= len(member) or not member[which]:
        continue
      s, t, l, p = source[which], target[which], lhs[which], pair[which]
      one, both = t_rule[which], t_pair[p]
      rest, rest_both = one - o_rule[which], both - o_pair[p]
      if forbid:
        if o_rule[which] > 0 and rest < _NOTHING:
          out[place - 1] = LAST_RESORT_SCORE if one_word[which] else NONE
        continue
      total = weights[0] * _shift(
        both, t_tpair[t], rest_both, t_tpair[t] - o_tpair[t]
      )
      total += weights[1] * _shift(
        both, t_spair[s], rest_both, t_spair[s] - o_spair[s]
      )
      total += weights[2] * _shift(one, t_lhs[l], rest, t_lhs[l] - o_lhs[l])
      total += weights[3] * _shift(
        one, t_source[s], rest, t_source[s] - o_source[s]
      )
      total += weights[4] * _shift(
        one, t_target[t], rest, t_target[t] - o_target[t]
      )
      out[place - 1] = total
    for which in own_rules[low:high]:
      _clear(which, groups, o_rule, o_pair, o_lhs, o_source, o_target)
      o_spair[source[which]] = 0.0
      o_tpair[target[which]] = 0.0
    for which in alone_rules[first:last]:
      _clear(which, groups, o_rule, o_pair, o_lhs, o_source, o_target)
      o_spair[source[which]] = 0.0
      o_tpair[target[which]] = 0.0
      gone[pair[which]] = 0
  return out


@njit
def _clear(which, groups, o_rule, o_pair, o_lhs, o_source, o_target):
  _, lhs, source, target, pair = groups
  o_rule[which] = 0.0
  o_pair[pair[which]] = 0.0
  o_lhs[lhs[which]] = 0.0
  o_source[source[which]] = 0.0
  o_target[target[which]] = 0.0
