"""What online learners carry from batch to batch.

D + F: features of a pool. S: statistics of a metric.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxmt.features import weights as weight_files

_BY_FEATURE = ("weights", "lagged", "variances")


@dataclasses.dataclass(kw_only=True)
class Learner:
  """The state of a learner on one pool; passes over the pool change it.

  Attributes:
    weights: current ones, `[D + F]`.
    lagged: each update times the number of steps before it, `[D + F]`; stays 0
      in learners that do not average.
    variances: of the weights, `[D + F]`; 0 where the learner has none yet.
    document: statistics of the pseudo-document, `[S]`; empty before it begins.
    steps: sentences seen.
  """

  weights: np.ndarray
  lagged: np.ndarray
  variances: np.ndarray
  document: np.ndarray
  steps: int = 0

  @property
  def average(self) -> np.ndarray:
    """The mean of the weights after each step, `[D + F]`."""
    return self.weights - self.lagged / max(self.steps, 1)


def begin(weights: np.ndarray) -> Learner:
  """Returns a learner that has seen nothing; the weights are copied."""
  return Learner(
    weights=np.array(weights, np.float64),
    lagged=np.zeros(len(weights)),
    variances=np.zeros(len(weights)),
    document=np.zeros(0),
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Memory:
  """A learner by names of features, since every batch has its own; JSON values.

  Attributes:
    weights: those that decode the next batch.
    lagged: see `Learner`, as all below; names that are missing have 0.
    variances: by name.
    document: S numbers.
    steps: sentences seen.
  """

  weights: dict[str, float]
  lagged: dict[str, float] = dataclasses.field(default_factory=dict)
  variances: dict[str, float] = dataclasses.field(default_factory=dict)
  document: list[float] = dataclasses.field(default_factory=list)
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
      kind: weight_files.to_vector(getattr(self, kind), names)
      for kind in _BY_FEATURE
    }
    document = np.array(self.document, np.float64)
    return Learner(document=document, steps=self.steps, **vectors)

  def store(self, learner: Learner, names: Sequence[str]) -> "Memory":
    """Returns what is known after a batch with these features."""
    vectors = {}
    for kind in _BY_FEATURE:
      values = dict(zip(names, getattr(learner, kind).tolist(), strict=True))
      before = getattr(self, kind)
      vectors[kind] = before | {
        name: value for name, value in values.items() if value or name in before
      }
    return Memory(
      document=learner.document.tolist(), steps=learner.steps, **vectors
    )
