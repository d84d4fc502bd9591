"""Sparse vectors, templates, selection, summary features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.features import selection, sparse

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
