"""chrF (Popovic, 2015) and chrF++ (Popovic, 2017), as sacreBLEU computes them.

Precision and recall of character n-grams, and of word n-grams if `word_order`
is above 0 (2 for chrF++), averaged over orders and combined to

  (1 + beta^2) * precision * recall / (beta^2 * precision + recall).

Of several references the one that scores best counts. Tokens are code points
with white space; the kernel drops white space (unless told to keep it) and cuts
words, splitting off one ASCII punctuation mark at a word's end or, if it has
none there, at its start.

Statistics, S = 3 * (char_order + word_order), three blocks: n-grams of the
hypothesis (0 where the reference has none), of the reference, and common ones.
"""

import functools
from typing import Any

import numpy as np

from jaxmt.metrics import base
from jaxmt.text.kernels import longest_row, njit
from jaxmt.text.ragged import Ragged

_EPSILON = 1e-16


@njit
def _is_space(code):
  """What `str.split` splits at."""
  if code <= 0x20:
    return code == 0x20 or 9 <= code <= 13 or 28 <= code
  if code < 0x1680:
    return code == 0x85 or code == 0xA0
  return (
    code == 0x1680
    or 0x2000 <= code <= 0x200A
    or code == 0x2028
    or code == 0x2029
    or code == 0x202F
    or code == 0x205F
    or code == 0x3000
  )


@njit
def _is_punctuation(code):
  """ASCII punctuation."""
  return (
    33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96
  ) or 123 <= code <= 126


@njit
def _characters(flat, start, stop, keep_space, out):
  """Copies the code points that count to `out`; returns how many."""
  size = 0
  for position in range(start, stop):
    if keep_space or not _is_space(flat[position]):
      out[size] = flat[position]
      size += 1
  return size


@njit
def _words(flat, start, stop, bounds):
  """Writes the words' spans `[begin, end)` to `bounds`; returns how many."""
  size = 0
  position = start
  while position < stop:
    if _is_space(flat[position]):
      position += 1
      continue
    begin = position
    while position < stop and not _is_space(flat[position]):
      position += 1
    cut = position
    if position - begin > 1:
      if _is_punctuation(flat[position - 1]):
        cut = position - 1
      elif _is_punctuation(flat[begin]):
        cut = begin + 1
    bounds[size, 0] = begin
    bounds[size, 1] = cut
    size += 1
    if cut < position:
      bounds[size, 0] = cut
      bounds[size, 1] = position
      size += 1
  return size


@njit
def _word_ids(spelling, flat, bounds, size, add, out):
  """Numbers words by walking their letters through a trie of spellings.

  The letters of a word and a mark of its end (0x110000, beyond all code points)
  lead to a node; that node is the word's id. Unknown words get 0, which no
  reference word has.
  """
  keys, nodes, _, _, state = spelling
  mask = state[1]
  for word in range(size):
    node = np.int32(0)
    for position in range(bounds[word, 0], bounds[word, 1] + 1):
      letter = np.int32(0x110000)
      if position < bounds[word, 1]:
        letter = flat[position]
      if add:
        node = base.find_or_add_child(spelling, node, letter)
      else:
        node = base.find_child(keys, nodes, mask, node, letter)
        if not node:
          break
    out[word] = node


@njit
def f_score(counts, orders, factor, epsilon):
  """The score of one row of statistics; operations in sacreBLEU's order."""
  total = precision_sum = recall_sum = 0.0
  effective = 0
  for n in range(orders):
    mine, theirs = counts[n], counts[orders + n]
    common = counts[2 * orders + n]
    precision = common / mine if mine > 0 else _EPSILON
    recall = common / theirs if theirs > 0 else _EPSILON
    below = factor * precision + recall
    if below > 0:
      total += (1 + factor) * precision * recall / below
    else:
      total += _EPSILON
    if mine > 0 and theirs > 0:
      precision_sum += precision
      recall_sum += recall
      effective += 1
  if epsilon:
    return total / orders
  if effective == 0:
    return 0.0
  precision = precision_sum / effective
  recall = recall_sum / effective
  if precision + recall == 0:
    return 0.0
  return (1 + factor) * precision * recall / (factor * precision + recall)


@njit
def _totals(counts, place, order, mine, theirs, orders):
  """Sets the numbers of n-grams of sequences of length `mine`, `theirs`."""
  for n in range(order):
    if theirs > n:
      counts[place + n] = max(0, mine - n)
      counts[orders + place + n] = theirs - n


