"""Translation edit rate (Snover et al., 2006) as tercom and sacreBLEU count it.

Edits are insertions, deletions, substitutions and shifts of word blocks. The
shifts are found greedily: as long as some shift of a block that also stands in
the reference lowers the edit distance, the best one is made. What limits and
orders the candidates (block length 10, distance 50, 1,000 candidates, edit
distance in a band of 25 around the diagonal) decides the outcome, so it is
followed to the letter; tests compare with sacreBLEU.

How it is made fast: hypothesis words enter as 64-bit masks of the reference
positions they match. The plain edit distance of a candidate is then computed
one machine word per column, from the first word the shift moved. Where it could
differ from the banded distance it is at least `_band_margin`; only then, and
for references over 64 words, the band is computed cell by cell.

Statistics, S = 2: `edits, reference length` (fewest over references; mean).
"""

import math
from typing import NamedTuple

import numpy as np

from jaxmt.metrics import base, edits
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

MAX_BLOCK = 10
MAX_DISTANCE = 50
MAX_CANDIDATES = 1000
BAND = 25

_NOTHING, _SUBSTITUTE, _DELETE, _INSERT = 0, 1, 2, 3
_INFINITE = np.int32(1 << 29)
_UNBOUNDED = np.int64(1 << 40)


class _Work(NamedTuple):
  """Room for one pair of hypothesis (n words) and reference (m words)."""

  words: np.ndarray  # the hypothesis with the shifts made so far, int32 [n]
  moved: np.ndarray  # a candidate, int32 [n]
  masks: np.ndarray  # reference positions equal to each word, uint64 [n]
  moved_masks: np.ndarray  # the same for the candidate, uint64 [n]
  plus: np.ndarray  # bit-parallel columns after each word, uint64 [n + 1]
  minus: np.ndarray  # uint64 [n + 1]
  distance: np.ndarray  # distance to the whole reference, int64 [n + 1]
  cost: np.ndarray  # banded edit distance, int32 [n + 1, m + 1]
  operation: np.ndarray  # what led to each cell, int8 [n + 1, m + 1]
  trial_cost: np.ndarray  # the same two for a candidate
  trial_operation: np.ndarray
  partner: np.ndarray  # hypothesis position of each reference word, int64 [m]
  wrong: np.ndarray  # running count of wrong hypothesis words, int64 [n + 1]
  missed: np.ndarray  # running count of wrong reference words, int64 [m + 1]


@njit
def _allocate(n, m):
  return _Work(
    np.empty(n, np.int32),
    np.empty(n, np.int32),
    np.empty(n, np.uint64),
    np.empty(n, np.uint64),
    np.empty(n + 1, np.uint64),
    np.empty(n + 1, np.uint64),
    np.empty(n + 1, np.int64),
    np.empty((n + 1, m + 1), np.int32),
    np.empty((n + 1, m + 1), np.int8),
    np.empty((n + 1, m + 1), np.int32),
    np.empty((n + 1, m + 1), np.int8),
    np.empty(m, np.int64),
    np.empty(n + 1, np.int64),
    np.empty(m + 1, np.int64),
  )


@njit
def _band(row, n, m):
  """The columns `[low, high)` the edit distance looks at in a row."""
  if m < BAND:
    return 0, m + 1
  slope = m / n
  width = BAND
  if BAND < slope / 2:
    width = math.ceil(slope / 2 + BAND)
  diagonal = math.floor(row * slope)
  low = max(0, diagonal - width)
  high = min(m + 1, diagonal + width)
  return low, (m + 1 if row == n else high)


@njit
def _band_margin(n, m):
  """No alignment with fewer edits than this leaves the band.

  A path through cell (i, j) costs at least |j - i| + |(m - j) - (n - i)|. That
  is smallest at the diagonal, so the cells next to the band decide.
  """
  margin = _UNBOUNDED
  if m < BAND:
    return margin
  for row in range(1, n + 1):
    low, high = _band(row, n, m)
    if low > 0:
      margin = min(margin, abs(low - 1 - row) + abs(m - low + 1 - n + row))
    if high <= m:
      margin = min(margin, abs(high - row) + abs(m - high - n + row))
  return margin


