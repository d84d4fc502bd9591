"""Candidate lists: building, choosing, joining."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.features import sparse
from jaxmt.text import ragged


def random_lists(seed, *, names="xyz", size=9, sentences=5):
  """Candidates in random order, with every field."""
  rng = np.random.default_rng(seed)
  values = rng.integers(0, 3, (size, len(names))).astype(float)
  return candidate_lists.from_rows(
    rng.integers(0, sentences, size),
    [f"line {seed} {number}" for number in range(size)],
    sparse.from_dense(values),
    names,
    sentences=sentences,
    score=np.arange(size) + 100.0 * seed,
    links=ragged.from_rows([[number] * (number % 3) for number in range(size)]),
    derivations=[(f"({number})",) for number in range(size)],
    statistics={"bleu": np.arange(size)[:, None]},
  )


def described(lists):
  """Every candidate as plain values, in order."""
  rows = lists.features
  out = []
  for row in range(len(lists)):
    span = slice(rows.offsets[row], rows.offsets[row + 1])
    pairs = zip(rows.ids[span], rows.values[span], strict=True)
    out.append(
      (
        int(lists.sentence[row]),
        lists.lines[row],
        {lists.names[number]: value for number, value in pairs},
        float(lists.score[row]),
        lists.links[row].tolist(),
        lists.derivations[row],
        lists.statistics["bleu"][row].tolist(),
      )
    )
  return out


def test_candidates_are_put_in_order_of_sentences():
  lists = random_lists(0)
  assert (np.diff(lists.sentence) >= 0).all()
  numbers = [int(line.split()[-1]) for line in lists.lines]
  for sentence in range(lists.sentences):
    low, high = lists.offsets[sentence], lists.offsets[sentence + 1]
    assert (lists.sentence[low:high] == sentence).all()
    assert numbers[low:high] == sorted(numbers[low:high])
  assert lists.score.tolist() == numbers  # all fields move together
  assert lists.offsets[-1] == len(lists)
  with pytest.raises(ValueError, match="sentence 7 of 3"):
    candidate_lists.from_rows([7], ["a"], sparse.empty(1), (), sentences=3)


def test_dense_features_are_features():
  lists = random_lists(1)
  rows = sparse.to_dense(lists.features, 3)
  thin = sparse.from_dense(rows[:, 1:])
  split = dataclasses.replace(lists, dense=rows[:, :1], sparse=thin)
  assert described(split) == described(lists)


def test_concatenation_equals_sorting_all_candidates():
  first, second = random_lists(2), random_lists(3, names="zwx", sentences=7)
  both = candidate_lists.concatenate([first, second])
  expected = sorted(described(first) + described(second), key=lambda c: c[0])
  assert described(both) == expected
  assert (both.names, both.sentences) == (("x", "y", "z", "w"), 7)
  bare = dataclasses.replace(second, score=None, statistics={})
  joined = candidate_lists.concatenate([first, bare])
  assert joined.score is None and not joined.statistics
  assert joined.derivations == both.derivations


def test_sentences_are_renumbered():
  lists = random_lists(4)
  some = candidate_lists.take_sentences(lists, np.array([3, 0]))
  whole = described(lists)
  expected = [(0, *row[1:]) for row in whole if row[0] == 3]
  expected += [(1, *row[1:]) for row in whole if row[0] == 0]
  assert described(some) == expected and some.sentences == 2
  none = candidate_lists.take_sentences(lists, np.array([], int))
  assert (len(none), none.sentences) == (0, 0)


def test_short_lists_begin_alike():
  lists = random_lists(5)
  short = candidate_lists.shorten(lists, 2)
  whole = described(lists)
  expected = []
  for sentence in range(lists.sentences):
    expected += [row for row in whole if row[0] == sentence][:2]
  assert described(short) == expected


def test_further_features():
  lists = random_lists(6)
  more = sparse.from_dense(np.arange(9.0)[:, None])
  wide = candidate_lists.with_features(lists, [(more, ("new",))])
  values = sparse.to_dense(wide.features, 4)
  np.testing.assert_array_equal(
    values[:, :3], sparse.to_dense(lists.features, 3)
  )
  assert values[:, 3].tolist() == list(range(9))
  twice = candidate_lists.with_features(wide, [(more, ("new",))])
  assert twice.names == wide.names
  values = sparse.to_dense(twice.features, 4)
  assert values[:, 3].tolist() == [2.0 * n for n in range(9)]
  split = dataclasses.replace(
    lists, dense=np.ones((9, 1)), names=("new", *"xyz")
  )
  with pytest.raises(ValueError, match="already"):
    candidate_lists.with_features(split, [(more, ("new",))])
  with pytest.raises(ValueError, match="8 rows for 9"):
    candidate_lists.with_features(lists, [(sparse.empty(8), ("v",))])


def test_vectors():
  vector = candidate_lists.to_vector({"b": 2.0, "x": 1.0}, ["a", "b", "c"])
  assert vector.tolist() == [0, 2, 0]
  names = ["a", "b", "c"]
  assert candidate_lists.from_vector(vector, names) == {
    "a": 0.0,
    "b": 2.0,
    "c": 0.0,
  }
  assert candidate_lists.from_vector(vector, names, keep=1) == {
    "a": 0.0,
    "b": 2.0,
  }
