"""Static features of a sorted table, in blocks, in bounded memory.

In the order of packed rules (`packed_rules.py`) rules with the same source side
are neighbours, and so are those with the same pair of sides, so sums over these
need no table. Sums over target sides go through a hash table of 128-bit
fingerprints. When it would outgrow the memory budget, the work is done in
several passes, each for a part of the fingerprints. The results equal those of
`estimate.py`, which serves any table and any counts, up to rounding.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np

from jaxmt.align.lexical_table import LexicalTable
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import static_features
from jaxmt.grammar.extract.static_features import (
  CorpusCounts,
  StaticFeature,
  Sums,
  borders,
  takes_part,
)
from jaxmt.grammar.table import RuleTable
from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.runner import Runner
from jaxmt.text.array_folder import Allocate, in_memory
from jaxmt.text.kernels import GOLDEN, mixed, njit

_SLOT_BYTES = 32
_FIRST_SLOTS = 1 << 10


def score(
  table: RuleTable,
  features: Sequence[StaticFeature],
  lexicon: LexicalTable,
  *,
  bounds: np.ndarray,
  alpha: float,
  memory: int,
  runner: Runner,
  allocate: Allocate = in_memory,
) -> Iterator[np.ndarray]:
  """Yields the columns of some static features, block by block.

  Args:
    table: R rules with counts, Hiero and tree-to-string rules sorted by rows.
    features: the static features.
    lexicon: word translation probabilities.
    bounds: where blocks end: `0, ..., R`, int64; none parts two rules with the
      same source side. A block has either only rules that take part in the
      estimation, or none.
    alpha: of add-alpha smoothing.
    memory: budget in bytes for sums over target sides.
    runner: where to work (threads of this process, if on Ray).
    allocate: makes arrays of a few numbers a rule.

  Yields:
    float32 `[n, F]`, one array for each block.
  """
  work = functools.partial(
    _score_block,
    table=table,
    features=features,
    corpus=CorpusCounts(
      sums=sum_up(table, bounds=bounds, memory=memory, allocate=allocate),
      lexicon=lexicon,
      alpha=alpha,
    ),
  )
  blocks = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
  local = Runner(workers=runner.workers)
  yield from runner_lib.map_shards(work, blocks, runner=local)


def _score_block(
  block: tuple[int, int],
  *,
  table: RuleTable,
  features: Sequence[StaticFeature],
  corpus: CorpusCounts,
) -> np.ndarray:
  """The columns of the rules from `block[0]` to `block[1]`."""
  start, stop = block
  sums = {
    name: getattr(corpus.sums, name)[start:stop]
    for name in ("target", "target_rules", "target_pairs")
  }
  return static_features.block_values(
    features,
    table_lib.slice_table(table, start, stop),
    dataclasses.replace(corpus, sums=dataclasses.replace(corpus.sums, **sums)),
  )


def sum_up(
  table: RuleTable, *, bounds: np.ndarray, memory: int, allocate: Allocate
) -> Sums:
  """Sums counts over left-hand and target sides; see `score`."""
  size = len(table)
  passes = max(1, -(-size * 2 * _SLOT_BYTES // max(memory, 1)))
  # A pass reads the whole table: there is no point in hundreds of them.
  passes = min(passes, 64)
  sums = Sums(
    lhs=np.zeros(len(table.labels)),
    lhs_rules=np.zeros(len(table.labels), np.int64),
    target=allocate("target", size, np.float64),
    target_rules=allocate("target_rules", size, np.int32),
    target_pairs=allocate("target_pairs", size, np.int32),
  )
  blocks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
  blocks = [
    (start, stop)
    for start, stop in blocks
    if takes_part(table_lib.slice_table(table, start, stop))
  ]
  for start, stop in blocks:
    lhs = table.lhs[start:stop]
    width = len(table.labels)
    sums.lhs[:] += np.bincount(lhs, table.counts[start:stop], minlength=width)
    sums.lhs_rules[:] += np.bincount(lhs, minlength=width)
  for number in range(passes):
    _one_pass(table, blocks, number, passes, sums)
  return sums


def _one_pass(table, blocks, number: int, passes: int, sums: Sums) -> None:
  """Sums over the target sides whose fingerprints fall to this pass."""
  slots = _empty_slots(_FIRST_SLOTS)
  used = 0
  for start, stop in blocks:
    part = table_lib.slice_table(table, start, stop)
    slots = _with_room(slots, used, used + stop - start)
    _, new_pair = borders(part)
    used += _add(
      slots, _fingerprints(part), part.counts, new_pair, number, passes
    )
  for start, stop in blocks:
    part = table_lib.slice_table(table, start, stop)
    _find(
      slots,
      _fingerprints(part),
      sums.target[start:stop],
      sums.target_rules[start:stop],
      sums.target_pairs[start:stop],
      number,
      passes,
    )


def _empty_slots(size: int):
  """Fingerprints, counts, numbers of rules (0: free) and of pairs."""
  return (
    np.zeros((size, 2), np.uint64),
    np.zeros(size, np.float64),
    np.zeros(size, np.int32),
    np.zeros(size, np.int32),
  )


def _with_room(slots, used: int, needed: int):
  """The same slots, or twice or more as many if they could get too full."""
  size = len(slots[1])
  if 3 * needed <= 2 * size:
    return slots
  # Most of what comes is known already: double, and only what is needed.
  while 3 * needed > 2 * size:
    size *= 2
  larger = _empty_slots(size)
  _move(slots, larger)
  return larger


def _fingerprints(part: RuleTable) -> np.ndarray:
  """128 bits for each target side with its labels, uint64 `[n, 2]`."""
  source, target = part.source, part.target
  return _hash_targets(source.flat, source.offsets, target.flat, target.offsets)


@njit
def _hash_targets(source, source_offsets, target, target_offsets):
  out = np.empty((len(target_offsets) - 1, 2), np.uint64)
  longest = 1
  for row in range(len(out)):
    longest = max(longest, source_offsets[row + 1] - source_offsets[row])
  labels = np.zeros(longest, np.int64)
  for row in range(len(out)):
    sites = 0
    for place in range(source_offsets[row], source_offsets[row + 1]):
      if source[place] < 0:
        labels[sites] = -1 - np.int64(source[place])
        sites += 1
    one = GOLDEN
    two = np.uint64(0xC2B2AE3D27D4EB4F)
    for place in range(target_offsets[row], target_offsets[row + 1]):
      symbol = np.int64(target[place])
      code = np.uint64(2 * symbol)
      if symbol < 0:
        site = -1 - symbol
        code = np.uint64((labels[site] << 32) + 2 * site + 1)
      one = mixed(one ^ (code + GOLDEN))
      two = mixed(two * np.uint64(0x9FB21C651E98DF25) + code + np.uint64(1))
    out[row, 0] = one
    out[row, 1] = two
  return out


@njit
def _place(keys, rules, one, two):
  """The slot that has a fingerprint, or the free one it would take."""
  mask = np.uint64(len(rules) - 1)
  slot = two & mask
  while rules[slot] and (keys[slot, 0] != one or keys[slot, 1] != two):
    slot = (slot + np.uint64(1)) & mask
  return slot


@njit
def _move(slots, larger):
  """Copies what is in some slots to empty ones."""
  keys, sums, rules, pairs = slots
  new_keys, new_sums, new_rules, new_pairs = larger
  for old in range(len(rules)):
    if rules[old]:
      slot = _place(new_keys, new_rules, keys[old, 0], keys[old, 1])
      new_keys[slot] = keys[old]
      new_sums[slot] = sums[old]
      new_rules[slot] = rules[old]
      new_pairs[slot] = pairs[old]


@njit
def _add(slots, prints, counts, new_pair, number, passes):
  """Adds rules to the sums of their target sides; returns the new sides."""
  keys, sums, rules, pairs = slots
  count = 0
  for row in range(len(prints)):
    one, two = prints[row, 0], prints[row, 1]
    if one % np.uint64(passes) != np.uint64(number):
      continue
    slot = _place(keys, rules, one, two)
    if rules[slot] == 0:
      keys[slot, 0] = one
      keys[slot, 1] = two
      count += 1
    sums[slot] += counts[row]
    rules[slot] += 1
    pairs[slot] += new_pair[row]
  return count


@njit
def _find(slots, prints, out_sums, out_rules, out_pairs, number, passes):
  """Gives each rule the sums of its target side."""
  keys, sums, rules, pairs = slots
  for row in range(len(prints)):
    one, two = prints[row, 0], prints[row, 1]
    if one % np.uint64(passes) == np.uint64(number):
      slot = _place(keys, rules, one, two)
      out_sums[row] = sums[slot]
      out_rules[row] = rules[slot]
      out_pairs[row] = pairs[slot]
