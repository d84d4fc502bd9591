"""Stages: inputs -> artefact, keyed by content; the only impure heart.

A stage is a pure function of earlier artefacts and one config part. Its
artefact's key is the hash of the inputs' keys, the version of all code that can
run in it, and the config part. So a finished stage is never redone, a changed
one always is, and a run that was killed at any moment and is started again
gives the same numbers.

    with pipeline.open_run(workdir, config=config, ...) as run:
      corpus = run.stage("corpus", make_corpus, config=config.data)
      links = run.stage("align", align, config=config.align, corpus=corpus)

A workdir holds `artefacts/`, `run.json` (how it was made), `metrics.jsonl` (a
line for every finished stage), and what the experiment adds (`results.json`,
`report.html`). Several runs may share one artefact store: a stage that another
process is making is waited for.
"""

import contextlib
import dataclasses
import datetime
import hashlib
import json
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jaxmt import checkpoint, progress, provenance
from jaxmt import config as config_lib
from jaxmt.data import files


@dataclasses.dataclass(frozen=True, kw_only=True)
class Artefact:
  """A finished stage.

  Attributes:
    key: the hash that names it.
    values: what the stage returned; arrays are memory-mapped.
    seconds: how long making it took, when it was made.
    reused: whether it was already there.
  """

  key: str
  values: Mapping[str, Any]
  seconds: float
  reused: bool

  def __getitem__(self, name: str) -> Any:
    return self.values[name]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceFile:
  """A file from outside, known by its content."""

  path: str
  key: str


def source_file(path: str) -> SourceFile:
  """Names a file as an input; the stage's function receives its path."""
  return SourceFile(path=path, key=checkpoint.file_digest(path))


class Run:
  """One experiment in one workdir. Make it with `open_run`."""

  def __init__(self, workdir: pathlib.Path, store: pathlib.Path):
    self.workdir = workdir
    self.store = store
    self._records: list[dict] = []

  def stage(
    self,
    name: str,
    function: Callable[..., dict[str, Any]],
    *,
    config: Any = None,
    resumable: bool = False,
    **inputs: Artefact | SourceFile,
  ) -> Artefact:
    """Returns the artefact of `function(config, **inputs)`, made or reused.

    Args:
      name: for people; also the artefact's folder name.
      function: pure, at module level, returning named values as
        `checkpoint.write` takes them. A value "metrics" (a dict of numbers)
        also goes to `metrics.jsonl`. It receives the values of each input
        artefact, or the path of each source file.
      config: the config part it depends on, passed as first argument.
      resumable: the function takes `partial`, a `checkpoint.Partial` in which
        it keeps what it has done. It is still there when the stage was killed
        and is run again, and gone when the stage is finished.
      **inputs: earlier artefacts, source files.
    """
    key = _key(name, function, config, inputs)
    directory = self.store / f"{name}-{key[:20]}"
    lock = self.store / ".locks" / f"{name}-{key[:20]}"
    with checkpoint.lock(lock, wait=True, what=f"stage {name}"):
      found = self._find(name, directory)
      reused = found is not None
      if found is None:
        found = self._make(
          name, function, config, inputs, directory, key, resumable
        )
    values, meta = found
    artefact = Artefact(
      key=key, values=values, seconds=meta["seconds"], reused=reused
    )
    self._record(name, artefact)
    return artefact

  def _find(self, name: str, directory: pathlib.Path):
    """Reads an artefact; a damaged one is removed, and that is said."""
    if not directory.exists():
      return None
    try:
      return checkpoint.read(directory)
    except checkpoint.Damaged as damage:
      progress.say(f"[{name}] damaged ({damage}): making it again")
      shutil.rmtree(directory)
      return None

  def _make(self, name, function, config, inputs, directory, key, resumable):
    progress.say(f"[{name}] running")
    start = time.perf_counter()
    arguments: dict[str, Any] = {
      parameter: value.path
      if isinstance(value, SourceFile)
      else dict(value.values)
      for parameter, value in inputs.items()
    }
    partial = self.store / ".partial" / directory.name
    if resumable:
      arguments["partial"] = checkpoint.Partial(partial)
    values = function(config, **arguments)
    seconds = round(time.perf_counter() - start, 3)
    meta = {"stage": name, "key": key, "seconds": seconds}
    checkpoint.write(directory, values, meta)
    if resumable:
      shutil.rmtree(partial)
    progress.say(f"[{name}] done in {seconds:.1f} s")
    return checkpoint.read(directory)

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
      [json.dumps(record, ensure_ascii=False) for record in self._records],
    )

  def write_json(self, name: str, value: Any) -> None:
    """Writes a JSON file into the workdir, atomically."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    files.write_text(str(self.workdir / name), text)


def _key(name, function, config, inputs) -> str:
  parts = {
    "name": name,
    "code": provenance.function_version(function),
    "config": config_lib.plain(config),
    "inputs": {parameter: value.key for parameter, value in inputs.items()},
  }
  return hashlib.sha256(config_lib.to_json(parts).encode()).hexdigest()


@contextlib.contextmanager
def open_run(
  workdir: str,
  *,
  config: Any,
  store: str | None = None,
  wait: bool = False,
) -> Iterator[Run]:
  """Opens a workdir for one process at a time.

  Args:
    workdir: made if it is not there.
    config: the whole config, recorded in `run.json`.
    store: folder of artefacts to share with other runs; the workdir's own
      `artefacts` by default.
    wait: wait while another process works in this workdir, instead of
      refusing.

  Raises:
    InputError: if the workdir is in use and `wait` is False.
  """
  path = pathlib.Path(workdir)
  path.mkdir(parents=True, exist_ok=True)
  store_path = pathlib.Path(store) if store else path / "artefacts"
  (store_path / ".locks").mkdir(parents=True, exist_ok=True)
  with checkpoint.lock(path / ".lock", wait=wait, what=f"workdir {workdir}"):
    run = Run(path, store_path)
    record = {
      "argv": sys.argv,
      "config": config_lib.plain(config),
      "code": provenance.commit(),
      "versions": provenance.versions(),
      "started": _now(),
    }
    run.write_json("run.json", {**record, "status": "running"})
    yield run
    run.write_json(
      "run.json", {**record, "status": "finished", "finished": _now()}
    )


def _now() -> str:
  now = datetime.datetime.now(datetime.UTC)
  return now.isoformat(timespec="seconds")
