"""Shards of the training text: searched, selected from, counted.

The work is a map over shards and a sum. How sentences are packed into batches
and shards depends on their lengths and the settings alone, never on threads,
devices or processes, and so neither do the counts.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import decoding
from jaxmt.decode.chart import decoder, search
from jaxmt.decode.chart.accumulators import Augmentation, AugmentInputs
from jaxmt.decode.chart.decoder import DecodeConfig, Prepared, Result
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.decode.decoding import AnyResult
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase import phrase_decoder
from jaxmt.decode.phrase.phrase_decoder import PhraseResult
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.grammar.provenance import Provenance
from jaxmt.hypergraph import Forest
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.train import (
  beam_diagnosis,
  derivation_losses,
  edge_selection,
  leave_one_out,
)
from jaxmt.train import counts as counts_lib
from jaxmt.train.counts import Contributions
from jaxmt.train.edge_selection import Selection
from jaxmt.train.leave_one_out import HeldOut
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.theta_method import ThetaMethod


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingBitext:
  """The N sentence pairs to learn from.

  Attributes:
    source: the source side.
    lines: the target side, tokenised.
    references: the same as ids, from `select.encode_references`.
    provenance: which sentence gave which rule at extraction, or None.
  """

  source: Source
  lines: Sequence[str]
  references: Ragged
  provenance: Provenance | None = None

  def __len__(self) -> int:
    return len(self.source)


def make_bitext(
  model: Model,
  source: Source,
  lines: Sequence[str],
  *,
  provenance: Provenance | None = None,
) -> TrainingBitext:
  """Pairs sentences with their references.

  Raises:
    ValueError: if the numbers differ.
  """
  if len(lines) != len(source):
    raise ValueError(f"{len(lines)} references for {len(source)} sentences")
  if provenance is not None and len(provenance) != len(source):
    raise ValueError(f"provenance of {len(provenance)} sentences")
  return TrainingBitext(
    source=source,
    lines=lines,
    references=edge_selection.encode_references(model, source, lines),
    provenance=provenance,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shard:
  """Some sentences, in batches.

  Attributes:
    number: which shard.
    batches: sentence numbers of each batch.
    own: what each of the sentences gave to the counts of the θ in use, in the
      order of the batches; None if nothing is left out.
    diagnosed: places of the batches that are searched again to tell what the
      beam loss does (`beam_diagnosis`).
  """

  number: int
  batches: tuple[np.ndarray, ...]
  own: Contributions | None = None
  diagnosed: tuple[int, ...] = ()

  @property
  def rows(self) -> np.ndarray:
    """All sentence numbers, in the order of the batches."""
    return np.concatenate([np.zeros(0, np.int64), *self.batches])


def make_shards(
  lengths: np.ndarray, *, span: int, cells: int, size: int, diagnose: int = 0
) -> list[Shard]:
  """Packs sentences into batches by length, and batches into shards.

  Batches are about equally large, so that most of them share one shape.

  Args:
    lengths: source words, int `[N]`.
    span: longest Hiero span.
    cells: most chart cells of a batch.
    size: a shard is full when it has this many sentences.
    diagnose: every n-th batch is diagnosed; 0 for none.
  """
  shards: list[Shard] = []
  batches: list[np.ndarray] = []
  diagnosed: list[int] = []
  counts = decoder.count_cells(np.asarray(lengths), span)
  total, most = int(counts.sum()), int(counts.max(initial=1))
  number = -(-total // max(cells - most, most, 1)) or 1
  even = min(-(-total // number) + most, max(cells, most))
  packed = decoder.make_batches(counts, cells=even)
  for place, (batch,) in enumerate(packed):
    if diagnose and place % diagnose == min(diagnose, len(packed)) // 2:
      diagnosed.append(len(batches))
    batches.append(batch)
    full = sum(map(len, batches)) >= size
    if full or place == len(packed) - 1:
      shards.append(
        Shard(
          number=len(shards),
          batches=tuple(batches),
          diagnosed=tuple(diagnosed),
        )
      )
      batches, diagnosed = [], []
  return shards


_FREE = 1e6  # a constraint that no derivation breaks

# What is known of every sentence of a shard; see `Counted.values`.
COLUMNS = (
  "searched",
  "model",
  "augmented",
  "rules",
  "beam loss",
  "near",
  "diagnosed",
  "changed",
  *(f"rank {name}" for name in beam_diagnosis.BINS),
  *(f"plain {name}" for name in beam_diagnosis.BINS),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counted:
  """Counts of a shard.

  Attributes:
    made: contributions, one row for each sentence of the shard in the order of
      its batches; or one row for the whole shard.
    values: one row for each sentence, float64 `[B, len(COLUMNS)]`: best model
      score in the forest, model score and augmented score of what was chosen
      (nan if nothing was), rules counted, then what `beam_diagnosis` reports.
    admissible: sentences with an admissible derivation, bool `[B]`.
    derived: sentences with any derivation, bool `[B]`.
  """

  made: Contributions
  values: np.ndarray
  admissible: np.ndarray
  derived: np.ndarray


def search_config(config: ThetaConfig) -> SearchConfig:
  """Returns the sizes of the training search, which is wider than decoding."""
  return search.make_config(
    beam=config.train_beam,
    pop=config.train_pop,
    forest=True,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CountingWork:
  """What all shards of an iteration share.

  Attributes:
    model: with the θ of this iteration.
    bitext: the sentences.
    config: the settings.
    method: what to add to scores, and which derivations to select.
    search: sizes of the search.
    held: what leaving one out needs, or None.
    per_sentence: whether contributions are returned sentence by sentence.
  """

  model: Model
  bitext: TrainingBitext
  config: ThetaConfig
  method: ThetaMethod
  search: SearchConfig
  held: HeldOut | None = None
  per_sentence: bool = False


def prepare(
  work: CountingWork, parts: list[np.ndarray], own: list[Contributions] | None
) -> Prepared:
  """Matches batches, one for each device, and holds their own counts out."""
  prepared = decoder.prepare(
    work.model, work.bitext.source, parts, config=work.search
  )
  if work.held is None or own is None:
    return prepared
  held_out = work.held
  charts = tuple(
    leave_one_out.hold_out(chart, matches, some, held_out, rows)
    for chart, matches, some, rows in zip(
      prepared.charts, prepared.matches, own, parts, strict=True
    )
  )
  return dataclasses.replace(prepared, charts=charts)


def inputs(
  work: CountingWork, parts: list[np.ndarray], prepared: Prepared
) -> tuple[AugmentInputs, ...] | None:
  """Returns a search's inputs from the references; None for a plain one."""
  if work.method.search(work.config) is None:
    return None
  lines = [[work.bitext.lines[row] for row in part] for part in parts]
  return decoder.make_inputs(work.model, prepared, lines)


