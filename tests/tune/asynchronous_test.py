"""Asynchronous learning against an account of all messages."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode.candidate_lists import take_sentences
from jaxmt.errors import InputError
from jaxmt.tune import asynchronous, methods, mixing
from jaxmt.tune import pool as pools
from jaxmt.tune.learning import Learner
from tests.tune import small_pool
from tests.tune.methods_test import quick


def setting(learner, **changes):
  values = {"shards": 3, "rounds": 1, "batch": 2, "delay": 3} | changes
  return asynchronous.MixingSetting(passes=learner, config=None, **values)


def recording(log):
  """A learner whose change depends on the weights it sees; notes both."""

  def passes(pool, learner, config, seed):
    before = learner.weights.copy()
    learner.weights += 0.1 * (pool.dense.sum(0) - learner.weights)
    log.append((before, learner.weights - before))
    yield learner, {}

  return passes


def test_every_message_is_added_once_and_after_its_delay():
  pool = small_pool.make(0)
  start = small_pool.start(pool)
  log = []
  weights, history = asynchronous.optimise(
    pool, start, setting(recording(log)), 5, metric="bleu", explore=True
  )
  shards, steps = 3, 4  # 24 sentences, batches of 2
  changes = np.array([change for _, change in log]).reshape(steps, shards, -1)
  seen = np.array([before for before, _ in log]).reshape(steps, shards, -1)
  np.testing.assert_allclose(weights, start + changes.sum((0, 1)), atol=1e-12)
  # What a shard sees: the start, its own changes and, of each other shard's,
  # a beginning that misses at most `delay - 1` of the last.
  rng = np.random.default_rng(5)
  for shard in range(shards):
    rng.permutation(np.arange(shard, pool.sentences, shards))
  arrival = np.empty((steps, shards, shards), int)
  for step in range(steps):
    for shard in range(shards):
      rng.integers(1 << 31)
      arrival[step, shard] = step + rng.integers(1, 4, shards)
  late = 0
  for step in range(steps):
    for shard in range(shards):
      expected = start + changes[:step, shard].sum(0)
      for other in range(shards):
        if other != shard:
          there = arrival[:, other, shard] <= step
          there[step:] = False
          late += step - there.sum()
          expected = expected + changes[there, other].sum(0)
      np.testing.assert_allclose(seen[step, shard], expected, atol=1e-12)
  assert late > 0
  assert history == [{"round": 0, "shards": 3, "score": history[0]["score"]}]


def test_one_shard_learns_batch_by_batch():
  pool = small_pool.make(1)
  start = small_pool.start(pool)
  inner = methods.find("perceptron")
  config = dataclasses.replace(inner.config, passes=1)
  weights, _ = asynchronous.optimise(
    pool,
    start,
    dataclasses.replace(setting(inner.passes, shards=1), config=config),
    7,
    metric="bleu",
    explore=True,
  )
  rng = np.random.default_rng(7)
  order = rng.permutation(pool.sentences)
  learner = Learner(weights=start)
  for low in range(0, len(order), 2):
    some = take_sentences(pool, np.sort(order[low : low + 2]))
    for _ in inner.passes(some, learner, config, int(rng.integers(1 << 31))):
      pass
    rng.integers(1, 4, 1)
  np.testing.assert_array_equal(weights, learner.weights)


def test_it_learns_as_a_mixture_and_repeats():
  pool = small_pool.make(0, sparse_features=12)
  start = small_pool.start(pool)
  method = mixing.wrap(
    quick("kbmira", cap="0.1"), metric="bleu", shards=3, rounds=3, delay=2
  )
  first, history = methods.run(method, pool, start, 0)
  again, _ = methods.run(method, pool, start, 0)
  np.testing.assert_array_equal(first, again)
  assert len(history) == 3
  before = pools.pool_score(pool, start, "bleu")
  assert pools.pool_score(pool, first, "bleu") > before
  mean = mixing.wrap(
    quick("kbmira", cap="0.1"),
    metric="bleu",
    shards=3,
    rounds=3,
    delay=2,
    mean=True,
  )
  assert not np.array_equal(methods.run(mean, pool, start, 0)[0], first)


def test_only_online_learners_can_do_without_waiting():
  with pytest.raises(InputError, match="needs an online learner"):
    mixing.wrap(methods.find("mert"), metric="bleu", delay=1)
  with pytest.raises(InputError, match="neither keep nor weighting"):
    mixing.wrap(methods.find("kbmira"), metric="bleu", delay=1, keep=2)
