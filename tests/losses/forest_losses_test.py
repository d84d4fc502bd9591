"""Losses on forests against the losses on lists of all derivations."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import test_util

from jaxmt.hypergraph.device_layout import LayoutSizes
from jaxmt.losses import expected_bleu, forest_losses, likelihood, margin, ramp
from tests.reference import forests as reference

# One shape for all cases: a loss is compiled once.
SIZES = LayoutSizes(
  nodes=32, sentences=6, edges=64, uses=96, edge_tiles=32, use_tiles=32
)
SEEDS = range(5)

# Loss on forests, the same on lists.
PAIRS = {
  "softmax": (forest_losses.softmax, likelihood.softmax),
  "softmax-margin": (forest_losses.softmax_margin, likelihood.softmax_margin),
  "risk": tuple(
    functools.partial(f, scale=0.7)
    for f in (forest_losses.risk, likelihood.risk)
  ),
  "annealed-risk": tuple(
    functools.partial(f, scale=0.7, temperature=0.3)
    for f in (forest_losses.annealed_risk, likelihood.annealed_risk)
  ),
  **{
    f"ramp{n}": (
      functools.partial(forest_losses.ramp, form=n),
      functools.partial(ramp.ramp, form=n),
    )
    for n in (1, 2, 3)
  },
  **{
    f"softramp{n}": (
      functools.partial(forest_losses.soft_ramp, form=n),
      functools.partial(ramp.soft_ramp, form=n),
    )
    for n in (1, 2, 3)
  },
  **{
    f"hybrid{n}-{soft}": (
      functools.partial(forest_losses.hybrid_ramp, form=n, soft_upper=soft),
      functools.partial(ramp.hybrid_ramp, form=n, soft_upper=soft),
    )
    for n in (1, 2, 3)
    for soft in (False, True)
  },
  "structured-hinge": (forest_losses.structured_hinge, margin.structured_hinge),
  "structured-perceptron": (
    forest_losses.structured_perceptron,
    margin.structured_perceptron,
  ),
  "loss-augmented-hinge": (
    forest_losses.loss_augmented_hinge,
    margin.loss_augmented_hinge,
  ),
}
SMOOTH = (
  "softmax",
  "softmax-margin",
  "risk",
  "annealed-risk",
  *(f"softramp{n}" for n in (1, 2, 3)),
)


class Case:
  """Random forests, and their derivations as padded lists."""

  def __init__(self, seed):
    rng = np.random.default_rng(seed)
    self.made = reference.random_forest(seed, sentences=5, nodes=5)
    every = reference.enumerated(self.made, limit=10**4)
    edges = self.made.num_edges
    width = max(1, *(len(one) for one in every))
    self.counts = np.zeros((5, width, edges), np.float32)
    for row, several in enumerate(every):
      for place, one in enumerate(several):
        np.add.at(self.counts[row, place], one, 1)
    self.mask = jnp.asarray(
      [[k < len(several) for k in range(width)] for several in every]
    )
    self.edges = edges
    self.scores = self.padded(rng.normal(size=edges))
    # Multiples of 1/4 add up without rounding: there are ties.
    self.costs = self.padded(rng.integers(-2, 9, edges) / 4)
    self.packed = forest_losses.pack(self.made, tile=16, sizes=SIZES)

  def padded(self, values):
    """Edge values with garbage beyond the edges."""
    out = np.full((SIZES.edges, *values.shape[1:]), 77.0, np.float32)
    out[: self.edges] = values
    return jnp.asarray(out)

  def listed(self, values):
    """Sums over the edges of each derivation, `[B, K]`."""
    return jnp.asarray(self.counts) @ values[: self.edges]


@functools.cache
def case(seed):
  return Case(seed)


@functools.cache
def jitted(name):
  loss = PAIRS[name][0]
  return jax.jit(
    jax.value_and_grad(
      lambda packed, scores, costs: loss(packed, scores, costs),
      argnums=1,
      has_aux=True,
    )
  )


@pytest.mark.parametrize("name", PAIRS)
def test_equals_the_loss_on_all_derivations(name):
  for seed in SEEDS:
    one = case(seed)
    own = lambda scores, one=one: PAIRS[name][1](
      one.listed(scores), one.listed(one.costs), one.mask
    )
    (total, weight), slopes = jax.value_and_grad(own, has_aux=True)(one.scores)
    (mine, sentences), found = jitted(name)(one.packed, one.scores, one.costs)
    assert sentences == weight
    np.testing.assert_allclose(mine, total, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found, slopes, rtol=1e-3, atol=2e-4)
    assert not np.asarray(found)[one.edges :].any()


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_equal_finite_differences(name):
  one = case(1)
  rng = np.random.default_rng(0)
  _, slopes = jitted(name)(one.packed, one.scores, one.costs)
  for _ in range(3):
    way = one.padded(rng.normal(size=one.edges)) * (
      np.arange(SIZES.edges) < one.edges
    )
    ends = [
      jitted(name)(one.packed, one.scores + step * way, one.costs)[0][0]
      for step in (-0.02, 0.02)
    ]
    expected = (ends[1] - ends[0]) / 0.04
    np.testing.assert_allclose(slopes @ way, expected, rtol=2e-2, atol=5e-3)


@pytest.mark.parametrize("name", ["risk", "ramp3"])
def test_eager_equals_jit(name):
  one = case(2)
  plain = PAIRS[name][0](one.packed, one.scores, one.costs)
  (total, weight), _ = jitted(name)(one.packed, one.scores, one.costs)
  np.testing.assert_allclose(plain, (total, weight), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["annealed-risk", "ramp2"])
def test_padding_and_tiles_change_nothing(name):
  one = case(3)
  (total, weight), slopes = jitted(name)(one.packed, one.scores, one.costs)
  packed = forest_losses.pack(one.made, tile=64)
  size = len(packed.sentence)
  grown = lambda x: jnp.concatenate([x[: one.edges], jnp.ones(size)])[:size]
  (other, sentences), found = jitted(name)(
    packed, grown(one.scores), grown(one.costs)
  )
  assert sentences == weight
  np.testing.assert_allclose(other, total, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(found[: one.edges], slopes[: one.edges], atol=1e-5)


def xbleu(sums):
  sums = sums + 1.0
  return expected_bleu.smooth_bleu(sums[:4], sums[4:8], sums[4], sums[8])


@jax.jit
@functools.partial(jax.value_and_grad, argnums=1)
def forest_xbleu(packed, scores, table):
  return xbleu(forest_losses.expected_statistics(packed, scores, table)[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_expected_statistics(seed):
  one = case(seed)
  rng = np.random.default_rng(seed + 50)
  table = one.padded(rng.integers(0, 4, (one.edges, 9)))
  listed = jnp.asarray(one.counts) @ table[: one.edges]

  def by_list(scores):
    return xbleu(
      expected_bleu.expected_statistics(one.listed(scores), listed, one.mask)[0]
    )

  value, slopes = jax.value_and_grad(by_list)(one.scores)
  mine, found = forest_xbleu(one.packed, one.scores, table)
  np.testing.assert_allclose(mine, value, rtol=1e-4)
  np.testing.assert_allclose(found, slopes, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_hope_and_fear_are_those_of_all_derivations(seed):
  one = case(seed)
  found = jax.jit(forest_losses.hope_and_fear)(
    one.packed, one.scores, one.costs
  )
  places = margin.hope_and_fear(
    one.listed(one.scores), one.listed(one.costs), one.mask
  )
  for edges, place in zip(found, places, strict=True):
    expected = one.counts[np.arange(5), place].sum(0)
    np.testing.assert_array_equal(edges[: one.edges], expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_cheapest_are_the_edges_of_the_oracles(seed):
  one = case(seed)
  found = np.asarray(jax.jit(forest_losses.cheapest)(one.packed, one.costs))
  costs = np.asarray(one.listed(one.costs))
  expected = np.zeros(SIZES.edges, bool)
  for row in range(5):
    own = np.asarray(one.mask[row])
    if own.any():
      best = own & (costs[row] <= costs[row][own].min())
      expected[: one.edges] |= one.counts[row, best].any(0)
  np.testing.assert_array_equal(found, expected)


def test_the_form_of_a_ramp():
  one = case(0)
  with pytest.raises(ValueError, match="form"):
    forest_losses.ramp(one.packed, one.scores, one.costs, form=4)


@pytest.mark.parametrize("name", ["softmax", "risk"])
def test_gradients_reach_what_computes_the_scores(name):
  made = reference.random_forest(3)
  packed = forest_losses.pack(made)
  rng = np.random.default_rng(0)
  inputs = rng.normal(size=(made.num_edges, 3)).astype(np.float32)
  costs = packed.pad(rng.uniform(size=made.num_edges).astype(np.float32))
  parameters = {
    "hidden": rng.normal(size=(3, 4)).astype(np.float32),
    "out": rng.normal(size=4).astype(np.float32),
  }
  scorer = lambda p: jnp.tanh(inputs @ p["hidden"]) @ p["out"]
  loss = jax.jit(
    lambda p: getattr(forest_losses, name)(
      packed, packed.pad(scorer(p)), costs
    )[0]
  )
  slopes = jax.grad(loss)(parameters)
  assert np.abs(slopes["hidden"]).max() > 1e-2
  test_util.check_grads(
    loss, (parameters,), order=1, modes=["rev"], atol=2e-2, rtol=2e-2
  )
