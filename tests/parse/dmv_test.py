import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.hypergraph import semirings
from jaxmt.parse import dmv, dmv_kernel, eisner
from jaxmt.parse.dmv import TagBatch
from tests.reference import dependency_trees as reference

TAGS = np.array([[2, 0, 1, 1], [1, 2, 0, 0], [0, 0, 0, 0], [1, 0, 2, 1]])
LENGTHS = np.array([4, 2, 0, 4], np.int32)
BATCH = TagBatch(
  tags=TAGS.astype(np.int32),
  lengths=LENGTHS,
  weight=np.array([1, 3, 1, 1], np.float32),
)


def probabilities(model, row):
  """All trees of a sentence and their joint probabilities with it."""
  root, child, stop = map(np.asarray, (model.root, model.child, model.stop))
  trees = reference.projective_trees(LENGTHS[row])
  return trees, np.array(
    [
      reference.dmv_probability(tree, TAGS[row], root, child, stop)
      for tree in trees
    ]
  )


def test_inside_is_enumeration():
  model = dmv.random(3, 5)
  found = np.exp(dmv.log_likelihoods(model, BATCH))
  wanted = [probabilities(model, row)[1].sum() for row in (0, 1, 3)]
  np.testing.assert_allclose(found[[0, 1, 3]], wanted, rtol=1e-4)


def test_expected_counts_are_those_of_enumeration():
  model = dmv.random(3, 6)
  counts, _ = jax.jit(dmv.expected_counts)(model, BATCH)
  root, child = np.zeros(3), np.zeros((2, 3, 3))
  stop = np.zeros((2, 3, 2, 2))
  for row in (0, 1, 3):
    trees, joint = probabilities(model, row)
    shares = joint / joint.sum() * BATCH.weight[row]
    for tree, share in zip(trees, shares, strict=True):
      for word, head in enumerate(tree):
        tag = TAGS[row, word]
        if head < 0:
          root[tag] += share
        else:
          child[int(head < word), TAGS[row, head], tag] += share
        for side in (0, 1):
          own = [
            c for c, h in enumerate(tree) if h == word and (c > word) == side
          ]
          stop[side, tag, int(bool(own)), 0] += share
          stop[side, tag, 0, 1] += share * bool(own)
          stop[side, tag, 1, 1] += share * max(len(own) - 1, 0)
  np.testing.assert_allclose(counts.root, root, atol=1e-4)
  np.testing.assert_allclose(counts.child, child, atol=1e-4)
  np.testing.assert_allclose(counts.stop, stop, atol=1e-4)


def test_the_kernel_counts_the_same():
  rng = np.random.default_rng(3)
  lengths = rng.integers(0, 8, 30).astype(np.int32)
  batch = TagBatch(
    tags=rng.integers(0, 4, (30, 7)).astype(np.int32),
    lengths=lengths,
    weight=rng.integers(0, 4, 30).astype(np.float32),
  )
  model = dmv.random(4, 8)
  model = dataclasses.replace(model, child=model.child.at[0, 1, 2].set(0.0))
  wanted, value = jax.jit(dmv.expected_counts)(model, batch)
  *counts, found = dmv_kernel.expected_counts(
    *(np.asarray(x, np.float64) for x in (model.root, model.child, model.stop)),
    *(batch.tags, batch.lengths, batch.weight),
  )
  np.testing.assert_allclose(found, value, rtol=1e-5)
  for one, other in zip(
    counts, (wanted.root, wanted.child, wanted.stop), strict=True
  ):
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_the_kernel_does_not_underflow_in_long_sentences():
  rng = np.random.default_rng(4)
  tags = rng.integers(0, 4, (1, 60)).astype(np.int32)
  batch = TagBatch(
    tags=tags, lengths=np.array([60], np.int32), weight=np.ones(1, np.float32)
  )
  model = dmv.random(4, 9)
  root, child, stop, value = dmv_kernel.expected_counts(
    *(np.asarray(x, np.float64) for x in (model.root, model.child, model.stop)),
    *(batch.tags, batch.lengths, batch.weight),
  )
  np.testing.assert_allclose(root.sum() + child.sum(), 60, rtol=1e-6)
  np.testing.assert_allclose(stop[..., 0].sum(), 120, rtol=1e-6)
  expected = dmv.log_likelihoods(model, batch)[0]
  np.testing.assert_allclose(value, expected, rtol=1e-4)


