"""Corpus-level objectives: expected statistics, xBLEU, linear BLEU.

These are no sums over sentences: the statistics are. Add the statistics of all
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
) -> Array:
  """Returns the corpus statistics expected under `p ~ exp(scale * score)`.

  Args:
    scores: model scores, `[..., K]`.
    statistics: additive metric statistics, `[..., K, S]`.
    mask: which candidates exist, `[..., K]`.
    scale: gamma of Eq 22; large approaches the 1-best.

  Returns:
    Sums over all sentences (Eq 53), `[S]`; additive over shards.
  """
  probabilities = masked.softmax(scale * scores, mask)
  values = jnp.where(mask[..., None], statistics, 0).astype(scores.dtype)
  return jnp.einsum("...k,...ks->s", probabilities, values)


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


def linear_bleu_costs(
  matches: Array, lengths: Array, *, corpus_matches: Array, corpus_length: Array
) -> Array:
  """Returns the first-order change of -log BLEU by each candidate (Eq 46-52).

  `length / c - mean_n(match_n / m_n)` with corpus constants c and m_n from an
  earlier pass. May be negative. An order without corpus matches is left out.

  Args:
    matches: n-gram matches of candidates, `[..., N]`.
    lengths: candidate lengths, `[...]`.
    corpus_matches: m_n, `[N]`.
    corpus_length: c, scalar.
  """
  known = corpus_matches > 0
  share = jnp.where(known, matches / jnp.where(known, corpus_matches, 1), 0.0)
  length = jnp.where(corpus_length > 0, corpus_length, 1)
  return lengths / length - jnp.mean(share, axis=-1)
