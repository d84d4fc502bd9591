"""Joining segments under the language model, for all candidates at once.

See `segments` for records. Joining `left` and `right` adds

    Σ_{k < words} ln p(w_k | state) [+ B(state) if `right` is full]
      - weight(right),

the first words of `right` in their new context instead of the estimate; they
are appended to those of `left` while that is open.
"""

import typing

import jax
import jax.numpy as jnp
from jax import lax

from jaxmt.decode.chart.lm_records import FULL
from jaxmt.lm import automaton
from jaxmt.lm.automaton import NgramAutomaton
from jaxmt.lm.tables import LEFT, STATE_MASK


class Joined(typing.NamedTuple):
  """A partly joined target side per candidate; `[...]` over candidates."""

  words: jax.Array  # [..., W]
  state: jax.Array
  weight: jax.Array
  count: jax.Array
  full: jax.Array
  gain: jax.Array  # Σ of what joining added so far


def unpack(record: jax.Array) -> Joined:
  """Reads records `[..., W + 4]`."""
  width = record.shape[-1] - 4
  packed = record[..., width + 2]
  weight = lax.bitcast_convert_type(record[..., width + 1], jnp.float32)
  return Joined(
    words=record[..., :width],
    state=record[..., width],
    weight=weight,
    count=packed & (FULL - 1),
    full=packed >= FULL,
    gain=jnp.zeros_like(weight),
  )


def pack(joined: Joined, label: jax.Array) -> jax.Array:
  """Writes records `[..., W + 4]`."""
  rest = [
    joined.state,
    lax.bitcast_convert_type(joined.weight, jnp.int32),
    joined.count + jnp.where(joined.full, FULL, 0),
    label,
  ]
  return jnp.concatenate([joined.words, jnp.stack(rest, axis=-1)], axis=-1)


def join(
  lm: NgramAutomaton, left: Joined, right: Joined, active: jax.Array
) -> Joined:
  """Joins two segments where `active`; elsewhere returns `left`."""
  width = left.words.shape[-1]
  places = jnp.arange(width)

  def read(place, carry):
    joined, total = carry
    use = active & (place < right.count)
    word = lax.dynamic_index_in_dim(right.words, place, -1, keepdims=False)
    state, full = joined.state, joined.full
    slot, _, _ = automaton.locate(lm, state, word)
    before = automaton.backoff_total(lm, state)
    gain = before + lm.score.at[slot].get(mode="promise_in_bounds")
    arc = lm.follow.at[slot].get(mode="promise_in_bounds")
    onward = arc & STATE_MASK
    # An open record lists the word if contexts further left matter for it.
    open_ = use & ~full
    listed = open_ & (slot == state + word) & ((arc & LEFT) != 0)
    here = listed[..., None] & (places == joined.count[..., None])
    count = joined.count + listed
    last = listed & ((arc >= 0) | (count == width))  # not WHOLE, or no room
    weight = joined.weight + jnp.where(listed, gain, 0.0)
    weight += jnp.where(open_ & ~listed, before, 0.0)
    weight += jnp.where(last, automaton.backoff_total(lm, onward), 0.0)
    joined = Joined(
      words=jnp.where(here, word[..., None], joined.words),
      state=jnp.where(use, onward, state),
      weight=weight,
      count=count,
      full=full | last | (open_ & ~listed),
      gain=joined.gain,
    )
    return joined, total + jnp.where(use, gain, 0.0)

  # A loop, not unrolled: the body is most of what is to be compiled.
  longest = jnp.max(jnp.where(active, right.count, 0))
  joined, total = lax.fori_loop(
    0, longest, read, (left, jnp.zeros_like(left.gain))
  )
  state = joined.state
  behind = jnp.where(
    active & right.full, automaton.backoff_total(lm, state), 0.0
  )
  return joined._replace(
    state=jnp.where(active & right.full, right.state, state),
    weight=joined.weight + jnp.where(joined.full, 0.0, behind),
    full=joined.full | (active & right.full),
    gain=left.gain + jnp.where(active, total + behind - right.weight, 0.0),
  )


def join_all(
  lm: NgramAutomaton,
  table: jax.Array,
  place_TMS: jax.Array,
) -> Joined:
  """Joins each candidate's segments from left to right.

  Args:
    lm: the automaton.
    table: records of hypotheses and runs, int32 `[N, W + 4]`.
    place_TMS: rows of the table in target order, -1 after the end.
  """

  def segment(slot):
    place = lax.dynamic_index_in_dim(place_TMS, slot, 2, keepdims=False)
    record = table.at[jnp.maximum(place, 0)].get(mode="promise_in_bounds")
    return unpack(record), place >= 0

  def body(slot, joined):
    right, active = segment(slot)
    return join(lm, joined, right, active)

  start, there = segment(0)
  start = start._replace(
    words=jnp.where(there[..., None], start.words, 0),
    state=jnp.where(there, start.state, 0),
    weight=jnp.where(there, start.weight, 0.0),
    count=jnp.where(there, start.count, 0),
    full=there & start.full,
  )
  longest = jnp.max(jnp.sum(place_TMS >= 0, axis=-1))
  return lax.fori_loop(1, longest, body, start)
