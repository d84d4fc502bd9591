"""Target sides as segments a language model can join.

A target side is a sequence of *segments*: runs of words, and non-terminal
sites. Every segment, and every hypothesis the search builds, is one record of
what the language model must know of it (Heafield's left and right state):

- its first words, as many as an unknown left context could still matter for, at
  most W = order - 1;
- whether it is *full*: those are not all of its words, or no further word can
  be changed by the left context;
- the state behind its last word, which for a full record does not depend on
  the left context;
- `weight`: Σ ln p of those words without any context, and if full the back-off
  total B of the state behind them. Joining takes it back and puts the same sum
  in the true context in its place.

The word after the listed ones costs `B(state) + score[arc]` (see `lm.tables`),
its arc is the same in every context, so the B terms are all that changes.
Joining costs at most W lookups, whatever the lengths, and the words inside a
run are scored once per grammar instead of once per hypothesis.

A record is W + 4 int32 numbers: the words, state, `weight` as bits, how many
words there are (plus `FULL`), label.
"""

import dataclasses

import numpy as np

from jaxmt.lm.tables import BOS_WORD, LEFT, STATE_MASK, Tables
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

FULL = 256
NO_SLOT = -1


def context_size(order: int) -> int:
  """Returns W, the number of words a record holds."""
  return max(order - 1, 1)


def record_size(order: int) -> int:
  """Returns the number of columns of a record."""
  return context_size(order) + 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Segments:
  """The target sides of R rules of arity up to A.

  Attributes:
    slots: what stands in each place of the target side, int32 `[R, 2A + 1]`:
      k < A for child k, A + r for run r, `NO_SLOT` after the end.
    runs: records of the runs, int32 `[R, A + 1, record]`.
    score: Σ ln p of all words of the rule without outer context, `[R]`.
  """

  slots: np.ndarray
  runs: np.ndarray
  score: np.ndarray

  def __len__(self) -> int:
    return len(self.slots)


def make_segments(target: Ragged, *, lm: Tables, arity: int) -> Segments:
  """Cuts target sides into segments and scores their words.

  Args:
    target: language model word ids, or `-1 - k` for child k; R rows. `<s>`, as
      the first of a row, starts the sentence.
    lm: the language model.
    arity: A, the number of children a record of slots provides for.
  """
  slots, runs, score = _cut(
    np.ascontiguousarray(target.flat, np.int32),
    np.asarray(target.offsets, np.int64),
    (lm.check, lm.follow, lm.score),
    (lm.order, lm.begin),
    arity,
  )
  return Segments(slots=slots, runs=runs, score=score)


@njit
def locate(table, state, word):
  """Finds the state, among `state` and its back-offs, whose arc `word` takes.

  Args:
    table: the columns `(check, follow, score)` of `lm.tables.Tables`.
    state: language model state.
    word: language model word id.
  """
  check, follow, _ = table
  while state != 0 and (
    state + word >= len(check) or check[state + word] != state
  ):
    state = follow[state]
  return state


@njit
def advance(table, state, word):
  """Reads one word: `(ln p, next state)`, as `lm.automaton.step` does."""
  taken = locate(table, state, word)
  gain = table[2][state] + table[2][taken + word]
  return gain, table[1][taken + word] & STATE_MASK


@njit
def extend(table, record, state, word, width):
  """Appends a word to an open or full record; returns `(ln p, next state)`."""
  taken = locate(table, state, word)
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
def _cut(flat, offsets, table, model, arity):
  order, begin_state = model
  width = max(order - 1, 1)
  size = len(offsets) - 1
  slots = np.full((size, 2 * arity + 1), NO_SLOT, np.int32)
  runs = np.zeros((size, arity + 1, width + 4), np.int32)
  score = np.zeros(size, np.float32)
  for rule in range(size):
    place, run, state = 0, -1, np.int32(0)
    for item in range(offsets[rule], offsets[rule + 1]):
      symbol = flat[item]
      if symbol < 0:
        slots[rule, place] = -1 - symbol
        place += 1
        continue
      if item == offsets[rule] or flat[item - 1] < 0:
        run += 1
        slots[rule, place] = arity + run
        place += 1
        state = np.int32(0)
      record = runs[rule, run]
      if symbol == BOS_WORD:
        state = np.int32(begin_state)
        record[width] = state
        record[width + 1 : width + 2].view(np.float32)[0] = 0.0
        record[width + 2] = FULL
      else:
        gain, state = extend(table, record, state, symbol, width)
        score[rule] += gain
  return slots, runs, score
