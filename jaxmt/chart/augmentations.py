"""Augmentations: loss-augmented Viterbi, hope and fear.

The inputs come from references: their words, what each application's own words
match, and per-sentence values. Everything here works on accumulators, which a
hypothesis carries through the search (see `augment`).
"""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numba import njit

from jaxmt.chart.augment import (
  COLUMNS,
  EDGE,
  NO_WORD,
  ORDER,
  Accumulators,
  Augmentation,
  AugmentInputs,
)
from jaxmt.chart.decoder import Prepared
from jaxmt.chart.model import Model
from jaxmt.data.ragged import Ragged
from jaxmt.data.vocabulary import intern

_AFTER = -2  # after the end of a reference: matches nothing


def make_inputs(
  model: Model, prepared: Prepared, references: Sequence[Sequence[str]]
) -> tuple[AugmentInputs, ...]:
  """Prepares the references of a batch.

  Args:
    model: the model.
    prepared: the batch's charts.
    references: for each part of the batch, one reference line per sentence.
  """
  longest = 1
  encoded = []
  for source, lines in zip(prepared.sources, references, strict=True):
    ids, words = intern(lines)
    index = {word: n for n, word in enumerate(source.words)}
    size = len(model.table.target_words)
    find = model.table.target_words.index.get
    # As in `derivation.Yields`; words nobody can write match nothing.
    numbers = np.array(
      [find(w, size + index[w] if w in index else _AFTER) for w in words],
      np.int32,
    )
    encoded.append(Ragged(flat=numbers[ids.flat], offsets=ids.offsets))
    longest = max(longest, int(ids.lengths.max(initial=0)))
  longest = -(-longest // 16) * 16
  return tuple(
    _part_inputs(model, prepared, part, rows, longest)
    for part, rows in enumerate(encoded)
  )


def _part_inputs(model, prepared, part, references, longest) -> AugmentInputs:
  chart, layout = prepared.charts[part], prepared.layouts[part]
  sentences = len(chart.root)
  reference = np.full((sentences, longest), _AFTER, np.int32)
  lengths = np.ones(sentences, np.float32)
  for row in range(len(references)):
    reference[row, : references.lengths[row]] = references[row]
    lengths[row] = max(references.lengths[row], 1)
  size = len(model.table)
  target = model.table.target
  flat, offsets = _targets(
    target.flat,
    target.offsets,
    layout.rules,
    size,
    len(model.table.target_words),
  )
  runs = _runs(flat, offsets, model.arity)
  inner = _inner(
    flat,
    offsets,
    np.asarray(chart.rule),
    np.asarray(chart.static) > np.float32(-1e29),
    np.asarray(chart.sentence),
    reference,
  )
  padded = np.zeros((len(chart.slots), model.arity + 1, COLUMNS), np.int32)
  padded[:, :, : 2 * EDGE] = NO_WORD
  padded[: len(runs)] = runs
  return AugmentInputs(
    reference=reference, runs=padded, inner=inner, data={"length": lengths}
  )


@njit(cache=True, nogil=True)
def _targets(flat, offsets, rules, size, words):
  """Target sides of local rules; copies write `words + c`, the goal nothing."""
  rows = np.zeros(len(rules) + 1, np.int64)
  for item, rule in enumerate(rules):
    count = 1
    if rule < size:
      count = offsets[rule + 1] - offsets[rule]
    rows[item + 1] = rows[item] + count
  out = np.empty(rows[-1], np.int32)
  for item, rule in enumerate(rules):
    if rule < size:
      out[rows[item] : rows[item + 1]] = flat[offsets[rule] : offsets[rule + 1]]
    elif rule == size:
      out[rows[item]] = -1
    else:
      out[rows[item]] = words + rule - size - 1
  return out, rows


@njit(cache=True, nogil=True)
def _runs(flat, offsets, arity):
  """Accumulator rows of every run, matches and loss zero."""
  size = len(offsets) - 1
  out = np.zeros((size, arity + 1, COLUMNS), np.int32)
  out[:, :, : 2 * EDGE] = NO_WORD
  for rule in range(size):
    run = -1
    for item in range(offsets[rule], offsets[rule + 1]):
      word = flat[item]
      if word < 0:
        continue
      if item == offsets[rule] or flat[item - 1] < 0:
        run += 1
      row = out[rule, run]
      if row[2 * EDGE] < EDGE:
        row[row[2 * EDGE]] = word
      for place in range(EDGE - 1):
        row[EDGE + place] = row[EDGE + place + 1]
      row[2 * EDGE - 1] = word
      row[2 * EDGE] += 1
  return out


@njit(cache=True, nogil=True)
def _inner(flat, offsets, rule, there, sentence, reference):
  """N-gram matches inside the runs of every application, `[C, E, 4]`."""
  out = np.zeros((*rule.shape, ORDER), np.int32)
  longest = reference.shape[1]
  for cell in range(rule.shape[0]):
    text = reference[sentence[cell]]
    for column in range(rule.shape[1]):
      if not there[cell, column]:
        continue
      first = offsets[rule[cell, column]]
      last = offsets[rule[cell, column] + 1]
      for item in range(first, last):
        if flat[item] < 0:
          continue
        for place in range(longest):
          size = 0
          while (
            size < ORDER
            and item - size >= first
            and place - size >= 0
            and flat[item - size] >= 0
            and flat[item - size] == text[place - size]
          ):
            out[cell, column, size] += 1
            size += 1
  return out


def log_goodness(
  length: jax.Array, matches: jax.Array, *, smoothing: float = 0.5
) -> jax.Array:
  """Minus the goodness loss of loss-augmented training, equation (11).

  `log |t| + ¼ Σ_n log( matches_n / (|t| - n + 1) )`, both counts with
  `smoothing` added so that no match, and strings shorter than n, are defined.

  Args:
    length: words, `[...]`.
    matches: n-gram occurrences in the reference, `[..., 4]`.
    smoothing: added to numerators and (at least) denominators.
  """
  total = jnp.maximum(length, 1).astype(jnp.float32)
  score = jnp.log(total)
  for order in range(ORDER):
    possible = jnp.maximum(total - order, 0.0) + smoothing
    score += jnp.log((matches[..., order] + smoothing) / possible) / ORDER
  return score


def rank_loss(
  rank: jax.Array, *, beam: int = 30, margin: int = 10, cost: float = 10.0
) -> jax.Array:
  """Beam loss of equations (9)-(10); `rank` counts from 0 here.

  0 up to `beam - margin`, `cost` beyond `beam + margin`, linear between; a
  step at `beam` without a margin.
  """
  eta = rank + 1
  if margin == 0:
    return jnp.where(eta > beam, cost, 0.0)
  slope = (eta - (beam - margin)) * (cost / (2 * margin))
  return jnp.clip(slope, 0.0, cost)


@dataclasses.dataclass(frozen=True)
class _LossExtra:
  beam_weight: float
  goodness_weight: float

  def __call__(self, value: Accumulators, data) -> jax.Array:
    del data
    good = log_goodness(value.length, value.matches)
    return self.goodness_weight * good - self.beam_weight * value.loss


@dataclasses.dataclass(frozen=True)
class _RankLoss:
  beam: int
  margin: int
  cost: float

  def __call__(self, rank: jax.Array) -> jax.Array:
    return rank_loss(rank, beam=self.beam, margin=self.margin, cost=self.cost)


@functools.cache
def loss_augmented(
  *,
  beam_weight: float = 0.1,
  goodness_weight: float = 5.0,
  beam: int = 30,
  margin: int = 10,
  cost: float = 10.0,
) -> Augmentation:
  """Loss-augmented Viterbi: model score minus beam and goodness loss.

  Pruned by model score, as decoding prunes.
  """
  return Augmentation(
    extra=_LossExtra(beam_weight, goodness_weight),
    rank_loss=_RankLoss(beam, margin, cost),
    prune="model",
  )


@dataclasses.dataclass(frozen=True)
class _BleuExtra:
  weight: float

  def __call__(self, value: Accumulators, data) -> jax.Array:
    length = value.length.astype(jnp.float32)
    score = jnp.minimum(0.0, 1.0 - data["length"] / jnp.maximum(length, 1.0))
    for order in range(ORDER):
      possible = jnp.maximum(length - order, 0.0) + 1.0
      score += jnp.log((value.matches[..., order] + 1.0) / possible) / ORDER
    # Scaled to the length, so that the parts of a sentence count by size.
    return self.weight * length * jnp.exp(score)


@functools.cache
def hope(*, weight: float = 1.0) -> Augmentation:
  """High model score and high approximate sentence BLEU."""
  return Augmentation(extra=_BleuExtra(weight), prune="augmented")


@functools.cache
def fear(*, weight: float = 1.0) -> Augmentation:
  """High model score and low approximate sentence BLEU."""
  return Augmentation(extra=_BleuExtra(-weight), prune="augmented")
