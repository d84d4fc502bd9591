"""How many threads compiled kernels may use.

Kernels release the interpreter lock, so plain Python threads keep all cores
busy.
"""

import os


def available() -> int:
  """Returns how many cores this process may use."""
  return len(os.sched_getaffinity(0))
