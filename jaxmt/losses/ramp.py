"""Ramp losses: the difference of two maxima, or of two soft maxima.

    ramp 1   max(score + cost) - max score
    ramp 2   max score         - max(score - cost)
    ramp 3   max(score + cost) - max(score - cost)

(Gimpel 2012, Eq 3.1-3.3). The soft forms put log-sum-exp for max (Eq 3.4-3.6);
the hybrids soften one side only (Eq 3.15 is form 2, upper side soft).
"""

import jax.numpy as jnp
from jax import Array

from jaxmt.losses import masked

_FORMS = (1, 2, 3)


def _side(values: Array, mask: Array, *, soft: bool) -> Array:
  reduce = masked.log_sum_exp if soft else masked.maximum
  return reduce(values, mask)


def _difference(
  scores: Array,
  costs: Array,
  mask: Array,
  *,
  form: int,
  soft_upper: bool,
  soft_lower: bool,
) -> tuple[Array, Array]:
  if form not in _FORMS:
    raise ValueError(f"form must be 1, 2 or 3, not {form}")
  costs = jnp.where(mask, costs, 0.0)
  upper = scores + costs if form in (1, 3) else scores
  lower = scores - costs if form in (2, 3) else scores
  loss = _side(upper, mask, soft=soft_upper) - _side(
    lower, mask, soft=soft_lower
  )
  return masked.total(loss, mask.any(axis=-1))


def ramp(
  scores: Array, costs: Array, mask: Array, *, form: int
) -> tuple[Array, Array]:
  """Returns ramp loss 1, 2 or 3 (Gimpel 2012, Eq 3.1-3.3).

  Args:
    scores: model scores, `[..., K]`.
    costs: sentence costs, already times their multiplier, `[..., K]`.
    mask: which candidates exist, `[..., K]`.
    form: 1, 2 or 3.

  Returns:
    `(sum, number of sentences)`.
  """
  return _difference(
    scores, costs, mask, form=form, soft_upper=False, soft_lower=False
  )


def soft_ramp(
  scores: Array, costs: Array, mask: Array, *, form: int
) -> tuple[Array, Array]:
  """Returns soft ramp loss 1, 2 or 3 (Gimpel 2012, Eq 3.4-3.6); see `ramp`."""
  return _difference(
    scores, costs, mask, form=form, soft_upper=True, soft_lower=True
  )


def hybrid_ramp(
  scores: Array, costs: Array, mask: Array, *, form: int, soft_upper: bool
) -> tuple[Array, Array]:
  """Returns a ramp loss with one hard and one soft side; see `ramp`.

  `form=2, soft_upper=True` is Eq 3.15 of Gimpel (2012), the loss that Och and
  Ney (2002) in effect minimise. The thesis found hybrids to do poorly.
  """
  return _difference(
    scores,
    costs,
    mask,
    form=form,
    soft_upper=soft_upper,
    soft_lower=not soft_upper,
  )
