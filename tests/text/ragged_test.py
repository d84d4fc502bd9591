import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.text import ragged

rows_of_numbers = st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=6)


def rows_of(value):
  return [value[row].tolist() for row in range(len(value))]


@given(rows_of_numbers)
def test_rows_come_back(rows):
  value = ragged.from_rows(rows)
  assert rows_of(value) == rows
  assert value.lengths.tolist() == [len(row) for row in rows]
  assert (value.flat.dtype, value.offsets.dtype) == (np.int32, np.int64)
  if rows:
    assert value[-1].tolist() == rows[-1]
  for outside in (len(rows), -len(rows) - 1):
    with pytest.raises(IndexError):
      value[outside]


@given(rows_of_numbers, st.data())
def test_select_equals_a_loop(rows, data):
  value = ragged.from_rows(rows)
  choice = st.integers(-len(rows), max(0, len(rows) - 1))
  picked = data.draw(st.lists(choice, max_size=6 if rows else 0))
  assert rows_of(ragged.select(value, picked)) == [rows[i] for i in picked]
  mask = data.draw(
    st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))
  )
  chosen = ragged.select(value, np.array(mask, np.bool_))
  assert rows_of(chosen) == [
    row for row, take in zip(rows, mask, strict=True) if take
  ]


def test_select_keeps_items_of_any_shape():
  value = ragged.Ragged(
    flat=np.arange(6).reshape(3, 2), offsets=np.array([0, 1, 3])
  )
  assert ragged.select(value, [1, 0]).flat.tolist() == [[2, 3], [4, 5], [0, 1]]
  padded, mask = ragged.pad(value, fill=-1)
  assert padded.tolist() == [[[0, 1], [-1, -1]], [[2, 3], [4, 5]]]
  assert mask.tolist() == [[True, False], [True, True]]


def test_select_refuses_what_is_not_there():
  value = ragged.from_rows([[1], [2, 3]])
  with pytest.raises(IndexError):
    ragged.select(value, [2])
  with pytest.raises(ValueError, match="mask of 1 for 2 rows"):
    ragged.select(value, np.array([True]))


@given(rows_of_numbers, st.integers(0, 3))
def test_padding_changes_nothing(rows, more):
  value = ragged.from_rows(rows)
  longest = max(map(len, rows), default=0)
  padded, mask = ragged.pad(value, width=longest + more, fill=77)
  assert padded.shape == mask.shape == (len(rows), longest + more)
  assert padded[mask].tolist() == value.flat.tolist()
  assert (padded[~mask] == 77).all()
  assert mask.sum(axis=1).tolist() == value.lengths.tolist()
  if longest:
    with pytest.raises(ValueError, match="does not fit"):
      ragged.pad(value, width=longest - 1)
