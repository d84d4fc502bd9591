"""Tuning of search parameters: downhill simplex on time-penalised scores.

Chung and Galley (2012), "Direct error rate minimization for statistical machine
translation" (survey, section 8.4): beam, candidates of a cell, longest span or
distortion limit are chosen on a tuning set as weights are, by what they do to
the score of the output, less a price for time:

    score - penalty * log2(cost / cost of the start)

So halving the time is worth `penalty` points, whatever the machine's speed.
Parameters are searched by their logarithms, on a grid of four values to a
doubling; each point of the grid is decoded once.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.optimize

from jaxmt.tune import options

Parameters = Mapping[str, int]
# Parameters -> (score in points, higher is better; cost).
Evaluate = Callable[[Parameters], tuple[float, float]]
_STEPS = 4  # grid points to a doubling


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchParameterConfig:
  """How to search.

  Attributes:
    penalty: points of score that half the cost is worth.
    evaluations: most different settings that are decoded with.
    size: of the first simplex, in doublings.
    largest: no parameter exceeds its start times this.
  """

  penalty: float = 0.5
  evaluations: int = 25
  size: float = 1.0
  largest: float = 4.0

  def __post_init__(self):
    options.at_least(self, penalty=0, evaluations=1, largest=1)
    options.above(self, size=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchTrial:
  """One setting.

  Attributes:
    parameters: by name.
    score: of the output, in points.
    cost: of decoding.
    value: the score less the price of time.
  """

  parameters: dict[str, int]
  score: float
  cost: float
  value: float


class _Budget(Exception):
  """No evaluation is left."""


def tune(
  evaluate: Evaluate, start: Parameters, config: SearchParameterConfig
) -> list[SearchTrial]:
  """Searches for the parameters of the best value.

  Args:
    evaluate: decodes the tuning set with some parameters.
    start: where to begin; all that are to be tuned, each at least 1.
    config: see `SearchParameterConfig`.

  Returns:
    All trials in the order they were made; the first is the start.
  """
  names = list(start)
  origin = np.array([math.log2(max(start[name], 1)) for name in names])
  most = origin + math.log2(config.largest)
  trials: dict[tuple[int, ...], SearchTrial] = {}

  def trial(values: tuple[int, ...]) -> SearchTrial:
    if values not in trials:
      if len(trials) >= config.evaluations:
        raise _Budget
      parameters = dict(zip(names, values, strict=True))
      score, cost = evaluate(parameters)
      first = next(iter(trials.values())).cost if trials else cost
      price = config.penalty * math.log2(max(cost, 1e-9) / max(first, 1e-9))
      trials[values] = SearchTrial(
        parameters=parameters, score=score, cost=cost, value=score - price
      )
    return trials[values]

  def loss(point: np.ndarray) -> float:
    inside = np.clip(point, 0.0, most)
    snapped = origin + np.rint(_STEPS * (inside - origin)) / _STEPS
    values = np.rint(np.exp2(np.maximum(snapped, 0.0))).astype(int)
    return -trial(tuple(values.tolist())).value

  # Cheaper first: to halve a parameter is to move down.
  points = np.concatenate([[origin], origin - config.size * np.eye(len(names))])
  try:
    loss(origin)
    scipy.optimize.minimize(
      loss,
      origin,
      method="Nelder-Mead",
      options={
        "initial_simplex": points,
        "maxfev": 40 * config.evaluations,
        "xatol": 0.5 / _STEPS,
        "fatol": 0.0,
      },
    )
  except _Budget:
    pass
  return list(trials.values())


def best(trials: list[SearchTrial]) -> SearchTrial:
  """Returns the first trial of the best value."""
  return max(trials, key=lambda trial: trial.value)


def rows(trials: list[SearchTrial]) -> list[dict[str, Any]]:
  """Returns the trials as rows of a table."""
  return [
    {
      **trial.parameters,
      "score": f"{trial.score:.3f}",
      "cost": f"{trial.cost:.4g}",
      "value": f"{trial.value:.3f}",
    }
    for trial in trials
  ]
