"""From a word-aligned corpus to a scored rule table.

Extractors find rules (`hiero.py`, `ghkm.py`), `shards.py` counts them, and here
they become a table with its static features (`static_features.py`); glue and
pass-through rules come last.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np

from jaxmt.grammar import lexical, native
from jaxmt.grammar import provenance as provenance_lib
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import (
  hiero,
  packed_rules,
  shards,
  static_features,
  streaming_features,
)
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT, Emission
from jaxmt.grammar.extract.shards import AlignedShard, CountOptions, Extractor
from jaxmt.grammar.extract.sorted_runs import SortedRun
from jaxmt.grammar.extract.static_features import StaticFeature
from jaxmt.grammar.lexical import PairCounts
from jaxmt.grammar.provenance import Provenance
from jaxmt.grammar.table import LABELS, RuleTable
from jaxmt.runtime.runner import Runner
from jaxmt.text import array_folder
from jaxmt.text.array_folder import Allocate
from jaxmt.text.ragged import Ragged
from jaxmt.text.trees import Trees
from jaxmt.text.vocabulary import Vocabulary


def hiero_rules(shard: AlignedShard, *, options: HieroOptions) -> Emission:
  """The Hiero extractor of a shard."""
  return hiero.extract_rows(
    shard.source, shard.target, shard.links, options, first=shard.first
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions:
  """How counted rules become a table.

  Attributes:
    labels: of the rules' label ids.
    source_words: of the source ids.
    target_words: of the target ids.
    sentences: the size of the corpus.
    count: how the rules were counted.
    runner: where rules are scored.
    alpha: of add-alpha smoothing.
    features: static features beside the standard ones, by name.
  """

  labels: Sequence[str]
  source_words: Vocabulary
  target_words: Vocabulary
  sentences: int
  count: CountOptions
  runner: Runner
  alpha: float = 0.0
  features: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extracted:
  """A scored table, and where its rules came from if that was kept."""

  table: RuleTable
  provenance: Provenance | None


def extract_hiero(
  source: Ragged,
  target: Ragged,
  links: Ragged,
  *,
  source_words: Vocabulary,
  target_words: Vocabulary,
  options: HieroOptions,
  count: CountOptions,
  runner: Runner,
  alpha: float = 0.0,
  features: tuple[str, ...] = (),
) -> Extracted:
  """Extracts and scores the Hiero grammar of a corpus; see `extract`."""
  return extract(
    source,
    target,
    links,
    [functools.partial(hiero_rules, options=options)],
    source_words=source_words,
    target_words=target_words,
    count=count,
    runner=runner,
    alpha=alpha,
    features=features,
  )


def extract(
  source: Ragged,
  target: Ragged,
  links: Ragged,
  extractors: Sequence[Extractor],
  *,
  source_words: Vocabulary,
  target_words: Vocabulary,
  trees: Trees | None = None,
  count: CountOptions,
  runner: Runner,
  alpha: float = 0.0,
  features: tuple[str, ...] = (),
) -> Extracted:
  """Extracts and scores the grammar of a corpus in memory.

  Args:
    source: word ids, int32, N rows.
    target: word ids, int32, N rows.
    links: `[L, 2]` (source, target) positions, N rows, sorted.
    extractors: what finds rules; several make a joint grammar.
    source_words: of the source ids.
    target_words: of the target ids.
    trees: N source trees, if an extractor needs them.
    count: how to count.
    runner: where to work.
    alpha: of add-alpha smoothing.
    features: static features beside the standard ones, by name.
  """
  labels = LABELS
  if trees is not None:
    labels = shards.table_labels(trees.labels)
    trees = shards.relabel(trees, labels)
  parts, pairs = shards.count_rules(
    shards.split(source, target, links, trees=trees),
    extractors,
    options=count,
    runner=runner,
  )
  options = TableOptions(
    labels=labels,
    source_words=source_words,
    target_words=target_words,
    sentences=len(source),
    count=count,
    runner=runner,
    alpha=alpha,
    features=features,
  )
  return assemble(parts, pairs, options)


def assemble(
  parts: Iterator[SortedRun],
  pairs: PairCounts,
  options: TableOptions,
) -> Extracted:
  """Returns the scored table of counted rules, in memory.

  Args:
    parts: settled runs in order, from `shards.count_rules`.
    pairs: counts of linked words.
    options: see `TableOptions`.

  Raises:
    InputError: for an unknown static feature.
  """
  chosen = static_features.find(options.features)
  tables, origins = [], [table_lib.empty_rows(0)]
  shares = [np.zeros(0, np.int64)]
  glue = _glue(options)
  for part in parts:
    columns = packed_rules.unpack(part.rows)
    fields = {f.name: getattr(columns, f.name) for f in _FIELDS}
    features = np.zeros((len(part), 0), np.float32)
    grammar = dataclasses.replace(
      glue, **fields, counts=part.shares / COUNT_UNIT, features=features
    )
    tables.append(grammar)
    origins.append(part.sentences)
    shares.append(part.sentence_shares)
  bounds = np.cumsum([0, *map(len, tables), len(glue)])
  table = table_lib.concatenate([*tables, glue])
  blocks = _columns(table, pairs, chosen, options, bounds=bounds)
  names = static_features.column_names(chosen)
  table = table_lib.with_features(table, names, np.concatenate([*blocks]))
  origin = None
  if options.count.provenance:
    origin = provenance_lib.from_rules(
      table_lib.stack_rows(origins),
      np.concatenate(shares),
      number=options.sentences,
    )
  return Extracted(table=table, provenance=origin)


_FIELDS = dataclasses.fields(packed_rules.UnpackedRules)


def _glue(options: TableOptions) -> RuleTable:
  glue = table_lib.glue_rules(options.source_words, options.target_words)
  return dataclasses.replace(glue, labels=tuple(options.labels))


def _columns(
  table: RuleTable,
  pairs: PairCounts,
  chosen: Sequence[StaticFeature],
  options: TableOptions,
  *,
  bounds: np.ndarray,
  allocate: Allocate = array_folder.in_memory,
) -> Iterator[np.ndarray]:
  """The columns of the table's blocks; see `streaming_features.score`."""
  return streaming_features.score(
    table,
    chosen,
    lexical.estimate_lexicon(pairs, source_size=len(options.source_words)),
    bounds=bounds,
    alpha=options.alpha,
    memory=options.count.memory,
    runner=options.runner,
    allocate=allocate,
  )


