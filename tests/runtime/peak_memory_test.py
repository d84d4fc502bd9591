"""The peak follows what is used, and begins anew."""

import numpy as np

from jaxmt.runtime import peak_memory


def test_the_peak_rises_with_use_and_is_forgotten():
  peak_memory.reset()
  before = peak_memory.megabytes()
  block = np.ones(40_000_000)  # 320 MB
  after = peak_memory.megabytes()
  assert after > before + 250 and block[-1] == 1
  del block
  peak_memory.reset()
  assert peak_memory.megabytes() <= after
