import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.decode.dependency import lattice_chart, lattice_forest
from jaxmt.hypergraph import forest as forests
from tests.decode.dependency.lattice_chart_test import CASES, case
from tests.reference import lattice_trees as reference


@pytest.mark.parametrize("arguments", CASES[:6])
def test_derivations_are_all_trees_of_all_paths(arguments):
  lattice, arcs = case(*arguments)
  forest = lattice_forest.forest(lattice, arcs)
  forests.check(forest)
  wanted = {
    (tuple(path), heads): score
    for path, heads, score in reference.derivations(lattice, arcs)
  }
  lists = hypergraph.kbest(forest, size=len(wanted) + 5)
  found = {}
  for item in range(len(lists.score)):
    edges = lists.edges[item]
    parts = forest.edges
    path = sorted(parts.edge[edges][parts.edge[edges] >= 0].tolist())
    path.sort(key=lambda edge: lattice.start[edge])
    heads = {
      child: head
      for child, head in zip(
        parts.child[edges].tolist(), parts.head[edges].tolist(), strict=True
      )
      if child >= 0
    }
    tree = tuple(
      path.index(heads[edge]) if heads[edge] >= 0 else -1 for edge in path
    )
    found[tuple(path), tree] = lists.score[item]
  assert found.keys() == wanted.keys()
  for key, score in wanted.items():
    np.testing.assert_allclose(found[key], score, rtol=1e-4, atol=1e-4)


def test_posteriors_are_those_of_enumeration():
  lattice, arcs = case(*CASES[5])
  forest = lattice_forest.forest(lattice, arcs)
  np.testing.assert_allclose(
    hypergraph.log_totals(forest)[0],
    lattice_chart.total(lattice, arcs, semiring="log"),
    rtol=1e-5,
  )
  shares = hypergraph.marginals(forest)
  parts = forest.edges
  found = np.zeros(len(lattice))
  there = parts.edge >= 0
  np.add.at(found, parts.edge[there], shares[there])
  items = list(reference.derivations(lattice, arcs))
  scores = np.array([score for _, _, score in items])
  weights = np.exp(scores - np.logaddexp.reduce(scores))
  wanted = np.zeros(len(lattice))
  for (path, _, _), weight in zip(items, weights, strict=True):
    wanted[path] += weight
  np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_too_many_edges_are_refused():
  lattice, arcs = case(*CASES[5])
  with pytest.raises(ValueError, match="prune the lattice"):
    lattice_forest.forest(lattice, arcs, max_edges=3)
