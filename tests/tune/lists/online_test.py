"""Perceptron and AROW by hand and against brute force."""

import numpy as np
import pytest

from jaxmt.tune import learning, pool
from jaxmt.tune.lists import online
from tests.reference import online as slow
from tests.tune import small_pool


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
    (np.arange(3), x, 3),
    (new, spread),
    margin - w @ x,
    (variant == "exact", rate, cap),
  )
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
    (np.arange(2), np.ones(2), 2), (weights, variances), -1.0, (True, 1.0, 1.0)
  )
  online.arow_step(
    (np.arange(2), np.zeros(2), 2), (weights, variances), 1.0, (False, 1.0, 1.0)
  )
  assert weights.tolist() == [1, 1] and variances.tolist() == [1, 1]


def test_perceptron_by_hand():
  """Two lists; the mean counts the step without an update."""
  features = (
    np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]),
    np.zeros(0, np.int32),  # no sparse ones
    np.zeros(0),
    np.zeros(5, np.int64),
  )
  costs = np.array([1.0, 0.0, 0.0, 1.0])
  weights, lagged = np.array([1.0, 0.0]), np.zeros(2)
  steps, updates = online.perceptron_pass(
    (features, np.zeros((0, 0)), costs, np.array([0, 2, 4])),
    np.arange(2),
    (weights, lagged, np.zeros(0)),
    0,
    2,
    online.PerceptronSettings(0.5, 0.0, 1, 0.0),
  )
  # First list: the wrong one wins, w = (1, 0) + 0.5 (-1, 1). Second: scores
  # 1 and 1, the first, right one is taken: no update.
  assert (steps, updates) == (2, 1)
  assert weights.tolist() == [0.5, 0.5]
  assert (weights - lagged / steps).tolist() == [0.5, 0.5]


def slow_perceptron(made, start, order, *, batch, decay, rate, scale):
  """One pass in batches: the last weights and the mean over batches."""
  lists, statistics = small_pool.as_lists(made)
  fixed = pool.sentence_costs(made, "bleu")
  weights, document = start.copy(), np.ones(9)
  after = []
  order = [s for s in order if len(lists[s])]
  for low in range(0, len(order), batch):
    step = np.zeros(len(start))
    for s in order[low : low + batch]:
      costs = fixed[made.offsets[s] : made.offsets[s + 1]]
      if decay:
        sums = [document + row for row in statistics[s]]
        costs = np.array(
          [
            (x[8] / max(1, row[8])) * (1 - slow.bleu(x))
            for x, row in zip(sums, statistics[s], strict=True)
          ]
        )
      scores = lists[s] @ weights
      good, bad = np.argmax(scores - scale * costs), np.argmax(scores)
      if costs[good] < costs[bad]:
        step += lists[s][good] - lists[s][bad]
      if decay:
        document = decay * document + statistics[s][bad]
    weights = weights + rate / batch * step
    after.append(weights)
  return weights, np.mean(after, axis=0)


@pytest.mark.parametrize(
  "batch,decay", [(1, 0.0), (5, 0.0), (1, 0.9), (4, 0.9)]
)
def test_batches_and_decayed_statistics(batch, decay):
  made = small_pool.make(2, sparse_features=5)
  start = small_pool.start(made)
  config = online.PerceptronConfig(
    passes=1, batch=batch, decay=decay, rate=0.1, cost_scale=3.0
  )
  learner = learning.Learner(weights=start)
  ((_, record),) = online.perceptron_passes(made, learner, config, 4)
  order = np.random.default_rng(4).permutation(made.sentences)
  last, mean = slow_perceptron(
    made, start, order, batch=batch, decay=decay, rate=0.1, scale=3.0
  )
  assert record["updates"] > 5
  np.testing.assert_allclose(learner.weights, last, rtol=1e-9, atol=1e-12)
  np.testing.assert_allclose(learner.average, mean, rtol=1e-9, atol=1e-12)


def test_arow_by_decayed_statistics():
  """A pseudo-document changes what is learnt, and is carried on."""
  made = small_pool.make(2)
  start = small_pool.start(made)
  learnt = []
  for decay in (0.0, 0.9):
    learner = learning.Learner(weights=start)
    config = online.ArowConfig(passes=1, decay=decay)
    list(online.arow_passes(made, learner, config, 0))
    learnt.append(learner)
  assert not len(learnt[0].document)
  assert learnt[1].document[8] > 9
  assert np.abs(learnt[0].weights - learnt[1].weights).max() > 1e-3
