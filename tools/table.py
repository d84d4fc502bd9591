r"""Prints the results of a study: mean, deviation, seeds, significance.

    python tools/table.py WORKDIR [--metrics=bleu,ter] [--markdown] [--plain] \
      [--baseline=ENTRY]

Deviations are over seeds. The p-value is that of a paired approximate
randomisation against the baseline (the same system in the study's baseline
entry, or the one system the study names, there or in the same entry), over the
sentences of all seeds that both have (Clark et al. 2011). Seeds with the same
test references are not more sentences: what they make of a sentence is added
up and swapped together.

`*` marks better than the baseline with p < 0.05, `**` with p < 0.01; `-` and
`--` mark worse. A study with a layout is printed as the published table is,
there `*` and `-` mark p < 0.01, and `+`, where the study says so, better than
every one of several systems; --plain gives the usual table. WORKDIR/table.html
has the table, which sorts by any column, the published figure if the layout is
one, and learning curves: tuning scores by round. "fall-back" is the share of a
trained system's counts that come from sentences without an admissible
derivation.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import pathlib
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment import study
from jaxmt.metrics import evaluation, significance
from jaxmt.report import html, layouts, page, text_tables
from jaxmt.text import files

POSITIONAL = "the study's workdir"
_METRICS = flags.DEFINE_list("metrics", [], "metrics to show; all by default")
_MARKDOWN = flags.DEFINE_bool("markdown", False, "print a Markdown table")
_PLAIN = flags.DEFINE_bool("plain", False, "ignore the study's layout")
_SYSTEM = flags.DEFINE_string(
  "system", None, "show only this system, in the usual table"
)
_BASELINE = flags.DEFINE_string(
  "baseline", None, "compare with this entry, not with the study's baseline"
)


_LEVELS = (0.05, 0.01)
# What trained systems report of the beam, see `jaxmt.train.beam_diagnosis`.
_BEAM = {
  "beam loss": "beam_loss",
  "changed": "beam_changes",
  "beyond k": "beyond_beam",
}
_LEGEND = "*, ** better than the baseline, -, -- worse: p < 0.05, p < 0.01"


def compare(
  name: str, own: study.TrialOutcome, base: study.TrialOutcome
) -> significance.Comparison | None:
  """Compares two outcomes by a metric, over the seeds both have.

  Returns:
    None if there is no such seed, or if they are of different test sets.
  """
  pairs = _pairs(name, own, base)
  if not pairs or any(one.shape != two.shape for one, two in pairs):
    return None
  one, two = (np.concatenate(side) for side in zip(*pairs, strict=True))
  metric = evaluation.metric_of(name, evaluation.Settings(metrics=(name,)))
  return significance.randomization(
    metric, one, two[None], samples=2000, confidence_samples=100
  )[0]


def _pairs(
  name: str, own: study.TrialOutcome, base: study.TrialOutcome
) -> list[tuple[np.ndarray, np.ndarray]]:
  """Statistics `[N, S]` of the baseline and of the other, for each test set.

  Those of seeds with the same references are sums. Runs that do not say what
  their references are count as test sets of their own.
  """
  found: dict[object, tuple[np.ndarray, np.ndarray]] = {}
  for seed in own.seeds:
    if seed not in base.seeds:
      continue
    places = [(o, o.seeds.index(seed)) for o in (base, own)]
    texts = {o.references[place] for o, place in places}
    both = [o.statistics[name][place] for o, place in places]
    if None not in texts and len(texts) > 1:
      return []
    text = seed if None in texts else texts.pop()
    if text in found:
      both = [x + y for x, y in zip(found[text], both, strict=True)]
    found[text] = (both[0], both[1])
  return list(found.values())


def row(
  outcome: study.TrialOutcome, base: study.TrialOutcome | None, names: list[str]
):
  """Returns one line of the table."""
  shown: dict[str, str | int] = {
    "entry": outcome.entry,
    "system": outcome.system,
    "n": len(outcome.seeds),
  }
  if all(names[0] in scores for scores in outcome.tune):
    tuned = tuple(scores[names[0]] for scores in outcome.tune)
    shown[f"tune {names[0]}"] = layouts.Summary(values=tuned).text()
  for name in names:
    values = tuple(scores[name] for scores in outcome.scores)
    text = layouts.Summary(values=values).text()
    if base is not None and base is not outcome:
      seen = compare(name, outcome, base)
      if seen is not None:
        text += layouts.mark(seen.p_value, seen.better, levels=_LEVELS)
    shown[name] = text
  if (fallback := _fallback(outcome)) is not None:
    shown[layouts.FALLBACK] = layouts.percent(fallback)
  for label, name in _BEAM.items():
    values = [one[name] for one in outcome.measures if name in one]
    if values:
      shown[label] = f"{statistics.mean(values):.3g}"
  if all("seconds" in measures for measures in outcome.measures):
    seconds = [measures["seconds"] for measures in outcome.measures]
    shown["seconds"] = f"{statistics.mean(seconds):.1f}"
  return shown


def _fallback(outcome: study.TrialOutcome) -> float | None:
  """The mean share of counts that fell back; None without training."""
  name = "fallback_mass_share"
  values = [one[name] for one in outcome.measures if name in one]
  return statistics.mean(values) if values else None


def _baselines(found, about):
  """A function giving what an outcome is compared with, or None."""
  if about.get("within"):
    known = {o.entry: o for o in found if o.system == about["system"]}
    return lambda outcome: known.get(outcome.entry)
  own = {o.system: o for o in found if o.entry == about["baseline"]}
  if about.get("system"):
    return lambda outcome: own.get(about["system"])
  return lambda outcome: own.get(outcome.system)


def _scores(
  outcome: study.TrialOutcome, part: str, metric: str
) -> dict[int, float]:
  """Scores by seed, of those seeds that have one."""
  of_part = outcome.tune if part == "tune" else outcome.scores
  pairs = zip(outcome.seeds, of_part, strict=True)
  return {seed: one[metric] for seed, one in pairs if metric in one}


def _beats_all(outcome: study.TrialOutcome, others, metric: str) -> bool:
  """Whether an outcome is better than others, each with p < 0.01."""
  seen = [compare(metric, outcome, other) for other in others if other]
  return len(seen) == len(others) and all(
    one is not None and one.better and one.p_value < layouts.LEVELS[0]
    for one in seen
  )


def _finder(found, baseline, against: Sequence[str] = ()) -> layouts.Find:
  """Looks scores up for a layout; significance on test only."""
  known = {(o.entry, o.system): o for o in found}

  def find(entry, system, part, metric):
    outcome = known.get((entry, system))
    if outcome is None or not (own := _scores(outcome, part, metric)):
      return None
    base = baseline(outcome)
    gain, p_value, better = None, None, False
    if base is outcome:
      gain = 0.0
    elif base is not None and (seen := compare(metric, outcome, base)):
      theirs = _scores(base, part, metric)
      gaps = [own[seed] - theirs[seed] for seed in own if seed in theirs]
      gain = statistics.mean(gaps) if gaps else None
      if part == "test":
        p_value, better = seen.p_value, seen.better
    others = [known.get((entry, name)) for name in against]
    return layouts.Summary(
      values=tuple(own.values()),
      gain=gain,
      p_value=p_value,
      better=better,
      beats_all=bool(others)
      and part == "test"
      and system not in against
      and _beats_all(outcome, others, metric),
      fallback=_fallback(outcome),
      measures=_means(outcome.measures),
    )

  return find


def _means(measures: Sequence[dict[str, float]]) -> dict[str, float]:
  """Means over seeds of the numbers that the runs of all seeds report."""
  names = set(measures[0]).intersection(*measures) if measures else ()
  columns = {name: [one[name] for one in measures] for name in sorted(names)}
  return {
    name: statistics.mean(values)
    for name, values in columns.items()
    if all(isinstance(value, int | float) for value in values)
  }


def main(argv: list[str]) -> None:
  """Prints the table and writes it as a page."""
  if len(argv) != 2:
    raise InputError("name the workdir of a study")
  workdir = pathlib.Path(argv[1])
  about = _against(study.read_description(workdir))
  found = study.outcomes(workdir, about)
  shown = [o for o in found if _SYSTEM.value in (None, o.system)]
  if not shown:
    raise InputError("no finished run", path=str(workdir))
  names = study.check_metrics(found, _METRICS.value)
  baseline = _baselines(found, about)
  layout, legend = about.get("layout"), _LEGEND
  plain = _PLAIN.value or _SYSTEM.value
  if layout and layout["kind"] != "curves" and not plain:
    legend = layouts.LEGEND
    against = layout.get("against", ())
    if against:
      legend += f"; + better than each of {', '.join(against)}"
    rows = layouts.rows(layout, _finder(found, baseline, against), names)
  else:
    rows = [row(o, baseline(o), names) for o in shown]
  legend += study.progress(about, found)
  print(
    text_tables.markdown(rows) if _MARKDOWN.value else text_tables.text(rows)
  )
  print(f"\n{legend}")
  files.write_text(
    str(workdir / "table.html"), _page(about, rows, shown, names[0], legend)
  )


def _against(about: dict[str, Any]) -> dict[str, Any]:
  """The description with the baseline that the flag names."""
  if _BASELINE.value is None:
    return about
  if _BASELINE.value not in about["entries"]:
    raise InputError(f"--baseline: the study has no '{_BASELINE.value}'")
  return {**about, "baseline": _BASELINE.value}


def _page(about, rows, found, metric: str, legend: str) -> str:
  values = {
    f"{o.entry} / {o.system}": [scores[metric] for scores in o.scores]
    for o in found
  }
  bars = [
    {
      "name": name,
      "value": statistics.mean(own),
      "margin": statistics.stdev(own) if len(own) > 1 else 0.0,
    }
    for name, own in values.items()
  ]
  title = f"{metric}, mean and deviation over seeds"
  sections = [
    page.section(
      "Results",
      page.paragraph(about["note"]),
      text_tables.as_html(rows),
      page.paragraph(legend),
    ),
    *_figures(about, found, metric),
    page.section(
      "Scores",
      html.element("bars", {"rows": bars, "title": title, "left": 260}),
    ),
  ]
  if curves := _learning_curves(found):
    sections.append(page.section("Learning curves", curves))
  return page.page(
    f"Study: {about['name']}",
    sections,
    footer=f"base {about['base']}, seeds {about['seeds']}",
    scripts=page.COMPONENTS,
  )


def _figures(about, found, metric: str) -> list[str]:
  """The panels of a published figure, a section of them."""
  layout = about.get("layout")
  if not layout or layout["kind"] != "curves":
    return []
  look = study.mean_quantity(found, metric)
  panels = []
  for panel in layout["panels"]:
    series = layouts.curves(panel, look)
    points = {
      name: [list(point) for point in zip(x, y, strict=True)]
      for name, (x, y) in series.items()
    }
    panels.append(_lines(points, layout["x"], panel["title"]))
  return [
    page.section("Figure", f'<div class="columns">{"".join(panels)}</div>')
  ]


def _learning_curves(found) -> str:
  """Tuning scores by round, all systems of an entry in one figure."""
  entries: dict[str, dict[str, list[list[float]]]] = {}
  for outcome in found:
    if points := outcome.learning_curve():
      entries.setdefault(outcome.entry, {})[outcome.system] = points
  figures = [
    _lines(series, "round", f"{entry}: score on the tuning part")
    for entry, series in entries.items()
  ]
  return f'<div class="columns">{"".join(figures)}</div>' if figures else ""


def _lines(series, x: str, title: str) -> str:
  data = {"series": series, "x": x, "title": title, "legend": True}
  return html.element("lines", data)


if __name__ == "__main__":
  program.run(main)
