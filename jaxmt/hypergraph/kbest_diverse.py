"""Choosing strings that have little in common; see `kbest`."""

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged


def choose(
  offsets: np.ndarray,
  scores: np.ndarray,
  words: Ragged,
  *,
  size: int,
  weight: float,
) -> np.ndarray:
  """Chooses strings of each sentence greedily.

  Args:
    offsets: candidates of each sentence, int64 `[B + 1]`.
    scores: their scores, `[D]`.
    words: their words, D rows.
    size: how many to choose.
    weight: penalty of one bigram shared with one string chosen before.

  Returns:
    Which candidates are chosen, bool `[D]`.
  """
  rows = words.offsets + np.arange(len(words.offsets))
  ends = np.full((2, rows[-1]), -1, np.int64)  # a row of n words, n + 1 bigrams
  is_word = np.ones(rows[-1], bool)
  is_word[rows[1:] - 1] = False
  ends[1, is_word] = words.flat
  ends[0, np.flatnonzero(is_word) + 1] = words.flat
  kinds, bigrams = np.unique(
    (ends[0] + 1) << 32 | (ends[1] + 1), return_inverse=True
  )
  return _choose(offsets, scores, bigrams, rows, len(kinds), size, weight)


@njit
def _choose(offsets, scores, bigrams, rows, kinds, size, weight):
  """Greedy choice of `size` strings per sentence with few bigrams in common.

  Args:
    offsets: candidates of each sentence, int64 `[B + 1]`.
    scores: their scores, `[D]`.
    bigrams: the number of each of their bigrams, below `kinds`.
    rows: offsets of the candidates in `bigrams`, int64 `[D + 1]`.
    kinds: how many different bigrams there are.
    size: how many to choose.
    weight: penalty of one bigram shared with one string chosen before.

  Returns:
    Which candidates are chosen, bool `[D]`.
  """
  chosen = np.zeros(len(scores), np.bool_)
  penalty = np.zeros(len(scores))
  holder = np.full(kinds, -1, np.int64)  # the last string chosen that has it
  for row in range(len(offsets) - 1):
    low, high = offsets[row], offsets[row + 1]
    for _ in range(min(size, high - low)):
      pick = np.int64(-1)
      for item in range(low, high):
        if not chosen[item] and (
          pick < 0
          or scores[item] - penalty[item] > scores[pick] - penalty[pick]
        ):
          pick = item
      chosen[pick] = True
      for place in range(rows[pick], rows[pick + 1]):
        holder[bigrams[place]] = pick
      for item in range(low, high):
        shared = 0
        for place in range(rows[item], rows[item + 1]):
          shared += holder[bigrams[place]] == pick
        penalty[item] += weight * shared
  return chosen
