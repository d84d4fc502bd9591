"""Threads call one compiled function; free memory goes back to the system."""

import concurrent.futures
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.runtime import compiling
from jaxmt.runtime.compiling import CompiledOnce
from tests import util


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


_SCRIPT = """
import sys
import numpy as np
from jaxmt.runtime import compiling

def resident():
  with open("/proc/self/statm") as facts:
    return int(facts.read().split()[1]) * 4096 >> 20

if sys.argv[1] == "free":
  # 100 kB each: they come from the heap, whose end stays in use.
  arrays = [np.ones(12_500) for _ in range(2000)]
  last = np.ones(12_500)
  del arrays
  before = resident()
  compiling.return_free()
  print(before - resident(), last.sum())
else:
  if sys.argv[1] == "bound":
    compiling.bound_heap()
  # glibc takes freed arrays of 30 MB as a sign to put such into the heap.
  for _ in range(3):
    np.ones(30 << 17)
  arrays, pins = [], []
  for _ in range(4):
    arrays.append(np.ones(30 << 17))
    pins.append(np.ones(1000))
  before = resident()
  arrays.clear()
  print(before - resident(), sum(map(len, pins)))
"""


def freed(what):
  """How many MB go back."""
  if compiling._glibc() is None or not os.path.exists("/proc/self/statm"):
    pytest.skip("another C library")
  done = subprocess.run(
    [sys.executable, "-c", _SCRIPT, what],
    cwd=util.ROOT,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  return int(done.stdout.split()[0])


def test_free_pages_go_back():
  assert freed("free") > 100


def test_large_arrays_stay_out_of_the_heap():
  assert freed("bound") > 100
  assert freed("as it is") < 60  # what `bound_heap` changes


def test_compiling_leaves_nothing(monkeypatch):
  calls = []
  monkeypatch.setattr(compiling, "return_free", lambda: calls.append(1))
  double = CompiledOnce(jax.jit(lambda values: 2 * values))
  for size in (3, 3, 4, 3):
    double(jnp.ones(size))
  assert len(calls) == 2
