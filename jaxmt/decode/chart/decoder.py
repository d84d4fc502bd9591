"""Decoding many sentences: batches, devices, threads.

Sentences are sorted by length and packed into batches of about equal work, so
that few shapes are compiled. A batch is matched on the host, searched on one
device or, with a mesh, in equal parts on all of them, and read off on the
host. Batches do not depend on each other. Worker threads take them in turn,
which keeps all cores of a CPU busy. Results do not depend on the number
of devices or threads.
"""

import concurrent.futures
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import derivation
from jaxmt.decode.chart import beam_search, host_search, reference_inputs
from jaxmt.decode.chart import chart_layout as charts
from jaxmt.decode.chart.accumulators import Augmentation, AugmentInputs
from jaxmt.decode.chart.chart_layout import Chart
from jaxmt.decode.chart.search import Beams, SearchConfig, Weights
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import (
  Model,
  Source,
  copy_scores,
  device_parameters,
  host_parameters,
  select_source,
)
from jaxmt.features.stateful import StatefulFeature
from jaxmt.grammar import table as rule_tables
from jaxmt.grammar.match import applications, matching
from jaxmt.grammar.match.matching import Matches, Patterns
from jaxmt.runtime import parallel
from jaxmt.runtime.compiling import CompiledOnce
from jaxmt.text import ragged

_LEAST_CELLS = 512  # small batches share one shape
_RULES_PER_CELL = 12  # local rules a batch is given room for


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodeConfig:
  """How to decode.

  Attributes:
    search: sizes of the search.
    threshold: hypotheses this much below the best of their cell are dropped.
    batch_cells: cells searched together on one device.
    threads: batches in work at a time.
  """

  search: SearchConfig = dataclasses.field(default_factory=SearchConfig)
  threshold: float = float("inf")
  batch_cells: int = 4096
  threads: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
  """The charts of a batch, one per device.

  Attributes:
    sources: the sentences of each part.
    matches: their applications.
    charts: the charts, all of the same shapes.
  """

  sources: tuple[Source, ...]
  matches: tuple[Matches, ...]
  charts: tuple[Chart, ...]


def count_cells(lengths: np.ndarray, span: int) -> np.ndarray:
  """Returns how many cells sentences of these lengths have at most."""
  wide = np.minimum(lengths, span)
  return wide * lengths - wide * (wide - 1) // 2 + lengths + 1


def sentence_cells(model: Model, source: Source) -> np.ndarray:
  """Returns how many cells sentences have at most, int64 `[N]`."""
  counts = count_cells(source.ids.lengths, model.limits.span)
  if model.limits.substitution == "exact" and source.spans is not None:
    # A cell for each node; nodes that join more than two children have more.
    nodes = source.spans.lengths
    counts = np.where(nodes > 0, nodes + source.ids.lengths + 2, counts)
  return counts


def make_batches(
  counts: np.ndarray, *, cells: int, parts: int = 1
) -> list[list[np.ndarray]]:
  """Packs sentences: batches of `parts` index arrays of at most `cells` cells.

  Longer sentences come first; a sentence of more cells stands alone.

  Args:
    counts: cells of each sentence (`sentence_cells`), `[N]`.
    cells: cells of a part.
    parts: parts of a batch.
  """
  order = np.argsort(-counts, kind="stable")
  groups: list[list[int]] = []
  room = 0
  for row in order.tolist():
    if not groups or counts[row] > room:
      groups.append([])
      room = cells
    groups[-1].append(row)
    room -= counts[row]
  # Redistribute each run of `parts` groups so that the parts are alike.
  batches = []
  for first in range(0, len(groups), parts):
    rows = [row for group in groups[first : first + parts] for row in group]
    dealt = [rows[part::parts] for part in range(parts)]
    batches.append([np.array(sorted(part), np.int64) for part in dealt])
  return batches


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChartBatch:
  """Sentences that are searched together; no weights are in it.

  Attributes:
    rows: which sentences, for each device, int64 `[B]`.
    sources: those sentences.
    patterns: where the grammar's source patterns stand in them.
  """

  rows: tuple[np.ndarray, ...]
  sources: tuple[Source, ...]
  patterns: tuple[Patterns, ...]


