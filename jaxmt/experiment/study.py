"""Studies: a base config, named changes to it, and seeds.

A study file is Python and defines

    BASE = "configs/quickstart.py:small"
    ABLATIONS = {"baseline": {}, "noisy": {"data.synthetic.noise": 0.1}}
    SEEDS = (0, 1, 2)

and may define `BASELINE` (the first entry by default), the one the others are
compared with, `SYSTEM` (the baseline's system, if the others are compared with
that one whatever their own name), `WITHIN` (true if every entry is compared
with `SYSTEM` of its own), `NOTE`, and `LAYOUT` (where a published table
or figure has the results, see `report.layouts`). Every entry times every seed
is one run.
"""

import dataclasses
import json
import pathlib
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_collections
import numpy as np

from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import pipeline
from jaxmt.report import layouts
from jaxmt.text import array_folder, files

_DESCRIPTION = "study.json"
_ENTRY = re.compile(r"[^./\0\n][^/\0\n]*")  # what can name a folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
  """A study as its file says it.

  Attributes:
    name: the file's stem.
    base: config reference, `path.py[:variant]`.
    ablations: changes by dotted path, for each entry.
    seeds: values of the config's `seed`.
    baseline: the entry that the others are compared with.
    system: the system of that entry that all are compared with, or "" for the
      one of the same name.
    within: whether each entry is compared with that system of its own.
    note: a sentence for the table.
    layout: see `report.layouts`, or None.
  """

  name: str
  base: str
  ablations: Mapping[str, Mapping[str, Any]]
  seeds: tuple[int, ...]
  baseline: str
  system: str
  within: bool
  note: str
  layout: Mapping[str, Any] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
  """One run of a study."""

  entry: str
  seed: int
  config: ml_collections.ConfigDict

  @property
  def folder(self) -> str:
    """Its place below the study's workdir."""
    return f"{self.entry}/s{self.seed}"


def load(path: str) -> Study:
  """Reads a study file.

  Raises:
    InputError: if it misses a name or its baseline is not an entry.
  """
  module = config_lib.load_module(path)
  for name in ("BASE", "ABLATIONS", "SEEDS"):
    if not hasattr(module, name):
      raise InputError(f"defines no {name}", path=path)
  ablations = module.ABLATIONS
  if not isinstance(ablations, Mapping) or not all(
    isinstance(changes, Mapping) for changes in ablations.values()
  ):
    raise InputError("ABLATIONS must be a dict of dicts", path=path)
  if not isinstance(module.SEEDS, tuple | list):
    raise InputError("SEEDS is no tuple", path=path)
  if not isinstance(module.BASE, str):
    raise InputError("BASE is no string", path=path)
  if not ablations or not module.SEEDS:
    raise InputError("has no entry or no seed", path=path)
  baseline = getattr(module, "BASELINE", next(iter(ablations)))
  if baseline not in ablations:
    raise InputError(f"baseline '{baseline}' is not an entry", path=path)
  _check_names(ablations, module.SEEDS, path)
  if getattr(module, "WITHIN", False) and not getattr(module, "SYSTEM", ""):
    raise InputError("WITHIN needs SYSTEM, what to compare with", path=path)
  layout = getattr(module, "LAYOUT", None)
  if layout is not None:
    if not isinstance(layout, Mapping):
      raise InputError("LAYOUT must be a dict", path=path)
    layouts.check(layout, list(ablations), path)
  return Study(
    name=pathlib.Path(path).stem,
    base=_find_base(module.BASE, path),
    ablations=ablations,
    seeds=tuple(module.SEEDS),
    baseline=baseline,
    system=getattr(module, "SYSTEM", ""),
    within=getattr(module, "WITHIN", False),
    note=getattr(module, "NOTE", ""),
    layout=layout,
  )


def _check_names(entries: Iterable, seeds: Iterable, path: str) -> None:
  """Raises for entries that cannot name a folder, and for wrong seeds."""
  for name in entries:
    if not isinstance(name, str) or not _ENTRY.fullmatch(name):
      raise InputError(f"entry {name!r} cannot name a folder", path=path)
    if name == pipeline.STORE:
      raise InputError(f"entry '{name}' names a folder in use", path=path)
  for seed in seeds:
    if type(seed) is not int or seed < 0:
      raise InputError(f"seed {seed!r} is no number from 0", path=path)


def _find_base(base: str, study: str) -> str:
  """The base as it is named, from here or from a folder the study is below."""
  path = base.partition(":")[0]
  if not pathlib.Path(path).is_file():
    for folder in pathlib.Path(study).resolve().parents:
      if (folder / path).is_file():
        return str(folder / base)
  return base