def write(
  path: str,
  parts: Iterator[SortedRun],
  pairs: PairCounts,
  options: TableOptions,
) -> None:
  """Like `assemble`, but straight into the table's own format at `path`.

  Rules and all that is stored for each of them go to disk part by part.

  Raises:
    ValueError: if `options.count` names no folder to spill to.
    InputError: for an unknown static feature.
  """
  spill = options.count.spill
  if spill is None:
    raise ValueError("writing needs a folder to spill to")
  chosen = static_features.find(options.features)
  on_disk = functools.partial(array_folder.scratch_array, spill)
  glue = _glue(options)
  with (
    array_folder.scratch_writer(spill, "origins") as origins,
    native.open_writer(
      path,
      labels=options.labels,
      source_words=options.source_words,
      target_words=options.target_words,
    ) as writer,
  ):
    bounds = [0]
    for part in parts:
      writer.append(packed_rules.unpack(part.rows), part.shares / COUNT_UNIT)
      bounds.append(bounds[-1] + len(part))
      origins.append("sentences", part.sentences.flat)
      origins.append("lengths", part.sentences.lengths)
      origins.append("shares", part.sentence_shares)
    writer.append(glue, glue.counts)
    blocks = _columns(
      writer.table(),
      pairs,
      chosen,
      options,
      bounds=np.array([*bounds, bounds[-1] + len(glue)]),
      allocate=on_disk,
    )
    writer.write_features(static_features.column_names(chosen), blocks)
    if options.count.provenance:
      origin = _origin(origins, options.sentences, on_disk)
      writer.write_provenance(origin)


def _origin(origins, sentences: int, allocate: Allocate) -> Provenance:
  """The provenance of what was written to `origins`, on disk too."""
  names = {"sentences": np.int32, "lengths": np.int64, "shares": np.int64}
  for name, dtype in names.items():  # there may have been no rules
    origins.append(name, np.zeros(0, dtype))
  owners, lengths, shares = (origins.array(name) for name in names)
  offsets = allocate("origin_offsets", len(lengths) + 1, np.int64)
  np.cumsum(lengths, out=offsets[1:])
  return provenance_lib.from_rules(
    Ragged(flat=owners, offsets=offsets),
    shares,
    number=sentences,
    allocate=allocate,
  )