@njit
def _fill(words, n, reference, cost, operation, start):
  """Computes the banded edit distance from row `start + 1` on.

  Ties prefer keeping or substituting, then deleting, then inserting.
  """
  m = len(reference)
  if start == 0:
    for column in range(m + 1):
      cost[0, column] = column
      operation[0, column] = _INSERT
  for row in range(start + 1, n + 1):
    low, high = _band(row, n, m)
    for column in range(m + 1):
      cost[row, column] = _INFINITE
    for column in range(low, high):
      if column == 0:
        best = cost[row - 1, 0] + 1
        what = _DELETE
      else:
        best = _INFINITE
        what = _NOTHING
        differs = words[row - 1] != reference[column - 1]
        value = cost[row - 1, column - 1] + differs
        if best > value:
          best = value
          what = _SUBSTITUTE if differs else _NOTHING
        value = cost[row - 1, column] + 1
        if best > value:
          best = value
          what = _DELETE
        value = cost[row, column - 1] + 1
        if best > value:
          best = value
          what = _INSERT
      cost[row, column] = best
      operation[row, column] = what
  return np.int64(cost[n, m])


@njit
def _align(work, n, m):
  """Walks back through the operations: partners and running error counts."""
  operation, partner = work.operation, work.partner
  wrong, missed = work.wrong, work.missed
  wrong[0] = 0
  missed[0] = 0
  row, column = n, m
  while row > 0 or column > 0:
    what = operation[row, column]
    if what == _DELETE:
      wrong[row] = 1
      row -= 1
      continue
    partner[column - 1] = row - 1
    missed[column] = what != _NOTHING
    column -= 1
    if what != _INSERT:
      wrong[row] = what != _NOTHING
      row -= 1
  for position in range(n):
    wrong[position + 1] += wrong[position]
  for position in range(m):
    missed[position + 1] += missed[position]


@njit
def _columns(work, start, n, m):
  """Bit-parallel columns of `work.words` from word `start` on."""
  masks, distance = work.masks, work.distance
  plus, minus = work.plus, work.minus
  last = np.uint64(m - 1)
  if start == 0:
    plus[0] = ~np.uint64(0)
    minus[0] = np.uint64(0)
    distance[0] = m
  for row in range(start, n):
    plus[row + 1], minus[row + 1], grew, fell = edits.step(
      masks[row], plus[row], minus[row]
    )
    distance[row + 1] = (
      distance[row]
      + np.int64((grew >> last) & np.uint64(1))
      - np.int64((fell >> last) & np.uint64(1))
    )


@njit
def _shift(items, out, n, start, length, target):
  """Moves `items[start : start + length]` to `target`, writing `out`.

  Only positions from `min(start, target)` on are written: those before do not
  change. A target inside or right after the block counts from the block's end.
  """
  position = min(start, target)
  if target < start:
    after = start
  elif target > start + length:
    after = target
  else:
    after = min(length + target, n)
  if target >= start:
    for item in range(start + length, after):
      out[position] = items[item]
      position += 1
  for item in range(start, start + length):
    out[position] = items[item]
    position += 1
  if target < start:
    for item in range(target, start):
      out[position] = items[item]
      position += 1
    after = start + length
  for item in range(after, n):
    out[position] = items[item]
    position += 1


@njit
def _candidate_cost(work, n, reference, start, length, target, margin):
  """The banded edit distance after a shift."""
  m = len(reference)
  changed = min(start, target)
  if m <= edits.WORD_BITS:
    masks = work.moved_masks
    _shift(work.masks, masks, n, start, length, target)
    last = np.uint64(m - 1)
    plus = work.plus[changed]
    minus = work.minus[changed]
    distance = work.distance[changed]
    for row in range(changed, n):
      plus, minus, grew, fell = edits.step(masks[row], plus, minus)
      distance += np.int64((grew >> last) & np.uint64(1))
      distance -= np.int64((fell >> last) & np.uint64(1))
    if distance < margin:
      return distance
  _shift(work.words, work.moved, n, start, length, target)
  for column in range(m + 1):
    work.trial_cost[changed, column] = work.cost[changed, column]
  return _fill(
    work.moved, n, reference, work.trial_cost, work.trial_operation, changed
  )


