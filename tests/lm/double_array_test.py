import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.lm import double_array


def check_placement(rows, reserved):
  starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
  columns = np.array([c for row in rows for c in row], np.int32)
  order = np.argsort([-len(row) for row in rows], kind="stable")
  offsets, size = double_array.place_rows(starts, columns, order, reserved)
  taken = set(range(reserved))
  for offset, row in zip(offsets.tolist(), rows, strict=True):
    slots = {offset, *(offset + column for column in row)}
    assert len(slots) == len(row) + 1
    assert not slots & taken
    taken |= slots
  assert size == max(taken, default=-1) + 1
  return size


@given(
  st.lists(
    st.lists(st.integers(1, 300), unique=True, max_size=40), max_size=60
  ),
  st.integers(0, 200),
)
def test_no_two_rows_share_a_slot(rows, reserved):
  check_placement(rows, reserved)


def test_long_and_far_rows():
  rng = np.random.default_rng(0)
  rows = [rng.permutation(5000)[:n] + 1 for n in (4000, 900, 30, 2, 1, 0, 0)]
  check_placement([row.tolist() for row in rows], 5001)


def test_skewed_rows_leave_few_holes():
  rng = np.random.default_rng(1)
  rows = []
  for _ in range(3000):
    width = min(int(rng.zipf(1.6)), 500)
    rows.append(np.unique(np.minimum(rng.zipf(1.3, width), 2000)).tolist())
  size = check_placement(rows, 2001)
  used = 2001 + sum(len(row) + 1 for row in rows)
  assert used / size > 0.6
