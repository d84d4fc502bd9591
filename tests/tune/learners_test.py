"""MIRA, perceptron, AROW, Rampion, PRO against slow or exact solutions."""

import itertools

import numpy as np
import pytest

from jaxmt.features import sparse
from jaxmt.tune import pool, pool_scores
from jaxmt.tune.lists import feature_rows, mira, online, pro, rampion
from tests.reference import online as slow
from tests.tune import small_pool


def as_lists(made):
  """Full feature rows and statistics per sentence."""
  full = sparse.to_dense(made.features, len(made.names))
  spans = list(itertools.pairwise(made.offsets))
  return (
    [full[low:high] for low, high in spans],
    [made.statistics["bleu"][low:high] for low, high in spans],
  )


@pytest.mark.parametrize("sparse_features", [0, 7])
@pytest.mark.parametrize("background", ["model", "hope"])
def test_mira_pass(sparse_features, background):
  made = small_pool.make(3, sparse_features=sparse_features)
  start = small_pool.start(made)
  lists, statistics = as_lists(made)
  order = np.random.default_rng(0).permutation(made.sentences)
  current, lagged = start.copy(), np.zeros_like(start)
  document = np.ones(9)
  steps, updates, _ = mira.mira_pass(
    feature_rows.features_of(made),
    made.statistics["bleu"].astype(float),
    np.zeros(len(made)),
    made.offsets,
    order,
    current,
    lagged,
    document,
    0,
    0.05,
    0.9,
    1,
    True,
    background == "model",
    feature_rows.room(made),
  )
  expected, total = slow.mira(
    lists,
    statistics,
    start,
    order,
    cap=0.05,
    decay=0.9,
    model=background == "model",
  )
  assert updates > 5
  np.testing.assert_allclose(current, expected, rtol=1e-9, atol=1e-12)
  seen = sum(len(h) > 0 for h in lists)
  assert steps == seen
  # The mean over the weights after each sentence.
  np.testing.assert_allclose(current - lagged / steps, total / seen, rtol=1e-9)


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


@pytest.mark.parametrize("form", [1, 2, 3])
@pytest.mark.parametrize("sparse_features", [0, 7])
def test_rampion(form, sparse_features):
  made = small_pool.make(4, sparse_features=sparse_features)
  start = small_pool.start(made)
  lists, _ = as_lists(made)
  costs = 5.0 * pool_scores.sentence_costs(made, "bleu")
  per_list = [costs[a:b] for a, b in itertools.pairwise(made.offsets)]
  settings = {"form": form, "rounds": 3, "passes": 2, "rate": 0.05, "pull": 2.0}
  expected = slow.rampion(lists, per_list, start, **settings)
  config = rampion.RampionConfig(cost_scale=5.0, **settings)
  _, history = rampion.optimise(made, start, config, 0)
  scores = [pool_scores.pool_score(made, w, "bleu") for w in expected]
  assert [row["score"] for row in history] == pytest.approx(scores)


def brute_arow(x, w, variance, margin, *, printed, rate, cap):
  """The minimiser of the AROW objective over the mean, by fine search.

  The update is along `variance * x`; `KL` in the mean is quadratic there.
  """

  def objective(alpha):
    moved = w + alpha * variance * x
    hinge = max(0.0, margin - moved @ x)
    kl = 0.5 * np.sum((moved - w) ** 2 / variance)
    return kl + (rate * hinge**2 if printed else cap * hinge)

  grid = np.linspace(0, 5, 200001)
  return (
    w + grid[np.argmin([objective(a) for a in grid[::10]]) * 10] * variance * x
  )


@pytest.mark.parametrize("variant", ["printed", "exact"])
def test_arow_step_minimises_its_objective(variant):
  rng = np.random.default_rng(1)
  x, w = rng.normal(size=3), rng.normal(size=3)
  variance = rng.uniform(0.2, 1.0, 3)
  margin, rate, cap = 2.0, 0.3, 0.4
  new, spread = w.copy(), variance.copy()
  online.arow_step(
    np.arange(3), x, 3, new, spread, margin - w @ x, variant == "exact", rate,
    cap,
  )  # fmt: skip
  expected = brute_arow(
    x, w, variance, margin, printed=variant == "printed", rate=rate, cap=cap
  )
  np.testing.assert_allclose(new, expected, atol=2e-3)
  if variant == "exact":
    np.testing.assert_allclose(1 / spread, 1 / variance + rate * x**2)
  else:
    full = np.diag(variance)
    beta = 1 / (x @ full @ x + 1 / (2 * rate))
    down = full - beta * full @ np.outer(x, x) @ full
    np.testing.assert_allclose(spread, np.diag(down))


def test_arow_does_nothing_without_loss_or_difference():
  weights, variances = np.ones(2), np.ones(2)
  online.arow_step(
    np.arange(2), np.ones(2), 2, weights, variances, -1.0, True, 1.0, 1.0
  )
  online.arow_step(
    np.arange(2), np.zeros(2), 2, weights, variances, 1.0, False, 1.0, 1.0
  )
  assert weights.tolist() == [1, 1] and variances.tolist() == [1, 1]


def test_perceptron_by_hand():
  """Two lists; the mean counts the step without an update."""
  features = feature_rows.Features(
    dense=np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]),
    ids=np.zeros(0, np.int32),
    values=np.zeros(0),
    offsets=np.zeros(5, np.int64),
  )
  costs = np.array([1.0, 0.0, 0.0, 1.0])
  weights, lagged = np.array([1.0, 0.0]), np.zeros(2)
  steps, updates = online.perceptron_pass(
    features, costs, np.array([0, 2, 4]), np.arange(2), weights, lagged, 0,
    0.5, 0.0, 2,
  )  # fmt: skip
  # First list: the wrong one wins, w = (1, 0) + 0.5 (-1, 1). Second: scores
  # 1 and 1, the first, right one is taken: no update.
  assert (steps, updates) == (2, 1)
  assert weights.tolist() == [0.5, 0.5]
  assert (weights - lagged / steps).tolist() == [0.5, 0.5]


def test_differences_of_sparse_rows():
  made = small_pool.make(5, sparse_features=9)
  full = sparse.to_dense(made.features, len(made.names))
  features = feature_rows.features_of(made)
  room = feature_rows.room(made)
  ids, values = np.empty(room, np.int64), np.empty(room)
  rng = np.random.default_rng(0)
  weights = rng.normal(size=len(made.names))
  for good, bad in rng.integers(0, len(made), (50, 2)):
    size = feature_rows.subtract(features, good, bad, ids, values)
    dense = np.zeros(len(made.names))
    dense[ids[:size]] = values[:size]
    np.testing.assert_allclose(dense, full[good] - full[bad])
    assert (values[:size] != 0).all()
    assert feature_rows.score(features, weights, good) == pytest.approx(
      full[good] @ weights
    )


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
