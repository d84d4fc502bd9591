"""Reports of links against gold: scores, intervals, kinds of links."""

from typing import Any

import numpy as np

from jaxmt.metrics import link_accuracy as metrics
from jaxmt.metrics import significance
from jaxmt.text.ragged import Ragged

_NAMES = {
  "precision": "link-precision",
  "recall": "link-recall",
  "f1": "link-f1",
  "aer": "aer",
}


def evaluate(
  predicted: Ragged,
  sure: Ragged,
  possible: Ragged,
  *,
  source_lengths: np.ndarray | None = None,
  target_lengths: np.ndarray | None = None,
  samples: int = significance.BOOTSTRAP_SAMPLES,
  seed: int = significance.DEFAULT_SEED,
) -> dict[str, Any]:
  """Compares links of N sentence pairs.

  Args:
    predicted: pairs (source, target), N rows.
    sure: gold links, N rows.
    possible: gold links that count as right, sure ones included, N rows.
    source_lengths: words of each pair, `[N]`; with `target_lengths`, words
      without links are scored, too.
    target_lengths: see above.
    samples: bootstrap samples of sentence pairs.
    seed: of these.

  Returns:
    Precision, recall, F1 and AER, each with "margin", half of its 95 percent
    interval; counts; and "types", precision and recall by kind of link.
  """
  statistics = metrics.statistics(predicted, sure, possible)
  counts = statistics.sum(0)
  report: dict[str, Any] = {"pairs": len(predicted)}
  for name, metric in _NAMES.items():
    kind = metrics.METRICS[metric]
    interval = significance.confidence(
      kind, statistics, samples=samples, seed=seed
    )
    report[name] = round(interval.score, 5)
    report[f"{name}_margin"] = round(interval.margin, 5)
  names = ("predicted", "sure", "predicted_sure", "predicted_possible")
  report |= {
    name: int(value) for name, value in zip(names, counts, strict=True)
  }
  types = metrics.by_type(predicted, sure, possible)
  if source_lengths is not None and target_lengths is not None:
    types.append(
      metrics.unlinked(predicted, possible, source_lengths, target_lengths)
    )
  report["types"] = [
    {key: _rounded(value) for key, value in row.items()} for row in types
  ]
  return report


def _rounded(value: Any) -> Any:
  return round(value, 5) if isinstance(value, float) else value


def summary_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
  """Returns the scores of a report as rows of a table."""
  return [
    {
      "score": name,
      "value": report[name],
      "margin": report[f"{name}_margin"],
    }
    for name in _NAMES
  ]
