"""Draws the figures of a study.

    python tools/plot.py WORKDIR [--output=FILE.png]

A study whose layout is of kind "curves" gives one picture for each panel, as
the published figure has them: WORKDIR/figure-1.png, ... and all of them in
WORKDIR/figure.html. Other studies give the bars of their scores. Figures of
learning that a layout names follow. Points are means over the seeds that are
done. The points are printed, too.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import pathlib
import statistics

from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment import study
from jaxmt.report import layouts, page, plots, text_tables
from jaxmt.text import files

POSITIONAL = "the study's workdir"
_OUTPUT = flags.DEFINE_string(
  "output", None, "PNG file; a number is put before the suffix for several"
)
_METRIC = flags.DEFINE_string("metric", None, "the first one by default")


def _panels(about, found, metric: str):
  """Titles, pictures and points."""
  layout = about.get("layout") or {}
  look = study.mean_quantity(found, metric)
  if layout.get("kind") == "curves":
    for panel in layout["panels"]:
      yield _lines(
        panel["title"],
        layouts.curves(panel, look),
        (layout["x"], panel["title"], panel["y"]),
      )
  else:
    values = {
      f"{o.entry} / {o.system}": statistics.mean(s[metric] for s in o.scores)
      for o in found
    }
    rows = [{"entry": name, metric: v} for name, v in values.items()]
    yield about["name"], plots.bars(values, label=metric), rows
  known = {(o.entry, o.system): o.learning_curve() for o in found}
  curve = lambda entry, system: known.get((entry, system), [])
  for panel in layout.get("learning", ()):
    yield _lines(
      panel["title"],
      layouts.learning_curves(panel, curve, look),
      ("round", f"{metric} on the tuning part", metric),
    )


def _lines(title, series, labels):
  """A title, a picture of lines, and their points."""
  x, y, quantity = labels
  rows = [
    {"series": name, x: at, quantity: value}
    for name, (places, values) in series.items()
    for at, value in zip(places, values, strict=True)
  ]
  return title, plots.lines(series, x_label=x, y_label=y), rows


def main(argv: list[str]) -> None:
  """Draws and prints."""
  if len(argv) != 2:
    raise InputError("name the workdir of a study")
  if not plots.available():
    raise InputError("figures need matplotlib: pip install 'jaxmt[plots]'")
  workdir = pathlib.Path(argv[1])
  about = study.read_description(workdir)
  found = study.outcomes(workdir, about)
  if not found:
    raise InputError("no finished run", path=str(workdir))
  metric = study.check_metrics(found, [_METRIC.value or ""])[0]
  target = pathlib.Path(_OUTPUT.value or workdir / "figure.png")
  panels = list(_panels(about, found, metric))
  sections = []
  for number, (title, picture, rows) in enumerate(panels, start=1):
    name = target.stem if len(panels) == 1 else f"{target.stem}-{number}"
    path = target.with_name(name + target.suffix)
    if picture is not None:
      with files.atomic_writer(str(path)) as out:
        out.write(picture)
    print(f"{title}: {path}\n{text_tables.text(rows)}\n")
    parts = [text_tables.as_html(rows)]
    if picture is not None:
      parts.insert(0, page.image(picture, title))
    sections.append(page.section(title, *parts))
  files.write_text(
    str(target.with_suffix(".html")),
    page.page(
      f"Study: {about['name']}",
      sections,
      footer=f"base {about['base']}, seeds {about['seeds']}",
    ),
  )


if __name__ == "__main__":
  program.run(main)
