"""Directions, margins and regularisers of MERT: JAX, slow loops, laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.losses import expected_bleu
from jaxmt.tune import pool
from jaxmt.tune.lists import mert, mert_directions, objective
from tests.tune import small_pool


@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_gradient_is_that_of_jax(sharpness):
  made = small_pool.make(1, sparse_features=6)
  weights = small_pool.start(made)
  weights[4:] = np.linspace(-0.1, 0.1, 6)
  padded = objective.pad(made, "bleu", np.zeros(len(made)))
  scale = sharpness / np.abs(weights).max()

  def expected(point):
    sums, weight = expected_bleu.expected_statistics(
      objective.padded_scores(padded, point),
      padded.statistics,
      padded.mask,
      scale=scale,
    )
    return -expected_bleu.negative_bleu(sums, weight)

  want = jax.grad(expected)(jnp.asarray(weights, jnp.float32))
  got = mert_directions.expected_bleu_gradient(
    made, weights, metric="bleu", sharpness=sharpness
  )
  np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-5)


def test_gradients_move_sparse_weights_uphill():
  made = small_pool.make(0, sparse_features=12)
  start = small_pool.start(made)
  plain = mert.MertConfig(restarts=1)
  along = mert.MertConfig(restarts=1, gradient=True)
  score = lambda w: pool.pool_score(made, w, "bleu")
  without, _ = mert.optimise(made, start, plain, 0)
  tuned, history = mert.optimise(made, start, along, 0)
  assert not without[4:].any() and np.abs(tuned[4:]).max() > 0
  assert score(tuned) > score(without)
  assert history[0]["score"] == pytest.approx(score(tuned), abs=1e-12)


def test_worst_within_a_margin():
  rng = np.random.default_rng(0)
  steps = np.concatenate([[-np.inf], np.sort(rng.normal(size=12)), [np.inf]])
  values = rng.uniform(size=13)
  points = np.concatenate(
    [[steps[1] - 0.1], (steps[1:-2] + steps[2:-1]) / 2, [steps[-2] + 0.1]]
  )
  for margin in (0.0, 0.05, 0.5, 10.0):
    got = mert_directions.worst_within(steps, values, points, margin)
    for number, point in enumerate(points):
      near = (steps[:-1] < point + margin) & (steps[1:] > point - margin)
      near[number] = True
      assert got[number] == values[near].min()


@pytest.mark.parametrize("kind", ["l2", "l0"])
def test_penalties_do_not_depend_on_size(kind):
  rng = np.random.default_rng(1)
  centre, weights, direction = rng.normal(size=(3, 5))
  weights[2] = direction[2] = 0.0
  penalty = mert_directions.Penalty(kind=kind, strength=0.3, centre=centre)
  points = np.linspace(-1, 1, 9)
  got = penalty.along(weights, direction, points)
  for point, value in zip(points, got, strict=True):
    moved = weights + point * direction
    unit = lambda v: v / np.linalg.norm(v)
    want = 0.5 * np.sum((unit(moved) - unit(centre)) ** 2)
    if kind == "l0":
      want = np.mean(moved != 0)
    assert value == pytest.approx(0.3 * want, abs=1e-12)
    assert penalty.of(7 * moved) == pytest.approx(0.3 * want, abs=1e-12)


def test_regularisers_do_what_they_say():
  made = small_pool.make(0)
  start = small_pool.start(made)
  run = lambda **how: mert.optimise(
    made, start, mert.MertConfig(restarts=2, **how), 0
  )[0]
  unit = lambda v: v / np.linalg.norm(v)
  free = run()
  near = run(regularizer="l2", strength=10.0)
  assert unit(near) @ unit(start) > max(0.99, unit(free) @ unit(start))
  few = run(regularizer="l0", strength=10.0)
  assert (few != 0).sum() < (free != 0).sum()
  np.testing.assert_array_equal(run(regularizer="l2", strength=0.0), free)


def test_starts():
  made = small_pool.make(0)
  start = small_pool.start(made)
  for starts in ("normal", "walk"):
    config = mert.MertConfig(restarts=4, starts=starts, spread=0.5)
    tuned, history = mert.optimise(made, start, config, 0)
    assert len(history) == 4
    best = max(record["score"] for record in history)
    assert pool.pool_score(made, tuned, "bleu") == pytest.approx(best)
    assert best >= history[0]["score"] > pool.pool_score(made, start, "bleu")
