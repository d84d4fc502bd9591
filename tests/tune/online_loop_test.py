"""Online learning in the loop: batches are parts of one stream."""

import dataclasses
import itertools

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.features import sparse
from jaxmt.tune import learning, loop, methods, pool
from jaxmt.tune.lists import mira, online
from tests.reference import online as slow
from tests.tune import small_pool

START = {"hint": 0.02, "length": 0.1, "noise": 0.3}
LEARNERS = ["kbmira", "mira", "perceptron", "arow"]


@pytest.fixture(scope="module")
def world():
  """All strings there are, with sparse features, and their references."""
  made = small_pool.make(0, sentences=20, width=9, sparse_features=14)
  refs = small_pool.references(np.random.default_rng(0), 20)
  return made, refs


def decoder(made, *, log=None):
  """Ranks all candidates of a sentence; gives only the features they have."""

  def decode(weights, sentences):
    if log is not None:
      log.append((dict(weights), sentences.tolist()))
    vector = candidate_lists.to_vector(weights, made.names)
    scores = pool.scores(made, vector)
    chosen, place = [], []
    for number, sentence in enumerate(sentences):
      low, high = made.offsets[sentence], made.offsets[sentence + 1]
      chosen += (low + np.argsort(-scores[low:high], kind="stable")).tolist()
      place += [number] * (high - low)
    features = sparse.select(made.features, np.array(chosen, np.int64))
    there = np.unique(features.ids)
    table = np.full(len(made.names), -1, np.int32)
    table[there] = np.arange(len(there))
    return candidate_lists.from_rows(
      sentence=np.array(place, np.int64),
      sentences=len(sentences),
      lines=[made.lines[row] for row in chosen],
      features=sparse.renumber(features, table),
      names=tuple(made.names[number] for number in there),
    )

  return decode


def learn(world, name, *, log=None, state=None, on_round=None, **changes):
  made, refs = world
  options = changes.pop("options", {})
  method = methods.configure(methods.find(name), options)
  return loop.run(
    decoder(made, log=log),
    refs,
    method,
    state or loop.begin(START),
    loop.LoopConfig(**{"rounds": 2, "min_change": 0.0, **changes}),
    3,
    on_round=on_round or (lambda state: None),
  )


def batches(log, sentences):
  """The sentences in the order of learning: not the decodings of all."""
  return [part for _, part in log if len(part) < sentences]


