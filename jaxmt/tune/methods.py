"""The tuning methods by name: one record each.

To add a method, from inside or outside the package, register a record:

    methods.register(
      "mine", methods.Method(optimise=optimise, config=MyConfig())
    )

Every loss of `jaxmt.losses.registry` is a method, too: gradient tuning. If a
record of this registry has the name of a loss, the record is meant.

A method works in one of two spaces, where its name may mean different records:
the k-best lists of the decoder, or all derivations of its forests.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.losses import registry as losses
from jaxmt.tune import gradient_config, options
from jaxmt.tune.learning import Learner
from jaxmt.tune.lists import (
  mert,
  minibatch_mira,
  mira,
  online,
  pro,
  rampion,
  swarm,
)

Result = tuple[np.ndarray, list[dict]]
Passes = Callable[
  [CandidateLists, Learner, Any, int], Iterator[tuple[Learner, dict]]
]
# What a method tunes on.
LISTS = "lists"
FORESTS = "forests"
# Where a name is looked up.
KBEST = "kbest"
FOREST = "forest"
SPACES = (KBEST, FOREST)


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
      methods that see all sentences at once. See `online_passes`.
    explores: whether `config` has a field `explore`, see `Chooser`.
    on_devices: whether `config` has a field `devices`: the number of devices
      that sentences are spread over.
    centred: whether `optimise` takes the keyword argument `centre`, the weights
      that its regulariser pulls to. In a loop these are the weights before the
      first round, not those that the round starts from.
    inner: the method that this one wraps, or None.
  """

  optimise: Callable[..., Result]
  config: Any
  needs: str = LISTS
  passes: Passes | None = None
  explores: bool = False
  on_devices: bool = False
  centred: bool = False
  inner: "Method | None" = None


_METHODS: dict[str, dict[str, Callable[[], Method]]] = {
  space: {} for space in SPACES
}


def register(
  name: str,
  method: Method | Callable[[], Method],
  *,
  space: str = KBEST,
) -> None:
  """Adds a method.

  Args:
    name: what it is called.
    method: the record, or a function that returns it when it is first asked
      for, if importing it takes long.
    space: one of `SPACES`.

  Raises:
    ValueError: if there is a method of that name in the space.
  """
  if name in _METHODS[space]:
    raise ValueError(f"there is a method '{name}' already")
  _METHODS[space][name] = (
    (lambda: method) if isinstance(method, Method) else method
  )


def names(*, needs: str | None = None, space: str = KBEST) -> list[str]:
  """Returns the names of a space's methods, or of those that need `needs`."""
  every = sorted({*_METHODS[space], *_losses(space)})
  if needs is None:
    return every
  return [name for name in every if find(name, space=space).needs == needs]


def _losses(space: str) -> list[str]:
  """Names of the losses of a space."""
  every = losses.names()
  if space == KBEST:
    return every
  return [name for name in every if losses.find(name).forest is not None]


def find(name: str, *, space: str = KBEST) -> Method:
  """Returns a method by name, with its default settings.

  Raises:
    InputError: if there is none in the space, with the names of all.
  """
  if space not in SPACES:
    raise InputError(f"space '{space}' is none of: {', '.join(SPACES)}")
  if name in _METHODS[space]:
    return _METHODS[space][name]()
  if space == FOREST and name in _losses(FOREST):
    return _loss_on_forests(name)
  if space == FOREST and name in names():
    known = ", ".join(names(space=FOREST))
    raise InputError(
      f"method '{name}' does not work on forests; these do: {known}"
    )
  if name in losses.names():
    return Method(
      optimise=_minimise,
      config=gradient_config.from_loss(name),
      passes=_gradient_passes,
      explores=True,
      on_devices=True,
      centred=True,
    )
  raise InputError(f"no method '{name}'; there are: {', '.join(names())}")


def _loss_on_forests(name: str) -> Method:
  from jaxmt.tune import gradient_config

  return Method(
    optimise=_minimise_on_forests,
    config=gradient_config.forest_from_loss(name),
    needs=FORESTS,
    explores=True,
    centred=True,
  )


