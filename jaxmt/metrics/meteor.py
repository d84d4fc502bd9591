"""METEOR with its modules "exact" and "stem" (Banerjee and Lavie, 2005).

An alignment pairs words of hypothesis and reference that are equal or have the
same stem, each word at most once. Of all alignments it is one with the most
pairs, of these with the fewest chunks (runs of pairs adjacent on both sides),
of these with the least sum of distances between the places of paired words,
of these with the most equal words. With m the weighted number of pairs,

  P = m / c,  R = m / r,  F = P R / (alpha P + (1 - alpha) R)
  METEOR = F (1 - gamma (chunks / pairs)^beta)

The published parameters are `VERSIONS`: those of METEOR 1.5 for English
(Denkowski and Lavie, 2014), of Lavie and Agarwal (2007) and the first ones. As
in METEOR 1.5, the alignment is found by beam search with 40 partial alignments
(exact if there are no more), and with version 1.5 nothing is taken off a
sentence that equals its reference. METEOR's synonyms, paraphrases and lists of
function words are not here: delta has no effect without the last. Stems are
Porter's (1980). With several references the best one counts, the first of equal
ones.

Statistics, S = 5: `equal words, equal stems, chunks, c, r`.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.metrics import base
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

BEAM = 40
# Columns of a partial alignment.
_EQUAL, _STEMS, _CHUNKS, _DISTANCE, _LAST = range(5)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeteorParameters:
  """Parameters of METEOR.

  Attributes:
    alpha: weight of precision.
    beta: exponent of the fragmentation.
    gamma: largest penalty.
    stem: weight of a pair of equal stems; equal words have 1.
    whole: whether a sentence equal to its reference has no penalty.
  """

  alpha: float
  beta: float
  gamma: float
  stem: float
  whole: bool


VERSIONS = {
  "1.5": MeteorParameters(
    alpha=0.85, beta=0.2, gamma=0.6, stem=0.6, whole=True
  ),
  "2007": MeteorParameters(
    alpha=0.81, beta=0.83, gamma=0.28, stem=1.0, whole=False
  ),
  "2005": MeteorParameters(
    alpha=0.9, beta=3.0, gamma=0.5, stem=1.0, whole=False
  ),
}


@njit
def _better(one, two):
  """Whether a partial alignment precedes another."""
  pairs = (one[_EQUAL] + one[_STEMS]) - (two[_EQUAL] + two[_STEMS])
  if pairs != 0:
    return pairs > 0
  if one[_CHUNKS] != two[_CHUNKS]:
    return one[_CHUNKS] < two[_CHUNKS]
  if one[_DISTANCE] != two[_DISTANCE]:
    return one[_DISTANCE] < two[_DISTANCE]
  return one[_EQUAL] > two[_EQUAL]


@njit
def _same_future(one, one_used, two, two_used):
  """Whether two partial alignments can be continued in the same ways."""
  if one[_LAST] != two[_LAST]:
    return False
  for place in range(len(one_used)):
    if one_used[place] != two_used[place]:
      return False
  return True


@njit
def _insert(states, used, count, state, marks):
  """Puts a partial alignment into its place of a beam; the new count."""
  for other in range(count):
    if _same_future(state, marks, states[other], used[other]):
      if not _better(state, states[other]):
        return count
      # The better one replaces it: close the gap, then insert.
      for move in range(other, count - 1):
        states[move] = states[move + 1]
        used[move] = used[move + 1]
      count -= 1
      break
  place = count
  while place > 0 and _better(state, states[place - 1]):
    place -= 1
  if place == len(states):
    return count
  last = min(count, len(states) - 1)
  for move in range(last, place, -1):
    states[move] = states[move - 1]
    used[move] = used[move - 1]
  states[place] = state
  used[place] = marks
  return min(count + 1, len(states))


@njit
def _matches(text, reference, i, j):
  """2 if words are equal, 1 if their stems are, else 0."""
  if text[2 * i] == reference[2 * j]:
    return 2
  return 1 if text[2 * i + 1] == reference[2 * j + 1] else 0


@njit
def align(text, reference, beam):
  """Returns the equal words, equal stems and chunks of the best alignment.

  Args:
    text: word and stem of each word of the hypothesis, int32 `[2 c]`.
    reference: the same, `[2 r]`.
    beam: partial alignments kept after each word.
  """
  c, r = len(text) // 2, len(reference) // 2
  # For each place of the reference the last word that it could be paired with.
  partner = np.full(r, -1, np.int64)
  for i in range(c):
    for j in range(r):
      if _matches(text, reference, i, j):
        partner[j] = i
  states = np.zeros((beam, 5), np.int64)
  used = np.zeros((beam, r), np.bool_)
  new_states = np.zeros((beam, 5), np.int64)
  new_used = np.zeros((beam, r), np.bool_)
  state = np.zeros(5, np.int64)
  marks = np.zeros(r, np.bool_)
  states[0, _LAST] = -2
  count = 1
  for i in range(c):
    new_count = 0
    for number in range(count):
      # Skipping a word loses a pair if no later word wants its place.
      skip = True
      for j in range(r):
        kind = _matches(text, reference, i, j)
        if kind == 0 or used[number, j]:
          continue
        skip = skip and partner[j] > i
        state[:] = states[number]
        marks[:] = used[number]
        marks[j] = True
        state[_EQUAL if kind == 2 else _STEMS] += 1
        if states[number, _LAST] != j - 1:
          state[_CHUNKS] += 1
        state[_DISTANCE] += abs(i - j)
        state[_LAST] = j
        new_count = _insert(new_states, new_used, new_count, state, marks)
      if skip:
        state[:] = states[number]
        marks[:] = used[number]
        state[_LAST] = -2
        new_count = _insert(new_states, new_used, new_count, state, marks)
    states, new_states = new_states, states
    used, new_used = new_used, used
    count = new_count
  return states[0, _EQUAL], states[0, _STEMS], states[0, _CHUNKS]


@njit
def _sentence_score(row, parameters):
  """METEOR of one sentence, as `score` has it."""
  alpha, beta, gamma, stem, whole = parameters
  equal, stems, chunks, c, r = row
  pairs = equal + stems
  if pairs == 0:
    return 0.0
  precision = (equal + stem * stems) / c
  recall = (equal + stem * stems) / r
  mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
  if whole and chunks == 1 and pairs == c and pairs == r:
    return mean
  return mean * (1 - gamma * (chunks / pairs) ** beta)


@njit
def _kernel(low, high, groups, hypotheses, references, parameters, beam, out):
  sentences, starts, rows = groups
  flat, offsets = hypotheses
  ref_flat, ref_offsets, first = references
  counts = np.zeros(5, np.float64)
  for group in range(low, high):
    begin = first[sentences[group]]
    end = first[sentences[group] + 1]
    for item in range(starts[group], starts[group + 1]):
      row = rows[item]
      text = flat[offsets[row] : offsets[row + 1]]
      best = -1.0
      for index in range(begin, end):
        reference = ref_flat[ref_offsets[index] : ref_offsets[index + 1]]
        counts[0], counts[1], counts[2] = align(text, reference, beam)
        counts[3], counts[4] = len(text) // 2, len(reference) // 2
        value = _sentence_score(counts, parameters)
        if value > best:
          best = value
          out[row] = counts


def statistics(
  references: base.References,
  hypotheses: Ragged,
  sentence: np.ndarray,
  *,
  parameters: MeteorParameters,
  beam: int = BEAM,
  threads: int | None = None,
) -> np.ndarray:
  """Returns METEOR's statistics, float64 `[H, 5]`; see `bleu.statistics`.

  Args:
    references: words with stems, see `base.STEMMED`.
    hypotheses: the same.
    sentence: int `[H]`.
    parameters: they choose among references.
    beam: partial alignments kept after each word.
    threads: see `base.run_kernel`.
  """
  return base.run_kernel(
    _kernel,
    references,
    hypotheses,
    sentence,
    dataclasses.astuple(parameters),
    beam,
    size=5,
    threads=threads,
  )


def score(statistics: Any, *, parameters: MeteorParameters) -> Any:
  """Returns METEOR of statistics `[..., 5]`."""
  xp = base.array_module(statistics)
  equal, stems, chunks, c, r = (statistics[..., n] for n in range(5))
  pairs = equal + stems
  weighted = equal + parameters.stem * stems
  # P R / (alpha P + (1 - alpha) R) = m / (alpha r + (1 - alpha) c).
  mean = base.ratio(
    xp, weighted, parameters.alpha * r + (1 - parameters.alpha) * c
  )
  share = base.ratio(xp, chunks, pairs)
  # Powers below 1 have no slope at 0.
  some = share > 0
  power = xp.where(some, xp.where(some, share, 1.0) ** parameters.beta, 0.0)
  penalty = parameters.gamma * power
  if parameters.whole:
    equals = (chunks == 1) & (pairs == c) & (pairs == r)
    penalty = xp.where(equals, 0.0, penalty)
  return mean * (1 - penalty)


def metric(*, version: str = "1.5") -> base.Metric:
  """Returns METEOR with the parameters of a version.

  Raises:
    InputError: for an unknown version.
  """
  if version not in VERSIONS:
    known = ", ".join(VERSIONS)
    raise InputError(f"no version '{version}' of METEOR; there are: {known}")
  parameters = VERSIONS[version]
  scored = functools.partial(score, parameters=parameters)
  return base.Metric(
    name="meteor",
    size=5,
    higher_is_better=True,
    percent=True,
    unit=base.STEMMED,
    prepare=lambda references: references,
    statistics=functools.partial(statistics, parameters=parameters),
    corpus_score=scored,
    sentence_score=scored,
    settings=(("version", version), ("modules", "exact+stem")),
  )
