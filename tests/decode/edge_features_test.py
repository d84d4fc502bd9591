"""Features of edges against scores, and against features of derivations."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import derivation
from jaxmt.decode.edge_features import edge_features
from jaxmt.hypergraph import select
from tests.reference import forests


def to_derivations(made, chosen):
  """Chosen edges of each sentence (preorder, goal first) as `Derivations`."""
  columns, offsets = [], [0]
  for edges in chosen:
    first = offsets[-1]
    rows = edges[1:]  # the goal is not a node of a derivation
    for edge in rows:
      head = int(np.searchsorted(made.edge_offsets, edge, side="right")) - 1
      begin, end = made.nodes.begin[head], made.nodes.end[head]
      columns.append([made.edges.rule[edge], begin, end, head])
    offsets.append(first + len(rows))
  table = np.array(columns, np.int32).reshape(-1, 4)
  child = np.full((len(table), made.tails.shape[1]), -1, np.int32)
  flat = [edge for edges in chosen for edge in edges[1:]]

  def place(position):
    """Fills in the children of the node at `position`: returns the next."""
    following = position + 1
    for part, tail in enumerate(made.tails[flat[position]]):
      if tail >= 0:
        child[position, part] = following
        following = place(following)
    return following

  for row, edges in enumerate(chosen):
    if edges:
      assert place(offsets[row]) == offsets[row + 1]
  return derivation.Derivations(
    offsets=np.array(offsets, np.int64),
    rule=table[:, 0].copy(),
    begin=table[:, 1].copy(),
    end=table[:, 2].copy(),
    child=child,
    score=np.zeros(len(chosen), np.float32),
  )


def check(model, source, made, seed):
  """Values times weights are scores, their sums those of derivations."""
  values = edge_features(model, source, made)
  assert values.shape == (made.num_edges, len(model.feature_names))
  weights = np.array([model.weights.get(n, 0) for n in model.feature_names])
  np.testing.assert_allclose(values @ weights, made.score, atol=2e-5)
  rng = np.random.default_rng(seed)
  every = [every or [[]] for every in forests.enumerated(made)]
  for _ in range(5):
    chosen = [ways[int(rng.integers(len(ways)))] for ways in every]
    built = to_derivations(made, chosen)
    words = derivation.read_off(model, built).words
    want = derivation.features(model, source, built, words)
    got = np.stack([values[edges].sum(0) for edges in chosen])
    np.testing.assert_allclose(got, want, atol=2e-5)


@pytest.mark.parametrize("order", [2, 3])
def test_values_add_up_to_scores_and_derivations(order):
  for seed in range(8):
    _, model, source, made = forests.decoded(seed, order=order, arity=2)
    check(model, source, made, seed)


@pytest.mark.parametrize("order", [1, 4])
def test_values_of_joint_grammars(order):
  wide = 0
  for seed in range(16):
    one = forests.joint(seed, order=order)
    check(one.model, one.source, one.made, seed)
    wide += (one.made.tails >= 0).all(1).sum()
  assert wide > 20  # edges of rules with five sites


def test_search_features_may_be_columns_of_the_table():
  _, model, source, made = forests.decoded(3, order=2, arity=2)
  table = dataclasses.replace(model.table, feature_names=("score", "Match"))
  table = dataclasses.replace(
    table, features=np.ones((len(table), 2), np.float32)
  )
  model = dataclasses.replace(model, table=table)
  values = edge_features(model, source, made)
  match = model.feature_names.index("Match")
  goal = made.edges.rule == len(table)
  np.testing.assert_array_equal(values[:, match], made.edges.matched + ~goal)


def test_no_edges():
  _, model, source, made = forests.decoded(0)
  none, _ = select(made, [])
  assert edge_features(model, source, none).shape == (
    0,
    len(model.feature_names),
  )
