"""Learning θ: rule probabilities from derivations of the training text.

`train` runs the method that a `ThetaConfig` names; `register` adds a method
(the contract is in `jaxmt.train.theta_method`).
"""

from jaxmt.train.shard_counting import TrainingBitext, make_bitext
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.theta_method import ThetaMethod
from jaxmt.train.theta_methods import find, names, register, train
from jaxmt.train.training import Learned, PreviousEpoch, Resources, RunOptions

__all__ = (
  "Learned",
  "PreviousEpoch",
  "Resources",
  "RunOptions",
  "ThetaConfig",
  "ThetaMethod",
  "TrainingBitext",
  "find",
  "make_bitext",
  "names",
  "register",
  "train",
)
