import collections

import numpy as np

from jaxmt import hypergraph
from jaxmt.hypergraph import forest as forests_module
from jaxmt.parse import eisner, tree_forest
from tests.reference import dependency_trees as reference

LENGTHS = [3, 1, 0, 5]


def make():
  arcs = np.random.default_rng(0).normal(size=(4, 6, 5)).astype(np.float32)
  return arcs, tree_forest.forests(arcs, LENGTHS)


def test_totals_and_posteriors_are_those_of_the_chart():
  arcs, forest = make()
  forests_module.check(forest)
  totals = hypergraph.log_totals(forest)
  charts = eisner.ProjectiveTrees(lengths=np.array(LENGTHS)).log_sums(arcs)
  np.testing.assert_allclose(totals, charts, rtol=1e-5)
  shares = hypergraph.marginals(forest)
  posteriors = np.asarray(eisner.marginals(arcs, np.array(LENGTHS)))
  found = np.zeros_like(posteriors)
  cuts = forest.edge_cuts
  for row in range(len(LENGTHS)):
    own = slice(cuts[row], cuts[row + 1])
    head, child = forest.edges.head[own], forest.edges.child[own]
    there = child >= 0
    np.add.at(found[row], (head[there] + 1, child[there]), shares[own][there])
  np.testing.assert_allclose(found, posteriors, atol=1e-5)


def test_every_derivation_is_another_tree():
  arcs, forest = make()
  lists = hypergraph.kbest(forest, size=200)
  for row, length in enumerate(LENGTHS):
    wanted = reference.projective_trees(length) if length else []
    found = {
      tuple(tree_forest.heads_of(forest, lists.edges[item], length)): item
      for item in range(lists.offsets[row], lists.offsets[row + 1])
    }
    assert sorted(found) == sorted(wanted)
    for tree, item in found.items():
      own = reference.score(tree, arcs[row])
      np.testing.assert_allclose(lists.score[item], own, rtol=1e-5)


def test_random_trees_are_uniform():
  drawn = tree_forest.random_trees([3, 4] * 700, seed=1)
  again = tree_forest.random_trees([3, 4] * 700, seed=1)
  np.testing.assert_array_equal(drawn.flat, again.flat)
  counts = collections.Counter(tuple(drawn[row]) for row in range(0, 1400, 2))
  assert sorted(counts) == sorted(reference.projective_trees(3))
  # 700 draws of 7 trees: 100 each, standard deviation 9.3.
  assert all(60 < count < 140 for count in counts.values())
