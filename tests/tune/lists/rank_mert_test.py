"""Rank-MERT: the sweep against a dense grid, and a climb."""

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.text.ragged import Ragged, row_offsets
from jaxmt.tune.lists import rank_mert


def samples(seed, *, count=6, size=7, width=3):
  rng = np.random.default_rng(seed)
  lengths = rng.integers(1, size + 1, count)
  rows = Ragged(
    flat=rng.integers(-3, 4, (lengths.sum(), width)).astype(np.float32),
    offsets=row_offsets(lengths),
  )
  return rows, rng.integers(0, lengths)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beam", [1, 3])
def test_sweep_equals_a_dense_grid(seed, beam):
  rows, gold = samples(seed)
  rng = np.random.default_rng(100 + seed)
  weights, direction = rng.normal(size=(2, 3))
  steps, gains = rank_mert.sweep(
    rows.flat @ weights, rows.flat @ direction, rows.offsets, gold, beam, 50.0
  )
  config = rank_mert.RankMertConfig(beam=beam, penalty=50.0)
  for point in np.linspace(-20, 20, 4001):
    place = np.searchsorted(steps, point) - 1
    if min(abs(point - steps[place]), abs(steps[place + 1] - point)) < 1e-6:
      continue
    expected = rank_mert.gain(
      rows, gold, weights + point * direction, config=config
    )
    assert gains[place] / len(gold) == pytest.approx(expected)


def test_optimise_finds_weights_that_rank_gold_first():
  rng = np.random.default_rng(0)
  truth = np.array([1.0, -2.0, 0.5])
  flat = rng.normal(size=(30, 12, 3))
  gold = (flat @ truth).argmax(1)
  rows = Ragged(
    flat=flat.reshape(-1, 3).astype(np.float32),
    offsets=row_offsets([12] * 30),
  )
  config = rank_mert.RankMertConfig(beam=3, penalty=100.0)
  start = np.array([1.0, 1.0, 1.0])
  before = rank_mert.gain(rows, gold, start, config=config)
  weights, history = rank_mert.optimise(rows, gold, start, config, 0)
  after = rank_mert.gain(rows, gold, weights, config=config)
  assert after == pytest.approx(max(record["gain"] for record in history))
  assert before < -10 and after > -0.5
  again, _ = rank_mert.optimise(rows, gold, start, config, 0)
  np.testing.assert_array_equal(weights, again)


def test_bad_settings_are_refused():
  with pytest.raises(InputError, match="beam"):
    rank_mert.RankMertConfig(beam=0)
