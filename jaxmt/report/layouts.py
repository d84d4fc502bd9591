"""Layouts: a study's results where a published table or figure has them.

A study file may define `LAYOUT`, JSON values of one of the shapes

    {"kind": "rows", "headings": [h, ...], "gain": true,
     "rows": [[label, ..., entry, system], ...]}

one line for each row: its labels, then tune and test score, and on request the
gain on test over the study's baseline, with its p-value as it is and
corrected for the number of rows that are tested (Holm 1979), and numbers that
the runs report, if "measures" is {heading: name, ...}. With "against", names of
systems, `+` after a test score says that it is better than each of these in the
same entry, with p < 0.01;

    {"kind": "grid", "corner": c, "columns": [label, ...],
     "rows": [[label, [entry, system], ...], ...]}

cells `tune/test`;

    {"kind": "metrics", "pairs": [[[label, entry, system], [label, ...]], ...]}

every metric on tune and test for two systems, and how much the second differs
from its baseline;

    {"kind": "curves", "x": label, "panels": [{"title": t, "y": quantity,
     "series": {name: [[x, entry, system], ...]}}, ...]}

for figures, where a quantity is `tune`, `test` (scores by the study's first
metric) or a number the run reports, as `sentences_per_second`.

A layout of any kind may have figures of learning, tuning scores by round or
epoch in percent, where systems of "levels" are level lines at their score:

    "learning": [{"title": t, "series": {name: [entry, system], ...},
     "levels": {name: [entry, system], ...}}, ...]

`*` after a score says that it is better than the baseline's with p < 0.01, `-`
that it is worse with p < 0.01 (`LEGEND`).
"""

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxmt.errors import InputError

PARTS = ("tune", "test")
KINDS = ("rows", "grid", "metrics", "curves")
_NEEDED = {
  "rows": ("headings",),
  "grid": ("columns", "corner"),
  "metrics": ("pairs",),
  "curves": ("x",),
}
LEVELS = (0.01,)
LEGEND = "* better than the baseline, - worse: p < 0.01"
FALLBACK = "fall-back"  # the column of `Summary.fallback`


def percent(share: float) -> str:
  """Returns a share as people read it."""
  return f"{100 * share:.1f} %"


def mark(
  p_value: float | None, better: bool, *, levels: Sequence[float] = LEVELS
) -> str:
  """`*` for better than the baseline, `-` for worse, one for each level.

  Args:
    p_value: of the difference, or None.
    better: which way it goes.
    levels: each that p is below gives one sign.
  """
  reached = (
    sum(p_value < level for level in levels) if p_value is not None else 0
  )
  return ("*" if better else "-") * reached


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
  """A score over seeds.

  Attributes:
    values: one for each seed.
    gain: mean difference to the baseline over the seeds both have, or None if
      there is none or their test sets differ.
    p_value: of the difference to the baseline, or None.
    better: whether it is better than the baseline.
    beats_all: whether it is better than all of "against", each with p < 0.01.
    fallback: mean share of training counts that come from sentences without an
      admissible derivation; None for systems without training.
    measures: means of other numbers that the runs report.
  """

  values: tuple[float, ...]
  gain: float | None = None
  p_value: float | None = None
  better: bool = False
  beats_all: bool = False
  fallback: float | None = None
  measures: Mapping[str, float] = dataclasses.field(default_factory=dict)

  @property
  def mean(self) -> float:
    """The mean over seeds."""
    return statistics.mean(self.values)

  @property
  def deviation(self) -> float:
    """The standard deviation over seeds, 0 for one."""
    return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

  def text(self, *, deviation: bool = True) -> str:
    """`mean ± deviation`, and the `mark` of the difference."""
    shown = f"{self.mean:.2f}"
    if deviation and len(self.values) > 1:
      shown += f" ± {self.deviation:.2f}"
    shown += mark(self.p_value, self.better)
    return shown + ("+" if self.beats_all else "")


# (entry, system, part, metric) -> summary, or None if there is no such run.
Find = Callable[[str, str, str, str], Summary | None]


def check(layout: Mapping[str, Any], entries: Sequence[str], path: str) -> None:
  """Raises `InputError` if a layout is malformed or names unknown entries."""
  kind = layout.get("kind")
  if kind not in KINDS:
    raise InputError(f"LAYOUT kind '{kind}' is none of {KINDS}", path=path)
  try:
    named = places(layout)
    titles, *_ = [layout[name] for name in _NEEDED[kind]]
    learning = [
      (entry, system)
      for panel in layout.get("learning", ())
      for entry, system in (*panel["series"].values(), *_levels(panel).values())
      if panel["title"]
    ]
  except (KeyError, TypeError, ValueError) as error:
    raise InputError(
      f"LAYOUT of kind '{kind}' is malformed: {error!r}", path=path
    ) from error
  for entry, _ in [*named, *learning]:
    if entry not in entries:
      raise InputError(f"LAYOUT names '{entry}', not an entry", path=path)
  if kind not in ("rows", "grid"):
    return
  # Labels, entry and system; or a label and the cells.
  parts = len(titles) + (2 if kind == "rows" else 1)
  for number, row in enumerate(layout["rows"], start=1):
    if len(row) != parts:
      raise InputError(
        f"LAYOUT row {number} has {len(row)} parts, not {parts}", path=path
      )


def places(layout: Mapping[str, Any]) -> list[tuple[str, str]]:
  """Returns every (entry, system) a layout shows, in order."""
  kind = layout["kind"]
  if kind == "rows":
    cells = [row[-2:] for row in layout["rows"]]
  elif kind == "grid":
    cells = [cell for row in layout["rows"] for cell in row[1:]]
  elif kind == "metrics":
    cells = [line[-2:] for pair in layout["pairs"] for line in pair]
  else:
    cells = [
      point[-2:]
      for panel in layout["panels"]
      for points in panel["series"].values()
      for point in points
    ]
  return [(entry, system) for entry, system in cells]


