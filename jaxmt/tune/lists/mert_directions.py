"""What MERT can do beside plain line searches (survey, section 5.1.3).

`expected_bleu_gradient` is a direction in all weights at once, sparse ones too
(Galley et al. 2013). `Penalty` is a regulariser that does not depend on the
size of the weights, as the error does not: plain L2 would only shrink them.
`worst_within` scores a point by the worst that lies within a margin of it.
"""

import dataclasses

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.metrics import bleu
from jaxmt.text.kernels import njit
from jaxmt.tune.pool import backward, scores

REGULARIZERS = ("none", "l2", "l0")


def expected_bleu_gradient(
  pool: CandidateLists, weights: np.ndarray, *, metric: str, sharpness: float
) -> np.ndarray:
  """Returns the gradient of expected BLEU in the weights (Eq 53-55, App. A).

  Probabilities are `p ~ exp(scale * score)` with the scale at which the largest
  weight is `sharpness`.

  Args:
    pool: with statistics of a metric with those of BLEU.
    weights: `[D + F]`.
    metric: name of the statistics.
    sharpness: see above.

  Returns:
    float64 `[D + F]`; zeros if some order has no match.
  """
  largest = np.abs(weights).max(initial=0.0)
  scale = sharpness / largest if largest > 0 else 1.0
  statistics = pool.statistics[metric].astype(np.float64)
  order = statistics.shape[1] // 2
  lengths = np.diff(pool.offsets)
  filled = np.flatnonzero(lengths)
  starts = pool.offsets[:-1][filled]
  per_row = lambda values: np.repeat(values, lengths[filled], axis=0)
  logits = scale * scores(pool, weights)
  p = np.exp(logits - per_row(np.maximum.reduceat(logits, starts)))
  p /= per_row(np.add.reduceat(p, starts))
  totals = (p[:, None] * statistics).sum(0)
  if (totals[: 2 * order] <= 0).any():
    return np.zeros(len(weights))
  value = float(bleu.score(totals))
  # d BLEU / d totals: each log precision has a share of 1 / order.
  slope = np.zeros(len(totals))
  slope[:order] = value / order / totals[:order]
  slope[order : 2 * order] = -value / order / totals[order : 2 * order]
  length, reference = totals[order], totals[2 * order]
  if length < reference:
    slope[order] += value * reference / length**2
    slope[2 * order] -= value / length
  terms = p * (statistics @ slope)
  return scale * backward(
    pool, terms - p * per_row(np.add.reduceat(terms, starts))
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Penalty:
  """A regulariser of weights that is the same for all multiples of them.

  l2 is half the squared distance of weights and centre, both of length 1; l0
  the share of dense weights that are not 0 (Galley et al. 2013).

  Attributes:
    kind: one of `REGULARIZERS`.
    strength: multiplies it.
    centre: dense weights, `[D]`.
  """

  kind: str
  strength: float
  centre: np.ndarray

  def of(self, weights: np.ndarray) -> float:
    """Returns the penalty of dense weights `[D]`."""
    return float(self.along(weights, np.zeros(len(weights)), np.zeros(1))[0])

  def along(
    self, weights: np.ndarray, direction: np.ndarray, points: np.ndarray
  ) -> np.ndarray:
    """Returns the penalty at steps along a direction, `[I]`."""
    if self.kind == "none" or not self.strength:
      return np.zeros(len(points))
    if self.kind == "l0":
      moved = weights != 0
      count = np.full(len(points), float(moved.sum()))
      touched = np.flatnonzero(direction)
      for place in touched.tolist():
        at = weights[place] + points * direction[place]
        count += (at != 0) - float(moved[place])
      return self.strength * count / max(len(weights), 1)
    square_of_centre = float(self.centre @ self.centre)
    square = (
      weights @ weights
      + 2 * points * (weights @ direction)
      + points**2 * (direction @ direction)
    )
    product = self.centre @ weights + points * (self.centre @ direction)
    size = np.sqrt(np.maximum(square * square_of_centre, 0.0))
    cosine = np.where(size > 0, product / np.where(size > 0, size, 1.0), 0.0)
    return self.strength * (1.0 - cosine)


@njit
def worst_within(steps, values, points, margin):
  """Returns the least value of all intervals within a margin of each point.

  Args:
    steps: breakpoints, rising, the outermost infinite, `[I + 1]`.
    values: of the intervals, `[I]`.
    points: one inside each interval, `[I]`.
    margin: distance on both sides.
  """
  out = values.copy()
  for number in range(len(values)):
    left = number
    while left > 0 and steps[left] > points[number] - margin:
      left -= 1
      out[number] = min(out[number], values[left])
    right = number
    while (
      right + 1 < len(values) and steps[right + 1] < points[number] + margin
    ):
      right += 1
      out[number] = min(out[number], values[right])
  return out