def search_parameters(work: CountingWork) -> tuple[Any, ...] | None:
  """Returns the features' parameters as the method's search takes them."""
  return decoding.search_parameters(
    work.model,
    config=work.search,
    augmented=work.method.search(work.config) is not None,
  )


def run(
  work: CountingWork,
  parts: list[np.ndarray],
  prepared: Prepared,
  *,
  parameters: tuple[Any, ...] | None = None,
  inputs: tuple[AugmentInputs, ...] | None = None,
  mesh: Mesh | None = None,
  augmentation: Augmentation | None = None,
) -> list[Result]:
  """Searches prepared batches, augmented if `inputs` are given.

  By the method's augmentation, unless another one is given.
  """
  added = None
  if inputs is not None:
    added = augmentation or work.method.search(work.config)
  beams = decoder.run_search(
    prepared,
    work.model,
    inputs,
    config=work.search,
    parameters=parameters,
    mesh=mesh,
    augmentation=added,
  )
  return decoder.results(parts, prepared, beams)


def _reduced(work: CountingWork) -> CountingWork:
  """Returns the work without the beam loss."""
  config = dataclasses.replace(work.config, alpha1=0.0)
  return dataclasses.replace(work, config=config)


def _reduced_searches(work: CountingWork) -> tuple[Augmentation, Augmentation]:
  """Returns the search without the beam loss, and the one without any.

  Both are the same program as the search with losses.
  """
  full = work.method.search(work.config)
  if full is None:
    raise ValueError("the search adds no losses")
  plain = dataclasses.replace(full, parameters=(0.0,) * len(full.parameters))
  return work.method.search(_reduced(work).config) or plain, plain


