"""Free memory goes back to the system."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from jaxmt.runtime import compiling, memory
from tests import util

_SCRIPT = """
import sys
import numpy as np
from jaxmt.runtime import memory

def resident():
  with open("/proc/self/statm") as facts:
    return int(facts.read().split()[1]) * 4096 >> 20

if sys.argv[1] == "free":
  # 100 kB each: they come from the heap, whose end stays in use.
  arrays = [np.ones(12_500) for _ in range(2000)]
  last = np.ones(12_500)
  del arrays
  before = resident()
  memory.return_free()
  print(before - resident(), last.sum())
else:
  if sys.argv[1] == "bound":
    memory.bound_heap()
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
  if memory._glibc() is None or not os.path.exists("/proc/self/statm"):
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
  monkeypatch.setattr(memory, "return_free", lambda: calls.append(1))
  double = compiling.CompiledOnce(jax.jit(lambda values: 2 * values))
  for size in (3, 3, 4, 3):
    double(jnp.ones(size))
  assert len(calls) == 2
