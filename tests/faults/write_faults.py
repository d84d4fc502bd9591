"""Writes that fail or are the last: nothing half-written, nothing left.

A small pipeline runs in forks of this process. One after the other, each of
its system calls fails, each size of file is too large, and each file of its
finished workdir has a bit flipped.
"""

import errno
import os
import pathlib
import random
import resource
import shutil
import signal
import time

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.experiment import pipeline
from jaxmt.runtime import checkpoint
from jaxmt.text import array_folder, files
from tests.reference import killable

_CALLS = ("open", "mkdir", "fsync", "rename", "replace")


def in_child(function) -> str:
  """Runs in a child process; returns "", or the error in one line."""
  reader, writer = os.pipe()
  child = os.fork()
  if child == 0:
    try:
      text = ""
      try:
        function()
      except (InputError, OSError) as error:
        text = str(error) or "failed"
      os.write(writer, text.encode())
      os._exit(0)
    finally:  # any other exception
      os._exit(1)
  os.close(writer)
  with open(reader, "rb") as stream:
    text = stream.read().decode()
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
  return text


def outcome(workdir: pathlib.Path) -> dict[str, bytes]:
  """What a finished workdir holds, but for times."""
  return {
    str(path.relative_to(workdir)): path.read_bytes()
    for path in sorted(workdir.rglob("*"))
    if path.suffix in (".npy", ".txt") or path.name == "results.json"
  }


