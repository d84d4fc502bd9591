"""Search parameters against a grid of all values."""

import itertools
import math

import pytest

from jaxmt.errors import InputError
from jaxmt.tune import search_parameters
from jaxmt.tune.search_parameters import SearchParameterConfig


def quality(parameters):
  """Scores that saturate, and a cost that does not."""
  beam, pop = parameters["beam"], parameters["pop"]
  score = 40 - 6 / beam - 30 / pop
  return score, 1e-3 * beam**0.5 * pop


def value(parameters, start, penalty):
  score, cost = quality(parameters)
  return score - penalty * math.log2(cost / quality(start)[1])


@pytest.mark.parametrize("penalty", [0.05, 0.3, 1.0])
def test_the_simplex_comes_near_the_best_of_a_grid(penalty):
  start = {"beam": 30, "pop": 200}
  calls = []

  def evaluate(parameters):
    calls.append(dict(parameters))
    return quality(parameters)

  config = SearchParameterConfig(penalty=penalty, evaluations=60)
  trials = search_parameters.tune(evaluate, start, config)
  assert trials[0].parameters == start and trials[0].value == trials[0].score
  assert len(calls) == len(trials) <= 60
  assert len({tuple(call.items()) for call in calls}) == len(calls)
  for trial in trials:
    assert trial.value == pytest.approx(value(trial.parameters, start, penalty))
  grid = itertools.product(range(1, 121), range(1, 801, 4))
  least = max(value({"beam": b, "pop": p}, start, penalty) for b, p in grid)
  found = search_parameters.best(trials)
  assert found.value == max(trial.value for trial in trials)
  assert least - found.value < 0.25 * (least - trials[0].value) + 0.02


def test_time_that_costs_nothing_is_spent():
  start = {"beam": 4, "pop": 16}
  config = SearchParameterConfig(penalty=0.0, evaluations=40, largest=2.0)
  found = search_parameters.best(search_parameters.tune(quality, start, config))
  assert found.parameters == {"beam": 8, "pop": 32}  # the bounds


def test_the_budget_is_kept():
  config = SearchParameterConfig(evaluations=3)
  start = {"beam": 30, "pop": 200}
  assert len(search_parameters.tune(quality, start, config)) == 3
  for wrong in ({"penalty": -1.0}, {"evaluations": 0}, {"size": 0.0}):
    with pytest.raises(InputError, match="must be"):
      SearchParameterConfig(**wrong)
