"""Counting rules as a map-reduce over shards of sentences.

Map: an extractor turns a shard into rule occurrences, which become a sorted
run. Runs that outgrow the memory budget are merged and spilled to disk. Reduce:
the range of source sides is cut into parts; each part takes its slice of every
run, merges them and settles its rules. Parts come out in row order, so laid end
to end they are the whole sorted grammar. Counts are whole multiples of 1 /
`packed_rules.COUNT_UNIT`: the result has the same bits for any shards, workers,
budget and runner.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from jaxmt.grammar import lexical
from jaxmt.grammar.extract import sorted_runs
from jaxmt.grammar.extract.packed_rules import Emission, field_end
from jaxmt.grammar.extract.sorted_runs import SortedRun
from jaxmt.grammar.lexical import PairCounts
from jaxmt.grammar.table import LABELS, slice_rows
from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.runner import Runner
from jaxmt.text import array_folder
from jaxmt.text import trees as tree_lib
from jaxmt.text.ragged import Ragged
from jaxmt.text.trees import Trees

_TOKENS_PER_SHARD = 12_000
_BYTES_PER_TOKEN = 16_384  # a generous estimate of what mapping a word takes
_SAMPLES = 256
_PAIRS_WAITING = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignedShard:
  """B word-aligned sentence pairs.

  Attributes:
    first: the number of the first sentence in the corpus.
    source: source word ids, int32, B rows.
    target: target word ids, int32, B rows.
    links: (source, target) positions, int32 `[L, 2]` in B rows, sorted.
    trees: source trees, if there are any; B trees whose label ids are those
      of the table to be made.
  """

  first: int
  source: Ragged
  target: Ragged
  links: Ragged
  trees: Trees | None = None


Extractor = Callable[[AlignedShard], Emission]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CountOptions:
  """How rules are counted.

  Attributes:
    min_count: rules found less often go, except one word for one word.
    provenance: keep the sentences each rule came from.
    memory: budget in bytes for runs in memory; beyond it they are spilled.
    spill: an existing folder for spilled runs; without it nothing is spilled.
  """

  min_count: int = 1
  provenance: bool = False
  memory: int = 1 << 30
  spill: str | None = None


def tokens_per_shard(*, memory: int, workers: int) -> int:
  """Returns how many source words a shard may have under a budget."""
  fitting = memory // (_BYTES_PER_TOKEN * (workers + 1))
  return int(min(_TOKENS_PER_SHARD, max(fitting, 200)))


def split(
  source: Ragged,
  target: Ragged,
  links: Ragged,
  *,
  trees: Trees | None = None,
  tokens: int = _TOKENS_PER_SHARD,
  first: int = 0,
) -> Iterator[AlignedShard]:
  """Cuts sentence pairs into shards of about `tokens` source words."""
  start = 0
  while start < len(source):
    limit = source.offsets[start] + tokens
    stop = int(np.searchsorted(source.offsets, limit, side="right")) - 1
    stop = min(max(stop, start + 1), len(source))
    yield AlignedShard(
      first=first + start,
      source=slice_rows(source, start, stop),
      target=slice_rows(target, start, stop),
      links=slice_rows(links, start, stop),
      trees=None
      if trees is None
      else tree_lib.select(trees, np.arange(start, stop)),
    )
    start = stop


def table_labels(names: Iterable[str]) -> tuple[str, ...]:
  """Returns the labels of a table with trees: those it needs, then by name."""
  return (*LABELS, *sorted(set(names).difference(LABELS)))


def relabel(trees: Trees, labels: Sequence[str]) -> Trees:
  """Returns the trees with the label ids of a table."""
  index = {label: number for number, label in enumerate(labels)}
  numbers = np.array([index[label] for label in trees.labels], np.int32)
  return dataclasses.replace(
    trees, labels=tuple(labels), label=numbers[trees.label]
  )


def map_shard(
  shard: AlignedShard, *, extractors: Sequence[Extractor], provenance: bool
) -> tuple[SortedRun, PairCounts]:
  """Counts the rules and the linked words of one shard."""
  runs = [
    sorted_runs.make_run(extractor(shard), provenance=provenance)
    for extractor in extractors
  ]
  pairs = lexical.count_pairs(shard.source, shard.target, shard.links)
  return sorted_runs.merge(runs), pairs


def count_rules(
  shards: Iterable[AlignedShard],
  extractors: Sequence[Extractor],
  *,
  options: CountOptions,
  runner: Runner,
) -> tuple[Iterator[SortedRun], PairCounts]:
  """Counts the rules of a corpus.

  Args:
    shards: the corpus; read once, in order.
    extractors: what finds rules in a shard; pure functions.
    options: how to count.
    runner: where shards are worked on.

  Returns:
    `(parts, pairs)`: settled runs that, end to end, hold every rule in row
    order, to be taken one after the other; and the counts of linked words.
  """
  work = functools.partial(
    map_shard, extractors=tuple(extractors), provenance=options.provenance
  )
  store = _RunStore(options)
  pairs = [lexical.no_pairs()]
  for run, counted in runner_lib.map_shards(work, shards, runner=runner):
    store.add(run)
    pairs.append(counted)
    if sum(map(len, pairs[1:])) > len(pairs[0]) + _PAIRS_WAITING:
      pairs = [lexical.add_pairs(pairs)]
  parts = _cut(
    store.all_runs(), _number_of_parts(store.nbytes, options, runner)
  )
  settle = functools.partial(_reduce_part, min_count=options.min_count)
  return runner_lib.map_shards(settle, parts, runner=runner), lexical.add_pairs(
    pairs
  )


def _number_of_parts(nbytes: int, options: CountOptions, runner: Runner) -> int:
  size = max(options.memory // (8 * (runner.workers + 1)), 1)
  return max(-(-nbytes // size), 2 * runner.workers)


def _reduce_part(slices: Sequence[SortedRun], *, min_count: int) -> SortedRun:
  return sorted_runs.settle(sorted_runs.merge(slices), min_count=min_count)


class _RunStore:
  """Runs in memory, up to a quarter of the budget, and on disk beyond it."""

  def __init__(self, options: CountOptions):
    self._options = options
    self._pending: list[SortedRun] = []
    self._pending_bytes = 0
    self._spilled: list[SortedRun] = []
    self.nbytes = 0

  def add(self, run: SortedRun) -> None:
    self._pending.append(run)
    self._pending_bytes += run.nbytes
    self.nbytes += run.nbytes
    limit = self._options.memory // 4
    if self._options.spill is not None and self._pending_bytes > limit:
      arrays = array_folder.spill(
        self._options.spill,
        f"run{len(self._spilled):05}",
        sorted_runs.to_arrays(sorted_runs.merge(self._pending)),
      )
      self._spilled.append(sorted_runs.from_arrays(arrays))
      self._pending, self._pending_bytes = [], 0

  def all_runs(self) -> list[SortedRun]:
    return self._spilled + self._pending


def _cut(
  all_runs: Sequence[SortedRun], parts: int
) -> Iterator[list[SortedRun]]:
  """Cuts runs at common source sides into slices that belong together."""
  filled = [run for run in all_runs if len(run)]
  if not filled:
    return
  keys = _splitters(filled, parts)
  starts = [0] * len(filled)
  for key in [*keys, None]:
    stops = [len(run) if key is None else _find(run, key) for run in filled]
    pieces = [
      sorted_runs.slice_run(run, start, stop)
      for run, start, stop in zip(filled, starts, stops, strict=True)
      if stop > start
    ]
    starts = stops
    if pieces:
      yield pieces


def _find(run: SortedRun, key: np.ndarray) -> int:
  return int(sorted_runs.lower_bound(run.rows.flat, run.rows.offsets, key))


def _splitters(filled: Sequence[SortedRun], parts: int) -> list[np.ndarray]:
  """Source sides (with their SEP) that cut the runs into about equal parts.

  Each run gives evenly spaced samples; where the cuts are does not change what
  comes out.
  """
  samples = []
  for run in filled:
    for row in np.linspace(0, len(run) - 1, min(len(run), _SAMPLES)).astype(
      int
    ):
      start = run.rows.offsets[row]
      end = field_end(run.rows.flat, start)
      weight = len(run) / min(len(run), _SAMPLES)
      samples.append((tuple(run.rows.flat[start : end + 1].tolist()), weight))
  samples.sort()
  total = sum(weight for _, weight in samples)
  keys: list[tuple[int, ...]] = []
  passed = 0.0
  for key, weight in samples:
    passed += weight
    if passed >= total * (len(keys) + 1) / parts and key not in keys[-1:]:
      keys.append(key)
  return [np.array(key, np.int32) for key in keys]
