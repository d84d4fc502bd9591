"""Minimising a loss over the pool by its gradient.

Batch: L-BFGS driven from the host (little to compile) or by optax (all on the
device), and OWL-QN for L1. Stochastic: see `jaxmt.tune.lists.stochastic`. All
sentences of a step are one jitted computation; with `devices > 1` they are
spread over a mesh and only summed statistics cross it.

If there are sparse features, the batch methods on one device compute only the
loss and its slopes in the scores there; products with the feature vectors are
the host's, which keeps millions of features in compressed rows.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.runtime import parallel
from jaxmt.tune import costs
from jaxmt.tune import pool as pool_lib
from jaxmt.tune.gradient_config import GradientConfig, stages
from jaxmt.tune.learning import Chooser, Learner
from jaxmt.tune.lists import owlqn, stochastic
from jaxmt.tune.lists.objective import (
  Objective,
  PaddedLists,
  pad,
  score_value,
  value,
)

_HOST = ("lbfgs", "owlqn")


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
  weights: Array, initial: Array, padded: PaddedLists, objective: Objective
) -> tuple[Array, Array]:
  """Returns the regularised loss and its gradient in `weights`."""
  return jax.value_and_grad(value)(weights, initial, padded, objective)


def _stages(config: GradientConfig, sentences: int) -> list[Objective]:
  """The objectives to minimise one after the other."""
  return [
    Objective(
      loss=config.loss,
      settings=settings,
      cost_scale=config.cost_scale,
      l2=config.l2 + config.pull / max(sentences, 1),
    )
    for settings in stages(config)
  ]


def optimise(
  pool: CandidateLists,
  weights: np.ndarray,
  config: GradientConfig,
  seed: int,
  *,
  centre: np.ndarray | None = None,
) -> tuple[np.ndarray, list[dict]]:
  """Minimises `config.loss`; arguments as in `mira.optimise`.

  L2 pulls to `centre`, by default the weights to start from.
  """
  on_host = (
    config.optimizer in _HOST and config.devices == 1 and len(pool.sparse.ids)
  )
  padded = pad(
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
  chooser = Chooser(
    pool, weights, config.metric, explore=config.explore, last=config.last
  )
  current = jnp.asarray(_scaled(weights, pool, config), jnp.float32)
  if centre is None:
    centre = weights
  initial = jnp.asarray(_scaled(centre, pool, config), jnp.float32)

  def offer(weights: Array, step: int, loss: float) -> None:
    chooser.offer(np.asarray(weights, np.float64), {"step": step, "loss": loss})

  for number, objective in enumerate(_stages(config, pool.sentences)):
    current = _minimise(
      _Stage(
        objective=objective,
        start=current,
        initial=initial,
        padded=padded,
        host=pool if on_host else None,
        config=config,
        offer=offer,
        seed=seed + number,
      )
    )
  return chooser.best, chooser.history


def _scaled(
  weights: np.ndarray, pool: CandidateLists, config: GradientConfig
) -> np.ndarray:
  """The weights at the scale to start from."""
  largest = np.abs(weights[: pool.dense.shape[1]]).max(initial=0.0)
  if not config.start_scale or not largest:
    return weights
  return weights * (config.start_scale / largest)


@jax.jit
def _slopes(scores: Array, padded: PaddedLists, objective: Objective):
  """The loss and its gradient in the scores, `[B, K]`."""
  return jax.value_and_grad(score_value)(scores, padded, objective)


def host_value_and_gradient(
  weights: np.ndarray,
  initial: np.ndarray,
  pool: CandidateLists,
  padded: PaddedLists,
  objective: Objective,
) -> tuple[float, np.ndarray]:
  """Returns what `value_and_gradient` does, features being on the host."""
  mask = np.asarray(padded.mask)
  scores = np.zeros(mask.shape, np.float32)
  scores[mask] = pool_lib.scores(pool, weights)
  level, slopes = _slopes(jnp.asarray(scores), padded, objective)
  gradient = pool_lib.backward(pool, np.asarray(slopes, np.float64)[mask])
  moved = weights - initial
  total = float(level) + 0.5 * objective.l2 * float(moved @ moved)
  return total, gradient + objective.l2 * moved


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Stage:
  """One objective to minimise.

  Attributes:
    objective: the loss.
    start: where to start, `[D + F]`.
    initial: where L2 pulls to, `[D + F]`.
    padded: the lists; without features if `host` is given.
    host: the lists, if products with features are the host's; or None.
    config: how to minimise.
    offer: called with iterates and their number.
    seed: of the stochastic optimizers.
  """

  objective: Objective
  start: Array
  initial: Array
  padded: PaddedLists
  host: CandidateLists | None
  config: GradientConfig
  offer: Callable[[Array, int, float], None]
  seed: int

  def evaluate(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Returns the loss and its gradient, float64."""
    weights = np.asarray(weights, np.float32)
    if self.host is not None:
      return host_value_and_gradient(
        weights.astype(np.float64),
        np.asarray(self.initial, np.float64),
        self.host,
        self.padded,
        self.objective,
      )
    level, gradient = value_and_gradient(
      jnp.asarray(weights), self.initial, self.padded, self.objective
    )
    return float(level), np.asarray(gradient, np.float64)

  def score(self, weights: Array, step: int) -> None:
    """Offers an iterate with its loss."""
    self.offer(weights, step, self.evaluate(np.asarray(weights))[0])


