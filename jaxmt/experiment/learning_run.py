"""Violation-fixing learning in a workdir: resumable, with curves and a page.

A workdir holds `run.json` (what is learned, by content), `state/` (forced
forests and where the run is), `history.jsonl` (a line for every epoch),
`reachability.json` and `report.html`.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxmt.decode import model as models
from jaxmt.decode.chart import search
from jaxmt.decode.forced.reachability import Reachability
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.grammar.provenance import Provenance
from jaxmt.report import page, plots, text_tables
from jaxmt.runtime import progress
from jaxmt.runtime.checkpoint import Store
from jaxmt.text import files
from jaxmt.text.ragged import Ragged
from jaxmt.train.training import Resources
from jaxmt.train.violation import forced_forests, learner
from jaxmt.train.violation.development import Development
from jaxmt.train.violation.learn_config import LearnConfig
from jaxmt.train.violation.learner import LearnedWeights, LearningSetting

# Names of columns and of what the learner's records call them.
COLUMNS = {
  "epoch": "epoch",
  "dev BLEU": "bleu",
  "ratio": "length_ratio",
  "share": "share",
  "updates": "updates",
  "valid": "valid_share",
  "right": "right_share",
  "violation": "violation",
  "span": "span",
  "nonzero": "nonzero",
  "sent/s": "sentences_per_second",
}
_CURVES = (
  ("bleu", "BLEU on the development set"),
  ("violation", "mean violation"),
  ("valid_share", "share of valid updates"),
  ("right_share", "share of sentences whose best hypothesis is right"),
  ("span", "mean source words under an update"),
  ("nonzero", "sparse features with a weight"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
  """What to learn from, before anything is forced.

  Attributes:
    model: rules and language model.
    lines: N source sentences.
    references: one or more target lines for each.
    start: weights to start from.
    beam: hypotheses per cell.
    pop: candidates scored with the language model per cell.
    backend: what searches, see `chart.search.SearchConfig`.
    development: judges epochs, without the config's templates; or None.
    spans: constituents of the source sentences, or None.
    provenance: which sentence gave which rule, or None.
  """

  model: Model
  lines: Sequence[str]
  references: Sequence[Sequence[str]]
  start: Mapping[str, float]
  beam: int = 30
  pop: int = 200
  backend: str = "auto"
  development: Development | None = None
  spans: Ragged | None = None
  provenance: Provenance | None = None


def prepare(
  task: Task, config: LearnConfig, *, store: Store, threads: int
) -> tuple[LearningSetting, Reachability]:
  """Forces the references and returns what the learner needs.

  Args:
    task: what to learn from.
    config: how.
    store: keeps forced forests.
    threads: sentences forced at a time.

  Raises:
    InputError: if own rules are to be left out and nobody knows them, or if
      no sentence can be learned from.
  """
  if config.leave_one_out != "none" and task.provenance is None:
    raise InputError("leave_one_out needs a grammar with provenance")
  model = models.with_weights(task.model, task.start)
  model = learner.prepare_model(model, config)
  source = models.make_source(model, task.lines, spans=task.spans)
  excluded = None
  if config.leave_one_out != "none" and task.provenance is not None:
    excluded = forced_forests.excluded_rules(model, task.provenance)
  with progress.steps(label="force", total=len(task.lines)) as advance:
    forced = forced_forests.force_text(
      model,
      source,
      task.references,
      config,
      store=store,
      threads=threads,
      excluded=excluded,
      on_done=advance,
    )
  developed = task.development
  if developed is not None:
    tuned = models.with_weights(developed.model, task.start)
    developed = dataclasses.replace(
      developed, model=learner.prepare_model(tuned, config)
    )
  setting = LearningSetting(
    model=model,
    source=source,
    references=task.references,
    forced=forced,
    start=task.start,
    search=search.make_config(
      beam=task.beam, pop=task.pop, backend=task.backend
    ),
    development=developed,
    excluded=excluded,
  )
  if not len(learner.usable_rows(setting, config)):
    raise InputError("no reference can be derived: nothing to learn from")
  return setting, forced.report(source.ids.lengths)


def say_reachability(report: Reachability) -> None:
  """Says how many references can be derived, and why not the others."""
  row = report.overall
  progress.say(
    f"{row['reached']:,} of {row['sentences']:,} references reached"
    f" ({row['reached %']} %), {row['words reached %']} % of source words"
  )
  reasons = ", ".join(f"{n:,} {kind}" for kind, n in report.kinds.items())
  if reasons:
    progress.say(f"not reached, and not used: {reasons}")


def run(
  setting: LearningSetting,
  config: LearnConfig,
  *,
  store: Store,
  resources: Resources,
  say: Callable[[str], None] = progress.say,
) -> LearnedWeights:
  """Learns, showing progress and a line for each epoch."""
  say("  ".join(f"{name:>9}" for name in COLUMNS))
  total = config.epochs * len(learner.usable_rows(setting, config))
  with progress.steps(label="learn", total=total) as advance:
    return learner.learn(
      setting,
      config,
      store=store,
      resources=dataclasses.replace(resources, on_shard=advance),
      on_epoch=lambda record: say(line(record)),
    )


def line(record: Mapping[str, Any]) -> str:
  """Returns one line of the table of epochs."""
  cells = []
  for key in COLUMNS.values():
    value = record.get(key)
    shown = "" if value is None else f"{value:,}"
    if isinstance(value, float):
      shown = f"{value:.3f}"
    cells.append(f"{shown:>9}")
  return "  ".join(cells)


def best_epoch(history: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
  """Returns the record of the best development score, or the last one."""
  if "bleu" not in history[-1]:
    return history[-1]
  return max(history, key=lambda record: record["bleu"])


def write(
  workdir: str,
  config: LearnConfig,
  learned: LearnedWeights,
  reached: Reachability,
) -> None:
  """Writes history, reachability and the page."""
  lines = [json.dumps(record) for record in learned.history]
  files.write_lines(f"{workdir}/history.jsonl", lines)
  text = json.dumps(dataclasses.asdict(reached), ensure_ascii=False, indent=1)
  files.write_text(f"{workdir}/reachability.json", text + "\n")
  files.write_text(
    f"{workdir}/report.html", report(config, learned.history, reached)
  )


def report(
  config: LearnConfig,
  history: Sequence[Mapping[str, Any]],
  reached: Reachability,
) -> str:
  """Returns the page of a finished run."""
  rows = [
    {name: record.get(key) for name, key in COLUMNS.items()}
    for record in history
  ]
  sections = [
    page.section("Epochs", text_tables.as_html(rows), *curves({"": history})),
    page.section(
      "Reachability", text_tables.as_html([*reached.rows, reached.overall])
    ),
    page.section(
      "Settings",
      page.preformatted(json.dumps(dataclasses.asdict(config), indent=1)),
    ),
  ]
  return page.page("jaxmt learning", sections)


def curves(
  histories: Mapping[str, Sequence[Mapping[str, Any]]],
) -> list[str]:
  """Returns pictures of what changes by epoch, one line for each history."""
  pictures = []
  for key, label in _CURVES:
    series = {}
    for name, history in histories.items():
      some = [record for record in history if record.get(key) is not None]
      if some:
        series[name] = (
          [float(record["epoch"]) for record in some],
          [float(record[key]) for record in some],
        )
    if not series:
      continue  # for example development scores without such a set
    if drawn := plots.lines(series, x_label="epoch", y_label=label):
      pictures.append(page.image(drawn, label))
  return pictures
