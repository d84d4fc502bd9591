"""Tuning on forests: data, learners, losses."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.errors import InputError
from jaxmt.losses import registry as losses
from jaxmt.metrics import compiled_bleu
from jaxmt.tune import learner, methods
from jaxmt.tune import pool as pools
from jaxmt.tune.forests import (
  forest_data,
  forest_loss,
  forest_mira,
  forest_rampion,
  forest_viterbi,
)
from tests.reference import forests as reference
from tests.tune.forests import forest_mert_test as forests

START = np.array([0.3, -0.2, 0.5])


def made(seed=0, **options):
  """A pool with forests and nothing else, and its data."""
  pool = forests.empty_pool(forests.random_pool(seed, nodes=6, **options))
  return pool, forest_data.prepare(pool, START, "bleu")


def brute(data, row, values):
  """Edges of the best derivation of a sentence, by listing them all."""
  every = reference.derivations(data.split.forest, row, limit=10**5)
  return max(every, key=lambda edges: values[edges].sum(), default=None)


@pytest.mark.parametrize("seed", range(6))
def test_hope_and_fear_equal_brute_force(seed):
  _, data = made(seed)
  forest = data.split.forest
  scores, costs = data.scores(START), 3.0 * data.costs()
  room = forest_viterbi.workspace(forest.node_offsets)
  for values in (scores - costs, scores + costs):
    sums = forest_data.best_sums(forest, values, data.split.statistics)
    for row in range(len(forest)):
      low, high = forest.node_offsets[row : row + 2]
      best = brute(data, row, values)
      if best is None:
        assert not sums[row].any()
        continue
      first = forest.edge_offsets[low]
      found, count = forest_viterbi.best_derivation(
        low,
        high,
        forest.edge_offsets,
        forest.tails,
        values[first:],
        first,
        room,
        np.empty(1, np.int64),
      )
      assert values[found[:count]].sum() == pytest.approx(values[best].sum())
      assert sorted(found[:count].tolist()) == sorted(best)
      np.testing.assert_array_equal(
        sums[row], data.split.statistics[best].sum(0)
      )


def test_slopes_are_those_of_bleu():
  sums = np.array([60.0, 30, 18, 9, 100, 90, 80, 70, 0])
  for reference_length in (80.0, 130.0):
    sums[8] = reference_length
    found = np.empty(8)
    compiled_bleu.slopes(sums, found)
    for place in range(8):
      step = np.zeros(9)
      step[place] = 1e-5
      ends = [compiled_bleu.bleu(sums + sign * step) for sign in (-1, 1)]
      assert found[place] == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-5)


def test_costs_are_the_first_order_change_of_bleu():
  _, data = made(3)
  forest = data.split.forest
  scores = data.scores(START)
  table = forest_data.best_sums(forest, scores, data.split.statistics)
  corpus = np.append(table.sum(0), 0.0) + 1.0
  corpus[8] = 0.0
  filled = (forest.roots >= 0).sum()
  costs = table @ data.slopes
  for row in range(len(forest)):
    moved = corpus.copy()
    moved[:8] += 1e-5 * table[row]
    change = compiled_bleu.bleu(moved) - compiled_bleu.bleu(corpus)
    assert costs[row] == pytest.approx(-filled * change / 1e-5, abs=1e-3)


def test_earlier_candidates_are_edges_of_the_root():
  own = forests.random_pool(2, nodes=6)
  lines = ["a b c d", "a a", "d c"]
  sentence = np.array([1, 1, 3])
  own = dataclasses.replace(own, listed=frozenset({(1, "a a")}))
  features = np.arange(9.0).reshape(3, 3)
  pool = pools.make_pool(
    dataclasses.replace(
      candidate_lists.from_dense(sentence, lines, features, forests.NAMES),
      forests=own,
    ),
    sentences=len(own.spelled),
    dense_names=forests.NAMES,
  )
  pool = pools.with_statistics(pool, own.references, ["bleu"])
  data = forest_data.prepare(pool, START, "bleu")
  alone, _ = forests.empty_pool(own), None
  before = forest_data.prepare(alone, START, "bleu").split.forest
  for row, count in ((0, 0), (1, 1), (3, 1)):
    if before.roots[row] < 0:
      continue
    old = len(reference.derivations(before, row, limit=10**5))
    new = reference.derivations(data.split.forest, row, limit=10**5)
    assert len(new) == old + count
    if count:
      values = data.features[data.split.edge[new[-1]]].sum(0)
      assert values.tolist() == features[0 if row == 1 else 2].tolist()


@pytest.mark.parametrize("name", ["softmax", "xbleu", "softramp2"])
def test_groups_change_nothing_and_gradients_fit(name):
  _, data = made(4, sentences=6)
  settings = dict(losses.find(name).settings)
  whole, parts = (
    forest_loss.Evaluation(
      forest_loss.make_batches(data, groups),
      5.0 * data.slopes,
      loss=name,
      settings=settings,
      l2=0.1,
      initial=np.zeros(3),
    )
    for groups in (
      [np.arange(6)],
      [np.array([0, 3]), np.array([1]), np.array([2, 4, 5])],
    )
  )
  value, gradient = whole(START)
  again, other = parts(START)
  assert value == pytest.approx(again, rel=1e-5)
  np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-5)
  for place in range(3):
    step = np.zeros(3)
    step[place] = 1e-2
    slope = (whole(START + step)[0] - whole(START - step)[0]) / 2e-2
    assert gradient[place] == pytest.approx(slope, rel=2e-2, abs=2e-3)


def test_groups_hold_every_sentence_once():
  _, data = made(4, sentences=6)
  for groups in (
    forest_loss.group_sentences(data, edges=20),
    forest_loss.group_sentences(data, count=4, seed=1),
  ):
    assert sorted(np.concatenate(groups).tolist()) == list(range(6))


def oracle_pool(seed=1):
  """Forests whose references are the best derivations of other weights."""
  own = forests.random_pool(seed, sentences=6, nodes=7, fan=3)
  spelled = own.spelled
  values = spelled.features @ np.array([1.0, -0.5, 0.1])
  lines = []
  for row in range(len(spelled)):
    every = reference.derivations(spelled.forest, row, limit=10**6)
    best = max(every, key=lambda edges: values[edges].sum(), default=None)
    lines.append("a" if best is None else forests.text_of(spelled, best))
  return forests.empty_pool(own.bind([[line or "a"] for line in lines]))


@pytest.mark.parametrize(
  ("name", "options"),
  [
    ("risk", {"steps": "20"}),
    ("structured-hinge", {"rate": "0.05", "batch_size": "3"}),
    ("kbmira", {"cap": "0.1"}),
    ("mira", {"cap": "0.1"}),
    ("rampion", {"rate": "0.02"}),
  ],
)
def test_methods_gain(name, options):
  pool = oracle_pool()
  method = methods.find(name, space="forest")
  assert method.needs == methods.FORESTS
  method = methods.configure(method, options)
  start = np.array([-0.3, 0.3, 0.3])
  judge = forest_data.Judge(pool, "bleu")
  tuned, history = methods.run(method, pool, start, 3)
  assert judge(tuned) > judge(start) + 0.1
  assert max(record["score"] for record in history) == judge(tuned)
  again, _ = methods.run(method, pool, start, 3)
  np.testing.assert_array_equal(tuned, again)


def test_mira_equals_the_step_of_its_formula():
  """One sentence, one constraint: w + min(C, loss / |x|^2) x (Eq 61-62)."""
  pool, data = made(7, sentences=1)
  config = forest_mira.ForestMiraConfig(passes=1, cap=0.05)
  forest, statistics = data.split.forest, data.split.statistics
  scores = data.scores(START)
  best = brute(data, 0, scores)
  document = np.ones(9)
  document[:8] += statistics[best].sum(0)
  document[8] += data.references[0]
  slopes = np.empty(8)
  compiled_bleu.slopes(document, slopes)
  gains = document[8] * (statistics @ slopes)
  hope, fear = (brute(data, 0, scores + sign * gains) for sign in (1, -1))
  table = data.features[data.split.edge]
  way = table[hope].sum(0) - table[fear].sum(0)
  loss = gains[hope].sum() - gains[fear].sum() - START @ way
  expected = START + min(0.05, max(0.0, loss / (way @ way))) * way
  now = learner.begin(START)
  next(forest_mira.passes(pool, now, config, 0))
  assert len(forest) == 1
  np.testing.assert_allclose(now.weights, expected, rtol=1e-9)
  assert not np.allclose(expected, START)


@pytest.mark.parametrize("form", [1, 2, 3])
def test_one_pass_of_rampion(form):
  pool, data = made(5, sentences=3)
  config = forest_rampion.ForestRampionConfig(
    form=form, rounds=1, passes=1, cost_scale=2.0, rate=0.01, explore=True
  )
  tuned, _ = forest_rampion.optimise(pool, START, config, 0)
  costs, table = 2.0 * data.costs(), data.features[data.split.edge]
  lower = costs if form in (2, 3) else 0.0 * costs
  upper = costs if form in (1, 3) else 0.0 * costs
  weights = START.copy()
  hopes = [brute(data, row, data.scores(START) - lower) for row in range(3)]
  for row, hope in enumerate(hopes):
    if hope is None:
      continue
    fear = brute(data, row, data.scores(weights) + upper)
    weights = START + (1 - 0.01 / 3) * (weights - START)
    weights += 0.01 * (table[hope].sum(0) - table[fear].sum(0))
  np.testing.assert_allclose(tuned, weights, rtol=1e-9)


@pytest.mark.parametrize("name", ["pro", "ranking", "hinge", "nelder-mead"])
def test_methods_that_need_lists(name):
  with pytest.raises(InputError, match="does not work on forests"):
    methods.find(name, space="forest")


@pytest.mark.parametrize("name", ["risk", "kbmira", "ramp2"])
def test_costs_are_of_bleu(name):
  with pytest.raises(InputError, match="no sum over edges"):
    methods.configure(methods.find(name, space="forest"), {"metric": "ter"})


def test_every_loss_on_forests_is_a_method():
  known = set(methods.names(space="forest"))
  assert {n for n in losses.names() if losses.find(n).forest} <= known
  assert methods.find("mert", space="forest").needs == methods.FORESTS
  with pytest.raises(InputError, match="space 'tree'"):
    methods.find("mert", space="tree")
