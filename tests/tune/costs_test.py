"""Costs of candidates, several metrics at once, losses on the host."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.metrics import named_metrics
from jaxmt.tune import costs, methods, mixing, pool
from jaxmt.tune import costs as costs_lib
from jaxmt.tune.formats import kbest_files
from jaxmt.tune.lists import gradient, objective
from tests.reference import losses as slow
from tests.tune import small_pool

BOTH = "bleu:0.7,ter:0.3"


def costs_of(made, kind, metric="bleu"):
  weights = small_pool.start(made)
  return costs.candidate_costs(made, weights, metric=metric, kind=kind)


def test_linear_bleu_costs_are_shares_times_the_sentences():
  made = small_pool.make(0)
  weights = small_pool.start(made)
  chosen = pool.best(pool.scores(made, weights), made.offsets)
  table = made.statistics["bleu"].astype(np.float64)
  total = table[chosen].sum(0)
  assert (total[:4] > 0).all()
  share = table[:, 4] / total[4] - (table[:, :4] / total[:4]).mean(1)
  np.testing.assert_allclose(
    costs_of(made, "linear-bleu"), len(chosen) * share, rtol=1e-12, atol=1e-12
  )


def test_corpus_oracles_cost_nothing():
  made = small_pool.make(0)
  found = costs_of(made, "corpus-oracle")
  rows, _ = costs.greedy_corpus_oracle(made, metric="bleu", seed=0)
  assert np.flatnonzero(found == 0).tolist() == rows.tolist()
  assert set(found) == {0.0, 1.0}


def test_pareto_by_hand():
  # The third is dominated by the second; the last two are equal and stay.
  table = np.array([[0.1, 0.5, 0.6, 0.9, 0.9], [0.9, 0.4, 0.4, 0.1, 0.1]])
  whole = costs.pareto_costs(table, np.array([0, 5]))
  assert whole.tolist() == [0, 0, 1, 0, 0]
  apart = costs.pareto_costs(table, np.array([0, 2, 2, 5]))
  assert apart.tolist() == [0, 0, 0, 0, 0]


def test_pareto_costs_are_the_pareto_set():
  made = small_pool.make(2, metrics=(BOTH,))
  found = costs_of(made, "pareto", BOTH)
  both = costs.metric_costs(made, BOTH)
  assert both.shape == (2, len(made))
  for low, high in zip(made.offsets, made.offsets[1:], strict=False):
    front = slow.pareto(both[:, low:high].tolist())
    assert (found[low:high] == 0).tolist() == front
  assert 0 < found.sum() < len(found)


def test_pareto_of_one_metric_is_its_oracles():
  made = small_pool.make(2)
  alone = costs.metric_costs(made, "bleu")[0]
  found = costs_of(made, "pareto")
  for low, high in zip(made.offsets, made.offsets[1:], strict=False):
    own = alone[low:high]
    expected = own > own.min(initial=np.inf)
    np.testing.assert_array_equal(found[low:high] == 1, expected)


def test_unknown_costs_are_named():
  made = small_pool.make(0, metrics=("ter",))
  with pytest.raises(InputError, match="none of"):
    costs_of(made, "setnence", "ter")
  with pytest.raises(InputError, match="'linear-bleu' do not go"):
    costs_of(made, "linear-bleu", "ter")


def test_zero_one_counts_misses():
  made = costs.zero_one_pool(small_pool.make(0), "bleu")
  weights = small_pool.start(made)
  chosen = pool.best(pool.scores(made, weights), made.offsets)
  own = pool.sentence_costs(made, "bleu")
  lists = [
    (low, high)
    for low, high in zip(made.offsets, made.offsets[1:], strict=False)
    if low < high
  ]
  misses = sum(
    own[row] > own[low:high].min()
    for row, (low, high) in zip(chosen, lists, strict=True)
  )
  value = pool.pool_score(made, weights, "zero-one")
  assert value == pytest.approx(misses / len(lists))
  method = methods.configure(methods.find("zero-one"), {"restarts": "3"})
  tuned, history = method.optimise(
    small_pool.make(0), weights, method.config, 0
  )
  after = pool.pool_score(made, tuned, "zero-one")
  assert after < value
  assert -max(row["score"] for row in history) == pytest.approx(after)


def test_a_sum_of_metrics_is_a_metric():
  made = small_pool.make(0, metrics=(BOTH, "bleu,ter", "bleu", "ter"))
  weights = small_pool.start(made)
  score = lambda name: pool.pool_score(made, weights, name)
  expected = 0.7 * score("bleu") + 0.3 * (1 - score("ter"))
  assert score(BOTH) == pytest.approx(expected)
  expected = 0.5 * score("bleu") + 0.5 * (1 - score("ter"))
  assert score("bleu,ter") == pytest.approx(expected)
  own = pool.sentence_costs(made, BOTH)
  parts = [pool.sentence_costs(made, name) for name in ("bleu", "ter")]
  np.testing.assert_allclose(own, 0.7 * parts[0] + 0.3 * parts[1], atol=1e-12)


@pytest.mark.parametrize("name", ["mert", "kbmira", "pro", "rampion", "pareto"])
def test_methods_take_several_metrics(name):
  made = small_pool.make(0, metrics=(BOTH,))
  start = small_pool.start(made)
  more = {"draws": "200", "min_difference": "0.01"} if name == "pro" else {}
  method = methods.configure(methods.find(name), {"metric": BOTH, **more})
  tuned, _ = method.optimise(made, start, method.config, 0)
  after = pool.pool_score(made, tuned, BOTH)
  assert after > pool.pool_score(made, start, BOTH) + 0.005


@pytest.mark.parametrize(
  "name,match",
  [
    ("blue", "no metric 'blue'"),
    ("bleu,tre", "no metric 'tre'"),
    ("bleu:x,ter", "not a weight"),
    ("bleu:nan", "not a weight"),
    ("bleu,chrf", "mixes units"),
    ("", "no metric ''"),
  ],
)
def test_wrong_metrics_are_named(name, match):
  with pytest.raises(InputError, match=match):
    named_metrics.find(name)


@pytest.mark.parametrize("loss", ["risk", "xbleu", "margin", "softhardramp2"])
def test_features_on_the_host_give_the_same_gradient(loss):
  made = small_pool.make(0, sparse_features=12)
  rng = np.random.default_rng(0)
  weights = rng.normal(0, 0.3, len(made.names))
  initial = np.zeros_like(weights)
  aim = objective.Objective(loss=loss, cost_scale=3.0, l2=0.2)
  own = pool.sentence_costs(made, "bleu")
  whole = objective.pad(made, "bleu", own)
  bare = objective.pad(made, "bleu", own, features=False)
  assert bare.dense.shape[-1] == 0 and bare.ids.shape[-1] == 0
  level, slope = gradient.value_and_gradient(
    jnp.asarray(weights, jnp.float32),
    jnp.asarray(initial, jnp.float32),
    whole,
    aim,
  )
  again, host = gradient.host_value_and_gradient(
    weights, initial, made, bare, aim
  )
  assert again == pytest.approx(float(level), rel=1e-4)
  np.testing.assert_allclose(host, slope, rtol=2e-3, atol=2e-4)


def test_pairs_in_parts_give_the_same_loss(monkeypatch):
  made = small_pool.make(0)
  own = pool.sentence_costs(made, "bleu")
  arrays = objective.pad(made, "bleu", own)
  weights = jnp.asarray(small_pool.start(made), jnp.float32)
  aims = [objective.Objective(loss=n) for n in ("ranking", "margin")]
  whole = [objective.value(weights, weights, arrays, aim) for aim in aims]
  monkeypatch.setattr(objective, "_PAIR_LIMIT", 500)
  parts = [objective.value(weights, weights, arrays, aim) for aim in aims]
  np.testing.assert_allclose(parts, whole, rtol=1e-5)


def test_pro_with_l1_has_zeros():
  made = small_pool.make(0, sparse_features=12)
  start = small_pool.start(made)
  found = []
  for l1 in ("0", "30"):
    method = methods.configure(
      methods.find("pro"),
      {"draws": "200", "min_difference": "0.01", "l1": l1},
    )
    tuned, _ = method.optimise(made, start, method.config, 0)
    found.append(int((tuned == 0).sum()))
  assert found[1] > found[0]


@pytest.mark.parametrize("kind", costs.KINDS)
def test_costs_of_odd_pools(kind):
  """One candidate, no candidate, an empty translation, NaN left out."""
  data = b"0 ||| a b ||| x=1 ||| 0\n2 ||| ||| x=1 ||| 0\n"
  data += b"2 ||| c ||| x=nan ||| 0\n"
  made = pool.make_pool(kbest_files.parse_kbest(data), sentences=3)
  made = pool.with_statistics(made, [["a b"], ["c"], ["c d e f"]])
  assert made.dropped == 1
  own = costs.candidate_costs(made, np.ones(1), metric="bleu", kind=kind)
  assert own.shape == (2,) and np.isfinite(own).all()
  nothing = pool.make_pool(kbest_files.parse_kbest(b""), sentences=2)
  nothing = pool.with_statistics(nothing, [["a"], ["b"]])
  empty = costs.candidate_costs(nothing, np.ones(0), metric="bleu", kind=kind)
  assert empty.shape == (0,)


@pytest.mark.parametrize("name", ["perceptron", "kbmira", "ramp3", "risk"])
def test_a_loop_is_never_given_the_start_back(name):
  """From weights that nothing on the pool beats."""
  made = small_pool.make(0)
  best, _ = methods.find("mert").optimise(
    made, small_pool.start(made), methods.find("mert").config, 0
  )
  method = methods.find(name)
  kept, _ = method.optimise(made, best, method.config, 0)
  assert pool.pool_score(made, kept, "bleu") >= pool.pool_score(
    made, best, "bleu"
  )
  method = methods.exploring(method)
  moved, history = method.optimise(made, best, method.config, 0)
  assert not np.array_equal(moved, best)
  top = max(row["score"] for row in history)
  assert pool.pool_score(made, moved, "bleu") == pytest.approx(top)


def test_exploring_reaches_into_mixtures():
  mixed = mixing.wrap(methods.find("kbmira"), metric="bleu")
  method = methods.exploring(mixed)
  assert method.config.explore and method.inner.config.explore
  plain = methods.find("mert")
  assert methods.exploring(plain).config == plain.config


def test_start_scale_finds_a_slope_again():
  made = small_pool.make(0)
  start = 1e4 * small_pool.start(made)
  before = pool.pool_score(made, start, "bleu")
  scores = []
  for scale in ("0", "0.1"):
    method = methods.configure(
      methods.find("risk"), {"start_scale": scale, "steps": "30"}
    )
    tuned, _ = method.optimise(made, start, method.config, 0)
    scores.append(pool.pool_score(made, tuned, "bleu"))
  assert scores[0] == before  # probabilities are 0 and 1: no slope at all
  assert scores[1] > before + 0.01


def test_oracles():
  costs = np.array([0.3, 0.1, 0.1, 0.5, 0.2])
  offsets = np.array([0, 3, 3, 5])
  found = costs_lib.sentence_oracles(costs, offsets)
  assert found.tolist() == [False, True, True, False, True]


def test_greedy_corpus_oracle():
  made = small_pool.make(0, sentences=6, width=4)
  rows, score = costs_lib.greedy_corpus_oracle(made, metric="bleu", seed=0)
  metric = pool.find_metric("bleu")
  statistics = made.statistics["bleu"]
  lists = [
    range(low, high)
    for low, high in zip(made.offsets, made.offsets[1:], strict=False)
    if low < high
  ]
  grid = np.stack(np.meshgrid(*lists, indexing="ij"), -1).reshape(
    -1, len(lists)
  )
  every = metric.corpus_score(statistics[grid].sum(1))
  assert every.max() >= score >= 0.97 * every.max()  # a local optimum
  np.testing.assert_allclose(
    metric.corpus_score(statistics[rows].sum(0)), score
  )
  for place, choices in enumerate(lists):
    for row in choices:
      other = rows.copy()
      other[place] = row
      assert metric.corpus_score(statistics[other].sum(0)) <= score + 1e-9
  by_sentence = pool.best(-pool.sentence_costs(made, "bleu"), made.offsets)
  assert score >= metric.corpus_score(statistics[by_sentence].sum(0))


def test_pseudo_corpus_costs():
  made = small_pool.make(0, sentences=5, width=3)
  context = pool.best(pool.scores(made, small_pool.start(made)), made.offsets)
  costs = costs_lib.pseudo_corpus_costs(made, context, metric="bleu")
  metric = pool.find_metric("bleu")
  lists = [0, 1, 2, 4]
  for place, sentence in enumerate(lists):
    for row in range(made.offsets[sentence], made.offsets[sentence + 1]):
      other = context.copy()
      other[place] = row
      value = metric.corpus_score(made.statistics["bleu"][other].sum(0))
      assert costs[row] == pytest.approx(4 * (1 - value))
