"""Minimum error rate training: exact line search from many starts.

Survey, section 5.1. Each start climbs by itself: trace every direction
(`jaxmt.tune.envelope`) and move to its best interval, until a round gains less
than `min_gain`. Starts run on several threads at once; the result does not
depend on how many there are.
"""

import concurrent.futures
import dataclasses

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.metrics import bleu, registry
from jaxmt.tune import costs, options
from jaxmt.tune.lists import envelope
from jaxmt.tune.pool import ZERO_ONE, find_metric, pool_score, scores

# Intervals narrower than this, relative to where they lie, are not entered:
# rounding could land the weights on another one.
_NARROW = 1e-9


@dataclasses.dataclass(frozen=True, kw_only=True)
class MertConfig:
  """How to search.

  Attributes:
    metric: what to optimise.
    restarts: starts in all; the first is the given weights, the others are
      uniform in plus or minus `spread`.
    spread: see `restarts`.
    variant: "powell" moves after each direction in turn, "best" only along the
      best of all directions (Fig 4).
    random_directions: normal directions added for each start.
    plateau: score an interval by the worst of this many neighbours on each
      side, weighted with its own (Cer et al. 2008); 0 is plain MERT.
    min_gain: stop when a round gains less.
    max_rounds: most rounds for each start.
    threads: 0 leaves the number to Python.
  """

  metric: str = "bleu"
  restarts: int = 20
  spread: float = 1.0
  variant: str = "powell"
  random_directions: int = 0
  plateau: int = 0
  min_gain: float = 1e-5
  max_rounds: int = 100
  threads: int = 0

  def __post_init__(self):
    find_metric(self.metric)
    options.one_of(self, variant=("powell", "best"))
    options.at_least(self, restarts=1, max_rounds=1, threads=0, plateau=0)
    options.at_least(self, random_directions=0, min_gain=0)
    options.above(self, spread=0)


def corpus_scores(metric: str, sums: np.ndarray) -> np.ndarray:
  """Returns the metric of each row of sums, higher is better: `[I]`."""
  if metric in registry.BLEU and sums.shape[1] == bleu.SIZE:
    return bleu.bleu_rows(sums)
  kind = find_metric(metric)
  values = np.asarray(kind.corpus_score(sums), np.float64)
  return values if kind.higher_is_better else -values


def line_search(
  intercepts: np.ndarray,
  slopes: np.ndarray,
  pool: CandidateLists,
  *,
  metric: str,
  plateau: int = 0,
) -> tuple[float, float]:
  """Returns `(step, score)` of the best interval along a direction.

  Args:
    intercepts: scores of all candidates at step 0, `[N]`.
    slopes: scores of the direction, `[N]`.
    pool: with statistics of `metric`.
    metric: what to optimise.
    plateau: see `MertConfig`.

  Returns:
    A step inside the interval, and its score (negated for error rates).
  """
  steps, sums = envelope.trace(
    intercepts, slopes, pool.offsets, pool.statistics[metric]
  )
  return best_interval(steps, sums, metric=metric, plateau=plateau)


def best_interval(
  steps: np.ndarray, sums: np.ndarray, *, metric: str, plateau: int = 0
) -> tuple[float, float]:
  """Returns `(step, score)` of the best interval.

  Args:
    steps: breakpoints as from `envelope.trace`, `[I + 1]`.
    sums: statistics of each interval, `[I, S]`.
    metric: what to optimise.
    plateau: see `MertConfig`.
  """
  values = corpus_scores(metric, sums)
  points = envelope.interval_points(steps)
  wide = np.diff(steps) > _NARROW * (1.0 + np.abs(points))
  rank = _smoothed(values, plateau) if plateau else values
  choice = int(np.argmax(np.where(wide, rank, -np.inf)))
  return float(points[choice]), float(values[choice])


def _smoothed(values: np.ndarray, plateau: int) -> np.ndarray:
  """The mean of each value and the least among its neighbours."""
  padded = np.pad(values, plateau, mode="edge")
  windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * plateau + 1)
  return 0.5 * (values + windows.min(1))


def optimise(
  pool: CandidateLists, weights: np.ndarray, config: MertConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Tunes the dense weights; sparse ones stay as they are.

  Args:
    pool: with statistics of `config.metric`.
    weights: float64 `[D + F]`, the first start.
    config: see `MertConfig`.
    seed: of the random starts and directions.

  Returns:
    The best weights over all starts, scaled to the largest being 1 in absolute
    value if there are no sparse ones, and one record per start.
  """
  width = pool.dense.shape[1]
  columns = np.ascontiguousarray(pool.dense.T)
  rng = np.random.default_rng(seed)
  starts = [np.array(weights, np.float64)]
  for _ in range(config.restarts - 1):
    start = np.array(weights, np.float64)
    start[:width] = rng.uniform(-config.spread, config.spread, width)
    starts.append(start)
  directions = [
    rng.normal(size=(config.random_directions, width)) for _ in starts
  ]

  def climb(number: int) -> tuple[np.ndarray, float, int]:
    return _climb(
      pool, columns, starts[number], directions[number], config=config
    )

  with concurrent.futures.ThreadPoolExecutor(
    config.threads or None
  ) as executor:
    climbed = list(executor.map(climb, range(len(starts))))
  history = [
    {"start": number, "score": score, "rounds": rounds}
    for number, (_, score, rounds) in enumerate(climbed)
  ]
  best = max(range(len(climbed)), key=lambda number: climbed[number][1])
  result = climbed[best][0]
  largest = np.abs(result[:width]).max(initial=0.0)
  if width == len(result) and largest > 0:
    result = result / largest
  return result, history


def optimise_zero_one(
  pool: CandidateLists, weights: np.ndarray, config: MertConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Minimises how often the best candidate is no oracle (Eq 18).

  As `optimise`; `config.metric` says which candidates are oracles.
  """
  return optimise(
    costs.zero_one_pool(pool, config.metric),
    weights,
    dataclasses.replace(config, metric=ZERO_ONE.name),
    seed,
  )


def _climb(pool, columns, weights, directions, *, config):
  """Climbs from one start: `(weights, score, rounds)`."""
  weights = weights.copy()
  width = len(columns)
  axes = np.concatenate([np.eye(width), directions])
  mixed = directions @ columns
  slopes = [*columns, *mixed]
  kind = find_metric(config.metric)
  score = pool_score(pool, weights, config.metric)
  score = score if kind.higher_is_better else -score
  rounds = 0
  while rounds < config.max_rounds:
    rounds += 1
    before = score
    intercepts = scores(pool, weights)
    best = (0.0, score, -1)
    for number, slope in enumerate(slopes):
      step, value = line_search(
        intercepts,
        slope,
        pool,
        metric=config.metric,
        plateau=config.plateau,
      )
      if config.variant == "powell" and value > score:
        weights[:width] += step * axes[number]
        intercepts += step * slope
        score = value
      elif value > best[1]:
        best = (step, value, number)
    if config.variant == "best" and best[2] >= 0:
      weights[:width] += best[0] * axes[best[2]]
      score = best[1]
    if score - before < config.min_gain:
      break
  return weights, score, rounds
