"""Every tuning method by name: `optimise(pool, weights, config, seed)`."""

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.tune import mert, mira, online, pro, rampion, simplex
from jaxmt.tune.pool import KBestPool

Result = tuple[np.ndarray, list[dict]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
  """A method with its default config.

  Attributes:
    optimise: `(pool, weights, config, seed) -> (weights, history)`.
    config: a frozen dataclass.
  """

  optimise: Callable[[KBestPool, np.ndarray, Any, int], Result]
  config: Any


# Loss, multiplier of costs (Gimpel 2012, section 3.4), other settings.
_GRADIENT: dict[str, dict[str, Any]] = {
  "softmax": {},
  "softmax-margin": {"cost_scale": 10.0},
  "risk": {"cost_scale": 20.0},
  "annealed-risk": {"temperatures": (1.0, 0.3, 0.1, 0.0)},
  "xbleu": {},
  "softramp1": {"cost_scale": 1.0},
  "softramp2": {"cost_scale": 20.0},
  "softramp3": {"cost_scale": 10.0},
  "hinge": {"cost_scale": 10.0, "optimizer": "adam", "rate": 0.003},
  "structured-hinge": {
    "cost_scale": 10.0,
    "optimizer": "adam",
    "rate": 0.003,
  },
  "relative-margin": {"cost_scale": 10.0, "optimizer": "adam"},
  "margin": {"cost_scale": 10.0, "optimizer": "adam", "rate": 0.05},
  "ranking": {"optimizer": "adam"},
  "cross-entropy-ranking": {"cost_scale": 20.0},
  "mse": {},
}
# Methods of jaxmt.tune that need more than a k-best list.
ELSEWHERE = {"forest-mert": "it searches forests, not k-best lists"}


def names() -> list[str]:
  """Returns the names of all methods."""
  return sorted([*_HOST, *_GRADIENT])


_HOST: dict[str, Method] = {
  "mert": Method(optimise=mert.optimise, config=mert.MertConfig()),
  "nelder-mead": Method(
    optimise=simplex.optimise, config=simplex.SimplexConfig()
  ),
  "pro": Method(optimise=pro.optimise, config=pro.ProConfig()),
  "kbmira": Method(optimise=mira.optimise, config=mira.MiraConfig()),
  "mira": Method(optimise=mira.optimise, config=mira.MiraConfig(constraints=5)),
  "perceptron": Method(
    optimise=online.perceptron, config=online.PerceptronConfig()
  ),
  "arow": Method(optimise=online.arow, config=online.ArowConfig()),
  "rampion": Method(optimise=rampion.optimise, config=rampion.RampionConfig()),
  **{
    f"ramp{form}": Method(
      optimise=rampion.optimise, config=rampion.RampionConfig(form=form)
    )
    for form in (1, 2, 3)
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
  if name in ELSEWHERE:
    raise InputError(f"method '{name}' cannot be used here: {ELSEWHERE[name]}")
  raise InputError(f"no method '{name}'; there are: {', '.join(names())}")


def _gradient_method(name: str) -> Method:
  # JAX is imported here only: the host methods start without it.
  from jaxmt.tune import gradient, objective

  settings = dict(_GRADIENT[name])
  inner = {
    field.name: settings.pop(field.name)
    for field in dataclasses.fields(objective.Objective)
    if field.name in settings
  }
  config = gradient.GradientConfig(
    objective=objective.Objective(loss=name, **inner), **settings
  )
  return Method(optimise=gradient.optimise, config=config)


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
