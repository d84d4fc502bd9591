"""Scores without own counts, against tables without the sentence."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode.forced import forced
from jaxmt.grammar import estimate, provenance
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.train import counts, leave_one_out, shard_counting
from tests.reference import tiny_training as tiny
from tests.train.counts_test import CONFIG, make_world


@pytest.fixture(scope="module")
def world():
  return make_world()


@pytest.mark.parametrize("kind", ["counts", "lengths"])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_held_out_scores_are_those_of_a_table_without_the_sentence(
  world, alpha, kind
):
  model, bitext, _, _, made = world
  groups = estimate.group_rules(model.table)
  weights = leave_one_out.theta_weights(model.weights)
  every = np.arange(len(bitext))
  assert len(forced.own_rules(bitext.provenance).flat)
  for own in (counts.from_provenance(bitext.provenance, every), made):
    units = np.zeros(len(model.table), np.int64)
    counts.add(units, own)
    total = estimate.totals(units / COUNT_UNIT, groups, alpha=alpha)
    held = leave_one_out.HeldOut(
      kind=kind,
      total=total,
      groups=groups,
      alpha=alpha,
      weights=weights,
      one_word=np.zeros(len(model.table), np.bool_),
      words=leave_one_out.rule_words(model.table),
      alone=forced.own_rules(bitext.provenance),
    )
    rules = np.arange(len(model.table))
    before = estimate.theta_of(total, groups, slice(None)) @ weights
    got = leave_one_out.changes(
      np.tile(rules, len(bitext)),
      np.repeat(every, len(rules)),
      own,
      held,
      every,
    ).reshape(len(bitext), -1)
    changed = 0
    for row in range(len(bitext)):
      theta = _theta_without(bitext.provenance, groups, units, own, row, alpha)
      want = theta @ weights - before
      if kind == "lengths":
        by_length = _by_length(model, bitext, total, own, row, want, before)
        changed += (by_length != want).sum()
        want = by_length
      np.testing.assert_allclose(got[row], want, atol=1e-4)
    assert bool(changed) == (kind == "lengths")


def _by_length(model, bitext, total, own, row, want, before):
  """The same, but rules of this sentence alone have e^-5 for each word."""
  weights = leave_one_out.theta_weights(model.weights)
  alone = set(forced.own_rules(bitext.provenance)[row].tolist())
  start, stop = own.rules.offsets[row : row + 2]
  given = dict(
    zip(
      own.rules.flat[start:stop].tolist(),
      own.units[start:stop].tolist(),
      strict=True,
    )
  )
  want = want.copy()
  for rule in np.flatnonzero(estimate.group_rules(model.table).member).tolist():
    left = 0.0 if rule in alone else total.rules[rule]
    left -= 0.0 if rule in alone else given.get(rule, 0) / COUNT_UNIT
    if left < 1e-9 and total.rules[rule] > 0 and {rule} & (alone | {*given}):
      words = [x for x in model.table.source[rule].tolist() if x >= 0]
      words += [x for x in model.table.target[rule].tolist() if x >= 0]
      want[rule] = -5.0 * len(words) * weights.sum() - before[rule]
  return want


def _theta_without(given, groups, units, own, row, alpha):
  """θ of the table that would be there without a sentence."""
  start, stop = own.rules.offsets[row : row + 2]
  rest = units.copy()
  rest[own.rules.flat[start:stop]] -= own.units[start:stop]
  givers = np.bincount(given.rules.flat, minlength=len(units))
  mine = provenance.sentence_rules(given, row)[0]
  member = groups.member.copy()
  member[mine[givers[mine] == 1]] = False
  pairs = np.zeros_like(groups.pair_member)
  pairs[groups.pair[member]] = True
  left = dataclasses.replace(groups, member=member, pair_member=pairs)
  total = estimate.totals(rest / COUNT_UNIT, left, alpha=alpha)
  return estimate.theta_of(total, groups, slice(None))


def test_holding_out_changes_the_chart_of_the_own_sentence_only(world):
  model, bitext, _, _, _ = world
  groups = estimate.group_rules(model.table)
  config = dataclasses.replace(CONFIG, leave_one_out="singletons")
  one_word = model.table.source.lengths == 1
  held = leave_one_out.HeldOut(
    kind="singletons",
    total=estimate.totals(model.table.counts, groups),
    groups=groups,
    alpha=0.0,
    weights=leave_one_out.theta_weights(model.weights),
    one_word=one_word,
    words=leave_one_out.rule_words(model.table),
  )
  rows = np.arange(len(bitext))
  own = counts.from_provenance(bitext.provenance, rows)
  work = dataclasses.replace(tiny.work(model, bitext, config), held=held)
  plain = shard_counting.prepare(work, [rows], None)
  changed = shard_counting.prepare(work, [rows], [own])
  chart, matches = plain.charts[0], plain.matches[0]
  there = chart.static > -1e29
  cell, column = np.nonzero(there)
  rule = matches.rules[chart.rule[cell, column]]
  sentence = chart.sentence[cell]
  after = changed.charts[0].static[cell, column]
  gone = after < -1e29
  givers = [set() for _ in range(len(model.table) + 1 + 64)]
  for row in rows.tolist():
    for one in provenance.sentence_rules(bitext.provenance, row)[0].tolist():
      givers[one].add(row)
  want = [
    givers[r] == {s}
    for r, s in zip(rule.tolist(), sentence.tolist(), strict=True)
  ]
  single = np.array([r < len(one_word) and one_word[r] for r in rule])
  np.testing.assert_array_equal(gone, want & ~single)
  assert 0 < gone.sum() < len(gone)
  # Its own words can be translated, if there is no other way.
  dear = (
    after - chart.static[cell, column] < 0.9 * leave_one_out.LAST_RESORT_SCORE
  )
  np.testing.assert_array_equal(~gone & dear, want & single)
  assert (want & single).any()
