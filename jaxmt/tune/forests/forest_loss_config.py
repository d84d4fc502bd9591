"""Settings of gradient tuning on forests; reading them does not import JAX."""

import dataclasses
from typing import Any

from jaxmt.errors import InputError
from jaxmt.losses import registry as losses
from jaxmt.metrics import registry as metrics
from jaxmt.tune import gradient_config, options

OPTIMIZERS = ("lbfgs", "owlqn", "sgd", "adagrad", "adam")


def check_metric(metric: str) -> None:
  """Raises `InputError` if costs by a metric are no sums over edges."""
  if metric not in metrics.BLEU:
    raise InputError(
      f"costs on forests are of BLEU; metric '{metric}' is no sum over edges"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestLossConfig(gradient_config.GradientConfig):
  """What to minimise, and how; see `gradient_config.GradientConfig`.

  Attributes:
    density: edges kept for each source word, those of the best derivations; 0
      keeps all.
    brevity: share of the brevity penalty's slope in the costs, if the output is
      too short at the start.
  """

  costs: str = "linear-bleu"
  density: float = 50.0
  brevity: float = 0.0

  def __post_init__(self):
    options.one_of(self, costs=("linear-bleu",), optimizer=OPTIMIZERS)
    options.at_least(self, density=0, brevity=0)
    check_metric(self.metric)
    super().__post_init__()
    if losses.find(self.loss).forest is None:
      raise InputError(f"loss '{self.loss}' is not defined on forests")
    if self.devices != 1:
      raise InputError("losses on forests run on one device")


def from_loss(name: str, **changes: Any) -> ForestLossConfig:
  """Returns the settings that the record of a loss asks for."""
  fields = gradient_config.defaults(name)
  fields |= {"costs": "linear-bleu", **changes}
  return ForestLossConfig(loss=name, **fields)
