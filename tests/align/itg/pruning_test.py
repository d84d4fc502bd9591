"""Pruning: the papers' example, slow sums, beams."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.align.itg import (
  bispans,
  gold_spans,
  link_features,
  parse,
  pruning,
  terminals,
)
from jaxmt.text.ragged import Ragged
from tests import util


def test_worked_example_of_the_paper():
  # Target words e2, e3 with source words f1, f2 of 4 and 4 words.
  links = np.zeros((4, 4))
  for source, target in ((1, 2), (2, 4), (3, 3)):
    links[source - 1, target - 1] = 1.0
  values, _ = pruning.span_features(
    jnp.array([0]),
    jnp.array([2]),
    jnp.full((4, 4), 0.25),
    jnp.asarray(links),
    jnp.asarray(links),
    4,
    4,
    1.15,
  )
  # Of the spans 1, 1-2, 1-3, 1-4, 2, 2-3, ... the sixth is 2-3.
  at = lambda row: float(np.broadcast_to(values[row], (1, 10))[0, 5])
  assert [at(row) for row in (2, 3, 4, 5)] == pytest.approx(
    [0.5, 1.0, 0.15, 0.25]
  )
  assert [at(6), at(7)] == pytest.approx([0.5, 1.0])


def random_matrices(seed, *, lengths=((5, 4), (3, 6)), width=8):
  rng = np.random.default_rng(seed)
  shape = (len(lengths), width, width)
  n, m = np.array(lengths, np.int32).T
  inside = (np.arange(width) < n[:, None])[:, :, None] & (
    np.arange(width) < m[:, None]
  )[:, None, :]
  draw = lambda: np.where(inside, rng.random(shape), 0.0).astype(np.float32)
  return link_features.Matrices(
    link=jnp.zeros((*shape, 1)),
    source=jnp.zeros((*shape[:2], 4, 1)),
    target=jnp.zeros((*shape[:2], 4, 1)),
    model1=jnp.asarray(draw()),
    posterior=jnp.asarray(draw()),
    source_length=jnp.asarray(n),
    target_length=jnp.asarray(m),
  )


def slow_features(matrices, pair, span, ratio):
  """The eight features by loops."""
  i, k, j, l = span
  p = np.asarray(matrices.model1[pair], np.float64)
  posterior = np.asarray(matrices.posterior[pair], np.float64)
  n, m = int(matrices.source_length[pair]), int(matrices.target_length[pair])
  inner = [s for s in range(n) if i <= s < k]
  outer = [s for s in range(n) if not i <= s < k]

  def mean_log(rows, t):
    mean = sum(p[s, t] for s in rows) / max(len(rows), 1)
    return math.log(max(mean, 1e-6))

  def ratios(matrix):
    held = leaving = 0.0
    for s in range(n):
      for t in range(m):
        row, column = i <= s < k, j <= t < l
        held += matrix[s, t] * (row and column)
        leaving += matrix[s, t] * (row != column)
    scale = 2.0 / (k - i + l - j)
    return held * scale, leaving * scale

  return [
    sum(mean_log(inner, t) for t in range(j, l)),
    sum(mean_log(outer, t) for t in range(m) if not j <= t < l),
    *ratios(posterior >= 0.5),
    abs((k - i) / (l - j) - ratio),
    abs((i + 1 + k) / (2 * n) - (j + 1 + l) / (2 * m)),
    *ratios(posterior),
  ]


def test_features_equal_loops():
  matrices = random_matrices(0)
  samples = np.array([[0, 1, 3, 0, 2], [0, 0, 5, 1, 4], [1, 2, 3, 2, 6]])
  how = pruning.pruner("dpdi", ratio=0.9)
  rows, gold = pruning.sample_features(matrices, samples, how, chunk=4)
  for row, sample in enumerate(samples.tolist()):
    found = rows[row][gold[row]]
    expected = slow_features(matrices, sample[0], sample[1:], 0.9)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
  assert rows.lengths.tolist() == [10, 10, 21]


@pytest.mark.parametrize("name", pruning.PRUNERS)
def test_a_full_beam_is_the_unpruned_chart(name):
  matrices = random_matrices(1)
  chart = pruning.prune(matrices, 2, pruning.pruner(name, beam=64))
  whole = bispans.every([5, 3], [4, 6])
  np.testing.assert_array_equal(chart.spans, whole.spans)
  np.testing.assert_array_equal(chart.offsets, whole.offsets)


@pytest.mark.parametrize("name", pruning.PRUNERS)
def test_a_full_beam_has_the_best_derivations_of_the_unpruned_parser(name):
  matrices = random_matrices(4)
  charts = [
    pruning.prune(matrices, 2, pruning.pruner(name, beam=64)),
    bispans.every([5, 3], [4, 6]),
    pruning.prune(matrices, 2, pruning.pruner(name, beam=1)),
  ]
  totals = []
  for chart in charts:
    parsed = parse.parse(chart)
    rows = terminals.edge_rows(parsed)
    # A score for each terminal, by what it is and where it stands.
    worth = np.zeros(len(parsed.places) + 3)
    for row, place in enumerate(parsed.places.tolist()):
      worth[row] = np.random.default_rng(np.array(place) + 2).normal()
    best = hypergraph.viterbi(parsed.forest, worth[rows])
    totals.append(best.score[parsed.forest.roots])
  np.testing.assert_allclose(totals[0], totals[1])
  assert (totals[2] < totals[1]).any()


def test_beams_take_the_best_and_grow():
  matrices = random_matrices(2)
  how = pruning.pruner("tic-tac-toe", beam=2)
  chart = pruning.prune(matrices, 2, how)
  assert np.diff(chart.offsets).tolist() == [15 * 2, 6 * 2]
  spans = [(j, l) for j in range(4) for l in range(j + 1, 5)]
  scores = {
    span: np.dot(slow_features(matrices, 0, (1, 4, *span), 1.0), how.weights)
    for span in spans
  }
  best = sorted(spans, key=lambda span: -scores[span])[:2]
  own = chart.spans[: chart.offsets[1]]
  found = own[(own[:, 0] == 1) & (own[:, 1] == 4), 2:]
  assert {tuple(row) for row in found.tolist()} == set(best)


def test_missing_share_falls_with_the_beam():
  matrices = random_matrices(3)
  links = Ragged(
    flat=np.array([[0, 0], [1, 2], [2, 1], [4, 3], [0, 1], [2, 5]]),
    offsets=np.array([0, 4, 6]),
  )
  samples = gold_spans.samples(links, np.asarray(matrices.posterior))
  shares = []
  for beam in (1, 3, 6, 64):
    chart = pruning.prune(matrices, 2, pruning.pruner("dp", beam=beam))
    shares.append(pruning.missing_share(chart, samples)[0])
  assert shares == sorted(shares, reverse=True)
  assert shares[-1] == 0 < shares[0]


def test_the_search_for_target_spans_lowers():
  how = pruning.pruner("dpdi", beam=3)
  programs = util.lowered(
    pruning._best_spans,
    random_matrices(0),
    tuple(np.asarray(how.weights, np.float32)),
    np.float32(how.ratio),
    np.float32(how.threshold),
    beam=how.beam,
  )
  assert all("stablehlo" in program for program in programs)


def test_unknown_pruners_are_refused():
  with pytest.raises(ValueError, match="none of"):
    pruning.pruner("cube")
  with pytest.raises(ValueError, match="beam"):
    pruning.pruner("dp", beam=0)
