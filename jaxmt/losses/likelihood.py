"""Losses of the log-linear distribution: softmax, softmax-margin, risk.

`p(k) = exp(scale * score_k) / sum` over the candidates of a sentence.
Equations with two digits: Neubig and Watanabe, "Optimization for Statistical
Machine Translation: A Survey"; with a dot: Gimpel (2012).
"""

import jax.numpy as jnp
from jax import Array

from jaxmt.losses import masked


def softmax(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns the negative log-likelihood of the oracle set.

  `LSE over all - LSE over oracles`: the mean log form of Eq 20 (which prints a
  product); with one oracle it is the CRF loss, with several the latent CRF
  (Eq 3.13, 3.14).

  Args:
    scores: model scores, `[..., K]`.
    costs: sentence costs, used only to find oracles, `[..., K]`.
    mask: which candidates exist, `[..., K]`.
    oracles: which candidates count as right, `[..., K]`; those of least cost
      when None. Sentences without one are left out.

  Returns:
    `(sum, number of sentences)`.
  """
  oracles = masked.cheapest(costs, mask) if oracles is None else oracles & mask
  loss = masked.log_sum_exp(scores, mask) - masked.log_sum_exp(scores, oracles)
  return masked.total(loss, oracles.any(axis=-1))


def softmax_margin(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns `LSE(score + cost) - LSE over oracles` (Eq 3.16); see `softmax`."""
  oracles = masked.cheapest(costs, mask) if oracles is None else oracles & mask
  augmented = scores + jnp.where(mask, costs, 0.0)
  loss = masked.log_sum_exp(augmented, mask) - masked.log_sum_exp(
    scores, oracles
  )
  return masked.total(loss, oracles.any(axis=-1))


def risk(
  scores: Array, costs: Array, mask: Array, *, scale: float | Array = 1.0
) -> tuple[Array, Array]:
  """Returns the expected cost under `p` (Eq 22-24, 2.16); see `softmax`."""
  probabilities = masked.softmax(scale * scores, mask)
  loss = masked.expectation(probabilities, costs, mask)
  return masked.total(loss, mask.any(axis=-1))


def entropy(
  scores: Array, mask: Array, *, scale: float | Array = 1.0
) -> tuple[Array, Array]:
  """Returns the entropy of `p` in nats, summed (Eq 44), and the sentences."""
  values = scale * scores
  probabilities = masked.softmax(values, mask)
  value = masked.log_sum_exp(values, mask) - masked.expectation(
    probabilities, values, mask
  )
  return masked.total(value, mask.any(axis=-1))


def annealed_risk(
  scores: Array,
  costs: Array,
  mask: Array,
  *,
  temperature: float | Array = 0.0,
  scale: float | Array = 1.0,
) -> tuple[Array, Array]:
  """Returns `risk - temperature * entropy` (Eq 45); see `softmax`."""
  loss, sentences = risk(scores, costs, mask, scale=scale)
  spread, _ = entropy(scores, mask, scale=scale)
  return loss - temperature * spread, sentences
