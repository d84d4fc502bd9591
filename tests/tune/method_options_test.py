"""Every option of every method: a bad value is one line."""

import dataclasses
import typing
from collections.abc import Mapping

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.tune import methods, options
from jaxmt.tune import pool as pools
from jaxmt.tune.formats import kbest_files
from jaxmt.tune.lists import online, rampion
from tests.tune import small_pool

# Options for which any finite number makes sense.
ANY_NUMBER = {"brevity"}
EVERY = [
  (space, name)
  for space in methods.SPACES
  for name in methods.names(space=space)
]


def kinds(config):
  """The type of every option by name."""
  hints = typing.get_type_hints(type(config))
  out = {}
  for field in dataclasses.fields(config):
    value = getattr(config, field.name)
    if isinstance(value, Mapping):
      out |= dict.fromkeys(value, float)
    else:
      out[field.name] = hints[field.name]
  return out


def bad_values(kind):
  """Texts that no option of a type takes, and numbers that hardly one does."""
  if kind is bool:
    return ["maybe", "", "2"], []
  if kind is str:
    return ["no such thing"], []
  if kind is int:
    return ["x", "", "1.5", "nan", "1e3"], ["-7"]
  if typing.get_origin(kind) is tuple:
    return ["x", "1,x", "nan"], ["-7"]
  return ["x", "", "nan", "inf", "-inf"], ["-7"]


def refused(method, name, text):
  """Whether a value is refused, in one line."""
  try:
    methods.configure(method, {name: text})
  except InputError as error:
    assert "\n" not in str(error), (name, text)
    return True
  return False


@pytest.mark.parametrize("space,name", EVERY, ids=map("-".join, EVERY))
def test_every_bad_option_is_one_line(space, name):
  method = methods.find(name, space=space)
  accepted = []
  for option, kind in kinds(method.config).items():
    unreadable, negative = bad_values(kind)
    if option not in ANY_NUMBER:
      unreadable += negative
    accepted += [
      (option, text) for text in unreadable if not refused(method, option, text)
    ]
  assert not accepted
  assert refused(method, "no_such_option", "1")


def test_options_of_every_type_are_read():
  @dataclasses.dataclass(frozen=True, kw_only=True)
  class Config:
    count: int = 1
    rate: float = 0.5
    names: tuple[float, ...] = ()
    on: bool = False

  read = options.change(
    Config(), {"count": "3", "rate": "2", "names": "1,2", "on": "True"}
  )
  assert read == Config(count=3, rate=2.0, names=(1.0, 2.0), on=True)


def test_gamma_weighs_each_list_by_its_ranges():
  scores = np.array([1.0, 3.0, 0.0, 5.0, 2.0])
  costs = np.array([0.0, 0.5, 0.2, 0.2, 0.1])
  offsets = np.array([0, 2, 2, 4, 5])
  got = rampion.sentence_trade_offs(scores, costs, offsets)
  # 2 / 0.5; an empty list; costs all the same; one candidate.
  np.testing.assert_allclose(got, [4.0, 0.0, 0.0, 0.0])


def test_gamma_is_ramp_2_with_a_weight_for_each_sentence(monkeypatch):
  """Where all lists trade off alike, it is ramp 2 with that weight."""
  pool = small_pool.make(seed=3)
  start = small_pool.start(pool)
  config = rampion.RampionConfig(form=2, gamma=3.0, last=True)
  own, _ = rampion.optimise(pool, start, config, 0)
  alike = lambda *_: np.full(pool.sentences, 2.0)
  monkeypatch.setattr(rampion, "sentence_trade_offs", alike)
  one, _ = rampion.optimise(pool, start, config, 0)
  other = rampion.RampionConfig(form=2, cost_scale=6.0, last=True)
  two, _ = rampion.optimise(pool, start, other, 0)
  np.testing.assert_array_equal(one, two)
  assert not np.array_equal(one, own)


def test_the_reference_as_surrogate_skips_lists_that_lack_it():
  """The first list has the reference, the second is near it at best."""
  near = b"1 ||| d e f g ||| x=0 y=1 ||| 0\n1 ||| d e f ||| x=0 y=2 ||| 0\n"
  data = b"0 ||| a b c d ||| x=1 y=0 ||| 0\n0 ||| a b ||| x=2 y=0 ||| 0\n"
  made = pools.make_pool(kbest_files.parse_kbest(data + near), sentences=2)
  made = pools.with_statistics(made, [["a b c d"], ["d e f g h"]])
  start = np.array([1.0, 1.0])
  tuned = {}
  for surrogate in ("ref", "oracle"):
    config = online.PerceptronConfig(
      surrogate=surrogate, passes=20, rate=0.5, explore=True
    )
    tuned[surrogate], _ = online.perceptron(made, start, config, 0)
  assert tuned["ref"][0] < 1.0 and tuned["ref"][1] == 1.0
  assert tuned["oracle"][1] < 1.0


def test_published_pro_takes_a_tenth_of_the_new_weights():
  pool = small_pool.make(seed=3)
  start = small_pool.start(pool)
  quick = {"draws": "200", "kept": "20", "min_difference": "0.01"}
  tuned = {}
  for name in ("pro", "pro-interpolated"):
    method = methods.configure(methods.find(name), quick)
    tuned[name], _ = method.optimise(pool, start, method.config, 0)
  want = 0.1 * tuned["pro"] + 0.9 * start
  np.testing.assert_allclose(tuned["pro-interpolated"], want, atol=1e-9)
