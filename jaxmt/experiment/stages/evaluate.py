"""Scoring translations: corpus scores, and the statistics they come from."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from jaxmt.experiment.record import Record
from jaxmt.experiment.stages.corpus import Corpus, Translations
from jaxmt.metrics import comparison, encoded_text, evaluation

_STATISTICS = "statistics_"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
  """What to compute.

  Attributes:
    part: "tune" or "test".
    metrics: names of `jaxmt.metrics.evaluation`.
    tokenize: tokeniser of all metrics but TER and chrF; the embedded corpus
      is tokenised already.
    lowercase: fold case, for all metrics but TER, which folds it by itself.
    order: longest n-gram of BLEU.
    test: "bootstrap" or "randomization", for the comparison with the first.
  """

  part: str = "test"
  metrics: tuple[str, ...] = ("bleu", "ter", "chrf")
  tokenize: str = "none"
  lowercase: bool = False
  order: int = 4
  test: str = "randomization"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scores(Record):
  """Scores of M systems on the N sentences of one part.

  Attributes:
    rows: one dict for each system and metric, see `comparison.rows`.
    signatures: by metric.
    statistics: by metric, what its scores are computed from, `[M, N, S]`.
    pairwise: by metric, for each two systems the p-value of their difference
      and the difference, `M` lists of `M` pairs.
  """

  rows: list[dict[str, Any]]
  signatures: dict[str, str]
  statistics: dict[str, np.ndarray]
  pairwise: dict[str, list[list[list[float]]]] = dataclasses.field(
    default_factory=dict
  )

  def to_values(self) -> dict[str, Any]:
    """See `Record`; each metric's statistics are an array of their own."""
    arrays = {
      f"{_STATISTICS}{name}": value for name, value in self.statistics.items()
    }
    return {
      "rows": self.rows,
      "signatures": self.signatures,
      "pairwise": self.pairwise,
      **arrays,
    }

  @classmethod
  def from_values(cls, values: Mapping[str, Any]) -> Self:
    """See `Record`."""
    return cls(
      rows=values["rows"],
      signatures=values["signatures"],
      pairwise=values.get("pairwise", {}),
      statistics={
        name.removeprefix(_STATISTICS): value
        for name, value in values.items()
        if name.startswith(_STATISTICS)
      },
    )


def check(config: EvaluateConfig) -> None:
  """Raises `ValueError` for an unknown metric, tokeniser or test."""
  if not config.metrics:
    raise ValueError("metrics: name at least one")
  for name in config.metrics:
    evaluation.metric_of(name, evaluation.Settings(metrics=(name,)))
  if config.tokenize not in encoded_text.TOKENIZERS:
    known = ", ".join(encoded_text.TOKENIZERS)
    raise ValueError(f"tokenize '{config.tokenize}' is none of {known}")
  if config.order < 1:
    raise ValueError("order must be at least 1")
  if config.test not in comparison.TESTS:
    known = ", ".join(comparison.TESTS)
    raise ValueError(f"test '{config.test}' is none of {known}")


def evaluate(
  config: EvaluateConfig, *, corpus: Corpus, **systems: Translations
) -> Scores:
  """Scores systems against the references; the first one is the baseline.

  Args:
    config: see `EvaluateConfig`.
    corpus: has the references.
    **systems: the translations of each system.
  """
  references = corpus.part(config.part).references
  settings = evaluation.Settings(
    metrics=config.metrics,
    tokenize=config.tokenize,
    lowercase=config.lowercase,
    order=config.order,
  )
  lines = [system.hypothesis(config.part) for system in systems.values()]
  scored = evaluation.evaluate(references, lines, settings)
  plan = comparison.SignificancePlan(paired=len(systems) > 1, test=config.test)
  counts = {len(row) for row in references}
  rows, signatures, statistics, pairwise = [], {}, {}, {}
  for name, result in zip(config.metrics, scored, strict=True):
    for row in comparison.rows(result, list(systems), plan):
      rows.append({**row, "metric": name})
    signatures[name] = evaluation.signature(
      result,
      references_per_sentence=counts.pop() if len(counts) == 1 else "var",
      test=plan.signature(),
    )
    counts = {len(row) for row in references}
    statistics[name] = result.statistics
    pairwise[name] = comparison.pairwise(result, plan)
  return Scores(
    rows=rows, signatures=signatures, statistics=statistics, pairwise=pairwise
  )
