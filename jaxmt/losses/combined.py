"""Several metrics at once: weighted sums, Pareto sets (survey section 8.3)."""

import jax.numpy as jnp
from jax import Array

from jaxmt.losses import masked


def weighted_costs(costs: Array, weights: Array) -> Array:
  """Returns `sum_l weight_l cost_l` (Eq 78): `[L, ...], [L] -> [...]`."""
  return jnp.tensordot(weights, costs, axes=1)


def pareto(costs: Array, mask: Array) -> Array:
  """Returns which candidates no other candidate dominates.

  k dominates j if it is nowhere worse and somewhere better; equal candidates
  do not dominate each other (Eq 79 as printed would empty the set).

  Args:
    costs: one cost per metric, `[L, ..., K]`.
    mask: which candidates exist, `[..., K]`.

  Returns:
    The Pareto set, bool `[..., K]`.
  """
  ours, theirs = costs[..., :, None], costs[..., None, :]
  no_worse = jnp.all(theirs <= ours, axis=0)
  better = jnp.any(theirs < ours, axis=0)
  dominated = jnp.any(no_worse & better & mask[..., None, :], axis=-1)
  return mask & ~dominated


def pareto_ranking(
  scores: Array, costs: Array, mask: Array
) -> tuple[Array, Array]:
  """Returns the logistic loss over pairs (Pareto member, other).

  Args:
    scores: model scores, `[..., K]`.
    costs: one cost per metric, `[L, ..., K]`.
    mask: which candidates exist, `[..., K]`.

  Returns:
    `(sum, number of pairs)`.
  """
  front = pareto(costs, mask)
  pairs = front[..., :, None] & (mask & ~front)[..., None, :]
  scores = jnp.where(mask, scores, 0.0)
  ahead = scores[..., :, None] - scores[..., None, :]
  return masked.total(jnp.logaddexp(0.0, -ahead), pairs)
