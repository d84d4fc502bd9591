"""Minimum error rate training: exact line search from many starts.

Survey, section 5.1. Each start climbs by itself: trace every direction
(`jaxmt.tune.envelope`) and move to its best interval, until a round gains less
than `min_gain`. Starts run on several threads at once; the result does not
depend on how many there are.
"""

import concurrent.futures
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.metrics import bleu, named_metrics
from jaxmt.tune import costs, options
from jaxmt.tune.lists import envelope, mert_directions
from jaxmt.tune.pool import ZERO_ONE, find_metric, pool_score, scores

# Intervals narrower than this, relative to where they lie, are not entered:
# rounding could land the weights on another one.
_NARROW = 1e-9


@dataclasses.dataclass(frozen=True, kw_only=True)
class MertConfig:
  """How to search.

  Attributes:
    metric: what to optimise.
    restarts: starts in all; the first is the given weights.
    starts: the others: "uniform" in plus or minus `spread`; "normal" around the
      given weights, with deviation `spread` times the largest (Foster and Kuhn
      2009); "walk": the same around the best optimum so far, one after the
      other (Moore and Quirk 2008).
    spread: see `starts`.
    variant: "powell" moves after each direction in turn, "best" only along the
      best of all directions (Fig 4).
    random_directions: normal directions added for each start.
    plateau: score an interval by the worst of this many neighbours on each
      side, weighted with its own (Cer et al. 2008); 0 is plain MERT.
    margin: score an interval by the worst within this distance of its middle,
      relative to the length of the weights: a margin as Hayashi et al. (2009)
      want it.
    gradient: add the gradient of expected BLEU as a direction, of sparse
      weights too (Galley et al. 2013).
    sharpness: size of the largest weight for its probabilities.
    regularizer: "l2" or "l0", which do not depend on the size of the weights
      (see `mert_directions.Penalty`), or "none".
    strength: of the regulariser.
    min_gain: stop when a round gains less.
    max_rounds: most rounds for each start.
    threads: 0 leaves the number to Python.
  """

  metric: str = "bleu"
  restarts: int = 20
  starts: str = "uniform"
  spread: float = 1.0
  variant: str = "powell"
  random_directions: int = 0
  plateau: int = 0
  margin: float = 0.0
  gradient: bool = False
  sharpness: float = 3.0
  regularizer: str = "none"
  strength: float = 0.01
  min_gain: float = 1e-5
  max_rounds: int = 100
  threads: int = 0

  def __post_init__(self):
    find_metric(self.metric)
    options.one_of(self, variant=("powell", "best"))
    options.at_least(self, restarts=1, max_rounds=1, threads=0, plateau=0)
    options.at_least(self, random_directions=0, min_gain=0)
    options.one_of(
      self,
      starts=("uniform", "normal", "walk"),
      regularizer=mert_directions.REGULARIZERS,
    )
    options.at_least(self, margin=0, strength=0)
    options.above(self, spread=0, sharpness=0)
    if self.gradient and self.metric not in named_metrics.BLEU:
      raise InputError(f"option 'gradient' is of BLEU, not of {self.metric}")


def corpus_scores(metric: str, sums: np.ndarray) -> np.ndarray:
  """Returns the metric of each row of sums, higher is better: `[I]`."""
  if metric in named_metrics.BLEU and sums.shape[1] == bleu.SIZE:
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
  **how: Any,
) -> tuple[float, float]:
  """Returns `(step, score)` of the best interval along a direction.

  Args:
    intercepts: scores of all candidates at step 0, `[N]`.
    slopes: scores of the direction, `[N]`.
    pool: with statistics of `metric`.
    metric: what to optimise.
    **how: see `best_interval`.

  Returns:
    A step inside the interval, and its score (negated for error rates).
  """
  steps, sums = envelope.trace(
    intercepts, slopes, pool.offsets, pool.statistics[metric]
  )
  return best_interval(steps, sums, metric=metric, **how)


def best_interval(
  steps: np.ndarray,
  sums: np.ndarray,
  *,
  metric: str,
  plateau: int = 0,
  margin: float = 0.0,
  penalty: Callable[[np.ndarray], np.ndarray] | None = None,
  extra: float | None = None,
) -> tuple[float, float]:
  """Returns `(step, score)` of the best interval.

  Args:
    steps: breakpoints as from `envelope.trace`, `[I + 1]`.
    sums: statistics of each interval, `[I, S]`.
    metric: what to optimise.
    plateau: see `MertConfig`.
    margin: distance to other intervals that count, see `worst_within`.
    penalty: taken off the score at a step, `[I] -> [I]`; or None.
    extra: a step to try beside one for each interval; or None.
  """
  values = corpus_scores(metric, sums)
  points = envelope.interval_points(steps)
  wide = np.diff(steps) > _NARROW * (1.0 + np.abs(points))
  rank = _smoothed(values, plateau) if plateau else values
  if margin:
    rank = mert_directions.worst_within(steps, rank, points, margin)
  if extra is not None:
    # The interval that the step lies in, once more with this step.
    place = int(np.clip(np.searchsorted(steps, extra) - 1, 0, len(values) - 1))
    off = np.abs(steps[place : place + 2] - extra).min()
    points, values = np.append(points, extra), np.append(values, values[place])
    rank = np.append(rank, rank[place])
    wide = np.append(wide, off > _NARROW * (1.0 + abs(extra)))
  if penalty is not None:
    taken = penalty(points)
    rank, values = rank - taken, values - taken
  choice = int(np.argmax(np.where(wide, rank, -np.inf)))
  return float(points[choice]), float(values[choice])


