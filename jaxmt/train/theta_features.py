"""θ as features of a model: estimated from counts, read, replaced, scaled."""

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.model import Model
from jaxmt.grammar import estimate
from jaxmt.grammar.estimate import Groups
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.train.theta_config import ThetaConfig


def theta_of(
  counts: np.ndarray, groups: Groups, config: ThetaConfig
) -> np.ndarray:
  """Returns add-alpha relative frequencies of counts in units, `[R, 5]`."""
  return estimate.relative_frequency(
    counts / COUNT_UNIT, groups, alpha=config.alpha
  )


def scaled(model: Model, scale: float) -> Model:
  """Returns the model with weights such that ln p_lm has weight `scale`.

  Ranks and best derivations stay the same. Nothing changes if `scale` is 0 or
  the language model's weight is not positive.
  """
  if not scale or model.lm_weight <= 0:
    return model
  factor = scale / model.lm_weight
  return models.with_weights(
    model, {name: factor * value for name, value in model.weights.items()}
  )


def theta_features(model: Model) -> np.ndarray:
  """Returns the θ that a model's rules have, float32 `[R, 5]`."""
  return estimate.theta_values(model.table)


def with_theta(model: Model, theta: np.ndarray) -> Model:
  """Returns the model with other values of the θ features it has, `[R, 5]`."""
  names = model.table.feature_names
  own = estimate.theta_names(model.table)
  features = np.array(model.table.features)
  features[:, [names.index(name) for name in own]] = theta[
    :, [estimate.THETA.index(name) for name in own]
  ]
  return models.with_features(model, features)
