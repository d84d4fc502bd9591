"""Decoding with the search of the model: charts, or stacks of phrases."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jax.sharding import Mesh

from jaxmt.decode.chart import beam_forest
from jaxmt.decode.chart import decoder as chart_decoder
from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.decode.chart.decoder import DecodeConfig, Result
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase import decoder as phrase_decoder
from jaxmt.decode.phrase import stack_forest
from jaxmt.decode.phrase.decoder import PhraseResult
from jaxmt.errors import InputError
from jaxmt.hypergraph.forest import Forest

AnyResult = Result | PhraseResult


def decode(
  model: Model,
  source: Source,
  *,
  config: DecodeConfig,
  mesh: Mesh | None = None,
  parameters: tuple[Any, ...] | None = None,
  augmentation: Augmentation | None = None,
  references: Sequence[str] | None = None,
) -> Iterator[Sequence[AnyResult]]:
  """Decodes sentences; see `chart.decoder.decode`, `phrase.decoder.decode`.

  Raises:
    InputError: for an augmented search of a phrase-based model.
  """
  common = {"config": config, "mesh": mesh, "parameters": parameters}
  if model.order is not None:
    if augmentation is not None:
      raise InputError("phrase-based models have no augmented search")
    return phrase_decoder.decode(model, source, **common)
  return chart_decoder.decode(
    model, source, augmentation=augmentation, references=references, **common
  )


def search_of(model: Model) -> tuple[Callable[..., Any], Callable[..., Forest]]:
  """Returns `decode` and `forest` of the model's search, chosen once."""
  if model.order is not None:
    return phrase_decoder.decode, stack_forest.extract
  return chart_decoder.decode, beam_forest.extract


def forest(model: Model, part: AnyResult) -> Forest:
  """Returns the forests of a part of a decoded text."""
  if isinstance(part, PhraseResult):
    return stack_forest.extract(model, part)
  return beam_forest.extract(model, part)
