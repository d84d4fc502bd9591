"""Prints the results of a study: mean, deviation, seeds, significance.

    python tools/table.py WORKDIR [--metrics=bleu,ter] [--markdown]

Deviations are over seeds. The p-value is that of a paired approximate
randomisation against the same system in the study's baseline entry, over the
sentences of all seeds that both have (Clark et al. 2011): `*` marks p < 0.05,
`**` p < 0.01. The table and a plot are also written to WORKDIR/table.html.
"""

import pathlib
import statistics

import numpy as np
from absl import flags

from jaxmt import program, study
from jaxmt.data import files
from jaxmt.errors import InputError
from jaxmt.metrics import evaluation, significance
from jaxmt.report import page, plots, tables

POSITIONAL = "the study's workdir"
_METRICS = flags.DEFINE_list("metrics", [], "metrics to show; all by default")
_MARKDOWN = flags.DEFINE_bool("markdown", False, "print a Markdown table")
_SYSTEM = flags.DEFINE_string("system", None, "show only this system")


def p_value(name: str, own: study.Outcome, base: study.Outcome) -> float | None:
  """Returns the p-value over the sentences of the seeds both have."""
  common = [seed for seed in own.seeds if seed in base.seeds]
  if not common:
    return None
  sides = [
    np.concatenate([o.statistics[name][o.seeds.index(seed)] for seed in common])
    for o in (base, own)
  ]
  if sides[0].shape != sides[1].shape:
    return None
  metric = evaluation.metric_of(name, evaluation.Settings(metrics=(name,)))
  return significance.randomization(
    metric, sides[0], sides[1][None], samples=2000, confidence_samples=100
  )[0].p_value


def row(outcome: study.Outcome, base: study.Outcome | None, names: list[str]):
  """Returns one line of the table."""
  shown: dict[str, str | int] = {
    "entry": outcome.entry,
    "system": outcome.system,
    "n": len(outcome.seeds),
  }
  for name in names:
    values = [scores[name] for scores in outcome.scores]
    text = f"{statistics.mean(values):.2f}"
    if len(values) > 1:
      text += f" ± {statistics.stdev(values):.2f}"
    if base is not None and base is not outcome:
      chance = p_value(name, outcome, base)
      if chance is not None:
        text += "**" if chance < 0.01 else "*" if chance < 0.05 else ""
    shown[name] = text
  return shown


def main(argv: list[str]) -> None:
  """Prints the table and writes it as a page."""
  if len(argv) != 2:
    raise InputError("name the workdir of a study")
  workdir = pathlib.Path(argv[1])
  about = study.read_description(workdir)
  found = study.outcomes(workdir, about)
  if _SYSTEM.value:
    found = [o for o in found if o.system == _SYSTEM.value]
  if not found:
    raise InputError("no finished run", path=str(workdir))
  names = _METRICS.value or list(found[0].scores[0])
  unknown = [name for name in names if name not in found[0].scores[0]]
  if unknown:
    raise InputError(f"--metrics: no '{unknown[0]}' in these results")
  baselines = {o.system: o for o in found if o.entry == about["baseline"]}
  rows = [row(o, baselines.get(o.system), names) for o in found]
  print(tables.markdown(rows) if _MARKDOWN.value else tables.text(rows))
  files.write_text(
    str(workdir / "table.html"), _page(about, rows, found, names[0])
  )


def _page(about, rows, found, metric: str) -> str:
  values = {
    f"{o.entry} / {o.system}": [scores[metric] for scores in o.scores]
    for o in found
  }
  chart = plots.bars(
    {name: statistics.mean(v) for name, v in values.items()},
    label=f"{metric}, mean and deviation over seeds",
    errors={
      name: statistics.stdev(v) if len(v) > 1 else 0.0
      for name, v in values.items()
    },
  )
  parts = [tables.as_html(rows)]
  if chart:
    parts.append(page.image(chart, f"{metric} of every entry"))
  return page.page(
    f"Study: {about['name']}",
    [page.section("Results", page.paragraph(about["note"]), *parts)],
    footer=f"base {about['base']}, seeds {about['seeds']}",
  )


if __name__ == "__main__":
  program.run(main)
