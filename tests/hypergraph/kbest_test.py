"""The k best derivations against every derivation there is."""

import dataclasses
import itertools
import types

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from jaxmt.decode import derivation, derivation_text
from jaxmt.decode.chart import decoder
from jaxmt.decode.edge_features import edge_features
from jaxmt.grammar import table as tables
from jaxmt.hypergraph import forest, kbest
from jaxmt.text.ragged import from_rows
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
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
    made = forest.extract(model, result)
    every = [
      forests.enumerate_case(case, row) for row in range(len(case.sentences))
    ]
    check_lists(model, result.source, made, every, result.best())


def check_lists(model, source, made, every, viterbi):
  """Compares lists, all and unique ones, with all derivations there are."""
  found = kbest.best(model, source, made, size=ALL)
  texts = kbest.strings(model, source, found)
  unique = kbest.best(model, source, made, size=ALL, unique=True)
  unique_texts = kbest.strings(model, source, unique)
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
  values = kbest.features(found, edge_features(model, source, made))
  np.testing.assert_allclose(values @ weights, found.score, atol=2e-4)
  every = kbest.derivations(made, found)
  yields = derivation.read_off(model, every)
  assert derivation.strings(model, source, yields.words) == texts
  again = derivation.features(model, source, every, yields.words)
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
  found = kbest.best(model, source, made, size=20)
  every = kbest.derivations(made, found)
  trees = derivation_text.tree_lines(model, source, every)
  for some in rows(found, trees):
    assert len(set(some)) == len(some)
    assert all(one.startswith("(S[0:") for one in some)
  assert len(trees) > len(found)


def worded(made, seed):
  """Rules for a forest without grammar: two words among the tails."""
  rng = np.random.default_rng(seed)
  target = []
  for tails in made.tails:
    row = [-1 - k for k in range(int((tails >= 0).sum()))]
    row += rng.integers(4, 7, size=int(rng.integers(0, 3))).tolist()
    target.append([row[k] for k in rng.permutation(len(row))])
  vocabulary = Vocabulary(words=(*SPECIALS, "a", "b", "c"))
  table = tables.make_table(
    source_words=vocabulary,
    target_words=vocabulary,
    source=from_rows([[4]] * len(target)),
    target=from_rows(target),
  )
  model = types.SimpleNamespace(table=table)
  return model, target


class Sentences:
  """Only as many as there are forests."""

  words = ()

  def __init__(self, size):
    self.size = size

  def __len__(self):
    return self.size


def say(made, target, edges):
  """The words of edges in preorder, by recursion."""
  edges = iter(edges)

  def one():
    edge = next(edges)
    parts = [one() for tail in made.tails[edge] if tail >= 0]
    return [
      word
      for symbol in target[edge]
      for word in (parts[-1 - symbol] if symbol < 0 else [symbol])
    ]

  return tuple(one())


@hypothesis.settings(max_examples=250)
@hypothesis.given(
  seed=strategies.integers(0, 10**6),
  arity=strategies.integers(1, 5),
  fan=strategies.integers(1, 4),
  whole=strategies.booleans(),
  size=strategies.sampled_from([1, 2, 7, 600]),
)
def test_any_forest_any_size(seed, arity, fan, whole, size):
  made = forests.random_forest(seed, nodes=5, arity=arity, fan=fan)
  if whole:  # many ties
    made = forests.with_scores(made, np.round(made.score))
  model, target = worded(made, seed)
  source = Sentences(len(made))
  found = kbest.best(model, source, made, size=size)
  unique = kbest.best(model, source, made, size=size, unique=True, threads=2)
  own = found.edges, found.words, found.score
  score = made.score.astype(np.float64)
  for row, every in enumerate(forests.enumerated(made)):
    if every is None:
      continue
    totals = sorted((score[one].sum() for one in every), reverse=True)
    low, high = found.offsets[row], found.offsets[row + 1]
    np.testing.assert_allclose(own[2][low:high], totals[:size], atol=1e-9)
    lists = {tuple(one) for one in every}
    got = [tuple(own[0][k].tolist()) for k in range(low, high)]
    assert len(set(got)) == len(got) and set(got) <= lists
    for k, edges in zip(range(low, high), got, strict=True):
      np.testing.assert_allclose(score[list(edges)].sum(), own[2][k], atol=1e-9)
      assert tuple(own[1][k].tolist()) == say(made, target, edges)
    best = {}
    for one in every:
      text = say(made, target, one)
      best[text] = max(best.get(text, -np.inf), score[one].sum())
    low, high = unique.offsets[row], unique.offsets[row + 1]
    np.testing.assert_allclose(
      unique.score[low:high],
      sorted(best.values(), reverse=True)[:size],
      atol=1e-9,
    )
    texts = [tuple(unique.words[k].tolist()) for k in range(low, high)]
    assert len(set(texts)) == len(texts)
    for k, text in zip(range(low, high), texts, strict=True):
      np.testing.assert_allclose(best[text], unique.score[k], atol=1e-9)


