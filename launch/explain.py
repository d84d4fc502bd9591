"""Explains what training θ did in a finished experiment.

    python launch/explain.py --workdir=runs/quick --system=augmented-forest
    python launch/explain.py ... --sentences=1,5,9 --output=explain.html

For each sentence: a derivation of the reference (or of the nearest string), and
the rank of each of its parts among the hypotheses of its span, with the
baseline's and with the trained system's probabilities and weights. Parts
behind the beam width are lost in decoding. Then how often that happens, which
rules gained and lost probability, and how many search errors there are.
"""

import json
import pathlib
from typing import Any

import numpy as np
from absl import flags

from jaxmt import checkpoint, parallel, program, progress
from jaxmt.chart import model as models
from jaxmt.data import files
from jaxmt.errors import InputError
from jaxmt.report import page, tables
from jaxmt.stages import system
from jaxmt.stages.system import SearchStageConfig
from jaxmt.train import explain, learn_model, wanted

_WORKDIR = flags.DEFINE_string("workdir", None, "of launch/train.py")
_STORE = flags.DEFINE_string(
  "store", None, "its artefacts, if not in the workdir (as in a study)"
)
_SYSTEM = flags.DEFINE_string("system", "augmented-forest", "the trained one")
_PART = flags.DEFINE_enum("part", "test", ["tune", "test"], "which sentences")
_SENTENCES = flags.DEFINE_list("sentences", [], "numbers from 1 to show")
_NUMBER = flags.DEFINE_integer("number", 100, "sentences to sum up")
_BEAM = flags.DEFINE_integer("beam", 30, "width of decoding")
_WIDE = flags.DEFINE_integer("wide", 100, "width of the search that ranks")
_POP = flags.DEFINE_integer("pop", 250, "candidates of that search")
_EXACT = flags.DEFINE_integer(
  "exact_words", 7, "longest sentences searched exactly; 0 for none"
)
_RULES = flags.DEFINE_integer("rules", 10, "rules to list each way")
_OUTPUT = flags.DEFINE_string("output", None, "HTML page to write as well")

_NAMES = ("before", "after")


def _artefacts(workdir: str) -> dict[str, pathlib.Path]:
  """Folders of the stages that a run went through, by name."""
  lines = files.read_lines(str(pathlib.Path(workdir) / "metrics.jsonl"))
  store = pathlib.Path(_STORE.value or pathlib.Path(workdir) / "artefacts")
  records = [json.loads(line) for line in lines]
  return {r["stage"]: store / f"{r['stage']}-{r['key']}" for r in records}


def _values(found: dict[str, pathlib.Path], name: str) -> dict[str, Any]:
  if name not in found:
    raise InputError(f"the run has no stage '{name}'", path=_WORKDIR.value)
  try:
    return checkpoint.read(found[name])[0]
  except checkpoint.Damaged as damage:
    raise InputError(str(damage), path=str(found[name])) from damage


def _rows(size: int) -> np.ndarray:
  """The sentences to look at: those asked for first, then the first ones."""
  try:
    shown = [int(number) - 1 for number in _SENTENCES.value]
  except ValueError as error:
    raise InputError(f"--sentences: {error}") from error
  if any(not 0 <= row < size for row in shown):
    raise InputError(f"--sentences: there are 1 to {size}")
  rest = [row for row in range(size) if row not in shown]
  return np.array((shown + rest)[: max(_NUMBER.value, len(shown))], np.int64)


def main(argv: list[str]) -> None:
  """Reads a run, explains, prints and writes."""
  del argv
  found = _artefacts(program.given(_WORKDIR))
  parallel.initialize()
  progress.say("reading the run")
  corpus = _values(found, "corpus")
  grammar, lm = _values(found, "grammar"), _values(found, "lm")
  trained = {
    "before": (None, _values(found, "tune-primary")),
    "after": (
      _values(found, f"mix-{_SYSTEM.value}"),
      _values(found, f"tune-{_SYSTEM.value}"),
    ),
  }
  lines = corpus[f"{_PART.value}_source"]
  rows = _rows(len(lines))
  references = [corpus[f"{_PART.value}_references"][row][0] for row in rows]
  made, sources = {}, {}
  for name, (theta, tuned) in trained.items():
    table = system.rule_table(grammar, theta, lines=lines)
    made[name] = system.make_model(
      SearchStageConfig(), table=table, lm=lm, weights=tuned["weights"]
    )
    spans = system.constituents(
      made[name], corpus, _PART.value, binarize=grammar["binarize"]
    )
    source = models.make_source(made[name], lines, spans=spans)
    sources[name] = models.select_source(source, rows)
  wide = SearchStageConfig(beam=_WIDE.value, pop=_POP.value)
  config = system.decode_config(wide, made["before"])
  progress.say("looking for the references")
  near = wanted.reference_like(
    made["before"], sources["before"], references, config=config
  )
  progress.say("ranking their parts")
  seen = {
    name: explain.ranks(
      made[name], sources[name], near.derivations, config=config
    )
    for name in _NAMES
  }
  _publish(rows, references, near, seen, made, sources)


def _publish(rows, references, near, seen, made, sources) -> None:
  sections: list[tuple[str, str, list[dict[str, Any]]]] = []
  for number in range(len(_SENTENCES.value) or min(3, len(rows))):
    shown = explain.story(
      made["before"],
      sources["before"],
      number,
      near.derivations,
      seen,
      beam=_BEAM.value,
    )
    note = (
      "its derivation"
      if near.exact[number]
      else f"the nearest derivation, {near.distance[number]:.0f} edits away"
    )
    text = f"reference: {references[number]} ({note})"
    sections.append((f"Sentence {rows[number] + 1}", text, shown))
  sections.append(
    (
      f"Ranks at beam {_BEAM.value}",
      f"over {len(rows)} sentences",
      explain.summary(near, seen, beam=_BEAM.value),
    )
  )
  theta = [learn_model.theta_features(made[name]) for name in _NAMES]
  moved = explain.moved_rules(made["before"].table, *theta, number=_RULES.value)
  sections.append(
    ("Rules that gained and lost", "P(rule | source side)", moved)
  )
  if _EXACT.value:
    sections.append(_search_errors(made, sources))
  for title, text, table in sections:
    print(f"{title}: {text}\n\n{tables.text(table)}\n")
  if _OUTPUT.value:
    parts = [
      page.section(title, page.paragraph(text), tables.as_html(table))
      for title, text, table in sections
    ]
    title = f"What {_SYSTEM.value} changed"
    files.write_text(_OUTPUT.value, page.page(title, parts))


def _search_errors(made, sources):
  progress.say("searching short sentences exactly")
  short = np.flatnonzero(sources["before"].ids.lengths <= _EXACT.value)[:50]
  some = {n: models.select_source(sources[n], short) for n in _NAMES}
  table = explain.search_errors(
    made, some, sizes=((10, 60), (_BEAM.value, 200))
  )
  return "Search errors", f"sentences of up to {_EXACT.value} words", table


if __name__ == "__main__":
  program.run(main)
