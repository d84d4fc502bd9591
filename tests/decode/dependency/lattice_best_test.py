import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.decode.dependency import lattice_best, lattice_chart, lattice_forest
from jaxmt.hypergraph import forest as forests
from tests.decode.dependency.lattice_chart_test import CASES, case
from tests.reference import lattice_trees as reference


def listed(forest, size=10_000):
  """Derivations of a forest, as sorted parts, with their scores."""
  lists = hypergraph.kbest(forest, size=size)
  parts = np.stack(forest.edges, 1)
  return {
    tuple(sorted(map(tuple, parts[lists.edges[item]].tolist()))): score
    for item, score in enumerate(lists.score.tolist())
  }


@pytest.mark.parametrize("arguments", CASES)
@pytest.mark.parametrize("margin", [0.0, 0.7, 2.5])
def test_all_derivations_within_the_margin(arguments, margin):
  lattice, arcs = case(*arguments)
  chart = lattice_chart.chart(lattice, arcs)
  found = lattice_best.within(
    lattice, arcs, chart, margin=margin, max_edges=10_000
  )
  small = lattice_forest.assemble(lattice, arcs, *found[:4])
  forests.check(small)
  whole = lattice_forest.forest(lattice, arcs)
  wanted = listed(whole)
  if not wanted:
    assert not listed(small)
    return
  best = max(wanted.values())
  near = {key for key, score in wanted.items() if score >= best - margin}
  got = listed(small)
  assert near <= got.keys() <= wanted.keys()
  for key, score in got.items():
    assert score == pytest.approx(wanted[key], abs=1e-4)
  # No edge without a derivation within the margin.
  if small.num_edges:
    marginals = hypergraph.max_marginals(small)
    assert marginals.min() >= best - margin - 0.01


def test_wide_margins_keep_everything():
  lattice, arcs = case(*CASES[4])
  forest = lattice_best.best_forest(lattice, arcs)
  assert (
    listed(forest).keys() == listed(lattice_forest.forest(lattice, arcs)).keys()
  )


def test_large_lattices_give_the_best_of_their_lists():
  rng = np.random.default_rng(5)
  lattice, arcs = reference.random_lattice(rng, nodes=14, edges=50)
  whole = lattice_forest.forest(lattice, arcs)
  small = lattice_best.best_forest(lattice, arcs, max_edges=2000)
  assert small.num_edges <= 2000 < whole.num_edges
  one, other = (
    np.sort(hypergraph.kbest(forest, size=20).score)
    for forest in (whole, small)
  )
  np.testing.assert_allclose(one, other, rtol=1e-5)