def _smoothed(values: np.ndarray, plateau: int) -> np.ndarray:
  """The mean of each value and the least among its neighbours."""
  padded = np.pad(values, plateau, mode="edge")
  windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * plateau + 1)
  return 0.5 * (values + windows.min(1))


def optimise(
  pool: CandidateLists,
  weights: np.ndarray,
  config: MertConfig,
  seed: int,
  *,
  centre: np.ndarray | None = None,
) -> tuple[np.ndarray, list[dict]]:
  """Tunes the dense weights; sparse ones move along gradients only.

  Args:
    pool: with statistics of `config.metric`.
    weights: float64 `[D + F]`, the first start.
    config: see `MertConfig`.
    seed: of the random starts and directions.
    centre: weights that the regulariser l2 pulls to; None: `weights`.

  Returns:
    The best weights over all starts, scaled to the largest being 1 in absolute
    value if there are no sparse ones, and one record per start.
  """
  width = pool.dense.shape[1]
  columns = np.ascontiguousarray(pool.dense.T)
  rng = np.random.default_rng(seed)
  given_start = np.array(weights, np.float64)
  penalty = mert_directions.Penalty(
    kind=config.regularizer,
    strength=config.strength,
    centre=np.asarray(given_start if centre is None else centre)[:width],
  )

  def climb(start: np.ndarray, directions: np.ndarray):
    return _climb(pool, columns, start, directions, penalty, config=config)

  if config.starts == "walk":
    climbed = _walk(climb, given_start, width, config, rng)
  else:
    starts = [given_start]
    for _ in range(config.restarts - 1):
      start = given_start.copy()
      if config.starts == "uniform":
        start[:width] = rng.uniform(-config.spread, config.spread, width)
      else:
        start[:width] += _size(given_start[:width]) * rng.normal(
          scale=config.spread, size=width
        )
      starts.append(start)
    directions = [
      rng.normal(size=(config.random_directions, width)) for _ in starts
    ]
    with concurrent.futures.ThreadPoolExecutor(
      config.threads or None
    ) as executor:
      climbed = list(executor.map(climb, starts, directions))
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


def _size(dense: np.ndarray) -> float:
  """The largest absolute value, 1 if there is none."""
  return float(np.abs(dense).max(initial=0.0)) or 1.0


def _walk(climb, given, width, config, rng) -> list[tuple]:
  """Climbs one after the other, each from near the best so far."""
  climbed: list[tuple] = []
  best = given
  for number in range(config.restarts):
    start = best.copy()
    if number:
      start[:width] += _size(best[:width]) * rng.normal(
        scale=config.spread, size=width
      )
    directions = rng.normal(size=(config.random_directions, width))
    climbed.append(climb(start, directions))
    best = max(climbed, key=lambda result: result[1])[0]
  return climbed


def optimise_zero_one(
  pool: CandidateLists,
  weights: np.ndarray,
  config: MertConfig,
  seed: int,
  *,
  centre: np.ndarray | None = None,
) -> tuple[np.ndarray, list[dict]]:
  """Minimises how often the best candidate is no oracle (Eq 18).

  As `optimise`; `config.metric` says which candidates are oracles.

  Raises:
    InputError: if a direction of expected BLEU is asked for.
  """
  if config.gradient:
    raise InputError("option 'gradient' is of BLEU, not of zero-one error")
  return optimise(
    costs.zero_one_pool(pool, config.metric),
    weights,
    dataclasses.replace(config, metric=ZERO_ONE.name),
    seed,
    centre=centre,
  )


def _climb(pool, columns, weights, directions, penalty, *, config):
  """Climbs from one start: `(weights, score, rounds)`."""
  weights = weights.copy()
  width = len(columns)
  axes = np.concatenate([np.eye(width), directions])
  mixed = directions @ columns
  slopes = [*columns, *mixed]
  kind = find_metric(config.metric)
  score = pool_score(pool, weights, config.metric)
  score = score if kind.higher_is_better else -score
  score -= penalty.of(weights[:width])
  rounds = 0
  while rounds < config.max_rounds:
    rounds += 1
    before = score
    intercepts = scores(pool, weights)
    best = (0.0, score, np.zeros(len(weights)))
    for number in range(len(slopes) + config.gradient):
      direction = np.zeros(len(weights))
      if number < len(slopes):
        direction[:width], slope = axes[number], slopes[number]
      else:
        direction = mert_directions.expected_bleu_gradient(
          pool, weights, metric=config.metric, sharpness=config.sharpness
        )
        slope = scores(pool, direction)
      step, value = _search(
        pool, intercepts, slope, weights[:width], direction[:width],
        number < width, penalty, config,
      )  # fmt: skip
      if config.variant == "powell" and value > score:
        weights += step * direction
        intercepts += step * slope
        score = value
      elif value > best[1]:
        best = (step, value, direction)
    if config.variant == "best" and best[1] > score:
      weights += best[0] * best[2]
      score = best[1]
    if score - before < config.min_gain:
      break
  return weights, score, rounds


def _search(pool, intercepts, slope, dense, direction, axis, penalty, config):
  """Line search with margin and regulariser: `(step, score)`."""
  margin = 0.0
  if config.margin:
    length = np.linalg.norm(direction)
    margin = config.margin * np.linalg.norm(dense) / (length or 1.0)
  regular = config.strength > 0 and config.regularizer != "none"
  zero = None
  if regular and config.regularizer == "l0" and axis:
    zero = -float(dense @ direction)  # where this weight is 0
  return line_search(
    intercepts,
    slope,
    pool,
    metric=config.metric,
    plateau=config.plateau,
    margin=margin,
    penalty=functools.partial(penalty.along, dense, direction)
    if regular
    else None,
    extra=zero,
  )
