"""Mini-batch MIRA against SciPy's solution of the dual, and single steps."""

import numpy as np
import pytest
import scipy.optimize

from jaxmt.tune import learning
from jaxmt.tune.lists import minibatch_mira, mira
from tests.tune import small_pool


@pytest.mark.parametrize("seed", range(6))
def test_shared_caps(seed):
  rng = np.random.default_rng(seed)
  owner = np.array([0, 0, 0, 1, 2, 2])
  x = rng.normal(size=(6, 3 + seed))
  losses = rng.uniform(0.1, 2.0, 6)
  gram, cap, alpha = x @ x.T, 0.15, np.zeros(6)
  minibatch_mira.solve_shared(gram, losses, owner, cap, alpha)
  dual = lambda a: a @ losses - 0.5 * a @ gram @ a
  limits = [
    {"type": "ineq", "fun": lambda a, o=o: cap - a[owner == o].sum()}
    for o in range(3)
  ]
  best = scipy.optimize.minimize(
    lambda a: -dual(a),
    np.zeros(6),
    jac=lambda a: gram @ a - losses,
    bounds=[(0, None)] * 6,
    constraints=limits,
    method="SLSQP",
    options={"ftol": 1e-14, "maxiter": 500},
  )
  assert dual(alpha) == pytest.approx(-best.fun, abs=1e-8)
  assert (alpha >= 0).all()
  assert np.bincount(owner, alpha).max() <= cap + 1e-12
  # Somebody wants more than the cap, so that sharing matters.
  assert np.bincount(owner, alpha).max() == pytest.approx(cap, abs=1e-9)


def test_batches_of_one_are_mira():
  made = small_pool.make(3, sparse_features=7)
  start = small_pool.start(made)
  settings = dict(passes=3, cap=0.05, decay=0.9, constraints=1)
  one, two = learning.Learner(weights=start), learning.Learner(weights=start)
  list(mira.passes(made, one, mira.MiraConfig(**settings), 0))
  config = minibatch_mira.MinibatchMiraConfig(batch=1, **settings)
  list(minibatch_mira.passes(made, two, config, 0))
  np.testing.assert_allclose(one.weights, two.weights, rtol=1e-9)
  np.testing.assert_allclose(one.document, two.document, rtol=1e-12)


def test_a_whole_batch_is_one_step():
  """The step is inside the span of hope-fear differences, capped together."""
  made = small_pool.make(3)
  start = small_pool.start(made)
  config = minibatch_mira.MinibatchMiraConfig(batch=24, passes=1, cap=0.24)
  learner = learning.Learner(weights=start)
  ((_, record),) = minibatch_mira.passes(made, learner, config, 0)
  assert (learner.steps, record["updates"]) == (1, 1)
  widest = max(
    np.abs(made.dense[a:b].max(0) - made.dense[a:b].min(0)).max()
    for a, b in zip(made.offsets[:-1], made.offsets[1:], strict=True)
    if b > a
  )
  moved = np.abs(learner.weights - start).max()
  assert 0 < moved <= 0.24 * widest
