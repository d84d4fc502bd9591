"""What learners on lists share: kernels, state, the choice of an iterate.

A candidate's features are a dense row and a sparse one; `Features` is the tuple
of arrays that all kernels take, made by `features_of`. Feature ids are places
in the weight vector: dense first. `Learner` is what a pass over the lists
changes, `LearnerMemory` the same from batch to batch; `Chooser` picks among
iterates.

D + F: features of a pool. S: statistics of a metric.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.text.kernels import njit
from jaxmt.tune.pool import find_metric, pool_score

# Dense rows `[N, D]`, then ids, values and offsets of sparse ones.
Features = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def features_of(pool: CandidateLists) -> Features:
  """Returns the arrays that the kernels read; see `CandidateLists`."""
  return (
    np.ascontiguousarray(pool.dense, np.float64),
    np.ascontiguousarray(pool.sparse.ids, np.int32),
    np.ascontiguousarray(pool.sparse.values, np.float64),
    np.ascontiguousarray(pool.sparse.offsets, np.int64),
  )


def room(pool: CandidateLists) -> int:
  """Returns the most features two candidates can differ in."""
  longest = int(np.diff(pool.sparse.offsets).max(initial=0))
  return pool.dense.shape[1] + 2 * longest


@njit
def score(features, weights, row):
  """Returns the dot product of one candidate."""
  dense, ids, values, offsets = features
  width = dense.shape[1]
  total = 0.0
  for column in range(width):
    total += dense[row, column] * weights[column]
  for place in range(offsets[row], offsets[row + 1]):
    total += values[place] * weights[width + ids[place]]
  return total


@njit
def subtract(features, good, bad, out_ids, out_values):
  """Writes the difference of two candidates, good - bad, without zeros.

  Returns:
    How many features differ.
  """
  dense, ids, values, offsets = features
  width = dense.shape[1]
  size = 0
  for column in range(width):
    value = dense[good, column] - dense[bad, column]
    if value != 0.0:
      out_ids[size], out_values[size] = column, value
      size += 1
  mine, theirs = offsets[good], offsets[bad]
  while mine < offsets[good + 1] or theirs < offsets[bad + 1]:
    left = right = np.int32(2147483647)
    if mine < offsets[good + 1]:
      left = ids[mine]
    if theirs < offsets[bad + 1]:
      right = ids[theirs]
    number = min(left, right)
    value = 0.0
    if left == number:
      value += values[mine]
      mine += 1
    if right == number:
      value -= values[theirs]
      theirs += 1
    if value != 0.0:
      out_ids[size], out_values[size] = width + number, value
      size += 1
  return size


@njit
def dot(ids, values, size, weights):
  """Returns the dot product of the first `size` entries with `weights`."""
  total = 0.0
  for place in range(size):
    total += values[place] * weights[ids[place]]
  return total


@njit
def add(ids, values, size, scale, weights):
  """Adds `scale` times the first `size` entries to `weights`, in place."""
  for place in range(size):
    weights[ids[place]] += scale * values[place]


_no_numbers = functools.partial(np.zeros, 0)
_BY_FEATURE = ("weights", "lagged", "variances")


@dataclasses.dataclass(kw_only=True)
class Learner:
  """The state of a learner on one pool; passes over the pool change it.

  Only the weights are needed to begin; they are copied.

  Attributes:
    weights: current ones, `[D + F]`.
    lagged: each update times the number of steps before it, `[D + F]`; stays 0
      in learners that do not average.
    variances: of the weights, `[D + F]`; 0 where the learner has none yet.
    document: statistics of the pseudo-document, `[S]`; empty before it begins.
    slots: what an optimizer keeps for each weight, by its name, `[D + F]` each.
    numbers: what it keeps beside them, such as its steps, by name.
    steps: sentences seen.
    centre: weights that a regulariser pulls to, `[D + F]`; None: the weights at
      the start of a call.
  """

  weights: np.ndarray
  lagged: np.ndarray = dataclasses.field(default_factory=_no_numbers)
  variances: np.ndarray = dataclasses.field(default_factory=_no_numbers)
  document: np.ndarray = dataclasses.field(default_factory=_no_numbers)
  slots: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
  numbers: dict[str, float] = dataclasses.field(default_factory=dict)
  steps: int = 0
  centre: np.ndarray | None = None

  def __post_init__(self):
    self.weights = np.array(self.weights, np.float64)
    if not len(self.lagged):
      self.lagged = np.zeros(len(self.weights))
    if not len(self.variances):
      self.variances = np.zeros(len(self.weights))

  @property
  def average(self) -> np.ndarray:
    """The mean of the weights after each step, `[D + F]`."""
    return self.weights - self.lagged / max(self.steps, 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerMemory:
  """A learner by names of features, since every batch has its own; JSON values.

  Attributes:
    weights: those that decode the next batch.
    lagged: see `Learner`, as all below; names that are missing have 0.
    variances: by name.
    document: S numbers.
    slots: by name of the slot, then of the feature.
    numbers: see `Learner`.
    steps: sentences seen.
  """

  weights: dict[str, float]
  lagged: dict[str, float] = dataclasses.field(default_factory=dict)
  variances: dict[str, float] = dataclasses.field(default_factory=dict)
  document: list[float] = dataclasses.field(default_factory=list)
  slots: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
  numbers: dict[str, float] = dataclasses.field(default_factory=dict)
  steps: int = 0

  @property
  def average(self) -> dict[str, float]:
    """The mean of the weights after each step."""
    steps = max(self.steps, 1)
    return {
      name: self.weights.get(name, 0.0) - self.lagged.get(name, 0.0) / steps
      for name in self.weights | self.lagged
    }

  def recall(self, names: Sequence[str]) -> Learner:
    """Returns the learner on a pool with these features."""
    vectors = {
      kind: candidate_lists.to_vector(getattr(self, kind), names)
      for kind in _BY_FEATURE
    }
    slots = {
      kind: candidate_lists.to_vector(values, names)
      for kind, values in self.slots.items()
    }
    document = np.array(self.document, np.float64)
    return Learner(
      document=document,
      slots=slots,
      numbers=dict(self.numbers),
      steps=self.steps,
      **vectors,
    )

  def store(self, learner: Learner, names: Sequence[str]) -> "LearnerMemory":
    """Returns what is known after a batch with these features."""
    vectors = {
      kind: _updated(getattr(self, kind), getattr(learner, kind), names)
      for kind in _BY_FEATURE
    }
    slots = {
      kind: _updated(self.slots.get(kind, {}), values, names)
      for kind, values in learner.slots.items()
    }
    return LearnerMemory(
      document=learner.document.tolist(),
      slots=slots,
      numbers=dict(learner.numbers),
      steps=learner.steps,
      **vectors,
    )


def _updated(
  before: dict[str, float], vector: np.ndarray, names: Sequence[str]
) -> dict[str, float]:
  """The values by name, with those of a vector; new zeros are left out."""
  values = zip(names, vector.tolist(), strict=True)
  return before | {
    name: value for name, value in values if value or name in before
  }


class Chooser:
  """Keeps the offered weights with the best pool score, or the last ones.

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
    last: bool = False,
    judge: Callable[[np.ndarray], float] | None = None,
  ):
    """Begins with the weights.

    Args:
      pool: what iterates are scored on, unless by `judge`.
      weights: where the method starts.
      metric: what scores are by.
      explore: never to choose the start.
      last: to choose the last weights, whatever their score.
      judge: gives the score of weights; None takes the pool's.
    """
    self._judge = judge or (lambda found: pool_score(pool, found, metric))
    self._sign = 1.0 if find_metric(metric).higher_is_better else -1.0
    self._last = last
    self.best = np.array(weights, np.float64)
    self._score = -np.inf
    if not explore:
      self._score = self._sign * self._judge(self.best)
    self.history: list[dict] = []

  def offer(self, weights: np.ndarray, record: dict) -> None:
    """Takes weights over if they are better; notes their score."""
    score = self._judge(weights)
    self.history.append({**record, "score": score})
    if self._last or self._sign * score > self._score:
      self.best, self._score = np.array(weights, np.float64), self._sign * score
