import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.hypergraph import semirings
from jaxmt.parse import eisner
from jaxmt.text.ragged import from_rows
from tests import util
from tests.reference import dependency_trees as reference

SIZE = 5
LENGTHS = np.array([1, 2, 3, 4, 5, 0], np.int32)


@pytest.fixture(scope="module")
def arcs():
  rng = np.random.default_rng(0)
  values = rng.normal(size=(len(LENGTHS), SIZE + 1, SIZE))
  return values.astype(np.float32)


def test_counts_are_those_of_enumeration():
  ones = jnp.ones((len(LENGTHS), SIZE + 1, SIZE))
  counts = eisner.total(ones, jnp.asarray(LENGTHS), semirings.COUNTING)
  found = [len(reference.projective_trees(n)) for n in range(1, 6)]
  assert found == [1, 2, 7, 30, 143]
  np.testing.assert_array_equal(counts, [*found, 0])


def test_totals_are_those_of_enumeration(arcs):
  logs = eisner.total(jnp.asarray(arcs), LENGTHS, semirings.LOG)
  best = eisner.total(jnp.asarray(arcs), LENGTHS, semirings.MAX).score
  three = eisner.total(jnp.asarray(arcs), LENGTHS, semirings.kbest(3))
  for row, length in enumerate(LENGTHS[:-1]):
    trees = reference.projective_trees(length)
    scores = sorted(reference.score(t, arcs[row]) for t in trees)[::-1]
    np.testing.assert_allclose(
      logs[row], np.logaddexp.reduce(scores), rtol=1e-5
    )
    np.testing.assert_allclose(best[row], scores[0], rtol=1e-5)
    wanted = (scores + [-np.inf] * 3)[:3]
    np.testing.assert_allclose(three[row], wanted, rtol=1e-5)
  assert logs[-1] == best[-1] == -np.inf


def test_gradients_are_posteriors_and_best_trees(arcs):
  posteriors = np.asarray(eisner.marginals(jnp.asarray(arcs), LENGTHS))
  heads = np.asarray(eisner.best_trees(jnp.asarray(arcs), LENGTHS))
  for row, length in enumerate(LENGTHS[:-1]):
    trees = reference.projective_trees(length)
    scores = np.array([reference.score(t, arcs[row]) for t in trees])
    weights = np.exp(scores - np.logaddexp.reduce(scores))
    wanted = np.zeros((SIZE + 1, SIZE))
    for tree, weight in zip(trees, weights, strict=True):
      for child, head in enumerate(tree):
        wanted[head + 1, child] += weight
    np.testing.assert_allclose(posteriors[row], wanted, atol=1e-5)
    assert tuple(heads[row, :length]) == trees[int(np.argmax(scores))]
  assert not posteriors[-1].any()


def test_ties_give_a_tree():
  heads = eisner.best_trees(jnp.zeros((2, 9, 8)), jnp.array([8, 5]))
  assert reference.is_tree(np.asarray(heads[0]))
  assert reference.is_tree(np.asarray(heads[1, :5]))


def test_padding_changes_nothing(arcs):
  rng = np.random.default_rng(1)
  wide = rng.normal(size=(len(LENGTHS), 9, 8)).astype(np.float32)
  wide[:, : SIZE + 1, :SIZE] = arcs
  for semiring in (semirings.LOG, semirings.MAX):
    one = eisner.total(jnp.asarray(arcs), LENGTHS, semiring)
    other = eisner.total(jnp.asarray(wide), LENGTHS, semiring)
    np.testing.assert_array_equal(
      jax.tree.leaves(one)[0], jax.tree.leaves(other)[0]
    )
  slopes = np.asarray(eisner.marginals(jnp.asarray(wide), LENGTHS))
  assert not slopes[:, SIZE + 1 :].any() and not slopes[:, :, SIZE:].any()


def test_least_risk_trees_have_the_largest_posteriors(arcs):
  posteriors = np.asarray(eisner.marginals(jnp.asarray(arcs), LENGTHS))
  heads = np.asarray(eisner.risk_trees(jnp.asarray(arcs), LENGTHS))
  trees = reference.projective_trees(5)
  gains = [reference.score(tree, posteriors[4]) for tree in trees]
  assert tuple(heads[4]) == trees[int(np.argmax(gains))]


def test_projective_trees_are_recognised():
  size = 4
  rng = np.random.default_rng(2)
  rows = [rng.integers(-1, size, size) for _ in range(400)]
  rows = [r for r in rows if reference.is_tree(r)]
  found = eisner.projective(from_rows(rows))
  assert found.any() and not found.all()
  assert found.tolist() == [reference.is_projective(r) for r in rows]


def test_the_parser_lowers(arcs):
  for program in (eisner.best_trees, eisner.marginals):
    for text in util.lowered(program, jnp.asarray(arcs), jnp.asarray(LENGTHS)):
      assert "stablehlo" in text
