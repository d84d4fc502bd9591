"""Reductions over candidate lists with a mask; empty lists give 0.

All of them are safe to differentiate where rows are empty or masked entries
hold NaN or infinity.
"""

import jax
import jax.numpy as jnp
from jax import Array


def maximum(values: Array, mask: Array) -> Array:
  """Returns the largest value of each list, `[..., K] -> [...]`."""
  best = jnp.max(jnp.where(mask, values, -jnp.inf), axis=-1)
  return jnp.where(mask.any(axis=-1), best, 0.0)


def minimum(values: Array, mask: Array) -> Array:
  """Returns the least value of each list, `[..., K] -> [...]`."""
  return -maximum(-values, mask)


def argmax(values: Array, mask: Array) -> Array:
  """Returns the first place of the largest value; 0 for an empty list."""
  return jnp.argmax(jnp.where(mask, values, -jnp.inf), axis=-1)


def log_sum_exp(values: Array, mask: Array) -> Array:
  """Returns the log of the summed exponentials, `[..., K] -> [...]`."""
  shift = jax.lax.stop_gradient(maximum(values, mask))
  safe = jnp.where(mask, values - shift[..., None], 0.0)
  total = jnp.sum(jnp.where(mask, jnp.exp(safe), 0.0), axis=-1)
  some = mask.any(axis=-1)
  return jnp.where(some, shift + jnp.log(jnp.where(some, total, 1.0)), 0.0)


def softmax(values: Array, mask: Array) -> Array:
  """Returns the probabilities `exp(values) / sum`; 0 where masked."""
  log_total = log_sum_exp(values, mask)
  safe = jnp.where(mask, values - log_total[..., None], 0.0)
  return jnp.where(mask, jnp.exp(safe), 0.0)


def expectation(probabilities: Array, values: Array, mask: Array) -> Array:
  """Returns `sum_k p_k values_k`, ignoring what is masked."""
  return jnp.sum(probabilities * jnp.where(mask, values, 0.0), axis=-1)


def take(values: Array, place: Array) -> Array:
  """Returns `values[..., place]` for one place per list."""
  return jnp.take_along_axis(values, place[..., None], axis=-1)[..., 0]


def total(values: Array, mask: Array) -> tuple[Array, Array]:
  """Returns the sum of the kept rows and how many they are."""
  return (
    jnp.sum(jnp.where(mask, values, 0.0)),
    jnp.sum(mask).astype(values.dtype),
  )


def cheapest(costs: Array, mask: Array, *, tolerance: float = 1e-6) -> Array:
  """Returns which candidates have the least cost of their list: the oracles.

  Ties within `tolerance` are all oracles. `[..., K]` bool.
  """
  least = minimum(costs, mask)
  return mask & (
    jnp.where(mask, costs, jnp.inf) <= least[..., None] + tolerance
  )