def _minimise_on_forests(*arguments, **options) -> Result:
  from jaxmt.tune.forests import forest_loss  # imports JAX and the decoder

  return forest_loss.optimise(*arguments, **options)


def _gradient_passes(*arguments) -> Iterator[tuple[Learner, dict]]:
  from jaxmt.tune.lists import gradient  # imports JAX

  return gradient.passes(*arguments)


def _minimise(*arguments, **options) -> Result:
  from jaxmt.tune.lists import gradient  # imports JAX

  return gradient.optimise(*arguments, **options)


def run(
  method: Method,
  lists: CandidateLists,
  weights: np.ndarray,
  seed: int,
  centre: np.ndarray | None = None,
) -> Result:
  """Tunes weights: `(weights, history)`.

  Args:
    method: with its settings.
    lists: with statistics of the method's metric.
    weights: where to start, float64 `[D + F]`.
    seed: of everything random.
    centre: weights that a regulariser pulls to, `[D + F]`; None: `weights`.
  """
  more = {"centre": centre} if method.centred else {}
  return bound(method)(lists, weights, seed=seed, **more)


def bound(method: Method) -> Callable[..., Result]:
  """Returns `(lists, weights, *, seed[, centre]) -> (weights, history)`.

  That is `method.optimise` with the method's settings. It takes a centre if the
  method is `centred`.
  """
  inner = {}
  if method.inner is not None:
    inner["inner"] = functools.partial(run, method.inner)
  return functools.partial(method.optimise, config=method.config, **inner)


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


def online_passes(method: Method) -> Passes | None:
  """Returns the passes of an online learner, None for other methods.

  A loss is learned online if its optimizer is stochastic.
  """
  config = method.config
  if isinstance(config, gradient_config.GradientConfig):
    if config.optimizer not in gradient_config.STOCHASTIC:
      return None
    if config.scales or config.temperatures:
      return None
  return method.passes


def forest_density(method: Method) -> float | None:
  """Returns the edges for each source word that its forests have.

  0 stands for all edges, None for a method that needs no forests.
  """
  inner = innermost(method)
  return inner.config.density if inner.needs == FORESTS else None


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
  explorer = functools.partial(Method, explores=True)
  margin = functools.partial(
    explorer, optimise=mira.optimise, passes=mira.passes
  )
  perceptron = functools.partial(
    explorer, optimise=online.perceptron, passes=online.perceptron_passes
  )
  ramp = functools.partial(explorer, optimise=rampion.optimise, centred=True)
  climb = functools.partial(Method, centred=True)
  for name, method in {
    "mert": climb(optimise=mert.optimise, config=mert.MertConfig()),
    "gradient-mert": climb(
      optimise=mert.optimise, config=mert.MertConfig(gradient=True)
    ),
    "zero-one": climb(
      optimise=mert.optimise_zero_one, config=mert.MertConfig()
    ),
    "forest-mert": _forest_mert,
    "nelder-mead": _nelder_mead,
    "lp-mert": _lp_mert,
    "particle-swarm": Method(
      optimise=swarm.optimise, config=swarm.SwarmConfig()
    ),
    "pro": Method(optimise=pro.optimise, config=pro.ProConfig()),
    # Of two rounds of decoding, as published: a tenth of the new weights.
    "pro-interpolated": Method(
      optimise=pro.optimise, config=pro.ProConfig(interpolation=0.1)
    ),
    "kbmira": margin(config=mira.MiraConfig(constraints=1)),
    "mira": margin(config=mira.MiraConfig(constraints=5)),
    "minibatch-mira": explorer(
      optimise=minibatch_mira.optimise,
      config=minibatch_mira.MinibatchMiraConfig(),
      passes=minibatch_mira.passes,
    ),
    "perceptron": perceptron(config=online.PerceptronConfig()),
    "batched-perceptron": perceptron(
      config=online.PerceptronConfig(batch=10, rate=0.05)
    ),
    "arow": explorer(
      optimise=online.arow,
      config=online.ArowConfig(),
      passes=online.arow_passes,
    ),
    "rampion": ramp(config=rampion.RampionConfig()),
    # Ramp 1 only defends its own choice: without large costs and steps it stays
    # where it is.
    "ramp1": ramp(config=rampion.RampionConfig(form=1, rate=0.01)),
    "ramp2": ramp(config=rampion.RampionConfig(form=2)),
    "ramp3": ramp(config=rampion.RampionConfig(form=3)),
    "ramp2-gamma": ramp(config=rampion.RampionConfig(form=2, gamma=1.0)),
  }.items():
    register(name, method)


