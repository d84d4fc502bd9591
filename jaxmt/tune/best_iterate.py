"""Choosing among the iterates of a method by their score on the pool."""

import numpy as np

from jaxmt.tune.pool import KBestPool, find_metric
from jaxmt.tune.pool_scores import pool_score


class Chooser:
  """Keeps the weights with the best pool score among those offered.

  The weights to start from are among them, unless it is to `explore`: in a loop
  with a decoder, which judges for itself, weights that seem a little worse on
  the present pool still bring new candidates, and the old ones would not.
  """

  def __init__(
    self,
    pool: KBestPool,
    weights: np.ndarray,
    metric: str,
    *,
    explore: bool = False,
  ):
    self._pool = pool
    self._metric = metric
    self._sign = 1.0 if find_metric(metric).higher_is_better else -1.0
    self.best = np.array(weights, np.float64)
    self._score = -np.inf
    if not explore:
      self._score = self._sign * pool_score(pool, self.best, metric)
    self.history: list[dict] = []

  def offer(self, weights: np.ndarray, record: dict) -> None:
    """Takes weights over if they are better; notes their score."""
    score = pool_score(self._pool, weights, self._metric)
    self.history.append({**record, "score": score})
    if self._sign * score > self._score:
      self.best, self._score = np.array(weights, np.float64), self._sign * score
