"""Scores text on the host with the automaton's arrays: no device, no JAX."""

import dataclasses

import numpy as np

from jaxmt.lm.tables import EOS_WORD, STATE_MASK, UNK_WORD, Tables
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextScores:
  """Scores of a text, sentence by sentence; each ends with `</s>`.

  Attributes:
    words: ids, `</s>` included, int32.
    log10: log10 p of each of them given the ones before, float32 rows.
    length: how long an n-gram the model knew for each, uint8 `[T]`.
  """

  words: Ragged
  log10: Ragged
  length: np.ndarray

  @property
  def totals(self) -> np.ndarray:
    """log10 p of each sentence, float64 `[N]`."""
    return _row_sums(self.log10.flat.astype(np.float64), self.log10.offsets)

  @property
  def unknown(self) -> np.ndarray:
    """The number of unknown words of each sentence, int64 `[N]`."""
    flags = self.words.flat == UNK_WORD
    return _row_sums(flags, self.words.offsets).astype(np.int64)


def _row_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
  """Sums of rows; every row has at least one item."""
  if len(offsets) == 1:
    return np.zeros(0)
  return np.add.reduceat(values.astype(np.float64), offsets[:-1])


def perplexities(scores: TextScores) -> tuple[float, float]:
  """Returns the perplexity with and without the unknown words' share.

  Both count `</s>` as a word. Without any (known) word, it is nan.
  """
  unknown = scores.words.flat == UNK_WORD
  log10 = scores.log10.flat.astype(np.float64)
  known = len(log10) - int(unknown.sum())
  everything = np.sum(log10) / len(log10) if len(log10) else np.nan
  without = np.sum(log10[~unknown]) / known if known else np.nan
  return float(10.0**-everything), float(10.0**-without)


def score_text(tables: Tables, sentences: Ragged) -> TextScores:
  """Scores sentences of word ids (see `tables.word_map`) without markers."""
  offsets = sentences.offsets + np.arange(len(sentences) + 1)
  words, scores, length = _score(
    tables.check,
    tables.follow,
    tables.score,
    tables.length,
    tables.begin,
    sentences.flat.astype(np.int32),
    sentences.offsets.astype(np.int64),
  )
  return TextScores(
    words=Ragged(flat=words, offsets=offsets),
    log10=Ragged(
      flat=(scores / np.log(10.0)).astype(np.float32), offsets=offsets
    ),
    length=length,
  )


@njit
def _score(check, follow, score, length, begin, flat, offsets):
  """Walks the automaton over each sentence and `</s>`."""
  size = len(flat) + len(offsets) - 1
  words = np.empty(size, np.int32)
  scores = np.empty(size, np.float64)
  lengths = np.empty(size, np.uint8)
  at = 0
  for row in range(len(offsets) - 1):
    state = begin
    for item in range(offsets[row], offsets[row + 1] + 1):
      word = EOS_WORD if item == offsets[row + 1] else flat[item]
      total = np.float64(score[state])
      slot = state + word
      while slot >= len(check) or check[slot] != state:
        state = follow[state]
        slot = state + word
      words[at] = word
      scores[at] = total + score[slot]
      lengths[at] = length[slot]
      at += 1
      state = follow[slot] & STATE_MASK
  return words, scores, lengths


@njit
def locate(table, state, word):
  """Returns the state, among `state` and its back-offs, whose arc `word` takes.

  Args:
    table: the columns `(check, follow, score)` of `tables.Tables`.
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
  """Reads one word: `(ln p, next state)`, as `automaton.step` does."""
  taken = locate(table, state, word)
  gain = table[2][state] + table[2][taken + word]
  return gain, table[1][taken + word] & STATE_MASK
