"""PRO: pairwise ranking (Hopkins and May 2011), with the later repairs.

Per sentence draw pairs of candidates, keep those that differ most in cost, and
fit a logistic classifier to "the better one scores higher". Survey, 5.4.
Repairs: a grounded, length-smoothed BLEU+1 against short output (Nakov et al.
2012, `cost_metric`), and leaving out pairs with monsters, candidates far longer
than their reference or far apart in cost (Nakov et al. 2013).
"""

import dataclasses

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists, take
from jaxmt.errors import InputError
from jaxmt.metrics import bleu, named_metrics
from jaxmt.text.kernels import GOLDEN, mixed, njit
from jaxmt.tune import costs, options
from jaxmt.tune.learning import Chooser
from jaxmt.tune.lists import owlqn
from jaxmt.tune.pool import backward, find_metric, scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProConfig:
  """How to sample and fit.

  Attributes:
    metric: what the pool is scored by; also gives costs unless `cost_metric`.
    cost_metric: sentence metric on the same statistics, e.g.
      "bleu+1-grounded".
    draws: pairs drawn per sentence.
    kept: pairs kept per sentence, those of largest cost difference.
    min_difference: pairs closer than this are not kept.
    max_difference: pairs further apart are not kept.
    max_length_ratio: candidates longer than this times their reference are in
      no pair (BLEU only).
    costs: see `jaxmt.tune.costs`; not with `cost_metric`.
    l2: strength of the pull towards 0, relative to the sum over pairs.
    l1: strength of the absolute-value penalty, relative to the same.
    steps: of L-BFGS.
    interpolation: share of the fitted weights in the result; 0.1 is usual
      between rounds of decoding, 1 on a fixed list.
  """

  metric: str = "bleu"
  cost_metric: str = ""
  draws: int = 5000
  kept: int = 50
  min_difference: float = 0.05
  max_difference: float = 1.0
  max_length_ratio: float = 3.0
  costs: str = "sentence"
  l2: float = 1.0
  l1: float = 0.0
  steps: int = 100
  interpolation: float = 1.0

  def __post_init__(self):
    costs.check(self.costs, self.metric)
    if self.cost_metric and (
      find_metric(self.cost_metric) != find_metric(self.metric)
      and not {self.cost_metric, self.metric} <= {*named_metrics.BLEU}
    ):
      raise InputError(
        f"option 'cost_metric': '{self.cost_metric}' has other statistics than"
        f" '{self.metric}'"
      )
    options.at_least(self, draws=1, kept=1, steps=1, l1=0, l2=0)
    options.at_least(self, min_difference=0, interpolation=0)
    options.at_most(self, interpolation=1)
    options.above(self, max_difference=0, max_length_ratio=0)


@njit
def _next(state):
  """SplitMix64."""
  state = state + GOLDEN
  return state, mixed(state)


@njit
def sample_pairs(
  costs, usable, offsets, seed, draws, kept, min_difference, max_difference
):
  """Draws the pairs.

  Args:
    costs: sentence costs, `[N]`.
    usable: candidates that may be in a pair, bool `[N]`.
    offsets: int64 `[B + 1]`.
    seed: int.
    draws: per sentence.
    kept: per sentence.
    min_difference: least cost difference.
    max_difference: largest cost difference.

  Returns:
    `(good [R], bad [R])` candidate rows, int64; best differences first within
    a sentence.
  """
  good = np.empty(kept * (len(offsets) - 1), np.int64)
  bad = np.empty(kept * (len(offsets) - 1), np.int64)
  total = 0
  first = np.empty(draws, np.int64)
  second = np.empty(draws, np.int64)
  gaps = np.empty(draws, np.float64)
  for sentence in range(len(offsets) - 1):
    low = offsets[sentence]
    count = np.uint64(offsets[sentence + 1] - low)
    if count < 2:
      continue
    state = np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
    state = state + np.uint64(sentence)
    state, _ = _next(state)
    filled = 0
    for _ in range(draws):
      state, value = _next(state)
      a = low + np.int64((value >> np.uint64(32)) % count)
      b = low + np.int64((value & np.uint64(0xFFFFFFFF)) % count)
      gap = abs(costs[a] - costs[b])
      if (
        usable[a] and usable[b] and min_difference <= gap <= max_difference
        and gap > 0.0
      ):  # fmt: skip
        if costs[a] > costs[b]:
          a, b = b, a
        first[filled], second[filled], gaps[filled] = a, b, gap
        filled += 1
    order = np.argsort(-gaps[:filled], kind="mergesort")
    for place in range(min(kept, filled)):
      good[total] = first[order[place]]
      bad[total] = second[order[place]]
      total += 1
  return good[:total], bad[:total]


def _usable(pool: CandidateLists, config: ProConfig) -> np.ndarray:
  statistics = pool.statistics[config.metric]
  if config.metric not in named_metrics.BLEU:
    return np.ones(len(pool), bool)
  length = statistics[:, bleu.ORDER]
  reference = statistics[:, 2 * bleu.ORDER]
  return length <= config.max_length_ratio * np.maximum(reference, 1)


def _costs(
  pool: CandidateLists, weights: np.ndarray, config: ProConfig
) -> np.ndarray:
  if not config.cost_metric:
    return costs.candidate_costs(
      pool, weights, metric=config.metric, kind=config.costs
    )
  kind = find_metric(config.cost_metric)
  values = kind.sentence_score(pool.statistics[config.metric])
  values = np.asarray(values, np.float64)
  return 1.0 - values if kind.higher_is_better else values


def ranking_loss(
  pool: CandidateLists,
  weights: np.ndarray,
  good: np.ndarray,
  bad: np.ndarray,
  l2: float,
) -> tuple[float, np.ndarray]:
  """Returns the logistic loss per pair and its gradient in the weights."""
  values = scores(pool, weights)
  ahead = values[good] - values[bad]
  pull = -1.0 / (1.0 + np.exp(np.minimum(ahead, 700.0)))
  loss = np.logaddexp(0.0, -ahead).sum() + 0.5 * l2 * float(weights @ weights)
  slopes = np.bincount(good, pull, len(pool)) - np.bincount(
    bad, pull, len(pool)
  )
  count = max(len(good), 1)
  return float(loss) / count, (backward(pool, slopes) + l2 * weights) / count


def optimise(
  pool: CandidateLists, weights: np.ndarray, config: ProConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Fits the ranker; arguments as in `mira.optimise`.

  Unlike the other methods it returns what it fitted, whatever its pool score:
  the pairs are a sample of it.
  """
  initial = np.array(weights, np.float64)
  good, bad = sample_pairs(
    _costs(pool, initial, config),
    _usable(pool, config),
    pool.offsets,
    seed,
    config.draws,
    config.kept,
    config.min_difference,
    config.max_difference,
  )
  chooser = Chooser(pool, weights, config.metric)
  if not len(good):
    return initial, chooser.history
  used, places = np.unique(np.concatenate([good, bad]), return_inverse=True)
  paired = take(pool, used)
  good, bad = np.split(places, 2)
  iterates = owlqn.minimise(
    lambda w: ranking_loss(paired, w, good, bad, config.l2),
    initial,
    l1=config.l1 / len(good),
    steps=config.steps,
  )
  fitted = iterates[-1] if iterates else initial
  share = config.interpolation
  result = share * fitted + (1.0 - share) * initial
  loss, _ = ranking_loss(paired, result, good, bad, config.l2)
  record = {"pairs": len(good), "steps": len(iterates), "loss": loss}
  chooser.offer(result, record)
  return result, chooser.history
