"""All methods by name: they improve, repeat, and bear odd pools."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.losses import registry as losses
from jaxmt.metrics import registry
from jaxmt.runtime import parallel
from jaxmt.tune import (
  gradient_config,
  methods,
  mixing,
  oracles,
  pool,
  pool_scores,
)
from jaxmt.tune.formats import kbest_files
from jaxmt.tune.lists import gradient, objective, owlqn, padded, stochastic
from tests.tune import small_pool

QUICK = {
  "mert": {"restarts": "3"},
  "kbmira": {"cap": "0.1", "passes": "20"},
  "mira": {"cap": "0.1", "passes": "20"},
  "pro": {"draws": "200", "kept": "20", "min_difference": "0.01"},
  "nelder-mead": {"evaluations": "200"},
}
GRADIENT = {"steps": "30", "passes": "5", "batch_size": "8", "rate": "0.1"}


def quick(name, **more):
  method = methods.find(name)
  changes = dict(QUICK.get(name, {}))
  if method.on_devices:
    changes.update(GRADIENT)
  changes.update(more)
  return methods.configure(method, changes)


@pytest.mark.parametrize("name", methods.names(needs=methods.LISTS))
def test_every_method_improves_and_repeats(name):
  made = small_pool.make(0)
  start = small_pool.start(made)
  before = pool_scores.pool_score(made, start, "bleu")
  method = quick(name)
  tuned, history = method.optimise(made, start, method.config, 7)
  # Hard ramp 1 only pushes its own choice up: it gains, but little.
  least = 0.0 if name == "ramp1" else 0.01
  assert pool_scores.pool_score(made, tuned, "bleu") > before + least
  assert np.isfinite(tuned).all() and history
  again, _ = method.optimise(made, start, method.config, 7)
  np.testing.assert_array_equal(tuned, again)


@pytest.mark.parametrize(
  "name", ["kbmira", "mira", "perceptron", "arow", "rampion", "pro", "risk"]
)
def test_sparse_features_are_learnt(name):
  made = small_pool.make(0, sparse_features=12)
  start = small_pool.start(made)
  method = quick(name)
  tuned, _ = method.optimise(made, start, method.config, 0)
  assert np.abs(tuned[4:]).max() > 0
  after = pool_scores.pool_score(made, tuned, "bleu")
  assert after > pool_scores.pool_score(made, start, "bleu") + 0.01


@pytest.mark.parametrize("name", ["mert", "kbmira", "pro", "risk", "rampion"])
def test_error_rates_go_down(name):
  made = small_pool.make(0, metrics=("ter",))
  start = small_pool.start(made)
  method = quick(name, metric="ter")
  tuned, _ = method.optimise(made, start, method.config, 0)
  after = pool_scores.pool_score(made, tuned, "ter")
  assert after < pool_scores.pool_score(made, start, "ter")


@pytest.fixture(scope="module")
def judged():
  """A pool with the statistics of all metrics."""
  return small_pool.make(0, metrics=tuple(registry.METRICS))


@pytest.mark.parametrize("metric", registry.METRICS)
@pytest.mark.parametrize(
  "name", ["mert", "kbmira", "perceptron", "arow", "rampion", "pro"]
)
def test_every_metric_is_a_target(judged, name, metric):
  start = small_pool.start(judged)
  method = quick(name, metric=metric)
  tuned, history = method.optimise(judged, start, method.config, 0)
  assert np.isfinite(tuned).all() and history
  before = pool_scores.pool_score(judged, start, metric)
  after = pool_scores.pool_score(judged, tuned, metric)
  if registry.METRICS[metric].higher_is_better:
    assert after > before
  else:
    assert after < before


HOST = sorted({*methods.names(needs=methods.LISTS)} - {*losses.names()})
RAMPS = ("ramp1", "ramp2", "ramp3")
ODD = ("risk", "hinge", "linear-bleu", "pareto", "xbleu", "margin", "mse")


@pytest.mark.parametrize("name", [*HOST, *RAMPS, *ODD])
def test_pools_with_nothing_to_learn(name):
  """Single candidates, empty lists, equal features: weights stay finite."""
  data = b"0 ||| a b ||| x=1 y=1 ||| 0\n"
  data += b"2 ||| ||| x=1 y=1 ||| 0\n2 ||| c ||| x=1 y=1 ||| 0\n"
  refs = [["a b"], ["c"], ["c d e f"]]
  made = pool.make_pool(kbest_files.parse_kbest(data), sentences=3)
  made = pool.with_statistics(made, refs)
  start = np.array([0.5, -0.5])
  method = quick(name)
  tuned, _ = method.optimise(made, start, method.config, 0)
  assert np.isfinite(tuned).all()


WRONG = [
  ("mert", {"variant": "x"}),
  ("mert", {"restarts": "0"}),
  ("mert", {"spread": "nan"}),
  ("zero-one", {"metric": "blue"}),
  ("nelder-mead", {"size": "0"}),
  ("pro", {"interpolation": "2"}),
  ("pro", {"cost_metric": "ter"}),
  ("pro", {"kept": "-1"}),
  ("kbmira", {"background": "x"}),
  ("kbmira", {"constraints": "0"}),
  ("perceptron", {"surrogate": "x"}),
  ("perceptron", {"costs": "x"}),
  ("arow", {"variant": "x"}),
  ("arow", {"initial_variance": "0"}),
  ("rampion", {"form": "4"}),
  ("ramp2", {"cost_scale": "-1"}),
  ("risk", {"optimizer": "x"}),
  ("risk", {"l1": "1"}),
  ("risk", {"temperatures": "1,2"}),
  ("risk", {"loss": "x"}),
  ("risk", {"temperature": "1"}),
  ("risk", {"batch_size": "0"}),
  ("xbleu", {"metric": "ter"}),
  ("linear-bleu", {"metric": "ter"}),
]


@pytest.mark.parametrize("name,changes", WRONG)
def test_bad_options_are_one_line(name, changes):
  with pytest.raises(InputError) as error:
    methods.configure(methods.find(name), changes)
  assert "\n" not in str(error.value)


def test_options_are_set_together():
  """Each of them alone would be refused."""
  changes = {"l1": "0.1", "optimizer": "owlqn", "scale": "3"}
  config = methods.configure(methods.find("risk"), changes).config
  assert (config.l1, config.settings) == (0.1, {"scale": 3.0})


def test_names_and_options():
  with pytest.raises(InputError, match="no method"):
    methods.find("mret")
  made, forest_mert = small_pool.make(0), methods.find("forest-mert")
  with pytest.raises(InputError, match="needs forests"):
    start = small_pool.start(made)
    forest_mert.optimise(made, start, forest_mert.config, 0)
  method = methods.find("mert")
  assert methods.configure(method, {"restarts": "5"}).config.restarts == 5
  with pytest.raises(InputError, match="no option"):
    methods.configure(method, {"restart": "5"})
  with pytest.raises(InputError, match="cannot read"):
    methods.configure(method, {"restarts": "five"})
  risk = methods.configure(
    methods.find("risk"), {"cost_scale": "3", "scales": "1,2"}
  )
  assert risk.config.cost_scale == 3.0
  assert risk.config.scales == (1.0, 2.0)
  shuffle = methods.configure(methods.find("kbmira"), {"shuffle": "false"})
  assert shuffle.config.shuffle is False


@pytest.mark.parametrize("variant", ["best", "powell"])
def test_mert_does_not_depend_on_threads(variant):
  made = small_pool.make(2)
  start = small_pool.start(made)
  results = []
  for threads in ("1", "3"):
    method = quick(
      "mert",
      threads=threads,
      variant=variant,
      random_directions="2",
      plateau="1",
      restarts="5",
    )
    tuned, history = method.optimise(made, start, method.config, 3)
    results.append(tuned)
    best = max(row["score"] for row in history)
    assert pool_scores.pool_score(made, tuned, "bleu") == pytest.approx(best)
  np.testing.assert_array_equal(*results)


def test_mert_leaves_sparse_weights_alone():
  made = small_pool.make(0, sparse_features=6)
  start = small_pool.start(made)
  start[4:] = 0.25
  method = quick("mert")
  tuned, _ = method.optimise(made, start, method.config, 0)
  np.testing.assert_array_equal(tuned[4:], start[4:])


@pytest.mark.parametrize("optimizer", gradient_config.OPTIMIZERS)
def test_optimizers(optimizer):
  made = small_pool.make(0, sparse_features=12)
  start = small_pool.start(made)
  l1 = {"owlqn": "0.05", "fobos": "0.05", "rda": "0.005"}.get(optimizer, "0")
  rate = {"sgd": "2", "rda": "1"}.get(optimizer, "0.1")
  method = quick("risk", optimizer=optimizer, l1=l1, cost_scale="1", rate=rate)
  tuned, history = method.optimise(made, start, method.config, 0)
  after = pool_scores.pool_score(made, tuned, "bleu")
  assert after > pool_scores.pool_score(made, start, "bleu")
  assert history[-1]["loss"] < 0.7
  if float(l1):
    assert 0 < (tuned[4:] == 0).sum()


def test_owlqn_solves_the_lasso():
  """Separable quadratic: the solution is soft thresholding."""
  target = np.array([3.0, -0.4, 0.1, -2.0, 0.0])

  def evaluate(w):
    return 0.5 * float((w - target) @ (w - target)), w - target

  found = owlqn.minimise(evaluate, np.zeros(5), l1=0.5, steps=50)
  np.testing.assert_allclose(found[-1], [2.5, 0, 0, -1.5, 0], atol=1e-6)
  assert (found[-1][[1, 2, 4]] == 0).all()
  found = owlqn.minimise(evaluate, np.zeros(5), l1=0.0, steps=50)
  np.testing.assert_allclose(found[-1], target, atol=1e-6)


def stepwise(objective_, **settings):
  """Single steps over all sentences, and the gradient before each."""
  made = small_pool.make(0)
  arrays = padded.pad(made, "bleu", pool_scores.sentence_costs(made, "bleu"))
  start = jnp.asarray(small_pool.start(made), jnp.float32)
  count = arrays.mask.shape[0]
  found = list(
    stochastic.passes(
      start, arrays, objective_, batch_size=count, count=4, seed=0, **settings
    )
  )
  before = [start, *found[:-1]]
  loss = dataclasses.replace(objective_, l2=0.0)
  slopes = [
    gradient.value_and_gradient(w, start, arrays, loss)[1] for w in before
  ]
  return start, before, found, slopes


def test_the_rate_falls():
  risk = objective.Objective(loss="risk")
  _, before, after, slopes = stepwise(
    risk, kind="sgd", rate=0.3, half_life=2.0, l1=0.0
  )
  rates = [0.3, 0.2, 0.15, 0.12]  # 0.3 / (1 + t / 2)
  for old, new, slope, rate in zip(before, after, slopes, rates, strict=True):
    np.testing.assert_allclose(new - old, -rate * slope, rtol=1e-3, atol=1e-6)
  for wrong in ("rda", "lbfgs"):
    with pytest.raises(InputError, match="half_life"):
      quick("risk", optimizer=wrong, half_life="5")


def test_gradients_that_are_not_finite_are_an_error():
  made = small_pool.make(0)
  made.dense[5] = np.inf  # beyond what a file can bring in
  for optimizer in ("sgd", "lbfgs", "optax-lbfgs"):
    method = quick("softmax", optimizer=optimizer)
    with pytest.raises(InputError, match="gradient of softmax is not finite"):
      methods.run(method, made, np.zeros(4), 0)


def test_fobos_with_both_penalties():
  risk = objective.Objective(loss="risk", l2=0.5)
  start, before, after, slopes = stepwise(risk, kind="fobos", rate=0.1, l1=0.02)
  squares = 0.0
  for old, new, slope in zip(before, after, slopes, strict=True):
    squares = squares + slope**2
    pace = 0.1 / np.sqrt(squares + 1e-16)
    moved = old - pace * slope + pace * 0.5 * start
    expected = np.sign(moved) * np.maximum(np.abs(moved) - pace * 0.02, 0.0)
    seen = np.abs(slope) > 1e-5  # of no slope the step is rounding
    np.testing.assert_allclose(
      new[seen], (expected / (1 + pace * 0.5))[seen], rtol=1e-3, atol=1e-5
    )


LOSS_NAMES = ["softramp2", "mse", "xbleu"]


def test_padded_scores_and_sharding():
  made = small_pool.make(0, sparse_features=9)
  weights = np.random.default_rng(0).normal(size=len(made.names))
  flat = padded.pad(made, "bleu", pool_scores.sentence_costs(made, "bleu"))
  scores = padded.padded_scores(flat, jnp.asarray(weights, jnp.float32))
  np.testing.assert_allclose(
    np.asarray(scores)[np.asarray(flat.mask)],
    pool_scores.scores(made, weights),
    rtol=1e-4,
    atol=1e-4,
  )
  mesh = parallel.make_mesh(8)
  spread = parallel.split(
    mesh,
    padded.pad(
      made, "bleu", pool_scores.sentence_costs(made, "bleu"), multiple=8
    ),
  )
  w = jnp.asarray(weights, jnp.float32)

  def total(w, arrays):
    values = jnp.stack(
      [
        objective.value(
          w, 0 * w, arrays, objective.Objective(loss=name, l2=0.1)
        )
        for name in LOSS_NAMES
      ]
    )
    return values.sum(), values

  step = jax.jit(jax.grad(total, has_aux=True))
  gradient_one, one = step(w, flat)
  gradient_many, many = step(w, spread)
  np.testing.assert_allclose(many, one, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(gradient_many, gradient_one, rtol=1e-4, atol=1e-5)


def test_one_device_and_eight_tune_alike():
  made = small_pool.make(0)
  start = small_pool.start(made)
  results = []
  for devices in ("1", "8"):
    method = quick("softramp3", devices=devices, steps="5", cost_scale="3")
    tuned, history = method.optimise(made, start, method.config, 0)
    results.append((tuned, [row["loss"] for row in history]))
  np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-3, atol=1e-5)
  np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-4)


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
  after = pool_scores.pool_score(made, results[0], "bleu")
  assert after > pool_scores.pool_score(made, start, "bleu")


def test_column_selection():
  stacked = np.array([[1.0, 0.0, 3.0, -2.0], [3.0, 0.1, -3.0, -2.0]])
  chosen = mixing.select_columns(stacked, dense=1, keep=1, norm=2)
  assert chosen.tolist() == [2.0, 0.0, 0.0, 0.0]  # strongest, but they cancel
  chosen = mixing.select_columns(stacked, dense=1, keep=2, norm=1)
  assert chosen.tolist() == [2.0, 0.0, 0.0, -2.0]
  chosen = mixing.select_columns(stacked, dense=1, keep=0, norm=1)
  np.testing.assert_allclose(chosen, stacked.mean(0))


def test_oracles():
  costs = np.array([0.3, 0.1, 0.1, 0.5, 0.2])
  offsets = np.array([0, 3, 3, 5])
  found = oracles.sentence_oracles(costs, offsets)
  assert found.tolist() == [False, True, True, False, True]


def test_greedy_corpus_oracle():
  made = small_pool.make(0, sentences=6, width=4)
  rows, score = oracles.greedy_corpus_oracle(made, metric="bleu", seed=0)
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
  by_sentence = pool_scores.best(
    -pool_scores.sentence_costs(made, "bleu"), made.offsets
  )
  assert score >= metric.corpus_score(statistics[by_sentence].sum(0))


def test_pseudo_corpus_costs():
  made = small_pool.make(0, sentences=5, width=3)
  context = pool_scores.best(
    pool_scores.scores(made, small_pool.start(made)), made.offsets
  )
  costs = oracles.pseudo_corpus_costs(made, context, metric="bleu")
  metric = pool.find_metric("bleu")
  lists = [0, 1, 2, 4]
  for place, sentence in enumerate(lists):
    for row in range(made.offsets[sentence], made.offsets[sentence + 1]):
      other = context.copy()
      other[place] = row
      value = metric.corpus_score(made.statistics["bleu"][other].sum(0))
      assert costs[row] == pytest.approx(4 * (1 - value))


def pairs_of(made, costs):
  """Differences of features and of costs, all oracle-other pairs of a list."""
  rows, targets = [], []
  for low, high in itertools.pairwise(made.offsets):
    here = np.arange(low, high)
    oracle = costs[low:high] <= costs[low:high].min(initial=np.inf) + 1e-6
    for good in here[oracle]:
      for bad in here[~oracle]:
        rows.append(made.dense[good] - made.dense[bad])
        targets.append(costs[bad] - costs[good])
  return np.array(rows), np.array(targets)


def test_mse_is_least_squares():
  """Its last iterate; the method itself takes that of the best pool score."""
  made = small_pool.make(0)
  x, y = pairs_of(made, pool_scores.sentence_costs(made, "bleu"))
  exact, *_ = np.linalg.lstsq(x, y, rcond=None)
  least = np.mean((y - x @ exact) ** 2)
  assert least < 0.9 * np.mean(y**2)
  method = methods.configure(
    methods.find("mse"), {"steps": "200", "chunk": "1000", "explore": "true"}
  )
  tuned, history = method.optimise(made, np.zeros(4), method.config, 0)
  assert history[-1]["loss"] == pytest.approx(least, rel=1e-4)
  np.testing.assert_allclose(tuned, exact, atol=2e-3)
