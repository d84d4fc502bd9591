"""Choosing among the iterates of a method by their score on the pool."""

from collections.abc import Callable

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.tune.pool import find_metric
from jaxmt.tune.pool_scores import pool_score


class Chooser:
  """Keeps the weights with the best pool score among those offered.

  The weights to start from are among them, unless it is to `explore`: in a loop
  with a decoder, which judges for itself, weights that seem a little worse on
  the present pool still bring new candidates, and the old ones would not.
  """

  def __init__(
    self,
    pool: CandidateLists,
    weights: np.ndarray,
    metric: str,
    *,
    explore: bool = False,
    judge: Callable[[np.ndarray], float] | None = None,
  ):
    """Begins with the weights.

    Args:
      pool: what iterates are scored on, unless by `judge`.
      weights: where the method starts.
      metric: what scores are by.
      explore: never to choose the start.
      judge: gives the score of weights; None takes the pool's.
    """
    self._judge = judge or (lambda found: pool_score(pool, found, metric))
    self._sign = 1.0 if find_metric(metric).higher_is_better else -1.0
    self.best = np.array(weights, np.float64)
    self._score = -np.inf
    if not explore:
      self._score = self._sign * self._judge(self.best)
    self.history: list[dict] = []

  def offer(self, weights: np.ndarray, record: dict) -> None:
    """Takes weights over if they are better; notes their score."""
    score = self._judge(weights)
    self.history.append({**record, "score": score})
    if self._sign * score > self._score:
      self.best, self._score = np.array(weights, np.float64), self._sign * score
