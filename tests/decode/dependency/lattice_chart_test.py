import dataclasses

import numpy as np
import pytest

from jaxmt.decode.dependency import lattice as lattices
from jaxmt.decode.dependency import lattice_chart
from jaxmt.parse import eisner
from tests.reference import dependency_trees
from tests.reference import lattice_trees as reference

CASES = [
  (seed, 4 + seed % 3, 7 + seed % 4, seed % 2 * 0.3) for seed in range(12)
]


def case(seed, nodes, edges, forbidden):
  rng = np.random.default_rng(seed)
  return reference.random_lattice(
    rng, nodes=nodes, edges=edges, forbidden=forbidden
  )


@pytest.mark.parametrize("arguments", CASES)
def test_equals_enumeration(arguments):
  lattice, arcs = case(*arguments)
  lattices.check(lattice)
  found = list(reference.derivations(lattice, arcs))
  scores = np.array([score for _, _, score in found])
  count = dataclasses.replace(
    arcs,
    **{
      name: (getattr(arcs, name) > -np.inf).astype(np.float32)
      for name in ("right", "left", "root")
    },
  )
  total = lattice_chart.total
  assert total(lattice, count, semiring="counting") == len(found)
  if not found:
    assert lattice_chart.best_tree(lattice, arcs) is None
    assert total(lattice, arcs, semiring="log") == -np.inf
    return
  np.testing.assert_allclose(
    total(lattice, arcs, semiring="log"), np.logaddexp.reduce(scores), rtol=1e-5
  )
  np.testing.assert_allclose(
    total(lattice, arcs, semiring="max"), scores.max(), rtol=1e-5
  )
  tree = lattice_chart.best_tree(lattice, arcs)
  path, heads, score = found[int(np.argmax(scores))]
  assert (tree.edges.tolist(), tree.heads.tolist()) == (path, list(heads))
  np.testing.assert_allclose(tree.score, score, rtol=1e-5)


def test_counts_of_strings():
  rng = np.random.default_rng(0)
  counts = []
  for size in range(1, 6):
    lattice, arcs, _ = reference.string_lattice(rng, size)
    ones = lattice_chart.Arcs(
      right=np.ones((size, size), np.float32),
      left=np.ones((size, size), np.float32),
      root=np.ones(size, np.float32),
    )
    counts.append(lattice_chart.total(lattice, ones, semiring="counting"))
    del arcs
  assert counts == [1, 2, 7, 30, 143]


def test_one_path_is_plain_parsing():
  rng = np.random.default_rng(1)
  lattice, arcs, table = reference.string_lattice(rng, 8)
  tree = lattice_chart.best_tree(lattice, arcs)
  lengths = np.array([8])
  heads = np.asarray(eisner.best_trees(table[None], lengths))[0]
  assert tree.heads.tolist() == heads.tolist()
  log = eisner.ProjectiveTrees(lengths=lengths).log_sums(table[None])
  np.testing.assert_allclose(
    lattice_chart.total(lattice, arcs, semiring="log"), log[0], rtol=1e-5
  )


def test_trees_of_larger_lattices_have_their_scores():
  rng = np.random.default_rng(3)
  lattice, arcs = reference.random_lattice(rng, nodes=25, edges=80)
  tree = lattice_chart.best_tree(lattice, arcs)
  assert dependency_trees.is_tree(tree.heads)
  assert dependency_trees.is_projective(tree.heads)
  assert lattice.start[tree.edges[0]] == 0
  np.testing.assert_array_equal(
    lattice.end[tree.edges[:-1]], lattice.start[tree.edges[1:]]
  )
  score = lattice.score[tree.edges].sum()
  score += lattice.final[lattice.end[tree.edges[-1]]]
  for place, head in enumerate(tree.heads):
    child = tree.edges[place]
    if head < 0:
      score += arcs.root[child]
    elif head < place:
      score += arcs.right[tree.edges[head], child]
    else:
      score += arcs.left[child, tree.edges[head]]
  np.testing.assert_allclose(tree.score, score, rtol=1e-4)
