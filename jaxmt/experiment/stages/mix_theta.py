"""Mixing trained rule probabilities with those of the baseline."""

import dataclasses

import numpy as np

from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.system import Theta
from jaxmt.grammar import estimate


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixConfig:
  """How much of which.

  Attributes:
    weight: b of equation (12), the share of the grammar's own probabilities.
  """

  weight: float = 0.5


def mix(config: MixConfig, *, grammar: Grammar, learned: Theta) -> Theta:
  """Mixes two estimates of θ, equation (12).

  Args:
    config: see `MixConfig`.
    grammar: the rules, with their first θ.
    learned: the trained θ.
  """
  mixed = estimate.interpolate(
    estimate.theta_values(grammar.table).astype(np.float64),
    np.asarray(learned.theta, np.float64),
    weight=config.weight,
  )
  return Theta(theta=mixed.astype(np.float32))
