"""GTM, the General Text Matcher (Turian, Shen and Melamed, 2003).

A matching pairs equal words of hypothesis and reference, each word at most
once. Runs of adjacent pairs count for more the larger the exponent e is:

  size = (sum over runs of length^e)^(1/e)
  precision = size / c,  recall = size / r,  GTM = their harmonic mean

With e = 1 (the default, plain F-measure of words) the largest matching is the
clipped number of common words. For e > 1 (say 1.2 or 2) finding the largest is
hard and, as in the original, runs are chosen greedily, the longest first; here
ties go to the earliest in the hypothesis, then in the reference. With several
references the one with the highest GTM counts, the first of equal ones; that is
our choice and may differ from other implementations.

Statistics, S = 3: `size, c, r`, so that a corpus has one precision and recall.
"""

import functools
from typing import Any

import numpy as np

from jaxmt.metrics import base
from jaxmt.text.kernels import longest_row, njit
from jaxmt.text.ragged import Ragged


@njit
def _longest_run(text, reference, free, open_, runs):
  """The longest run of free pairs, `(length, start, place)`."""
  best = 0
  best_start = best_place = 0
  m = len(reference)
  runs[: m + 1] = 0
  for start in range(len(text) - 1, -1, -1):
    if not free[start]:
      runs[:m] = 0
      continue
    # In rising order of place, runs[place + 1] is still that of start + 1.
    for place in range(m):
      if open_[place] and text[start] == reference[place]:
        runs[place] = runs[place + 1] + 1
      else:
        runs[place] = 0
    for place in range(m):
      if runs[place] > best or (
        runs[place] == best and best > 0 and start < best_start
      ):
        best, best_start, best_place = runs[place], start, place
  return best, best_start, best_place


@njit
def _match_size(text, reference, exponent, free, open_, runs):
  free[: len(text)] = True
  open_[: len(reference)] = True
  total = 0.0
  while True:
    length, start, place = _longest_run(text, reference, free, open_, runs)
    if length <= 1:
      break
    free[start : start + length] = False
    open_[place : place + length] = False
    total += np.float64(length) ** exponent
  # What is left are single words: pair them in one pass.
  for start in range(len(text)):
    if free[start]:
      for place in range(len(reference)):
        if open_[place] and text[start] == reference[place]:
          open_[place] = False
          total += 1.0
          break
  return total ** (1.0 / exponent)


@njit
def _kernel(low, high, groups, hypotheses, references, exponent, out):
  sentences, starts, rows = groups
  flat, offsets = hypotheses
  ref_flat, ref_offsets, first = references
  longest = max(1, longest_row(offsets), longest_row(ref_offsets))
  free = np.empty(longest, np.bool_)
  open_ = np.empty(longest, np.bool_)
  runs = np.empty(longest + 1, np.int64)
  for group in range(low, high):
    begin = first[sentences[group]]
    end = first[sentences[group] + 1]
    for item in range(starts[group], starts[group + 1]):
      row = rows[item]
      text = flat[offsets[row] : offsets[row + 1]]
      best = -1.0
      for index in range(begin, end):
        reference = ref_flat[ref_offsets[index] : ref_offsets[index + 1]]
        size = _match_size(text, reference, exponent, free, open_, runs)
        value = 2 * size / max(1, len(text) + len(reference))
        if value > best:
          best = value
          out[row, 0] = size
          out[row, 1] = len(text)
          out[row, 2] = len(reference)


def statistics(
  references: base.References,
  hypotheses: Ragged,
  sentence: np.ndarray,
  *,
  exponent: float = 1.0,
  threads: int | None = None,
) -> np.ndarray:
  """Returns GTM's statistics, float64 `[H, 3]`; see `bleu.statistics`."""
  return base.run_kernel(
    _kernel,
    references,
    hypotheses,
    sentence,
    float(exponent),
    size=3,
    threads=threads,
  )


def score(statistics: Any) -> Any:
  """Returns the F-measure of statistics `[..., 3]`: 2 * size / (c + r)."""
  xp = base.array_module(statistics)
  size = statistics[..., 0]
  return base.ratio(xp, 2.0 * size, statistics[..., 1] + statistics[..., 2])


def metric(*, exponent: float = 1.0) -> base.Metric:
  """Returns GTM.

  Args:
    exponent: at least 1; above 1, longer runs are worth more.
  """
  if exponent < 1:
    raise ValueError(f"the exponent must be at least 1, not {exponent}")
  return base.Metric(
    name="gtm",
    size=3,
    higher_is_better=True,
    percent=True,
    unit=base.WORD,
    prepare=lambda references: references,
    statistics=functools.partial(statistics, exponent=exponent),
    corpus_score=score,
    sentence_score=score,
    settings=(("exponent", exponent),),
  )