def trials(
  study: Study, base: ml_collections.ConfigDict | None = None
) -> list[Trial]:
  """Returns all runs of a study, seeds inside entries; on its base if None."""
  if base is None:
    base = config_lib.load(study.base)
  return [
    Trial(
      entry=entry,
      seed=seed,
      config=config_lib.apply(base, {**changes, "seed": seed}),
    )
    for entry, changes in study.ablations.items()
    for seed in study.seeds
  ]


def part(
  items: Sequence[Trial],
  *,
  entries: Sequence[str] = (),
  seeds: Sequence[str] = (),
) -> list[Trial]:
  """Returns the runs of some entries and seeds; none named are all.

  Raises:
    InputError: for a name that no run has.
  """
  chosen = list(items)
  for flag, named, of in (
    ("entries", entries, lambda trial: trial.entry),
    ("seeds", seeds, lambda trial: str(trial.seed)),
  ):
    known = {of(trial) for trial in items}
    for name in named:
      if name not in known:
        raise InputError(f"--{flag}: the study has no '{name}'")
    chosen = [trial for trial in chosen if not named or of(trial) in named]
  return chosen


def shard(items: Sequence[Trial], spec: str) -> list[Trial]:
  """Returns every n-th item from the i-th on, for a spec `i/n`, i from 0."""
  try:
    index, count = (int(part) for part in spec.split("/"))
  except ValueError as error:
    raise InputError(f"--shard={spec}: not of the form i/n") from error
  if not 0 <= index < count:
    raise InputError(f"--shard={spec}: needs 0 <= i < n")
  return list(items[index::count])


def description(
  study: Study, *, base: str | None = None, versions: Mapping[str, str]
) -> dict[str, Any]:
  """Returns what `tools/table.py` needs to know, as JSON values.

  Args:
    study: the study.
    base: the config used instead of its own base, if any.
    versions: that of every run (`experiment.version`), by its folder.
  """
  return {
    "name": study.name,
    "base": base or study.base,
    "versions": dict(versions),
    "note": study.note,
    "baseline": study.baseline,
    "entries": list(study.ablations),
    "seeds": list(study.seeds),
    "system": study.system,
    "within": study.within,
    "layout": study.layout,
  }


def read_description(workdir: pathlib.Path) -> dict[str, Any]:
  """Reads the description that the sweep left in its workdir."""
  path = str(workdir / _DESCRIPTION)
  if not (workdir / _DESCRIPTION).is_file():
    raise InputError("no study here", path=path)
  about = files.read_json(path)
  types = {
    **dict.fromkeys(("name", "base", "note", "baseline"), str),
    **dict.fromkeys(("entries", "seeds"), list),
    "versions": dict,
  }
  for name, kind in types.items():
    if not isinstance(about, dict) or name not in about:
      raise InputError(f"has no '{name}'", path=path)
    if not isinstance(about[name], kind):
      raise InputError(f"'{name}' is no {kind.__name__}", path=path)
  _check_names(about["entries"], about["seeds"], path)
  if about.get("layout") is not None:
    if not isinstance(about["layout"], dict):
      raise InputError("'layout' must be a dict", path=path)
    layouts.check(about["layout"], about["entries"], path)
  return about


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialOutcome:
  """The results of one system in one entry, over the seeds that are done.

  Attributes:
    entry: name of the study's entry.
    system: name of the system inside the experiment.
    scores: one dict of corpus scores for each seed.
    statistics: for each metric, the sentences' statistics `[N, S]` of each
      seed.
    tune: corpus scores on the tuning part, for each seed; empty if none.
    measures: other numbers the run reports of the system, for each seed.
    seeds: the seeds that are done.
    references: hash of the test references, for each seed; None in results
      that do not have it.
    curves: [round, score] of tuning, for each seed; empty in results that do
      not have them.
  """

  entry: str
  system: str
  scores: list[dict[str, float]]
  statistics: dict[str, list[np.ndarray]]
  tune: list[dict[str, float]]
  measures: list[dict[str, float]]
  seeds: list[int]
  references: list[str | None]
  curves: list[list[list[float]]] = dataclasses.field(default_factory=list)

  def learning_curve(self) -> list[list[float]]:
    """Returns [round, mean score] of tuning, over the seeds that got there."""
    scores: dict[float, list[float]] = {}
    for curve in self.curves:
      for step, score in curve:
        scores.setdefault(step, []).append(score)
    return [[step, statistics.mean(scores[step])] for step in sorted(scores)]


