"""Optax transformations with an L1 penalty: weights become exactly 0.

    fobos  AdaGrad, then the proximal step of the penalties (survey, Eq 71-72)
    rda    regularised dual averaging (Xiao 2010)

Both take the gradient of the loss alone. They are used as any other
transformation: `init(params)`, `update(gradient, state, params)` and
`optax.apply_updates`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

_TINY = 1e-8


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


class FobosState(NamedTuple):
  """The state of `fobos`.

  Attributes:
    count: updates so far.
    squares: sum of squared gradients, like the weights.
    centre: the weights that L2 pulls towards: the first ones.
  """

  count: Array
  squares: Any
  centre: Any


def fobos(
  learning_rate: optax.ScalarOrSchedule, *, l1: Any = 0.0, l2: Any = 0.0
) -> optax.GradientTransformation:
  """Returns AdaGrad followed by a proximal step, at the pace of each weight.

  Args:
    learning_rate: a number, or a schedule.
    l1: strength of the pull towards 0.
    l2: strength of the pull towards the weights that `init` is given.
  """

  def init(params):
    return FobosState(
      count=jnp.zeros((), jnp.int32),
      squares=jax.tree.map(jnp.zeros_like, params),
      centre=params,
    )

  def update(updates, state, params=None):
    if params is None:
      raise ValueError("fobos needs the weights")
    rate = _rate(learning_rate, state.count)
    squares = jax.tree.map(lambda s, g: s + g * g, state.squares, updates)

    def change(w, g, square, centre):
      pace = rate / (jnp.sqrt(square) + _TINY)
      return proximal(w - pace * g, pace, l1=l1, l2=l2, centre=centre) - w

    changes = jax.tree.map(change, params, updates, squares, state.centre)
    return changes, FobosState(state.count + 1, squares, state.centre)

  return optax.GradientTransformation(init, update)


class RdaState(NamedTuple):
  """The state of `rda`.

  Attributes:
    count: updates so far.
    mean: mean gradient, like the weights.
    origin: the first weights.
  """

  count: Array
  mean: Any
  origin: Any


def rda(
  learning_rate: optax.ScalarOrSchedule, *, l1: Any = 0.0
) -> optax.GradientTransformation:
  """Returns regularised dual averaging around the first weights.

  After t updates with mean gradient g the weights minimise
  `g.w + l1 |w| + |w - origin|^2 / (2 rate sqrt(t))`: L1 pulls to 0, the rest to
  the origin.

  Args:
    learning_rate: 1 / gamma of the paper, or a schedule.
    l1: strength of the pull towards 0.
  """

  def init(params):
    return RdaState(
      count=jnp.zeros((), jnp.int32),
      mean=jax.tree.map(jnp.zeros_like, params),
      origin=params,
    )

  def update(updates, state, params=None):
    if params is None:
      raise ValueError("rda needs the weights")
    count = state.count + 1
    pace = _rate(learning_rate, state.count) * jnp.sqrt(count)
    mean = jax.tree.map(lambda m, g: m + (g - m) / count, state.mean, updates)
    changes = jax.tree.map(
      lambda w, m, origin: soft_threshold(origin - pace * m, pace * l1) - w,
      params,
      mean,
      state.origin,
    )
    return changes, RdaState(count, mean, state.origin)

  return optax.GradientTransformation(init, update)


def _rate(learning_rate: optax.ScalarOrSchedule, count: Array) -> Any:
  return learning_rate(count) if callable(learning_rate) else learning_rate
