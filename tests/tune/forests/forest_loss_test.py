"""Tuning on forests: data, learners, losses."""

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.losses import registry as losses
from jaxmt.tune import methods
from jaxmt.tune.forests import (
  forest_data,
  forest_loss,
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
  judge = forest_data.ForestJudge(pool, "bleu")
  tuned, history = methods.run(method, pool, start, 3)
  assert judge(tuned) > judge(start) + 0.1
  assert max(record["score"] for record in history) == judge(tuned)
  again, _ = methods.run(method, pool, start, 3)
  np.testing.assert_array_equal(tuned, again)


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
