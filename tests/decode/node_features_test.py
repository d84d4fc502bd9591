"""Features of the parts of derivations add up, and are those of hypotheses."""

import numpy as np
import pytest

from jaxmt.decode import (
  derivation,
  derivation_rows,
  node_features,
  translation_forest,
)
from jaxmt.hypergraph import viterbi
from jaxmt.train.theta_config import ThetaConfig
from tests.reference import tiny_training as tiny


@pytest.fixture(scope="module")
def searched():
  """Model, sentences, forest, best derivations, and their nodes' heads."""
  model, bitext = tiny.make()
  config = ThetaConfig(alpha1=0.0, alpha2=0.0)
  _, forest = tiny.forests(model, bitext, config)
  found = translation_forest.kbest(model, bitext.source, forest, size=1)
  below = np.ones(len(found.edges.flat), bool)
  below[found.edges.offsets[:-1]] = False  # the goal
  edges = found.edges.flat[below]
  heads = np.searchsorted(forest.edge_offsets, edges, side="right") - 1
  best = translation_forest.derivations(forest, found)
  return model, bitext.source, forest, best, heads


def test_partial_scores_are_those_of_hypotheses(searched):
  model, source, forest, best, heads = searched
  got = node_features.partial_scores(model, source, best)
  there = viterbi(forest, forest.score)
  np.testing.assert_allclose(got, there.score[heads], atol=1e-4)


def test_nodes_and_goals_add_up_to_the_derivations(searched):
  model, source, _, best, _ = searched
  values, goal = node_features.node_features(model, source, best)
  row = np.repeat(np.arange(len(best)), np.diff(best.offsets))
  total = goal.copy()
  np.add.at(total, row, values)
  words = derivation.read_off(model, best).words
  want = translation_forest.derivation_features(model, source, best, words)
  np.testing.assert_allclose(total, want, atol=1e-6)
  assert np.abs(goal).sum() > 0  # the end of the sentence


def test_glue_is_told_from_other_rules(searched):
  model, _, _, best, _ = searched
  glue = node_features.is_glue(model, best.rule)
  assert glue[best.offsets[:-1]].all() and not glue.all()
  copy = np.array([len(model.table) + 1])
  assert not node_features.is_glue(model, copy).any()


def test_derivations_in_another_order_and_back(searched):
  model, _, _, best, _ = searched
  order = np.array([4, -1, 0, 4])
  some = derivation_rows.in_order([best], order, arity=model.arity)
  words = derivation.read_off(model, some).words
  want = derivation.read_off(model, best).words
  for place, row in enumerate(order.tolist()):
    given = want[row] if row >= 0 else []
    np.testing.assert_array_equal(words[place], given)
  assert some.score[1] == 0
  turned = derivation_rows.by_row(
    [derivation_rows.select(best, np.arange(len(best))[::-1])],
    [np.arange(len(best))[::-1]],
    size=len(best),
    arity=model.arity,
  )
  np.testing.assert_array_equal(turned.child, best.child)
  np.testing.assert_array_equal(turned.offsets, best.offsets)


def test_arrays_give_the_derivations_back_or_are_refused(searched):
  best = searched[3]
  nodes = derivation_rows.to_array(best)
  read = derivation_rows.from_array(nodes, best.offsets, best.score)
  np.testing.assert_array_equal(read.child, best.child)
  np.testing.assert_array_equal(read.rule, best.rule)
  bad = nodes.copy()
  bad[1, 3] = 0  # a child before its parent
  with pytest.raises(ValueError, match="before its parent"):
    derivation_rows.from_array(bad, best.offsets, best.score)
  bad[1, 3] = len(nodes) + 5
  with pytest.raises(ValueError, match="elsewhere"):
    derivation_rows.from_array(bad, best.offsets, best.score)
  with pytest.raises(ValueError, match="offsets"):
    derivation_rows.from_array(nodes, best.offsets[:-1], best.score)


def test_order_of_no_derivations_is_one_of_empty_ones():
  some = derivation_rows.in_order([], np.array([-1, -1, -1]), arity=2)
  assert some.offsets.tolist() == [0, 0, 0, 0]
  assert some.child.shape == (0, 2)
  assert not some.score.any()
