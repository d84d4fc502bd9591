"""Margin losses, and the losses that look only at the best candidate.

With s = score, o = the oracle set, c = all candidates. Equations with two
digits: Neubig and Watanabe's survey; with a dot: Gimpel (2012). Oracles default
to the candidates of least cost.
"""

import jax.numpy as jnp
from jax import Array

from jaxmt.losses import masked


def _oracles(costs: Array, mask: Array, oracles: Array | None) -> Array:
  return masked.cheapest(costs, mask) if oracles is None else oracles & mask


def best_oracle(
  scores: Array, costs: Array, mask: Array, oracles: Array
) -> Array:
  """Returns e* of Eq 29: the oracle of least cost, ties by score; `[...]`."""
  first = masked.cheapest(costs, oracles & mask)
  return masked.argmax(scores, first)


def cost_of_best(
  scores: Array, costs: Array, mask: Array
) -> tuple[Array, Array]:
  """Returns the cost of the highest-scoring candidate (Eq 17, 2.14).

  Piecewise constant: its gradient with respect to scores is 0.

  Args:
    scores: model scores, `[..., K]`.
    costs: sentence costs, `[..., K]`.
    mask: which candidates exist, `[..., K]`.

  Returns:
    `(sum, number of sentences)`.
  """
  cost = masked.take(costs, masked.argmax(scores, mask))
  return masked.total(cost, mask.any(axis=-1))


def zero_one(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns how often the best candidate is no oracle (Eq 18)."""
  oracles = _oracles(costs, mask, oracles)
  hit = masked.take(oracles, masked.argmax(scores, mask))
  return masked.total(1.0 - hit.astype(scores.dtype), mask.any(axis=-1))


def margin(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns the hinge over all oracle-other pairs (Eq 25).

  Returns:
    `(sum, number of pairs)`; no pairs, as when every candidate is an oracle,
    give weight 0.
  """
  oracles = _oracles(costs, mask, oracles)
  others = mask & ~oracles
  pairs = oracles[..., :, None] & others[..., None, :]
  costs = jnp.where(mask, costs, 0.0)
  scores = jnp.where(mask, scores, 0.0)
  extra = costs[..., None, :] - costs[..., :, None]
  ahead = scores[..., :, None] - scores[..., None, :]
  return masked.total(jnp.maximum(0.0, extra - ahead), pairs)


def _pair(scores, costs, mask, oracles):
  """The pair (e*, best non-oracle) of Eq 28-29 and where both exist."""
  oracles = _oracles(costs, mask, oracles)
  others = mask & ~oracles
  good = best_oracle(scores, costs, mask, oracles)
  bad = masked.argmax(scores, others)
  return good, bad, oracles.any(axis=-1) & others.any(axis=-1)


def hinge(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns the hinge of the best oracle and the best other (Eq 28-30).

  Sentences whose candidates are all oracles count with loss 0.
  """
  good, bad, both = _pair(scores, costs, mask, oracles)
  extra = masked.take(costs, bad) - masked.take(costs, good)
  ahead = masked.take(scores, good) - masked.take(scores, bad)
  loss = jnp.where(both, jnp.maximum(0.0, extra - ahead), 0.0)
  return masked.total(loss, mask.any(axis=-1))


def perceptron(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns the hinge without its margin (Eq 31); see `hinge`.

  All-zero weights minimise it, so it is for online learning.
  """
  good, bad, both = _pair(scores, costs, mask, oracles)
  ahead = masked.take(scores, good) - masked.take(scores, bad)
  loss = jnp.where(both, jnp.maximum(0.0, -ahead), 0.0)
  return masked.total(loss, mask.any(axis=-1))


def structured_hinge(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns `max(s + cost) - max over oracles of s` (Eq 3.11, 3.12).

  One oracle gives the max-margin Markov network's loss, several the latent
  structured SVM's.
  """
  oracles = _oracles(costs, mask, oracles)
  augmented = scores + jnp.where(mask, costs, 0.0)
  loss = masked.maximum(augmented, mask) - masked.maximum(scores, oracles)
  return masked.total(loss, oracles.any(axis=-1))


def slack_rescaled_hinge(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns `max over y of d(y) (1 + s(y) - s(y*))`.

  `y*` is the best oracle, `d` the cost above its cost: a margin of 1 that is
  missed weighs as much as the candidate costs (Tsochantaridis et al. 2005). It
  is 0 for y* itself, so never negative.
  """
  oracles = _oracles(costs, mask, oracles)
  good = best_oracle(scores, costs, mask, oracles)
  extra = jnp.where(mask, costs - masked.take(costs, good)[..., None], 0.0)
  missed = 1.0 + scores - masked.take(scores, good)[..., None]
  loss = masked.maximum(extra * missed, mask)
  return masked.total(loss, oracles.any(axis=-1))


def structured_perceptron(
  scores: Array, costs: Array, mask: Array, *, oracles: Array | None = None
) -> tuple[Array, Array]:
  """Returns `max s - max over oracles of s` (Eq 3.7-3.9)."""
  oracles = _oracles(costs, mask, oracles)
  loss = masked.maximum(scores, mask) - masked.maximum(scores, oracles)
  return masked.total(loss, oracles.any(axis=-1))


def hope_and_fear(
  scores: Array, costs: Array, mask: Array
) -> tuple[Array, Array]:
  """Returns the places of `argmax(s - cost)`, `argmax(s + cost)` (Eq 35-36)."""
  hope = masked.argmax(scores - costs, mask)
  return hope, masked.argmax(scores + costs, mask)


def loss_augmented_hinge(
  scores: Array, costs: Array, mask: Array
) -> tuple[Array, Array]:
  """Returns the hinge of hope against fear (Eq 30 on 35-37)."""
  hope, fear = hope_and_fear(scores, costs, mask)
  extra = masked.take(costs, fear) - masked.take(costs, hope)
  ahead = masked.take(scores, hope) - masked.take(scores, fear)
  loss = jnp.maximum(0.0, extra - ahead)
  return masked.total(loss, mask.any(axis=-1))


def relative_margin(
  scores: Array,
  costs: Array,
  mask: Array,
  *,
  bound: float | Array = 5.0,
  strength: float | Array = 0.1,
) -> tuple[Array, Array]:
  """Returns the hope-fear hinge plus a penalty on too wide a score spread.

  The spread is the hope's score less that of the worst candidate (Eq 32);
  beyond `bound` it costs `strength` per unit. (The printed formula takes the
  spread of errors, which no weight can change.)
  """
  hinged, sentences = loss_augmented_hinge(scores, costs, mask)
  hope, _ = hope_and_fear(scores, costs, mask)
  worst = masked.argmax(costs, mask)
  spread = masked.take(scores, hope) - masked.take(scores, worst)
  wide, _ = masked.total(jnp.maximum(0.0, spread - bound), mask.any(axis=-1))
  return hinged + strength * wide, sentences
