"""Sparse vectors, templates, selection, summary features."""

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.features import selection, sparse, string_templates
from jaxmt.tune import pool, pool_scores
from tests.tune import small_pool

entries = st.tuples(st.integers(0, 9), st.integers(-3, 3))
tables = st.lists(st.lists(entries, max_size=90), min_size=1, max_size=6)


def build(table):
  offsets = np.cumsum([0] + [len(row) for row in table])
  flat = [pair for row in table for pair in row]
  return sparse.canonical(
    np.array([f for f, _ in flat], np.int32),
    np.array([float(v) for _, v in flat]),
    offsets,
  )


def dense_table(table):
  out = np.zeros((len(table), 10))
  for number, row in enumerate(table):
    for feature, value in row:
      out[number, feature] += value
  return out


@given(tables)
def test_canonical_rows(table):
  rows = build(table)
  np.testing.assert_array_equal(sparse.to_dense(rows, 10), dense_table(table))
  assert (rows.values != 0).all()
  for low, high in zip(rows.offsets, rows.offsets[1:], strict=False):
    assert (np.diff(rows.ids[low:high]) > 0).all()
  ids, values = sparse.pad(rows)
  again = np.zeros_like(dense_table(table))
  np.add.at(again, (np.arange(len(table))[:, None], ids), values)
  np.testing.assert_array_equal(again, dense_table(table))


@given(tables, tables)
def test_operations_equal_dense_ones(table, other):
  rows, more = build(table), build(other)
  dense = dense_table(table)
  weights = np.arange(10.0) - 4
  np.testing.assert_allclose(sparse.dot(rows, weights), dense @ weights)
  both = sparse.concatenate([rows, more])
  np.testing.assert_array_equal(
    sparse.to_dense(both, 10), np.concatenate([dense, dense_table(other)])
  )
  kept = np.arange(len(table))[::-1]
  np.testing.assert_array_equal(
    sparse.to_dense(sparse.select(rows, kept), 10), dense[::-1]
  )
  move = np.array([3, -1, 0, -1, 1, 2, 4, -1, -1, 3])
  renamed = np.zeros((len(table), 5))
  for old, new in enumerate(move):
    if new >= 0:
      renamed[:, new] += dense[:, old]
  np.testing.assert_array_equal(
    sparse.to_dense(sparse.renumber(rows, move), 5), renamed
  )
  joined, names = selection.join([(rows, "abcdefghij"), (rows, "ABCDEFGHIJ")])
  assert len(names) == 20
  np.testing.assert_array_equal(
    sparse.to_dense(joined, 20), np.concatenate([dense, dense], 1)
  )


def test_pad_refuses_long_rows():
  with pytest.raises(ValueError, match="width"):
    sparse.pad(build([[(0, 1), (1, 1)]]), 1)
  assert sparse.to_dense(sparse.empty(3), 2).tolist() == [[0, 0]] * 3


def counted(rows, names):
  dense = sparse.to_dense(rows, len(names))
  return [
    {n: v for n, v in zip(names, row, strict=True) if v}
    for row in dense.tolist()
  ]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_ngrams(order):
  lines = ["a b a b", "", "b", "c a b"]
  expected = []
  for line in lines:
    words = line.split()
    if order > 1:
      words = ["<s>", *words, "</s>"]
    grams = zip(*(words[n:] for n in range(order)), strict=False)
    expected.append(collections.Counter("ngram:" + "_".join(g) for g in grams))
  assert (
    counted(*string_templates.target_ngrams(lines, order=order)) == expected
  )


def test_word_pairs():
  rows, names = string_templates.word_pairs(
    ["x y x", "z"], ["a b a", "", "b"], np.array([0, 0, 1])
  )
  assert counted(rows, names) == [
    {"pair:x_a": 2, "pair:x_b": 1, "pair:y_a": 2, "pair:y_b": 1},
    {},
    {"pair:z_b": 1},
  ]


def test_sentence_counts_see_only_what_varies():
  # Feature 0 is constant in sentence 0, missing once in sentence 1.
  rows = build(
    [[(0, 1), (1, 2)], [(0, 1), (1, 3)], [(0, 1)], [(2, 1)], [(3, 1)]]
  )
  counts = selection.sentence_counts(rows, np.array([0, 0, 1, 1, 2]), 4)
  assert counts.tolist() == [1, 1, 1, 0]
  kept = selection.most_frequent(counts, 2)
  assert kept.tolist() == [True, True, False, False]
  thin, names = selection.select(rows, "abcd", kept)
  assert names == ("a", "b")
  assert counted(thin, names)[0] == {"a": 1, "b": 2}


def test_summary_features_keep_the_scores():
  made = small_pool.make(0, sparse_features=8)
  rng = np.random.default_rng(0)
  weights = rng.normal(size=len(made.names))
  groups = np.arange(8) % 3
  folded = pool.summarised(made, weights, groups)
  assert folded.names[4:] == ("summary_0", "summary_1", "summary_2")
  np.testing.assert_allclose(
    pool_scores.scores(folded, np.concatenate([weights[:4], np.ones(3)])),
    pool_scores.scores(made, weights),
  )


def test_templates_join_a_pool():
  made = small_pool.make(0)
  rows, names = string_templates.target_ngrams(made.lines, order=1)
  wide = pool.with_sparse(made, rows, names)
  assert wide.names == (*made.names, *names)
  weights = np.ones(len(wide.names))
  lengths = [len(line.split()) for line in made.lines]
  np.testing.assert_allclose(
    pool_scores.scores(wide, weights), made.dense.sum(1) + lengths
  )
  with pytest.raises(ValueError, match="already"):
    pool.with_sparse(wide, rows, names)
