"""Violation-fixing updates of joint models: Hiero rules and tree rules."""

import numpy as np
import pytest

from jaxmt.decode.chart import search
from jaxmt.grammar.match.matching import GOAL
from jaxmt.grammar.table import Kind
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.violation import forced_forests, learner, minibatch
from jaxmt.train.violation.learn_config import LearnConfig
from tests.reference import chart_cases as cases
from tests.reference import chart_enumeration as enumeration

ARITY = 5
SEEDS = range(16)


def scored(case, row):
  """Score and string of every derivation, the best first."""
  every = enumeration.derivations(
    case.rules,
    case.sentences[row],
    span=case.span,
    constituents=case.constituents[row],
    copy="unknown",
  )
  return sorted(
    (
      (cases.total(case, one, enumeration.lm_score), " ".join(one[0]))
      for one in every
    ),
    reverse=True,
  )


def make_setting(seed, config, *, beam):
  """A random case, all its derivations, and what to learn from."""
  case = cases.joint_case(seed, order=2, arity=ARITY, sentences=8)
  model, source = cases.to_model(case, arity=ARITY)
  model = learner.prepare_model(model, config)
  every = [scored(case, row) for row in range(len(case.sentences))]
  # The second string: not the best one, and often of tree rules, too.
  strings = [list(dict.fromkeys(text for _, text in own)) for own in every]
  references = [[own[min(1, len(own) - 1)]] for own in strings]
  forced = forced_forests.force_text(
    model, source, references, config, store=MemoryStore()
  )
  setting = learner.LearningSetting(
    model=model,
    source=source,
    references=references,
    forced=forced,
    start=dict(model.weights),
    search=search.make_config(beam=beam, pop=10 * beam),
  )
  return setting, every


def contribute(setting, config):
  """The contribution of all sentences."""
  rows = np.arange(len(setting.source))
  pack = learner.make_pack(setting, config, rows)
  work = minibatch.UpdateWork(
    model=setting.model,
    source=setting.source,
    config=config,
    search=setting.search,
  )
  (one,) = minibatch.contribute([pack], work=work)
  return pack, one


def settings(update):
  return LearnConfig(update=update, templates=("edges:simple", "shape"))


def test_updates_at_the_goal_are_those_of_enumeration():
  config, updated, with_trees = settings("standard"), 0, 0
  for seed in SEEDS:
    setting, every = make_setting(seed, config, beam=200)
    pack, found = contribute(setting, config)
    kinds = setting.model.table.kind[
      np.minimum(pack.good.forest.edges.rule, len(setting.model.table) - 1)
    ]
    with_trees += int(np.count_nonzero(kinds == Kind.TREE_TO_STRING))
    for row, own in enumerate(every):
      reference = setting.references[row][0]
      good = max(value for value, text in own if text == reference)
      best, text = own[0]
      right = text == reference
      assert found.stats[row, minibatch.RIGHT] == right
      assert found.stats[row, minibatch.UPDATED] == (not right)
      if not right:
        violation = found.stats[row, minibatch.VIOLATION]
        assert violation == pytest.approx(best - good, abs=1e-3)
        assert found.stats[row, minibatch.CATEGORY] == GOAL
        updated += 1
  assert updated > 60 and with_trees > 25


def test_largest_violations_are_valid_and_no_smaller_than_the_goals():
  narrow, larger = settings("max-violation"), 0
  for seed in SEEDS:
    setting, _ = make_setting(seed, narrow, beam=3)
    _, found = contribute(setting, narrow)
    _, goal = contribute(setting, settings("skip"))
    violation = found.stats[:, minibatch.VIOLATION]
    updated = found.stats[:, minibatch.UPDATED] > 0
    assert (violation[updated] >= 0).all()
    assert (violation >= goal.stats[:, minibatch.VIOLATION] - 1e-3).all()
    larger += int((violation > goal.stats[:, minibatch.VIOLATION] + 0.1).sum())
  assert larger > 3
