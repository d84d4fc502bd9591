"""Stochastic gradient steps over minibatches of sentences, one jit per pass.

    sgd      w -= rate g                                        (Eq 68)
    adagrad  w -= rate g / sqrt(sum g^2)                        (Eq 73-74)
    adam     Kingma and Ba (2015)
    fobos    see `jaxmt.tune.proximal`
    rda      see `jaxmt.tune.proximal`

AdaGrad's sum includes the present gradient (the printed order divides by zero
at the first step). The rate of all but RDA may fall as `rate / (1 + t / T)`
(Eq 70).
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from jaxmt.errors import InputError
from jaxmt.tune.lists import proximal
from jaxmt.tune.lists.objective import Objective, PaddedLists, value


@functools.cache
def optimizer(kind: str) -> optax.GradientTransformationExtraArgs:
  """Returns an optimizer whose numbers are in its state.

  They are `state.hyperparams`: learning_rate, decay, l1 and l2. So another
  number needs no other compilation.

  Args:
    kind: see the module.

  Raises:
    ValueError: for an unknown optimizer.
  """

  def factory(learning_rate, decay, l1, l2):
    schedule = lambda count: learning_rate / (1.0 + decay * count)
    if kind == "sgd":
      return optax.sgd(schedule)
    if kind == "adam":
      return optax.adam(schedule)
    if kind == "adagrad":
      return optax.adagrad(schedule, initial_accumulator_value=0.0, eps=1e-8)
    if kind == "fobos":
      return proximal.fobos(schedule, l1=l1, l2=l2)
    if kind == "rda":
      return proximal.rda(schedule, l1=l1)
    raise ValueError(f"no such optimizer: {kind}")

  factory(0.0, 0.0, 0.0, 0.0)  # is there such a kind?
  inject = optax.inject_hyperparams(factory)
  return inject(learning_rate=0.0, decay=0.0, l1=0.0, l2=0.0)


@functools.partial(jax.jit, static_argnames=("kind", "batch_size"))
def _one_pass(
  order, weights, state, initial, padded, objective, *, kind, batch_size
):
  """One pass: `(weights, state, whether all gradients were finite)`."""
  batches = order[: len(order) // batch_size * batch_size]
  batches = batches.reshape(-1, batch_size)

  def step(carry, rows):
    weights, state, finite = carry
    batch = jax.tree.map(lambda leaf: leaf[rows], padded)
    gradient = jax.grad(value)(weights, initial, batch, objective)
    updates, state = optimizer(kind).update(gradient, state, weights)
    finite &= jnp.isfinite(gradient).all()
    return (optax.apply_updates(weights, updates), state, finite), None

  begin = (weights, state, jnp.bool_(True))
  return jax.lax.scan(step, begin, batches)[0]


def passes(
  weights: Array,
  padded: PaddedLists,
  objective: Objective,
  *,
  initial: Array,
  kind: str,
  rate: float,
  half_life: float = 0.0,
  l1: float,
  batch_size: int,
  count: int,
  seed: int,
  shuffle: bool = True,
  state: Any = None,
) -> Iterator[tuple[Array, Any]]:
  """Yields weights and the optimizer's state after each pass over sentences.

  Args:
    weights: where to start.
    padded: all sentences.
    objective: the loss of a batch.
    initial: weights that `objective.l2` pulls to.
    kind: see the module.
    rate: the step.
    half_life: T, the number of steps after which the rate is half as large; 0:
      it does not fall.
    l1: penalty of fobos and rda.
    batch_size: sentences per step; those of an incomplete last batch wait for
      the next pass, which has another order.
    count: passes.
    seed: of the orders.
    shuffle: whether each pass has a random order; else that of the sentences.
    state: of the optimizer, from an earlier call; None begins.

  Raises:
    InputError: if a gradient is not finite.
  """
  batch_size = min(batch_size, padded.mask.shape[0])
  numbers = {
    "learning_rate": rate,
    "decay": 1.0 / half_life if half_life else 0.0,
    "l1": l1,
    "l2": objective.l2,
  }
  if state is None:
    state = optimizer(kind).init(weights)
  state = state._replace(
    hyperparams={k: jnp.float32(number) for k, number in numbers.items()}
  )
  if kind == "fobos":  # its penalties come after the step
    objective = dataclasses.replace(objective, l2=0.0)
  key = jax.random.key(seed)
  order = jnp.arange(padded.mask.shape[0])
  for number in range(count):
    if shuffle:
      order = jax.random.permutation(
        jax.random.fold_in(key, number), padded.mask.shape[0]
      )
    weights, state, finite = _one_pass(
      order,
      weights,
      state,
      initial,
      padded,
      objective,
      kind=kind,
      batch_size=batch_size,
    )
    if not finite:
      raise not_finite(objective.loss)
    yield weights, state


# Where optimizers started: known to whoever calls, so no part of the state.
_ORIGINS = (".centre", ".origin")


def state_values(
  state: Any, size: int
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
  """Returns an optimizer's state by name: `(slots, numbers)`.

  Args:
    state: of `optimizer(kind)`.
    size: D + F; arrays of that length are what it keeps for each weight.
  """
  slots, numbers = {}, {}
  for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
    name, value = jax.tree_util.keystr(path), np.asarray(leaf)
    if name.endswith(_ORIGINS):
      continue
    if value.shape == (size,):
      slots[name] = value.astype(np.float64)
    else:
      numbers[name] = value.item()
  return slots, numbers


def state_of(
  kind: str,
  origin: Array,
  slots: Mapping[str, np.ndarray],
  numbers: Mapping[str, float],
) -> Any:
  """Returns the state that `state_values` took apart.

  Args:
    kind: of the optimizer.
    origin: the first weights, `[D + F]`.
    slots: what it keeps for each weight; what is missing is as at the start.
    numbers: the rest.
  """
  leaves, tree = jax.tree_util.tree_flatten_with_path(
    optimizer(kind).init(origin)
  )
  known = {**slots, **numbers}
  values = [
    jnp.asarray(known.get(jax.tree_util.keystr(path), leaf), leaf.dtype)
    for path, leaf in leaves
  ]
  return jax.tree_util.tree_unflatten(tree, values)


def not_finite(loss: str) -> InputError:
  """Returns the error of a loss whose gradient is not finite."""
  return InputError(
    f"the gradient of {loss} is not finite: start from smaller weights, or"
    " lower rate or cost_scale"
  )
