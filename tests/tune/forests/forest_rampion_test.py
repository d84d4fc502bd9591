"""Rampion on forests against one step at a time."""

import numpy as np
import pytest

from jaxmt.tune.forests import (
  forest_rampion,
)
from tests.tune.forests.forest_loss_test import START, brute, made


@pytest.mark.parametrize("form", [1, 2, 3])
def test_one_pass_of_rampion(form):
  pool, data = made(5, sentences=3)
  config = forest_rampion.ForestRampionConfig(
    form=form, rounds=1, passes=1, cost_scale=2.0, rate=0.01, explore=True
  )
  tuned, _ = forest_rampion.optimise(pool, START, config, 0)
  costs, table = 2.0 * data.costs(), data.features[data.split.edge]
  lower = costs if form in (2, 3) else 0.0 * costs
  upper = costs if form in (1, 3) else 0.0 * costs
  weights = START.copy()
  hopes = [brute(data, row, data.scores(START) - lower) for row in range(3)]
  for row, hope in enumerate(hopes):
    if hope is None:
      continue
    fear = brute(data, row, data.scores(weights) + upper)
    weights = START + (1 - 0.01 / 3) * (weights - START)
    weights += 0.01 * (table[hope].sum(0) - table[fear].sum(0))
  np.testing.assert_allclose(tuned, weights, rtol=1e-9)
