"""Mixing weights of methods."""

import numpy as np

from jaxmt.tune import methods, mixing, pool
from tests.tune import small_pool
from tests.tune.methods_test import quick


def test_mixing():
  made = small_pool.make(0, sparse_features=12)
  start = small_pool.start(made)
  inner = quick("kbmira", cap="0.1", passes="5")
  results = []
  for threads in (1, 3):
    method = mixing.wrap(
      inner, metric="bleu", shards=3, rounds=2, keep=5, threads=threads
    )
    results.append(methods.run(method, made, start, 0)[0])
  np.testing.assert_array_equal(*results)
  assert (results[0][4:] != 0).sum() <= 5
  after = pool.pool_score(made, results[0], "bleu")
  assert after > pool.pool_score(made, start, "bleu")
