"""Passes on the host against every derivation, and against the device."""

import functools
import itertools

import numpy as np
import pytest

from jaxmt.hypergraph import (
  LOG,
  MAX,
  best_derivations,
  expectations,
  inside,
  log_totals,
  marginals,
  max_marginals,
  outside,
  prune,
  semirings,
  sum_values,
  viterbi,
)
from tests.reference import forests

SEEDS = range(25)
close = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
# The device computes in float32.
near = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-4)


def derivations_below(made, node):
  """Every derivation of a node as a list of edges."""
  out = []
  for edge in range(made.edge_offsets[node], made.edge_offsets[node + 1]):
    ways = [[edge]]
    for tail in made.tails[edge]:
      if tail >= 0:
        below = derivations_below(made, tail)
        ways = [one + two for one in ways for two in below]
    out += ways
  return out


def random_forest(seed):
  return forests.random_forest(seed, sentences=3, nodes=4, fan=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_inside_sums_over_the_derivations_of_a_node(seed):
  made = random_forest(seed)
  score = made.score.astype(np.float64)
  logs, best = inside(made), inside(made, semiring=MAX)
  for node in range(made.num_nodes):
    totals = [score[one].sum() for one in derivations_below(made, node)]
    close(logs[node], np.logaddexp.reduce(totals))
    close(best.score[node], max(totals))


@pytest.mark.parametrize("seed", SEEDS)
def test_outside_times_inside_is_what_uses_the_node(seed):
  made = random_forest(seed)
  score = made.score.astype(np.float64)
  logs = inside(made) + outside(made)
  best = inside(made, semiring=MAX).score + outside(made, semiring=MAX).score
  for row, every in enumerate(forests.enumerated(made)):
    for node in range(*made.node_offsets[row : row + 2]):
      # A derivation counts once for each time it uses the node.
      totals = [
        score[one].sum()
        for one in every
        for edge in one
        if made.heads[edge] == node
      ]
      close(logs[node], np.logaddexp.reduce([*totals, -np.inf]))
      close(best[node], max(totals, default=-np.inf))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_back_of_the_outside_is_an_edge_that_uses_the_node(seed):
  made = random_forest(seed)
  back = outside(made, semiring=MAX).back
  for node in np.flatnonzero(back >= 0):
    assert node in made.tails[back[node]]
  assert (back[made.roots[made.roots >= 0]] == -1).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_marginals_and_expectations(seed):
  made = random_forest(seed)
  values = np.random.default_rng(seed).normal(size=(made.num_edges, 3))
  posteriors, means = marginals(made), expectations(made, values)
  score = made.score.astype(np.float64)
  for row, every in enumerate(forests.enumerated(made)):
    own = slice(*made.edge_cuts[row : row + 2])
    uses = np.array([np.bincount(one, minlength=len(score)) for one in every])
    if not len(uses):
      assert not means[row].any()
      continue
    p = np.exp(uses @ score - np.logaddexp.reduce(uses @ score))
    close(posteriors[own], (p @ uses)[own])
    close(means[row], p @ uses @ values)


def test_expectations_are_slopes_of_the_log_totals():
  made = random_forest(8)
  values = np.random.default_rng(0).normal(size=(made.num_edges, 2))
  means, step = expectations(made, values), 1e-5
  for column in range(2):
    up = log_totals(made, made.score + step * values[:, column])
    down = log_totals(made, made.score - step * values[:, column])
    filled = up > -np.inf
    slopes = (up[filled] - down[filled]) / (2 * step)
    np.testing.assert_allclose(means[filled, column], slopes, atol=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_viterbi_is_the_best_derivation_of_every_node(seed):
  made = random_forest(seed)
  best = viterbi(made)
  paths, words = best_derivations(made, best, best.back)
  assert not len(words.flat)
  score = made.score.astype(np.float64)
  for node in range(made.num_nodes):
    every = derivations_below(made, node)
    assert paths[node].tolist() in every
    close(score[paths[node]].sum(), max(score[one].sum() for one in every))
  close(sum_values(paths, score), best.score)
  for edge, total in enumerate(best.through):
    below = [best.score[tail] for tail in made.tails[edge] if tail >= 0]
    close(total, score[edge] + sum(below))


def test_the_first_of_equal_edges_is_the_best():
  made = forests.with_scores(random_forest(3), 0 * random_forest(3).score)
  first = made.edge_offsets[:-1]
  tied = viterbi(made).through[first] == viterbi(made).score
  np.testing.assert_array_equal(viterbi(made).back[tied], first[tied])
  assert tied.any()


@pytest.mark.parametrize("seed", range(8))
def test_host_and_device_agree(seed):
  made = forests.random_forest(seed, sentences=4, nodes=5, fan=3)
  values = np.random.default_rng(seed).normal(size=(made.num_edges, 3))
  for call in (
    inside,
    outside,
    log_totals,
    marginals,
    functools.partial(marginals, scale=0.5),
    max_marginals,
    lambda one, **options: expectations(one, values, **options),
    lambda one, **options: inside(one, semiring=MAX, **options).score,
    lambda one, **options: inside(one, semiring=MAX, **options).back,
    lambda one, **options: outside(one, semiring=MAX, **options).score,
  ):
    one, two = (call(made, backend=name) for name in ("host", "device"))
    assert one.shape == two.shape
    near(two, one)


def test_scale_and_scores_of_marginals():
  made = forests.random_forest(4, sentences=3, nodes=5)
  close(marginals(made, scale=0.5), marginals(made, 0.5 * made.score))
  every = forests.enumerated(made)
  counts = [len(one) for one in every]
  with np.errstate(divide="ignore"):
    close(log_totals(made, 0 * made.score), np.log(counts))
  uses = [
    np.bincount(e, minlength=made.num_edges) for one in every for e in one
  ]
  weight = [1 / len(one) for one in every for _ in one]
  close(marginals(made, scale=0.0), weight @ np.array(uses))
  # Without one of its edges.
  several = next(one for one in every if len(one) > 1)
  dropped = several[0][-1]
  scores = made.score.astype(np.float64)
  scores[dropped] = -np.inf
  for scale in (0.0, 1.0):
    for backend in ("host", "device"):
      got = marginals(made, scores, scale=scale, backend=backend)
      assert got[dropped] == 0
      assert np.isfinite(got).all()
    left = [one for one in several if dropped not in one]
    if scale == 0.0 and left:
      row = np.searchsorted(made.edge_cuts, dropped, side="right") - 1
      roots = slice(*made.edge_offsets[made.roots[row] + np.arange(2)])
      close(got[roots].sum(), 1.0, atol=1e-5)


def test_no_derivations_at_all():
  none = forests.random_forest(0, sentences=3, nodes=0)
  for backend in ("host", "device"):
    assert (log_totals(none, backend=backend) == -np.inf).all()
    assert marginals(none, backend=backend).shape == (0,)
    means = expectations(none, np.zeros((0, 2)), backend=backend)
    np.testing.assert_array_equal(means, np.zeros((3, 2)))


def test_wrong_arguments():
  made = forests.random_forest(0)
  with pytest.raises(ValueError, match="edges"):
    marginals(made, np.zeros(made.num_edges + 1))
  with pytest.raises(ValueError, match="negative"):
    marginals(made, scale=-1.0)
  with pytest.raises(ValueError, match="backend 'gpu'"):
    inside(made, backend="gpu")
  with pytest.raises(ValueError, match="counting semiring"):
    inside(made, semiring=semirings.COUNTING)
  with pytest.raises(ValueError, match="values"):
    expectations(made, np.zeros(made.num_edges))
  assert inside(made, semiring=LOG).shape == (made.num_nodes,)


@pytest.mark.parametrize("seed", range(20))
def test_pruned_forests_hold_the_best_derivations(seed):
  made = forests.random_forest(seed, sentences=3, nodes=5, fan=3)
  worth = max_marginals(made)
  wanted = np.array([4, 6, 5])
  small, kept = prune(made, edges=wanted)
  np.testing.assert_array_equal(small.score, made.score[kept])
  for row, every in enumerate(forests.enumerated(made)):
    if every is None:
      continue
    if not every:
      assert small.node_offsets[row] == small.node_offsets[row + 1]
      continue
    totals = {tuple(e): made.score[e].astype(np.float64).sum() for e in every}
    best = {}
    for edges, total in totals.items():
      for edge in edges:
        best[edge] = max(best.get(edge, -np.inf), total)
    for edge, value in best.items():
      np.testing.assert_allclose(worth[edge], value)
    left = [
      [int(kept[e]) for e in edges]
      for edges in forests.derivations(small, row, limit=10**4)
    ]
    own = set(itertools.chain.from_iterable(left))
    # All derivations of the kept edges, and the best of all among them.
    assert sorted(map(tuple, left)) == sorted(
      edges for edges in totals if set(edges) <= own
    )
    assert max(totals, key=totals.__getitem__) in set(map(tuple, left))
    assert len(own) >= min(wanted[row], len(best))
