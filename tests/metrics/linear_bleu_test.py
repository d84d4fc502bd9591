"""Linear BLEU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.metrics import bleu, linear_bleu

CORPUS = np.array([600, 350, 220, 140, 1000, 1000, 1000, 1000, 900])


def test_linear_bleu_worked_example():
  sentence = np.array([13, 8, 5, 3, 20, 20, 20, 20, 20])
  constants = linear_bleu.linearize(CORPUS)
  change = -linear_bleu.linear_bleu_error(sentence, constants)
  assert change == pytest.approx(0.002170, abs=5e-7)
  log = lambda row: np.log(bleu.score(row, smoothing=bleu.NONE))
  true = log(CORPUS + sentence) - log(CORPUS)
  assert true == pytest.approx(0.002125, abs=5e-7)


def test_linear_bleu_is_the_slope_of_log_bleu():
  # To first order, as long as no brevity penalty applies.
  rng = np.random.default_rng(0)
  corpus = CORPUS * 1000.0
  constants = linear_bleu.linearize(corpus)
  for _ in range(20):
    length = rng.integers(5, 30)
    matches = np.sort(rng.integers(0, length, 4))[::-1]
    row = np.array([*matches, *[length] * 4, length])
    log = lambda stats: np.log(bleu.score(stats, smoothing=bleu.NONE))
    true = log(corpus + row) - log(corpus)
    got = -linear_bleu.linear_bleu_error(row, constants)
    assert got == pytest.approx(true, abs=1e-7)


def test_linear_bleu_without_matches_is_finite_and_jits():
  constants = linear_bleu.linearize(np.zeros(9, np.int32))
  rows = np.arange(18).reshape(2, 9)
  want = linear_bleu.linear_bleu_error(rows, constants)
  got = jax.jit(lambda stats: linear_bleu.linear_bleu_error(stats, constants))(
    jnp.asarray(rows)
  )
  assert np.all(np.isfinite(want))
  np.testing.assert_allclose(got, want, rtol=1e-5)
