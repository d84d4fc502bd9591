"""Tuning runs in a workdir: resumable rounds, a table, a report.

A workdir holds `run.json` (what is tuned, by content), `state/` (where each
unfinished or finished run is), `history.jsonl` (a line for every round),
`weights.N.txt` for every seed N and `report.html`.
"""

import dataclasses
import json
import os
import pathlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.features import weights as weight_files
from jaxmt.metrics import encoded_text
from jaxmt.report import page, plots, text_tables
from jaxmt.runtime import checkpoint
from jaxmt.text import files
from jaxmt.tune import loop, methods
from jaxmt.tune.loop import Decode, LoopConfig, LoopState
from jaxmt.tune.methods import Method

# Names of columns and of what the loop's records and notes call them.
COLUMNS = {
  "seed": "seed",
  "round": "round",
  "score": "score",
  "loss": "loss",
  "change": "change",
  "pool": "pool",
  "new": "new",
  "length ratio": "length_ratio",
  "decode s": "decode_seconds",
  "optimise s": "optimise_seconds",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TuningSetting:
  """What to tune.

  Attributes:
    decode: see `loop.Decode`.
    references: for each sentence its references.
    method: configured for the metric of `loop`.
    start: weights to start from.
    loop: how long, and what by.
    seeds: one run for each.
    stages: see `loop.run`.
  """

  decode: Decode
  references: encoded_text.ReferenceLines
  method: Method
  start: Mapping[str, float]
  loop: LoopConfig
  seeds: tuple[int, ...]
  stages: loop.Stages | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TunedWeights:
  """What came out.

  Attributes:
    states: the last state of each seed's run.
    rows: all rounds of all runs, as `COLUMNS` names them.
    metric: what they were judged by.
  """

  states: tuple[LoopState, ...]
  rows: list[dict[str, Any]]
  metric: str

  @property
  def best(self) -> LoopState:
    """The run with the best score, the first of several."""
    return max(self.states, key=lambda state: state.best_score)

  @property
  def scores(self) -> list[float]:
    """The best score of each run, in the metric's own units."""
    return [self.score(state) for state in self.states]

  def score(self, state: LoopState) -> float:
    """Returns the best score of a run, in the metric's own units."""
    return loop.best_of(state.history, self.metric)


class Watch:
  """Times decoding separately."""

  def __init__(self, decode: Decode, clock: Callable[[], float]):
    self._decode, self._clock = decode, clock
    self._begin, self._decoding = clock(), 0.0

  def decode(self, weights: Mapping[str, float], numbers: np.ndarray):
    """Decodes, and adds up the time."""
    before = self._clock()
    lists = self._decode(weights, numbers)
    self._decoding += self._clock() - before
    return lists

  def lap(self) -> dict[str, float]:
    """Returns the seconds since the last lap."""
    now = self._clock()
    total, decoding = now - self._begin, self._decoding
    self._begin, self._decoding = now, 0.0
    return {
      "decode_seconds": round(decoding, 3),
      "optimise_seconds": round(total - decoding, 3),
    }


def open_workdir(
  workdir: str, *, about: Mapping[str, Any], resume_there: bool
) -> checkpoint.Partial:
  """Returns the store of states, empty unless a run is resumed.

  Args:
    workdir: created if it does not exist.
    about: everything the result depends on, as JSON.
    resume_there: resume an unfinished run; otherwise start from the beginning.

  Raises:
    InputError: if the workdir holds a run of something else, or files that are
      no such run's.
  """
  folder = pathlib.Path(workdir)
  files.make_folder(workdir)
  record, states = folder / "run.json", folder / "state"
  text_of = json.dumps(about, indent=1, sort_keys=True)
  if os.path.lexists(record):
    same = files.read_bytes(str(record)) == (text_of + "\n").encode()
    if not same and not _is_own(str(record)):
      raise InputError("holds a run of another kind", path=workdir)
    if not same and resume_there:
      raise InputError(
        "holds a run with other settings or files; choose another --workdir,"
        " or --noresume to start over",
        path=workdir,
      )
    if not resume_there and states.is_dir():
      shutil.rmtree(states)
  elif os.path.lexists(states):  # it is always there before its states
    raise InputError(f"{states.name} is there, but no run.json", path=workdir)
  files.write_text(str(record), text_of + "\n")
  return checkpoint.Partial(states)


def _is_own(path: str) -> bool:
  """Whether a file is the record of a tuning run, not of another program."""
  try:
    record = files.read_json(path)
  except InputError:
    return False
  return isinstance(record, dict) and {"files", "settings"} <= record.keys()


def run(
  setting: TuningSetting,
  *,
  workdir: str,
  states: checkpoint.Partial,
  clock: Callable[[], float],
  say: Callable[[str], None],
) -> TunedWeights:
  """Tunes with every seed; what is done already is not done again.

  Args:
    setting: what to tune.
    workdir: where history, weights and report go.
    states: from `open_workdir`.
    clock: gives seconds.
    say: prints a line of the table.
  """
  say(header(many=len(setting.seeds) > 1))
  last, rows = [], []
  for seed in setting.seeds:
    state, records = _one_run(setting, seed, states, clock, rows, workdir, say)
    last.append(state)
    rows += records
    lines = weight_files.format_weights(state.best_weights)
    files.write_lines(f"{workdir}/weights.{seed}.txt", lines)
  tuned = TunedWeights(
    states=tuple(last), rows=rows, metric=setting.loop.metric
  )
  files.write_text(f"{workdir}/report.html", report(setting, tuned))
  return tuned


def _one_run(setting, seed, states, clock, before, workdir, say):
  """Runs one seed: `(state, rows)`."""
  prefix = f"seed{seed}-"
  restored = loop.restore(states, prefix=prefix, rounds=setting.loop.rounds)
  state, notes = restored or (loop.begin(setting.start), [])
  many = len(setting.seeds) > 1
  for row in _rows(seed, state, notes):
    say(line(row, many=many))
  watch = Watch(setting.decode, clock)

  def on_round(now: LoopState) -> None:
    notes.append(watch.lap())
    loop.save(states, now, prefix=prefix, notes=notes)
    rows = _rows(seed, now, notes)
    write_history(workdir, [*before, *rows])
    say(line(rows[-1], many=many))

  state = loop.run(
    watch.decode,
    setting.references,
    setting.method,
    state,
    setting.loop,
    seed,
    stages=setting.stages,
    on_round=on_round,
  )
  rows = _rows(seed, state, notes)
  write_history(workdir, [*before, *rows])
  return state, rows


def _rows(seed: int, state: LoopState, notes: Sequence[Mapping[str, float]]):
  return [
    {"seed": seed, **record, **note}
    for record, note in zip(state.history, notes, strict=True)
  ]


def write_history(workdir: str, rows: Sequence[Mapping[str, Any]]) -> None:
  """Writes all rounds so far, one JSON object a line."""
  lines = [json.dumps(row) for row in rows]
  files.write_lines(f"{workdir}/history.jsonl", lines)


def header(*, many: bool) -> str:
  """Returns the head of the table; `many` runs have a column for the seed."""
  return "  ".join(
    f"{name:>{max(len(name), 8)}}" for name in COLUMNS if many or name != "seed"
  )


def line(row: Mapping[str, Any], *, many: bool) -> str:
  """Returns one line of the table."""
  cells = []
  for name, key in COLUMNS.items():
    value = row.get(key)
    if name == "seed" and not many:
      continue
    shown = "" if value is None else str(value)
    if isinstance(value, float):
      digits = 1 if name.endswith(" s") else 4
      shown = f"{value:.{digits}f}"
    cells.append(f"{shown:>{max(len(name), 8)}}")
  return "  ".join(cells)


def report(setting: TuningSetting, tuned: TunedWeights) -> str:
  """Returns the page of a finished tuning."""
  shown = [
    {name: row.get(key) for name, key in COLUMNS.items()} for row in tuned.rows
  ]
  sections = [
    page.section("Rounds", text_tables.as_html(shown), *_plots(tuned))
  ]
  names = list(tuned.best.best_weights)
  dense = [name for name in names if ":" not in name]
  weights = [
    {
      "name": name,
      "start": setting.start.get(name, 0.0),
      "tuned": tuned.best.best_weights[name],
    }
    for name in dense
  ]
  note = f"{len(names) - len(dense)} sparse weights are not shown."
  sections.append(
    page.section("Weights", page.paragraph(note), text_tables.as_html(weights))
  )
  config = json.dumps(
    {
      "method": methods.settings(setting.method),
      "loop": dataclasses.asdict(setting.loop),
    },
    indent=1,
    default=str,
  )
  sections.append(page.section("Settings", page.preformatted(config)))
  return page.page("jaxmt tuning", sections)


def _plots(tuned: TunedWeights) -> list[str]:
  """Curves over rounds, one line for each seed."""
  pictures = []
  for key, label in (
    ("score", "score on tune, decoded"),
    ("length_ratio", "length ratio"),
    ("pool", "candidates in the pool"),
    ("change", "largest change of a weight"),
    ("loss", "loss"),
  ):
    series: dict[str, tuple[list[float], list[float]]] = {}
    for row in tuned.rows:
      if row.get(key) is not None:
        x, y = series.setdefault(f"seed {row['seed']}", ([], []))
        x.append(row["round"])
        y.append(row[key])
    if not series:
      continue
    drawn = plots.lines(series, x_label="round", y_label=label)
    if drawn:
      pictures.append(page.image(drawn, label))
  return pictures
