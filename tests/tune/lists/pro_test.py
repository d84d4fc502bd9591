"""PRO: pairs that are sampled, and its gradient."""

import numpy as np
import pytest

from jaxmt.tune import pool
from jaxmt.tune.lists import pro
from tests.tune import small_pool


def sampled(**changes):
  costs = np.array([0.0, 0.2, 0.5, 0.9, 0.3, 0.3, 0.7])
  settings = {
    "usable": np.ones(7, bool),
    "offsets": np.array([0, 4, 6, 7, 7]),
    "seed": 1,
    "draws": 300,
    "kept": 8,
    "min_difference": 0.25,
    "max_difference": 1.0,
  }
  settings.update(changes)
  good, bad = pro.sample_pairs(costs, *settings.values())
  return costs, good, bad


def test_pro_pairs():
  costs, good, bad = sampled()
  gaps = costs[bad] - costs[good]
  assert len(good) == 8  # only the first list has pairs that differ enough
  # With replacement, as published: a pair may come several times.
  assert (gaps >= 0.25).all() and (np.diff(gaps) <= 0).all()
  assert set(good) | set(bad) <= {0, 1, 2, 3}
  assert gaps[0] == pytest.approx(0.9)  # the largest are kept
  again = sampled()
  np.testing.assert_array_equal(good, again[1])
  few = {tuple(sampled(seed=s, draws=9)[1].tolist()) for s in range(6)}
  assert len(few) > 1


def test_pro_leaves_out_monsters():
  usable = np.ones(7, bool)
  usable[3] = False
  _, good, bad = sampled(usable=usable)
  assert 3 not in bad and 3 not in good
  costs, good, bad = sampled(max_difference=0.5)
  assert (costs[bad] - costs[good] <= 0.5).all()
  made = small_pool.make(0)
  long = made.statistics["bleu"].copy()
  long[5, 4] = 1000
  usable = pro._usable(
    pool.dataclasses.replace(made, statistics={"bleu": long}), pro.ProConfig()
  )
  assert not usable[5] and usable.sum() == len(made) - 1


def test_pro_gradient():
  made = small_pool.make(1, sparse_features=5)
  rng = np.random.default_rng(0)
  weights = rng.normal(size=len(made.names))
  good, bad = np.array([0, 2, 15]), np.array([1, 3, 17])
  _, gradient = pro.ranking_loss(made, weights, good, bad, 0.7)
  for number in range(len(weights)):
    step = np.zeros_like(weights)
    step[number] = 1e-6
    above, _ = pro.ranking_loss(made, weights + step, good, bad, 0.7)
    below, _ = pro.ranking_loss(made, weights - step, good, bad, 0.7)
    assert gradient[number] == pytest.approx((above - below) / 2e-6, abs=1e-6)
