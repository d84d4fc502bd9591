"""The language model as a stateful feature.

The state of a target string is what the model must know of it in order to put
it into any context (Li & Khudanpur 2008; Heafield, Hoang, Koehn, Kiso &
Federico 2011):

- its first words, as many as an unknown left context could still matter for, at
  most W = order - 1;
- whether it is *full*: those are not all of its words, or no further word can
  be changed by the left context;
- the automaton's state after its last word, which for a full string does not
  depend on the left context;
- its *weight*: Σ ln p of those words without any context, and if full the
  back-off total B of the state after them. Joining takes it back and puts the
  same sum in the true context in its place.

The word after the listed ones costs `B(state) + score[arc]` (see `lm.tables`).
Its arc is the same in every context, so the B terms are all that changes.
Joining costs at most W lookups, whatever the lengths are, and the words of a
run are scored once per grammar instead of once per hypothesis.

Columns: W words, state, weight as bits, number of words (plus `FULL`).
"""

import dataclasses
import typing
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.features.stateful import RuleInputs, RuleSides, StringFeature, Values
from jaxmt.lm import automaton
from jaxmt.lm import tables as lm_tables
from jaxmt.lm.automaton import NgramAutomaton
from jaxmt.lm.tables import (
  BOS_WORD,
  EOS_WORD,
  LEFT,
  STATE_MASK,
  UNK_WORD,
  Tables,
  advance,
  find_arc,
)
from jaxmt.text import vocabulary
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

FULL = 256


class _Joined(typing.NamedTuple):
  """Unpacked states; `[...]` over candidates."""

  words: jax.Array  # [..., W]
  state: jax.Array
  weight: jax.Array
  count: jax.Array
  full: jax.Array


def state_columns(order: int) -> int:
  """Returns the number of columns of a state: W + 3."""
  return max(order - 1, 1) + 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageModelFeature(StringFeature):
  """Σ ln p of the words, with `</s>`; its parameters are `lm.tables.Tables`.

  `columns` are the `state_columns` of the model's order; `scale` is 1/ln 10 for
  weights of log10 p.
  """

  names: tuple[str, ...] = ("LanguageModel",)

  @property
  def width(self) -> int:
    """W, the number of words in a state."""
    return self.columns - 3

  @property
  def key(self) -> tuple[int, ...]:
    """All columns but the weight, which the words determine."""
    return (*range(self.width + 1), self.width + 2)

  def rule_inputs(self, sides: RuleSides, parameters: Tables) -> RuleInputs:
    """Returns the states of all runs, and Σ ln p of their words."""
    words = word_ids(parameters, sides)
    runs, score = _run_states(
      np.ascontiguousarray(words.flat, np.int32),
      np.asarray(words.offsets, np.int64),
      parameters.columns,
      (parameters.order, parameters.begin),
      sides.arity,
    )
    return RuleInputs(arrays=runs, values=score[:, None])

  def to_device(self, parameters: Tables) -> NgramAutomaton:
    """Returns the automaton."""
    return automaton.to_device(parameters)

  def to_host(self, parameters: Tables) -> tuple[np.ndarray, ...]:
    """Returns the columns of the tables."""
    return parameters.columns

  def unpack(self, state: jax.Array) -> _Joined:
    """Reads states `[..., W + 3]`."""
    width = self.width
    packed = state[..., width + 2]
    return _Joined(
      words=state[..., :width],
      state=state[..., width],
      weight=lax.bitcast_convert_type(state[..., width + 1], jnp.float32),
      count=packed & (FULL - 1),
      full=packed >= FULL,
    )

  def pack(self, state: _Joined) -> jax.Array:
    """Writes states `[..., W + 3]`."""
    rest = [
      state.state,
      lax.bitcast_convert_type(state.weight, jnp.int32),
      state.count + jnp.where(state.full, FULL, 0),
    ]
    return jnp.concatenate([state.words, jnp.stack(rest, axis=-1)], axis=-1)

  def join(
    self, parameters: NgramAutomaton, left: _Joined, right: _Joined
  ) -> tuple[_Joined, Values]:
    """Joins strings; returns what the true context changes.

    Σ_{k < words} ln p(w_k | state) [+ B(state) if `right` is full] -
    weight(right): the first words of `right` in their new context instead of
    the estimate. They are appended to those of `left` while that is open.
    """
    read = lambda place, carry: _read(parameters, right, place, carry)
    # A loop, not unrolled: the body is most of what is to be compiled.
    joined, total = lax.fori_loop(
      0, jnp.max(right.count), read, (left, jnp.zeros_like(left.weight))
    )
    # The rest of a full string costs what its first words leave to back off.
    after = jnp.where(
      right.full, automaton.backoff_total(parameters, joined.state), 0.0
    )
    return (
      joined._replace(
        state=jnp.where(right.full, right.state, joined.state),
        weight=joined.weight + jnp.where(joined.full, 0.0, after),
        full=joined.full | right.full,
      ),
      (total + after - right.weight,),
    )


