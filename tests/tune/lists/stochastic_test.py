"""Stochastic optimisers against a slow loop."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.metrics import bleu as bleu_metrics
from jaxmt.tune import methods, pool
from jaxmt.tune.lists import gradient, objective, stochastic
from tests.reference import online as slow
from tests.tune import small_pool
from tests.tune.methods_test import quick


def stepwise(objective_, **settings):
  """Single steps over all sentences, and the gradient before each."""
  made = small_pool.make(0)
  arrays = objective.pad(made, "bleu", pool.sentence_costs(made, "bleu"))
  start = jnp.asarray(small_pool.start(made), jnp.float32)
  count = arrays.mask.shape[0]
  found = [
    weights
    for weights, _ in stochastic.passes(
      start,
      arrays,
      objective_,
      initial=start,
      batch_size=count,
      count=4,
      seed=0,
      **settings,
    )
  ]
  before = [start, *found[:-1]]
  loss = dataclasses.replace(objective_, l2=0.0)
  slopes = [
    gradient.value_and_gradient(w, start, arrays, loss)[1] for w in before
  ]
  return start, before, found, slopes


def test_the_rate_falls():
  risk = objective.Objective(loss="risk")
  _, before, after, slopes = stepwise(
    risk, kind="sgd", rate=0.3, half_life=2.0, l1=0.0
  )
  rates = [0.3, 0.2, 0.15, 0.12]  # 0.3 / (1 + t / 2)
  for old, new, slope, rate in zip(before, after, slopes, rates, strict=True):
    np.testing.assert_allclose(new - old, -rate * slope, rtol=1e-3, atol=1e-6)
  for wrong in ("rda", "lbfgs"):
    with pytest.raises(InputError, match="half_life"):
      quick("risk", optimizer=wrong, half_life="5")


def test_gradients_that_are_not_finite_are_an_error():
  made = small_pool.make(0)
  made.dense[5] = np.inf  # beyond what a file can bring in
  for optimizer in ("sgd", "lbfgs", "optax-lbfgs"):
    method = quick("softmax", optimizer=optimizer)
    with pytest.raises(InputError, match="gradient of softmax is not finite"):
      methods.run(method, made, np.zeros(4), 0)


def test_fobos_with_both_penalties():
  risk = objective.Objective(loss="risk", l2=0.5)
  start, before, after, slopes = stepwise(risk, kind="fobos", rate=0.1, l1=0.02)
  squares = 0.0
  for old, new, slope in zip(before, after, slopes, strict=True):
    squares = squares + slope**2
    pace = 0.1 / np.sqrt(squares + 1e-16)
    moved = old - pace * slope + pace * 0.5 * start
    expected = np.sign(moved) * np.maximum(np.abs(moved) - pace * 0.02, 0.0)
    seen = np.abs(slope) > 1e-5  # of no slope the step is rounding
    np.testing.assert_allclose(
      new[seen], (expected / (1 + pace * 0.5))[seen], rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize(
  "loss", ["softramp1", "softramp2", "softramp3", "risk"]
)
def test_algorithm_2_of_the_thesis(loss):
  """In order, one sentence at a time, to the last iterate."""
  made = small_pool.make(4)
  start = small_pool.start(made)
  lists, _ = small_pool.as_lists(made)
  changes = {"passes": "3", "rate": "0.05", "pull": "2.0"}
  method = methods.configure(methods.find(f"thesis-{loss}"), changes)
  statistics = made.statistics["bleu"].astype(float)
  plus_one = bleu_metrics.Smoothing(method="add-k-all", value=1.0)
  single = bleu_metrics.metric(sentence_smoothing=plus_one).sentence_score
  costs = method.config.cost_scale * (1.0 - np.asarray(single(statistics)))
  expected = slow.soft_ramp_sgd(
    lists,
    [costs[a:b] for a, b in itertools.pairwise(made.offsets)],
    start,
    loss=loss,
    passes=3,
    rate=0.05,
    pull=2.0,
  )
  got, _ = methods.run(method, made, start, 0)
  np.testing.assert_allclose(got, expected, atol=2e-5)
