"""Noise of known kinds."""

import numpy as np
import pytest

from jaxmt.corpora import noise

SOURCE = [f"a{n} b{n} c{n}" for n in range(200)]
TARGET = [f"x{n} y{n} z{n} w{n} v{n}" for n in range(200)]
SHARES = {"misaligned": 0.2, "misordered": 0.1, "truncated": 0.15}


def test_each_kind_is_what_it_says():
  shares = SHARES | {"untranslated": 0.05}
  noisy = noise.add(SOURCE, TARGET, shares, seed=3)
  count = np.bincount(noisy.kind + 1, minlength=5)
  assert count.tolist() == [100, 40, 20, 10, 30]
  for row, (kind, line) in enumerate(
    zip(noisy.kind, noisy.target, strict=True)
  ):
    words = TARGET[row].split()
    if kind < 0:
      assert line == TARGET[row]
    elif noise.KINDS[kind] == "misaligned":
      other = TARGET.index(line)
      assert other != row and noisy.kind[other] == kind
    elif noise.KINDS[kind] == "misordered":
      assert sorted(line.split()) == sorted(words)
    elif noise.KINDS[kind] == "untranslated":
      assert line == SOURCE[row]
    else:
      assert line.split() == words[:3]
  shuffled = noisy.kind == noise.KINDS.index("misordered")
  assert any(
    noisy.target[row] != TARGET[row] for row in np.flatnonzero(shuffled)
  )
  # Every target line of the misaligned ones is still there once.
  moved = np.flatnonzero(noisy.kind == 0).tolist()
  assert {noisy.target[r] for r in moved} == {TARGET[r] for r in moved}


def test_the_same_seed_gives_the_same_pairs():
  one, again, other = (
    noise.add(SOURCE, TARGET, SHARES, seed=seed) for seed in (1, 1, 2)
  )
  assert one.target == again.target
  assert one.target != other.target


@pytest.mark.parametrize(
  ("setting", "message"),
  [
    (("typos:0.1",), "none of"),
    (("misaligned:0.1", "misaligned:0.2"), "twice"),
    (("misaligned",), "expected kind:share"),
    (("misaligned:-1",), "from 0 to 1"),
    (("misaligned:nan",), "from 0 to 1"),
    (("misaligned:0.6", "truncated:0.6"), "more than 1"),
  ],
)
def test_settings_that_make_no_sense(setting, message):
  with pytest.raises(ValueError, match=message):
    noise.parse(setting)
