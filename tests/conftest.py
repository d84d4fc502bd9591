"""Before all tests: eight devices, settled hypothesis, Ctrl-C; few maps."""

import os

# Before JAX starts: the sharding tests need several devices.
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import gc
import signal

import hypothesis
import jax
import pytest

hypothesis.settings.register_profile(
  "default", deadline=None, derandomize=True, database=None
)
hypothesis.settings.load_profile("default")

# A shell starts background jobs with Ctrl-C ignored, and what they start
# inherits that: tests that interrupt programs would then wait in vain.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
  signal.signal(signal.SIGINT, signal.default_int_handler)

# Every compiled program takes a few memory maps, and the kernel allows a
# process 65,530 of them; the compiler aborts beyond. A worker that runs
# thousands of tests gets there.
_MOST_MAPS = 15_000


def _memory_maps() -> int:
  """The number of memory maps of this process; 0 where the kernel hides it."""
  try:
    with open("/proc/self/maps", "rb") as maps:
      return sum(1 for _ in maps)
  except OSError:
    return 0


@pytest.fixture(autouse=True, scope="module")
def few_memory_maps():
  """Forgets compiled programs after a module, if they take many maps."""
  yield
  if _memory_maps() > _MOST_MAPS:
    jax.clear_caches()
    gc.collect()
