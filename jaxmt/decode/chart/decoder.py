"""Decoding many sentences: batches, devices, threads.

Sentences are sorted by length and packed into batches of about equal work, so
that few shapes are compiled. A batch is matched on the host, searched on one
device or, with a mesh, in equal parts on all of them, and read off on the
host. Batches do not depend on each other: worker threads take them in turn,
which on CPUs is what keeps all cores busy. Results do not depend on the number
of devices or threads.
"""

import concurrent.futures
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxmt.decode import derivation
from jaxmt.decode.chart import chart_layout as charts
from jaxmt.decode.chart import reference_inputs, search, sparse_scores
from jaxmt.decode.chart.accumulators import Augmentation, AugmentInputs
from jaxmt.decode.chart.chart_layout import Chart, Layout
from jaxmt.decode.chart.search import Beams, SearchConfig, Weights
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source, select_source
from jaxmt.grammar.match import matching
from jaxmt.grammar.match.matching import Matches
from jaxmt.lm import automaton
from jaxmt.lm.automaton import NgramAutomaton
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
    layouts: how the cells were numbered.
    charts: the charts, all of the same shapes.
  """

  sources: tuple[Source, ...]
  matches: tuple[Matches, ...]
  layouts: tuple[Layout, ...]
  charts: tuple[Chart, ...]


def count_cells(lengths: np.ndarray, span: int) -> np.ndarray:
  """Returns how many cells sentences of these lengths have at most."""
  wide = np.minimum(lengths, span)
  return wide * lengths - wide * (wide - 1) // 2 + lengths + 1


def make_batches(
  lengths: np.ndarray, *, span: int, cells: int, parts: int = 1
) -> list[list[np.ndarray]]:
  """Packs sentences: batches of `parts` index arrays of at most `cells` cells.

  Longer sentences come first; a sentence of more cells stands alone.
  """
  counts = count_cells(lengths, span)
  order = np.argsort(-counts, kind="stable")
  groups: list[list[int]] = []
  room = 0
  for row in order.tolist():
    if not groups or counts[row] > room:
      groups.append([])
      room = cells
    groups[-1].append(row)
    room -= counts[row]
  # Deal each run of `parts` groups out anew, so that the parts are alike.
  batches = []
  for first in range(0, len(groups), parts):
    rows = [row for group in groups[first : first + parts] for row in group]
    dealt = [rows[part::parts] for part in range(parts)]
    batches.append([np.array(sorted(part), np.int64) for part in dealt])
  return batches


def prepare(
  model: Model,
  source: Source,
  parts: list[np.ndarray],
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
  limits = dataclasses.replace(model.limits, applications=config.widths[-1])
  scores = np.concatenate([model.columns.score, source.columns.score])
  sources = tuple(select_source(source, part) for part in parts)
  matches = tuple(
    matching.match(
      part.ids,
      table=model.table,
      trie=model.trie,
      ranked=model.ranked,
      scores=scores,
      copies=part.copies,
      config=limits,
      spans=part.spans,
      width=model.arity,
    )
    for part in sources
  )
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
      copies=source.columns,
      tile=config.tile,
      widths=config.widths,
      sizes=(cells, tiles, rules),
      sentences=sentences,
    )
    for m in matches
  ]
  scored = (
    sparse_scores.score_chart(model, part, m, layout, chart)
    for part, m, (chart, layout) in zip(sources, matches, built, strict=True)
  )
  return Prepared(
    sources=sources,
    matches=matches,
    charts=tuple(scored),
    layouts=tuple(layout for _, layout in built),
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
    prepared.layouts,
    prepared.charts,
    references,
  )


@functools.cache
def searcher(
  config: SearchConfig,
  mesh: Mesh | None = None,
  augmentation: Augmentation | None = None,
) -> Callable[..., Beams]:
  """Returns the compiled search.

  It takes (charts, lm, weights, inputs, parameters) and returns beams. With a
  mesh, charts (and augmentation inputs) are stacked along a first axis
  that is split over the mesh, and so are the beams.
  """
  run = functools.partial(
    search.search, config=config, augmentation=augmentation
  )
  if mesh is None:
    return jax.jit(run)

  def part(chart, lm, weights, inputs, parameters):
    first = lambda tree: jax.tree.map(lambda leaf: leaf[0], tree)
    beams = run(first(chart), lm, weights, first(inputs), parameters)
    return jax.tree.map(lambda leaf: leaf[None], beams)

  split, copied = PartitionSpec(mesh.axis_names[0]), PartitionSpec()
  return jax.jit(
    jax.shard_map(
      part,
      mesh=mesh,
      in_specs=(split, copied, copied, split, copied),
      out_specs=split,
      check_vma=False,
    )
  )


def search_weights(model: Model, threshold: float = float("inf")) -> Weights:
  """Returns the weights that act during the search."""
  matched, other = model.label_weights
  return Weights(
    lm=np.float32(model.lm_weight),
    match=np.float32(matched),
    mismatch=np.float32(other),
    threshold=np.float32(threshold),
  )


def run_search(
  prepared: Prepared,
  lm: NgramAutomaton,
  weights: Weights,
  inputs: tuple[AugmentInputs, ...] | None = None,
  *,
  config: SearchConfig,
  mesh: Mesh | None = None,
  augmentation: Augmentation | None = None,
) -> list[Beams]:
  """Searches a batch; returns host beams, one for each part."""
  parameters = ()
  if augmentation is not None:
    parameters = tuple(map(np.float32, augmentation.parameters))
    augmentation = dataclasses.replace(augmentation, parameters=())
  call = searcher(config, mesh, augmentation)
  if mesh is None:
    parts = inputs or [None] * len(prepared.charts)
    beams = [
      call(chart, lm, weights, part, parameters)
      for chart, part in zip(prepared.charts, parts, strict=True)
    ]
    return [jax.tree.map(np.asarray, one) for one in beams]
  stack = lambda *leaves: np.stack(leaves)
  beams = call(
    jax.tree.map(stack, *prepared.charts),
    lm,
    weights,
    jax.tree.map(stack, *inputs) if inputs else None,
    parameters,
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
  counts = count_cells(source.ids.lengths, model.limits.span)
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
    layout: how the chart was numbered.
    chart: the chart, on the host.
    beams: its hypotheses, on the host.
  """

  rows: np.ndarray
  source: Source
  matches: Matches
  layout: Layout
  chart: Chart
  beams: Beams

  def best(self) -> Derivations:
    """The best derivations, by augmented score if there is one."""
    root = np.asarray(self.chart.root)[: len(self.rows)]
    rank = None
    if self.beams.augmented is not None:
      rank = np.argmax(self.beams.augmented[root], axis=1)
    return derivation.best(
      self.matches,
      self.layout,
      score=self.beams.score,
      back=self.beams.back,
      root=root,
      rank=rank,
    )