def mean_quantity(outcomes: Sequence[TrialOutcome], metric: str):
  """Returns a function (entry, system, quantity) -> mean over seeds, or None.

  A quantity is "test", "tune" or a number that runs report of a system.
  """
  known = {(o.entry, o.system): o for o in outcomes}

  def look(entry: str, system: str, quantity: str) -> float | None:
    outcome = known.get((entry, system))
    if outcome is None:
      return None
    parts = {"test": outcome.scores, "tune": outcome.tune}
    name = metric if quantity in parts else quantity
    values = [one.get(name) for one in parts.get(quantity, outcome.measures)]
    known_values = [value for value in values if value is not None]
    if len(known_values) < len(values):
      return None
    return statistics.mean(known_values)

  return look


def finished(folder: pathlib.Path, version: str | None) -> bool:
  """Whether a run of this version has ended in `folder`; None is of none."""
  try:
    record = json.loads((folder / "run.json").read_bytes())
  except (OSError, ValueError):
    return False
  if not isinstance(record, dict) or version is None:
    return False
  ended = record.get("status") == "finished"
  return ended and record.get("version") == version


def check_metrics(
  outcomes: Sequence[TrialOutcome], names: Sequence[str]
) -> list[str]:
  """Returns the metrics to show; none named are all that every run has.

  Raises:
    InputError: for one that some run does not have.
  """
  known = [
    name
    for name in outcomes[0].scores[0]
    if all(name in scores for o in outcomes for scores in o.scores)
  ]
  asked = [name for name in names if name] or known
  for name in asked:
    if name not in known:
      raise InputError(f"no metric '{name}' in all of these results")
  if not asked:
    raise InputError("the runs have no metric in common")
  return asked


def progress(about: Mapping[str, Any], outcomes: Sequence[TrialOutcome]) -> str:
  """Returns how many runs are done, as text; "" for all."""
  done = {(o.entry, seed) for o in outcomes for seed in o.seeds}
  total = len(about["entries"]) * len(about["seeds"])
  return "" if len(done) == total else f"; {len(done)} of {total} runs are done"


def outcomes(
  workdir: pathlib.Path, about: Mapping[str, Any]
) -> list[TrialOutcome]:
  """Collects all finished runs of a study.

  Runs that another version of the study, of the code or of the input files, or
  another base, has left in the same folder are not among them.
  """
  by_trial: dict[tuple[str, str], TrialOutcome] = {}
  for entry in about["entries"]:
    for seed in about["seeds"]:
      folder = workdir / entry / f"s{seed}"
      if not finished(folder, about["versions"].get(f"{entry}/s{seed}")):
        continue
      results = _read_results(str(folder / "results.json"))
      statistics = _read_statistics(str(folder / "statistics.npz"), results)
      for system, scores in results["systems"].items():
        outcome = by_trial.setdefault(
          (entry, system),
          TrialOutcome(
            entry=entry,
            system=system,
            scores=[],
            statistics={},
            tune=[],
            measures=[],
            seeds=[],
            references=[],
          ),
        )
        outcome.scores.append(scores)
        outcome.tune.append(results.get("tune", {}).get(system, {}))
        outcome.measures.append(results.get("measures", {}).get(system, {}))
        outcome.seeds.append(seed)
        outcome.references.append(results.get("test_references"))
        outcome.curves.append(results.get("curves", {}).get(system, []))
        for metric in scores:
          values = statistics[f"{system}/{metric}"]
          outcome.statistics.setdefault(metric, []).append(values)
  return list(by_trial.values())


def _read_results(path: str) -> dict[str, Any]:
  """Reads `results.json` and checks what is used of it.

  Raises:
    InputError: naming the file, if a part is not as a run writes it.
  """
  results = files.read_json(path)
  if not isinstance(results, dict):
    raise InputError("no results", path=path)
  for part in ("systems", "tune", "measures"):
    systems = results.get(part, None if part == "systems" else {})
    if not isinstance(systems, dict) or not all(
      isinstance(scores, dict) for scores in systems.values()
    ):
      raise InputError(f"'{part}' has no scores by system", path=path)
    for system, scores in systems.items():
      for metric, score in scores.items():
        if part == "measures" and metric != "seconds":
          continue
        if not config_lib.is_number(score):
          raise InputError(f"{metric} of {system} is no number", path=path)
  if not isinstance(results.get("test_references"), str | None):
    raise InputError("'test_references' is no string", path=path)
  return results


def _read_statistics(
  path: str, results: Mapping[str, Any]
) -> dict[str, np.ndarray]:
  """Reads the statistics `[N, S]` of every system and metric of the results.

  Raises:
    InputError: naming the file, if it is damaged or lacks one.
  """
  arrays = array_folder.read_npz(path)
  for system, scores in results["systems"].items():
    for metric in scores:
      values = arrays.get(f"{system}/{metric}")
      if values is None:
        raise InputError(f"lacks {metric} of {system}", path=path)
      if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise InputError(f"{metric} of {system} is no table", path=path)
  return arrays
