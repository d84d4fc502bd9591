"""Counts n-grams of all orders up to N by counting sorts.

The text is one array of word ids, each sentence between `<s>` and `</s>`. The
n-grams of order k are put in *suffix order*: by last word, then by the word
before it, and so on. An n-gram ending at position i is the pair (its suffix of
order k - 1, its first word), so one stable counting sort per order suffices:
the positions are already sorted by first word (the same list for all orders,
shifted by k - 1), and one pass over them deals them out to their suffixes. No
comparison, no hashing, linear time and memory.
"""

import dataclasses

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

UNK, BOS, EOS = 0, 1, 2
SPECIALS = 3  # ids of the text's own words start here


@dataclasses.dataclass(frozen=True, kw_only=True)
class NgramCounts:
  """The distinct n-grams of one order k, in suffix order.

  Attributes:
    context: number of the first k - 1 words at order k - 1, int32 `[n]`.
    suffix: number of the last k - 1 words at order k - 1, int32 `[n]`.
    word: the last word, int32 `[n]`.
    first: the first word, int32 `[n]`.
    count: how often it occurs, int64 `[n]`.
  """

  context: np.ndarray
  suffix: np.ndarray
  word: np.ndarray
  first: np.ndarray
  count: np.ndarray


def count_ngrams(
  sentences: Ragged, *, types: int, order: int
) -> list[NgramCounts]:
  """Counts the n-grams of orders 1 to `order`.

  Args:
    sentences: word ids per sentence, all at least `SPECIALS`, without `<s>`
      and `</s>`.
    types: number of words with `<unk>`, `<s>` and `</s>`; above every id.
    order: the highest order, N.

  Returns:
    One `NgramCounts` per order. Order 1 lists every word; its context and
    suffix are 0, and `<unk>` and `<s>` have count 0.
  """
  if len(sentences.flat) + 2 * len(sentences) >= 2**31:
    raise ValueError("the text has more words than an int32 can number")
  words, places = _with_markers(
    sentences.flat.astype(np.int32), sentences.offsets.astype(np.int64)
  )
  zero = np.zeros(types, np.int32)
  count = np.bincount(words, minlength=types)
  count[BOS] = 0
  names = np.arange(types, dtype=np.int32)
  levels = [
    NgramCounts(context=zero, suffix=zero, word=names, first=names, count=count)
  ]
  by_word = np.argsort(words, kind="stable").astype(np.int32)
  numbers = words
  for k in range(2, order + 1):
    numbers, context, suffix, word, first, count = _next_order(
      words, places, by_word, numbers, len(levels[-1].word), k
    )
    levels.append(
      NgramCounts(
        context=context, suffix=suffix, word=word, first=first, count=count
      )
    )
  return levels


@njit
def _with_markers(flat, offsets):
  """Puts `<s>` and `</s>` around each sentence.

  Returns:
    `(words, places)`, int32: the ids and each one's place in its sentence.
  """
  size = len(flat) + 2 * (len(offsets) - 1)
  words = np.empty(size, np.int32)
  places = np.empty(size, np.int32)
  position = 0
  for row in range(len(offsets) - 1):
    start = position
    words[position] = BOS
    position += 1
    for item in range(offsets[row], offsets[row + 1]):
      words[position] = flat[item]
      position += 1
    words[position] = EOS
    position += 1
    for item in range(start, position):
      places[item] = item - start
  return words, places


@njit
def _next_order(words, places, by_word, numbers, previous, k):
  """Numbers the n-grams of order k.

  Args:
    words: the text, int32 `[T]`.
    places: place of each word in its sentence, int32 `[T]`.
    by_word: the positions sorted by word, stable, int32 `[T]`.
    numbers: the (k-1)-gram that ends at each position, int32 `[T]`.
    previous: how many (k-1)-grams there are.
    k: the order, at least 2.

  Returns:
    `(numbers, context, suffix, word, first, count)`.
  """
  total = len(words)
  starts = np.zeros(previous + 1, np.int64)
  for position in range(total):
    if places[position] >= k - 1:
      starts[numbers[position] + 1] += 1
  for number in range(previous):
    starts[number + 1] += starts[number]
  valid = starts[previous]
  dealt = np.empty(valid, np.int32)
  for index in range(total):
    position = by_word[index] + k - 1
    if position < total and places[position] >= k - 1:
      slot = starts[numbers[position]]
      dealt[slot] = position
      starts[numbers[position]] = slot + 1

  result = np.full(total, -1, np.int32)
  distinct = -1
  last_suffix, last_first = -1, -1
  for index in range(valid):
    position = dealt[index]
    suffix = numbers[position]
    first = words[position - k + 1]
    if suffix != last_suffix or first != last_first:
      distinct += 1
      last_suffix, last_first = suffix, first
    result[position] = distinct
  distinct += 1

  context = np.empty(distinct, np.int32)
  suffixes = np.empty(distinct, np.int32)
  word = np.empty(distinct, np.int32)
  firsts = np.empty(distinct, np.int32)
  count = np.zeros(distinct, np.int64)
  for index in range(valid):
    position = dealt[index]
    number = result[position]
    if count[number] == 0:
      context[number] = numbers[position - 1]
      suffixes[number] = numbers[position]
      word[number] = words[position]
      firsts[number] = words[position - k + 1]
    count[number] += 1
  return result, context, suffixes, word, firsts, count
