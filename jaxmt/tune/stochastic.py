"""Stochastic gradient steps over minibatches of sentences, one jit per pass.

    sgd      w -= rate g                                        (Eq 68)
    adagrad  w -= rate g / sqrt(sum g^2)                        (Eq 73-74)
    adam     optax
    fobos    AdaGrad, then the proximal step of the penalties   (Eq 71-72)
    rda      regularised dual averaging (Xiao 2010)

FOBOS and RDA leave weights at exactly 0. AdaGrad's sum includes the present
gradient (the printed order divides by zero at the first step). The rate of all
but RDA may fall as `rate / (1 + t / T)` (Eq 70).
"""

import dataclasses
import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import optax
from jax import Array

from jaxmt.tune.objective import Objective, value
from jaxmt.tune.padded import PaddedLists

_TINY = 1e-8


def _method(kind: str, rate: float) -> optax.GradientTransformation:
  if kind == "sgd":
    return optax.sgd(rate)
  if kind == "adam":
    return optax.adam(rate)
  if kind == "adagrad":
    return optax.adagrad(rate, initial_accumulator_value=0.0, eps=_TINY)
  raise ValueError(f"no such optimizer: {kind}")


def soft_threshold(weights: Array, threshold: Array) -> Array:
  """Returns the proximal point of L1: shrunk towards 0, and 0 if near."""
  return jnp.sign(weights) * jnp.maximum(jnp.abs(weights) - threshold, 0.0)


def proximal(
  weights: Array, pace: Array, *, l1: Array, l2: Array, centre: Array
) -> Array:
  """Returns where the penalties pull the weights to in one step.

  The minimiser of `(w - weights)^2 / 2 + pace (l1 |w| + l2 (w - centre)^2 / 2)`
  in each coordinate.

  Args:
    weights: `[F]`.
    pace: step of each weight, `[F]`.
    l1: strength of the pull towards 0.
    l2: strength of the pull towards `centre`.
    centre: `[F]`.
  """
  moved = soft_threshold(weights + pace * l2 * centre, pace * l1)
  return moved / (1.0 + pace * l2)


def _fobos(weights, gradient, state, *, rate, **penalties):
  """AdaGrad followed by the proximal step, at the pace of each weight."""
  squares = state + gradient * gradient
  pace = rate / (jnp.sqrt(squares) + _TINY)
  return proximal(weights - pace * gradient, pace, **penalties), squares


def _rda(weights, gradient, state, *, rate, l1, origin):
  """Weights from the mean gradient alone; `rate` is 1 / gamma."""
  del weights
  mean, count = state
  count = count + 1.0
  mean = mean + (gradient - mean) / count
  moved = -jnp.sqrt(count) * rate * soft_threshold(mean, l1)
  return origin + moved, (mean, count)


@functools.partial(jax.jit, static_argnames=("kind", "batch_size"))
def _one_pass(
  key,
  weights,
  state,
  initial,
  padded,
  objective,
  rate,
  falls,
  l1,
  number,
  *,
  kind,
  batch_size,
):
  """Pass `number`, from 0; step t has rate `rate / (1 + falls * t)`."""
  sentences = padded.mask.shape[0]
  order = jax.random.permutation(key, sentences)
  batches = order[: sentences // batch_size * batch_size]
  batches = batches.reshape(-1, batch_size)

  times = number * len(batches) + jnp.arange(len(batches))
  # FOBOS' gradient is that of the loss alone; its penalties come after.
  pulled = objective
  if kind == "fobos":
    pulled = dataclasses.replace(objective, l2=0.0)

  def step(carry, now):
    weights, state = carry
    rows, time = now
    batch = jax.tree.map(lambda leaf: leaf[rows], padded)
    gradient = jax.grad(value)(weights, initial, batch, pulled)
    gradient = jnp.where(jnp.isfinite(gradient), gradient, 0.0)
    pace = rate / (1.0 + falls * time)
    if kind == "fobos":
      penalties = {"l1": l1, "l2": objective.l2, "centre": initial}
      return _fobos(weights, gradient, state, rate=pace, **penalties), None
    if kind == "rda":
      moved = _rda(weights, gradient, state, rate=rate, l1=l1, origin=initial)
      return moved, None
    updates, state = _method(kind, pace).update(gradient, state, weights)
    return (optax.apply_updates(weights, updates), state), None

  return jax.lax.scan(step, (weights, state), (batches, times))[0]


def passes(
  weights: Array,
  padded: PaddedLists,
  objective: Objective,
  *,
  kind: str,
  rate: float,
  half_life: float = 0.0,
  l1: float,
  batch_size: int,
  count: int,
  seed: int,
) -> Iterator[Array]:
  """Yields the weights after each pass over the sentences.

  Args:
    weights: where to start and, for the pull of `objective.l2`, the centre.
    padded: all sentences.
    objective: the loss of a batch.
    kind: see the module.
    rate: the step.
    half_life: T, the number of steps after which the rate is half as large; 0:
      it does not fall, nor does that of rda.
    l1: penalty of fobos and rda.
    batch_size: sentences per step; those of an incomplete last batch wait for
      the next pass, which has another order.
    count: passes.
    seed: of the orders.
  """
  batch_size = min(batch_size, padded.mask.shape[0])
  initial = weights
  if kind == "fobos":
    state = jnp.zeros_like(weights)
  elif kind == "rda":
    state = (jnp.zeros_like(weights), jnp.zeros(()))
  else:
    state = _method(kind, rate).init(weights)
  key = jax.random.key(seed)
  for number in range(count):
    weights, state = _one_pass(
      jax.random.fold_in(key, number),
      weights,
      state,
      initial,
      padded,
      objective,
      rate,
      1.0 / half_life if half_life else 0.0,
      l1,
      number,
      kind=kind,
      batch_size=batch_size,
    )
    yield weights
