"""Losses on pairs and on whole rankings (survey sections 3.5, 3.6)."""

import jax
import jax.numpy as jnp
from jax import Array

from jaxmt.losses import masked

_PAIR_LOSSES = {
  "perceptron": lambda ahead: jnp.maximum(0.0, -ahead),
  "hinge": lambda ahead: jnp.maximum(0.0, 1.0 - ahead),
  "logistic": lambda ahead: jax.nn.softplus(-ahead),
}


def pair_loss(ahead: Array, *, kind: str) -> Array:
  """Returns the binary loss of score differences good - bad, elementwise.

  Args:
    ahead: score of the better less that of the worse, any shape.
    kind: "perceptron" max(0, -x), "hinge" max(0, 1 - x) or "logistic"
      log(1 + exp(-x)).
  """
  if kind not in _PAIR_LOSSES:
    raise ValueError(f"kind must be one of {sorted(_PAIR_LOSSES)}, not {kind}")
  return _PAIR_LOSSES[kind](ahead)


def ranking(
  scores: Array, costs: Array, mask: Array, *, kind: str = "logistic"
) -> tuple[Array, Array]:
  """Returns the pair loss summed over all pairs of different cost.

  Args:
    scores: model scores, `[..., K]`.
    costs: sentence costs, `[..., K]`; ties make no pair.
    mask: which candidates exist, `[..., K]`.
    kind: see `pair_loss`.

  Returns:
    `(sum, number of pairs)`.
  """
  pairs = mask[..., :, None] & mask[..., None, :]
  pairs &= costs[..., :, None] < costs[..., None, :]
  scores = jnp.where(mask, scores, 0.0)
  ahead = scores[..., :, None] - scores[..., None, :]
  return masked.total(pair_loss(ahead, kind=kind), pairs)


def cross_entropy_ranking(
  scores: Array, costs: Array, mask: Array, *, sharpness: float | Array = 1.0
) -> tuple[Array, Array]:
  """Returns the cross-entropy of the model against the ranking by cost.

  Listwise top-one form (Cao et al. 2007; used for tuning by Green et al.
  2014): target `q ~ exp(-sharpness * cost)`, loss `-sum_k q_k log p_k`.
  """
  target = masked.softmax(-sharpness * costs, mask)
  loss = masked.log_sum_exp(scores, mask) - masked.expectation(
    target, scores, mask
  )
  return masked.total(loss, mask.any(axis=-1))


def mean_squared_error(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns squared errors of predicting cost differences (Eq 33).

  `(extra cost of the other - score lead of the oracle)^2`: the target has the
  sign opposite to the printed one, which would rank oracles last.

  Returns:
    `(sum, number of oracle-other pairs)`.
  """
  oracles = masked.cheapest(costs, mask) if oracles is None else oracles & mask
  others = mask & ~oracles
  # With t = score + cost the error of a pair is t_other - t_oracle, and its
  # square sums up from moments: no K x K array. Centred against cancellation.
  value = jnp.where(mask, scores, 0.0) + jnp.where(mask, costs, 0.0)
  count = jnp.maximum(jnp.sum(mask, axis=-1, keepdims=True), 1)
  mean = jnp.sum(jnp.where(mask, value, 0.0), axis=-1, keepdims=True) / count
  value = jnp.where(mask, value - mean, 0.0)

  def moments(mask):
    t = jnp.where(mask, value, 0.0)
    return jnp.sum(mask, -1), jnp.sum(t, -1), jnp.sum(t * t, -1)

  good, good_sum, good_square = moments(oracles)
  bad, bad_sum, bad_square = moments(others)
  loss = bad * good_square + good * bad_square - 2 * good_sum * bad_sum
  return jnp.sum(loss), jnp.sum(good * bad).astype(scores.dtype)
