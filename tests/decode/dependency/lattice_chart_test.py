import dataclasses

import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.decode.dependency import lattice as lattices
from jaxmt.decode.dependency import lattice_chart, lattice_forest
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


@pytest.mark.parametrize("seed", range(3))
def test_items_are_those_taken_one_at_a_time(seed):
  """Rows are taken by fours where edges do not follow each other."""
  lattice, arcs = case(seed, 6 + 9 * seed, 45, 0.2 * seed)
  sums = reference.items(lattice, arcs, max)
  for found, expected in zip(
    lattice_chart.chart(lattice, arcs), sums, strict=True
  ):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
  right, left, _ = reference.items(lattice, arcs, np.logaddexp)
  whole = left[:, :1] + arcs.root[:, None] + right + lattice.final
  np.testing.assert_allclose(
    lattice_chart.total(lattice, arcs, semiring="log"),
    np.logaddexp.reduce(whole, axis=None),
    rtol=1e-5,
  )


def test_counts_of_strings():
  rng = np.random.default_rng(0)
  counts = []
  for size in range(1, 6):
    lattice, arcs, _ = reference.string_lattice(rng, size)
    ones = lattice_chart.ArcScores(
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


def test_what_no_path_uses_changes_nothing():
  """Nodes that nothing leads to, and edges that lead from them, are padding."""
  lattice, arcs = case(*CASES[4])
  size, nodes = len(lattice), len(lattice.final)
  # Before every node a new one: old nodes keep their order.
  place = 2 * np.arange(nodes) + 1
  place[0] = 0
  starts = np.append(place[lattice.start], [1, 2])
  ends = np.append(place[lattice.end], [place[2], place[3]])
  order = np.argsort(starts, kind="stable")
  final = np.full(2 * nodes, -np.inf, np.float32)
  final[place] = lattice.final
  rng = np.random.default_rng(0)
  wide = lambda table: np.block(
    [
      [table, rng.normal(size=(size, 2))],
      [rng.normal(size=(2, size)), rng.normal(size=(2, 2))],
    ]
  ).astype(np.float32)[order][:, order]
  padded = dataclasses.replace(
    lattice,
    start=starts[order].astype(np.int32),
    end=ends[order].astype(np.int32),
    score=np.append(lattice.score, [5, 5]).astype(np.float32)[order],
    final=final,
    words=np.append(lattice.words, [1, 1])[order].astype(np.int32),
    span=np.concatenate([lattice.span, [[0, 1], [1, 2]]])[order],
  )
  more = lattice_chart.ArcScores(
    right=wide(arcs.right),
    left=wide(arcs.left),
    root=np.append(arcs.root, [3, 3]).astype(np.float32)[order],
  )
  for semiring in ("max", "log"):
    np.testing.assert_allclose(
      lattice_chart.total(padded, more, semiring=semiring),
      lattice_chart.total(lattice, arcs, semiring=semiring),
      rtol=1e-5,
    )


def test_slopes_of_the_log_total_are_posteriors():
  lattice, arcs = case(*CASES[2])
  forest = lattice_forest.forest(lattice, arcs)
  shares = hypergraph.marginals(forest)
  parts = forest.edges
  step = 0.05
  for row in range(0, len(lattice), 3):
    for side in ("right", "left"):
      for other in range(len(lattice)):
        table = getattr(arcs, side)
        at = (row, other)
        if table[at] == -np.inf:
          continue
        values = []
        for sign in (1, -1):
          moved = table.copy()
          moved[at] += sign * step
          changed = dataclasses.replace(arcs, **{side: moved})
          values.append(lattice_chart.total(lattice, changed, semiring="log"))
        head, child = at if side == "right" else at[::-1]
        mask = (parts.head == head) & (parts.child == child)
        slope = (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(slope, shares[mask].sum(), atol=2e-3)
