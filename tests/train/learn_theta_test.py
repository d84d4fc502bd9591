"""LearnTheta: wherever the work is done and however often it dies."""

import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.chart import beam_forest, decoder
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.grammar import estimate
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.runtime import checkpoint, parallel
from jaxmt.runtime.runner import Runner
from jaxmt.train import counts as counts_lib
from jaxmt.train import (
  learn_theta,
  shard_counting,
  theta_features,
  theta_methods,
)
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.training import PreviousEpoch, Resources, RunOptions
from tests import util
from tests.reference import tiny_training as tiny

CONFIG = ThetaConfig(
  iterations=3, shard=3, batch_cells=40, k=3, margin=2, cost=2.0
)


def learn(config=CONFIG, world=None, previous=None, **options):
  model, bitext = world or tiny.make()
  options = RunOptions(search=tiny.SEARCH, **options)
  return theta_methods.train(
    model, bitext, config, options=options, previous=previous
  )


@pytest.fixture(scope="module")
def learned():
  return learn()


def same(one, two):
  np.testing.assert_array_equal(one.counts, two.counts)
  np.testing.assert_array_equal(one.theta, two.theta)
  assert one.history == two.history
  assert (one.own is None) == (two.own is None)
  if one.own is not None:
    np.testing.assert_array_equal(one.own.units, two.own.units)
    for part in ("flat", "offsets"):
      wanted = getattr(two.own.rules, part)
      np.testing.assert_array_equal(getattr(one.own.rules, part), wanted)


def test_theta_is_add_alpha_relative_frequency_of_the_counts(learned):
  model, _ = tiny.make()
  groups = estimate.group_rules(model.table)
  want = estimate.relative_frequency(
    learned.counts / COUNT_UNIT, groups, alpha=0.5
  )
  np.testing.assert_allclose(learned.theta, want, rtol=1e-6)
  source = np.bincount(
    groups.source[groups.member],
    np.exp(learned.theta[groups.member, 3]),
    minlength=groups.sizes[1],
  )
  np.testing.assert_allclose(source[source > 0], 1.0, rtol=1e-5)
  # Rules nothing uses keep their part.
  assert np.sum(learned.counts[groups.member] == 0) > 0
  assert np.isfinite(learned.theta).all()
  assert learned.theta[groups.member].min() > np.log(estimate.FLOOR)


def test_reports_account_for_every_sentence(learned):
  assert [record["iteration"] for record in learned.history] == [0, 1, 2]
  for record in learned.history:
    assert record["sentences"] == 10
    assert record["admissible"] + record["fallbacks"] == 10
    assert 0 <= record["fallback_mass_share"] <= 1
    assert (record["fallback_mass_share"] > 0) == (record["fallbacks"] > 0)
    assert "seconds" not in record


def test_no_selected_derivation_beats_the_best_of_the_search():
  """Where all sentences are admissible, both means are over all of them."""
  for record in learn(dataclasses.replace(CONFIG, constraint=100.0)).history:
    assert record["admissible"] == record["sentences"] == 10
    assert record["model_score"] <= record["searched_score"] + 1e-4


def test_fallback_mass_is_a_share_of_the_counts():
  values = np.zeros((4, len(shard_counting.COLUMNS) + 2))
  values[:, 3] = [2, 3, 4, 1]  # rules counted
  values[:, -2] = [1, 0, 1, 0]  # admissible
  record = learn_theta.describe(values, np.ones(3, np.int64))
  assert record["fallback_mass_share"] == 0.4
  values[:, 3] = 0
  record = learn_theta.describe(values, np.zeros(3, np.int64))
  assert record["fallback_mass_share"] == 0.0


def test_records_tell_what_the_beam_loss_does(learned):
  """A narrow beam of 3: its loss is there, and moves counts."""
  for record in learned.history:
    assert record["diagnosed"] > 0
    assert 0 <= record["beam_changes"] <= 1
    assert sum(record["ranks"].values()) > sum(record["plain_ranks"].values())
    assert sum(record["plain_ranks"].values()) > 0
    assert 0 <= record["near_share"] <= 1
  config = dataclasses.replace(CONFIG, iterations=1, diagnose=1, alpha1=3.0)
  strong = learn(config).history[0]
  alone = learn(dataclasses.replace(config, alpha2=0.0)).history[0]
  without = learn(dataclasses.replace(config, alpha1=0.0)).history[0]
  for record in (strong, alone, without):
    assert record["diagnosed"] == 10
    parts = [sum(record[n].values()) for n in ("ranks", "plain_ranks")]
    assert parts[0] == parts[1] > 20
  assert strong["beam_changes"] > 0
  assert alone["beam_changes"] > 0
  assert without["beam_changes"] == 0


