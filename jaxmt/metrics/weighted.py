"""Several metrics as one: their weighted sum (survey, Eq 78).

Statistics stand side by side, so that the sum of a corpus is scored from sums,
as for any metric. Error rates enter as `1 - rate`: higher is better.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.metrics import base, encoded_text
from jaxmt.text.ragged import Ragged

Parts = Sequence[tuple[float, base.Metric]]


def make_metric(name: str, parts: Parts) -> base.Metric:
  """Returns `sum_l weight_l goodness_l` as a metric.

  Args:
    name: what it is called.
    parts: weights and metrics.

  Raises:
    InputError: if some metrics compare words and some characters.
  """
  units = {metric.unit for _, metric in parts}
  stemmed = base.STEMMED in units
  if stemmed:
    units -= {base.WORD}  # words are part of stemmed words
  if len(units) != 1:
    listed = ", ".join(sorted(units))
    raise InputError(f"metric '{name}' mixes units: {listed}")

  def own_tokens(metric: base.Metric, tokens: Ragged) -> Ragged:
    if stemmed and metric.unit == base.WORD:
      return encoded_text.without_stems(tokens)
    return tokens

  def combine(pick, statistics):
    total = 0.0
    for weight, metric, span in columns(parts):
      value = pick(metric)(statistics[..., span])
      total += weight * (value if metric.higher_is_better else 1.0 - value)
    return total

  def prepare(references: base.References) -> tuple[Any, ...]:
    return tuple(
      metric.prepare(
        base.References(
          tokens=own_tokens(metric, references.tokens), first=references.first
        )
      )
      for _, metric in parts
    )

  def statistics(
    prepared: tuple[Any, ...], hypotheses: Ragged, sentence: np.ndarray, **how
  ) -> np.ndarray:
    parts_statistics = [
      metric.statistics(
        encoded, own_tokens(metric, hypotheses), sentence, **how
      )
      for (_, metric), encoded in zip(parts, prepared, strict=True)
    ]
    return np.concatenate(parts_statistics, axis=1).astype(np.float64)

  return base.Metric(
    name=name,
    size=sum(metric.size for _, metric in parts),
    higher_is_better=True,
    percent=all(metric.percent for _, metric in parts),
    unit=min(units),
    prepare=prepare,
    statistics=statistics,
    corpus_score=lambda s: combine(lambda m: m.corpus_score, s),
    sentence_score=lambda s: combine(lambda m: m.sentence_score, s),
    settings=tuple((metric.name, weight) for weight, metric in parts),
  )


def columns(parts: Parts) -> Iterator[tuple[float, base.Metric, slice]]:
  """Yields weights and metrics with their columns of the statistics."""
  low = 0
  for weight, metric in parts:
    yield weight, metric, slice(low, low + metric.size)
    low += metric.size
