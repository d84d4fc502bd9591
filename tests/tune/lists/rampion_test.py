"""Rampion against a slow pass."""

import itertools

import numpy as np
import pytest

from jaxmt.tune import costs as tune_costs
from jaxmt.tune import methods, pool
from jaxmt.tune.lists import rampion
from tests.reference import online as slow
from tests.tune import small_pool


@pytest.mark.parametrize("form", [1, 2, 3])
@pytest.mark.parametrize("sparse_features", [0, 7])
def test_rampion(form, sparse_features):
  made = small_pool.make(4, sparse_features=sparse_features)
  start = small_pool.start(made)
  lists, _ = small_pool.as_lists(made)
  costs = 5.0 * pool.sentence_costs(made, "bleu")
  per_list = [costs[a:b] for a, b in itertools.pairwise(made.offsets)]
  settings = {"form": form, "rounds": 3, "passes": 2, "rate": 0.05, "pull": 2.0}
  expected = slow.rampion(lists, per_list, start, **settings)
  config = rampion.RampionConfig(cost_scale=5.0, **settings)
  _, history = rampion.optimise(made, start, config, 0)
  scores = [pool.pool_score(made, w, "bleu") for w in expected]
  assert [row["score"] for row in history] == pytest.approx(scores)


@pytest.mark.parametrize("form", [1, 2, 3])
def test_algorithm_1_of_the_thesis_ends_with_its_last_iterate(form):
  made = small_pool.make(4)
  start = small_pool.start(made)
  lists, _ = small_pool.as_lists(made)
  method = methods.configure(
    methods.find(f"thesis-ramp{form}"), {"rounds": "3", "rate": "0.05"}
  )
  costs = method.config.cost_scale * tune_costs.candidate_costs(
    made, start, metric="bleu", kind="bleu+1-all"
  )
  expected = slow.rampion(
    lists,
    [costs[a:b] for a, b in itertools.pairwise(made.offsets)],
    start,
    form=form,
    rounds=3,
    passes=5,
    rate=0.05,
    pull=1.0,
  )
  got, _ = methods.run(method, made, start, 0)
  np.testing.assert_allclose(got, expected[-1], atol=1e-9)