def _minimise(stage: _Stage) -> Array:
  """Runs one stage; offers iterates, returns the last.

  Raises:
    InputError: if a gradient is not finite.
  """
  optimizer = stage.config.optimizer
  if optimizer in _HOST:
    return _by_owlqn(stage)
  if optimizer == "optax-lbfgs":
    return _by_optax_lbfgs(stage)
  return _by_stochastic(stage)


def _by_owlqn(stage: _Stage) -> Array:
  """L-BFGS on the host; OWL-QN if there is an L1 penalty."""
  config = stage.config
  begin = np.asarray(stage.start, np.float64)
  if not np.isfinite(stage.evaluate(begin)[1]).all():
    raise stochastic.not_finite(stage.objective.loss)
  iterates = owlqn.minimise(
    stage.evaluate, begin, l1=config.l1, steps=config.steps
  )
  for step, iterate in enumerate(iterates):
    if (step + 1) % config.chunk == 0 or step + 1 == len(iterates):
      stage.score(jnp.asarray(iterate, jnp.float32), step + 1)
  return jnp.asarray(iterates[-1] if iterates else begin, jnp.float32)


def _by_optax_lbfgs(stage: _Stage) -> Array:
  config, current = stage.config, stage.start
  state = optax.lbfgs().init(current)
  for done in range(0, config.steps, config.chunk):
    steps = min(config.chunk, config.steps - done)
    current, state = _lbfgs_steps(
      current, state, stage.initial, stage.padded, stage.objective, steps=steps
    )
    if not np.isfinite(np.asarray(current)).all():
      raise stochastic.not_finite(stage.objective.loss)
    stage.score(current, done + steps)
  return current


def _by_stochastic(stage: _Stage) -> Array:
  config, current = stage.config, stage.start
  iterates = stochastic.passes(
    current,
    stage.padded,
    stage.objective,
    initial=stage.initial,
    kind=config.optimizer,
    rate=config.rate,
    half_life=config.half_life,
    l1=config.l1,
    batch_size=config.batch_size,
    count=config.passes,
    shuffle=config.shuffle,
    seed=stage.seed,
  )
  for number, (iterate, _) in enumerate(iterates):
    current = iterate
    stage.score(current, number + 1)
  return current


def passes(
  pool: CandidateLists, learner: Learner, config: GradientConfig, seed: int
) -> Iterator[tuple[Learner, dict]]:
  """Yields the learner after each pass of a stochastic optimizer.

  What the optimizer keeps (sums of squares, moments, its number of steps) goes
  on from batch to batch in `learner.slots` and `learner.numbers`. Features that
  a batch lacks stay as they are. L2 pulls to `learner.centre`. Other arguments
  as in `mira.passes`.
  """
  first = not learner.numbers
  if first:
    learner.weights[:] = _scaled(learner.weights, pool, config)
  centre = learner.weights
  if learner.centre is not None:
    centre = _scaled(learner.centre, pool, config)
  current = jnp.asarray(learner.weights, jnp.float32)
  origin = jnp.asarray(centre, jnp.float32)
  known = (learner.slots, learner.numbers)
  candidate_costs = costs.candidate_costs(
    pool, learner.weights, metric=config.metric, kind=config.costs
  )
  (objective,) = _stages(config, pool.sentences)
  iterates = stochastic.passes(
    current,
    pad(pool, config.metric, candidate_costs),
    objective,
    initial=origin,
    kind=config.optimizer,
    rate=config.rate,
    half_life=config.half_life,
    l1=config.l1,
    batch_size=config.batch_size,
    count=config.passes,
    shuffle=config.shuffle,
    seed=seed,
    state=stochastic.state_of(config.optimizer, origin, *known),
  )
  for number, (weights, state) in enumerate(iterates):
    learner.weights[:] = np.asarray(weights, np.float64)
    learner.slots, learner.numbers = stochastic.state_values(
      state, len(learner.weights)
    )
    learner.steps += pool.sentences
    yield learner, {"pass": number}
