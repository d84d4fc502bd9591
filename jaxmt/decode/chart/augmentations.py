"""Augmentations: loss-augmented Viterbi, hope and fear.

All of them score *goodness*, how near a string comes to its reference, from the
accumulators that hypotheses carry (see `accumulators`): length, n-gram matches
and n-gram hits. Goodness is a ratio of sums. So it is recomputed from the
sums of every hypothesis, never added up over edges, and it is defined for the
parts of a sentence too.

`GOODNESS` holds what can be computed that way. "bleu" is equation (11) of
loss-augmented training; "bleu+1" is a sentence BLEU; "per", "wer" and "ter" are
minus surrogates of these error rates: whether an n-gram occurs in the reference
is known, but not which of its occurrences it takes, so counts are not clipped,
and no edit distance can be told from them. Exact rates take strings: rescore an
n-best list.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType

import jax
import jax.numpy as jnp

from jaxmt.decode.chart.accumulators import (
  ORDER,
  Accumulators,
  Augmentation,
  Goal,
)

SMOOTHING = 0.5
Scalar = jax.Array | float


def log_goodness(
  length: jax.Array, matches: jax.Array, *, smoothing: float = SMOOTHING
) -> jax.Array:
  """Minus the goodness loss of loss-augmented training, equation (11).

  `log |t| + ¼ Σ_n log( matches_n / (|t| - n + 1) )`, both counts with
  `smoothing` added so that no match, and strings shorter than n, are defined
  (|t| - n + 1 is at least 0, and |t| in the first term at least 1).

  Args:
    length: words, `[...]`.
    matches: n-gram occurrences in the reference, not clipped, `[..., 4]`.
    smoothing: what is added.
  """
  words = length.astype(jnp.float32)
  score = jnp.log(jnp.maximum(words, 1.0))
  for order in range(ORDER):
    possible = jnp.maximum(words - order, 0.0) + smoothing
    score += jnp.log((matches[..., order] + smoothing) / possible) / ORDER
  return score


def sentence_bleu(
  length: jax.Array, hits: jax.Array, expected: jax.Array
) -> jax.Array:
  """BLEU+1 of Lin and Och, except that counts are not clipped.

  One is added to both counts of n >= 2; a string without any hit scores 0.

  Args:
    length: words, `[...]`.
    hits: n-grams that the reference has, `[..., 4]`.
    expected: words of the reference (or of a part of it).
  """
  words = length.astype(jnp.float32)
  score = jnp.minimum(0.0, 1.0 - expected / jnp.maximum(words, 1.0))
  for order in range(ORDER):
    one = 1.0 if order else 0.0
    possible = jnp.maximum(words - order, 0.0) + one
    matched = jnp.maximum(hits[..., order] + one, 0.5)
    score += jnp.log(matched / jnp.maximum(possible, 1.0)) / ORDER
  return jnp.where(hits[..., 0] > 0, jnp.exp(score), 0.0)


def _bleu(value: Accumulators, goal: Goal) -> jax.Array:
  del goal
  return log_goodness(value.length, value.matches)


def _bleu_plus_one(value: Accumulators, goal: Goal) -> jax.Array:
  # Parts count by size, so that they add up to about the whole.
  expected = goal.share * goal.length
  return goal.share * (sentence_bleu(value.length, value.hits, expected) - 1.0)


def _errors(value: Accumulators, goal: Goal) -> tuple[jax.Array, jax.Array]:
  """Words in error, wherever they stand; breaks these do not account for.

  A hit word starts a new chunk unless it is the second word of a hit bigram.
  Every chunk but the first stands after an error, or after a break.
  """
  longer = jnp.maximum(value.length, goal.share * goal.length)
  words, pairs = value.hits[..., 0], value.hits[..., 1]
  errors = longer - jnp.minimum(words, longer)
  return errors, jnp.maximum(words - pairs - 1 - errors, 0.0)


def _edits(value: Accumulators, goal: Goal, *, per_break: float) -> jax.Array:
  errors, breaks = _errors(value, goal)
  return -(errors + per_break * breaks) / goal.length


Goodness = Callable[[Accumulators, Goal], jax.Array]

# "per": max(|t|, |r|) - hits, over |r|: exact where no word comes twice.
# "ter": a shift mends a break. "wer": a deletion and an insertion at least.
GOODNESS: Mapping[str, Goodness] = MappingProxyType(
  {
    "bleu": _bleu,
    "bleu+1": _bleu_plus_one,
    "per": functools.partial(_edits, per_break=0.0),
    "ter": functools.partial(_edits, per_break=1.0),
    "wer": functools.partial(_edits, per_break=2.0),
  }
)


def _goodness(name: str) -> Goodness:
  if name not in GOODNESS:
    raise ValueError(f"goodness {name!r} is none of {', '.join(GOODNESS)}")
  return GOODNESS[name]


def rank_loss(
  rank: jax.Array,
  *,
  beam: Scalar = 30,
  margin: Scalar = 10,
  cost: Scalar = 10.0,
) -> jax.Array:
  """Beam loss of equations (9)-(10); `rank` counts from 0 here.

  0 up to `beam - margin`, `cost` beyond `beam + margin`, linear between; a
  step at `beam` without a margin.
  """
  eta = rank + 1
  step = jnp.where(eta > beam, cost, 0.0)
  width = jnp.where(margin == 0, 1.0, 2.0 * margin)
  slope = (eta - (beam - margin)) * (cost / width)
  return jnp.where(margin == 0, step, jnp.clip(slope, 0.0, cost))


@dataclasses.dataclass(frozen=True)
class _Extra:
  """Weighted goodness; parameters: its weight."""

  goodness: str

  def __call__(self, value: Accumulators, goal: Goal, parameters) -> jax.Array:
    return parameters[0] * _goodness(self.goodness)(value, goal)


@dataclasses.dataclass(frozen=True)
class _LossExtra:
  """Parameters: α2, α1, k, k_m, C."""

  goodness: str

  def __call__(self, value: Accumulators, goal: Goal, parameters) -> jax.Array:
    good = _goodness(self.goodness)(value, goal)
    return parameters[0] * good - parameters[1] * value.loss


def _rank_loss(rank: jax.Array, parameters) -> jax.Array:
  _, _, beam, margin, cost = parameters
  return rank_loss(rank, beam=beam, margin=margin, cost=cost)


def loss_augmented(
  *,
  beam_weight: float = 0.1,
  goodness_weight: float = 5.0,
  beam: int = 30,
  margin: int = 10,
  cost: float = 10.0,
  goodness: str = "bleu",
  state: str = "lm",
) -> Augmentation:
  """Loss-augmented Viterbi: model score minus beam and goodness loss.

  Pruned by model score, as decoding prunes: search with a beam well above
  `beam + margin`, so that the ranks can be told.

  Args:
    beam_weight: α1 of equation (8).
    goodness_weight: α2.
    beam: k, the width that decoding has.
    margin: k_m.
    cost: C.
    goodness: a key of `GOODNESS`.
    state: see `Augmentation`.
  """
  _goodness(goodness)
  return Augmentation(
    extra=_LossExtra(goodness),
    rank_loss=_rank_loss,
    prune="model",
    state=state,
    parameters=(goodness_weight, beam_weight, beam, margin, cost),
  )


def hope(
  *, weight: float = 10.0, goodness: str = "bleu+1", state: str = "lm"
) -> Augmentation:
  """Cost-diminished decoding: high model score, high goodness.

  With "bleu+1" the extra score of a whole sentence is -weight · (1 - BLEU+1).
  """
  _goodness(goodness)
  return Augmentation(extra=_Extra(goodness), state=state, parameters=(weight,))


def fear(
  *, weight: float = 10.0, goodness: str = "bleu+1", state: str = "lm"
) -> Augmentation:
  """Cost-augmented decoding: high model score, low goodness."""
  _goodness(goodness)
  return Augmentation(
    extra=_Extra(goodness), state=state, parameters=(-weight,)
  )
