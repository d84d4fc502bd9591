"""Nelder-Mead (downhill simplex) on the corpus error: no gradient, no lines."""

import dataclasses

import numpy as np
import scipy.optimize

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.tune import options
from jaxmt.tune.learning import Chooser
from jaxmt.tune.pool import find_metric, pool_score


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimplexConfig:
  """How to search.

  Attributes:
    metric: what to optimise.
    evaluations: of the corpus score, in all.
    size: of the first simplex around the start.
    restarts: simplices rebuilt around the best point, each half as large.
  """

  metric: str = "bleu"
  evaluations: int = 600
  size: float = 0.5
  restarts: int = 3

  def __post_init__(self):
    find_metric(self.metric)
    options.at_least(self, evaluations=1, restarts=1)
    options.above(self, size=0)


def optimise(
  pool: CandidateLists, weights: np.ndarray, config: SimplexConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Searches the dense weights; arguments as in `mira.optimise`."""
  sign = -1.0 if find_metric(config.metric).higher_is_better else 1.0
  width = pool.dense.shape[1]
  rng = np.random.default_rng(seed)
  chooser = Chooser(pool, weights, config.metric)

  def error(point: np.ndarray) -> float:
    full = np.concatenate([point, np.asarray(weights)[width:]])
    return sign * pool_score(pool, full, config.metric)

  point = np.array(weights[:width], np.float64)
  budget = config.evaluations // max(config.restarts, 1)
  for number in range(config.restarts):
    size = config.size * 0.5**number
    flips = rng.choice([-1.0, 1.0], width)
    points = np.concatenate([[point], point + size * np.diag(flips)])
    # The error is constant between jumps: only the budget ends the search.
    point = scipy.optimize.minimize(
      error,
      point,
      method="Nelder-Mead",
      options={
        "initial_simplex": points,
        "maxfev": max(budget, width + 2),
        "xatol": 0.0,
        "fatol": 0.0,
      },
    ).x
    full = np.concatenate([point, np.asarray(weights)[width:]])
    chooser.offer(full, {"restart": number})
  return chooser.best, chooser.history
