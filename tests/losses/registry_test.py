"""The records of losses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.losses import forest_losses, registry
from tests.reference import forests as reference


@pytest.mark.parametrize("name", registry.names())
def test_every_loss_is_a_finite_function_with_a_gradient(name):
  loss = registry.find(name)
  rng = np.random.default_rng(0)
  scores = jnp.asarray(rng.normal(size=(3, 4)), jnp.float32)
  mask = jnp.asarray([[True] * 4, [True, True, False, False], [False] * 4])
  shape = (3, 4, 9) if loss.statistics_of else (3, 4)
  costs = jnp.asarray(rng.uniform(1, 5, shape), jnp.float32)

  def value(scores, settings):
    sums, weight = loss.function(scores, costs, mask, **settings)
    if loss.finish is not None:
      return loss.finish(sums, weight)
    return sums / jnp.maximum(weight, 1.0)

  level, slope = jax.jit(jax.value_and_grad(value))(scores, loss.settings)
  assert np.isfinite(level) and np.isfinite(slope).all()
  assert np.abs(slope).max() > 0 and (slope[2] == 0).all()
  # The settings of the record are those that the function has by itself.
  np.testing.assert_allclose(level, value(scores, {}), rtol=1e-6)


@pytest.mark.parametrize(
  "name",
  [name for name in registry.names() if registry.find(name).forest is not None],
)
def test_every_loss_on_forests_is_finite_and_has_a_gradient(name):
  loss = registry.find(name)
  forest = reference.random_forest(3, sentences=5, nodes=5)
  packed = forest_losses.pack(forest)
  rng = np.random.default_rng(0)
  shape = (forest.num_edges, 9) if loss.statistics_of else (forest.num_edges,)
  costs = packed.pad(rng.uniform(5, 50, shape).astype(np.float32))

  def value(scores):
    sums, weight = loss.forest(packed, scores, costs, **loss.settings)
    if loss.finish is not None:
      return loss.finish(sums, weight)
    return sums / jnp.maximum(weight, 1.0)

  scores = packed.pad(rng.normal(size=forest.num_edges).astype(np.float32))
  level, slope = jax.value_and_grad(value)(scores)
  assert np.isfinite(level) and np.isfinite(slope).all()
  assert np.abs(slope).max() > 0


def test_names():
  with pytest.raises(ValueError, match="no loss 'x'; there are: annealed-risk"):
    registry.find("x")
  loss = registry.find("risk")
  assert registry.register(loss) is loss
  with pytest.raises(ValueError, match="already"):
    registry.register(registry.Loss(name="risk", function=max))
