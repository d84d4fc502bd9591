"""Mixing weights of methods."""

import numpy as np
import pytest

from jaxmt.decode.candidate_lists import take_sentences
from jaxmt.errors import InputError
from jaxmt.tune import methods, mixing, pool
from tests.tune import small_pool
from tests.tune.methods_test import quick


def test_mixing():
  made = small_pool.make(0, sparse_features=12)
  start = small_pool.start(made)
  inner = quick("kbmira", cap="0.1", passes="5")
  results = []
  for threads in (1, 3):
    method = mixing.wrap(
      inner, metric="bleu", shards=3, rounds=2, keep=5, threads=threads
    )
    results.append(methods.run(method, made, start, 0)[0])
  np.testing.assert_array_equal(*results)
  assert (results[0][4:] != 0).sum() <= 5
  after = pool.pool_score(made, results[0], "bleu")
  assert after > pool.pool_score(made, start, "bleu")


def test_shards_count_by_their_updates():
  made = small_pool.make(2)
  start = small_pool.start(made)
  inner = quick("perceptron", passes="2")
  settings = {"metric": "bleu", "shards": 4, "explore": True}
  method = mixing.wrap(inner, weighting="updates", **settings)
  mixed, _ = methods.run(method, made, start, 3)
  tuned, counts = [], []
  for shard in range(4):
    part = take_sentences(made, np.arange(shard, made.sentences, 4))
    weights, history = methods.run(inner, part, start, 3 + shard)
    tuned.append(weights)
    counts.append(sum(record["updates"] for record in history))
  assert len(set(counts)) > 1
  expected = sum(
    count / sum(counts) * one for count, one in zip(counts, tuned, strict=True)
  )
  np.testing.assert_allclose(mixed, expected, rtol=1e-12)
  with pytest.raises(InputError, match="counts no updates"):
    method = mixing.wrap(quick("mert"), weighting="updates", **settings)
    methods.run(method, made, start, 0)


def test_the_mean_of_all_rounds():
  made = small_pool.make(2)
  start = small_pool.start(made)
  inner = quick("perceptron", passes="1")
  tuned = {}
  for rounds in (1, 2):
    for mean in (False, True):
      method = mixing.wrap(
        inner, metric="bleu", shards=3, rounds=rounds, mean=mean, explore=True
      )
      # The round of the best score is returned: take the last one's score.
      tuned[rounds, mean] = methods.run(method, made, start, 1)
  mixtures = [tuned[1, False][0]]
  method = mixing.wrap(inner, metric="bleu", shards=3, explore=True)
  second = methods.run(method, made, mixtures[0], 1 + 1000003)[0]
  mean = (mixtures[0] + second) / 2
  scores = [record["score"] for record in tuned[2, True][1]]
  assert scores[0] == pool.pool_score(made, mixtures[0], "bleu")
  assert scores[1] == pool.pool_score(made, mean, "bleu")
