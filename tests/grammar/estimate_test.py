"""θ, lexical weights, leave-one-out, provenance: against dictionaries."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.grammar import estimate, provenance, table
from jaxmt.grammar.extract import extraction
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.grammar.table import Kind
from jaxmt.runtime.runner import Runner
from tests.grammar import rule_strategies as rules
from tests.reference import theta as reference

SERIAL = Runner(kind="serial", workers=1)


def plain_rules(made):
  """`(lhs, source, target, count)` of the rules that take part."""
  sites = rules.sites(made)
  found = {}
  for rule in range(len(made)):
    if made.kind[rule] in (Kind.HIERO, Kind.TREE_TO_STRING):
      target = tuple(
        symbol if symbol >= 0 else (-1 - symbol, sites[rule][-1 - symbol])
        for symbol in made.target[rule].tolist()
      )
      found[rule] = (
        int(made.lhs[rule]),
        tuple(made.source[rule].tolist()),
        target,
        float(made.counts[rule]),
      )
  return found


def extracted(corpus, *, options=None, alpha=0.0, keep=True):
  source, target, links = rules.encode(corpus)
  return extraction.extract_hiero(
    source,
    target,
    links,
    source_words=rules.SOURCE_WORDS,
    target_words=rules.TARGET_WORDS,
    options=options or HieroOptions(),
    count=CountOptions(provenance=keep),
    runner=SERIAL,
    alpha=alpha,
  )


@settings(max_examples=150)
@given(rules.tables(most=10), st.sampled_from([0.0, 0.5, 2.0]))
def test_theta_equals_its_definition(made, alpha):
  groups = estimate.group_rules(made)
  found = estimate.relative_frequency(made.counts, groups, alpha=alpha)
  members = plain_rules(made)
  expected = reference.theta(list(members.values()), alpha=alpha)
  for rule, probabilities in zip(members, expected, strict=True):
    for column, probability in enumerate(probabilities):
      value = max(probability or 0.0, estimate.FLOOR)
      assert found[rule, column] == pytest.approx(math.log(value), abs=1e-9)
  others = [rule for rule in range(len(made)) if rule not in members]
  assert not found[others].any()


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_theta_on_the_device(alpha):
  made = extracted(rules.random_corpus(20)).table
  groups = estimate.group_rules(made)
  expected = estimate.relative_frequency(made.counts, groups, alpha=alpha)
  work = functools.partial(
    estimate.relative_frequency, groups=groups, alpha=alpha, xp=jnp
  )
  counts = jnp.asarray(made.counts, jnp.float32)
  for function in (work, jax.jit(work)):
    np.testing.assert_allclose(function(counts), expected, atol=1e-4)


@settings(max_examples=60)
@given(rules.corpora(longest=5, most=4), st.sampled_from([0.0, 0.5]))
def test_columns_sum_to_one_over_their_condition(corpus, alpha):
  made = extracted(corpus, alpha=alpha).table
  groups = estimate.group_rules(made)
  take = groups.member
  by = {
    "rule_given_lhs": groups.lhs,
    "rule_given_source": groups.source,
    "rule_given_target": groups.target,
    # Hiero rules have one left-hand side: a pair of sides is one rule.
    "source_given_target": groups.target,
    "target_given_source": groups.source,
  }
  for name, ids in by.items():
    probability = np.exp(table.feature(made, name)[take].astype(np.float64))
    sums = np.bincount(ids[take], probability)
    np.testing.assert_allclose(sums[np.unique(ids[take])], 1, atol=1e-5)


@settings(max_examples=50)
@given(rules.corpora(most=4), st.sampled_from([0.0, 0.5]), st.data())
def test_leaving_a_sentence_out_equals_estimating_without_it(
  corpus, alpha, data
):
  found = extracted(corpus, alpha=alpha)
  made, origin = found.table, found.provenance
  if not corpus:
    return
  sentence = data.draw(st.integers(0, len(corpus) - 1))
  groups = estimate.group_rules(made)
  weights = np.arange(len(corpus)) != sentence
  without = provenance.recount(origin, weights, size=len(made))
  expected = estimate.relative_frequency(without, groups, alpha=alpha)
  wanted = np.arange(len(made))[:: data.draw(st.integers(1, 3))]
  view = estimate.leave_one_out(
    estimate.totals(made.counts, groups, alpha=alpha),
    groups,
    *provenance.sentence_rules(origin, sentence),
    wanted,
  )
  np.testing.assert_allclose(view, expected[wanted], atol=1e-6)


def test_interpolation_is_in_probabilities():
  one, two = np.log([0.5, 0.2]), np.log([0.1, 0.6])
  mixed = estimate.interpolate(one, two, weight=0.25)
  np.testing.assert_allclose(np.exp(mixed), [0.2, 0.5])
  assert estimate.interpolate(one, two, weight=1.0) is one
  assert estimate.interpolate(one, two, weight=0.0) is two
  with pytest.raises(ValueError, match="weight"):
    estimate.interpolate(one, two, weight=1.5)
  device = estimate.interpolate(
    jnp.asarray(one), jnp.asarray(two), weight=0.25, xp=jnp
  )
  np.testing.assert_allclose(np.exp(device), [0.2, 0.5], atol=1e-6)


def test_indicators_mark_the_kind():
  made = extracted([(("a",), ("v",), ((0, 0),))]).table
  made = dataclasses.replace(
    made, kind=np.array([Kind.TREE_TO_STRING, *made.kind[1:]], np.int8)
  )
  names = estimate.INDICATORS
  found = dict(zip(names, estimate.indicators(made).T.tolist(), strict=True))
  assert found == {
    "rule_count": [1, 0, 0, 1],
    "glue": [0, 1, 1, 0],
    "hiero": [0, 0, 0, 0],
    "tree_to_string": [1, 0, 0, 0],
    "pass_through": [0, 0, 0, 1],
  }


def test_weights_must_fit_the_corpus():
  found = extracted([(("a",), ("v",), ((0, 0),))])
  with pytest.raises(ValueError, match="2 weights for 1"):
    provenance.recount(found.provenance, np.ones(2), size=1)