def rows(
  layout: Mapping[str, Any], find: Find, metrics: Sequence[str]
) -> list[dict[str, Any]]:
  """Returns the lines of a table; what has not run yet is empty.

  Args:
    layout: of kind "rows", "grid" or "metrics".
    find: looks a score up.
    metrics: the first is the one that "rows" and "grid" show.
  """
  if layout["kind"] == "rows":
    return _lines(layout, find, metrics[0])
  if layout["kind"] == "grid":
    return [_grid_line(layout, row, find, metrics[0]) for row in layout["rows"]]
  return [
    line for pair in layout["pairs"] for line in _pair(pair, find, metrics)
  ]


def _shown(summary: Summary | None, *, deviation: bool = True) -> str:
  return "" if summary is None else summary.text(deviation=deviation)


def _signed(gain: float | None) -> str:
  return "" if gain is None else f"{gain:+.2f}"


def _lines(layout, find, metric) -> list[dict[str, Any]]:
  """The lines of a layout of kind "rows"."""
  lines, p_values = [], {}
  for number, row in enumerate(layout["rows"]):
    line, p_value = _line(layout, row, find, metric)
    lines.append(line)
    if p_value is not None:
      p_values[number] = p_value
  corrected = holm(list(p_values.values()))
  for number, value in zip(p_values, corrected, strict=True):
    lines[number]["p (Holm)"] = f"{value:.4f}"
  return lines


def holm(p_values: Sequence[float]) -> list[float]:
  """Returns p-values corrected for their number (Holm 1979), same order.

  The k-th smallest of n is multiplied by n - k + 1; none falls below a smaller
  one's, none exceeds 1.
  """
  order = sorted(range(len(p_values)), key=lambda place: p_values[place])
  corrected = [0.0] * len(p_values)
  largest = 0.0
  for rank, place in enumerate(order):
    scaled = p_values[place] * (len(p_values) - rank)
    largest = min(1.0, max(largest, scaled))
    corrected[place] = largest
  return corrected


def _line(layout, row, find, metric) -> tuple[dict[str, Any], float | None]:
  """A line without its corrected p-value, and its p-value if it is shown."""
  *labels, entry, system = row
  out: dict[str, Any] = dict(zip(layout["headings"], labels, strict=True))
  summaries = {part: find(entry, system, part, metric) for part in PARTS}
  for part, summary in summaries.items():
    out[part] = _shown(summary)
  test, p_value = summaries["test"], None
  if layout.get("gain"):
    p_value = None if test is None else test.p_value
    out["gain on test"] = _signed(None if test is None else test.gain)
    out["p"] = "" if p_value is None else f"{p_value:.4f}"
    out["p (Holm)"] = ""
  for heading, name in layout.get("measures", {}).items():
    value = None if test is None else test.measures.get(name)
    out[heading] = "" if value is None else f"{value:,.10g}"
  if test is not None and test.fallback is not None:
    out[FALLBACK] = percent(test.fallback)
  return out, p_value


def _grid_line(layout, row, find, metric) -> dict[str, str]:
  out = {layout["corner"]: row[0]}
  for column, (entry, system) in zip(layout["columns"], row[1:], strict=True):
    both = [find(entry, system, part, metric) for part in PARTS]
    shown = [_shown(one, deviation=False) for one in both]
    out[column] = "/".join(shown) if any(shown) else ""
  return out


def _pair(pair, find, metrics) -> list[dict[str, str]]:
  lines = []
  difference = {"entry": "difference"}
  for label, entry, system in pair:
    line = {"entry": label}
    for part in PARTS:
      for metric in metrics:
        summary = find(entry, system, part, metric)
        column = f"{part} {metric}"
        line[column] = _shown(summary, deviation=False)
        difference[column] = _signed(None if summary is None else summary.gain)
    lines.append(line)
  return [*lines, difference]  # that of the second, which came last


def curves(panel: Mapping[str, Any], look: Callable[[str, str, str], Any]):
  """Returns the `(x, y)` points of a panel's series.

  Args:
    panel: of a layout of kind "curves".
    look: (entry, system, quantity) -> number, or None if it has not run.
  """
  out = {}
  for name, points in panel["series"].items():
    curve = [
      (x, look(entry, system, panel["y"])) for x, entry, system in points
    ]
    known = [(x, y) for x, y in curve if y is not None]
    if known:
      out[name] = ([x for x, _ in known], [y for _, y in known])
  return out


def _levels(panel: Mapping[str, Any]) -> Mapping[str, Any]:
  return panel.get("levels", {})


def learning_curves(
  panel: Mapping[str, Any],
  curve: Callable[[str, str], Sequence[Sequence[float]]],
  look: Callable[[str, str, str], Any],
) -> dict[str, tuple[list[float], list[float]]]:
  """Returns the `(x, y)` points of a figure of learning, in percent.

  Args:
    panel: of a layout's "learning".
    curve: (entry, system) -> [round, score], scores in 0..1; none if it has
      not run.
    look: (entry, system, quantity) -> number, or None if it has not run.
  """
  out: dict[str, tuple[list[float], list[float]]] = {}
  for name, (entry, system) in panel["series"].items():
    if points := curve(entry, system):
      out[name] = ([x for x, _ in points], [100 * y for _, y in points])
  ends = [x for xs, _ in out.values() for x in xs]
  for name, (entry, system) in _levels(panel).items():
    score = look(entry, system, "tune")
    if score is not None and ends:
      out[name] = ([min(ends), max(ends)], [score, score])
  return out
