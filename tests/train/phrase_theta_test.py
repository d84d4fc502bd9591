"""Probabilities of phrase pairs, trained, against enumeration."""

import collections
import dataclasses

import numpy as np
import pytest

from jaxmt.decode.phrase import phrase_decoder
from jaxmt.grammar import estimate
from jaxmt.grammar import table as tables
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.text.ragged import Ragged
from jaxmt.train import (
  leave_one_out,
  shard_counting,
  theta_features,
  theta_methods,
)
from jaxmt.train.counts import Contributions
from jaxmt.train.leave_one_out import HeldOut
from jaxmt.train.theta_config import ThetaConfig
from tests.reference import chart_augmented as oracle
from tests.reference import phrase_enumeration as enumeration

CONFIG = ThetaConfig(
  method="loss-augmented",
  counts="viterbi",
  alpha1=0.0,
  alpha2=4.0,
  alpha=0.02,
  iterations=1,
  scale=0.0,
  constraint=10.0,  # any derivation may be learned from
  fallback="skip",
  diagnose=0,
  train_beam=200,
  train_pop=200,
  state="accumulators",
)


def training(seed):
  """A case, its model, and a bitext whose references can be reached."""
  case = enumeration.random_case(seed, count=20)
  model, source = enumeration.to_model(case, distortion=2)
  rng = np.random.default_rng(seed)
  every = [enumeration.scored(case, s, limit=2) for s in case.sentences]
  references = [own[int(rng.integers(0, len(own)))][1] for own in every]
  lines = [" ".join(words) for words in references]
  return case, model, shard_counting.make_bitext(model, source, lines), every


def rule_counts(case, chains):
  """Counts of the rows of the table, from (chain, share, words)."""
  rows = {(one[0], one[1]): n for n, one in enumerate(case.phrases)}
  out = collections.Counter()
  for chain, share, words in chains:
    for begin, end, target, _, _, copied in chain:
      row = len(rows) if copied else rows[tuple(words[begin:end]), target]
      out[row] += share
  return [out[row] for row in range(len(rows) + 1)]


@pytest.mark.parametrize("seed", range(3))
def test_counts_of_loss_augmented_derivations(seed):
  case, model, bitext, every = training(seed)
  learned = theta_methods.train(model, bitext, CONFIG)
  chosen = []
  for words, line, own in zip(case.sentences, bitext.lines, every, strict=True):
    good = lambda one, line=line: (
      one[0] + 4.0 * oracle.log_goodness(one[1], line.split())
    )
    chosen.append((max(own, key=good)[2], 1.0, words))
  np.testing.assert_allclose(
    learned.counts / COUNT_UNIT, rule_counts(case, chosen), atol=1e-6
  )
  assert learned.history[0]["admissible"] == len(case.sentences)
  groups = estimate.group_rules(model.table)
  np.testing.assert_allclose(
    learned.theta,
    theta_features.theta_of(learned.counts, groups, CONFIG),
    atol=1e-5,
  )


@pytest.mark.parametrize("seed", range(3))
def test_counts_of_the_derivations_that_reach_the_reference(seed):
  case, model, bitext, every = training(seed)
  config = dataclasses.replace(CONFIG, method="likelihood", counts="forest")
  learned = theta_methods.train(model, bitext, config)
  chains = []
  for words, line, own in zip(case.sentences, bitext.lines, every, strict=True):
    reached = [one for one in own if one[1] == line.split()]
    scores = np.array([one[0] for one in reached])
    shares = np.exp(scores - np.logaddexp.reduce(scores))
    chains += [(o[2], p, words) for o, p in zip(reached, shares, strict=True)]
  np.testing.assert_allclose(
    learned.counts / COUNT_UNIT, rule_counts(case, chains), atol=1e-4
  )


def test_own_counts_change_scores_of_options():
  _, model, bitext, _ = training(1)
  groups = estimate.group_rules(model.table)
  counts = np.arange(1.0, len(model.table) + 1)
  held = HeldOut(
    kind="counts",
    total=estimate.totals(counts, groups),
    groups=groups,
    alpha=0.0,
    weights=np.array([0.4, 0.6, 0.0, 0.0, 0.0]),
    one_word=(tables.arity(model.table) == 0)
    & (model.table.source.lengths == 1),
    words=leave_one_out.rule_words(model.table),
  )
  rows = np.arange(len(bitext))
  rules = [np.unique(rng_rules(model, place)) for place in rows]
  own = Contributions(
    rules=Ragged(
      flat=np.concatenate(rules).astype(np.int32),
      offsets=np.cumsum([0, *map(len, rules)]),
    ),
    units=np.full(sum(map(len, rules)), COUNT_UNIT, np.int64),
  )
  chart = phrase_decoder.build_chart(model, bitext.source)
  changes = leave_one_out.option_changes(chart.rule, own, held, rows)
  before = estimate.theta_of(held.total, groups, slice(None))
  for row in rows:
    after = estimate.leave_one_out(
      held.total,
      groups,
      rules[row],
      np.ones(len(rules[row])),
      np.arange(len(model.table)),
    )
    gain = (after - before) @ held.weights
    for place in zip(*np.nonzero(chart.rule[row] >= 0), strict=True):
      rule = int(chart.rule[row][place])
      want = gain[rule] if rule < len(gain) else 0.0
      assert changes[row][place] == pytest.approx(want, abs=1e-4)
  changed = phrase_decoder.build_chart(
    model, bitext.source, changes=lambda rule: changes
  )
  assert (changed.ranked != chart.ranked).any()


def rng_rules(model, seed):
  """Some phrase pairs of a table."""
  rng = np.random.default_rng(seed)
  return rng.integers(0, len(model.table) - 1, 4)
