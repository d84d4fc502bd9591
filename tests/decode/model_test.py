"""Other weights or features for the same rules equal a model made anew."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode.chart import decoder, search
from jaxmt.grammar import table as tables
from tests.reference import chart_cases

OTHER = {
  "score": -0.4,
  "Glue": 0.7,
  "PassThrough": 2.0,
  "LanguageModel": 0.1,
  "LanguageModel_OOV": 1.0,
  "WordPenalty": 0.6,
  "Mismatch": 0.2,
}


def case(seed):
  return chart_cases.random_case(
    seed, order=3, arity=3, rules=30, tree_rules=10
  )


def same(one, two):
  np.testing.assert_array_equal(one.columns.score, two.columns.score)
  np.testing.assert_array_equal(one.columns.label, two.columns.label)
  np.testing.assert_array_equal(one.columns.site, two.columns.site)


@pytest.mark.parametrize("seed", range(3))
def test_with_weights_equals_making_the_model(seed):
  made, source = chart_cases.to_model(case(seed), arity=3)
  anew, other = chart_cases.to_model(case(seed), arity=3, weights=OTHER)
  changed = models.with_weights(made, OTHER)
  same(changed, anew)
  same(models.rescore_source(changed, source), other)
  np.testing.assert_array_equal(changed.ranked.flat, anew.ranked.flat)
  np.testing.assert_array_equal(changed.ranked.offsets, anew.ranked.offsets)
  assert changed.label_weights == anew.label_weights
  assert changed.columns.inputs is made.columns.inputs
  assert changed.trie is made.trie
  back = models.with_weights(changed, chart_cases.WEIGHTS)
  same(back, made)
  assert not np.array_equal(changed.columns.score, made.columns.score)


def test_with_features_equals_making_the_model():
  first = case(5)
  made, _ = chart_cases.to_model(first, arity=3)
  values = np.asarray(made.table.features).copy()
  values[:, 0] = np.linspace(-2, 0, len(values))
  changed = models.with_features(made, values)
  anew = models.make_model(
    dataclasses.replace(made.table, features=values),
    made.lm,
    weights=made.weights,
    limits=made.limits,
    arity=3,
  )
  same(changed, anew)
  np.testing.assert_array_equal(changed.ranked.flat, anew.ranked.flat)
  own = tables.feature(changed.table, "score")
  np.testing.assert_array_equal(own, values[:, 0])
  with pytest.raises(ValueError, match="not"):
    models.with_features(made, values[:, :1])


def test_a_source_of_other_weights_is_scored_anew():
  case = chart_cases.random_case(2, order=2, arity=2, sentences=4)
  model, source = chart_cases.to_model(case, arity=2, pass_through="all")
  changed = models.with_weights(model, OTHER)
  fresh = models.rescore_source(changed, source)
  assert not np.array_equal(fresh.columns.score, source.columns.score)
  assert models.rescore_source(changed, fresh) is fresh
  config = search.make_config(beam=8, pop=24)
  batch = [np.arange(len(source))]
  stale = decoder.prepare(changed, source, batch, config=config)
  want = decoder.prepare(changed, fresh, batch, config=config)
  np.testing.assert_array_equal(stale.charts[0].static, want.charts[0].static)
