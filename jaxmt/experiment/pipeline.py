"""The pipeline: stages from inputs to artefacts, keyed by content.

A stage is a pure function of earlier artefacts and one config part. Its
artefact's key is the hash of the inputs' keys, the version of all code that can
run in it, and the config part. So a finished stage is never run again, a
changed one always is, and a run that was killed at any moment and started again
gives the same numbers. What a stage returns and takes are records
(`jaxmt.experiment.record`): this module takes them apart and rebuilds them.

    with pipeline.open_run(workdir, config=config, ...) as run:
      corpus = run.stage("corpus", make_corpus, config=config.data)
      links = run.stage("align", align, config=config.align, corpus=corpus)

A workdir holds `artefacts/`, `run.json` (how it was made), `metrics.jsonl` (a
line for every finished stage), and what the experiment adds (`results.json`,
`report.html`). Several runs may share one artefact store: a stage that another
process is making is waited for. Several processes may also work on one run, as
a crew (`jaxmt.runtime.crew`).
"""

import contextlib
import dataclasses
import datetime
import functools
import hashlib
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar, cast

from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import record
from jaxmt.runtime import checkpoint, code_versions, peak_memory, progress
from jaxmt.runtime.crew import Crew
from jaxmt.text import files

STORE = "artefacts"  # the folder of a workdir that holds them
T = TypeVar("T")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Artefact(Generic[T]):
  """A finished stage.

  Attributes:
    key: the hash that names it.
    values: the named values that the stage returned; arrays are memory-mapped.
    seconds: how long the stage took; of an interrupted one, with the work that
      was stored before.
    reused: whether an earlier run had made it.
    megabytes: largest memory of the process while the stage ran.
    kind: the record that the stage returned, None for a dict.
  """

  key: str
  values: Mapping[str, Any]
  seconds: float
  reused: bool
  megabytes: float = 0.0
  kind: type[record.Record] | None = None

  @functools.cached_property
  def value(self) -> T:
    """What the stage returned."""
    if self.kind is None:
      return cast(T, dict(self.values))
    return cast(T, self.kind.from_values(self.values))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceFile:
  """A file from outside, known by its content."""

  path: str
  key: str


def source_file(path: str) -> SourceFile:
  """Names a file as an input; the stage's function receives its path."""
  return SourceFile(path=path, key=checkpoint.file_digest(path))


@dataclasses.dataclass(frozen=True)
class _Call:
  """A stage: see `Run.stage` and `Run.shared_stage`."""

  name: str
  function: Callable[..., Any]
  config: Any
  inputs: Mapping[str, Artefact | SourceFile]
  resumable: bool = False
  shared: bool = False