def test_diagnosis_makes_no_difference_to_theta(learned):
  other = learn(dataclasses.replace(CONFIG, diagnose=0))
  np.testing.assert_array_equal(other.counts, learned.counts)
  assert other.history[0]["beam_changes"] is None


@pytest.mark.parametrize("counts", ["viterbi", "forest"])
def test_without_losses_it_is_plain_training_on_the_decoder_s_output(counts):
  """Counts of D(s, .) as the plain decoder explores it, by hand."""
  config = dataclasses.replace(
    CONFIG, alpha1=0.0, alpha2=0.0, constraint=100.0, iterations=1
  )
  got = learn(dataclasses.replace(config, counts=counts))
  model, bitext = tiny.make()
  model = theta_features.scaled(model, config.scale)
  source = models.rescore_source(model, bitext.source)
  want = np.zeros(len(model.table))
  settings = DecodeConfig(search=tiny.SEARCH)
  for (result,) in decoder.decode(model, source, config=settings):
    grown = beam_forest.extract(model, result)
    size = 1 if counts == "viterbi" else 20_000
    found = translation_forest.kbest(model, result.source, grown, size=size)
    for row in range(len(grown)):
      here = range(found.offsets[row], found.offsets[row + 1])
      weight = np.exp(found.score[here] - found.score[here].max())
      for item, share in zip(here, weight / weight.sum(), strict=True):
        rules = grown.edges.rule[found.edges[item]]
        np.add.at(want, rules[rules < len(want)], share)
        want[model.copy_rule] += share * np.sum(rules > len(want))
  np.testing.assert_allclose(got.counts / COUNT_UNIT, want, atol=1e-4)
  assert want.sum() > 20


@pytest.mark.parametrize(
  "resources",
  [
    Resources(runner=Runner(kind="serial", workers=1)),
    Resources(runner=Runner(kind="threads", workers=3)),
  ],
  ids=["serial", "threads"],
)
def test_threads_change_nothing(learned, resources):
  same(learn(resources=resources), learned)


def test_devices_change_nothing(learned):
  whole = dataclasses.replace(CONFIG, shard=100)
  resources = Resources(
    runner=Runner(kind="serial", workers=1), mesh=parallel.make_mesh(3)
  )
  same(learn(whole, resources=resources), learned)


def test_shards_change_nothing(learned):
  for size in (1, 7):
    got = learn(dataclasses.replace(CONFIG, shard=size))
    same(got, learned)


_ON_RAY = """
import dataclasses
import numpy as np
from jaxmt.runtime.runner import Runner
from jaxmt.train.training import Resources
from tests.train import learn_theta_test as own
config = dataclasses.replace(own.CONFIG, iterations=1, shard=5)
far = Resources(runner=Runner(kind="ray", workers=1))
on_ray = own.learn(config, resources=far)
here = own.learn(config, resources=Resources(runner=Runner(kind="serial")))
np.testing.assert_array_equal(on_ray.counts, here.counts)
np.testing.assert_array_equal(on_ray.theta, here.theta)
print("equal", int((here.counts > 0).sum()))
"""


