"""Sorted runs of counted rules: the currency of the map-reduce.

A shard of sentences becomes one run: its distinct rules (with their links) in
row order, each with its count and, if wanted, the sentences it came from. Runs
merge into runs. At the end the variants of one rule with different links are
one rule, which keeps its most frequent links.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxmt.grammar.extract import packed_rules as rows_lib
from jaxmt.grammar.extract.packed_rules import SEP, Emission
from jaxmt.grammar.table import slice_rows, stack_rows
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class SortedRun:
  """N distinct rows in order.

  Attributes:
    rows: the rules, see `packed_rules`.
    shares: their counts in units of 1 / `packed_rules.COUNT_UNIT`, int64 `[N]`.
    occurrences: how often each was found, int64 `[N]`.
    sentences: where, int32 in N rows; all empty without provenance.
    sentence_shares: the count each of these sentences gave, int64 `[M]`.
  """

  rows: Ragged
  shares: np.ndarray
  occurrences: np.ndarray
  sentences: Ragged
  sentence_shares: np.ndarray

  def __len__(self) -> int:
    return len(self.rows)

  @property
  def nbytes(self) -> int:
    """The memory its arrays take."""
    return sum(array.nbytes for array in to_arrays(self).values())


def to_arrays(run: SortedRun) -> dict[str, np.ndarray]:
  """Returns a run's arrays by name."""
  return {
    "rows": run.rows.flat,
    "row_offsets": run.rows.offsets,
    "shares": run.shares,
    "occurrences": run.occurrences,
    "sentences": run.sentences.flat,
    "sentence_offsets": run.sentences.offsets,
    "sentence_shares": run.sentence_shares,
  }


def from_arrays(arrays: dict[str, np.ndarray]) -> SortedRun:
  """Returns the run with the arrays that `to_arrays` gave."""
  return SortedRun(
    rows=Ragged(flat=arrays["rows"], offsets=arrays["row_offsets"]),
    shares=arrays["shares"],
    occurrences=arrays["occurrences"],
    sentences=Ragged(
      flat=arrays["sentences"], offsets=arrays["sentence_offsets"]
    ),
    sentence_shares=arrays["sentence_shares"],
  )


def make_run(emission: Emission, *, provenance: bool) -> SortedRun:
  """Counts rule occurrences.

  Args:
    emission: occurrences; sentences must not fall.
    provenance: keep the sentences.
  """
  ids, first = rows_lib.group(emission.rows)
  distinct = rows_lib.take(emission.rows, first)
  order = rows_lib.sort_rows(
    distinct.flat, distinct.offsets, np.zeros(0, np.int64)
  )
  rank = np.empty(len(order), np.int32)
  rank[order] = np.arange(len(order))
  ids = rank[ids]
  if provenance:
    offsets, sentences, parts = _by_row(
      ids, emission.sentences, emission.shares, len(order)
    )
  else:
    offsets = np.zeros(len(order) + 1, np.int64)
    sentences, parts = np.zeros(0, np.int32), np.zeros(0, np.int64)
  return SortedRun(
    rows=rows_lib.take(distinct, order),
    shares=_tally(ids, emission.shares, len(order)),
    occurrences=np.bincount(ids, minlength=len(order)),
    sentences=Ragged(flat=sentences, offsets=offsets),
    sentence_shares=parts,
  )


@njit
def _tally(ids, shares, size):
  """Sums of int64 shares per id (bincount would sum as floats)."""
  total = np.zeros(size, np.int64)
  for item in range(len(ids)):
    total[ids[item]] += shares[item]
  return total


@njit
def _by_row(ids, sentences, shares, size):
  """The (sentence, share) pairs of each row, one per sentence."""
  last = np.full(size, -1, np.int32)
  offsets = np.zeros(size + 1, np.int64)
  for item in range(len(ids)):
    row = ids[item]
    if last[row] != sentences[item]:
      last[row] = sentences[item]
      offsets[row + 1] += 1
  for row in range(size):
    offsets[row + 1] += offsets[row]
  ends = offsets[:-1].copy()
  owners = np.empty(offsets[size], np.int32)
  parts = np.zeros(offsets[size], np.int64)
  for item in range(len(ids)):
    row = ids[item]
    if ends[row] == offsets[row] or owners[ends[row] - 1] != sentences[item]:
      owners[ends[row]] = sentences[item]
      ends[row] += 1
    parts[ends[row] - 1] += shares[item]
  return offsets, owners, parts


def slice_run(run: SortedRun, start: int, stop: int) -> SortedRun:
  """Returns rows `start` to `stop` of a run, without copying their data."""
  sentences = slice_rows(run.sentences, start, stop)
  first = run.sentences.offsets[start]
  last = run.sentences.offsets[stop]
  return SortedRun(
    rows=slice_rows(run.rows, start, stop),
    shares=run.shares[start:stop],
    occurrences=run.occurrences[start:stop],
    sentences=sentences,
    sentence_shares=run.sentence_shares[first:last],
  )


