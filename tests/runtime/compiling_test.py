"""Threads that call one compiled function."""

import concurrent.futures

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.runtime.compiling import CompiledOnce


def test_threads_compile_each_shape_once():
  traced = []

  def double(values):
    traced.append(values.shape)
    return 2 * values

  function = CompiledOnce(jax.jit(double))
  sizes = [3, 4] * 8
  with concurrent.futures.ThreadPoolExecutor(4) as pool:
    results = list(pool.map(lambda size: function(jnp.ones(size)), sizes))
  assert sorted(traced) == [(3,), (4,)]
  for size, result in zip(sizes, results, strict=True):
    np.testing.assert_array_equal(result, np.full(size, 2.0))
