"""Boosting of linear re-rankers (Duh and Kirchhoff 2008; survey, section 8.1).

Ranker t is tuned, by any method on lists, on statistics in which sentence i
counts d_i. With r_i in [-1, 1], how much less than the mean of the list its
choice costs, in units of the largest distance from the mean,

  a_t = 1/2 log(sum_i d_i (1 + r_i) / sum_i d_i (1 - r_i))

and sentences on which all rankers so far, together, do badly count more:
d_i ~ exp(-r_i of the sum), as in AdaRank. A ranker's vote for a candidate is
its rank, so that the sum is no linear model.
"""

import dataclasses

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.tune import methods, options
from jaxmt.tune.lists.rerankers import chosen_score, ranks
from jaxmt.tune.pool import best, find_metric, scores, sentence_costs


@dataclasses.dataclass(frozen=True, kw_only=True)
class BoostConfig:
  """How to boost.

  Attributes:
    metric: what to optimise.
    method: of each ranker.
    rankers: at most; it ends before if one is no better than chance.
  """

  metric: str = "bleu"
  method: str = "mert"
  rankers: int = 5

  def __post_init__(self):
    find_metric(self.metric)
    options.at_least(self, rankers=1)
    known = methods.names(needs=methods.LISTS)
    if self.method not in known:
      raise InputError(f"option 'method': '{self.method}' does not tune lists")


Rankers = list[tuple[float, np.ndarray]]


def combined_scores(lists: CandidateLists, rankers: Rankers) -> np.ndarray:
  """Returns the sum of votes for each candidate, `[N]`."""
  total = np.zeros(len(lists))
  for vote, weights in rankers:
    total += vote * ranks(scores(lists, weights), lists)
  return total


def sentence_gains(lists: CandidateLists, values, costs) -> np.ndarray:
  """Returns r_i of the candidates with the highest values, `[B']`.

  A candidate drawn at random has r_i = 0 on average. B': non-empty lists.
  """
  lengths = np.diff(lists.offsets)
  starts = lists.offsets[:-1][lengths > 0]
  mean = np.add.reduceat(costs, starts) / lengths[lengths > 0]
  low = np.minimum.reduceat(costs, starts)
  high = np.maximum.reduceat(costs, starts)
  spread = np.maximum(high - mean, mean - low)
  spread = np.where(spread > 0, spread, 1.0)
  return (mean - costs[best(values, lists.offsets)]) / spread


def boost(
  pool: CandidateLists, weights: np.ndarray, config: BoostConfig, seed: int
) -> tuple[Rankers, list[dict]]:
  """Returns rankers with their votes, and one record for each.

  Args:
    pool: with statistics of `config.metric`.
    weights: where each ranker starts, `[D + F]`.
    config: see `BoostConfig`.
    seed: of the method.
  """
  if not len(pool):
    raise InputError("no candidates to learn a re-ranker from")
  costs = sentence_costs(pool, config.metric)
  lengths = np.diff(pool.offsets)
  filled = int((lengths > 0).sum())
  method = methods.configure(
    methods.find(config.method), {"metric": config.metric}
  )
  share = np.full(filled, 1.0 / filled)
  rankers: Rankers = []
  history: list[dict] = []
  for number in range(config.rankers):
    counts = np.repeat(filled * share, lengths[lengths > 0])
    rows = pool.statistics[config.metric] * counts[:, None]
    weighted = dataclasses.replace(
      pool, statistics={**pool.statistics, config.metric: rows}
    )
    candidate, _ = methods.run(method, weighted, weights, seed + number)
    gain = sentence_gains(pool, scores(pool, candidate), costs)
    above, below = share @ (1 + gain), share @ (1 - gain)
    if above <= below and rankers:
      break
    vote = 0.5 * float(np.log(max(above, 1e-9) / max(below, 1e-9)))
    rankers.append((max(vote, 1e-6), candidate))
    together = combined_scores(pool, rankers)
    odds = np.exp(-sentence_gains(pool, together, costs))
    share = odds / odds.sum()
    history.append({
      "ranker": number,
      "vote": vote,
      "score": chosen_score(pool, together, config.metric),
    })  # fmt: skip
  return rankers, history
