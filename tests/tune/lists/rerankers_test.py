"""Re-rankers: they begin as the linear model, equal slow sums, and learn."""

import itertools
import math

import numpy as np
import pytest

from jaxmt.decode.candidate_lists import take_sentences
from jaxmt.errors import InputError
from jaxmt.tune import pool
from jaxmt.tune.lists import boosting, rerankers
from tests.tune import small_pool


@pytest.fixture(scope="module")
def made():
  return small_pool.make(0, sentences=100, sparse_features=6)


def fitted(made, start, **how):
  config = rerankers.RerankConfig(
    **{"steps": 40, "rate": 0.05, "min_count": 1, "landmarks": 12, **how}
  )
  return rerankers.fit(made, start, config, 0)


@pytest.mark.parametrize("model", rerankers.MODELS)
def test_a_tiny_step_leaves_the_linear_model(made, model):
  start = small_pool.start(made)
  start[4:] = 0.2
  found = fitted(made, start, model=model, loss="softmax", steps=1, rate=1e-12)
  np.testing.assert_allclose(
    rerankers.rerank_scores(made, found), pool.scores(made, start), atol=1e-4
  )


def slow_additive(line, dense, found):
  p = found.parameters["params"]
  number = lambda word: found.words.get(word, 0)
  words = [1, *map(number, line.split()), 2]
  total = float(
    dense / found.deviations @ np.asarray(p["linear"]["kernel"])[:, 0]
  )
  for a, b in itertools.pairwise(words):
    pair = np.concatenate([p["vectors"][a], p["vectors"][b]])
    hidden = np.tanh(pair @ p["hidden"]["kernel"] + p["hidden"]["bias"])
    total += float(hidden @ np.asarray(p["local"]["kernel"])[:, 0])
  return total


def slow_kernel(row, made, found):
  p = found.parameters["params"]
  owner = made.sentence[row]
  own = made.dense[made.offsets[owner] : made.offsets[owner + 1]]
  z = (made.dense[row] - own.mean(0)) / found.deviations
  total = float(
    made.dense[row] / found.deviations @ np.asarray(p["linear"]["kernel"])[:, 0]
  )
  for mark, weight in zip(found.landmarks, p["kernel"]["kernel"], strict=True):
    near = math.exp(-np.sum((z - mark) ** 2) / (2 * len(z)))
    total += near * float(weight[0])
  return total


@pytest.mark.parametrize("model", rerankers.MODELS)
def test_scores_equal_slow_sums_and_improve(made, model):
  start = small_pool.start(made)
  found = fitted(made, start, model=model)
  values = rerankers.rerank_scores(made, found)
  for row in range(0, len(made), 17):
    want = (
      slow_kernel(row, made, found)
      if model == "kernel"
      else slow_additive(made.lines[row], made.dense[row], found)
    )
    assert values[row] == pytest.approx(want, abs=1e-3)
  after = rerankers.chosen_score(made, values, "bleu")
  assert after > pool.pool_score(made, start, "bleu") + 0.01
  # The iterate is that of the best held-out score.
  held = take_sentences(made, np.arange(4, 100, 5))
  best = max(record["held_out"] for record in found.history)
  assert rerankers.held_out_score(held, found) == pytest.approx(best)
  again = fitted(made, start, model=model)
  np.testing.assert_array_equal(rerankers.rerank_scores(made, again), values)


def test_unknown_words_and_other_features(made):
  start = small_pool.start(made)
  found = fitted(made, start, model="additive", steps=10)
  other = small_pool.make(9, sparse_features=6)
  assert np.isfinite(rerankers.rerank_scores(other, found)).all()
  with pytest.raises(InputError, match="other dense features"):
    wrong = pool.make_pool(made, dense_names=("noise",))
    rerankers.rerank_scores(wrong, found)


def test_ranks():
  made = small_pool.make(0, sentences=6, width=4)
  values = np.arange(len(made))[::-1].astype(float)
  got = rerankers.ranks(values, made)
  np.testing.assert_allclose(got[:4], [1, 2 / 3, 1 / 3, 0])
  assert got[4] == 1.0  # a list of one


def test_boosting():
  made = small_pool.make(0)
  start = small_pool.start(made)
  config = boosting.BoostConfig(rankers=3, method="kbmira")
  rankers, history = boosting.boost(made, start, config, 0)
  assert len(rankers) == len(history) >= 2
  assert all(vote > 0 for vote, _ in rankers)
  costs = pool.sentence_costs(made, "bleu")
  # The vote is that of the formula, with equal shares in the first round.
  gain = boosting.sentence_gains(made, pool.scores(made, rankers[0][1]), costs)
  want = 0.5 * math.log((1 + gain).mean() / (1 - gain).mean())
  assert rankers[0][0] == pytest.approx(want, rel=1e-9)
  one = boosting.combined_scores(made, rankers[:1])
  np.testing.assert_array_equal(
    pool.best(one, made.offsets),
    pool.best(pool.scores(made, rankers[0][1]), made.offsets),
  )
  together = boosting.combined_scores(made, rankers)
  after = rerankers.chosen_score(made, together, "bleu")
  assert after > pool.pool_score(made, start, "bleu") + 0.01


def test_gains_of_single_sentences():
  """Positive for the cheapest candidate, 0 for the mean of a list."""
  made = small_pool.make(0, sentences=9, width=3)
  costs = pool.sentence_costs(made, "bleu")
  single = np.diff(made.offsets)[np.diff(made.offsets) > 0] == 1
  good = boosting.sentence_gains(made, -costs, costs)
  bad = boosting.sentence_gains(made, costs, costs)
  np.testing.assert_allclose(np.maximum(good, -bad)[~single], 1.0)
  assert (good[single] == 0).all()
  every = []
  for place in range(3):
    values = np.zeros(len(made))
    values[made.offsets[:-1][np.diff(made.offsets) == 3] + place] = 1.0
    every.append(boosting.sentence_gains(made, values, costs)[~single])
  np.testing.assert_allclose(np.sum(every, axis=0), 0.0, atol=1e-12)


WRONG = [
  (rerankers.RerankConfig, {"model": "x"}),
  (rerankers.RerankConfig, {"loss": "xbleu"}),
  (rerankers.RerankConfig, {"steps": 0}),
  (rerankers.RerankConfig, {"width": 0}),
  (boosting.BoostConfig, {"method": "forest-mert"}),
  (boosting.BoostConfig, {"rankers": 0}),
]


@pytest.mark.parametrize("kind,changes", WRONG)
def test_bad_options_are_one_line(kind, changes):
  with pytest.raises(InputError) as error:
    kind(**changes)
  assert "\n" not in str(error.value)
