"""Arrays that grow, and the hash."""

import numpy as np
import pytest

from jaxmt.text import kernels


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64])
def test_arrays_grow_at_least_twofold_and_keep_their_items(dtype):
  array = np.arange(5).astype(dtype)
  rows = np.arange(10).astype(dtype).reshape(5, 2)
  for grow, old in ((kernels.grown, array), (kernels.grown_rows, rows)):
    assert grow(old, 5) is old
    for needed, size in ((6, 10), (11, 11)):
      new = grow(old, needed)
      assert len(new) == size and new.dtype == dtype
      assert (new[:5] == old).all()


def test_the_generator_is_splitmix64():
  """The first numbers of its author's program for the seed 1234567."""
  state = np.uint64(1234567)
  found = []
  with np.errstate(over="ignore"):
    for _ in range(3):
      state = state + kernels.GOLDEN
      found.append(int(kernels.mixed(state)))
  assert found == [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
  ]
