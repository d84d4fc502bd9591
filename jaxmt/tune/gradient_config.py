"""Settings of gradient tuning, on lists and on forests; imports no JAX."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from jaxmt.errors import InputError
from jaxmt.losses import registry as losses
from jaxmt.metrics import named_metrics as metrics
from jaxmt.tune import costs, options

STOCHASTIC = ("sgd", "adagrad", "adam", "fobos", "rda")
BATCH = ("lbfgs", "optax-lbfgs", "owlqn")
OPTIMIZERS = (*BATCH, *STOCHASTIC)
WITH_L1 = ("owlqn", "fobos", "rda")
WITH_RATE = ("sgd", "adagrad", "adam", "fobos")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientConfig:
  """What to minimise, and how.

  Attributes:
    loss: a name in `jaxmt.losses.registry`.
    settings: of the loss, by name; its record says which there are.
    cost_scale: multiplies costs.
    l2: strength of the pull towards the initial weights.
    pull: C; adds C / B to `l2`, with B the number of sentences.
    metric: what costs and the choice of iterate are measured by.
    costs: see `jaxmt.tune.costs`.
    optimizer: one of `OPTIMIZERS`.
    start_scale: if above 0, the weights to start from are scaled such that the
      largest dense one is this. The best candidate stays the best.
    steps: of L-BFGS and OWL-QN.
    chunk: iterates are scored after each `chunk` of these steps.
    passes: of the stochastic optimizers.
    batch_size: sentences per stochastic step.
    shuffle: whether passes of the stochastic optimizers have random orders.
    last: return the last iterate, not the one of the best pool score.
    rate: of the stochastic optimizers.
    half_life: the rate is half as large after T steps, a third after 2 T
      (Eq 70); 0: it does not fall. Not for rda, whose rate is that of an
      average.
    l1: strength of the absolute-value penalty (owlqn, fobos, rda).
    temperatures: deterministic annealing: run once for each value of the
      setting "temperature", each from the end of the one before.
    scales: the same for the setting "scale".
    devices: number of devices that sentences are spread over.
    explore: never to return the start, see `Chooser`; for loops.
  """

  loss: str
  settings: Mapping[str, float] = dataclasses.field(default_factory=dict)
  cost_scale: float = 1.0
  l2: float = 0.0
  pull: float = 0.0
  metric: str = "bleu"
  costs: str = "sentence"
  optimizer: str = "lbfgs"
  start_scale: float = 0.0
  steps: int = 100
  chunk: int = 10
  passes: int = 20
  batch_size: int = 32
  shuffle: bool = True
  last: bool = False
  rate: float = 0.01
  half_life: float = 0.0
  l1: float = 0.0
  temperatures: tuple[float, ...] = ()
  scales: tuple[float, ...] = ()
  devices: int = 1
  explore: bool = False

  def __post_init__(self):
    options.one_of(self, loss=losses.names(), optimizer=OPTIMIZERS)
    options.at_least(self, l2=0, pull=0, l1=0, half_life=0, start_scale=0)
    options.at_least(self, cost_scale=0)
    options.at_least(self, steps=1, chunk=1, passes=1, batch_size=1, devices=1)
    options.above(self, rate=0)
    costs.check(self.costs, self.metric)
    if self.l1 and self.optimizer not in WITH_L1:
      raise InputError(
        f"l1 needs one of the optimizers {', '.join(WITH_L1)}, not"
        f" '{self.optimizer}'"
      )
    if self.half_life and self.optimizer not in WITH_RATE:
      raise InputError(
        f"half_life needs one of the optimizers {', '.join(WITH_RATE)}, not"
        f" '{self.optimizer}'"
      )
    _check_loss(self)


def _check_loss(config: GradientConfig) -> None:
  loss = losses.find(config.loss)
  if loss.statistics_of == "bleu" and config.metric not in metrics.BLEU:
    raise InputError(f"{loss.name} needs metric 'bleu', not '{config.metric}'")
  for name, value in config.settings.items():
    if value < 0:
      raise InputError(f"option '{name}' must be at least 0, not {value}")
  for name, values in (
    ("temperature", config.temperatures),
    ("scale", config.scales),
  ):
    if values and min(values) < 0:
      raise InputError(f"option '{name}s' must be at least 0, not {values}")
    if values and name not in loss.settings:
      raise InputError(f"option '{name}s': {loss.name} has no {name}")


def defaults(name: str) -> dict[str, Any]:
  """Returns the settings that the record of a loss asks for, by name."""
  loss = losses.find(name)
  return {
    "settings": dict(loss.settings),
    "cost_scale": loss.cost_scale,
    "costs": loss.costs,
    "optimizer": loss.optimizer,
    "rate": loss.rate,
    "start_scale": loss.start_scale,
    "temperatures": loss.temperatures,
  }


def from_loss(name: str, **changes: Any) -> GradientConfig:
  """Returns the config of a loss, with its settings or others."""
  return GradientConfig(loss=name, **{**defaults(name), **changes})


def stages(config: GradientConfig) -> list[dict[str, float]]:
  """Returns the settings of the loss to minimise with, one after the other."""
  steps = [dict(config.settings)]
  for name, values in (
    ("scale", config.scales),
    ("temperature", config.temperatures),
  ):
    if values:
      steps = [{**stage, name: value} for stage in steps for value in values]
  return steps


ON_FORESTS = ("lbfgs", "owlqn", "sgd", "adagrad", "adam")


def check_metric(metric: str) -> None:
  """Raises `InputError` if costs by a metric are no sums over edges."""
  if metric not in metrics.BLEU:
    raise InputError(
      f"costs on forests are of BLEU; metric '{metric}' is no sum over edges"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestLossConfig(GradientConfig):
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
    options.one_of(self, costs=("linear-bleu",), optimizer=ON_FORESTS)
    options.at_least(self, density=0, brevity=0)
    check_metric(self.metric)
    super().__post_init__()
    if losses.find(self.loss).forest is None:
      raise InputError(f"loss '{self.loss}' is not defined on forests")
    if self.devices != 1:
      raise InputError("losses on forests run on one device")


def forest_from_loss(name: str, **changes: Any) -> ForestLossConfig:
  """Returns the settings that the record of a loss asks for."""
  fields = defaults(name)
  fields |= {"costs": "linear-bleu", **changes}
  return ForestLossConfig(loss=name, **fields)
