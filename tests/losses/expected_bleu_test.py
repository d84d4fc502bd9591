"""Expected statistics and xBLEU."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from jaxmt.losses import expected_bleu, masked

# Matches of orders 1-4, totals of orders 1-4, reference length.
MATCHES, TOTALS, REFERENCE = slice(0, 4), slice(4, 8), 8


def random_pool(seed, *, sentences=5, width=4):
  rng = np.random.default_rng(seed)
  length = rng.integers(6, 20, (sentences, width))
  totals = np.maximum(length[..., None] - np.arange(4), 0)
  matches = (totals * rng.uniform(0.3, 0.9, totals.shape)).astype(int) + 1
  reference = np.broadcast_to(rng.integers(6, 24, (sentences, 1)), length.shape)
  statistics = np.concatenate([matches, totals, reference[..., None]], -1)
  scores = rng.normal(size=(sentences, width)).astype(np.float32)
  mask = np.arange(width) < rng.integers(1, width + 1, sentences)[:, None]
  return scores, statistics.astype(np.float32), mask


def xbleu(scores, statistics, mask, scale=1.0):
  total = expected_bleu.expected_statistics(
    scores, statistics, mask, scale=scale
  )
  return -expected_bleu.negative_bleu(*total)


def test_expected_statistics_sharp_is_the_best_candidate():
  scores, statistics, mask = random_pool(0)
  best = masked.argmax(scores, mask)
  expected = statistics[np.arange(len(best)), best].sum(0)
  sharp, weight = expected_bleu.expected_statistics(
    scores, statistics, mask, scale=1e4
  )
  assert float(weight) == len(scores)
  np.testing.assert_allclose(sharp, expected, rtol=1e-5)


def test_expected_statistics_are_additive():
  scores, statistics, mask = random_pool(1)
  whole, _ = expected_bleu.expected_statistics(scores, statistics, mask)
  parts = sum(
    expected_bleu.expected_statistics(scores[s], statistics[s], mask[s])[0]
    for s in (slice(0, 2), slice(2, None))
  )
  np.testing.assert_allclose(whole, parts, rtol=1e-6)


def test_smooth_bleu_by_hand():
  # precisions 0.8, 0.5, 0.4, 0.25; length 10 against 12.
  value = expected_bleu.smooth_bleu(
    jnp.array([8.0, 4.5, 3.2, 1.75]),
    jnp.array([10.0, 9.0, 8.0, 7.0]),
    jnp.array(10.0),
    jnp.array(12.0),
  )
  expected = (0.8 * 0.5 * 0.4 * 0.25) ** 0.25 * math.exp(1 - 1.2)
  assert float(value) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
  "matches,totals", [([0, 0, 0, 0], [0, 0, 0, 0]), ([3, 1, 0, 0], [3, 2, 1, 0])]
)
def test_smooth_bleu_of_nothing_is_zero_with_finite_gradient(matches, totals):
  totals = jnp.array(totals, jnp.float32)

  def value(m):
    return expected_bleu.smooth_bleu(m, totals, totals[0], jnp.array(5.0))

  result, gradient = jax.value_and_grad(value)(jnp.array(matches, jnp.float32))
  assert float(result) == 0.0
  assert np.isfinite(gradient).all()


def test_smooth_brevity():
  # Within 2.8e-5 of min(1, e^x), with no NaN where exp(10000 x) overflows.
  x = jnp.array([-2.0, -0.1, -1e-3, 0.0, 1.28e-4, 0.01, 5.0, 200.0])
  exact = np.minimum(1.0, np.exp(np.minimum(x, 0)))
  np.testing.assert_allclose(expected_bleu.smooth_brevity(x), exact, atol=3e-5)
  slope = jax.vmap(jax.grad(expected_bleu.smooth_brevity))(x)
  assert np.isfinite(slope).all()
  np.testing.assert_allclose(slope[:2], np.exp(x[:2]), rtol=1e-4)
  np.testing.assert_allclose(slope[-2:], 0.0, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_xbleu_gradient_is_the_appendix_formula(seed):
  """The closed form of the survey's appendix A, in float64 by hand."""
  scores, statistics, mask = random_pool(seed)
  scale = 1.7
  gradient = jax.grad(lambda s: xbleu(s, statistics, mask, scale))(
    jnp.asarray(scores)
  )
  p = np.array(masked.softmax(scale * scores, mask), np.float64)
  soft = p[..., None] * np.where(mask[..., None], statistics, 0)
  total = soft.sum((0, 1))
  m, c, r = total[MATCHES], total[TOTALS], total[REFERENCE]
  ratio = r / c[0]
  x = 1 - ratio
  low = 1 / (1 + math.exp(min(700, 1e4 * x)))
  phi = math.expm1(x) * low + 1
  slope = math.exp(x) * low - 1e4 * math.expm1(x) * low * (1 - low)
  brevity = slope * -ratio * (soft[..., REFERENCE] / r - soft[..., 4] / c[0])
  precision = 0.25 * (soft[..., MATCHES] / m - soft[..., TOTALS] / c).sum(-1)
  d = math.exp(0.25 * (np.log(m) - np.log(c)).sum()) * (
    brevity + phi * precision
  )
  expected = scale * (d - p * d.sum(-1, keepdims=True))
  np.testing.assert_allclose(gradient, expected, rtol=2e-3, atol=2e-6)


def test_xbleu_gradient_by_differences():
  scores, statistics, mask = random_pool(7)
  check_grads(
    lambda s: xbleu(s, statistics, mask),
    (jnp.asarray(scores),),
    order=1,
    modes=("rev",),
    atol=2e-2,
    rtol=2e-2,
  )
