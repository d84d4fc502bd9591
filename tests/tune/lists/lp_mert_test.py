"""LP-MERT against a dense grid of weights, and laws."""

import itertools

import numpy as np
import pytest

from jaxmt.decode.candidate_lists import take_sentences
from jaxmt.tune import pool
from jaxmt.tune.lists import lp_mert, mert
from tests.tune import small_pool


def two_features(seed, sentences):
  """A small pool that only two features tell apart."""
  made = small_pool.make(seed, width=6)
  made = take_sentences(made, np.arange(4, 4 + sentences))
  made.dense[:, 2:] = 0.0
  return made


def best_of_circle(made, judge):
  """The best score over all directions of two weights, all of them."""
  angles = [0.0]
  for low, high in itertools.pairwise(made.offsets.tolist()):
    for a, b in itertools.combinations(range(low, high), 2):
      x, y = made.dense[a, :2] - made.dense[b, :2]
      angles += [np.arctan2(-x, y), np.arctan2(x, -y)]
  angles = np.unique(angles)
  middles = 0.5 * (angles + np.roll(angles, -1))
  middles[-1] = 0.5 * (angles[-1] + angles[0] + 2 * np.pi)
  wide = np.append(np.diff(angles), angles[0] + 2 * np.pi - angles[-1]) > 1e-6
  return max(
    judge(np.array([np.cos(m), np.sin(m), 0.0, 0.0])) for m in middles[wide]
  )


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("objective", ["corpus", "sentence"])
def test_exact_in_two_dimensions(seed, objective):
  made = two_features(seed, 4)
  costs = pool.sentence_costs(made, "bleu")

  def judge(weights):
    if objective == "corpus":
      return pool.pool_score(made, weights, "bleu")
    chosen = pool.best(pool.scores(made, weights), made.offsets)
    return -costs[chosen].sum()

  config = lp_mert.LpMertConfig(objective=objective, sentences=4)
  tuned, (record,) = lp_mert.optimise(made, small_pool.START, config, 0)
  assert record["exact"] and record["programs"] > 4
  assert judge(tuned) == pytest.approx(best_of_circle(made, judge), abs=1e-12)


def test_no_line_search_beats_it():
  made = take_sentences(small_pool.make(5, width=6), np.arange(4, 7))
  start = small_pool.START
  score = lambda w: pool.pool_score(made, w, "bleu")
  exact, (record,) = lp_mert.optimise(
    made, start, lp_mert.LpMertConfig(programs=20000), 0
  )
  assert record["exact"]
  climbed, _ = mert.optimise(made, start, mert.MertConfig(restarts=10), 0)
  assert score(exact) >= score(climbed) - 1e-12


def test_margin_is_that_of_the_weights():
  """The reported program is feasible and tight."""
  rng = np.random.default_rng(0)
  rows, least = rng.normal(size=(5, 3)) + 1.0, rng.normal(size=5) * 0.1
  solver = lp_mert.Solver(lp_mert.LpMertConfig(), 3)
  margin, weights = solver.margin(rows, least)
  assert np.abs(weights).max() <= 1 + 1e-9
  assert (rows @ weights + least).min() == pytest.approx(margin, abs=1e-7)


def test_a_budget_ends_the_search():
  made = small_pool.make(0)
  config = lp_mert.LpMertConfig(sentences=24, programs=5)
  tuned, history = lp_mert.optimise(made, small_pool.START, config, 0)
  assert np.isfinite(tuned).all()
  assert not history[0]["exact"]
