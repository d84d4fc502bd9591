"""Augmented search: extra scores from what hypotheses accumulate.

An augmented search carries *accumulators* for every hypothesis: its length, its
n-gram matches against a reference (n = 1..4) and a loss summed over cells. They
are the state of a stateful feature (`AccumulatorState`). An `Augmentation`
turns them into an extra score; loss-augmented Viterbi, hope and fear decoding
are instances.

Accumulators form a monoid under concatenation. To count the n-grams across a
seam it takes the places in the reference where the last one, two and three
words before the seam end, and where the first one, two and three after it
begin: sets of places, so bits of 32-bit lanes. A join is then a few shifts and
ANDs per lane, whatever the words. Two strings that the reference does not tell
apart have equal sets.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.features.stateful import StringFeature, Values

ORDER = 4
EDGE = ORDER - 1
LANE = 32  # bits
_REST = 2 + 2 * ORDER  # columns beside the sets


class Accumulators(typing.NamedTuple):
  """What a hypothesis has gathered; `[...]` over hypotheses, L lanes.

  Attributes:
    first: bit i of `first[n - 1]` says that the first n words are the words
      i + 1 to i + n of the reference (from 0); 0 if there are fewer words.
      uint32 `[..., 3, L]`.
    last: bit i of `last[n - 1]` says that the last n words are in the reference
      and end with its word i. uint32 `[..., 3, L]`.
    length: number of words.
    matches: for each n, how often the reference has each n-gram, summed over
      all n-grams of the string (not clipped), int32 `[..., 4]`.
    hits: n-grams of the string that the reference has, int32 `[..., 4]`.
    loss: of its cells and those below, float32.
  """

  first: jax.Array
  last: jax.Array
  length: jax.Array
  matches: jax.Array
  hits: jax.Array
  loss: jax.Array


class Goal(typing.NamedTuple):
  """What an extra score may compare accumulators with; broadcasts to them.

  Attributes:
    length: words of the sentence's reference, at least 1, float32.
    share: share of the source words that the cell covers, float32.
  """

  length: jax.Array
  share: jax.Array


@dataclasses.dataclass(frozen=True)
class Augmentation:
  """How accumulators become scores.

  All but the parameters is static: compiled once for all their values.

  Attributes:
    extra: `(accumulators, goal, parameters) -> score [...]`, added to the model
      score.
    rank_loss: `(rank [K], parameters) -> loss [K]` of a hypothesis by its rank
      (0 = best) among the model scores of its cell, or None. Scores that differ
      by rounding only have one rank. The loss is accumulated in every cell
      where a rule is applied: in glue cells too, that of the whole sentence
      among them, since each of them is pruned; not in a goal cell, which holds
      no rule and prunes nothing.
    prune: "model" keeps the best by model score, as decoding does; "augmented"
      by both.
    state: what hypotheses must have in common to be merged. "lm": label and
      language model state, as in decoding; of those merged the best by
      augmented score stays, which need not be the best in the end. With
      "accumulators" they must be equal too: exact, and far more hypotheses.
    parameters: numbers for `extra` and `rank_loss`, float32 on the device; if
      all are 0, nothing is added to scores.
  """

  extra: Callable[[Accumulators, Goal, tuple], jax.Array]
  rank_loss: Callable[[jax.Array, tuple], jax.Array] | None = None
  prune: str = "augmented"
  state: str = "lm"
  parameters: tuple[float, ...] = ()

  def __post_init__(self):
    if self.prune not in ("model", "augmented"):
      raise ValueError(f"prune={self.prune!r}")
    if self.state not in ("lm", "accumulators"):
      raise ValueError(f"state={self.state!r}")


@functools.partial(
  jax.tree_util.register_dataclass,
  data_fields=("row", "runs", "length", "share"),
  meta_fields=(),
)
@dataclasses.dataclass(frozen=True, kw_only=True)
class AugmentInputs:
  """What an augmentation needs beside the chart.

  Attributes:
    row: row of `runs` of each application, int32 `[C, E]`.
    runs: accumulators of the runs of each rule against each sentence's
      reference, int32 `[rows, A + 1, columns]`.
    length: words of each reference, at least 1, float32 `[B]`.
    share: share of its sentence that a cell covers, float32 `[C]`.
  """

  row: jax.Array | np.ndarray
  runs: jax.Array | np.ndarray
  length: jax.Array | np.ndarray
  share: jax.Array | np.ndarray


def columns(lanes: int) -> int:
  """Columns of a row of accumulators."""
  return 2 * EDGE * lanes + _REST


def unpack(row: jax.Array) -> Accumulators:
  """Reads rows `[..., columns]`, int32."""
  lanes = (row.shape[-1] - _REST) // (2 * EDGE)
  side = EDGE * lanes
  shape = (*row.shape[:-1], EDGE, lanes)
  bits = lax.bitcast_convert_type(row[..., : 2 * side], jnp.uint32)
  rest = row[..., 2 * side :]
  return Accumulators(
    first=bits[..., :side].reshape(shape),
    last=bits[..., side:].reshape(shape),
    length=rest[..., 0],
    matches=rest[..., 1 : 1 + ORDER],
    hits=rest[..., 1 + ORDER : 1 + 2 * ORDER],
    loss=lax.bitcast_convert_type(rest[..., -1], jnp.float32),
  )


def pack(value: Accumulators) -> jax.Array:
  """Writes rows `[..., columns]`."""
  shape = (*value.length.shape, -1)
  bits = lambda part: lax.bitcast_convert_type(part, jnp.int32)
  return jnp.concatenate(
    [
      bits(value.first).reshape(shape),
      bits(value.last).reshape(shape),
      value.length[..., None],
      value.matches,
      value.hits,
      bits(value.loss)[..., None],
    ],
    axis=-1,
  )


def _up(places: jax.Array, count: int) -> jax.Array:
  """Sets of places `[..., L]` moved `count` words to the right."""
  over = places[..., :-1] >> (LANE - count)
  over = jnp.pad(over, [(0, 0)] * (places.ndim - 1) + [(1, 0)])
  return (places << count) | over


def _down(places: jax.Array, count: int) -> jax.Array:
  """Sets of places `[..., L]` moved `count` words to the left."""
  over = places[..., 1:] << (LANE - count)
  over = jnp.pad(over, [(0, 0)] * (places.ndim - 1) + [(0, 1)])
  return (places >> count) | over


def _edge(near, far, length, move):
  """Sets of the one, two and three outermost words of two strings.

  Args:
    near: sets of the outer string, `[..., 3, L]`.
    far: sets of the inner one.
    length: words of the outer string, `[...]`.
    move: shifts the inner string's places by a number of words.
  """
  size = length[..., None]
  near = [near[..., k, :] for k in range(EDGE)]
  far = [far[..., k, :] for k in range(EDGE)]
  out = []
  for k in range(EDGE):
    places = near[k]
    for words in range(1, k + 1):  # the outer string is all of its words
      both = near[words - 1] & move(far[k - words], words)
      places = jnp.where(size == words, both, places)
    out.append(jnp.where(size == 0, far[k], places))
  return jnp.stack(out, axis=-2)


def seam(last: jax.Array, first: jax.Array) -> tuple[jax.Array, jax.Array]:
  """N-grams across a seam: `(matches, hits)`, int32 `[..., 4]` each.

  Args:
    last: of the string before it, `[..., 3, L]`.
    first: of the string after it.
  """
  none = jnp.zeros(last.shape[:-2], jnp.int32)
  matches, hits = [none], [none]
  for order in range(2, ORDER + 1):
    count, hit = none, none
    for before in range(1, order):
      both = last[..., before - 1, :] & first[..., order - before - 1, :]
      shared = lax.population_count(both).astype(jnp.int32).sum(-1)
      count, hit = count + shared, hit + (shared > 0)
    matches.append(count)
    hits.append(hit)
  return jnp.stack(matches, axis=-1), jnp.stack(hits, axis=-1)


def join(left: Accumulators, right: Accumulators) -> Accumulators:
  """Accumulators of the concatenation."""
  matches, hits = seam(left.last, right.first)
  return Accumulators(
    first=_edge(left.first, right.first, left.length, _down),
    last=_edge(right.last, left.last, right.length, _up),
    length=left.length + right.length,
    matches=left.matches + right.matches + matches,
    hits=left.hits + right.hits + hits,
    loss=left.loss + right.loss,
  )


def add_loss(row: jax.Array, loss: jax.Array) -> jax.Array:
  """Returns rows `[..., columns]` with `loss [...]` added to theirs."""
  value = unpack(row)
  return pack(value._replace(loss=value.loss + loss))


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccumulatorState(StringFeature):
  """Accumulators as a stateful feature without values of its own.

  An augmentation's extra score is a function of the whole state, no sum over
  rules: the search adds it to model scores instead of weighing values. The
  runs of rules depend on each sentence's reference; see `reference_inputs`.

  Attributes:
    distinct: whether only hypotheses of equal accumulators are merged.
  """

  names: tuple[str, ...] = ()
  distinct: bool = False

  @property
  def key(self) -> tuple[int, ...]:
    """All columns or none."""
    return tuple(range(self.columns)) if self.distinct else ()

  def unpack(self, state: jax.Array) -> Accumulators:
    """Reads rows."""
    return unpack(state)

  def pack(self, state: Accumulators) -> jax.Array:
    """Writes rows."""
    return pack(state)

  def join(
    self, parameters: tuple, left: Accumulators, right: Accumulators
  ) -> tuple[Accumulators, Values]:
    """Concatenates; adds no values."""
    del parameters
    return join(left, right), ()