def count(
  work: CountingWork, rows: np.ndarray, forest: Forest, chosen: Selection
) -> Counted:
  """Turns a selection into contributions; falls back where it is empty."""
  size, copy_rule = len(work.model.table), work.model.copy_rule
  weights = chosen.weights
  lost = ~chosen.admissible
  if work.config.fallback == "nearest" and lost.any():
    weights = weights.copy()
    weights[ragged.select(chosen.nearest, np.flatnonzero(lost)).flat] = 1.0
  contributions = counts_lib.contributions(
    forest, weights, size=size, copy_rule=copy_rule
  )
  provenance = work.bitext.provenance
  by_extraction = work.config.fallback in ("extraction", "scaled")
  if by_extraction and provenance is not None and lost.any():
    instead = counts_lib.from_provenance(provenance, rows[lost])
    if work.config.fallback == "scaled":
      used = chosen.nearest.lengths[lost] - 1.0  # the goal is no rule
      words = work.bitext.source.ids.lengths[rows[lost]]
      instead = counts_lib.scaled(instead, np.where(used > 0, used, words))
    contributions = counts_lib.replace(
      contributions, np.flatnonzero(lost), instead
    )
  values = np.zeros((len(rows), len(COLUMNS)))
  ranks = beam_diagnosis.node_ranks(forest, chosen.chosen)
  beam = derivation_losses.derivation_beam_loss(
    ranks,
    k=work.config.k,
    margin=work.config.margin,
    cost=work.config.cost,
  )
  for name, column in (
    ("searched", chosen.searched),
    ("model", chosen.model),
    ("augmented", chosen.augmented),
    ("rules", counts_lib.masses(contributions)),
    ("beam loss", np.where(ranks.lengths > 0, beam, np.nan)),
    ("near", chosen.near),
  ):
    values[:, COLUMNS.index(name)] = column
  first = COLUMNS.index(f"rank {beam_diagnosis.BINS[0]}")
  values[:, first : first + len(beam_diagnosis.BINS)] = (
    beam_diagnosis.histograms(ranks)
  )
  return Counted(
    made=contributions,
    values=values,
    admissible=chosen.admissible,
    derived=np.diff(forest.node_offsets) > 0,
  )


def select_batch(
  work: CountingWork, result: AnyResult
) -> tuple[Forest, Selection]:
  """Extracts the forests of a searched batch and selects from them."""
  forest = decoding.forest(work.model, result)
  references = ragged.select(work.bitext.references, result.rows)
  chosen = work.method.select(
    work.model, result.source, forest, references, work.config
  )
  return forest, chosen


def count_batch(
  work: CountingWork,
  result: AnyResult,
  again: tuple[Result, Result] | None = None,
) -> Counted:
  """Extracts the forests of a searched batch, selects and counts.

  Args:
    work: everything but the search.
    result: the search.
    again: searches of the same batch without the beam loss and without any
      loss, if it is to be diagnosed.
  """
  forest, chosen = select_batch(work, result)
  counted = count(work, result.rows, forest, chosen)
  if again is None:
    return counted
  unbeamed, decoded = again
  # Draws would add noise: forest counts are compared without the constraint.
  config = work.config
  if config.counts == "forest":
    config = dataclasses.replace(config, constraint=_FREE)
  one = dataclasses.replace(work, config=config)
  two = _reduced(one)
  with_loss = count(one, result.rows, *select_batch(one, result))
  without = count(two, unbeamed.rows, *select_batch(two, unbeamed))
  ranks = beam_diagnosis.plain_ranks(work.model, forest, chosen.chosen, decoded)
  values = counted.values
  values[:, COLUMNS.index("diagnosed")] = counts_lib.masses(with_loss.made)
  values[:, COLUMNS.index("changed")] = (
    beam_diagnosis.changed(with_loss.made, without.made) / COUNT_UNIT
  )
  first = COLUMNS.index(f"plain {beam_diagnosis.BINS[0]}")
  values[:, first : first + len(beam_diagnosis.BINS)] = (
    beam_diagnosis.histograms(ranks)
  )
  return counted


