"""Mixing trained rule probabilities with those of the baseline."""

import dataclasses
from typing import Any

import numpy as np

from jaxmt.grammar import estimate, native
from jaxmt.grammar import table as table_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixConfig:
  """How much of which.

  Attributes:
    weight: b of equation (12), the share of the grammar's own probabilities.
  """

  weight: float = 0.5


def mix(
  config: MixConfig, *, grammar: dict[str, Any], learned: dict[str, Any]
) -> dict[str, Any]:
  """Mixes two estimates of θ, equation (12).

  Args:
    config: see `MixConfig`.
    grammar: from `jaxmt.experiment.stages.grammar`, R rules.
    learned: "theta" `[R, 5]`, natural logs.

  Returns:
    "theta": float32 `[R, 5]`.
  """
  table = native.from_values(grammar)
  own = [table_lib.feature(table, name) for name in estimate.THETA]
  mixed = estimate.interpolate(
    np.stack(own, axis=1).astype(np.float64),
    np.asarray(learned["theta"], np.float64),
    weight=config.weight,
  )
  return {"theta": mixed.astype(np.float32)}
