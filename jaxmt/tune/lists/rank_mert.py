"""Rank-MERT: weights that put the gold candidate of each sample high.

Liu, Li & Zhou (ACL 2010), section 4: minimum error rate training for the K
candidates that survive pruning. The gain of a sample is minus the rank of its
gold candidate (from 0), or minus `penalty` if that is not below `beam`. Along
`w + step * direction` the rank changes only where the line of the *gold*
candidate crosses that of another, so the breakpoints are these crossings, not
the upper envelope; otherwise this is ordinary MERT.

N: candidates. S: samples. F: features.
"""

import dataclasses

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.tune import options
from jaxmt.tune.lists import envelope


@dataclasses.dataclass(frozen=True, kw_only=True)
class RankMertConfig:
  """How to search.

  Attributes:
    beam: candidates that survive.
    penalty: of a gold candidate that does not.
    restarts: starts in all; the first is the given weights, the others are
      these times factors uniform in 0 to 2.
    max_rounds: over all directions, per start.
    min_gain: stop when a round gains less, per sample.
  """

  beam: int = 10
  penalty: float = 100_000.0
  restarts: int = 3
  max_rounds: int = 10
  min_gain: float = 1e-6

  def __post_init__(self):
    options.at_least(self, beam=1, penalty=0, restarts=1, max_rounds=1)


def gain(
  candidates: Ragged, gold: np.ndarray, weights: np.ndarray, *, config
) -> float:
  """Returns the mean gain of the samples.

  A candidate with the score of the gold one stands before it.

  Args:
    candidates: features `[N, F]`, S rows.
    gold: place of the gold candidate in each row, int64 `[S]`.
    weights: float64 `[F]`.
    config: a `RankMertConfig`.
  """
  scores = candidates.flat @ np.asarray(weights, np.float64)
  ranks = _ranks(scores, candidates.offsets, gold)
  worth = np.where(ranks < config.beam, -ranks, -config.penalty)
  return float(worth.mean()) if len(worth) else 0.0


@njit
def _ranks(scores, offsets, gold):
  """How many candidates are not below the gold one, int64 `[S]`."""
  out = np.zeros(len(gold), np.int64)
  for row in range(len(gold)):
    place = offsets[row] + gold[row]
    for item in range(offsets[row], offsets[row + 1]):
      if item != place and scores[item] >= scores[place]:
        out[row] += 1
  return out


@njit
def sweep(intercepts, slopes, offsets, gold, beam, penalty):
  """Returns breakpoints and total gains along one direction.

  Args:
    intercepts: scores at step 0, float64 `[N]`.
    slopes: change of scores per step, float64 `[N]`.
    offsets: candidates of each sample, int64 `[S + 1]`.
    gold: place of the gold candidate in each row, int64 `[S]`.
    beam: see `RankMertConfig`.
    penalty: see `RankMertConfig`.

  Returns:
    `(steps [I + 1], gains [I])`: interval i lies between `steps[i]` and
    `steps[i + 1]`; the first and the last step are infinite.
  """
  size = len(intercepts)
  step = np.empty(size, np.float64)
  sample = np.empty(size, np.int64)
  change = np.empty(size, np.int8)
  rank = np.zeros(len(gold), np.int64)
  count = 0
  for row in range(len(gold)):
    place = offsets[row] + gold[row]
    for item in range(offsets[row], offsets[row + 1]):
      if item == place:
        continue
      lead = intercepts[item] - intercepts[place]
      tilt = slopes[item] - slopes[place]
      if tilt == 0.0:
        rank[row] += lead >= 0.0
        continue
      # Far to the left the flatter line is above; there it overtakes.
      rank[row] += tilt < 0.0
      step[count] = -lead / tilt
      sample[count] = row
      change[count] = 1 if tilt > 0.0 else -1
      count += 1
  total = 0.0
  for row in range(len(gold)):
    total += -float(rank[row]) if rank[row] < beam else -penalty
  order = np.argsort(step[:count])
  steps = np.empty(count + 2, np.float64)
  gains = np.empty(count + 1, np.float64)
  steps[0], gains[0] = -np.inf, total
  last = 0
  for number in range(count):
    event = order[number]
    row = sample[event]
    if step[event] > steps[last]:
      last += 1
      steps[last] = step[event]
    total += float(rank[row]) if rank[row] < beam else penalty
    rank[row] += change[event]
    total += -float(rank[row]) if rank[row] < beam else -penalty
    gains[last] = total
  steps[last + 1] = np.inf
  return steps[: last + 2], gains[: last + 1]


def optimise(
  candidates: Ragged,
  gold: np.ndarray,
  weights: np.ndarray,
  config: RankMertConfig,
  seed: int,
) -> tuple[np.ndarray, list[dict]]:
  """Tunes the weights; arguments as for `gain`.

  Returns:
    The best weights over all starts, the largest being 1 in absolute value,
    and one record per start.
  """
  rng = np.random.default_rng(seed)
  columns = np.ascontiguousarray(candidates.flat.T, np.float64)
  best, level, history = np.array(weights, np.float64), -np.inf, []
  for number in range(config.restarts):
    now = np.array(weights, np.float64)
    if number:
      now *= rng.uniform(0.0, 2.0, len(now))
    now, score, rounds = _climb(candidates.offsets, columns, gold, now, config)
    history.append({"start": number, "gain": score, "rounds": rounds})
    if score > level:
      best, level = now, score
  largest = np.abs(best).max(initial=0.0)
  return best / largest if largest else best, history


def _climb(offsets, columns, gold, weights, config):
  """Climbs from one start: `(weights, mean gain, rounds)`."""
  number = max(len(gold), 1)
  intercepts = weights @ columns
  score, rounds = -np.inf, 0
  while rounds < config.max_rounds:
    rounds += 1
    before = score
    for axis, slopes in enumerate(columns):
      steps, gains = sweep(
        intercepts, slopes, offsets, gold, config.beam, config.penalty
      )
      points = envelope.interval_points(steps)
      wide = np.diff(steps) > 1e-9 * (1.0 + np.abs(points))
      choice = int(np.argmax(np.where(wide, gains, -np.inf)))
      if gains[choice] / number > score:
        score = gains[choice] / number
        weights[axis] += points[choice]
        intercepts = weights @ columns
    if score - before < config.min_gain:
      break
  return weights, score, rounds