@njit
def _kernel(low, high, groups, hypotheses, references, settings, out):
  sentences, starts, rows = groups
  flat, offsets = hypotheses
  ref_flat, ref_offsets, first = references
  char_order, word_order, factor, keep_space, epsilon = settings
  # Tries of characters, of words by spelling, and of words; room for texts.
  orders = char_order + word_order
  most = max(1, longest_row(ref_offsets))
  room = max(most, longest_row(offsets))
  letters = base.allocate_trie(most * char_order)
  spelling = base.allocate_trie(2 * most)
  grams = base.allocate_trie(most * word_order)
  text = np.empty(room, np.int32)
  bounds = np.empty((room + 1, 2), np.int64)
  words = np.empty(room + 1, np.int32)
  counts = np.empty(3 * orders, np.float64)
  zero = np.int64(0)  # a literal 0 would compile the tries a second time
  for group in range(low, high):
    begin = first[sentences[group]]
    end = first[sentences[group] + 1]
    best = np.full(starts[group + 1] - starts[group], -1.0)
    # Tries of each reference.
    for reference in range(begin, end):
      start, stop = ref_offsets[reference], ref_offsets[reference + 1]
      ref_length = _characters(ref_flat, start, stop, keep_space, text)
      base.reset_trie(letters, ref_length * char_order)
      base.add_reference(letters, text, zero, ref_length, char_order)
      ref_words = 0
      if word_order:
        ref_words = _words(ref_flat, start, stop, bounds)
        base.reset_trie(spelling, 2 * (stop - start))
        _word_ids(spelling, ref_flat, bounds, ref_words, np.bool_(True), words)
        base.reset_trie(grams, ref_words * word_order)
        base.add_reference(grams, words, zero, ref_words, word_order)
      # Matches of each hypothesis with it; the best reference counts.
      for item in range(starts[group], starts[group + 1]):
        row = rows[item]
        start, stop = offsets[row], offsets[row + 1]
        length = _characters(flat, start, stop, keep_space, text)
        counts[:] = 0
        base.count_matches(
          letters, text, zero, length, char_order, counts[2 * orders :]
        )
        _totals(counts, zero, char_order, length, ref_length, orders)
        if word_order:
          size = _words(flat, start, stop, bounds)
          _word_ids(spelling, flat, bounds, size, np.bool_(False), words)
          base.count_matches(
            grams,
            words,
            zero,
            size,
            word_order,
            counts[2 * orders + char_order :],
          )
          _totals(counts, char_order, word_order, size, ref_words, orders)
        value = f_score(counts, orders, factor, epsilon)
        if value > best[item - starts[group]]:
          best[item - starts[group]] = value
          for n in range(3 * orders):
            out[row, n] = counts[n]


def statistics(
  references: base.References,
  hypotheses: Ragged,
  sentence: np.ndarray,
  *,
  char_order: int = 6,
  word_order: int = 0,
  beta: float = 2,
  whitespace: bool = False,
  epsilon: bool = False,
  threads: int | None = None,
) -> np.ndarray:
  """Returns chrF's statistics, int32 `[H, 3 * (char_order + word_order)]`.

  Args:
    references: as code points.
    hypotheses: H rows of code points.
    sentence: the sentence of each hypothesis, int `[H]`.
    char_order: longest character n-gram.
    word_order: longest word n-gram, 0 for none.
    beta: how many times recall weighs as much as precision; with `epsilon` it
      decides only which of several references counts.
    whitespace: whether white space counts as characters.
    epsilon: see `score`.
    threads: number of threads at most; all cores if None.
  """
  out = base.run_kernel(
    _kernel,
    references,
    hypotheses,
    sentence,
    (char_order, word_order, float(beta) ** 2, whitespace, epsilon),
    size=3 * (char_order + word_order),
    threads=threads,
  )
  return out.astype(np.int32)


def score(statistics: Any, *, beta: float = 2, epsilon: bool = False) -> Any:
  """Returns chrF in 0..1 of statistics `[..., 3 * orders]`.

  Args:
    statistics: summed or of one sentence.
    beta: how many times recall weighs as much as precision.
    epsilon: mean of F-scores over all orders with tiny values for undefined
      ones, as chrF++.py does; else F-score of mean precision and recall over
      the orders that exist on both sides.
  """
  xp = base.array_module(statistics)
  orders = statistics.shape[-1] // 3
  mine = statistics[..., :orders]
  theirs = statistics[..., orders : 2 * orders]
  common = statistics[..., 2 * orders :]
  factor = float(beta) ** 2
  precision = xp.where(mine > 0, base.ratio(xp, common, mine), _EPSILON)
  recall = xp.where(theirs > 0, base.ratio(xp, common, theirs), _EPSILON)
  if epsilon:
    below = factor * precision + recall
    above = (1 + factor) * precision * recall
    each = xp.where(below > 0, base.ratio(xp, above, below), _EPSILON)
    return xp.sum(each, axis=-1) / orders
  both = (mine > 0) & (theirs > 0)
  effective = xp.sum(both * 1.0, axis=-1)
  mean_precision = base.ratio(
    xp, xp.sum(xp.where(both, precision, 0.0), axis=-1), effective
  )
  mean_recall = base.ratio(
    xp, xp.sum(xp.where(both, recall, 0.0), axis=-1), effective
  )
  above = (1 + factor) * mean_precision * mean_recall
  return base.ratio(xp, above, factor * mean_precision + mean_recall)


def metric(
  *,
  char_order: int = 6,
  word_order: int = 0,
  beta: float = 2,
  whitespace: bool = False,
  epsilon: bool = False,
) -> base.Metric:
  """Returns chrF, named `chrf++` if it looks at words too."""
  if char_order < 1 or word_order < 0:
    raise ValueError(f"orders {char_order}, {word_order} make no sense")
  scorer = functools.partial(score, beta=beta, epsilon=epsilon)
  return base.Metric(
    name="chrf++" if word_order else "chrf",
    size=3 * (char_order + word_order),
    higher_is_better=True,
    percent=True,
    unit=base.CHARACTER,
    prepare=lambda references: references,
    statistics=functools.partial(
      statistics,
      char_order=char_order,
      word_order=word_order,
      beta=beta,
      whitespace=whitespace,
      epsilon=epsilon,
    ),
    corpus_score=scorer,
    sentence_score=scorer,
    settings=(
      ("char_order", char_order),
      ("word_order", word_order),
      ("beta", beta),
      ("whitespace", whitespace),
      ("epsilon", epsilon),
    ),
  )
