"""Particle swarms: a slow swarm, and laws."""

import numpy as np

from jaxmt.tune import pool
from jaxmt.tune.lists import swarm
from tests.tune import small_pool


def slow_swarm(judge, start, config, seed):
  """The best value of a swarm, one particle and one weight at a time."""
  rng = np.random.default_rng(seed)
  shape = (config.particles, len(start))
  place = rng.uniform(-config.spread, config.spread, shape)
  place[0] = start
  velocity = rng.uniform(-config.spread, config.spread, shape)
  own = [row.copy() for row in place]
  value = [judge(row) for row in place]
  for _ in range(config.moves):
    best = own[int(np.argmax(value))].copy()
    first, second = rng.uniform(size=shape), rng.uniform(size=shape)
    for p in range(config.particles):
      for d in range(len(start)):
        velocity[p, d] *= config.inertia
        velocity[p, d] += (
          config.personal * first[p, d] * (own[p][d] - place[p, d])
        )
        velocity[p, d] += config.social * second[p, d] * (best[d] - place[p, d])
        place[p, d] += velocity[p, d]
    for p in range(config.particles):
      now = judge(place[p])
      if now > value[p]:
        own[p], value[p] = place[p].copy(), now
  return max(value)


def test_equals_a_slow_swarm():
  made = small_pool.make(0)
  start = small_pool.start(made)
  config = swarm.SwarmConfig(particles=6, moves=8)
  tuned, history = swarm.optimise(made, start, config, 3)
  want = slow_swarm(
    lambda w: pool.pool_score(made, w, "bleu"), start, config, 3
  )
  got = pool.pool_score(made, tuned, "bleu")
  np.testing.assert_allclose(got, want, rtol=1e-12)
  scores = [record["score"] for record in history]
  assert scores == sorted(scores)


def test_a_longer_search_is_no_worse_and_threads_change_nothing():
  made = small_pool.make(1)
  start = small_pool.start(made)
  score = lambda w: pool.pool_score(made, w, "bleu")
  found = []
  for moves, threads in ((3, 1), (20, 1), (20, 3)):
    config = swarm.SwarmConfig(particles=8, moves=moves, threads=threads)
    found.append(swarm.optimise(made, start, config, 0)[0])
  assert score(found[1]) >= score(found[0]) >= score(start)
  np.testing.assert_array_equal(found[1], found[2])


def test_alone_without_pull_it_flies_straight():
  made = small_pool.make(0, sparse_features=3)
  start = small_pool.start(made)
  start[4:] = 0.3
  config = swarm.SwarmConfig(particles=1, moves=1, inertia=0)
  tuned, _ = swarm.optimise(made, start, config, 0)
  np.testing.assert_array_equal(tuned, start)
