"""The learner: resuming, stopping, spelling, other places."""

import dataclasses
import os

import numpy as np
import pytest

from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.runner import Runner
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.training import Resources
from jaxmt.train.violation import learner
from jaxmt.train.violation.development import halve
from tests.train.violation import worlds


class Killed(Exception):
  """What ends a run early."""


class DyingStore(MemoryStore):
  """A store whose process dies after some states were saved."""

  left = 10**9

  def put(self, name, values):
    super().put(name, values)
    if name == "state":
      self.left -= 1
      if self.left == 0:
        raise Killed


@pytest.fixture(scope="module")
def whole():
  settings = worlds.config(checkpoint=1)
  made = worlds.setting(settings)
  return made, settings, learner.learn(made, settings, store=MemoryStore())


@pytest.mark.parametrize("saves", [1, 3, 4])
def test_killed_and_resumed_is_the_same(whole, saves):
  made, settings, expected = whole
  store = DyingStore()
  store.left = saves
  with pytest.raises(Killed):
    learner.learn(made, settings, store=store)
  store.left = 10**9
  again = learner.learn(made, settings, store=store)
  assert again.names == expected.names
  np.testing.assert_array_equal(again.values, expected.values)
  assert again.history == expected.history


def test_names_are_those_of_the_keys(whole):
  made, settings, expected = whole
  from jaxmt.features import feature_keys

  dense = len(made.model.feature_names)
  sparse = expected.names[dense:]
  assert all(name.startswith(("Edge:", "Shape:")) for name in sparse)
  assert len(set(sparse)) == len(sparse) > 20
  store = MemoryStore()
  learner.learn(made, settings, store=store)
  best = store.get("best")
  np.testing.assert_array_equal(
    feature_keys.keys_of(sparse), np.asarray(best["keys"])
  )


def test_learning_leaves_fewer_wrong_sentences(whole):
  made, settings, _ = whole
  settings = dataclasses.replace(settings, epochs=6)
  learned = learner.learn(made, settings, store=MemoryStore())
  first, *_, last = learned.history
  assert last["right_share"] > first["right_share"]
  assert all(record["valid_share"] == 1.0 for record in learned.history)
  assert last["sentences"] + last["left_out"] == len(made.source)


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_only_rates_relative_to_the_scale_of_weights_matter(whole, margin):
  made, settings, _ = whole
  once = dataclasses.replace(settings, margin=margin)
  first = learner.learn(made, once, store=MemoryStore())
  # Four times everything: a power of two keeps every bit of the mantissa.
  four = dataclasses.replace(
    settings,
    margin=4 * margin,
    rate=4 * settings.rate,
    dense_rate=4 * settings.dense_rate,
  )
  start = {name: 4 * value for name, value in made.start.items()}
  larger = learner.learn(
    dataclasses.replace(made, start=start), four, store=MemoryStore()
  )
  assert larger.names == first.names
  np.testing.assert_array_equal(larger.values, 4 * first.values)
  # The same rates from larger weights end elsewhere.
  other = learner.learn(
    dataclasses.replace(made, start=start), once, store=MemoryStore()
  )
  assert dict(other.weights) != dict(larger.weights)


def test_patience_ends_a_run():
  records = [{"bleu": 1.0}, {"bleu": 3.0}, {"bleu": 2.0}, {"bleu": 3.0}]
  settings = worlds.config(patience=2)
  assert not learner._finished(records[:3], settings)
  assert learner._finished(records, settings)
  assert not learner._finished(records, worlds.config(patience=0))


def test_halving_finds_where_a_rising_function_is():
  found = halve(lambda x: x**3, low=-8, high=8, goal=2.0)
  assert found == pytest.approx(2.0 ** (1 / 3), abs=2e-3)


# Programs start Ray before JAX has threads; here JAX warns of every fork.
@pytest.mark.filterwarnings("ignore:os.fork")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(
  not os.environ.get("JAXMT_SLOW"), reason="starts Ray: JAXMT_SLOW=1"
)
def test_ray_gives_the_same(whole):
  made, settings, expected = whole
  runner = Runner(kind="ray", workers=1)
  with runner_lib.session(runner):
    found = learner.learn(
      made,
      settings,
      store=MemoryStore(),
      resources=Resources(runner=runner),
    )
  assert found.names == expected.names
  np.testing.assert_array_equal(found.values, expected.values)
