"""Padded lists and their losses, on one device and on eight."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.runtime import parallel
from jaxmt.tune import methods, pool
from jaxmt.tune.lists import objective
from tests.tune import small_pool
from tests.tune.methods_test import quick

LOSS_NAMES = ["softramp2", "mse", "xbleu"]


def test_padded_scores_and_sharding():
  made = small_pool.make(0, sparse_features=9)
  weights = np.random.default_rng(0).normal(size=len(made.names))
  flat = objective.pad(made, "bleu", pool.sentence_costs(made, "bleu"))
  scores = objective.padded_scores(flat, jnp.asarray(weights, jnp.float32))
  np.testing.assert_allclose(
    np.asarray(scores)[np.asarray(flat.mask)],
    pool.scores(made, weights),
    rtol=1e-4,
    atol=1e-4,
  )
  mesh = parallel.make_mesh(8)
  spread = parallel.split(
    mesh,
    objective.pad(made, "bleu", pool.sentence_costs(made, "bleu"), multiple=8),
  )
  w = jnp.asarray(weights, jnp.float32)

  def total(w, arrays):
    values = jnp.stack(
      [
        objective.value(
          w, 0 * w, arrays, objective.Objective(loss=name, l2=0.1)
        )
        for name in LOSS_NAMES
      ]
    )
    return values.sum(), values

  step = jax.jit(jax.grad(total, has_aux=True))
  gradient_one, one = step(w, flat)
  gradient_many, many = step(w, spread)
  np.testing.assert_allclose(many, one, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(gradient_many, gradient_one, rtol=1e-4, atol=1e-5)


def test_one_device_and_eight_tune_alike():
  made = small_pool.make(0)
  start = small_pool.start(made)
  results = []
  for devices in ("1", "8"):
    method = quick("softramp3", devices=devices, steps="5", cost_scale="3")
    tuned, history = method.optimise(made, start, method.config, 0)
    results.append((tuned, [row["loss"] for row in history]))
  np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-3, atol=1e-5)
  np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-4)


def pairs_of(made, costs):
  """Differences of features and of costs, all oracle-other pairs of a list."""
  rows, targets = [], []
  for low, high in itertools.pairwise(made.offsets):
    here = np.arange(low, high)
    oracle = costs[low:high] <= costs[low:high].min(initial=np.inf) + 1e-6
    for good in here[oracle]:
      for bad in here[~oracle]:
        rows.append(made.dense[good] - made.dense[bad])
        targets.append(costs[bad] - costs[good])
  return np.array(rows), np.array(targets)


def test_mse_is_least_squares():
  """Its last iterate; the method itself takes that of the best pool score."""
  made = small_pool.make(0)
  x, y = pairs_of(made, pool.sentence_costs(made, "bleu"))
  exact, *_ = np.linalg.lstsq(x, y, rcond=None)
  least = np.mean((y - x @ exact) ** 2)
  assert least < 0.9 * np.mean(y**2)
  method = methods.configure(
    methods.find("mse"), {"steps": "200", "chunk": "1000", "explore": "true"}
  )
  tuned, history = method.optimise(made, np.zeros(4), method.config, 0)
  assert history[-1]["loss"] == pytest.approx(least, rel=1e-4)
  np.testing.assert_allclose(tuned, exact, atol=2e-3)