@njit
def _best_shift(work, n, reference, before, checked, margin):
  """Tries all shifts of blocks that also stand in the reference.

  Returns:
    `(gain, length, start, target, checked)`: the shift with the largest gain;
    ties go to the longest block, then the earliest, then the earliest target.
  """
  m = len(reference)
  words, partner = work.words, work.partner
  wrong, missed = work.wrong, work.missed
  best_gain = np.int64(-(1 << 40))
  best_length = best_start = best_target = np.int64(0)
  for start in range(n):
    first = max(0, start - MAX_DISTANCE)
    for place in range(first, min(m, start + MAX_DISTANCE + 1)):
      longest = min(MAX_BLOCK, n - start, m - place)
      length = 0
      while (
        length < longest and words[start + length] == reference[place + length]
      ):
        length += 1
        # Both sides must have an error there, and the block must not already
        # stand where it would go.
        if (
          wrong[start + length] == wrong[start]
          or missed[place + length] == missed[place]
          or start <= partner[place] < start + length
        ):
          continue
        tried = np.int64(-1)
        for offset in range(-1, length):
          target = np.int64(0)
          if place + offset >= 0:
            target = partner[place + offset] + 1
          if target == tried:
            continue
          tried = target
          gain = before - _candidate_cost(
            work, n, reference, start, length, target, margin
          )
          checked += 1
          if (gain, length, -start, -target) > (
            best_gain,
            best_length,
            -best_start,
            -best_target,
          ):
            best_gain = gain
            best_length = np.int64(length)
            best_start = np.int64(start)
            best_target = target
        if checked >= MAX_CANDIDATES:
          return best_gain, best_length, best_start, best_target, checked
  return best_gain, best_length, best_start, best_target, checked


@njit
def _edits(hypothesis, reference, work):
  """Returns shifts made plus the edit distance that is left."""
  n, m = len(hypothesis), len(reference)
  if n == 0 or m == 0:
    return np.int64(n + m)
  words, moved = work.words, work.moved
  masks, moved_masks = work.masks, work.moved_masks
  bits = m <= edits.WORD_BITS
  for row in range(n):
    words[row] = hypothesis[row]
    if bits:
      masks[row] = edits.equal_bits(hypothesis[row], reference)
  margin = _band_margin(n, m) if bits else np.int64(0)
  shifts = checked = np.int64(0)
  changed = np.int64(0)
  while True:
    before = _fill(words, n, reference, work.cost, work.operation, changed)
    if before == 0:
      return shifts
    _align(work, n, m)
    if bits:
      _columns(work, changed, n, m)
    gain, length, start, target, checked = _best_shift(
      work, n, reference, before, checked, margin
    )
    if checked >= MAX_CANDIDATES or gain <= 0:
      return shifts + before
    shifts += 1
    changed = min(start, target)
    _shift(words, moved, n, start, length, target)
    for row in range(changed, n):
      words[row] = moved[row]
    if bits:
      _shift(masks, moved_masks, n, start, length, target)
      for row in range(changed, n):
        masks[row] = moved_masks[row]


@njit
def _kernel(low, high, groups, hypotheses, references, out):
  sentences, starts, rows = groups
  flat, offsets = hypotheses
  ref_flat, ref_offsets, first = references
  room_n = room_m = np.int64(32)
  work = _allocate(room_n, room_m)
  for group in range(low, high):
    begin = first[sentences[group]]
    end = first[sentences[group] + 1]
    words = ref_offsets[end] - ref_offsets[begin]
    for item in range(starts[group], starts[group + 1]):
      row = rows[item]
      text = flat[offsets[row] : offsets[row + 1]]
      best = np.int64(1 << 62)
      for index in range(begin, end):
        reference = ref_flat[ref_offsets[index] : ref_offsets[index + 1]]
        if len(text) > room_n or len(reference) > room_m:
          room_n = max(room_n, len(text))
          room_m = max(room_m, len(reference))
          work = _allocate(room_n, room_m)
        best = min(best, _edits(text, reference, work))
      out[row, 0] = best
      out[row, 1] = words / (end - begin)


def statistics(
  references: base.References,
  hypotheses: Ragged,
  sentence: np.ndarray,
  *,
  threads: int | None = None,
) -> np.ndarray:
  """Returns TER's statistics, float64 `[H, 2]`; see `bleu.statistics`."""
  return base.run_kernel(
    _kernel, references, hypotheses, sentence, size=2, threads=threads
  )


def metric() -> base.Metric:
  """Returns TER; how the text is tokenised is the caller's choice."""
  return base.Metric(
    name="ter",
    size=2,
    higher_is_better=False,
    percent=True,
    unit=base.WORD,
    prepare=lambda references: references,
    statistics=statistics,
    corpus_score=edits.score,
    sentence_score=edits.score,
  )
