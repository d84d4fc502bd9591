"""Decoding with the search of the model: charts, or stacks of phrases."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from jax.sharding import Mesh

from jaxmt.decode.chart import beam_forest
from jaxmt.decode.chart import decoder as chart_decoder
from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.decode.chart.decoder import DecodeConfig, Result
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.decode.model import Model, Source, device_parameters
from jaxmt.hypergraph.forest import Forest

if TYPE_CHECKING:
  from jaxmt.decode.phrase.phrase_decoder import PhraseResult

_ROOM = 1 << 29  # bytes of patterns that are kept

AnyResult: TypeAlias = "Result | PhraseResult"


def search_of(model: Model) -> tuple[Callable[..., Any], Callable[..., Forest]]:
  """Returns the model's search and what makes forests of its results.

  They are `chart.decoder.decode` and `beam_forest.extract`, or the same of
  `phrase`, which is loaded only if it is needed.
  """
  if model.order is None:
    return chart_decoder.decode, beam_forest.extract
  from jaxmt.decode.phrase import phrase_decoder, stack_forest

  return phrase_decoder.decode, stack_forest.extract


def prepared(
  model: Model, source: Source, *, config: DecodeConfig, mesh: Mesh | None
) -> dict[str, Any]:
  """Returns what a search may be given that decodes a text several times.

  Of charts, the patterns of the grammar in the text, up to `_ROOM` bytes.
  """
  if model.order is not None:
    return {}
  batches = chart_decoder.plan(
    model, source, config=config, mesh=mesh, room=_ROOM
  )
  return {"batches": batches}


def search_parameters(
  model: Model,
  *,
  config: SearchConfig,
  mesh: Mesh | None = None,
  augmented: bool = False,
) -> tuple[Any, ...] | None:
  """Returns the features' parameters where the model's search takes them.

  Host kernels of phrases take those of the model: None.
  """
  if model.order is None:
    return chart_decoder.search_parameters(model, config, augmented=augmented)
  from jaxmt.decode.phrase import phrase_decoder

  if phrase_decoder.on_host(model, config.backend, mesh, augmented=augmented):
    return None
  return device_parameters(model)


def decode(
  model: Model,
  source: Source,
  *,
  config: DecodeConfig,
  mesh: Mesh | None = None,
  augmentation: Augmentation | None = None,
  references: Sequence[str] | None = None,
) -> Iterator[Sequence[AnyResult]]:
  """Decodes sentences; see `chart.decoder`, `phrase.phrase_decoder`."""
  run, _ = search_of(model)
  return run(
    model,
    source,
    config=config,
    mesh=mesh,
    augmentation=augmentation,
    references=references,
  )


def forest(model: Model, part: AnyResult) -> Forest:
  """Returns the forests of a part of a decoded text."""
  return search_of(model)[1](model, part)
