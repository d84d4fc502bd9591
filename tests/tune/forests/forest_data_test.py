"""Forests as tuning sees them, against brute force."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.metrics import bleu
from jaxmt.tune import pool as pools
from jaxmt.tune.forests import (
  forest_data,
)
from tests.reference import forests as reference
from tests.tune.forests import forest_mert_test as forests
from tests.tune.forests.forest_loss_test import START, brute, made


@pytest.mark.parametrize("seed", range(6))
def test_hope_and_fear_equal_brute_force(seed):
  _, data = made(seed)
  forest = data.split.forest
  scores, costs = data.scores(START), 3.0 * data.costs()
  room = forest_data.workspace(forest.node_offsets)
  for values in (scores - costs, scores + costs):
    sums = forest_data.best_sums(forest, values, data.split.statistics)
    for row in range(len(forest)):
      low, high = forest.node_offsets[row : row + 2]
      best = brute(data, row, values)
      if best is None:
        assert not sums[row].any()
        continue
      first = forest.edge_offsets[low]
      found, count = forest_data.best_derivation(
        low,
        high,
        forest.edge_offsets,
        forest.tails,
        values[first:],
        first,
        room,
        np.empty(1, np.int64),
      )
      assert values[found[:count]].sum() == pytest.approx(values[best].sum())
      assert sorted(found[:count].tolist()) == sorted(best)
      np.testing.assert_array_equal(
        sums[row], data.split.statistics[best].sum(0)
      )


def test_slopes_are_those_of_bleu():
  sums = np.array([60.0, 30, 18, 9, 100, 90, 80, 70, 0])
  for reference_length in (80.0, 130.0):
    sums[8] = reference_length
    found = np.empty(8)
    bleu.slopes(sums, found)
    for place in range(8):
      step = np.zeros(9)
      step[place] = 1e-5
      ends = [bleu.bleu(sums + sign * step) for sign in (-1, 1)]
      assert found[place] == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-5)


def test_costs_are_the_first_order_change_of_bleu():
  _, data = made(3)
  forest = data.split.forest
  scores = data.scores(START)
  table = forest_data.best_sums(forest, scores, data.split.statistics)
  corpus = np.append(table.sum(0), 0.0) + 1.0
  corpus[8] = 0.0
  filled = (forest.roots >= 0).sum()
  costs = table @ data.slopes
  for row in range(len(forest)):
    moved = corpus.copy()
    moved[:8] += 1e-5 * table[row]
    change = bleu.bleu(moved) - bleu.bleu(corpus)
    assert costs[row] == pytest.approx(-filled * change / 1e-5, abs=1e-3)


def test_earlier_candidates_are_edges_of_the_root():
  own = forests.random_pool(2, nodes=6)
  lines = ["a b c d", "a a", "d c"]
  sentence = np.array([1, 1, 3])
  own = dataclasses.replace(own, listed=frozenset({(1, "a a")}))
  features = np.arange(9.0).reshape(3, 3)
  pool = pools.make_pool(
    dataclasses.replace(
      candidate_lists.from_dense(sentence, lines, features, forests.NAMES),
      forests=own,
    ),
    sentences=len(own.spelled),
    dense_names=forests.NAMES,
  )
  pool = pools.with_statistics(pool, own.references, ["bleu"])
  data = forest_data.prepare(pool, START, "bleu")
  alone, _ = forests.empty_pool(own), None
  before = forest_data.prepare(alone, START, "bleu").split.forest
  for row, count in ((0, 0), (1, 1), (3, 1)):
    if before.roots[row] < 0:
      continue
    old = len(reference.derivations(before, row, limit=10**5))
    new = reference.derivations(data.split.forest, row, limit=10**5)
    assert len(new) == old + count
    if count:
      values = data.features[data.split.edge[new[-1]]].sum(0)
      assert values.tolist() == features[0 if row == 1 else 2].tolist()
