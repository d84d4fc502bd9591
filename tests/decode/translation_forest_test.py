"""K-best lists of translation forests against every derivation there is."""

import dataclasses
import itertools

import numpy as np
import pytest

from jaxmt.decode import derivation, derivation_text, translation_forest
from jaxmt.decode.chart import beam_forest, decoder
from jaxmt.decode.translation_forest import edge_features
from jaxmt.hypergraph import select, sum_values
from tests.reference import chart_cases as cases
from tests.reference import forests

ALL = 400  # no sentence has more derivations


def rows(found, items):
  """What belongs to each sentence."""
  return [items[a:b] for a, b in itertools.pairwise(found.offsets)]


def assert_same_up_to_ties(got, want):
  """Equal scores; among equal scores the strings may change places."""
  assert len(got) == len(want)
  want = sorted(want, key=lambda item: -item[0])
  np.testing.assert_allclose(
    [score for score, _ in got], [score for score, _ in want], atol=5e-4
  )
  assert sorted(text for _, text in got) == sorted(text for _, text in want)
  for score, text in got:
    assert any(abs(score - s) < 1e-3 and text == t for s, t in want)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_lists_equal_the_sorted_enumeration(order):
  compared = wide = 0
  for seed in range(40):
    one = forests.joint(seed, order=order)
    check_lists(one.model, one.source, one.made, one.every, one.best)
    compared += len(one.every)
    wide += np.count_nonzero(one.wide)
  assert compared >= 130
  assert wide >= 45  # with rules of five sites


@pytest.mark.parametrize("order", [1, 3])
def test_lists_of_grammars_of_two_sites(order):
  for seed in range(20):
    case = cases.random_case(seed, order=order, arity=2)
    model, result = forests.decode(case, arity=2)
    made = beam_forest.extract(model, result)
    every = [
      forests.enumerate_case(case, row) for row in range(len(case.sentences))
    ]
    check_lists(model, result.source, made, every, result.best())


def check_lists(model, source, made, every, viterbi):
  """Compares lists, all and unique ones, with all derivations there are."""
  found = translation_forest.kbest(model, source, made, size=ALL)
  texts = translation_forest.strings(model, source, found)
  unique = translation_forest.kbest(model, source, made, size=ALL, unique=True)
  unique_texts = translation_forest.strings(model, source, unique)
  for row, (scores, lines, own_scores, own_lines) in enumerate(
    zip(
      rows(found, found.score),
      rows(found, texts),
      rows(unique, unique.score),
      rows(unique, unique_texts),
      strict=True,
    )
  ):
    want = [(one[0], " ".join(one[1])) for one in every[row]]
    np.testing.assert_allclose(scores[0], viterbi.score[row], atol=1e-4)
    assert len(want) <= ALL
    assert_same_up_to_ties(list(zip(scores, lines, strict=True)), want)
    first = {}
    for score, line in zip(scores, lines, strict=True):
      first.setdefault(line, score)
    assert len(own_lines) == len(first) == len(set(own_lines))
    for score, line in zip(own_scores, own_lines, strict=True):
      np.testing.assert_allclose(score, first[line], atol=1e-6)
    assert (np.diff(own_scores) <= 0).all()
  assert_consistent(model, source, made, found, texts)


def assert_consistent(model, source, made, found, texts):
  """Features, links and trees say what the list says."""
  weights = np.array([model.weights.get(n, 0) for n in model.feature_names])
  values = sum_values(found.edges, edge_features(model, source, made))
  np.testing.assert_allclose(values @ weights, found.score, atol=2e-4)
  every = translation_forest.derivations(made, found)
  yields = derivation.read_off(model, every)
  assert translation_forest.spell(model, source, yields.words) == texts
  again = translation_forest.derivation_features(
    model, source, every, yields.words
  )
  np.testing.assert_allclose(values, again, atol=2e-4)
  lengths = source.ids.lengths[found.sentence]
  for row in range(min(len(every), 50)):
    links = yields.links[row]
    assert (links >= 0).all()
    assert (links < [lengths[row], len(yields.words[row])]).all()
    first = every.offsets[row]
    assert (every.begin[first], every.end[first]) == (0, lengths[row])
  codes = [found.edges[k].tobytes() for k in range(len(every))]
  for some in rows(found, codes):
    assert len(set(some)) == len(some)


def test_trees_of_a_list_differ():
  _, model, source, made = forests.decoded(5, order=3, arity=2)
  found = translation_forest.kbest(model, source, made, size=20)
  every = translation_forest.derivations(made, found)
  trees = derivation_text.tree_lines(model, source, every)
  for some in rows(found, trees):
    assert len(set(some)) == len(some)
    assert all(one.startswith("(S[0:") for one in some)
  assert len(trees) > len(found)


def test_a_copied_word_equals_the_vocabulary_word():
  case = cases.random_case(1, order=3, arity=2)
  case = dataclasses.replace(
    case,
    rules=[("hiero", "X", ["f"], ["a"], -0.5)],
    sentences=[["f", "a"], ["a", "a"]],
    span=2,
  )
  model, source = cases.to_model(case, arity=2, pass_through="all")
  config = decoder.DecodeConfig(search=forests.CONFIG)
  ((result,),) = decoder.decode(model, source, config=config)
  made = beam_forest.extract(model, result)
  found = translation_forest.kbest(
    model, result.source, made, size=10, unique=True
  )
  assert translation_forest.strings(model, result.source, found) == [
    "a a",
    "f a",
    "a a",
  ]


def test_wrong_arguments():
  _, model, source, made = forests.decoded(5, order=3, arity=2)
  with pytest.raises(ValueError, match="4 sentences, 1 forests"):
    translation_forest.kbest(model, source, made[0], size=2)


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
    want = translation_forest.derivation_features(model, source, built, words)
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
