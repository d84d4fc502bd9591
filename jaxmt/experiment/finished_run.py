"""Finished runs of experiments: their artefacts, and their systems.

run = finished_run.read("runs/quickstart")
translator = finished_run.translator(run, "augmented-forest")
"""

import dataclasses
import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from jaxmt.decode.translator import Translator
from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import systems
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages import system as system_lib
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import (
  SearchStageConfig,
  Theta,
  TrainedModels,
  Tuned,
)
from jaxmt.grammar import estimate
from jaxmt.runtime import checkpoint
from jaxmt.text import files
from jaxmt.text.binarize import LEFT_HEAVY

_ARTEFACT = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]*")
R = TypeVar("R", bound=Record)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinishedRun:
  """Where the artefacts of a run are, and its config.

  Attributes:
    workdir: of launch/train.py.
    folders: folder of the artefact of each stage, by the stage's name.
    config: all settings of the experiment, as in `run.json`.
  """

  workdir: str
  folders: Mapping[str, pathlib.Path]
  config: Mapping[str, Any]

  @property
  def search(self) -> SearchStageConfig:
    """How the run decodes."""
    return config_lib.freeze(SearchStageConfig, self.config["search"])

  @property
  def corpus(self) -> str:
    """The stage that has the run's text."""
    return "reverse" if self.config["data"]["reverse"] else "corpus"

  @property
  def systems(self) -> tuple[str, ...]:
    """The systems that translate new text: all but trees over phrases."""
    names = self.config["systems"]
    return tuple(name for name in names if name != systems.PHRASE_DEPENDENCY)

  def last_epoch(self, system: str) -> str:
    """Returns what the stages of a system's last epoch are called."""
    epochs = self.config["epochs"]
    several = systems.trained(system) and epochs > 1
    return f"{system}-{epochs}" if several else system

  def tuned(self, system: str) -> Tuned:
    """Reads the tuned weights of a system."""
    stage = f"tune-{self.last_epoch(system)}"
    tuned = self.record(stage, Tuned)
    for name, value in _items(tuned.weights):
      if not config_lib.is_number(value):
        cause = f"weight of '{name}' is not a finite number"
        raise InputError(cause, path=str(self.folders[stage]))
    return tuned

  def record(self, stage: str, kind: type[R]) -> R:
    """Reads what a stage has returned, a record of type `kind`.

    Raises:
      InputError: if there is none, or it is damaged.
    """
    if stage not in self.folders:
      raise InputError(f"the run has no stage '{stage}'", path=self.workdir)
    folder = self.folders[stage]
    if not folder.is_dir():
      raise InputError("no such artefact", path=str(folder))
    try:
      return kind.from_values(checkpoint.read(folder)[0])
    except checkpoint.Damaged as damage:
      raise InputError(str(damage), path=str(folder)) from damage
    except InputError as error:  # of a value, which has no path of its own
      raise InputError(str(error), path=str(folder)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
      cause = f"not what stage '{stage}' returns: {error}"
      raise InputError(cause, path=str(folder)) from error


def _items(weights: Any) -> list[tuple[str, Any]]:
  """The pairs of a mapping; one that is none has a pair that is wrong."""
  return list(weights.items()) if isinstance(weights, dict) else [("", None)]


def read(workdir: str, store: str | None = None) -> FinishedRun:
  """Reads what a run is made of.

  Args:
    workdir: of launch/train.py.
    store: its artefacts, if they are not in the workdir (as in a study).

  Raises:
    InputError: if there is no run, or its records are damaged.
  """
  folder = pathlib.Path(workdir)
  place = pathlib.Path(store or folder / "artefacts")
  if not (folder / "run.json").is_file():
    raise InputError("no run of launch/train.py is here", path=workdir)
  folders = {}
  path = str(folder / "metrics.jsonl")
  for number, line in enumerate(files.read_lines(path), start=1):
    record = parse_record(line, ("stage", "key"), path, number)
    name = f"{record['stage']}-{record['key']}"
    if not _ARTEFACT.fullmatch(name):
      raise InputError(
        f"no artefact is called '{name}'", path=path, line=number
      )
    folders[str(record["stage"])] = place / name
  path = str(folder / "run.json")
  about = parse_record(files.read_text(path), ("config",), path)
  _check_config(about["config"], path)
  return FinishedRun(workdir=workdir, folders=folders, config=about["config"])


def _check_config(config: Any, path: str) -> None:
  """Refuses a config that lacks what is read of it here.

  Raises:
    InputError: naming the file and the setting.
  """
  kinds = {"search": dict, "data": dict, "systems": list, "epochs": int}
  for name, kind in kinds.items():
    if not isinstance(config, dict) or type(config.get(name)) is not kind:
      raise InputError(f"config key '{name}' is no {kind.__name__}", path=path)
  if type(config["data"].get("reverse")) is not bool:
    raise InputError("config key 'data.reverse' is no bool", path=path)
  for name in config["systems"]:
    if not isinstance(name, str) or name not in systems.SYSTEMS:
      raise InputError(f"config key 'systems': no system '{name}'", path=path)
  try:
    system_lib.check(config_lib.freeze(SearchStageConfig, config["search"]))
  except ValueError as error:
    raise InputError(f"config key 'search': {error}", path=path) from error


def parse_record(
  text: str, needed: Sequence[str], path: str, line: int | None = None
) -> dict[str, Any]:
  """Returns a JSON object.

  Args:
    text: the object.
    needed: keys that it must have.
    path: where it stands, for error messages.
    line: its line there.

  Raises:
    InputError: if it is something else, or lacks a key.
  """
  try:
    value = json.loads(text)
  except (ValueError, RecursionError) as error:
    raise InputError(f"not JSON: {error}", path=path, line=line) from error
  for key in needed:
    if not isinstance(value, dict) or key not in value:
      raise InputError(f"has no '{key}'", path=path, line=line)
  return value


def find_system(run: FinishedRun, system: str | None) -> str:
  """Returns the system of a name; None stands for the last one of the run.

  Raises:
    InputError: if the run has no such system.
  """
  if not run.systems:
    raise InputError("the run has no systems", path=run.workdir)
  name = system or run.systems[-1]
  if name == systems.PHRASE_DEPENDENCY and name in run.config["systems"]:
    cause = f"system '{name}' parses lattices: see launch/translate_trees.py"
    raise InputError(cause, path=run.workdir)
  if name not in run.systems:
    raise InputError(
      f"no system '{name}'; the run has: {', '.join(run.systems)}",
      path=run.workdir,
    )
  return name


def system_theta(run: FinishedRun, system: str) -> Theta | None:
  """Returns a system's trained rule probabilities; None: the grammar's own."""
  if not systems.trained(system):
    return None
  stage = f"mix-{run.last_epoch(system)}"
  theta = run.record(stage, Theta)
  values, rules = theta.theta, len(run.record("grammar", Grammar).table)
  if (
    not isinstance(values, np.ndarray)
    or values.dtype != np.float32
    or values.shape != (rules, len(estimate.THETA))
    or not np.isfinite(values).all()
  ):
    cause = f"'theta' is not {rules} rows of {len(estimate.THETA)} numbers"
    raise InputError(cause, path=str(run.folders[stage]))
  return theta


def system_grammar(run: FinishedRun, system: str) -> Grammar:
  """Returns the rules, with the trained model of the system if it has one."""
  grammar = run.record("grammar", Grammar)
  if system not in systems.NEURAL:
    return grammar
  trained = run.record(f"models-{system}", TrainedModels)
  return system_lib.with_models(grammar, trained)


def translator(
  run: FinishedRun,
  system: str | None = None,
  *,
  lines: Sequence[str] | None = None,
) -> Translator:
  """Returns a system with its weights and the search settings of the run."""
  name = find_system(run, system)
  grammar, search = system_grammar(run, name), run.search
  lm = run.record("lm", LanguageModel)
  tuned = run.tuned(name)
  theta = system_theta(run, name)
  table = system_lib.rule_table(grammar, theta, lines=lines)
  return system_lib.make_translator(
    search,
    system_lib.make_model(
      search, grammar, table=table, lm=lm, weights=tuned.weights
    ),
    binarize=LEFT_HEAVY if grammar.binarize else "",
  )