def decode(
  model: Model,
  source: Source,
  *,
  config: DecodeConfig,
  mesh: Mesh | None = None,
  lm: NgramAutomaton | None = None,
  augmentation: Augmentation | None = None,
  references: Sequence[str] | None = None,
) -> Iterator[list[Result]]:
  """Decodes sentences; yields the parts of each batch when it is done.

  Batches come in a fixed order, whatever the number of threads.

  Args:
    model: rules, language model and weights.
    source: N sentences.
    config: how to decode.
    mesh: devices to split each batch over.
    lm: the model's language model, if it is on the device already.
    augmentation: extra scores (see `augmentations`); the best derivation is
      then that of the best augmented score.
    references: with an augmentation, one tokenised line per sentence.

  Raises:
    ValueError: if there is an augmentation but not N references, or references
      without an augmentation.
  """
  if (augmentation is None) != (references is None):
    raise ValueError("an augmentation and references go together")
  if references is not None and len(references) != len(source):
    raise ValueError(f"{len(references)} references, {len(source)} sentences")
  lm = automaton.to_device(model.lm) if lm is None else lm
  weights = search_weights(model, config.threshold)
  parts = 1 if mesh is None else mesh.size
  batches = make_batches(
    source.ids.lengths,
    span=model.limits.span,
    cells=_even_cells(model, source, config, parts),
    parts=parts,
  )
  compiled: set[tuple[int, ...]] = set()
  compiling = threading.Lock()

  def work(batch: list[np.ndarray]) -> list[Result]:
    prepared = prepare(model, source, batch, config=config.search)
    inputs = None
    if references is not None:
      lines = [[references[row] for row in part] for part in batch]
      inputs = make_inputs(model, prepared, lines)
    run = functools.partial(
      run_search,
      prepared,
      lm,
      weights,
      inputs,
      config=config.search,
      mesh=mesh,
      augmentation=augmentation,
    )
    shapes = (*prepared.charts[0].slots.shape, *prepared.charts[0].rule.shape)
    if inputs is not None:
      shapes += inputs[0].runs.shape
    if shapes in compiled:
      beams = run()
    else:
      with compiling:  # other threads wait instead of compiling it too
        beams = run()
        compiled.add(shapes)
    columns = (
      batch,
      prepared.sources,
      prepared.matches,
      prepared.layouts,
      prepared.charts,
      beams,
    )
    names = ("rows", "source", "matches", "layout", "chart", "beams")
    return [
      Result(**dict(zip(names, values, strict=True)))
      for values in zip(*columns, strict=True)
    ]

  if config.threads == 1:
    yield from map(work, batches)
    return
  with concurrent.futures.ThreadPoolExecutor(config.threads) as pool:
    waiting: list[concurrent.futures.Future] = []
    for batch in batches:
      if len(waiting) > config.threads:  # finished results are not hoarded
        yield waiting.pop(0).result()
      waiting.append(pool.submit(work, batch))
    for future in waiting:
      yield future.result()
