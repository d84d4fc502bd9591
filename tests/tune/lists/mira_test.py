"""MIRA against a slow pass and exact solutions."""

import itertools

import numpy as np
import pytest

from jaxmt.tune import learning
from jaxmt.tune.lists import mira
from tests.reference import online as slow
from tests.tune import small_pool


@pytest.mark.parametrize("sparse_features", [0, 7])
@pytest.mark.parametrize("background", ["model", "hope"])
def test_mira_pass(sparse_features, background):
  made = small_pool.make(3, sparse_features=sparse_features)
  start = small_pool.start(made)
  lists, statistics = small_pool.as_lists(made)
  config = mira.MiraConfig(passes=1, cap=0.05, decay=0.9, background=background)
  learner = learning.Learner(weights=start)
  ((_, record),) = mira.passes(made, learner, config, 0)
  order = np.random.default_rng(0).permutation(made.sentences)
  expected, total = slow.mira(
    lists,
    statistics,
    start,
    order,
    cap=0.05,
    decay=0.9,
    model=background == "model",
  )
  assert record["updates"] > 5
  np.testing.assert_allclose(learner.weights, expected, rtol=1e-9, atol=1e-12)
  seen = sum(len(h) > 0 for h in lists)
  assert learner.steps == seen
  # The mean over the weights after each sentence.
  np.testing.assert_allclose(learner.average, total / seen, rtol=1e-9)


def test_several_constraints_solve_the_dual():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(3, 4))
  losses = np.array([1.0, 0.3, 2.0])
  alpha = np.zeros(3)
  mira.solve(x @ x.T, losses, 3, 0.4, alpha)

  def dual(a):
    return a @ losses - 0.5 * np.sum((a @ x) ** 2)

  grid = np.linspace(0, 0.4, 41)
  best = max(dual(np.array(a)) for a in itertools.product(grid, repeat=3))
  assert dual(alpha) >= best - 1e-9
  assert ((alpha >= 0) & (alpha <= 0.4)).all()


def test_one_constraint_is_the_closed_form():
  # Eq 62: min(C, loss / |x|^2), never negative, and 0 for x = 0.
  alpha = np.zeros(1)
  for loss, square, cap, expected in [
    (1.0, 4.0, 1.0, 0.25),
    (1.0, 4.0, 0.1, 0.1),
    (-1.0, 4.0, 1.0, 0.0),
    (1.0, 0.0, 1.0, 0.0),
  ]:
    mira.solve(np.array([[square]]), np.array([loss]), 1, cap, alpha)
    assert alpha[0] == pytest.approx(expected)
