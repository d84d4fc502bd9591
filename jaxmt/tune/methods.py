"""Every tuning method by name: `optimise(pool, weights, config, seed)`."""

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.tune import mert, mira, online, pro, rampion, simplex
from jaxmt.tune.learner import Learner
from jaxmt.tune.pool import KBestPool

Result = tuple[np.ndarray, list[dict]]
Passes = Callable[
  [KBestPool, Learner, Any, int], Iterator[tuple[Learner, dict]]
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
  """A method with its default config.

  Attributes:
    optimise: `(pool, weights, config, seed) -> (weights, history)`.
    config: a frozen dataclass. One with the field `density` is for a method
      that needs `KBestPool.forests`, with so many edges for a source word.
    passes: of online learners: `(pool, learner, config, seed)` yields the
      learner and a record after each of `config.passes` passes; None for
      methods that see all sentences at once.
  """

  optimise: Callable[[KBestPool, np.ndarray, Any, int], Result]
  config: Any
  passes: Passes | None = None


_PAIRS = {"cost_scale": 10.0, "optimizer": "adam"}
# Where probabilities are near 0 and 1 these losses have no slope: without this,
# a second round could not leave the weights of the first.
_SMOOTH = {"start_scale": 0.1}
_SUBGRADIENT = {"cost_scale": 10.0, "optimizer": "adam", "rate": 0.003}
# Loss (the method's name by default), multiplier of costs (Gimpel 2012, section
# 3.4), other settings.
_GRADIENT: dict[str, dict[str, Any]] = {
  "softmax": {},
  "softmax-margin": {"cost_scale": 10.0},
  "risk": {"cost_scale": 20.0, **_SMOOTH},
  "annealed-risk": {"temperatures": (1.0, 0.3, 0.1, 0.0), **_SMOOTH},
  "linear-bleu": {"loss": "risk", "costs": "linear-bleu", **_SMOOTH},
  "xbleu": _SMOOTH,
  "softramp1": {"cost_scale": 1.0, **_SMOOTH},
  "softramp2": {"cost_scale": 20.0, **_SMOOTH},
  "softramp3": {"cost_scale": 10.0, **_SMOOTH},
  **{f"hardsoftramp{n}": {"cost_scale": 10.0, **_SMOOTH} for n in (1, 2, 3)},
  **{f"softhardramp{n}": {"cost_scale": 10.0, **_SMOOTH} for n in (1, 2, 3)},
  "hinge": {**_SUBGRADIENT, "rate": 0.01},
  "structured-hinge": _SUBGRADIENT,
  "loss-augmented-hinge": _SUBGRADIENT,
  "relative-margin": _PAIRS,
  "margin": {**_PAIRS, "rate": 0.05},
  "ranking": {"optimizer": "adam"},
  "ranking-hinge": {"optimizer": "adam"},
  "ranking-perceptron": {"optimizer": "adam"},
  "pareto": {"loss": "ranking", "costs": "pareto"},
  "cross-entropy-ranking": {"cost_scale": 20.0},
  "mse": {},
}
# It needs a decoder that gives forests, not just k-best lists.
FOREST_MERT = "forest-mert"


def names(*, forests: bool = False) -> list[str]:
  """Returns the names of all methods; on request, those for forests too."""
  more = [FOREST_MERT] if forests else []
  return sorted([*_HOST, *_GRADIENT, *more])


_HOST: dict[str, Method] = {
  "mert": Method(optimise=mert.optimise, config=mert.MertConfig()),
  "zero-one": Method(optimise=mert.optimise_zero_one, config=mert.MertConfig()),
  "nelder-mead": Method(
    optimise=simplex.optimise, config=simplex.SimplexConfig()
  ),
  "pro": Method(optimise=pro.optimise, config=pro.ProConfig()),
  "kbmira": Method(
    optimise=mira.optimise, config=mira.MiraConfig(), passes=mira.passes
  ),
  "mira": Method(
    optimise=mira.optimise,
    config=mira.MiraConfig(constraints=5),
    passes=mira.passes,
  ),
  "perceptron": Method(
    optimise=online.perceptron,
    config=online.PerceptronConfig(),
    passes=online.perceptron_passes,
  ),
  "arow": Method(
    optimise=online.arow,
    config=online.ArowConfig(),
    passes=online.arow_passes,
  ),
  "rampion": Method(optimise=rampion.optimise, config=rampion.RampionConfig()),
  # Ramp 1 only defends its own choice: without large costs and steps it stays
  # where it is.
  "ramp1": Method(
    optimise=rampion.optimise,
    config=rampion.RampionConfig(form=1, rate=0.01),
  ),
  **{
    f"ramp{form}": Method(
      optimise=rampion.optimise, config=rampion.RampionConfig(form=form)
    )
    for form in (2, 3)
  },
}


def find(name: str) -> Method:
  """Returns a method by name.

  Raises:
    InputError: if there is none, with what there is.
  """
  if name in _HOST:
    return _HOST[name]
  if name in _GRADIENT:
    return _gradient_method(name)
  if name == FOREST_MERT:
    from jaxmt.tune import forest_mert  # the decoder's modules come with it

    return Method(
      optimise=forest_mert.optimise, config=forest_mert.ForestMertConfig()
    )
  known = ", ".join(names(forests=True))
  raise InputError(f"no method '{name}'; there are: {known}")


def _gradient_method(name: str) -> Method:
  # JAX is imported here only: the host methods start without it.
  from jaxmt.tune import gradient, objective

  settings = dict(_GRADIENT[name])
  inner = {
    field.name: settings.pop(field.name)
    for field in dataclasses.fields(objective.Objective)
    if field.name in settings
  }
  loss = inner.pop("loss", name)
  config = gradient.GradientConfig(
    objective=objective.Objective(loss=loss, **inner), **settings
  )
  return Method(optimise=gradient.optimise, config=config)


def exploring(method: Method) -> Method:
  """Returns the method as a loop with a decoder wants it; see `Chooser`."""
  return dataclasses.replace(method, config=_exploring(method.config))


def _exploring(config: Any) -> Any:
  """The config, and the config in it, with `explore` set where it exists."""
  changes: dict[str, Any] = {}
  if hasattr(config, "inner"):
    changes["inner"] = _exploring(config.inner)
  if hasattr(config, "explore"):
    changes["explore"] = True
  return dataclasses.replace(config, **changes)


def innermost(config: Any) -> Any:
  """Returns the config of the method itself, inside all that wrap it."""
  return innermost(config.inner) if hasattr(config, "inner") else config


def configure(method: Method, changes: Mapping[str, str]) -> Method:
  """Returns the method with settings changed, given as text.

  Names are fields of the config, or of its objective.

  Raises:
    InputError: for an unknown name, or a value that does not fit.
  """
  config = method.config
  for name, text in changes.items():
    objective = getattr(config, "objective", None)
    if name in _fields(config) and name != "objective":
      value = _convert(text, _fields(config)[name], name)
      config = dataclasses.replace(config, **{name: value})
    elif objective is not None and name in _fields(objective):
      value = _convert(text, _fields(objective)[name], name)
      changed = dataclasses.replace(objective, **{name: value})
      config = dataclasses.replace(config, objective=changed)
    else:
      known = set(_fields(config)) | set(
        _fields(objective) if objective is not None else ()
      )
      raise InputError(
        f"no option '{name}'; there are: {', '.join(sorted(known))}"
      )
  return dataclasses.replace(method, config=config)


def _fields(config: Any) -> dict[str, Any]:
  return typing.get_type_hints(type(config))


def _convert(text: str, kind: Any, name: str) -> Any:
  """Reads a value of a config field's type."""
  try:
    if kind is bool:
      return {"true": True, "false": False}[text.lower()]
    if kind in (int, float, str):
      return kind(text)
    if typing.get_origin(kind) is tuple:
      return tuple(float(part) for part in text.split(",") if part)
    return float(text)
  except (KeyError, ValueError) as error:
    raise InputError(f"option '{name}': cannot read '{text}'") from error
