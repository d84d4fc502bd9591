"""The k best derivations of random forests against every derivation."""

import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from jaxmt.hypergraph import EdgeStrings, kbest, sum_values
from jaxmt.text.ragged import from_rows
from tests.reference import forests


def worded(made, seed):
  """Strings of edges: up to two words among the tails."""
  rng = np.random.default_rng(seed)
  target = []
  for tails in made.tails:
    row = [-1 - k for k in range(int((tails >= 0).sum()))]
    row += rng.integers(4, 7, size=int(rng.integers(0, 3))).tolist()
    target.append([row[k] for k in rng.permutation(len(row))])
  # Strings of one symbol may stand apart, as those of copied words do.
  single = [k for k, row in enumerate(target) if len(row) == 1 and k % 2]
  number = np.arange(len(target), dtype=np.int32)
  number[single] = len(target) + np.arange(len(single))
  strings = EdgeStrings(
    row=number,
    symbols=from_rows(target),
    extra=np.array([target[k][0] for k in single], np.int32),
  )
  return strings, target


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
  strings, target = worded(made, seed)
  found = kbest(made, size=size, strings=strings)
  unique = kbest(made, size=size, strings=strings, unique=True, threads=2)
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
  other = np.random.default_rng(5).normal(size=len(made.score))
  other = other.astype(np.float32)
  found = kbest(made, size=9, scores=other)
  again = kbest(forests.with_scores(made, other), size=9)
  np.testing.assert_array_equal(found.edges.flat, again.edges.flat)
  np.testing.assert_allclose(found.score, sum_values(found.edges, other))
  none = np.where(np.arange(len(other)) % 2, other, -np.inf)
  assert np.isfinite(kbest(made, size=9, scores=none).score).all()
  assert not len(found.words.flat)  # there are no strings


def test_diverse_lists_are_the_greedy_choice():
  weight, size = 0.25, 4
  for seed in range(20):
    made = forests.random_forest(seed, nodes=7, fan=4, sentences=2)
    strings, _ = worded(made, seed)
    pool = kbest(made, size=10 * size, strings=strings, unique=True)
    got = kbest(made, size=size, strings=strings, diversity=weight)
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
  strings, _ = worded(made, 7)
  shared = []
  for weight in (0.0, 2.0):
    found = kbest(made, size=5, strings=strings, unique=True, diversity=weight)
    total = 0
    for row in range(len(made)):
      lists = [
        set(itertools.pairwise([0, *found.words[k].tolist(), 1]))
        for k in range(found.offsets[row], found.offsets[row + 1])
      ]
      total += sum(len(a & b) for a, b in itertools.combinations(lists, 2))
    shared.append(total)
  assert shared[1] < shared[0]


def test_wrong_arguments():
  made = forests.random_forest(3)
  strings, _ = worded(made, 0)
  with pytest.raises(ValueError, match="size 0"):
    kbest(made, size=0)
  with pytest.raises(ValueError, match="diversity"):
    kbest(made, size=2, strings=strings, diversity=-1)
  with pytest.raises(ValueError, match="edges"):
    kbest(made, size=2, scores=np.zeros(1))
  with pytest.raises(ValueError, match="need the strings"):
    kbest(made, size=2, unique=True)
  with pytest.raises(ValueError, match="edge strings"):
    kbest(made, size=2, strings=worded(made[0], 0)[0])
