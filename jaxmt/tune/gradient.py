"""Minimising a loss over the pool by its gradient.

Batch: L-BFGS driven from the host (little to compile) or by optax (all on the
device), and OWL-QN for L1. Stochastic: see `jaxmt.tune.stochastic`. All
sentences of a step are one jitted computation; with `devices > 1` they are
spread over a mesh and only summed statistics cross it.

If there are sparse features, the batch methods on one device compute only the
loss and its slopes in the scores there; products with the feature vectors are
the host's, which keeps millions of features in compressed rows.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from jaxmt.errors import InputError
from jaxmt.runtime import parallel
from jaxmt.tune import costs, owlqn, pool_scores, stochastic
from jaxmt.tune.best_iterate import Chooser
from jaxmt.tune.objective import Objective, check, score_value, value
from jaxmt.tune.padded import PaddedPool, pad_pool
from jaxmt.tune.pool import KBestPool

STOCHASTIC = ("sgd", "adagrad", "adam", "fobos", "rda")
OPTIMIZERS = ("lbfgs", "optax-lbfgs", "owlqn", *STOCHASTIC)
WITH_L1 = ("owlqn", "fobos", "rda")
WITH_RATE = ("sgd", "adagrad", "adam", "fobos")
_HOST = ("lbfgs", "owlqn")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientConfig:
  """What to minimise, and how.

  Attributes:
    objective: the loss.
    metric: what costs and the choice of iterate are measured by.
    costs: see `jaxmt.tune.costs`.
    optimizer: one of `OPTIMIZERS`.
    start_scale: if above 0, the weights to start from are scaled such that the
      largest dense one is this. Which candidate is best does not change, but
      losses of probabilities have no slope left where weights are large.
    steps: of L-BFGS and OWL-QN.
    chunk: an iterate is offered every so many of these steps.
    passes: of the stochastic optimizers.
    batch_size: sentences per stochastic step.
    rate: of the stochastic optimizers.
    half_life: after so many steps their rate is half as large, a third after
      twice as many (Eq 70); 0: it does not fall. Not for rda, whose rate is
      that of an average.
    l1: strength of the absolute-value penalty (owlqn, fobos, rda).
    temperatures: deterministic annealing: run once per value, each from the
      end of the one before; empty runs once.
    scales: the same for `objective.scale`.
    devices: how many to spread sentences over.
    explore: never to return the start, see `Chooser`; for loops.
  """

  objective: Objective
  metric: str = "bleu"
  costs: str = "sentence"
  optimizer: str = "lbfgs"
  start_scale: float = 0.0
  steps: int = 100
  chunk: int = 10
  passes: int = 20
  batch_size: int = 32
  rate: float = 0.01
  half_life: float = 0.0
  l1: float = 0.0
  temperatures: tuple[float, ...] = ()
  scales: tuple[float, ...] = ()
  devices: int = 1
  explore: bool = False


@functools.partial(jax.jit, static_argnames=("steps",))
def _lbfgs_steps(weights, state, initial, padded, objective, *, steps):
  """Runs some L-BFGS steps: `(weights, state)`."""
  loss = functools.partial(
    value, initial=initial, padded=padded, objective=objective
  )
  method = optax.lbfgs()
  value_and_grad = optax.value_and_grad_from_state(loss)

  def step(_, carry):
    weights, state = carry
    level, gradient = value_and_grad(weights, state=state)
    updates, state = method.update(
      gradient, state, weights, value=level, grad=gradient, value_fn=loss
    )
    return optax.apply_updates(weights, updates), state

  return jax.lax.fori_loop(0, steps, step, (weights, state))


@jax.jit
def value_and_gradient(
  weights: Array, initial: Array, padded: PaddedPool, objective: Objective
) -> tuple[Array, Array]:
  """Returns the regularised loss and its gradient in `weights`."""
  return jax.value_and_grad(value)(weights, initial, padded, objective)


def _stages(config: GradientConfig) -> list[Objective]:
  """The objectives to minimise one after the other."""
  base = config.objective
  stages = [dataclasses.replace(base, scale=s) for s in config.scales] or [base]
  if config.temperatures:
    stages = [
      dataclasses.replace(stage, temperature=t)
      for stage in stages
      for t in config.temperatures
    ]
  return stages


def optimise(
  pool: KBestPool, weights: np.ndarray, config: GradientConfig, seed: int
) -> tuple[np.ndarray, list[dict]]:
  """Minimises `config.objective`; arguments as in `mira.optimise`."""
  _check(config, pool.statistics[config.metric].shape[1])
  on_host = (
    config.optimizer in _HOST and config.devices == 1 and len(pool.sparse.ids)
  )
  padded = pad_pool(
    pool,
    config.metric,
    costs.candidate_costs(
      pool, weights, metric=config.metric, kind=config.costs
    ),
    multiple=config.devices,
    features=not on_host,
  )
  if config.devices > 1:
    padded = parallel.split(parallel.make_mesh(config.devices), padded)
  chooser = Chooser(pool, weights, config.metric, explore=config.explore)
  current = jnp.asarray(_scaled(weights, pool, config), jnp.float32)
  for number, objective in enumerate(_stages(config)):
    current = _minimise(
      current,
      padded,
      objective,
      config,
      chooser,
      seed=seed + number,
      pool=pool if on_host else None,
    )
  return chooser.best, chooser.history


def _scaled(
  weights: np.ndarray, pool: KBestPool, config: GradientConfig
) -> np.ndarray:
  """The weights at the scale to start from."""
  largest = np.abs(weights[: pool.dense.shape[1]]).max(initial=0.0)
  if not config.start_scale or not largest:
    return weights
  return weights * (config.start_scale / largest)


def _check(config: GradientConfig, statistics: int) -> None:
  """Raises InputError if the settings do not go together."""
  if config.optimizer not in OPTIMIZERS:
    known = ", ".join(OPTIMIZERS)
    raise InputError(f"optimizer '{config.optimizer}' is none of: {known}")
  if config.l1 and config.optimizer not in WITH_L1:
    raise InputError(
      f"l1 needs one of the optimizers {', '.join(WITH_L1)}, not"
      f" '{config.optimizer}'"
    )
  if config.half_life and config.optimizer not in WITH_RATE:
    raise InputError(
      f"half_life needs one of the optimizers {', '.join(WITH_RATE)}, not"
      f" '{config.optimizer}'"
    )
  check(config.objective, statistics)


@jax.jit
def _slopes(scores: Array, padded: PaddedPool, objective: Objective):
  """The loss and its gradient in the scores, `[B, K]`."""
  return jax.value_and_grad(score_value)(scores, padded, objective)


def host_value_and_gradient(
  weights: np.ndarray,
  initial: np.ndarray,
  pool: KBestPool,
  padded: PaddedPool,
  objective: Objective,
) -> tuple[float, np.ndarray]:
  """Returns what `value_and_gradient` does, features being on the host."""
  mask = np.asarray(padded.mask)
  scores = np.zeros(mask.shape, np.float32)
  scores[mask] = pool_scores.scores(pool, weights)
  level, slopes = _slopes(jnp.asarray(scores), padded, objective)
  gradient = pool_scores.backward(pool, np.asarray(slopes, np.float64)[mask])
  moved = weights - initial
  total = float(level) + 0.5 * objective.l2 * float(moved @ moved)
  return total, gradient + objective.l2 * moved


def _minimise(current, padded, objective, config, chooser, *, seed, pool):
  """Runs one stage; offers iterates, returns the last."""
  initial = current

  def evaluate(weights):
    if pool is not None:
      return host_value_and_gradient(
        np.asarray(weights, np.float64),
        np.asarray(initial, np.float64),
        pool,
        padded,
        objective,
      )
    return value_and_gradient(weights, initial, padded, objective)

  def offer(weights, step):
    level, _ = evaluate(weights)
    chooser.offer(
      np.asarray(weights, np.float64), {"step": step, "loss": float(level)}
    )

  if config.optimizer in _HOST:
    found = owlqn.minimise(
      lambda w: _to_float64(evaluate(jnp.asarray(w, jnp.float32))),
      np.asarray(current, np.float64),
      l1=config.l1,
      steps=config.steps,
    )
    for step, iterate in enumerate(found):
      if (step + 1) % config.chunk == 0 or step + 1 == len(found):
        offer(jnp.asarray(iterate, jnp.float32), step + 1)
    return jnp.asarray(found[-1], jnp.float32) if found else current
  if config.optimizer == "optax-lbfgs":
    state = optax.lbfgs().init(current)
    for done in range(0, config.steps, config.chunk):
      steps = min(config.chunk, config.steps - done)
      current, state = _lbfgs_steps(
        current, state, initial, padded, objective, steps=steps
      )
      if not np.isfinite(np.asarray(current)).all():
        break
      offer(current, done + steps)
    return current
  for number, iterate in enumerate(
    stochastic.passes(
      initial,
      padded,
      objective,
      kind=config.optimizer,
      rate=config.rate,
      half_life=config.half_life,
      l1=config.l1,
      batch_size=config.batch_size,
      count=config.passes,
      seed=seed,
    )
  ):
    current = iterate
    offer(current, number + 1)
  return current


def _to_float64(pair):
  level, gradient = pair
  return float(level), np.asarray(gradient, np.float64)