def leftovers(workdir: pathlib.Path) -> list[pathlib.Path]:
  return [path for path in workdir.rglob(".*") if path.name.endswith(".tmp")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
  """An undisturbed run."""
  workdir = tmp_path_factory.mktemp("whole")
  assert in_child(lambda: killable.run(str(workdir))) == ""
  return workdir


def fail_at(number: int, code: int):
  """Makes the n-th of the system calls fail; says whether it came to that."""
  state = {"count": 0}

  def counted(function):
    def call(*args, **kwargs):
      state["count"] += 1
      if state["count"] == number:
        raise OSError(code, os.strerror(code), str(args[0]))
      return function(*args, **kwargs)

    return call

  for name in _CALLS:
    setattr(os, name, counted(getattr(os, name)))
  return state


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_every_system_call_may_fail(tmp_path, whole, code):
  number, failures = 1, 0
  while True:
    workdir = tmp_path / str(number)

    def run(workdir=workdir, number=number):
      state = fail_at(number, code)
      killable.run(str(workdir))
      if state["count"] < number:
        raise InputError("all calls tried")

    text = in_child(run)
    if text == "all calls tried":
      break
    if text:
      failures += 1
      assert os.strerror(code).lower() in text.lower() and "\n" not in text
    assert leftovers(workdir) == []
    assert in_child(lambda workdir=workdir: killable.run(str(workdir))) == ""
    assert outcome(workdir) == outcome(whole)
    number += 1
  assert failures > 20


@pytest.mark.parametrize("size", [0, 1, 100, 200, 500, 900])
def test_every_file_may_be_too_large(tmp_path, whole, size):
  """A real `write` fails, as on a full disk, in the middle of a buffer."""

  def run():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    killable.run(str(tmp_path))

  text = in_child(run)
  assert "file too large" in text.lower() and "\n" not in text
  assert leftovers(tmp_path) == []
  assert in_child(lambda: killable.run(str(tmp_path))) == ""
  assert outcome(tmp_path) == outcome(whole)


def test_a_flipped_bit_in_any_file_is_found_or_harmless(tmp_path, whole):
  flips = 40 if os.environ.get("JAXMT_FAULTS") == "long" else 3
  rng = random.Random(0)
  for file in sorted(whole.rglob("*")):
    if not file.is_file() or not file.stat().st_size:
      continue
    for flip in range(flips):
      workdir = tmp_path / f"{flip}"
      shutil.copytree(whole, workdir)
      spoilt = workdir / file.relative_to(whole)
      data = bytearray(spoilt.read_bytes())
      data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
      spoilt.write_bytes(data)
      assert in_child(lambda workdir=workdir: killable.run(str(workdir))) == ""
      assert outcome(workdir) == outcome(whole), (file, flip)
      shutil.rmtree(workdir)


def test_processes_on_one_store_agree(tmp_path, whole):
  """Two start together; each works, or waits for the other's artefacts."""
  start = time.time() + 0.2
  children = []
  for number in range(4):
    child = os.fork()
    if child == 0:
      try:
        time.sleep(max(0.0, start - time.time()))
        killable.run(str(tmp_path / str(number)), store=str(tmp_path / "store"))
        os._exit(0)
      finally:
        os._exit(1)
    children.append(child)
  for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
  expected = (whole / "results.json").read_bytes()
  for number in range(4):
    found = (tmp_path / str(number) / "results.json").read_bytes()
    assert found == expected
  assert len(list((tmp_path / "store").glob("numbers-*"))) == 1


_STAGES = ("first", "second", "third", "fourth")
_hold = {"stage": ""}


def _pause(stage: str) -> None:
  """The process stops, in the stage in which it is told to."""
  if _hold["stage"] == stage:
    os.kill(os.getpid(), signal.SIGSTOP)


def first(config):
  _pause("first")
  return {"values": np.arange(config)}


def second(config, values):
  _pause("second")
  return {"values": np.asarray(values["values"]) * config}


def third(config, values, partial):
  half = partial.get("half")
  if half is None:
    half = {"values": np.asarray(values["values"]) + config}
    partial.put("half", half)
  _pause("third")
  return {"values": np.asarray(half["values"]) * 2}


def fourth(config, values):
  _pause("fourth")
  return {"total": int(np.sum(values["values"])) + config}


def run_stages(workdir: pathlib.Path, store: pathlib.Path, factor: int) -> None:
  """A pipeline of four stages, the first of which any factor shares."""
  with pipeline.open_run(str(workdir), config={}, store=str(store)) as run:
    made = run.stage("first", first, config=5)
    made = run.stage("second", second, config=factor, values=made)
    made = run.stage("third", third, config=1, resumable=True, values=made)
    done = run.stage("fourth", fourth, config=0, values=made)
    run.write_json("results.json", done.value["total"])


def start(hold: str, *arguments) -> int:
  child = os.fork()
  if child == 0:
    try:
      _hold["stage"] = hold
      run_stages(*arguments)
      os._exit(0)
    finally:
      os._exit(1)
  return child


def go_on(child: int) -> None:
  """Lets a process run to its end, wherever it stops."""
  while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
      assert os.waitstatus_to_exitcode(status) == 0
      return
    os.kill(child, signal.SIGCONT)


@pytest.mark.parametrize("factor", [3, 7])
@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL])
def test_two_processes_in_every_pair_of_stages(tmp_path, end, factor):
  """One stops, or is killed, in a stage while the other is in any.

  With another factor they share the first stage alone; with the same one, the
  other process waits for what the first is making.
  """
  for one in _STAGES:
    for other in _STAGES:
      base = tmp_path / f"{one}-{other}"
      store = base / "store"
      held = start(one, base / "a", store, 3)
      assert os.WIFSTOPPED(os.waitpid(held, os.WUNTRACED)[1])
      second_one = start(other, base / "b", store, factor)
      time.sleep(0.02)
      os.kill(held, end)
      go_on(second_one)
      if end == signal.SIGCONT:
        go_on(held)
      else:
        os.waitpid(held, 0)
        go_on(start("", base / "a", store, 3))
      for name, scale in (("a", 3), ("b", factor)):
        total = int((base / name / "results.json").read_text())
        assert total == sum(2 * (scale * n + 1) for n in range(5))
      sizes = {s: len(list(store.glob(f"{s}-*"))) for s in _STAGES}
      many = 1 if factor == 3 else 2
      assert sizes == dict(zip(_STAGES, (1, many, many, many), strict=True))
      assert not list((store / ".partial").iterdir())


def test_folders_that_cannot_be_written_are_named(tmp_path):
  locked = tmp_path / "locked"
  locked.mkdir()
  tmp_path.chmod(0o755)
  locked.chmod(0o555)

  def write():
    for folder in (tmp_path.parents[1], tmp_path.parent):
      os.chmod(folder, 0o755)
    if os.getuid() == 0:  # root may write anywhere
      os.setuid(65534)
    causes = []
    for attempt in (
      lambda: files.write_lines(str(locked / "x"), ["a"]),
      lambda: checkpoint.write(locked / "y", {"a": [1]}, {}),
      lambda: killable.run(str(locked / "workdir")),
      lambda: array_folder.scratch(str(locked / "z")).__enter__(),
    ):
      try:
        attempt()
        causes.append("no error")
      except InputError as error:
        causes.append(error.cause)
    raise InputError(",".join(causes))

  assert in_child(write) == ",".join(["permission denied"] * 4)