def test_other_scores_order_the_list():
  made = forests.random_forest(11, nodes=6, fan=3, sentences=6)
  model, _ = worded(made, 0)
  source = Sentences(len(made))
  other = np.random.default_rng(5).normal(size=len(made.score))
  other = other.astype(np.float32)
  found = kbest.best(model, source, made, size=9, scores=other)
  again = kbest.best(model, source, forests.with_scores(made, other), size=9)
  np.testing.assert_array_equal(found.edges.flat, again.edges.flat)
  np.testing.assert_allclose(found.score, kbest.features(found, other))
  none = np.where(np.arange(len(other)) % 2, other, -np.inf)
  assert np.isfinite(
    kbest.best(model, source, made, size=9, scores=none).score
  ).all()


def test_diverse_lists_are_the_greedy_choice():
  weight, size = 0.25, 4
  for seed in range(20):
    made = forests.random_forest(seed, nodes=7, fan=4, sentences=2)
    model, _ = worded(made, seed)
    source = Sentences(len(made))
    pool = kbest.best(model, source, made, size=10 * size, unique=True)
    got = kbest.best(model, source, made, size=size, diversity=weight)
    for row in range(len(made)):
      items = [
        (pool.score[k], pool.words[k].tolist(), -k)
        for k in range(pool.offsets[row], pool.offsets[row + 1])
      ]
      want = sorted(greedy(items, size, weight), key=lambda item: -item[2])
      low, high = got.offsets[row], got.offsets[row + 1]
      np.testing.assert_allclose(got.score[low:high], [s for s, _, _ in want])
      assert [got.words[k].tolist() for k in range(low, high)] == [
        words for _, words, _ in want
      ]


def greedy(items, size, weight):
  """Gimpel et al.'s choice, spelt out."""
  pairs = lambda words: list(itertools.pairwise(["<s>", *words, "</s>"]))
  left, chosen = list(items), []
  while left and len(chosen) < size:
    value = lambda item: (
      item[0]
      - weight
      * sum(
        pair in set(pairs(other))
        for _, other, _ in chosen
        for pair in pairs(item[1])
      )
    )
    best = max(left, key=value)
    left.remove(best)
    chosen.append(best)
  return chosen


def test_diverse_lists_share_less():
  made = forests.random_forest(7, nodes=7, fan=4, sentences=8)
  model, _ = worded(made, 7)
  source = Sentences(len(made))
  shared = []
  for weight in (0.0, 2.0):
    found = kbest.best(
      model, source, made, size=5, unique=True, diversity=weight
    )
    total = 0
    for row in range(len(made)):
      lists = [
        set(itertools.pairwise([0, *found.words[k].tolist(), 1]))
        for k in range(found.offsets[row], found.offsets[row + 1])
      ]
      total += sum(len(a & b) for a, b in itertools.combinations(lists, 2))
    shared.append(total)
  assert shared[1] < shared[0]


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
  made = forest.extract(model, result)
  found = kbest.best(model, result.source, made, size=10, unique=True)
  assert kbest.strings(model, result.source, found) == ["a a", "f a", "a a"]


def test_wrong_arguments():
  made = forests.random_forest(3)
  model, _ = worded(made, 0)
  source = Sentences(len(made))
  with pytest.raises(ValueError, match="size 0"):
    kbest.best(model, source, made, size=0)
  with pytest.raises(ValueError, match="diversity"):
    kbest.best(model, source, made, size=2, diversity=-1)
  with pytest.raises(ValueError, match="edges"):
    kbest.best(model, source, made, size=2, scores=np.zeros(1))
  with pytest.raises(ValueError, match="forests"):
    kbest.best(model, Sentences(99), made, size=2)
