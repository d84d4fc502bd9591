"""Linear BLEU, decayed statistics, xBLEU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.metrics import approximations, bleu, registry

CORPUS = np.array([600, 350, 220, 140, 1000, 1000, 1000, 1000, 900])


def test_linear_bleu_worked_example():
  sentence = np.array([13, 8, 5, 3, 20, 20, 20, 20, 20])
  constants = approximations.linearize(CORPUS)
  change = -approximations.linear_bleu_error(sentence, constants)
  assert change == pytest.approx(0.002170, abs=5e-7)
  log = lambda row: np.log(bleu.score(row, smoothing=bleu.NONE))
  true = log(CORPUS + sentence) - log(CORPUS)
  assert true == pytest.approx(0.002125, abs=5e-7)


def test_linear_bleu_is_the_slope_of_log_bleu():
  # To first order, as long as no brevity penalty applies.
  rng = np.random.default_rng(0)
  corpus = CORPUS * 1000.0
  constants = approximations.linearize(corpus)
  for _ in range(20):
    length = rng.integers(5, 30)
    matches = np.sort(rng.integers(0, length, 4))[::-1]
    row = np.array([*matches, *[length] * 4, length])
    log = lambda stats: np.log(bleu.score(stats, smoothing=bleu.NONE))
    true = log(corpus + row) - log(corpus)
    got = -approximations.linear_bleu_error(row, constants)
    assert got == pytest.approx(true, abs=1e-7)


def test_linear_bleu_without_matches_is_finite_and_jits():
  constants = approximations.linearize(np.zeros(9, np.int32))
  rows = np.arange(18).reshape(2, 9)
  want = approximations.linear_bleu_error(rows, constants)
  got = jax.jit(
    lambda stats: approximations.linear_bleu_error(stats, constants)
  )(jnp.asarray(rows))
  assert np.all(np.isfinite(want))
  np.testing.assert_allclose(got, want, rtol=1e-5)


def test_decayed_background():
  background = np.full(9, 0.1)
  seen = [np.arange(9.0), np.arange(9.0)[::-1], np.ones(9)]
  for row in seen:
    background = approximations.decayed(background, row, decay=0.9)
  want = 0.9**3 * 0.1 + 0.81 * seen[0] + 0.9 * seen[1] + seen[2]
  np.testing.assert_allclose(background, want)


def test_score_in_context_is_the_corpus_score():
  metric = registry.METRICS["bleu"]
  rows = np.array([[5, 4, 3, 2, 6, 5, 4, 3, 6], [6, 5, 4, 3, 6, 5, 4, 3, 6]])
  got = approximations.score_in_context(metric, CORPUS, rows)
  want = [metric.corpus_score(CORPUS + row) for row in rows]
  np.testing.assert_allclose(got, want)
  assert got[1] > got[0]


def test_smooth_brevity_penalty():
  values = np.linspace(-3, 3, 61)
  true = np.minimum(1.0, np.exp(values))
  got = approximations.smooth_brevity_penalty(values)
  np.testing.assert_allclose(got, true, atol=3e-5)
  points = jnp.asarray([-1.0, -1e-4, 0.0, 1.28e-4, 0.01, 1.0, 50.0])
  penalty = approximations.smooth_brevity_penalty
  slopes = jax.jit(jax.vmap(jax.grad(penalty)))(points)
  assert np.all(np.isfinite(slopes))
  near = np.linspace(0, 1e-3, 1001)
  over = approximations.smooth_brevity_penalty(near) - 1
  assert over.max() == pytest.approx(2.785e-5, rel=1e-3)
  assert near[over.argmax()] == pytest.approx(1.28e-4, rel=0.02)


def test_expected_bleu_of_certain_output_is_bleu():
  rows = np.stack([CORPUS * 1.0, CORPUS * 1.0])
  rows[1, -1] = 1500
  got = approximations.expected_bleu(rows)
  want = bleu.score(rows, smoothing=bleu.NONE)
  np.testing.assert_allclose(got, want, rtol=1e-6)


def test_expected_bleu_gradient_by_hand():
  # d xBLEU / d log p of two sentences with two candidates each, against the
  # closed form: expectations move by p (d - sum p d).
  rng = np.random.default_rng(2)
  stats = rng.integers(5, 20, (2, 2, 9)).astype(np.float64)
  stats[..., 4:8] = 25
  stats[..., 8] = 30
  scores = rng.normal(size=(2, 2))

  def objective(values, module):
    weights = module.exp(values)
    weights = weights / weights.sum(-1, keepdims=True)
    total = (weights[..., None] * stats).sum((0, 1))
    return approximations.expected_bleu(total)

  gradient = jax.jit(jax.grad(lambda values: objective(values, jnp)))
  got = gradient(jnp.asarray(scores))
  for place in np.ndindex(2, 2):
    step = np.zeros((2, 2))
    step[place] = 1e-5
    slope = objective(scores + step, np) - objective(scores - step, np)
    assert got[place] == pytest.approx(slope / 2e-5, rel=1e-3, abs=1e-6)