def test_sums_too_small_for_a_number_are_taken_in_logarithms():
  # Every word wants a tag as its dependent that the sentence does not have.
  child = jnp.zeros((2, 2, 2)).at[:, 0, 1].set(1.0).at[:, 1, 0].set(1.0)
  model = dmv.Dmv(
    root=jnp.array([1.0, 0.0]), child=child, stop=jnp.full((2, 2, 2), 0.5)
  )
  tags, lengths = np.zeros((1, 40), np.int32), np.array([40], np.int32)
  *_, value = dmv_kernel.expected_counts(
    *(np.asarray(x, np.float64) for x in (model.root, model.child, model.stop)),
    *(tags, lengths, np.ones(1)),
  )
  assert value == -np.inf
  batches = TagBatch(
    tags=tags[None], lengths=lengths[None], weight=np.ones((1, 1), np.float32)
  )
  found, wanted = (
    dmv.fit(model, batches, iterations=2, kernel=kernel)[1]
    for kernel in (True, False)
  )
  np.testing.assert_allclose(found, wanted, rtol=1e-3)
  heads = dmv.least_risk_trees(model, tags, lengths, kernel=True)
  assert reference.is_tree(heads[0])


def test_first_arcs_of_equal_value_change_nothing():
  rng = np.random.default_rng(0)
  arcs = jnp.asarray(rng.normal(size=(3, 6, 5)), jnp.float32)
  lengths = jnp.array([5, 3, 1])
  plain = eisner.total(arcs, lengths, semirings.LOG)
  both = eisner.total(arcs, lengths, semirings.LOG, first=arcs)
  np.testing.assert_allclose(plain, both, rtol=1e-5)


@pytest.mark.parametrize(
  ("start", "kernel"), [("random", True), ("random", False), ("harmonic", True)]
)
def test_likelihood_never_falls(start, kernel):
  rng = np.random.default_rng(1)
  lengths = rng.integers(1, 6, (2, 20)).astype(np.int32)
  batches = TagBatch(
    tags=rng.integers(0, 4, (2, 20, 5)).astype(np.int32),
    lengths=lengths,
    weight=rng.integers(1, 4, (2, 20)).astype(np.float32),
  )
  model = dmv.random(4, 2) if start == "random" else dmv.harmonic(batches, 4)
  for part in (model.root, model.child):
    np.testing.assert_allclose(np.sum(part, axis=-1), 1, rtol=1e-5)
  _, history = dmv.fit(model, batches, iterations=25, kernel=kernel)
  steps = np.diff(history)
  assert steps.min() > -1e-3 and history[-1] > history[0] + 1


@pytest.mark.parametrize("kernel", [True, False])
def test_trees_of_least_risk_have_most_expected_arcs(kernel):
  model = dmv.random(3, 7)
  heads = dmv.least_risk_trees(model, BATCH.tags, LENGTHS, kernel=kernel)
  for row in (0, 3):
    trees, joint = probabilities(model, row)
    trees = np.array(trees)
    agree = (trees[:, None] == trees[None]).sum(-1)
    gains = agree @ (joint / joint.sum())
    np.testing.assert_array_equal(heads[row], trees[np.argmax(gains)])


@pytest.mark.parametrize("numpy", [False, True])
def test_counts_that_rounding_left_below_zero(numpy):
  like = np.asarray if numpy else jnp.asarray
  counts = dmv.Dmv(
    root=like([1.0, -1e-9]),
    child=like(np.ones((2, 2, 2))),
    stop=like(np.full((2, 2, 2, 2), [2.0, -1e-9])),
  )
  found = dmv.normalised(counts, numpy=numpy)
  np.testing.assert_array_equal(found.root, [1, 0])
  np.testing.assert_array_equal(found.stop, np.ones((2, 2, 2)))
