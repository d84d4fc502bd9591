import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.decode.dependency import lattice as lattices
from jaxmt.hypergraph import Forest
from tests.reference import lattice_trees as reference


def test_longest_paths_by_enumeration():
  rng = np.random.default_rng(0)
  lattice, _ = reference.random_lattice(rng, nodes=6, edges=11)
  wanted = np.full((6, 6), -1)

  def go(source, node, words):
    wanted[source, node] = max(wanted[source, node], words)
    for edge in range(len(lattice)):
      if lattice.start[edge] == node:
        go(source, lattice.end[edge], words + lattice.words[edge])

  for source in range(6):
    go(source, source, 0)
  np.testing.assert_array_equal(lattices.longest_paths(lattice), wanted)


def test_vine_limits():
  rng = np.random.default_rng(1)
  lattice, _ = reference.random_lattice(rng, nodes=6, edges=11)
  longest = lattices.longest_paths(lattice)
  free = lattices.allowed_arcs(lattice, longest)
  tight = lattices.allowed_arcs(
    lattice, longest, source_limit=1, target_limit=2
  )
  gaps = lattices.source_gaps(lattice)
  for a in range(len(lattice)):
    for b in range(len(lattice)):
      words = longest[lattice.end[a], lattice.start[b]]
      assert free[a, b] == (words >= 0)
      one, other = sorted((tuple(lattice.span[a]), tuple(lattice.span[b])))
      gap = max(other[0] - one[1], -1)
      assert gaps[a, b] == gap
      assert tight[a, b] == (0 <= words <= 2 and gap <= 1)


def test_edges_that_lead_back_are_refused():
  rng = np.random.default_rng(1)
  lattice, _ = reference.random_lattice(rng, nodes=6, edges=11)
  lattice.end[0] = 0
  with pytest.raises(ValueError, match="higher node"):
    lattices.check(lattice)


def test_a_budget_keeps_the_best_path():
  rng = np.random.default_rng(2)
  # Levels of one node each: 20 parallel edges from each to the next.
  tails = np.repeat([-1, 0, 1], 20).astype(np.int32)[:, None]
  forest = Forest(
    node_offsets=np.array([0, 3]),
    edge_offsets=np.array([0, 20, 40, 60]),
    tails=tails,
    score=rng.normal(size=60),
  )
  pruned = lattices.prune_to_budget(forest, edges=15)
  assert pruned.num_edges <= 15
  best = hypergraph.viterbi(forest).score
  np.testing.assert_allclose(hypergraph.viterbi(pruned).score, best)
  rest = lattices.prune_to_budget(forest, edges=60)
  assert rest.num_edges == 60