class Run:
  """One experiment in one workdir. Make it with `open_run`."""

  def __init__(
    self,
    workdir: pathlib.Path,
    store: pathlib.Path,
    *,
    crew: Crew | None = None,
    tools: Mapping[str, Any] | None = None,
  ):
    self.workdir = workdir
    self.store = store
    self._crew = crew
    self._tools = tools or {}
    self._folders: dict[str, str] = {}  # of artefacts, by key
    self._records: list[dict] = []

  def stage(
    self,
    name: str,
    function: Callable[..., T],
    *,
    config: Any = None,
    resumable: bool = False,
    **inputs: Artefact | SourceFile,
  ) -> Artefact[T]:
    """Returns the artefact of `function(config, **inputs)`, made or reused.

    Args:
      name: for people; also the artefact's folder name.
      function: pure, at module level, returning a `record.Record`, or a dict
        of named values as `checkpoint.write` takes them. A value "metrics" (a
        dict of numbers) also goes to `metrics.jsonl`. It receives each input
        artefact as the record of its annotation, and the path of each source
        file.
      config: the config part it depends on, passed as first argument.
      resumable: the function takes `partial`, a `checkpoint.Partial` for
        intermediate results. They survive a kill, and are removed when the
        stage is finished.
      **inputs: earlier artefacts, source files.
    """
    call = _Call(name, function, config, inputs, resumable)
    return self._artefact(call)

  def shared_stage(
    self,
    name: str,
    function: Callable[..., T],
    *,
    config: Any = None,
    **inputs: Artefact,
  ) -> Artefact[T]:
    """Runs a resumable stage that every process of the crew takes part in.

    The function also receives the run's tools, see `open_run`.
    """
    return self._artefact(
      _Call(name, function, config, inputs, resumable=True, shared=True)
    )

  def _artefact(self, call: "_Call") -> Artefact:
    name = call.name
    key = _key(name, call.function, call.config, call.inputs)
    directory = self.store / f"{name}-{key[:20]}"
    lock = self.store / ".locks" / f"{name}-{key[:20]}"
    with checkpoint.lock(lock, wait=True, what=f"stage {name}"):
      earlier = self._find(name, directory, key)
      reused = earlier is not None
      if earlier is None:
        earlier = self._make(call, directory, key)
      # Also what a process left that was killed after writing the artefact.
      checkpoint.remove(self._partial(directory))
    self._folders[key] = str(directory)
    values, meta = earlier
    artefact = Artefact(
      key=key,
      values=values,
      seconds=meta["seconds"],
      reused=reused,
      megabytes=meta.get("megabytes", 0.0),
      kind=record.result_type(call.function),
    )
    self._record(name, artefact)
    return artefact

  def _partial(self, directory: pathlib.Path) -> pathlib.Path:
    """Where an unfinished stage keeps what it has done so far."""
    return self.store / ".partial" / directory.name

  def _find(self, name: str, directory: pathlib.Path, key: str):
    """Reads an artefact; a damaged one is removed, and that is said."""
    if not os.path.lexists(directory):
      return None
    try:
      values, meta = checkpoint.read(directory)
      if not _is_meta(meta, name, key):
        raise checkpoint.Damaged("manifest.json: not of this stage")
      return values, meta
    except checkpoint.Damaged as damage:
      progress.say(f"[{name}] damaged ({damage}): making it again")
      checkpoint.remove(directory)
      return None

  def _make(self, call: "_Call", directory: pathlib.Path, key: str):
    progress.say(f"[{call.name}] running")
    start = time.perf_counter()
    peak_memory.reset()
    arguments = _arguments(call)
    partial = self._partial(directory)
    part = checkpoint.Partial(partial) if call.resumable else None
    if part is not None:
      arguments["partial"] = part
    if call.shared:
      arguments |= self._tools
      if self._crew is not None:
        self._crew.announce(self._task(call, partial))
    values = record.to_values(call.function(call.config, **arguments))
    seconds = part.seconds if part else time.perf_counter() - start
    seconds = round(seconds, 3)
    meta = {
      "stage": call.name,
      "key": key,
      "seconds": seconds,
      "megabytes": round(peak_memory.megabytes()),
    }
    checkpoint.write(directory, values, meta)
    progress.say(f"[{call.name}] done in {seconds:.1f} s")
    return checkpoint.read(directory)

  def _task(self, call: "_Call", partial: pathlib.Path) -> dict[str, Any]:
    """What `take_part` needs to know of a stage."""
    return {
      "stage": call.name,
      "code": code_versions.function_version(call.function),
      "config": config_lib.plain(call.config),
      "inputs": {
        parameter: self._folders[value.key]
        for parameter, value in call.inputs.items()
      },
      "partial": str(partial),
    }

  def _record(self, name: str, artefact: Artefact) -> None:
    """Adds a line to `metrics.jsonl`; the file is whole at every moment."""
    if artefact.reused:
      progress.say(f"[{name}] reused ({artefact.seconds:.1f} s saved)")
    self._records.append(
      {
        "stage": name,
        "key": artefact.key[:20],
        "seconds": artefact.seconds,
        **artefact.values.get("metrics", {}),
      }
    )
    files.write_lines(
      str(self.workdir / "metrics.jsonl"),
      [json.dumps(line, ensure_ascii=False) for line in self._records],
    )

  def write_json(self, name: str, value: Any) -> None:
    """Writes a JSON file into the workdir, atomically."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    files.write_text(str(self.workdir / name), text)


def _is_meta(meta: Any, name: str, key: str) -> bool:
  """Whether a manifest, which has no checksum, says what it should."""
  try:
    said = (meta["stage"], meta["key"])
    return said == (name, key) and 0 <= float(meta["seconds"]) < float("inf")
  except (KeyError, TypeError, ValueError):
    return False


def _arguments(call: _Call) -> dict[str, Any]:
  """Returns the inputs of a stage as its function takes them."""
  paths, values = {}, {}
  for parameter, value in call.inputs.items():
    if isinstance(value, SourceFile):
      paths[parameter] = value.path
    else:
      values[parameter] = value.values
  return paths | record.arguments(call.function, values)


def _key(name, function, config, inputs) -> str:
  parts = {
    "name": name,
    "code": code_versions.function_version(function),
    "config": config_lib.plain(config, essential=True),
    "inputs": {parameter: value.key for parameter, value in inputs.items()},
  }
  return hashlib.sha256(config_lib.to_json(parts).encode()).hexdigest()


def take_part(
  crew: Crew,
  function: Callable[..., Any],
  config_class: type,
  *,
  tools: Mapping[str, Any] | None = None,
) -> None:
  """Works on every stage that the leader of a crew shares, until it ends.

  Only the leader writes results.

  Args:
    crew: of which another process is the leader.
    function: that of the shared stages.
    config_class: of its config.
    tools: see `open_run`.

  Raises:
    InputError: if the leader runs other code.
  """
  for task in crew.tasks():
    if task["code"] != code_versions.function_version(function):
      raise InputError("process 0 runs another version of the code")
    values = {
      parameter: checkpoint.read(pathlib.Path(folder))[0]
      for parameter, folder in task["inputs"].items()
    }
    function(
      config_lib.freeze(config_class, task["config"]),
      partial=checkpoint.Partial(pathlib.Path(task["partial"])),
      **record.arguments(function, values),
      **(tools or {}),
    )


@contextlib.contextmanager
def open_run(
  workdir: str,
  *,
  config: Any,
  version: str = "",
  store: str | None = None,
  wait: bool = False,
  crew: Crew | None = None,
  tools: Mapping[str, Any] | None = None,
) -> Iterator[Run]:
  """Opens a workdir for one process at a time.

  Args:
    workdir: made if it is not there.
    config: the whole config, recorded in `run.json`.
    version: what tells this run from others with the same name, recorded too.
    store: folder of artefacts to share with other runs; the workdir's own
      `artefacts` by default.
    wait: wait while another process works in this workdir, instead of
      refusing.
    crew: processes that take part in shared stages, or None.
    tools: arguments of shared stages that say where and how to work. What is
      made must not depend on them: the key does not.

  Raises:
    InputError: if the workdir is in use and `wait` is False.
  """
  path = pathlib.Path(workdir)
  files.make_folder(workdir)
  store_path = pathlib.Path(store) if store else path / STORE
  files.make_folder(str(store_path / ".locks"))
  with checkpoint.lock(path / ".lock", wait=wait, what=f"workdir {workdir}"):
    files.remove_stale(workdir)
    run = Run(path, store_path, crew=crew, tools=tools)
    about = {
      "argv": sys.argv,
      "config": config_lib.plain(config),
      "version": version,
      "code": code_versions.commit(),
      "versions": code_versions.versions(),
      "started": _now(),
    }
    run.write_json("run.json", {**about, "status": "running"})
    yield run
    run.write_json(
      "run.json", {**about, "status": "finished", "finished": _now()}
    )


def _now() -> str:
  now = datetime.datetime.now(datetime.UTC)
  return now.isoformat(timespec="seconds")
