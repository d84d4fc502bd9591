"""The diagonal model's closed form against plain sums."""

import numpy as np
import pytest

from jaxmt.align import diagonal


@pytest.mark.parametrize("tension", [0.1, 4.0, 14.0])
def test_partition_equals_the_sum(tension):
  for generated in (1, 2, 5, 9):
    for conditioning in (1, 3, 5, 40):
      j = np.arange(1, generated + 1)
      i = np.arange(1, conditioning + 1)
      h = -np.abs(i[None] / conditioning - j[:, None] / generated)
      value, slope = diagonal.partition(tension, j, generated, conditioning)
      terms = np.exp(tension * h)
      np.testing.assert_allclose(value, terms.sum(axis=1), rtol=1e-10)
      np.testing.assert_allclose(
        slope, (h * terms).sum(axis=1), rtol=1e-8, atol=1e-10
      )


def test_partition_slope_is_the_derivative():
  j, generated, conditioning = np.arange(1, 8), 7, 5
  above, _ = diagonal.partition(3.0 + 1e-5, j, generated, conditioning)
  below, _ = diagonal.partition(3.0 - 1e-5, j, generated, conditioning)
  _, slope = diagonal.partition(3.0, j, generated, conditioning)
  np.testing.assert_allclose((above - below) / 2e-5, slope, rtol=1e-6)
