"""The search over stacks on devices: shapes, compiled programs, host beams."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxmt.decode import model as models
from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.decode.chart.chart_layout import NONE
from jaxmt.decode.model import Model, Source, rule_column
from jaxmt.decode.phrase import stack_features, stack_search
from jaxmt.decode.phrase.phrase_chart import PhraseChart
from jaxmt.decode.phrase.stack_beams import (
  LocalRules,
  PhraseBeams,
  StackConfig,
  StackWeights,
)
from jaxmt.features.language_model import LanguageModelFeature
from jaxmt.features.stateful import StatefulFeature
from jaxmt.runtime import parallel
from jaxmt.runtime.compiling import CompiledOnce
from jaxmt.text import ragged


def stack_weights(model: Model, threshold: float) -> StackWeights:
  """Returns the weights that act during the search."""
  return StackWeights(
    lm=np.asarray(model.lm_weight, np.float32),
    distortion=np.asarray(model.distortion, np.float32),
    threshold=np.asarray(threshold, np.float32),
    added=tuple(
      tuple(
        np.float32(model.weights.get(name, 0.0) * feature.scale)
        for name in feature.names
      )
      for feature in model.extra
    ),
  )


@functools.cache
def searcher(
  config: StackConfig,
  feature: LanguageModelFeature,
  mesh: Mesh | None = None,
  extra: tuple[StatefulFeature, ...] = (),
  augmentation: Augmentation | None = None,
) -> Any:
  """Returns the compiled array program.

  It takes (chart, rules, lm, weights, added, references) as
  `stack_search.search` does and returns beams. With a mesh, the sentences of
  the chart and the references are split over it.
  """
  run = functools.partial(
    stack_search.search,
    config=config,
    feature=feature,
    extra=extra,
    augmentation=augmentation,
  )
  if mesh is None:
    return CompiledOnce(jax.jit(run))
  return CompiledOnce(
    parallel.data_parallel(
      lambda *inputs: (run(*inputs),),
      mesh=mesh,
      inputs=("split", "copied", "copied", "copied", "copied", "split"),
      outputs=("split",),
    )
  )


def localise(
  model: Model, source: Source, chart: PhraseChart, *, parts: int = 1
) -> tuple[PhraseChart, LocalRules]:
  """Returns the chart with rows of the rules it uses, and those rules.

  Sentences and rules are padded to few sizes.
  """
  used, place = np.unique(np.maximum(chart.rule, 0), return_inverse=True)
  there = chart.rule >= 0
  local = np.where(there, 1 + place.reshape(chart.rule.shape), -1)
  rows = ragged.bucket(1 + len(used))
  runs = rule_column(
    model,
    source,
    used.astype(np.int32),
    lambda columns: columns.inputs[0].arrays[:, 0],
  )
  known = np.minimum(used, len(model.table))
  fill = lambda values: np.concatenate(
    [
      np.zeros((1, *values.shape[1:]), values.dtype),
      values,
      np.zeros((rows - 1 - len(values), *values.shape[1:]), values.dtype),
    ]
  )
  rules = LocalRules(
    runs=fill(runs),
    forward=fill(model.order_scores[known, 3:]),
    classes=fill(model.phrase_order.classes[known]),
    goal=model.columns.inputs[0].arrays[-1, 0],
    goal_score=model.columns.score[-1],
  )
  more = ragged.bucket(max(len(chart.length), 8))
  more = -(-more // parts) * parts - len(chart.length)
  pad = lambda array, value=0.0: np.pad(
    array, [(0, more)] + [(0, 0)] * (array.ndim - 1), constant_values=value
  )
  padded = PhraseChart(
    length=pad(chart.length),
    rule=pad(local.astype(np.int32), -1),
    ranked=pad(chart.ranked, float(NONE)),
    order=pad(chart.order),
    future=pad(chart.future),
    reach=pad(chart.reach),
    zones=pad(chart.zones),
  )
  return padded, rules


def search_batch(
  model: Model,
  source: Source,
  chart: PhraseChart,
  *,
  config: StackConfig,
  parameters: Any = None,
  threshold: float = float("inf"),
  mesh: Mesh | None = None,
  augmentation: Augmentation | None = None,
  references: Sequence[str] | None = None,
) -> PhraseBeams:
  """Searches sentences with the array program; returns host beams.

  Args:
    model: phrases, order and weights.
    source: B sentences.
    chart: their options.
    config: sizes.
    parameters: see `decode`.
    threshold: of stacks.
    mesh: devices to split the sentences over.
    augmentation: extra scores.
    references: with an augmentation, a line of each sentence.
  """
  parts = 1 if mesh is None else mesh.size
  padded, rules = localise(model, source, chart, parts=parts)
  if parameters is None:
    parameters = models.device_parameters(model)
  added, known, hook = None, None, None
  if augmentation is not None or model.extra:
    runs = None
    if augmentation is not None:
      hook = dataclasses.replace(augmentation, parameters=())
      runs, known = stack_features.phrase_runs(
        model,
        source,
        np.asarray(chart.rule),
        references or (),
        sentences=len(padded.length),
      )
    added = stack_features.added_rules(
      model,
      source,
      np.unique(np.maximum(chart.rule, 0)).astype(np.int32),
      rows=len(rules.runs),
      parameters=parameters,
      augmentation=augmentation,
      runs=runs,
    )
  call = searcher(config, model.features[0], mesh, model.extra, hook)
  weights = stack_weights(model, threshold)
  found = call(padded, rules, parameters[0], weights, added, known)
  beams = found if mesh is None else found[0]
  return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(source)], beams)
