"""Derivations of the reference, or of its nearest string."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxmt.decode import decoding, derivation_rows, translation_forest
from jaxmt.decode.chart import augmentations
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.forced import forced as force
from jaxmt.decode.model import Model, Source, select_source
from jaxmt.text import ragged
from jaxmt.train import derivation_losses, edge_selection

_CLOSE = 50.0  # weight of goodness that outweighs most model scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReferenceDerivations:
  """A derivation near the reference for each of B sentences.

  Attributes:
    derivations: the derivations.
    exact: whether it yields the reference itself, bool `[B]`.
    distance: words of edit distance to it, float64 `[B]`.
  """

  derivations: Derivations
  exact: np.ndarray
  distance: np.ndarray


def reference_like(
  model: Model,
  source: Source,
  references: Sequence[str],
  *,
  config: DecodeConfig,
) -> ReferenceDerivations:
  """Returns the best derivation of the reference, or of its nearest string.

  Where forced decoding reaches the reference, it is the best derivation by
  model score; elsewhere the best of a search for goodness.

  Args:
    model: rules and weights.
    source: B sentences.
    references: B lines.
    config: how to search for near ones.
  """
  forced = force.force(model, source, references)
  first = translation_forest.kbest(model, source, forced.forest, size=1)
  derived = translation_forest.derivations(forced.forest, first)
  rows = [derived] if len(derived) else []
  order = np.full(len(source), -1, np.int64)
  order[np.flatnonzero(forced.reached)] = np.arange(forced.reached.sum())
  distance = np.zeros(len(source))
  missed = np.flatnonzero(~forced.reached)
  if len(missed):
    lines = [references[row] for row in missed.tolist()]
    nearest, has_nearest, distance[missed] = _nearest(
      model, select_source(source, missed), lines, config
    )
    order[missed[has_nearest]] = len(derived) + np.arange(has_nearest.sum())
    rows.append(nearest)
  return ReferenceDerivations(
    derivations=derivation_rows.in_order(rows, order, arity=model.arity),
    exact=forced.reached,
    distance=distance,
  )


def _nearest(model, source, lines, config):
  """Derivations, which sentences have one, and how far they are."""
  search = dataclasses.replace(config.search, forest=True)
  config = dataclasses.replace(config, search=search)
  extra = augmentations.loss_augmented(beam_weight=0.0, goodness_weight=_CLOSE)
  references = edge_selection.encode_references(model, source, lines)
  parts, order = [], np.full(len(source), -1, np.int64)
  distance = np.full(len(source), np.nan)
  size = 0
  for results in decoding.decode(
    model, source, config=config, augmentation=extra, references=lines
  ):
    for result in results:
      grown = decoding.forest(model, result)
      some = translation_forest.best_augmented(model, result.source, grown)
      rows = result.rows[some.sentence]
      chosen = ragged.select(references, rows)
      distance[rows] = derivation_losses.edit_distances(
        some.words, chosen, np.arange(len(rows))
      )
      order[rows] = size + np.arange(len(rows))
      size += len(rows)
      parts.append(translation_forest.derivations(grown, some))
  exists = order >= 0
  nodes = derivation_rows.in_order(parts, order[exists], arity=model.arity)
  return nodes, exists, distance