def count_shard(
  shard: Shard,
  *,
  work: CountingWork,
  parameters: tuple[Any, ...] | None = None,
  mesh: Mesh | None = None,
) -> Counted:
  """Searches a shard, selects derivations and counts their rules.

  Args:
    shard: which sentences.
    work: everything else.
    parameters: of `search_parameters`, or None.
    mesh: devices that take a batch each, or None for one.
  """
  if parameters is None:
    parameters = search_parameters(work)
  if work.model.order is not None:
    return _count_phrases(shard, work, parameters, mesh)
  width = 1 if mesh is None else mesh.size
  counted = []
  start = 0
  for first in range(0, len(shard.batches), width):
    parts = list(shard.batches[first : first + width])
    own = None
    if shard.own is not None:
      own = []
      for part in parts:
        own.append(counts_lib.rows(shard.own, start, start + len(part)))
        start += len(part)
    filler = width - len(parts)
    if own is not None:
      own += [counts_lib.concatenate([])] * filler
    parts += [np.zeros(0, np.int64)] * filler
    prepared = prepare(work, parts, own)
    added = inputs(work, parts, prepared)
    results = run(
      work, parts, prepared, parameters=parameters, inputs=added, mesh=mesh
    )
    again: list[Any] = [None] * len(results)
    diagnosed = [
      place for place in shard.diagnosed if 0 <= place - first < width
    ]
    if added is not None and diagnosed:
      others = [
        run(
          work,
          parts,
          prepared,
          parameters=parameters,
          inputs=added,
          mesh=mesh,
          augmentation=augmentation,
        )
        for augmentation in _reduced_searches(work)
      ]
      for place in diagnosed:
        again[place - first] = tuple(one[place - first] for one in others)
    counted += [
      count_batch(work, one, two)
      for one, two in zip(results, again, strict=True)
      if len(one.rows)
    ]
  return gather(counted, per_sentence=work.per_sentence)


def _count_phrases(
  shard: Shard, work: CountingWork, parameters: tuple | None, mesh: Mesh | None
) -> Counted:
  """The same for a phrase-based model; nothing is diagnosed."""
  counted, start = [], 0
  for rows in shard.batches:
    own = None
    if shard.own is not None:
      own = counts_lib.rows(shard.own, start, start + len(rows))
      start += len(rows)
    result = _search_phrases(work, rows, own, parameters, mesh)
    counted.append(count_batch(work, result))
  return gather(counted, per_sentence=work.per_sentence)


def _search_phrases(
  work: CountingWork,
  rows: np.ndarray,
  own: Contributions | None,
  parameters: tuple | None,
  mesh: Mesh | None,
) -> PhraseResult:
  """Searches a batch of a phrase-based model."""
  held, changes = work.held, None
  if held is not None and own is not None:
    changes = lambda rule: leave_one_out.option_changes(rule, own, held, rows)
  hook, lines = work.method.search(work.config), None
  if hook is not None:
    lines = [work.bitext.lines[row] for row in rows.tolist()]
  return phrase_decoder.search_rows(
    work.model,
    work.bitext.source,
    rows,
    config=DecodeConfig(search=work.search),
    parameters=parameters,
    kernel=phrase_decoder.on_host(
      work.model, work.search.backend, mesh, augmented=hook is not None
    ),
    mesh=mesh,
    changes=changes,
    augmentation=hook,
    references=lines,
  )


def gather(parts: list[Counted], *, per_sentence: bool) -> Counted:
  """Joins the batches of a shard."""
  contributions = counts_lib.concatenate(part.made for part in parts)
  if not per_sentence:
    contributions = counts_lib.summed(contributions)
  empty = np.zeros(0, np.bool_)
  return Counted(
    made=contributions,
    values=np.concatenate(
      [np.zeros((0, len(COLUMNS))), *(p.values for p in parts)]
    ),
    admissible=np.concatenate([empty, *(p.admissible for p in parts)]),
    derived=np.concatenate([empty, *(p.derived for p in parts)]),
  )