def whole_pass(name, made, now, config, order):
  """One pass of the kernel over the whole pool, in a given order."""
  features, room = learning.features_of(made), learning.room(made)
  costs = pool.sentence_costs(made, "bleu")
  if name == "perceptron":
    now.steps, _ = online.perceptron_pass(
      (features, np.zeros((0, 0)), costs, made.offsets),
      order,
      (now.weights, now.lagged, np.zeros(0)),
      now.steps,
      room,
      online.PerceptronSettings(config.rate, config.cost_scale, 1, 0.0),
    )
  elif name == "arow":
    online.arow_pass(
      (features, np.zeros((0, 0)), config.cost_scale * costs, made.offsets),
      order,
      (now.weights, now.variances, np.zeros(0)),
      room,
      online.ArowSettings(
        True, config.variance_rate, config.cap, 0.0, config.cost_scale
      ),
    )
  else:
    statistics = made.statistics["bleu"].astype(float)
    settings = mira.PassSettings(
      cap=config.cap,
      decay=config.decay,
      constraints=config.constraints,
      by_document=True,
      model_background=True,
    )
    now.steps, _, _ = mira.mira_pass(
      (features, statistics, costs, made.offsets),
      order,
      (now.weights, now.lagged, now.document),
      now.steps,
      room,
      settings,
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_batches_of_one_are_passes_over_the_whole_pool(world, name):
  """Average, document and variances go on over batches and rounds."""
  made, _ = world
  log = []
  state = learn(world, name, log=log, batch_size=1)
  config = methods.find(name).config
  now = learning.Learner(weights=candidate_lists.to_vector(START, made.names))
  now.document = np.ones(9)
  now.variances += getattr(config, "initial_variance", 0.0)
  order = np.array([row for (row,) in batches(log, 20)])
  assert len(order) == 40
  for epoch in np.split(order, 2):
    whole_pass(name, made, now, config, epoch)
  found = state.memory
  assert found is not None
  vector = candidate_lists.to_vector(found.weights, made.names)
  np.testing.assert_allclose(vector, now.weights, rtol=1e-9, atol=1e-12)
  vector = candidate_lists.to_vector(state.weights, made.names)
  np.testing.assert_allclose(vector, now.average, rtol=1e-9, atol=1e-12)
  assert (vector != small_pool.start(made)).sum() > 5
  if name == "arow":
    vector = candidate_lists.to_vector(found.variances, made.names)
    vector[vector == 0.0] = 1.0  # features that no candidate has
    np.testing.assert_allclose(vector, now.variances, rtol=1e-9)
    assert found.weights == state.weights  # it does not average
  else:
    assert found.steps == 2 * 19  # a sentence has no candidates
    assert found.weights != state.weights
  if "mira" in name:
    np.testing.assert_allclose(found.document, now.document, rtol=1e-9)


def test_mira_in_batches_equals_the_slow_one(world):
  made, _ = world
  log = []
  options = {"shuffle": "false", "cap": "0.05", "decay": "0.9"}
  state = learn(world, "kbmira", log=log, options=options, batch_size=6)
  found = batches(log, 20)
  assert [len(part) for part in found] == [6, 6, 6, 2] * 2
  full = sparse.to_dense(made.features, len(made.names))
  spans = list(itertools.pairwise(made.offsets))
  last, total = slow.mira(
    [full[low:high] for low, high in spans],
    [made.statistics["bleu"][low:high] for low, high in spans],
    candidate_lists.to_vector(START, made.names),
    [row for part in found for row in part],
    cap=0.05,
    decay=0.9,
    model=True,
  )
  assert state.memory is not None
  vector = candidate_lists.to_vector(state.memory.weights, made.names)
  np.testing.assert_allclose(vector, last, rtol=1e-9, atol=1e-12)
  vector = candidate_lists.to_vector(state.weights, made.names)
  np.testing.assert_allclose(vector, total / 38, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("count", [1, 3])
def test_one_batch_of_all_is_the_batch_method(world, name, count):
  made, refs = world
  state = learn(world, name, rounds=1, batch_size=20, batch_passes=count)
  method = methods.configure(methods.find(name), {"passes": str(count)})
  full = pool.with_statistics(
    pool.make_pool(decoder(made)(START, np.arange(20)), sentences=20), refs
  )
  # Of several passes the batch method takes the best, the learner the last.
  begun = learning.Learner(weights=candidate_lists.to_vector(START, full.names))
  assert method.passes is not None
  *_, (last, _) = method.passes(
    full, begun, method.config, loop._round_seed(3, 0, 1)
  )
  vector = candidate_lists.to_vector(state.weights, full.names)
  np.testing.assert_array_equal(vector, last.average)
  if count == 1:
    method = methods.exploring(method)
    tuned, _ = method.optimise(
      full,
      candidate_lists.to_vector(START, full.names),
      method.config,
      loop._round_seed(3, 0, 1),
    )
    np.testing.assert_array_equal(vector, tuned)


def test_averages_are_judged_and_current_weights_decode(world):
  log, states = [], []
  state = learn(world, "kbmira", log=log, on_round=states.append, batch_size=8)
  assert [len(part) for _, part in log] == [20, 8, 8, 4, 20, 8, 8, 4, 20]
  assert log[4][0] == states[0].weights and log[8][0] == states[1].weights
  assert log[5][0] == states[0].memory.weights != states[0].weights
  assert log[6][0] not in (log[5][0], log[7][0])
  assert state.candidates is None
  assert state.best_score > state.history[0]["score"] + 0.02
  judged = [weights for weights, part in log if len(part) == 20]
  assert state.best_weights in judged


STEPS = {"optimizer": "adagrad", "rate": "0.02", "batch_size": "1"}


def slopes(made, weights, centre, row, l2):
  """The gradient of risk of one sentence, float64."""
  low, high = made.offsets[row], made.offsets[row + 1]
  if low == high:
    return l2 * (weights - centre)
  phi = sparse.to_dense(made.features, len(made.names))[low:high]
  costs = pool.sentence_costs(made, "bleu")[low:high]
  p = np.exp(phi @ weights - (phi @ weights).max())
  p /= p.sum()
  return (p * (costs - p @ costs)) @ phi + l2 * (weights - centre)


@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
def test_an_optimizer_goes_on_over_batches_and_rounds(world, optimizer):
  """Its sums and steps are those of one stream; L2 pulls to the start."""
  made, _ = world
  log = []
  options = {**STEPS, "optimizer": optimizer, "l2": "0.1", "cost_scale": "1"}
  options["start_scale"] = "0"
  state = learn(world, "risk", log=log, options=options, batch_size=1)
  weights = candidate_lists.to_vector(START, made.names)
  centre = weights.copy()
  mean, squares, times = np.zeros((3, len(weights)))
  for (row,) in batches(log, 20):
    used = sparse.to_dense(made.features, len(made.names))
    used = (used[made.offsets[row] : made.offsets[row + 1]] != 0).any(0)
    slope = slopes(made, weights, centre, row, 0.1)
    times += 1
    if optimizer == "adagrad":
      squares[used] += slope[used] ** 2
      step = slope / np.sqrt(squares + 1e-8)
    else:
      mean[used] = 0.9 * mean[used] + 0.1 * slope[used]
      squares[used] = 0.999 * squares[used] + 0.001 * slope[used] ** 2
      step = mean / (1 - 0.9**times)
      step /= np.sqrt(squares / (1 - 0.999**times)) + 1e-8
    weights[used] -= 0.02 * step[used]
  assert state.memory is not None and state.memory.slots
  found = candidate_lists.to_vector(state.memory.weights, made.names)
  # Adam makes steps of the rounding of a slope that is 0.
  real = np.array(made.names) != "constant"
  np.testing.assert_allclose(found[real], weights[real], rtol=2e-3, atol=2e-4)
  assert state.weights == state.memory.weights
  again = loop.from_arrays(loop.to_arrays(state))
  assert again.memory == state.memory


def test_a_batch_optimizer_is_no_online_learner(world):
  assert methods.online_passes(methods.find("risk")) is None
  method = methods.configure(methods.find("risk"), {"optimizer": "adam"})
  assert methods.online_passes(method) is not None
  annealed = methods.configure(
    methods.find("annealed-risk"), {"optimizer": "adam"}
  )
  assert methods.online_passes(annealed) is None


@pytest.mark.parametrize("name", [*LEARNERS, "rampion", "risk"])
def test_an_interrupted_run_goes_on(world, name):
  saved = []
  settings = {"batch_size": 7, "rounds": 3}
  if name == "risk":
    settings["options"] = STEPS
  whole = learn(
    world,
    name,
    on_round=lambda state: saved.append(loop.to_arrays(state)),
    **settings,
  )
  assert len(saved) == 4
  for arrays in saved:
    rest = learn(world, name, state=loop.from_arrays(arrays), **settings)
    assert rest == whole


def test_methods_without_passes_optimise_each_batch(world):
  state = learn(world, "rampion", batch_size=10)
  assert state.memory is not None
  assert state.memory.steps == 0 and state.memory.weights == state.weights
  assert state.best_score > state.history[0]["score"]


def test_memory():
  before = learning.LearnerMemory(
    weights={"a": 1.0, "b": 2.0}, lagged={"b": 4.0}, steps=2
  )
  assert before.average == {"a": 1.0, "b": 0.0}
  now = before.recall(["b", "c", "d"])
  assert now.weights.tolist() == [2, 0, 0] and now.lagged.tolist() == [4, 0, 0]
  now.weights[:] = [0, 0, 5]
  now.lagged[:] = [0, 3, 0]
  now.variances[:] = [0.5, 0, 0]
  now.document, now.steps = np.ones(2), 3
  after = before.store(now, ["b", "c", "d"])
  assert after == learning.LearnerMemory(
    weights={"a": 1.0, "b": 0.0, "d": 5.0},
    lagged={"b": 0.0, "c": 3.0},
    variances={"b": 0.5},
    document=[1.0, 1.0],
    steps=3,
  )
  # A weight that is 0 again may still have been something on average.
  assert after.average == {"a": 1.0, "b": 0.0, "d": 5.0, "c": -1.0}
  assert dataclasses.asdict(before)["document"] == []
