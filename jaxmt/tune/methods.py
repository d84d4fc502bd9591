"""The tuning methods by name: one record each.

To add a method, from inside or outside the package, register a record:

    methods.register(
      "mine", methods.Method(optimise=optimise, config=MyConfig())
    )

Every loss of `jaxmt.losses.registry` is a method, too: gradient tuning. If a
record of this registry has the name of a loss, the record is meant.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.losses import registry as losses
from jaxmt.tune import (
  gradient_config,
  mert,
  mira,
  online,
  options,
  pro,
  rampion,
  simplex,
)
from jaxmt.tune.learner import Learner
from jaxmt.tune.pool import KBestPool

Result = tuple[np.ndarray, list[dict]]
Passes = Callable[
  [KBestPool, Learner, Any, int], Iterator[tuple[Learner, dict]]
]
# What a method tunes on.
LISTS = "lists"
FORESTS = "forests"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
  """A tuning method with its settings.

  Attributes:
    optimise: `(lists, weights, config, seed) -> (weights, history)`. Methods
      that wrap another one get its `run` as the keyword argument `inner`.
    config: a frozen dataclass with a field `metric`; it checks itself.
    needs: `LISTS`, or `FORESTS` if `lists.forests` must be there; `config`
      then has a field `density`, the number of edges for each source word.
    passes: of online learners: `(lists, learner, config, seed)` yields the
      learner and a record after each of `config.passes` passes; None for
      methods that see all sentences at once.
    explores: whether `config` has a field `explore`, see `Chooser`.
    on_devices: whether `config` has a field `devices`: the number of devices
      that sentences are spread over.
    inner: the method that this one wraps, or None.
  """

  optimise: Callable[..., Result]
  config: Any
  needs: str = LISTS
  passes: Passes | None = None
  explores: bool = False
  on_devices: bool = False
  inner: "Method | None" = None


_METHODS: dict[str, Callable[[], Method]] = {}


def register(name: str, method: Method | Callable[[], Method]) -> None:
  """Adds a method.

  Args:
    name: what it is called.
    method: the record, or a function that returns it when it is first asked
      for, if importing it takes long.

  Raises:
    ValueError: if there is a method of that name.
  """
  if name in _METHODS:
    raise ValueError(f"there is a method '{name}' already")
  _METHODS[name] = (lambda: method) if isinstance(method, Method) else method


def names(*, needs: str | None = None) -> list[str]:
  """Returns the names of all methods, or of those that need `needs`."""
  every = sorted({*_METHODS, *losses.names()})
  if needs is None:
    return every
  return [name for name in every if find(name).needs == needs]


def find(name: str) -> Method:
  """Returns a method by name, with its default settings.

  Raises:
    InputError: if there is none, with the names of all.
  """
  if name in _METHODS:
    return _METHODS[name]()
  if name in losses.names():
    return Method(
      optimise=_minimise,
      config=gradient_config.from_loss(name),
      explores=True,
      on_devices=True,
    )
  raise InputError(f"no method '{name}'; there are: {', '.join(names())}")


def _minimise(*arguments) -> Result:
  from jaxmt.tune import gradient  # imports JAX

  return gradient.optimise(*arguments)


def run(
  method: Method, lists: KBestPool, weights: np.ndarray, seed: int
) -> Result:
  """Tunes weights: `(weights, history)`.

  Args:
    method: with its settings.
    lists: with statistics of the method's metric.
    weights: where to start, float64 `[D + F]`.
    seed: of everything random.
  """
  more: dict[str, Any] = {}
  if method.inner is not None:
    more["inner"] = functools.partial(run, method.inner)
  return method.optimise(lists, weights, method.config, seed, **more)


def exploring(method: Method) -> Method:
  """Returns the method as a loop with a decoder wants it; see `Chooser`."""
  config, inner = method.config, method.inner
  if method.explores:
    config = dataclasses.replace(config, explore=True)
  if inner is not None:
    inner = exploring(inner)
  return dataclasses.replace(method, config=config, inner=inner)


def innermost(method: Method) -> Method:
  """Returns the method itself, inside all that wrap it."""
  return method if method.inner is None else innermost(method.inner)


def forest_density(method: Method) -> float | None:
  """Returns the edges for each source word that its forests have.

  0 stands for all edges, None for a method that needs no forests.
  """
  own = innermost(method)
  return own.config.density if own.needs == FORESTS else None


def settings(method: Method) -> dict[str, Any]:
  """Returns all settings, those of a wrapped method under "inner"."""
  values = dataclasses.asdict(method.config)
  if method.inner is not None:
    values["inner"] = settings(method.inner)
  return values


def configure(method: Method, changes: Mapping[str, str]) -> Method:
  """Returns the method with settings changed, given as text.

  Raises:
    InputError: for an unknown name, or a value that does not fit.
  """
  config = options.change(method.config, changes)
  return dataclasses.replace(method, config=config)


def _register_own() -> None:
  """Registers the methods of this package that are no losses."""
  climb = Method(optimise=mert.optimise, config=mert.MertConfig())
  register("mert", climb)
  register(
    "zero-one", dataclasses.replace(climb, optimise=mert.optimise_zero_one)
  )
  register("forest-mert", _forest_mert)
  register(
    "nelder-mead",
    Method(optimise=simplex.optimise, config=simplex.SimplexConfig()),
  )
  register("pro", Method(optimise=pro.optimise, config=pro.ProConfig()))
  for name, constraints in (("kbmira", 1), ("mira", 5)):
    register(
      name,
      Method(
        optimise=mira.optimise,
        config=mira.MiraConfig(constraints=constraints),
        passes=mira.passes,
        explores=True,
      ),
    )
  register(
    "perceptron",
    Method(
      optimise=online.perceptron,
      config=online.PerceptronConfig(),
      passes=online.perceptron_passes,
      explores=True,
    ),
  )
  register(
    "arow",
    Method(
      optimise=online.arow,
      config=online.ArowConfig(),
      passes=online.arow_passes,
      explores=True,
    ),
  )
  # Ramp 1 only defends its own choice: without large costs and steps it stays
  # where it is.
  for name, config in (
    ("rampion", rampion.RampionConfig()),
    ("ramp1", rampion.RampionConfig(form=1, rate=0.01)),
    ("ramp2", rampion.RampionConfig(form=2)),
    ("ramp3", rampion.RampionConfig(form=3)),
  ):
    register(
      name, Method(optimise=rampion.optimise, config=config, explores=True)
    )


def _forest_mert() -> Method:
  from jaxmt.tune import forest_mert  # imports the decoder

  return Method(
    optimise=forest_mert.optimise,
    config=forest_mert.ForestMertConfig(),
    needs=FORESTS,
  )


_register_own()
