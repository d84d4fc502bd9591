"""Forests of sets of sentences, with whatever annotation."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxmt.hypergraph import Forest, concatenate, restrict, root_edges, select
from tests.reference import forests


def assert_equal(one, two):
  assert jax.tree.structure(one) == jax.tree.structure(two)
  for left, right in zip(
    jax.tree.leaves(one), jax.tree.leaves(two), strict=True
  ):
    np.testing.assert_array_equal(left, right)


def bare(made):
  return dataclasses.replace(made, nodes=None, edges=None)


def test_parts_put_together_are_the_whole():
  made = forests.random_forest(5, sentences=9)
  assert_equal(concatenate([made[row] for row in range(len(made))]), made)
  assert len(list(made)) == len(made) == 9  # forests can be iterated over
  assert_equal(made[-1], made[8])


@pytest.mark.parametrize("seed", range(10))
def test_selected_sentences_have_their_derivations(seed):
  made = forests.random_forest(seed, sentences=5)
  rows = np.random.default_rng(seed).permutation(5)[:3]
  some, edges = select(made, rows)
  np.testing.assert_array_equal(made.edges["number"][edges], edges)
  np.testing.assert_array_equal(some.edges["number"], edges)
  np.testing.assert_array_equal(some.score, made.score[edges])
  every = forests.enumerated(made)
  for got, row in zip(forests.enumerated(some), rows, strict=True):
    if got is not None:
      assert [edges[one].tolist() for one in got] == every[row]
  np.testing.assert_array_equal(
    some.nodes[some.heads], made.heads[edges]
  )  # nodes are annotated with their numbers


def test_concatenation_widens_tails():
  one = forests.random_forest(1, arity=2)
  two = forests.random_forest(3, arity=3)
  both = concatenate([one, two])
  assert both.tails.shape[1] == 3
  for part, rows in ((one, range(3)), (two, range(3, 6))):
    back, edges = select(both, np.array(rows))
    np.testing.assert_array_equal(both.score[edges], part.score)
    np.testing.assert_array_equal(back.edge_offsets, part.edge_offsets)
    width = part.tails.shape[1]
    np.testing.assert_array_equal(back.tails[:, :width], part.tails)


def test_a_forest_restricted_to_a_derivation():
  made = forests.random_forest(2, sentences=4, disjoint=True)
  every = forests.enumerated(made)
  chosen = np.sort(np.concatenate([row[-1] for row in every if row]))
  few = restrict(made, chosen.astype(np.int64))
  assert len(few) == 4
  for row, one in enumerate(forests.enumerated(few)):
    want = [made.edges["number"][every[row][-1]].tolist()] if every[row] else []
    assert [few.edges["number"][edges].tolist() for edges in one] == want


def test_roots_and_their_edges():
  made = forests.random_forest(3, sentences=8)
  edges, sentence = root_edges(made)
  want = [
    (edge, row)
    for row, root in enumerate(made.roots.tolist())
    if root >= 0
    for edge in range(made.edge_offsets[root], made.edge_offsets[root + 1])
  ]
  assert list(zip(edges.tolist(), sentence.tolist(), strict=True)) == want
  assert (made.roots == -1).any()


def test_wrong_arguments():
  made = forests.random_forest(1)
  with pytest.raises(ValueError, match="no forests"):
    concatenate([])
  with pytest.raises(ValueError, match="different annotation"):
    concatenate([made, bare(made)])
  with pytest.raises(IndexError, match="sentence 3 of 3"):
    made[3]


def test_a_forest_is_a_tree_of_arrays():
  made = forests.random_forest(1)
  doubled = jax.tree.map(lambda leaf: leaf * 2, made)
  assert isinstance(doubled, Forest)
  np.testing.assert_array_equal(doubled.score, 2 * made.score)
