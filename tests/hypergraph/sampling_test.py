"""Random derivations against the distribution they are drawn from."""

import numpy as np
import pytest

from jaxmt.hypergraph import (
  EdgeStrings,
  concatenate,
  kbest,
  marginals,
  sample,
  sum_values,
)
from jaxmt.text.ragged import Ragged
from tests.reference import forests


@pytest.mark.parametrize("seed", range(6))
def test_frequencies_are_probabilities(seed):
  made = forests.random_forest(seed, sentences=3, nodes=4)
  size = 4000
  drawn = sample(made, size=size, seed=seed)
  score = made.score.astype(np.float64)
  for row, every in enumerate(forests.enumerated(made)):
    low, high = drawn.offsets[row : row + 2]
    if not every:
      assert low == high
      continue
    assert high - low == size
    totals = np.array([score[one].sum() for one in every])
    p = np.exp(totals - np.logaddexp.reduce(totals))
    place = {tuple(one): number for number, one in enumerate(every)}
    got = [place[tuple(drawn.edges[k].tolist())] for k in range(low, high)]
    counts = np.bincount(got, minlength=len(every))
    # Five standard deviations of a binomial distribution.
    assert (abs(counts - size * p) <= 5 * np.sqrt(size * p * (1 - p)) + 1).all()


def test_mean_uses_are_marginals():
  made = forests.random_forest(21, sentences=6, nodes=8, fan=4)
  size = 20_000
  drawn = sample(made, size=size, seed=3)
  uses = np.bincount(drawn.edges.flat, minlength=made.num_edges) / size
  np.testing.assert_allclose(uses, marginals(made), atol=0.05)
  assert len(np.unique(drawn.edges.flat)) > made.num_edges / 2


def test_the_same_seed_draws_the_same():
  made = forests.random_forest(5, sentences=4, nodes=6, fan=3)
  one, two = (sample(made, size=50, seed=9) for _ in range(2))
  np.testing.assert_array_equal(one.edges.flat, two.edges.flat)
  np.testing.assert_array_equal(one.score, two.score)
  other = sample(made, size=50, seed=10)
  assert not np.array_equal(one.edges.flat, other.edges.flat)
  # A longer list begins with the shorter one; so does a longer batch.
  longer = sample(concatenate([made, made]), size=60, seed=9)
  for row in range(len(made)):
    if one.offsets[row] < one.offsets[row + 1]:
      for k in range(50):
        np.testing.assert_array_equal(
          longer.edges[longer.offsets[row] + k], one.edges[one.offsets[row] + k]
        )


def test_lists_are_derivations_with_scores_and_strings():
  made = forests.random_forest(7, sentences=5, nodes=5)
  # The string of a derivation: the numbers of its edges, in preorder.
  rows = [
    [edge, *(-1 - k for k, tail in enumerate(tails) if tail >= 0)]
    for edge, tails in enumerate(made.tails)
  ]
  strings = EdgeStrings(
    row=np.arange(made.num_edges),
    symbols=Ragged(
      flat=np.concatenate(rows), offsets=np.cumsum([0, *map(len, rows)])
    ),
  )
  drawn = sample(made, size=30, seed=1, strings=strings)
  np.testing.assert_array_equal(drawn.words.flat, drawn.edges.flat)
  np.testing.assert_array_equal(drawn.words.offsets, drawn.edges.offsets)
  np.testing.assert_array_equal(
    drawn.score, sum_values(drawn.edges, made.score)
  )


def test_other_scores_and_edges_that_are_left_out():
  made = forests.random_forest(11, sentences=4, nodes=5, fan=3)
  best = kbest(made, size=1)
  peaked = sample(made, size=5, seed=0, scores=1e3 * made.score)
  for row in range(len(made)):
    for k in range(*peaked.offsets[row : row + 2]):
      np.testing.assert_array_equal(
        peaked.edges[k], best.edges[best.offsets[row]]
      )
  none = sample(made, size=5, seed=0, scores=np.full(made.num_edges, -np.inf))
  assert not none.offsets.any()


def test_wrong_arguments():
  made = forests.random_forest(0)
  with pytest.raises(ValueError, match="size 0"):
    sample(made, size=0, seed=0)
  with pytest.raises(ValueError, match="seed -1"):
    sample(made, size=1, seed=-1)
