"""Kernels that learners share."""

import numpy as np
import pytest

from jaxmt.features import sparse
from jaxmt.tune import learning
from tests.tune import small_pool


def test_differences_of_sparse_rows():
  made = small_pool.make(5, sparse_features=9)
  full = sparse.to_dense(made.features, len(made.names))
  features = learning.features_of(made)
  room = learning.room(made)
  ids, values = np.empty(room, np.int64), np.empty(room)
  rng = np.random.default_rng(0)
  weights = rng.normal(size=len(made.names))
  for good, bad in rng.integers(0, len(made), (50, 2)):
    size = learning.subtract(features, good, bad, ids, values)
    dense = np.zeros(len(made.names))
    dense[ids[:size]] = values[:size]
    np.testing.assert_allclose(dense, full[good] - full[bad])
    assert (values[:size] != 0).all()
    assert learning.score(features, weights, good) == pytest.approx(
      full[good] @ weights
    )
