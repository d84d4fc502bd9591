"""Pruned forests against every derivation."""

import itertools

import numpy as np
import pytest

from jaxmt.hypergraph import max_marginals, prune
from tests.reference import forests


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
