"""Exact line search against the slow ways."""

import itertools

import numpy as np
import pytest

from jaxmt.tune import pool
from jaxmt.tune.lists import envelope, mert
from tests.reference import mert as slow
from tests.tune import small_pool


def random_lists(seed, *, sentences=6, width=5, statistics=9):
  rng = np.random.default_rng(seed)
  lengths = rng.integers(0, width + 1, sentences)
  offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
  # Few distinct slopes: parallel lines are common in real features.
  a = rng.normal(size=offsets[-1])
  b = rng.integers(-2, 3, offsets[-1]).astype(np.float64)
  table = rng.integers(0, 9, (offsets[-1], statistics)).astype(np.int32)
  return a, b, offsets, table


@pytest.mark.parametrize("seed", range(20))
def test_trace_equals_evaluation_in_every_interval(seed):
  a, b, offsets, table = random_lists(seed)
  steps, sums = envelope.trace(a, b, offsets, table)
  assert steps[0] == -np.inf and steps[-1] == np.inf
  assert (np.diff(steps) > 0).all()
  sentences = [
    list(zip(a[low:high], b[low:high], strict=True))
    for low, high in itertools.pairwise(offsets)
    if low < high
  ]
  starts = [low for low, high in itertools.pairwise(offsets)
            if low < high]  # fmt: skip
  for step in slow.all_points(sentences):
    chosen = [
      low + slow.best_at(lines, step)
      for low, lines in zip(starts, sentences, strict=True)
    ]
    place = int(np.searchsorted(steps, step, side="right")) - 1
    np.testing.assert_array_equal(sums[place], table[chosen].sum(0))


def test_trace_of_nothing():
  empty = np.zeros(0)
  steps, sums = envelope.trace(
    empty, empty, np.zeros(4, np.int64), np.zeros((0, 9), np.int32)
  )
  assert steps.tolist() == [-np.inf, np.inf]
  assert sums.tolist() == [[0.0] * 9]
  assert envelope.interval_points(steps).tolist() == [0.0]


def test_trace_grows_its_buffers():
  # More than 4,096 breakpoints: one list on a parabola's tangents.
  x = np.linspace(-1, 1, 5000)
  table = np.arange(5000, dtype=np.int32)[:, None]
  steps, sums = envelope.trace(
    -(x**2), 2 * x, np.array([0, 5000], np.int64), table
  )
  assert len(steps) == 5001
  assert sums[:, 0].tolist() == list(range(5000))


@pytest.mark.parametrize("metric", ["bleu", "ter"])
def test_line_search_finds_the_best_interval(metric):
  made = small_pool.make(1, metrics=(metric,))
  weights = small_pool.start(made)
  sign = 1.0 if metric == "bleu" else -1.0
  intercepts = pool.scores(made, weights)
  for column in range(4):
    slopes = np.ascontiguousarray(made.dense[:, column])
    step, score = mert.line_search(intercepts, slopes, made, metric=metric)
    direction = np.eye(4)[column]
    sentences = [
      list(zip(intercepts[low:high], slopes[low:high], strict=True))
      for low, high in zip(made.offsets, made.offsets[1:], strict=False)
    ]
    tried = [
      sign * pool.pool_score(made, weights + point * direction, metric)
      for point in slow.all_points(sentences)
    ]
    assert score == pytest.approx(max(tried))
    moved = weights + step * direction
    assert sign * pool.pool_score(made, moved, metric) == pytest.approx(score)


def test_slopes_that_differ_by_rounding_are_one_line():
  a, b = np.array([1.0, 0.0]), np.array([0.0, 1e-32])
  steps, sums = envelope.trace(
    a, b, np.array([0, 2]), np.array([[1, 0], [0, 1]])
  )
  np.testing.assert_array_equal(steps, [-np.inf, np.inf])
  np.testing.assert_array_equal(sums, [[1, 0]])