def _read(lm: NgramAutomaton, right: _Joined, place, carry):
  """Appends word `place` of `right` to a joined state: the loop of `join`."""
  joined, total = carry
  use = place < right.count
  word = lax.dynamic_index_in_dim(right.words, place, -1, keepdims=False)
  # What the word costs in this context, and where it leads.
  state, full = joined.state, joined.full
  slot, _, _ = automaton.locate(lm, state, word)
  before = automaton.backoff_total(lm, state)
  gain = before + lm.score.at[slot].get(mode="promise_in_bounds")
  arc = lm.follow.at[slot].get(mode="promise_in_bounds")
  onward = arc & STATE_MASK
  # An open state lists the word if contexts further left matter for it.
  width = joined.words.shape[-1]
  open_ = use & ~full
  listed = open_ & (slot == state + word) & ((arc & LEFT) != 0)
  here = listed[..., None] & (jnp.arange(width) == joined.count[..., None])
  count = joined.count + listed
  last = listed & ((arc >= 0) | (count == width))  # not WHOLE, or no room
  # The weight grows by what a later left context will replace.
  weight = joined.weight + jnp.where(listed, gain, 0.0)
  weight += jnp.where(open_ & ~listed, before, 0.0)
  weight += jnp.where(last, automaton.backoff_total(lm, onward), 0.0)
  joined = _Joined(
    words=jnp.where(here, word[..., None], joined.words),
    state=jnp.where(use, onward, state),
    weight=weight,
    count=count,
    full=full | last | (open_ & ~listed),
  )
  return joined, total + jnp.where(use, gain, 0.0)


def vocabulary_ids(
  lm: Tables, words: Sequence[str], *, special: int = 0
) -> np.ndarray:
  """Returns the language model's ids of words, int32 `[V]`.

  Args:
    lm: the language model.
    words: their spelling; markers of sentence borders are unknown words.
    special: how many words at the beginning are unknown, too.
  """
  known = lm_tables.word_map(lm, words)
  known[(known == BOS_WORD) | (known == EOS_WORD)] = UNK_WORD
  known[:special] = UNK_WORD
  return known


