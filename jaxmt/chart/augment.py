"""Augmented search: extra scores from what hypotheses accumulate.

With a hook the search carries *accumulators* for every hypothesis: its length,
its n-gram matches against a reference (n = 1..4, each occurrence counted as
often as the reference has it, no clipping) and a loss summed over cells. An
`Augmentation` turns them into an extra score; loss-augmented Viterbi, hope and
fear decoding are instances.

Accumulators form a monoid under concatenation: a row holds the first and last
three words, so that joining two rows can count the n-grams across the seam.
Words here are the caller's ids (not the language model's), -1 for none.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ORDER = 4
EDGE = ORDER - 1
COLUMNS = 2 * EDGE + 1 + ORDER + 1
NO_WORD = -1


class Accumulators(typing.NamedTuple):
  """What a hypothesis has gathered; `[...]` over hypotheses."""

  first: jax.Array  # [..., 3], NO_WORD after the end
  last: jax.Array  # [..., 3], nearest the end last, NO_WORD before the start
  length: jax.Array
  matches: jax.Array  # [..., 4]
  loss: jax.Array


@dataclasses.dataclass(frozen=True)
class Augmentation:
  """How accumulators become scores; static, so compiled once.

  Attributes:
    extra: `(accumulators, data) -> score [...]`, added to the model score.
      `data` leaves have the accumulators' shape (per-sentence values).
    rank_loss: `rank [K] -> loss [K]` of a hypothesis by its rank (0 = best)
      among the model scores of its cell, or None.
    prune: "model" keeps the best by model score, "augmented" by both.
  """

  extra: Callable[[Accumulators, typing.Any], jax.Array]
  rank_loss: Callable[[jax.Array], jax.Array] | None = None
  prune: str = "augmented"


@functools.partial(
  jax.tree_util.register_dataclass,
  data_fields=("reference", "runs", "inner", "data"),
  meta_fields=(),
)
@dataclasses.dataclass(frozen=True, kw_only=True)
class AugmentInputs:
  """What an augmentation needs beside the chart.

  Attributes:
    reference: reference word ids, -2 after the end, int32 `[B, L]`.
    runs: accumulator rows of the local rules' runs, matches left at zero, int32
      `[rules, A + 1, COLUMNS]`.
    inner: matches inside the runs of each application, int32 `[C, E, 4]`.
    data: any pytree with leaves `[B]`, handed to `extra` by sentence.
  """

  reference: jax.Array | np.ndarray
  runs: jax.Array | np.ndarray
  inner: jax.Array | np.ndarray
  data: typing.Any


def unpack(row: jax.Array) -> Accumulators:
  """Reads rows `[..., COLUMNS]`."""
  return Accumulators(
    first=row[..., :EDGE],
    last=row[..., EDGE : 2 * EDGE],
    length=row[..., 2 * EDGE],
    matches=row[..., 2 * EDGE + 1 : 2 * EDGE + 1 + ORDER],
    loss=lax.bitcast_convert_type(row[..., -1], jnp.float32),
  )


def pack(value: Accumulators) -> jax.Array:
  """Writes rows `[..., COLUMNS]`."""
  return jnp.concatenate(
    [
      value.first,
      value.last,
      value.length[..., None],
      value.matches,
      lax.bitcast_convert_type(value.loss, jnp.int32)[..., None],
    ],
    axis=-1,
  )


def seam_matches(
  reference: jax.Array, last: jax.Array, first: jax.Array
) -> jax.Array:
  """Counts n-grams across a seam that the reference has, int32 `[..., 4]`.

  Args:
    reference: `[..., L]`, broadcast against the candidates.
    last: last words before the seam, `[..., 3]`.
    first: first words after it, `[..., 3]`.
  """
  words = [last[..., k] for k in range(EDGE)]
  words += [first[..., k] for k in range(EDGE)]
  length = reference.shape[-1]
  padded = jnp.pad(
    reference,
    [(0, 0)] * (reference.ndim - 1) + [(0, 2 * EDGE)],
    constant_values=-2,
  )
  counts = [jnp.zeros(last.shape[:-1], jnp.int32)]
  for order in range(2, ORDER + 1):
    total = jnp.zeros(last.shape[:-1], jnp.int32)
    for before in range(1, order):
      start = EDGE - before
      hit = jnp.ones((*last.shape[:-1], length), bool)
      for k in range(order):
        word = words[start + k][..., None]
        hit &= (padded[..., k : k + length] == word) & (word >= 0)
      total += jnp.sum(hit, axis=-1, dtype=jnp.int32)
    counts.append(total)
  return jnp.stack(counts, axis=-1)


def join(
  reference: jax.Array,
  left: Accumulators,
  right: Accumulators,
  active: jax.Array,
) -> Accumulators:
  """Concatenates where `active`; elsewhere returns `left`."""
  places = jnp.arange(EDGE)
  # Words of `right` follow the `n` listed words of a short `left`, and
  # conversely at the end.
  listed = jnp.minimum(left.length, EDGE)[..., None]
  shifted = jnp.take_along_axis(
    right.first, jnp.clip(places - listed, 0, EDGE - 1), axis=-1
  )
  first = jnp.where(places < listed, left.first, shifted)
  behind = jnp.minimum(right.length, EDGE)[..., None]
  moved = jnp.take_along_axis(
    left.last, jnp.clip(places + behind, 0, EDGE - 1), axis=-1
  )
  last = jnp.where(places >= EDGE - behind, right.last, moved)
  seam = seam_matches(reference, left.last, right.first)
  wide = active[..., None]
  return Accumulators(
    first=jnp.where(wide, first, left.first),
    last=jnp.where(wide, last, left.last),
    length=left.length + jnp.where(active, right.length, 0),
    matches=left.matches + jnp.where(wide, seam + right.matches, 0),
    loss=left.loss + jnp.where(active, right.loss, 0.0),
  )


def join_all(
  reference_TL: jax.Array,
  table: jax.Array,
  place_TMS: jax.Array,
  inner_TMN: jax.Array,
) -> Accumulators:
  """Accumulators of candidates from those of their segments.

  Args:
    reference_TL: each cell's reference.
    table: rows of hypotheses and runs, int32 `[N, COLUMNS]`.
    place_TMS: rows of the table in target order, -1 after the end.
    inner_TMN: matches inside the application's own runs, `[T, M, 4]`.
  """
  shape = place_TMS.shape[:2]
  start = Accumulators(
    first=jnp.full((*shape, EDGE), NO_WORD, jnp.int32),
    last=jnp.full((*shape, EDGE), NO_WORD, jnp.int32),
    length=jnp.zeros(shape, jnp.int32),
    matches=inner_TMN,
    loss=jnp.zeros(shape, jnp.float32),
  )

  def body(slot, value):
    place = lax.dynamic_index_in_dim(place_TMS, slot, 2, keepdims=False)
    row = table.at[jnp.maximum(place, 0)].get(mode="promise_in_bounds")
    return join(reference_TL[:, None, :], value, unpack(row), place >= 0)

  longest = jnp.max(jnp.sum(place_TMS >= 0, axis=-1))
  return lax.fori_loop(0, longest, body, start)
