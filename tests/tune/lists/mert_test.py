"""MERT does not depend on threads, and leaves sparse weights alone."""

import numpy as np
import pytest

from jaxmt.tune import pool
from tests.tune import small_pool
from tests.tune.methods_test import quick


@pytest.mark.parametrize("variant", ["best", "powell"])
def test_mert_does_not_depend_on_threads(variant):
  made = small_pool.make(2)
  start = small_pool.start(made)
  results = []
  for threads in ("1", "3"):
    method = quick(
      "mert",
      threads=threads,
      variant=variant,
      random_directions="2",
      plateau="1",
      restarts="5",
    )
    tuned, history = method.optimise(made, start, method.config, 3)
    results.append(tuned)
    best = max(row["score"] for row in history)
    assert pool.pool_score(made, tuned, "bleu") == pytest.approx(best)
  np.testing.assert_array_equal(*results)


def test_mert_leaves_sparse_weights_alone():
  made = small_pool.make(0, sparse_features=6)
  start = small_pool.start(made)
  start[4:] = 0.25
  method = quick("mert")
  tuned, _ = method.optimise(made, start, method.config, 0)
  np.testing.assert_array_equal(tuned[4:], start[4:])