def score_sentences(
  lm: Tables, words: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Scores sentences on the host, from `<s>` to `</s>`.

  Args:
    lm: the language model.
    words: ids in the language model, int32.
    offsets: of the N sentences, int64 `[N + 1]`.

  Returns:
    `(ln p, unknown words)`, float64 and int64 `[N]`.
  """
  return _score_sentences(words, offsets, lm.columns, lm.begin)


@njit
def _score_sentences(words, offsets, table, begin):
  total = np.zeros(len(offsets) - 1)
  unknown = np.zeros(len(offsets) - 1, np.int64)
  for row in range(len(total)):
    state = np.int32(begin)
    for item in range(offsets[row], offsets[row + 1]):
      gain, state = advance(table, state, words[item])
      total[row] += gain
      unknown[row] += words[item] == UNK_WORD
    gain, state = advance(table, state, EOS_WORD)
    total[row] += gain
  return total, unknown


def word_ids(lm: Tables, sides: RuleSides) -> Ragged:
  """Returns target sides in the language model's word ids."""
  known = vocabulary_ids(lm, sides.words, special=len(vocabulary.SPECIALS))
  known[vocabulary.BOS], known[vocabulary.EOS] = BOS_WORD, EOS_WORD
  flat = sides.target.flat
  flat = np.where(flat >= 0, known[np.maximum(flat, 0)], flat)
  return Ragged(flat=flat, offsets=sides.target.offsets)


@njit
def extend(table, record, state, word, width):
  """Appends a word to a packed state in place.

  Args:
    table: the columns `(check, follow, score)` of the model.
    record: the packed state.
    state: the automaton's state before the word.
    word: its id.
    width: W.

  Returns:
    `(ln p, next state)`.
  """
  taken = find_arc(table, state, word)
  gain = table[2][state] + table[2][taken + word]
  follow = table[1][taken + word]
  onward = follow & STATE_MASK
  if record[width + 2] < FULL:
    weight = record[width + 1 : width + 2].view(np.float32)
    if taken == state and follow & LEFT:
      record[record[width + 2]] = word
      record[width + 2] += 1
      weight[0] += gain
      if follow >= 0 or record[width + 2] == width:  # not WHOLE, or no room
        record[width + 2] += FULL
        weight[0] += table[2][onward]
    else:
      record[width + 2] += FULL
      weight[0] += table[2][state]
  record[width] = onward
  return gain, onward


@njit
def join_packed(record, right, table, width):
  """Appends a packed state in place; returns what joining adds."""
  state = record[width]
  total = np.float32(0.0)
  for place in range(right[width + 2] & (FULL - 1)):
    gain, state = extend(table, record, state, right[place], width)
    total += gain
  if right[width + 2] >= FULL:
    after = table[2][state]
    total += after
    if record[width + 2] < FULL:
      record[width + 2] += FULL
      record[width + 1 : width + 2].view(np.float32)[0] += after
    record[width] = right[width]
  return total - right[width + 1 : width + 2].view(np.float32)[0]


@njit
def join_rows(out, weights, row, right, others, number, table):
  """Appends a state to that in a row of `out`; returns what joining adds.

  The same as `join_packed`, by row numbers: slices of arrays are counted
  references, which threads would fight over.

  Args:
    out: packed states, changed in place.
    weights: the same memory as float32.
    row: which of them is the left string.
    right: packed states.
    others: the same memory as float32.
    number: which of them is the right string.
    table: the columns `(check, follow, score)` of the model.
  """
  check, follow, score = table
  width = out.shape[1] - 3
  packed, other = out[row, width + 2], right[number, width + 2]
  count, full = packed & (FULL - 1), packed >= FULL
  state, weight = out[row, width], weights[row, width + 1]
  total = np.float32(0.0)
  for place in range(other & (FULL - 1)):
    # What the word costs in this context, and where it leads.
    word = right[number, place]
    before = score[state]
    taken = state
    while taken != 0 and (
      taken + word >= len(check) or check[taken + word] != taken
    ):
      taken = follow[taken]
    gain = before + score[taken + word]
    arc = follow[taken + word]
    total += gain
    # An open state lists the word if contexts further left matter for it.
    if not full:
      if taken == state and arc & LEFT:
        out[row, count] = word
        count += 1
        weight += gain
        if arc >= 0 or count == width:  # not WHOLE, or no room
          full = True
          weight += score[arc & STATE_MASK]
      else:
        full = True
        weight += before
    state = arc & STATE_MASK
  if other >= FULL:
    # The rest of a full string costs what its first words leave to back off.
    after = score[state]
    total += after
    if not full:
      full = True
      weight += after
    state = right[number, width]
  out[row, width] = state
  weights[row, width + 1] = weight
  out[row, width + 2] = count + (FULL if full else 0)
  return total - others[number, width + 1]


@njit
def _run_states(flat, offsets, table, model, arity):
  """States of the runs of words of rules; Σ ln p of each rule's words."""
  order, begin_state = model
  width = max(order - 1, 1)
  size = len(offsets) - 1
  runs = np.zeros((size, arity + 1, width + 3), np.int32)
  score = np.zeros(size, np.float32)
  for rule in range(size):
    run, state = -1, np.int32(0)
    for item in range(offsets[rule], offsets[rule + 1]):
      symbol = flat[item]
      if symbol < 0:
        continue
      # A word after a child, or the first one, begins a run without context.
      if item == offsets[rule] or flat[item - 1] < 0:
        run += 1
        state = np.int32(0)
        if run > arity:
          break
      record = runs[rule, run]
      if symbol == BOS_WORD:
        # Nothing can come before the start of the sentence: a full state.
        state = np.int32(begin_state)
        record[width] = state
        record[width + 1 : width + 2].view(np.float32)[0] = 0.0
        record[width + 2] = FULL
      else:
        gain, state = extend(table, record, state, symbol, width)
        score[rule] += gain
  return runs, score
