"""Expected BLEU: a loss of the whole corpus.

It is no sum over sentences; its statistics are. Add the statistics of all
shards first, then apply the last, non-linear step once.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxmt.losses import masked

# Steepness of the smooth brevity penalty (survey, Eq A.2).
_STEEPNESS = 10000.0


def expected_statistics(
  scores: Array,
  statistics: Array,
  mask: Array,
  *,
  scale: float | Array = 1.0,
) -> tuple[Array, Array]:
  """Returns the corpus statistics expected under `p ~ exp(scale * score)`.

  Args:
    scores: model scores, `[..., K]`.
    statistics: additive metric statistics, `[..., K, S]`.
    mask: which candidates exist, `[..., K]`.
    scale: gamma of Eq 22; large approaches the 1-best.

  Returns:
    `(sums over all sentences (Eq 53) [S], number of sentences)`; both add up
    over shards.
  """
  probabilities = masked.softmax(scale * scores, mask)
  values = jnp.where(mask[..., None], statistics, 0).astype(scores.dtype)
  sums = jnp.einsum("...k,...ks->s", probabilities, values)
  return sums, jnp.sum(mask.any(axis=-1)).astype(scores.dtype)


def smooth_brevity(excess: Array) -> Array:
  """Returns a differentiable `min(1, exp(excess))` (Eq A.2).

  `(e^x - 1) sigmoid(-10000 x) + 1`: the printed quotient overflows.
  """
  capped = jnp.minimum(excess, 1.0)  # beyond 1 the sigmoid is 0 in any case
  return jnp.expm1(capped) * jax.nn.sigmoid(-_STEEPNESS * excess) + 1.0


def smooth_bleu(
  matches: Array, totals: Array, hypothesis: Array, reference: Array
) -> Array:
  """Returns BLEU of real-valued statistics, differentiably (Eq 53-55).

  Args:
    matches: n-gram matches, `[..., N]` for orders 1 to N.
    totals: hypothesis n-grams, `[..., N]`.
    hypothesis: hypothesis length, `[...]`.
    reference: effective reference length, `[...]`.

  Returns:
    `prod_n (m_n / c_n)^(1/N) * smooth BP`; 0 where some order has no match.
  """
  positive = jnp.all((matches > 0) & (totals > 0), axis=-1) & (hypothesis > 0)
  safe_matches = jnp.where(matches > 0, matches, 1.0)
  safe_totals = jnp.where(totals > 0, totals, 1.0)
  log_precision = jnp.mean(jnp.log(safe_matches) - jnp.log(safe_totals), -1)
  length = jnp.where(hypothesis > 0, hypothesis, 1.0)
  value = jnp.exp(log_precision) * smooth_brevity(1.0 - reference / length)
  return jnp.where(positive, value, 0.0)


def negative_bleu(sums: Array, weight: Array) -> Array:
  """Returns `-smooth_bleu` of summed statistics of order 4, `[9]`.

  Args:
    sums: matches of orders 1 to 4, n-grams of orders 1 to 4, reference length.
    weight: not used: BLEU is no mean over sentences.
  """
  del weight
  order = len(sums) // 2
  totals = sums[order : 2 * order]
  return -smooth_bleu(sums[:order], totals, totals[0], sums[2 * order])