def merge(runs: Sequence[SortedRun]) -> SortedRun:
  """Merges runs into one; equal rows add up. Needs at least one run."""
  if len(runs) == 1:
    return runs[0]
  bounds = row_offsets([len(run) for run in runs])
  rows = stack_rows([run.rows for run in runs])
  order = rows_lib.sort_rows(rows.flat, rows.offsets, bounds)
  starts = _group_starts(rows.flat, rows.offsets, order, False)
  sentences = stack_rows([run.sentences for run in runs])
  parts = np.concatenate([run.sentence_shares for run in runs])
  # The same selection for both arrays of (sentence, share) pairs.
  parts = rows_lib.take(Ragged(flat=parts, offsets=sentences.offsets), order)
  sentences = rows_lib.take(sentences, order)
  return SortedRun(
    rows=rows_lib.take(rows, order[starts[:-1]]),
    shares=_sums([run.shares for run in runs], order, starts),
    occurrences=_sums([run.occurrences for run in runs], order, starts),
    sentences=Ragged(flat=sentences.flat, offsets=sentences.offsets[starts]),
    sentence_shares=parts.flat,
  )


def _sums(parts, order, starts) -> np.ndarray:
  if len(order) == 0:
    return np.zeros(0, np.int64)
  return np.add.reduceat(np.concatenate(parts)[order], starts[:-1])


def settle(run: SortedRun, *, min_count: int = 1) -> SortedRun:
  """Makes the variants of a rule with different links one rule.

  The most frequent links stay, of equally frequent ones the first in order.

  Args:
    run: all rows of the rules in it.
    min_count: rules found less often go, unless they translate one word by
      one word.
  """
  order = np.arange(len(run))
  starts = _group_starts(run.rows.flat, run.rows.offsets, order, True)
  best = _best(starts, run.shares)
  totals = _sums([run.occurrences], order, starts)
  keep = (totals >= min_count) | _word_pairs(
    run.rows.flat, run.rows.offsets, best
  )
  chosen = np.flatnonzero(keep)
  whole = Ragged(flat=run.sentences.flat, offsets=run.sentences.offsets[starts])
  parts = Ragged(flat=run.sentence_shares, offsets=whole.offsets)
  return SortedRun(
    rows=rows_lib.take(run.rows, best[chosen]),
    shares=_sums([run.shares], order, starts)[chosen],
    occurrences=totals[chosen],
    sentences=rows_lib.take(whole, chosen),
    sentence_shares=rows_lib.take(parts, chosen).flat,
  )


@njit
def _group_starts(flat, offsets, order, ignore_links):
  """Where in `order` each group of equal rows starts, then the end."""
  starts = np.empty(len(order) + 1, np.int64)
  groups = 0
  for item in range(len(order)):
    if item == 0 or not _equal(
      flat, offsets, order[item - 1], order[item], ignore_links
    ):
      starts[groups] = item
      groups += 1
  starts[groups] = len(order)
  return starts[: groups + 1].copy()


@njit
def _equal(flat, offsets, left, right, ignore_links):
  one = offsets[left]
  other = offsets[right]
  size = offsets[left + 1] - one
  if not ignore_links and offsets[right + 1] - other != size:
    return False
  fields = 0
  for place in range(size):
    # Both rows have three SEP, so this stays inside the other row.
    if flat[one + place] != flat[other + place]:
      return False
    if flat[one + place] == SEP:
      fields += 1
      if fields == 3 and ignore_links:
        return True
  return True


@njit
def _best(starts, shares):
  """The first row with the largest share of each group."""
  best = np.empty(len(starts) - 1, np.int64)
  for number in range(len(best)):
    best[number] = starts[number]
    for row in range(starts[number] + 1, starts[number + 1]):
      if shares[row] > shares[best[number]]:
        best[number] = row
  return best


@njit
def _word_pairs(flat, offsets, chosen):
  """Whether each of the chosen rows is one word for one word."""
  answer = np.zeros(len(chosen), np.bool_)
  for number in range(len(chosen)):
    start = offsets[chosen[number]]
    answer[number] = (
      flat[start] >= 0
      and flat[start + 1] == SEP
      and flat[start + 2] >= 0
      and flat[start + 3] == SEP
    )
  return answer


@njit
def lower_bound(flat, offsets, key):
  """Returns the first row that is not before the int32 sequence `key`."""
  low = 0
  high = len(offsets) - 1
  while low < high:
    middle = (low + high) // 2
    start = offsets[middle]
    size = offsets[middle + 1] - start
    before = size < len(key)
    for place in range(min(size, len(key))):
      if flat[start + place] != key[place]:
        before = flat[start + place] < key[place]
        break
    if before:
      low = middle + 1
    else:
      high = middle
  return low
