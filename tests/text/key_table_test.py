import numpy as np

from jaxmt.text import key_table


def test_finds_what_is_there_and_nothing_else():
  rng = np.random.default_rng(0)
  keys = np.unique(rng.integers(1, 1 << 62, 500).astype(np.uint64))
  # Keys that want the same slot.
  keys = np.concatenate([keys, (np.arange(1, 9) << 40).astype(np.uint64)])
  values = rng.normal(size=len(keys))
  table = key_table.key_table(keys, values)
  found = [key_table.look_up(key, table) for key in keys]
  np.testing.assert_array_equal(found, values)
  assert key_table.look_up(np.uint64(12345), table) == 0.0
  assert (
    key_table.look_up(np.uint64(7), key_table.key_table(keys[:0], values[:0]))
    == 0.0
  )
