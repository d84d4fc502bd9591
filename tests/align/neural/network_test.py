"""Viterbi and path scores of the neural HMM against enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.align.neural import network


def scores(seed, *, size=3, batch=4):
  rng = np.random.default_rng(seed)
  normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
  lengths = rng.integers(1, size + 1, (2, batch)).astype(np.int32)
  return (
    normal(batch, size, size),
    normal(batch, size),
    normal(network.JUMPS),
    *lengths,
  )


def slow_score(links, null, jump, path):
  total, last = 0.0, -1
  for word, place in enumerate(path):
    if place < 0:
      total += null[word]
      continue
    total += links[word, place] + jump[int(np.clip(place - last, -8, 8)) + 8]
    last = place
  return total


@pytest.mark.parametrize(
  ("seed", "size", "batch"), [(0, 3, 4), (1, 3, 4), (2, 4, 4), (3, 5, 3)]
)
def test_viterbi_equals_brute_force(seed, size, batch):
  links, null, jump, generated, given = scores(seed, size=size, batch=batch)
  found = np.asarray(network.viterbi(links, null, jump, generated, given))
  own = np.asarray(
    network.path_scores(links, null, jump, jnp.asarray(found), generated)
  )
  for row in range(len(links)):
    n, m = int(generated[row]), int(given[row])
    paths = itertools.product(range(-1, m), repeat=n)
    best = max(
      paths, key=lambda path: slow_score(links[row], null[row], jump, path)
    )
    assert found[row, :n].tolist() == list(best)
    assert np.all(found[row, n:] == -1)
    expected = slow_score(links[row], null[row], jump, best)
    assert own[row] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_without_jumps_each_word_has_its_best():
  links, null, _, generated, given = scores(9)
  found = network.viterbi(
    links, null, jnp.zeros(network.JUMPS), generated, given
  )
  for row in range(len(links)):
    for word in range(generated[row]):
      own = [null[row, word], *links[row, word, : given[row]]]
      assert int(found[row, word]) == int(np.argmax(own)) - 1


def test_jumps_longer_than_seven_share_a_score():
  distances = jnp.array([-30, -8, -7, 0, 7, 8, 30])
  found = network.jump_bucket(distances)
  assert found.tolist() == [0, 0, 1, 8, 15, 16, 16]


def test_grid_equals_single_pairs():
  module = network.WindowNetwork(
    generated_words=7, given_words=8, size=3, hidden=(5, 4)
  )
  rng = np.random.default_rng(0)
  ours = jnp.asarray(rng.integers(0, 7, (2, 3, 3)))
  theirs = jnp.asarray(rng.integers(0, 8, (2, 4, 3)))
  parameters = module.init(jax.random.key(0), ours[0, 0], theirs[0, 0])
  links, null = module.apply(
    parameters, ours, theirs, theirs[0, 0], method="grid"
  )
  one = module.apply(parameters, ours[1, 2], theirs[1, 3])
  np.testing.assert_allclose(links[1, 2, 3], one, rtol=1e-5)
  one = module.apply(parameters, ours[1, 2], theirs[0, 0])
  np.testing.assert_allclose(null[1, 2], one, rtol=1e-5)
