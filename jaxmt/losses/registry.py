"""The losses by name: one record each.

The methods of gradient tuning are these records (`jaxmt.tune.methods`). To add
a loss, from inside or outside the package, register a record:

    registry.register(
      registry.Loss(name="brier", function=brier, cost_scale=10.0)
    )

and `--method=brier` minimises it. This module does not import JAX; a loss of
the package does so when it is first computed.
"""

import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# (scores, costs, mask, **settings) -> (sum, weight): see `jaxmt.losses`.
LossFunction = Callable[..., tuple[Any, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loss:
  """A loss, and how it is minimised unless someone says otherwise.

  Attributes:
    name: what it is called; also the name of a method.
    function: `(scores, costs, mask, **settings) -> (sum, weight)`.
    settings: keyword arguments of the function that users may change.
    cost_scale: multiplies costs (alpha in Gimpel 2012, section 3.4).
    costs: the kind of costs it is defined on, see `jaxmt.tune.costs`.
    optimizer: one of `jaxmt.tune.gradient_config.OPTIMIZERS`.
    rate: step of the stochastic optimizers.
    start_scale: size of the largest weight at the start; 0 leaves it. Where
      probabilities are near 0 and 1 a loss has no slope: without this, a second
      round could not leave the weights of the first.
    temperatures: values of the setting "temperature", one after the other.
    pairwise: whether it computes an array `[..., K, K]`.
    statistics_of: if "bleu", the function takes the statistics of BLEU,
      `[..., K, 9]`, instead of costs, and the sum is a vector.
    finish: `(sum, weight) -> loss` over all sentences; None: `sum / weight`.
    forest: the same loss over all derivations of packed forests, `(packed,
      scores, costs, **settings) -> (sum, weight)`, see
      `jaxmt.losses.forest_losses`; or None.
  """

  name: str
  function: LossFunction
  settings: Mapping[str, float] = dataclasses.field(default_factory=dict)
  cost_scale: float = 1.0
  costs: str = "sentence"
  optimizer: str = "lbfgs"
  rate: float = 0.01
  start_scale: float = 0.0
  temperatures: tuple[float, ...] = ()
  pairwise: bool = False
  statistics_of: str = ""
  finish: Callable[[Any, Any], Any] | None = None
  forest: Callable[..., tuple[Any, Any]] | None = None


_LOSSES: dict[str, Loss] = {}


def register(loss: Loss) -> Loss:
  """Adds a loss and returns it.

  Raises:
    ValueError: if there is another loss of that name.
  """
  if _LOSSES.setdefault(loss.name, loss) != loss:
    raise ValueError(f"there is a loss '{loss.name}' already")
  return loss


def names() -> list[str]:
  """Returns the names of all losses."""
  return sorted(_LOSSES)


def find(name: str) -> Loss:
  """Returns a loss by name.

  Raises:
    ValueError: if there is none, with the names of all.
  """
  if name not in _LOSSES:
    raise ValueError(f"no loss '{name}'; there are: {', '.join(names())}")
  return _LOSSES[name]


def _modules() -> dict[str, types.ModuleType]:
  from jaxmt.losses import (
    expected_bleu,
    forest_losses,
    likelihood,
    margin,
    ramp,
    ranking,
  )

  modules = (expected_bleu, forest_losses, likelihood, margin, ramp, ranking)
  return {module.__name__.rpartition(".")[2]: module for module in modules}


def _own(path: str, **fixed: Any) -> Callable[..., Any]:
  """A function of this package, imported when it is first called."""
  module, _, name = path.partition(".")

  def function(*arguments, **settings):
    return getattr(_modules()[module], name)(*arguments, **fixed, **settings)

  return function


def _likelihoods() -> Iterator[Loss]:
  """Likelihoods and expectations."""
  yield Loss(
    name="softmax",
    function=_own("likelihood.softmax"),
    forest=_own("forest_losses.softmax"),
  )
  yield Loss(
    name="softmax-margin",
    function=_own("likelihood.softmax_margin"),
    forest=_own("forest_losses.softmax_margin"),
    cost_scale=10.0,
  )
  yield Loss(
    name="risk",
    function=_own("likelihood.risk"),
    forest=_own("forest_losses.risk"),
    settings={"scale": 1.0},
    cost_scale=20.0,
    start_scale=0.1,
  )
  yield Loss(
    name="annealed-risk",
    function=_own("likelihood.annealed_risk"),
    forest=_own("forest_losses.annealed_risk"),
    settings={"scale": 1.0, "temperature": 0.0},
    temperatures=(1.0, 0.3, 0.1, 0.0),
    start_scale=0.1,
  )
  yield Loss(
    name="linear-bleu",
    function=_own("likelihood.risk"),
    forest=_own("forest_losses.risk"),
    settings={"scale": 1.0},
    costs="linear-bleu",
    start_scale=0.1,
  )
  yield Loss(
    name="xbleu",
    function=_own("expected_bleu.expected_statistics"),
    forest=_own("forest_losses.expected_statistics"),
    settings={"scale": 1.0},
    statistics_of="bleu",
    finish=_own("expected_bleu.negative_bleu"),
    start_scale=0.1,
  )


def _ramps() -> Iterator[Loss]:
  """Ramps. The tuners ramp1 to ramp3 minimise the hard ones by Rampion."""
  for form, cost_scale in ((1, 1.0), (2, 20.0), (3, 10.0)):
    yield Loss(
      name=f"ramp{form}",
      function=_own("ramp.ramp", form=form),
      forest=_own("forest_losses.ramp", form=form),
    )
    yield Loss(
      name=f"softramp{form}",
      function=_own("ramp.soft_ramp", form=form),
      forest=_own("forest_losses.soft_ramp", form=form),
      cost_scale=cost_scale,
      start_scale=0.1,
    )
    for name, soft_upper in (("hardsoftramp", True), ("softhardramp", False)):
      yield Loss(
        name=f"{name}{form}",
        function=_own("ramp.hybrid_ramp", form=form, soft_upper=soft_upper),
        forest=_own(
          "forest_losses.hybrid_ramp", form=form, soft_upper=soft_upper
        ),
        cost_scale=10.0,
        start_scale=0.1,
      )


def _margins() -> Iterator[Loss]:
  """Margins: piecewise linear, so L-BFGS is not for them."""
  piecewise: dict[str, Any] = {"cost_scale": 10.0, "optimizer": "adam"}
  for name, rate in (
    ("hinge", 0.01),
    ("structured-hinge", 0.003),
    ("loss-augmented-hinge", 0.003),
  ):
    path = name.replace("-", "_")
    yield Loss(
      name=name,
      function=_own(f"margin.{path}"),
      # The best derivation that is no oracle is no sum over edges.
      forest=None if name == "hinge" else _own(f"forest_losses.{path}"),
      rate=rate,
      **piecewise,
    )
  yield Loss(
    name="slack-rescaled-hinge",
    function=_own("margin.slack_rescaled_hinge"),
    rate=0.003,
    **piecewise,
  )
  yield Loss(
    name="relative-margin",
    function=_own("margin.relative_margin"),
    settings={"bound": 5.0, "strength": 0.1},
    **piecewise,
  )
  yield Loss(
    name="margin",
    function=_own("margin.margin"),
    rate=0.05,
    pairwise=True,
    **piecewise,
  )


def _rankings() -> Iterator[Loss]:
  """Losses of pairs and of whole rankings."""
  for name, kind in (
    ("ranking", "logistic"),
    ("ranking-hinge", "hinge"),
    ("ranking-perceptron", "perceptron"),
  ):
    yield Loss(
      name=name,
      function=_own("ranking.ranking", kind=kind),
      optimizer="adam",
      pairwise=True,
    )
  yield Loss(
    name="pareto",
    function=_own("ranking.ranking", kind="logistic"),
    costs="pareto",
    pairwise=True,
  )
  yield Loss(
    name="cross-entropy-ranking",
    function=_own("ranking.cross_entropy_ranking"),
    settings={"sharpness": 1.0},
    cost_scale=20.0,
  )
  yield Loss(name="mse", function=_own("ranking.mean_squared_error"))


for _family in (_likelihoods, _ramps, _margins, _rankings):
  for _loss in _family():
    register(_loss)
