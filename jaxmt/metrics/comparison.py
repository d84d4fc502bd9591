"""Scores of several systems as rows of a table, with significance."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from jaxmt.metrics import evaluation, significance

TESTS = ("bootstrap", "randomization")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SignificancePlan:
  """Which random tests to make.

  Attributes:
    paired: whether the first system is a baseline for the others; if not,
      systems only get their bootstrap intervals.
    test: one of `TESTS`.
    samples: of the test; 0 for its usual number.
    seed: of the random draws.
  """

  paired: bool
  test: str = "bootstrap"
  samples: int = 0
  seed: int = significance.DEFAULT_SEED

  @property
  def swaps(self) -> int:
    """Samples of approximate randomisation, 0 if that is not the test."""
    if not self.paired or self.test == "bootstrap":
      return 0
    return self.samples or significance.RANDOMIZATION_SAMPLES

  @property
  def resamplings(self) -> int:
    """Bootstrap samples."""
    if self.swaps or not self.samples:
      return significance.BOOTSTRAP_SAMPLES
    return self.samples

  def signature(self) -> list[tuple[str, Any]]:
    """Returns what signatures say about the tests, in sacreBLEU's words."""
    parts: list[tuple[str, Any]] = [("bs", self.resamplings)]
    if self.swaps:
      parts.append(("ar", self.swaps))
    return [*parts, ("seed", self.seed)]


def _tests(scored: evaluation.Scored, plan: SignificancePlan) -> list[Any]:
  """An `Interval` or a `Comparison` for each system."""
  metric, statistics = scored.metric, scored.statistics
  alone = statistics[:1] if plan.paired else statistics
  results: list[Any] = [
    significance.confidence(
      metric, system, samples=plan.resamplings, seed=plan.seed
    )
    for system in alone
  ]
  if plan.swaps:
    results += significance.randomization(
      metric,
      statistics[0],
      statistics[1:],
      samples=plan.swaps,
      confidence_samples=plan.resamplings,
      seed=plan.seed,
    )
  elif plan.paired:
    results += significance.bootstrap(
      metric,
      statistics[0],
      statistics[1:],
      samples=plan.resamplings,
      seed=plan.seed,
    )
  return results


def pairwise(
  scored: evaluation.Scored, plan: SignificancePlan
) -> list[list[list[float]]]:
  """Returns how every system differs from every other.

  Args:
    scored: M systems.
    plan: the test and its sizes.

  Returns:
    M lists of M pairs (p-value, difference): system m less system n in row m.
    Empty if the plan makes no paired tests.
  """
  statistics, size = scored.statistics, len(scored.statistics)
  if not plan.paired:
    return []
  out = [[[1.0, 0.0] for _ in range(size)] for _ in range(size)]
  for one in range(size - 1):
    pair = dataclasses.replace(scored, statistics=statistics[one:])
    for other, result in enumerate(_tests(pair, plan)[1:], start=one + 1):
      gap = scored.corpus_score(other) - scored.corpus_score(one)
      out[other][one] = [result.p_value, round(gap, 4)]
      out[one][other] = [result.p_value, round(-gap, 4)]
  return out


def rows(
  scored: evaluation.Scored,
  names: Sequence[str],
  plan: SignificancePlan | None = None,
) -> list[dict[str, Any]]:
  """Returns one metric's rows, a system each.

  Args:
    scored: M systems.
    names: of the systems.
    plan: which tests to make, if any.

  Returns:
    `metric, system, score` and, as they apply, `mean` and `margin` of the
    bootstrap, `difference` to the baseline, `p_value`, whether it is `better`,
    and a `detail` in words.
  """
  results = _tests(scored, plan) if plan else [None] * len(names)
  table: list[dict[str, Any]] = []
  for system, (name, result) in enumerate(zip(names, results, strict=True)):
    row: dict[str, Any] = {"metric": scored.label, "system": name}
    row["score"] = scored.corpus_score(system)
    compared = isinstance(result, significance.Comparison)
    interval = result.interval if compared else result
    if interval is not None:
      row["mean"] = scored.scale * interval.mean
      row["margin"] = scored.scale * interval.margin
    if compared:
      row["difference"] = row["score"] - table[0]["score"]
      row["p_value"] = result.p_value
      row["better"] = result.better
    if scored.metric.name == "bleu":
      row["detail"] = evaluation.bleu_detail(scored, system)
    table.append(row)
  return table


def table_lines(table: Sequence[dict[str, Any]], *, decimals: int) -> list[str]:
  """Returns rows as aligned lines under a heading; `*` marks p < 0.05."""
  lines = []
  for row in table:
    cells = [row["metric"], row["system"], f"{row['score']:.{decimals}f}"]
    interval = gap = p_value = ""
    if "mean" in row:
      interval = f"{row['mean']:.{decimals}f} ± {row['margin']:.{decimals}f}"
    if "p_value" in row:
      gap = f"{row['difference']:+.{decimals}f}"
      p_value = f"{row['p_value']:.4f}" + "*" * (row["p_value"] < 0.05)
    lines.append([*cells, interval, gap, p_value, row.get("detail", "")])
  heads = ["metric", "system", "score", "mean ± 95%", "difference", "p", ""]
  used = [n for n, _ in enumerate(heads) if any(line[n] for line in lines)]
  chosen = [[line[n] for n in used] for line in [heads, *lines]]
  widths = [max(map(len, column)) for column in zip(*chosen, strict=True)]
  return [
    "  ".join(
      cell.ljust(width) for cell, width in zip(line, widths, strict=True)
    ).rstrip()
    for line in chosen
  ]