def _register_thesis() -> None:
  """Registers the learners of Gimpel (2012), section 3.4, as printed.

  Algorithm 1 minimises hard ramps, Algorithm 2 soft ramps and risk: sentence by
  sentence in order, with a fixed rate of 1e-4, a pull of C = 1 to the weights
  before the first round, BLEU+1 with one added to all orders, and the last
  iterate as the result of a round. The thesis decodes 20 rounds of 500-best
  lists from weights of the size of Moses' defaults, and returns the round of
  the best BLEU, as the loop does.
  """
  shared: dict[str, Any] = {"costs": "bleu+1-all", "rate": 1e-4, "last": True}
  for form, scale in ((1, 1.0), (2, 1.0), (3, 10.0)):
    config = rampion.RampionConfig(
      form=form, cost_scale=scale, rounds=10, passes=5, pull=1.0, **shared
    )
    register(
      f"thesis-ramp{form}",
      Method(
        optimise=rampion.optimise, config=config, explores=True, centred=True
      ),
    )
  for name, scale in (
    ("softramp1", 1.0),
    ("softramp2", 20.0),
    ("softramp3", 10.0),
    ("risk", 20.0),
  ):
    settings = gradient_config.from_loss(
      name,
      cost_scale=scale,
      optimizer="sgd",
      passes=50,
      batch_size=1,
      pull=1.0,
      shuffle=False,
      start_scale=0.0,
      **shared,
    )
    register(
      f"thesis-{name}",
      Method(
        optimise=_minimise,
        config=settings,
        explores=True,
        on_devices=True,
        centred=True,
      ),
    )


def _nelder_mead() -> Method:
  from jaxmt.tune.lists import simplex  # imports SciPy

  return Method(optimise=simplex.optimise, config=simplex.SimplexConfig())


def _lp_mert() -> Method:
  from jaxmt.tune.lists import lp_mert  # imports SciPy

  return Method(optimise=lp_mert.optimise, config=lp_mert.LpMertConfig())


def _forest_mert() -> Method:
  from jaxmt.tune.forests import forest_mert  # imports the decoder

  return Method(
    optimise=forest_mert.optimise,
    config=forest_mert.ForestMertConfig(),
    needs=FORESTS,
  )


def _forest_mira(constraints: int) -> Method:
  from jaxmt.tune.forests import forest_mira  # imports the decoder

  return Method(
    optimise=forest_mira.optimise,
    config=forest_mira.ForestMiraConfig(constraints=constraints),
    needs=FORESTS,
    passes=forest_mira.passes,
    explores=True,
  )


def _forest_rampion(form: int, rate: float) -> Method:
  from jaxmt.tune.forests import forest_rampion  # imports the decoder

  return Method(
    optimise=forest_rampion.optimise,
    config=forest_rampion.ForestRampionConfig(form=form, rate=rate),
    needs=FORESTS,
    explores=True,
    centred=True,
  )


def _register_on_forests() -> None:
  """Registers the methods of this package whose space is forests."""
  for name in ("mert", "forest-mert"):
    register(name, _forest_mert, space=FOREST)
  for name, constraints in (("kbmira", 1), ("mira", 5)):
    record = functools.partial(_forest_mira, constraints)
    register(name, record, space=FOREST)
  for name, form, rate in (
    ("rampion", 3, 1e-3),
    ("ramp1", 1, 0.01),
    ("ramp2", 2, 1e-3),
    ("ramp3", 3, 1e-3),
  ):
    record = functools.partial(_forest_rampion, form, rate)
    register(name, record, space=FOREST)


_register_own()
_register_thesis()
_register_on_forests()
