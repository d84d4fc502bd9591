"""Translators: models with the settings that they are searched with."""

import dataclasses
from collections.abc import Mapping

from jaxmt.decode import model as models
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.features import phrase_order
from jaxmt.text import kernels


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translator:
  """A model, and how to search with it.

  Attributes:
    model: rules, language model, weights.
    beam: hypotheses per cell.
    pop: candidates scored with the language model per cell.
    threshold: hypotheses this much below the best of a cell are dropped.
    batch_cells: cells searched together.
    backend: what searches, see `chart.search.SearchConfig`.
    threads: batches at a time; 0 takes one for each core.
    max_words: longer lines are cut into pieces.
    binarize: how trees are made binary, as those of the grammar were
      (`text.binarize`); "" if they are not.
  """

  model: Model
  beam: int = 30
  pop: int = 200
  threshold: float = float("inf")
  batch_cells: int = 4096
  backend: str = "auto"
  threads: int = 0
  max_words: int = 250
  binarize: str = ""

  @property
  def weights(self) -> Mapping[str, float]:
    """The weight of every feature by name."""
    return self.model.weights


def with_weights(
  translator: Translator, weights: Mapping[str, float]
) -> Translator:
  """Returns the translator with other weights."""
  model = models.with_weights(translator.model, weights)
  return dataclasses.replace(translator, model=model)


def with_limits(
  translator: Translator,
  *,
  span: int | None = None,
  targets: int | None = None,
  distortion: int | None = None,
) -> Translator:
  """Returns the translator with other limits of matching, if given.

  Args:
    translator: the translator.
    span: longest Hiero span.
    targets: target sides per source pattern.
    distortion: distortion limit of phrases, -1 for none.

  Raises:
    InputError: for a distortion limit out of range, or of a model without
      phrases.
  """
  if span is None and targets is None and distortion is None:
    return translator
  model = translator.model
  if distortion is not None:
    if model.order is None:
      raise InputError("a distortion limit needs a phrase-based model")
    order = phrase_order.with_limit(model.order, distortion)
    model = dataclasses.replace(model, order=order)
  limits = dataclasses.replace(
    model.limits,
    span=span or model.limits.span,
    targets=targets or model.limits.targets,
  )
  model = models.with_weights(
    dataclasses.replace(model, limits=limits), model.weights
  )
  return dataclasses.replace(translator, model=model)


def decode_config(
  translator: Translator, *, forest: bool = False
) -> DecodeConfig:
  """Returns the decoder's settings.

  Args:
    translator: the model and the sizes of the search.
    forest: whether all candidates are returned, not just the beams.
  """
  return DecodeConfig(
    search=search.make_config(
      beam=translator.beam,
      pop=max(translator.pop, translator.beam),
      forest=forest,
      backend=translator.backend,
    ),
    threshold=translator.threshold,
    batch_cells=translator.batch_cells,
    threads=translator.threads or kernels.available_threads(),
  )