def make_batch(
  model: Model, source: Source, rows: Sequence[np.ndarray]
) -> ChartBatch:
  """Selects sentences and finds all source patterns of rules in them."""
  sources = tuple(select_source(source, part) for part in rows)
  return ChartBatch(
    rows=tuple(rows),
    sources=sources,
    patterns=tuple(
      matching.find_patterns(
        part.ids,
        table=model.table,
        trie=model.trie,
        copies=part.copies,
        config=model.limits,
        spans=part.spans,
        width=model.arity,
      )
      for part in sources
    ),
  )


def prepare(
  model: Model,
  source: Source,
  parts: Sequence[np.ndarray],
  *,
  config: SearchConfig,
) -> Prepared:
  """Matches and lays out a batch.

  Args:
    model: rules and weights.
    source: all sentences.
    parts: the sentences for each device.
    config: sizes.
  """
  batch = make_batch(model, source, parts)
  return lay_out(model, batch, copy_scores(model, source), config=config)


def lay_out(
  model: Model, batch: ChartBatch, copied: np.ndarray, *, config: SearchConfig
) -> Prepared:
  """Chooses the rule applications of a batch and lays them out.

  Args:
    model: rules and weights.
    batch: of `make_batch`.
    copied: `copy_scores` of the text that the batch is of.
    config: sizes.
  """
  sources = batch.sources
  scores = np.concatenate([model.columns.score, copied])
  matches = [
    applications.select(
      part,
      (model.ranked.flat, model.ranked.offsets),
      scores,
      limit=config.widths[-1],
    )
    for part in batch.patterns
  ]
  needed = [charts.needed_sizes(m, tile=config.tile) for m in matches]
  cells, tiles, rules = np.max(needed, axis=0).tolist()
  cells = ragged.bucket(max(cells, _LEAST_CELLS))
  tiles = max(ragged.bucket(tiles), cells // 16)
  rules = max(ragged.bucket(rules), _RULES_PER_CELL * cells)
  # Room for as many sentences as the cells can hold costs nothing, and batches
  # of short and of long sentences then share one shape.
  sentences = ragged.bucket(max(16, cells // 16, *map(len, sources)))
  built = [
    charts.build_chart(
      m,
      rules=model.columns,
      copies=part.columns,
      scores=scores,
      tile=config.tile,
      widths=config.widths,
      sizes=(cells, tiles, rules),
      sentences=sentences,
    )
    for part, m in zip(sources, matches, strict=True)
  ]
  return Prepared(
    sources=sources,
    matches=tuple(m for _, m in built),
    charts=tuple(
      charts.score_chart(model, part, m, chart)
      for part, (chart, m) in zip(sources, built, strict=True)
    ),
  )


def make_inputs(
  model: Model, prepared: Prepared, references: Sequence[Sequence[str]]
) -> tuple[AugmentInputs, ...]:
  """Prepares the references of a batch for an augmented search.

  Args:
    model: the model.
    prepared: the batch's charts.
    references: for each part of the batch, one reference line per sentence.
  """
  return reference_inputs.make_inputs(
    model,
    prepared.sources,
    prepared.matches,
    prepared.charts,
    references,
  )


@functools.cache
def searcher(
  config: SearchConfig,
  features: tuple[StatefulFeature, ...],
  mesh: Mesh | None = None,
  augmentation: Augmentation | None = None,
) -> Callable[..., Any]:
  """Returns the compiled search.

  It takes (charts, parameters, weights, references, numbers) as
  `beam_search.search` does and returns beams. With a mesh, charts and
  references are stacked along a first axis that is split over the mesh, and so
  are the beams.
  """
  run = functools.partial(
    beam_search.search,
    config=config,
    features=features,
    augmentation=augmentation,
  )
  if mesh is None:
    return CompiledOnce(jax.jit(run))

  def part(chart, parameters, weights, references, numbers):
    first = lambda tree: jax.tree.map(lambda leaf: leaf[0], tree)
    beams = run(first(chart), parameters, weights, first(references), numbers)
    return (jax.tree.map(lambda leaf: leaf[None], beams),)

  return CompiledOnce(
    parallel.data_parallel(
      part,
      mesh=mesh,
      inputs=("split", "copied", "copied", "split", "copied"),
      outputs=("split",),
    )
  )


def search_weights(model: Model, threshold: float = float("inf")) -> Weights:
  """Returns the weights that act during the search.

  Comparing labels takes time. It is left out where it changes nothing: if the
  weights are 0 and the rules have no labels that tuning could give weights to.
  """
  features: list = [
    tuple(
      np.float32(model.weights.get(name, 0.0) * feature.scale)
      for name in feature.names
    )
    for feature in model.features
  ]
  labelled = bool(np.any(model.table.lhs > rule_tables.S))
  labelled &= model.limits.substitution == "fuzzy"
  if not labelled and not any(model.label_weights):
    features[1] = None
  return Weights(features=tuple(features), threshold=np.float32(threshold))


def search_parameters(
  model: Model, config: SearchConfig, *, augmented: bool = False
) -> tuple[Any, ...]:
  """Returns the features' parameters, on the host or device that searches.

  Args:
    model: features; its weights do not matter.
    config: says where to search.
    augmented: whether the search adds losses.
  """
  if host_search.on_host(model, config.backend, augmented=augmented):
    return host_parameters(model)
  return device_parameters(model)


def run_search(
  prepared: Prepared,
  model: Model,
  references: tuple[AugmentInputs, ...] | None = None,
  *,
  config: SearchConfig,
  parameters: tuple[Any, ...] | None = None,
  threshold: float = float("inf"),
  mesh: Mesh | None = None,
  augmentation: Augmentation | None = None,
) -> list[Beams]:
  """Searches a batch; returns host beams, one for each part.

  On a CPU a host kernel searches where it can (`host_search`), whatever the
  number of devices is; else the array program does.

  Args:
    prepared: the charts.
    model: features and weights.
    references: with an augmentation, of `make_inputs`.
    config: sizes.
    parameters: of `search_parameters`, if there are several batches.
    threshold: hypotheses this much below the best of their cell are dropped.
    mesh: devices to split the batch over.
    augmentation: extra scores.
  """
  weights = search_weights(model, threshold)
  augmented = augmentation is not None
  if parameters is None:
    parameters = search_parameters(model, config, augmented=augmented)
  if host_search.on_host(model, config.backend, augmented=augmented):
    one = lambda pair: host_search.search(
      pair[0], pair[1], parameters, weights, config
    )
    pairs = list(zip(prepared.charts, prepared.matches, strict=True))
    return list(in_order(one, pairs, threads=len(pairs)))
  numbers = ()
  if augmentation is not None:
    numbers = tuple(map(np.float32, augmentation.parameters))
    augmentation = dataclasses.replace(augmentation, parameters=())
  call = searcher(config, model.features, mesh, augmentation)
  common = (parameters, weights)
  if mesh is None:
    parts = references or [None] * len(prepared.charts)
    beams = [
      call(chart, *common, part, numbers)
      for chart, part in zip(prepared.charts, parts, strict=True)
    ]
    return [jax.tree.map(np.asarray, one) for one in beams]
  stack = lambda *leaves: np.stack(leaves)
  (beams,) = call(
    jax.tree.map(stack, *prepared.charts),
    *common,
    jax.tree.map(stack, *references) if references else None,
    numbers,
  )
  host = jax.tree.map(np.asarray, beams)
  return [
    jax.tree.map(lambda leaf, n=n: leaf[n], host)
    for n in range(len(prepared.charts))
  ]


def _even_cells(
  model: Model, source: Source, config: DecodeConfig, parts: int
) -> int:
  """Cells per batch such that all threads get about the same work."""
  counts = sentence_cells(model, source)
  total = int(counts.sum())
  rounds = -(-total // (config.batch_cells * parts * config.threads))
  even = -(-total // max(rounds * config.threads * parts, 1))
  return min(even + int(counts.max(initial=0)) // 2, config.batch_cells)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
  """Part of a decoded text.

  Attributes:
    rows: which sentences, int64 `[B]`.
    source: those sentences.
    matches: their applications.
    chart: the chart, on the host.
    beams: its hypotheses, on the host.
  """

  rows: np.ndarray
  source: Source
  matches: Matches
  chart: Chart
  beams: Beams

  def best(self) -> Derivations:
    """The best derivations, by augmented score if there is one."""
    rank = None
    if self.beams.augmented is not None:
      rank = np.argmax(self.beams.augmented[self.matches.root], axis=1)
    return derivation.best(
      self.matches, score=self.beams.score, back=self.beams.back, rank=rank
    )


def results(
  rows: Sequence[np.ndarray], prepared: Prepared, beams: Sequence[Beams]
) -> list[Result]:
  """Returns the parts of a searched batch; `rows` says which sentences."""
  parts = zip(
    rows,
    prepared.sources,
    prepared.matches,
    prepared.charts,
    beams,
    strict=True,
  )
  return [
    Result(
      rows=row, source=source, matches=matches, chart=chart, beams=one_beams
    )
    for row, source, matches, chart, one_beams in parts
  ]


def plan(
  model: Model,
  source: Source,
  *,
  config: DecodeConfig,
  mesh: Mesh | None = None,
  room: int = 0,
) -> list[ChartBatch | list[np.ndarray]]:
  """Packs sentences into batches, whatever the weights.

  Args:
    model: rules; its weights do not matter.
    source: N sentences.
    config: how to decode.
    mesh: devices to split each batch over.
    room: bytes of patterns that may be found now and kept. Beyond, batches are
      lists of the sentences of each part, and `decode` finds their patterns.
  """
  parts = 1 if mesh is None else mesh.size
  batches: list[ChartBatch | list[np.ndarray]] = []
  for rows in make_batches(
    sentence_cells(model, source),
    cells=_even_cells(model, source, config, parts),
    parts=parts,
  ):
    if room <= 0:
      batches.append(rows)
      continue
    batch = make_batch(model, source, rows)
    room -= sum(part.places[0].nbytes for part in batch.patterns)
    batches.append(batch)
  return batches


def decode(
  model: Model,
  source: Source,
  *,
  config: DecodeConfig,
  mesh: Mesh | None = None,
  parameters: tuple[Any, ...] | None = None,
  augmentation: Augmentation | None = None,
  references: Sequence[str] | None = None,
  batches: Sequence[ChartBatch | list[np.ndarray]] | None = None,
  read: Callable[[Result], Any] = lambda result: result,
) -> Iterator[list[Any]]:
  """Decodes sentences; yields the parts of each batch when it is done.

  Batches come in a fixed order, whatever the number of threads.

  Args:
    model: rules, features and weights.
    source: N sentences; rescored if they were made for other weights.
    config: how to decode.
    mesh: devices to split each batch over.
    parameters: of `search_parameters`, if the text is decoded more than once.
    augmentation: extra scores (see `augmentations`); the best derivation is
      then that of the best augmented score.
    references: with an augmentation, one tokenised line per sentence.
    batches: of `plan`, if the text is decoded more than once.
    read: what is made of each `Result`, in the thread that searched it.

  Raises:
    ValueError: if there is an augmentation but not N references, or references
      without an augmentation.
  """
  if (augmentation is None) != (references is None):
    raise ValueError("an augmentation and references go together")
  if references is not None and len(references) != len(source):
    raise ValueError(f"{len(references)} references, {len(source)} sentences")
  if parameters is None:
    parameters = search_parameters(
      model, config.search, augmented=augmentation is not None
    )
  copied = copy_scores(model, source)

  def work(batch: ChartBatch | list[np.ndarray]) -> list[Any]:
    if not isinstance(batch, ChartBatch):
      batch = make_batch(model, source, batch)
    prepared = lay_out(model, batch, copied, config=config.search)
    inputs = None
    if references is not None:
      lines = [[references[row] for row in part] for part in batch.rows]
      inputs = make_inputs(model, prepared, lines)
    beams = run_search(
      prepared,
      model,
      inputs,
      config=config.search,
      parameters=parameters,
      threshold=config.threshold,
      mesh=mesh,
      augmentation=augmentation,
    )
    return list(map(read, results(batch.rows, prepared, beams)))

  if batches is None:
    batches = plan(model, source, config=config, mesh=mesh)
  yield from in_order(work, batches, threads=config.threads)


def in_order(work, items, *, threads: int) -> Iterator:
  """Yields `work(item)` of each item in order, computed by some threads."""
  if threads == 1:
    yield from map(work, items)
    return
  with concurrent.futures.ThreadPoolExecutor(threads) as pool:
    waiting: list[concurrent.futures.Future] = []
    for item in items:
      if len(waiting) > threads:  # finished results are not hoarded
        yield waiting.pop(0).result()
      waiting.append(pool.submit(work, item))
    for future in waiting:
      yield future.result()
