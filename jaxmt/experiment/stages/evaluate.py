"""Scoring translations: corpus scores, and the statistics they come from."""

import dataclasses
from typing import Any

from jaxmt.metrics import comparison, evaluation, text


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
  """What to compute.

  Attributes:
    part: "tune" or "test".
    metrics: names of `jaxmt.metrics.evaluation`.
    tokenize: of all but TER and chrF; our corpora are tokenised already.
    test: "bootstrap" or "randomization", for the comparison with the first.
  """

  part: str = "test"
  metrics: tuple[str, ...] = ("bleu", "ter", "chrf")
  tokenize: str = "none"
  test: str = "randomization"


def check(config: EvaluateConfig) -> None:
  """Raises `ValueError` for a metric, tokeniser or test there is not."""
  if not config.metrics:
    raise ValueError("metrics: name at least one")
  for name in config.metrics:
    evaluation.metric_of(name, evaluation.Settings(metrics=(name,)))
  if config.tokenize not in text.TOKENIZERS:
    known = ", ".join(text.TOKENIZERS)
    raise ValueError(f"tokenize '{config.tokenize}' is none of {known}")
  if config.test not in comparison.TESTS:
    known = ", ".join(comparison.TESTS)
    raise ValueError(f"test '{config.test}' is none of {known}")


def evaluate(
  config: EvaluateConfig,
  *,
  corpus: dict[str, Any],
  **systems: dict[str, Any],
) -> dict[str, Any]:
  """Scores systems against the references; the first one is the baseline.

  Args:
    config: see `EvaluateConfig`.
    corpus: as `jaxmt.experiment.stages.corpus` makes it.
    **systems: for each system an artefact with "{part}_hypothesis" lines.

  Returns:
    "rows": a list of dicts, one for each system and metric (see
    `comparison.rows`); "signatures" by metric; "statistics_{metric}": `[M, N,
    S]`.
  """
  references = corpus[f"{config.part}_references"]
  settings = evaluation.Settings(
    metrics=config.metrics, tokenize=config.tokenize
  )
  lines = [made[f"{config.part}_hypothesis"] for made in systems.values()]
  scored = evaluation.evaluate(references, lines, settings)
  plan = comparison.Plan(paired=len(systems) > 1, test=config.test)
  counts = {len(row) for row in references}
  rows, signatures, statistics = [], {}, {}
  for name, result in zip(config.metrics, scored, strict=True):
    for row in comparison.rows(result, list(systems), plan):
      rows.append({**row, "metric": name})
    signatures[name] = evaluation.signature(
      result,
      references_per_sentence=counts.pop() if len(counts) == 1 else "var",
      test=plan.signature(),
    )
    counts = {len(row) for row in references}
    statistics[f"statistics_{name}"] = result.statistics
  return {"rows": rows, "signatures": signatures, **statistics}
