"""Envelopes of lines and of forests against the slow ways."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.hypergraph import EdgeStrings, Forest, envelope, kbest
from jaxmt.hypergraph.envelopes import on_grid, upper_envelope
from jaxmt.text.ragged import from_rows
from tests.reference import forests
from tests.reference import mert as slow


def found_envelope(lines):
  a = np.array([line[0] for line in lines], np.float64)
  b = np.array([line[1] for line in lines], np.float64)
  room = np.empty(len(lines) + 1, np.int64)
  starts = np.empty(len(lines) + 1, np.float64)
  size = upper_envelope(a, b, 0, len(lines), room, starts, room.copy())
  return room[:size].tolist(), starts[:size].tolist()


def test_example_of_the_survey():
  # Equation 42.
  lines = [(2.5, -0.8), (1.0, -0.2), (2.0, -0.5), (-0.5, 0.2)]
  order, starts = found_envelope(lines)
  assert order == [0, 2, 1, 3]
  np.testing.assert_allclose(starts[1:], [5 / 3, 10 / 3, 3.75])
  assert slow.sweep_line(lines) == list(zip(order, starts, strict=True))


numbers = st.integers(-12, 12).map(lambda n: n / 4)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12))
def test_envelope_is_highest_everywhere(lines):
  order, starts = found_envelope(lines)
  assert starts[0] == -np.inf
  assert all(x < y for x, y in itertools.pairwise(starts))
  for step in slow.all_points([lines]):
    place = int(np.searchsorted(starts, step, side="right")) - 1
    a, b = lines[order[place]]
    best_a, best_b = lines[slow.best_at(lines, step)]
    assert a + step * b == pytest.approx(best_a + step * best_b)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12))
def test_envelope_has_the_breakpoints_of_the_sweep(lines):
  _, starts = found_envelope(lines)
  expected = [start for _, start in slow.sweep_line(lines)]
  # Three lines through one point may be kept or not by rounding alone.
  kept = [s for s in starts if not np.isclose(s, expected, atol=1e-9).any()]
  assert not [s for s in kept if np.isfinite(s)]
  assert len(starts) == len(expected)


def random_lines(seed, **options):
  made = forests.random_forest(seed, sentences=4, nodes=5, fan=3, **options)
  rng = np.random.default_rng(seed)
  slopes = rng.integers(-3, 4, made.num_edges).astype(np.float64)  # parallels
  return made, rng.normal(size=made.num_edges), slopes


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_the_best_derivations(seed):
  made, intercepts, slopes = random_lines(seed)
  found = envelope(made, intercepts, slopes)
  for row, every in enumerate(forests.enumerated(made, limit=3000)):
    low, high = found.offsets[row : row + 2]
    if every is None:
      continue
    if not every:
      assert low == high
      continue
    lines = np.array(
      [(intercepts[one].sum(), slopes[one].sum()) for one in every]
    )
    known = {tuple(one) for one in every}
    for k in range(low, high):
      edges = found.edges[k]
      assert tuple(edges.tolist()) in known
      np.testing.assert_allclose(found.intercept[k], intercepts[edges].sum())
      np.testing.assert_allclose(found.slope[k], slopes[edges].sum())
    start = found.start[low:high]
    assert start[0] == -np.inf
    assert (np.diff(start) >= 0).all() and (
      np.diff(found.slope[low:high]) > 0
    ).all()
    # Between two starts the line is the highest of all.
    ends = np.append(start[1:], start[-1] + 2 if len(start) > 1 else 2.0)
    begin = np.maximum(start, ends - 2)
    for k, step in zip(range(low, high), 0.5 * (begin + ends), strict=True):
      top = (lines @ [1.0, step]).max()
      np.testing.assert_allclose(
        found.intercept[k] + step * found.slope[k], top, atol=1e-8
      )


def test_the_highest_line_is_the_best_derivation():
  made, intercepts, slopes = random_lines(4)
  strings = EdgeStrings(
    row=np.arange(made.num_edges, dtype=np.int32),
    symbols=from_rows(
      [
        [edge, *(-1 - k for k, tail in enumerate(tails) if tail >= 0)]
        for edge, tails in enumerate(made.tails)
      ]
    ),
  )
  found = envelope(made, intercepts, slopes, strings=strings)
  np.testing.assert_array_equal(found.words.flat, found.edges.flat)
  for step in (-2.7, -0.31, 0.0, 0.44, 5.1):
    best = kbest(made, size=1, scores=intercepts + step * slopes)
    for row in range(len(made)):
      low, high = found.offsets[row : row + 2]
      if low == high:
        continue
      k = low + np.searchsorted(found.start[low:high], step) - 1
      np.testing.assert_allclose(
        found.intercept[k] + step * found.slope[k],
        best.score[best.offsets[row]],
        atol=1e-8,
      )


def test_equal_edges_in_another_order_are_one_line():
  rng = np.random.default_rng(0)
  values = on_grid(rng.normal(size=7))
  sums = {sum(order) for order in itertools.permutations(values.tolist())}
  assert len(sums) == 1


def small_forest(edge_offsets, tails, target):
  """One sentence, and the strings of its edges."""
  made = Forest(
    node_offsets=np.array([0, len(edge_offsets) - 1], np.int64),
    edge_offsets=np.array(edge_offsets, np.int64),
    tails=np.array(tails, np.int32),
    score=np.zeros(len(tails), np.float32),
  )
  strings = EdgeStrings(
    row=np.arange(len(tails), dtype=np.int32), symbols=from_rows(target)
  )
  return made, strings


def test_example_of_the_survey_in_forests():
  """Equation 42, also with the lines as sums of an edge and a tail."""
  lines = [(2.5, -0.8), (1.0, -0.2), (2.0, -0.5), (-0.5, 0.2)]
  words = [[0], [1], [2], [3]]
  own = tuple(np.array(column) for column in zip(*lines, strict=True))
  flat = small_forest([0, 4], [[-1]] * 4, words)
  deep = small_forest([0, 4, 5], [[-1]] * 4 + [[0]], [*words, [-1]])
  shifted = (np.append(own[0] - 1.0, 1.0), np.append(own[1] + 0.25, -0.25))
  for (made, strings), values in ((flat, own), (deep, shifted)):
    found = envelope(made, *values, strings=strings)
    assert found.offsets.tolist() == [0, 4]
    assert found.words.flat.tolist() == [0, 2, 1, 3]
    assert found.words.offsets.tolist() == [0, 1, 2, 3, 4]
    want = np.array([lines[k] for k in found.words.flat])
    np.testing.assert_allclose(found.intercept, want[:, 0], atol=1e-9)
    np.testing.assert_allclose(found.slope, want[:, 1], atol=1e-9)
    np.testing.assert_allclose(
      found.start, [-np.inf, 5 / 3, 10 / 3, 3.75], atol=1e-6
    )


def test_product_is_the_minkowski_sum():
  """Two tails: their breakpoints together are those of the product."""
  one = [(0.0, -1.0), (0.0, 1.0)]  # breaks at 0
  two = [(0.0, -0.5), (-0.5, 0.5)]  # breaks at 0.5
  values = [*one, *two, (0.25, 0.0)]
  made, strings = small_forest(
    [0, 2, 4, 5], [[-1, -1]] * 4 + [[0, 1]], [[0], [1], [2], [3], [-2, -1]]
  )
  own = tuple(np.array(column) for column in zip(*values, strict=True))
  found = envelope(made, *own, strings=strings)
  np.testing.assert_allclose(found.intercept, [0.25, 0.25, -0.25])
  np.testing.assert_allclose(found.slope, [-1.5, 0.5, 1.5])
  assert found.words.flat.reshape(3, 2).tolist() == [[2, 0], [2, 1], [3, 1]]
  products = [(a + c + 0.25, b + d) for a, b in one for c, d in two]
  assert len(slow.sweep_line(products)) == 3
