"""Keys of feature names, and the table of weights."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.features import feature_keys

PRIME = 2**61 - 1


@given(st.integers(0, PRIME - 1), st.integers(0, PRIME - 1))
def test_multiplication_modulo_the_prime(a, b):
  assert int(feature_keys.multiply(np.uint64(a), np.uint64(b))) == a * b % PRIME


@given(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=6)))
def test_keys_of_joined_pieces(parts):
  parts = [part.encode("utf-8", "ignore").decode() for part in parts]
  pieces = feature_keys.make_pieces(parts)
  key = np.uint64(0)
  for place in range(len(parts)):
    key = feature_keys.append(key, pieces.powers[place], pieces.keys[place])
  assert int(key) == int(feature_keys.keys_of(["".join(parts)])[0])


def test_table_of_weights():
  rng = np.random.default_rng(0)
  weights = {f"w{n}": float(v) for n, v in enumerate(rng.normal(size=3000))}
  weights |= {"zero": 0.0}
  table = feature_keys.make_table(weights)
  keys = feature_keys.keys_of([*weights, "absent"])
  assert len(set(keys.tolist())) == len(keys)
  found = [feature_keys.look_up(key, table) for key in keys]
  assert found == [*weights.values(), 0.0]