def test_ray_changes_nothing(tmp_path):
  """In a process of its own: Ray does not like one that runs JAX already."""
  pytest.importorskip("ray")
  done = subprocess.run(
    [sys.executable, "-c", _ON_RAY],
    capture_output=True,
    text=True,
    cwd=util.ROOT,
    timeout=600,
    env={
      **os.environ,
      "PYTHONPATH": str(util.ROOT),
      "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
      "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    },
  )
  assert done.returncode == 0, done.stderr
  assert int(done.stdout.split()[-1]) > 10


class Killed(BaseException):
  """Stands for a kill: nothing of ours may catch it."""


class Dying:
  """A store that dies at its n-th write or removal."""

  def __init__(self, store, left):
    self._store, self._left = store, left

  def _step(self):
    self._left -= 1
    if self._left < 0:
      raise Killed

  def get(self, name):
    return self._store.get(name)

  def put(self, name, values):
    self._step()
    self._store.put(name, values)

  def drop(self, name):
    self._step()
    self._store.drop(name)


@pytest.mark.parametrize("leave_one_out", ["none", "counts"])
def test_killed_anywhere_it_resumes_to_the_same_bits(tmp_path, leave_one_out):
  config = dataclasses.replace(
    CONFIG, leave_one_out=leave_one_out, iterations=3, shard=4
  )
  world, keep = tiny.make(), {"keep_own": leave_one_out == "counts"}
  want = learn(config, world, **keep)
  assert (want.own is not None) == keep["keep_own"]
  deaths = 0
  for left in range(0, 60, 2):
    store = checkpoint.Partial(tmp_path / f"{left}")
    try:
      learn(config, world, store=Dying(store, left), **keep)
      break
    except Killed:
      deaths += 1
    same(learn(config, world, store=store, **keep), want)
  assert deaths > 8


def test_a_damaged_shard_is_made_again(tmp_path):
  config = dataclasses.replace(CONFIG, leave_one_out="counts", shard=4)
  world, folder = tiny.make(), tmp_path / "kept"
  want = learn(config, world)
  left = next(n for n in range(60) if _dies_after_the_first(config, n, folder))
  assert left
  [shard] = [p for p in folder.iterdir() if p.name == "iteration0-shard0"]
  array = next(path for path in shard.iterdir() if "units" in path.name)
  array.write_bytes(array.read_bytes()[:-1] + b"?")
  resources = Resources(clock=time.perf_counter)
  again = learn(
    config, world, store=checkpoint.Partial(folder), resources=resources
  )
  np.testing.assert_array_equal(again.counts, want.counts)
  np.testing.assert_array_equal(again.theta, want.theta)


def _dies_after_the_first(config, left, folder) -> bool:
  """Kills a run; whether it died between the first and second iteration."""
  shutil.rmtree(folder, ignore_errors=True)
  store = checkpoint.Partial(folder)
  with contextlib.suppress(Killed):
    learn(config, store=Dying(store, left))
  return (
    store.get("iteration0") is not None
    and store.get("iteration1-shard0") is not None
  )


def test_a_resumed_iteration_reports_no_speed(tmp_path):
  store = checkpoint.Partial(tmp_path / "kept")
  with contextlib.suppress(Killed):
    learn(store=Dying(store, 2))  # two shards
  resources = Resources(clock=time.perf_counter)
  history = learn(store=store, resources=resources).history
  assert ["seconds" in record for record in history] == [False, True, True]


class Meeting:
  """Threads that stand for processes, and the sum over them."""

  def __init__(self, number):
    self._barrier = threading.Barrier(number)
    self._arrays = [None] * number

  def sum(self, array):
    self._arrays[int(threading.current_thread().name)] = array
    self._barrier.wait(600)
    total = sum(self._arrays)
    self._barrier.wait(600)
    return total

  def run(self, task):
    """Calls `task(process)` in every thread; returns what came of it."""
    made = [None] * len(self._arrays)

    def one(process):
      try:
        made[process] = task(process)
      except (Killed, threading.BrokenBarrierError):
        self._barrier.abort()

    started = [
      threading.Thread(target=one, args=(process,), name=str(process))
      for process in range(len(made))
    ]
    for thread in started:
      thread.start()
    for thread in started:
      thread.join()
    return made


@pytest.mark.parametrize("leave_one_out", ["none", "counts"])
def test_killed_processes_resume_in_any_number(
  tmp_path, monkeypatch, leave_one_out
):
  """One of two dies, and with it the other; then one to three go on."""
  config = dataclasses.replace(
    CONFIG, leave_one_out=leave_one_out, iterations=3, shard=3
  )
  world, keep = tiny.make(), leave_one_out == "counts"
  want = learn(config, world, keep_own=keep)

  def together(number, folder, dying=None, left=0):
    meeting = Meeting(number)
    monkeypatch.setattr(parallel, "sum_over_processes", meeting.sum)

    def task(process):
      store = checkpoint.Partial(folder)
      if process == dying:
        store = Dying(store, left)
      resources = Resources(
        runner=Runner(kind="serial"), processes=number, process=process
      )
      return learn(
        config, world, store=store, resources=resources, keep_own=keep
      )

    return meeting.run(task)

  same(together(2, tmp_path / "whole")[0], want)
  deaths = 0
  for left in range(0, 15):
    folder = tmp_path / f"{left}"
    if None not in together(2, folder, dying=left % 2, left=left):
      continue
    deaths += 1
    made = together(1 + left % 3, folder)
    same(made[0], want)
    for other in made[1:]:
      np.testing.assert_array_equal(other.theta, want.theta)
  assert deaths > 8


def test_a_finished_iteration_is_not_done_again(learned):
  store = MemoryStore()
  same(learn(store=store), learned)

  def refuse(shard, **options):
    raise AssertionError("decoded again")

  method = dataclasses.replace(theta_methods.find(CONFIG.method), count=refuse)
  again = learn_theta.learn(
    *tiny.make(),
    CONFIG,
    method=method,
    options=RunOptions(search=tiny.SEARCH, store=store),
  )
  same(again, learned)


def test_leaving_one_out_makes_a_difference_and_needs_provenance(learned):
  for kind in ("counts", "singletons"):
    config = dataclasses.replace(CONFIG, leave_one_out=kind)
    got = learn(config)
    assert got.history[0]["sentences"] == 10
    assert got.history[0]["without_derivation"] == 0
    assert not np.array_equal(got.counts, learned.counts)
    model, bitext = tiny.make()
    bare = dataclasses.replace(bitext, provenance=None)
    with pytest.raises(ValueError, match="provenance"):
      learn(config, (model, bare))


@pytest.mark.parametrize(
  ("method", "started"),
  [
    ("loss-augmented", "extraction"),
    ("loss-augmented", "trained"),
    ("likelihood", "trained"),
    ("searn", "extraction"),
  ],
)
def test_own_counts_are_taken_out_of_the_theta_they_are_in(
  learned, monkeypatch, method, started
):
  """In the first epoch, and not out of a mixture or an unknown θ."""
  seen = []
  work_of = learn_theta.CountingWork
  monkeypatch.setattr(
    learn_theta,
    "CountingWork",
    lambda **how: seen.append(work_of(**how)) or seen[-1],
  )
  model, bitext = tiny.make()
  if started == "trained":
    model = theta_features.with_theta(model, learned.theta)
  config = dataclasses.replace(CONFIG, method=method, leave_one_out="counts")
  made = learn(config, (model, bitext))
  kinds = [work.held.kind for work in seen]
  assert [record["left_out"] for record in made.history] == kinds
  assert len(kinds) == (4 if method == "searn" else 3)
  assert kinds[0] == ("counts" if started == "extraction" else "singletons")
  assert set(kinds[1:]) == {"singletons" if method == "searn" else "counts"}
  groups = estimate.group_rules(model.table)
  for work in seen:
    if work.held.kind == "counts":
      expected = estimate.theta_of(work.held.total, groups, slice(None))
      used = theta_features.theta_features(work.model)
      np.testing.assert_allclose(used, expected, atol=1e-4)


@pytest.mark.parametrize("method", ["loss-augmented", "likelihood"])
def test_an_epoch_goes_on_where_the_one_before_ended(method):
  """With the same weights, two epochs are as many iterations of one."""
  config = dataclasses.replace(CONFIG, method=method, leave_one_out="counts")
  model, bitext = tiny.make()
  want = learn(config, (model, bitext))
  once = dataclasses.replace(config, iterations=1)
  first = learn(once, (model, bitext), keep_own=True)
  assert len(first.own) == len(bitext)
  total = np.zeros_like(first.counts)
  counts_lib.add(total, first.own)
  np.testing.assert_array_equal(total, first.counts)
  then = dataclasses.replace(config, iterations=2)
  got = learn(
    then,
    (theta_features.with_theta(model, first.theta), bitext),
    previous=PreviousEpoch(counts=first.counts, own=first.own),
  )
  np.testing.assert_array_equal(got.counts, want.counts)
  assert {record["left_out"] for record in got.history} == {"counts"}


def test_scale_leaves_best_derivations_alone():
  model, _ = tiny.make()
  scaled = theta_features.scaled(model, 2.0)
  assert scaled.lm_weight == pytest.approx(2.0)
  for name, value in model.weights.items():
    assert scaled.weights[name] == pytest.approx(value * 2.0 / 0.8)
  assert theta_features.scaled(model, 0.0) is model


def test_bad_settings_are_refused():
  for change in (
    {"method": "magic"},
    {"counts": "some"},
    {"iterations": 0},
    {"alpha": -1.0},
    {"train_beam": 100, "train_pop": 50},
    {"searn_weight": 2.0},
  ):
    with pytest.raises(ValueError, match=next(iter(change))):
      learn(dataclasses.replace(CONFIG, **change))
