"""Word error rates: edit distance (WER) and position-independent (PER).

Both count edits per reference word: WER the fewest insertions, deletions and
substitutions that turn the hypothesis into the reference; PER (Tillmann et al.,
1997) the same with order ignored, `max(c, r) - matches`. With several
references the fewest edits to any of them count, and the length is the mean
over them, as in TER, so that for every hypothesis PER <= WER and TER <= WER.

Statistics, S = 2: `edits, reference length`.
"""

import functools
from typing import Any

import numpy as np

from jaxmt.metrics import base
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

WORD_BITS = 64


@njit
def step(equal, plus, minus):
  """One column of the bit-parallel edit distance (Myers 1999, Hyyro 2003).

  Args:
    equal: bit j is set where the column's token equals pattern token j.
    plus: bit j is set where the distance grows by one from row j to j + 1.
    minus: bit j is set where it falls by one.

  Returns:
    `(plus, minus, horizontal plus, horizontal minus)` of the new column; the
    last two hold, at bit j, whether row j + 1 grew or fell against the last
    column.
  """
  vertical = equal | minus
  across = (((equal & plus) + plus) ^ plus) | equal
  grew = minus | ~(across | plus)
  fell = plus & across
  shifted = (grew << np.uint64(1)) | np.uint64(1)
  return (
    (fell << np.uint64(1)) | ~(vertical | shifted),
    shifted & vertical,
    grew,
    fell,
  )


@njit
def equal_bits(token, pattern):
  """Bit j is set where `pattern[j]` is the token; at most 64 of them."""
  bits = np.uint64(0)
  for position in range(len(pattern)):
    if pattern[position] == token:
      bits |= np.uint64(1) << np.uint64(position)
  return bits


@njit
def _bit_distance(text, pattern):
  last = np.uint64(len(pattern) - 1)
  plus = ~np.uint64(0)
  minus = np.uint64(0)
  distance = len(pattern)
  for token in text:
    plus, minus, grew, fell = step(equal_bits(token, pattern), plus, minus)
    distance += np.int64((grew >> last) & np.uint64(1))
    distance -= np.int64((fell >> last) & np.uint64(1))
  return distance


@njit
def _row_distance(text, pattern):
  row = np.arange(len(pattern) + 1)
  for position in range(len(text)):
    corner = row[0]
    row[0] = position + 1
    for column in range(1, len(row)):
      cost = corner + (text[position] != pattern[column - 1])
      corner = row[column]
      row[column] = min(cost, corner + 1, row[column - 1] + 1)
  return row[-1]


@njit
def edit_distance(one, other):
  """Returns the Levenshtein distance of two sequences."""
  if len(one) < len(other):
    one, other = other, one
  if not len(other):
    return len(one)
  if len(other) <= WORD_BITS:
    return _bit_distance(one, other)
  return _row_distance(one, other)


@njit
def _wer_kernel(low, high, groups, hypotheses, references, out):
  sentences, starts, rows = groups
  flat, offsets = hypotheses
  ref_flat, ref_offsets, first = references
  for group in range(low, high):
    begin = first[sentences[group]]
    end = first[sentences[group] + 1]
    words = ref_offsets[end] - ref_offsets[begin]
    for item in range(starts[group], starts[group + 1]):
      row = rows[item]
      text = flat[offsets[row] : offsets[row + 1]]
      best = np.int64(1 << 62)
      for reference in range(begin, end):
        other = ref_flat[ref_offsets[reference] : ref_offsets[reference + 1]]
        best = min(best, edit_distance(text, other))
      out[row, 0] = best
      out[row, 1] = words / (end - begin)


@njit
def _per_kernel(low, high, groups, hypotheses, references, out):
  sentences, starts, rows = groups
  flat, offsets = hypotheses
  ref_flat, ref_offsets, first = references
  most = base.largest_group(groups, references, low, high)
  words = base.allocate_trie(most)
  matches = np.zeros(1, np.float64)
  for group in range(low, high):
    begin = first[sentences[group]]
    end = first[sentences[group] + 1]
    total = ref_offsets[end] - ref_offsets[begin]
    for reference in range(begin, end):
      start, stop = ref_offsets[reference], ref_offsets[reference + 1]
      base.reset_trie(words, stop - start)
      base.add_reference(words, ref_flat, start, stop, 1)
      for item in range(starts[group], starts[group + 1]):
        row = rows[item]
        length = offsets[row + 1] - offsets[row]
        matches[0] = 0
        base.count_matches(
          words, flat, offsets[row], offsets[row + 1], 1, matches
        )
        edits = max(length, stop - start) - matches[0]
        if reference == begin or edits < out[row, 0]:
          out[row, 0] = edits
        out[row, 1] = total / (end - begin)


def score(statistics: Any) -> Any:
  """Returns edits per reference word of statistics `[..., 2]`.

  Without reference words, any edit at all makes 1, none makes 0.
  """
  xp = base.array_module(statistics)
  edits, length = statistics[..., 0], statistics[..., 1]
  some = xp.where(edits > 0, 1.0, 0.0)
  return xp.where(length > 0, edits / xp.where(length > 0, length, 1), some)


def _statistics(
  kernel: Any,
  references: base.References,
  hypotheses: Ragged,
  sentence: np.ndarray,
  *,
  threads: int | None = None,
) -> np.ndarray:
  return base.run_kernel(
    kernel, references, hypotheses, sentence, size=2, threads=threads
  )


def metric(name: str) -> base.Metric:
  """Returns `wer` or `per`."""
  kernel = {"wer": _wer_kernel, "per": _per_kernel}[name]
  return base.Metric(
    name=name,
    size=2,
    higher_is_better=False,
    percent=True,
    unit=base.WORD,
    prepare=lambda references: references,
    statistics=functools.partial(_statistics, kernel),
    corpus_score=score,
    sentence_score=score,
  )
