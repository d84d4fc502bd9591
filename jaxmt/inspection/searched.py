"""Sentences searched again by several models, to look at their beams."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from jaxmt.decode import decoding, derivation_rows, nbest, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.decoding import AnyResult
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.forced import forced
from jaxmt.decode.model import Model, Source
from jaxmt.hypergraph.forest import Forest
from jaxmt.inspection import phrase_views
from jaxmt.inspection.derivation_views import ComparedModels
from jaxmt.metrics import encoded_text as metric_text
from jaxmt.metrics import named_metrics
from jaxmt.text import kernels
from jaxmt.train import explain

TIE = 1e-3  # scores that differ by less are equal up to rounding


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchedBatch:
  """A batch of a search with its k-best lists.

  Attributes:
    result: the search.
    forest: what it kept.
    lists: the best translations of its sentences, numbered by place.
    derivations: of the lists, in their order.
    costs: 1 - BLEU+1 of each translation, float64.
  """

  result: AnyResult
  forest: Forest
  lists: CandidateLists
  derivations: Derivations
  costs: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Searched:
  """Some sentences, searched by every model with forests.

  Attributes:
    compared: the models, with all sentences.
    rows: which sentences were searched, rising, int64 `[S]`.
    source: the same as sentences.
    references: of each its reference, empty for none.
    batches: by system.
  """

  compared: ComparedModels
  rows: np.ndarray
  source: Source
  references: Sequence[str]
  batches: Mapping[str, Sequence[SearchedBatch]]

  def places(self, name: str) -> Iterator[tuple[int, SearchedBatch, int]]:
    """Yields (place in `rows`, batch, place in the batch) of a system."""
    for batch in self.batches[name]:
      for place, row in enumerate(batch.result.rows.tolist()):
        yield row, batch, place

  def ranks(self, name: str, derivations: Derivations) -> explain.Ranks:
    """Where the parts of S derivations stand in the search of a system."""
    model = self.compared.model(name)
    rank = explain if model.order is None else phrase_views
    results = [batch.result for batch in self.batches[name]]
    return rank.ranks_in(
      model,
      self.source,
      derivations,
      results,  # type: ignore
      tolerance=TIE,
    )

  def words(self, derivations: Derivations) -> np.ndarray:
    """Source words under each part of S derivations, int64 `[N]`."""
    if self.compared.models[0].order is not None:
      return phrase_views.covered_words(derivations)
    return derivations.end - derivations.begin


def search_again(
  compared: ComparedModels,
  rows: np.ndarray,
  references: Sequence[str],
  *,
  configs: Mapping[str, DecodeConfig],
  nbest_size: int,
) -> Searched:
  """Searches some sentences with every model.

  Args:
    compared: the models, with N sentences.
    rows: the S sentences to search, rising.
    references: of all N sentences, empty for none.
    configs: how each system decodes, with forests.
    nbest_size: translations per list.
  """
  source = models.select_source(compared.source, rows)
  lines = [references[row] for row in rows.tolist()]
  batches = {}
  for name in compared.names:
    model = compared.model(name)
    batches[name] = [
      _batch(model, result, lines, nbest_size)
      for results in decoding.decode(model, source, config=configs[name])
      for result in results
    ]
  return Searched(
    compared=compared,
    rows=rows,
    source=source,
    references=lines,
    batches=batches,
  )


def _batch(
  model: Model, result: AnyResult, references: Sequence[str], size: int
) -> SearchedBatch:
  grown = decoding.forest(model, result)
  places = np.arange(len(result.rows))
  lists = nbest.lists(
    model,
    result.source,
    grown,
    nbest.ListSettings(size=size, unique=True),
    rows=places,
  )
  derived = translation_forest.kbest(
    model, result.source, grown, size=size, unique=True
  )
  known = [[references[row]] for row in result.rows.tolist()]
  return SearchedBatch(
    result=result,
    forest=grown,
    lists=lists,
    derivations=translation_forest.derivations(grown, derived),
    costs=costs(lists, known),
  )


def costs(
  lists: CandidateLists, references: Sequence[Sequence[str]]
) -> np.ndarray:
  """Returns 1 - BLEU+1 of each candidate, float64 `[N]`."""
  kind = named_metrics.find("bleu+1")
  known = metric_text.encode_references(references, unit=kind.unit)
  statistics = kind.statistics(
    kind.prepare(known.references), known.encode(lists.lines), lists.sentence
  )
  return 1.0 - np.asarray(kind.sentence_score(statistics), np.float64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoodDerivations:
  """What the search should have found, for the S sentences searched.

  Attributes:
    derivations: that of the reference, where the rules can derive it, the best
      one by the last system's score; else that of the best translation by
      BLEU+1 in the lists of all systems. Empty without a reference.
    reached: whether it is the reference's, bool `[S]`.
    reasons: why the rules cannot derive the reference, empty if they can.
  """

  derivations: Derivations
  reached: np.ndarray
  reasons: Sequence[str]


def good_derivations(searched: Searched) -> GoodDerivations:
  """Returns good derivations of all sentences that were searched.

  Phrase tables have no forced decoding: theirs are from the lists.
  """
  compared = searched.compared
  model = compared.models[-1]
  has_reference = np.array([bool(line) for line in searched.references], bool)
  order = np.full(len(searched.rows), -1, np.int64)
  parts, reasons = [], [""] * len(order)
  if model.order is None:
    source = models.rescore_source(model, searched.source)
    config = forced.ForceConfig(threads=kernels.available_threads())
    forced_forests = forced.force(
      model, source, searched.references, config=config
    )
    first = translation_forest.kbest(
      model, source, forced_forests.forest, size=1
    )
    parts = [translation_forest.derivations(forced_forests.forest, first)]
    order[first.sentence] = np.arange(len(parts[0]))
    reasons = forced_forests.reason
  reached = (order >= 0) & has_reference
  order[~reached] = -1
  size = sum(map(len, parts))
  least = np.full(len(order), np.inf)
  for name in compared.names:
    for batch in searched.batches[name]:
      row = batch.result.rows[batch.lists.sentence]
      # Of each sentence the cheapest candidate; the first one of equals.
      filled = np.flatnonzero(np.diff(batch.lists.features.offsets) > 0)
      for number, one in enumerate(filled.tolist()):
        place = row[one]
        if not has_reference[place] or reached[place]:
          continue
        if batch.costs[one] < least[place]:
          least[place], order[place] = batch.costs[one], size + number
      parts.append(batch.derivations)
      size += len(batch.derivations)
  return GoodDerivations(
    derivations=derivation_rows.in_order(parts, order, arity=model.arity),
    reached=reached,
    reasons=reasons,
  )
