"""FOBOS and RDA as optax transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxmt.tune.lists import proximal
from tests.reference import proximal as slow


def followed(method, start, gradients):
  """Weights after each update, the weights being a tree of two arrays."""
  weights = {"a": jnp.asarray(start[:2]), "b": jnp.asarray(start[2:])}
  state = method.init(weights)
  update = jax.jit(method.update)
  out = []
  for row in gradients:
    gradient = {"a": jnp.asarray(row[:2]), "b": jnp.asarray(row[2:])}
    updates, state = update(gradient, state, weights)
    weights = optax.apply_updates(weights, updates)
    out.append(np.concatenate([weights["a"], weights["b"]]))
  return np.array(out)


def example(seed):
  rng = np.random.default_rng(seed)
  start = rng.normal(0, 0.5, 5).astype(np.float32)
  return start, rng.normal(0, 1, (7, 5)).astype(np.float32)


@pytest.mark.parametrize("l1,l2", [(0.0, 0.0), (0.4, 0.0), (0.2, 0.6)])
def test_fobos_minimises_what_defines_it(l1, l2):
  start, gradients = example(0)
  schedule = lambda count: 0.5 / (1.0 + 0.25 * count)
  found = followed(proximal.fobos(schedule, l1=l1, l2=l2), start, gradients)
  rates = [0.5 / (1.0 + 0.25 * count) for count in range(len(gradients))]
  expected = slow.fobos(start, gradients, rates=rates, l1=l1, l2=l2)
  np.testing.assert_allclose(found, expected, atol=2e-5)
  if l1:
    near = np.abs(expected) < 1e-6
    assert near.any() and (found[near] == 0).all()


@pytest.mark.parametrize("l1", [0.0, 0.15, 0.6])
def test_rda_minimises_what_defines_it(l1):
  start, gradients = example(1)
  found = followed(proximal.rda(0.3, l1=l1), start, gradients)
  expected = slow.rda(start, gradients, rate=0.3, l1=l1)
  np.testing.assert_allclose(found, expected, atol=2e-5)


def test_rda_pulls_to_zero_not_to_the_start():
  start = np.array([1.0, -2.0, 0.5, 3.0, -0.1], np.float32)
  found = followed(proximal.rda(0.5, l1=1.0), start, np.zeros((60, 5)))
  assert (found[-1] == 0).all()
  still = followed(proximal.rda(0.5), start, np.zeros((3, 5)))
  np.testing.assert_allclose(still[-1], start)


def test_proximal_point_minimises():
  rng = np.random.default_rng(0)
  weights, centre = rng.normal(size=(2, 5))
  pace = rng.uniform(0.1, 1.0, 5)
  found = proximal.proximal(weights, pace, l1=0.4, l2=0.7, centre=centre)
  grid = np.linspace(-4, 4, 80001)[:, None]
  penalty = 0.4 * np.abs(grid) + 0.35 * (grid - centre) ** 2
  total = 0.5 * (grid - weights) ** 2 + pace * penalty
  np.testing.assert_allclose(found, grid[total.argmin(0), 0], atol=2e-4)


@pytest.mark.parametrize("method", [proximal.fobos(0.1), proximal.rda(0.1)])
def test_weights_are_needed(method):
  with pytest.raises(ValueError, match="needs the weights"):
    method.update(jnp.ones(2), method.init(jnp.ones(2)))
