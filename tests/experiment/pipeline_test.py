"""The pipeline: keys, reuse, damage, locks, and death at every write."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.experiment import pipeline
from jaxmt.runtime import checkpoint
from tests import util
from tests.reference import killable

PROGRAM = pathlib.Path(killable.__file__)


def run_killable(workdir, *args):
  return subprocess.run(
    [sys.executable, str(PROGRAM), str(workdir), *args],
    capture_output=True,
    text=True,
    cwd=util.ROOT,
    timeout=600,
  )


def final_files(workdir):
  """What a run must reproduce, with times left out."""
  lines = (workdir / "metrics.jsonl").read_text().splitlines()
  records = [json.loads(line) for line in lines]
  for record in records:
    record.pop("seconds")
  return (workdir / "results.json").read_bytes(), records


def test_killed_at_every_write_then_resumed_gives_the_same(tmp_path):
  assert run_killable(tmp_path / "whole").returncode == 0
  each = run_killable(tmp_path, "each")
  assert each.returncode == 0, each.stderr
  deaths = int(each.stdout)
  assert deaths > 15
  for kill_at in range(1, deaths + 1):
    workdir = tmp_path / str(kill_at)
    assert final_files(workdir) == final_files(tmp_path / "whole"), kill_at
    leftovers = [
      p.name for p in workdir.glob("artefacts/.*") if p.name != ".locks"
    ]
    assert not leftovers, kill_at


def test_a_finished_stage_is_not_redone(tmp_path):
  assert run_killable(tmp_path).returncode == 0
  again = run_killable(tmp_path)
  assert again.returncode == 0
  assert "running" not in again.stderr
  assert again.stderr.count("reused") == 2


@pytest.mark.parametrize(
  "damage", ["truncate", "change", "remove", "manifest", "name in manifest"]
)
def test_a_damaged_artefact_is_said_and_made_again(tmp_path, damage):
  run_killable(tmp_path)
  expected = final_files(tmp_path)
  (folder,) = (tmp_path / "artefacts").glob("numbers-*")
  file = folder / ("manifest.json" if "manifest" in damage else "values.npy")
  data = file.read_bytes()
  if damage == "remove":
    file.unlink()
  elif damage == "change":
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
  elif damage == "name in manifest":  # one flipped bit
    file.write_bytes(data.replace(b'"seconds"', b'"secondr"'))
  else:
    file.write_bytes(data[: len(data) // 2])
  again = run_killable(tmp_path)
  assert again.returncode == 0
  assert "[numbers] damaged" in again.stderr
  assert "[total] reused" in again.stderr
  assert final_files(tmp_path) == expected


def test_a_file_in_place_of_an_artefact_is_made_again(tmp_path):
  run_killable(tmp_path)
  expected = final_files(tmp_path)
  (folder,) = (tmp_path / "artefacts").glob("numbers-*")
  shutil.rmtree(folder)
  folder.write_text("a file")
  again = run_killable(tmp_path)
  assert again.returncode == 0, again.stderr
  assert "[numbers] damaged" in again.stderr
  assert final_files(tmp_path) == expected


def test_a_file_in_place_of_all_artefacts_is_told(tmp_path):
  (tmp_path / "artefacts").write_text("a file")
  with (
    pytest.raises(InputError, match="artefacts"),
    pipeline.open_run(str(tmp_path), config={}),
  ):
    pass


def interrupted(config, *, partial):
  if partial.get("half") is None:
    time.sleep(0.3)
    partial.put("half", {"x": [1.0]})
    raise KeyboardInterrupt
  return {"x": config}


def test_the_time_of_an_interrupted_stage_is_added_up(tmp_path):
  with (
    pytest.raises(KeyboardInterrupt),
    pipeline.open_run(str(tmp_path), config={}) as run,
  ):
    run.stage("slow", interrupted, config=1, resumable=True)
  with pipeline.open_run(str(tmp_path), config={}) as run:
    made = run.stage("slow", interrupted, config=1, resumable=True)
  assert 0.3 < made.seconds < 30


def test_what_a_kill_after_the_last_write_left_is_removed(tmp_path):
  """The artefact is there, what the unfinished stage had kept is, too."""

  def run_once():
    with pipeline.open_run(str(tmp_path), config={}) as run:
      return run.stage("slow", halves, config=1, resumable=True)

  run_once()
  (artefact,) = (tmp_path / "artefacts").glob("slow-*")
  left = tmp_path / "artefacts" / ".partial" / artefact.name
  left.mkdir()
  (left / "seconds").write_text("1\n")
  assert run_once().reused
  assert not left.exists()


def halves(config, *, partial):
  partial.put("half", {"x": [1.0]})
  return {"x": config}


def test_a_second_process_is_refused_with_the_first_ones_number(tmp_path):
  code = (
    "import sys, time\nfrom jaxmt.experiment import pipeline\n"
    "with pipeline.open_run(sys.argv[1], config={}):\n"
    "  print('in', flush=True)\n  time.sleep(60)\n"
  )
  with subprocess.Popen(
    [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
  ) as first:
    assert first.stdout is not None
    assert first.stdout.readline() == b"in\n"
    with pytest.raises(InputError, match=f"in use by process {first.pid}"):
      with pipeline.open_run(str(tmp_path), config={}):
        pass
    first.kill()
    first.wait()
    with pipeline.open_run(str(tmp_path), config={}):  # free after SIGKILL
      pass


def test_a_lock_is_not_written_through_a_planted_link(tmp_path):
  (tmp_path / "victim").write_text("precious")
  (tmp_path / "w").mkdir()
  (tmp_path / "w" / ".lock").symlink_to(tmp_path / "victim")
  with (
    pytest.raises(OSError, match="symbolic links"),
    pipeline.open_run(str(tmp_path / "w"), config={}),
  ):
    pass
  assert (tmp_path / "victim").read_text() == "precious"


def test_a_second_process_can_wait(tmp_path):
  code = (
    "import sys, time\nfrom jaxmt.experiment import pipeline\n"
    "with pipeline.open_run(sys.argv[1], config={}):\n"
    "  print('in', flush=True)\n  time.sleep(1)\n  print('out', flush=True)\n"
  )
  with subprocess.Popen(
    [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
  ) as first:
    assert first.stdout is not None
    assert first.stdout.readline() == b"in\n"
    with pipeline.open_run(str(tmp_path), config={}, wait=True):
      os.set_blocking(first.stdout.fileno(), False)
      assert first.stdout.readline() == b"out\n"  # it had ended before


def test_key_depends_on_config_inputs_and_code(tmp_path):
  with pipeline.open_run(str(tmp_path), config={}) as run:
    first = run.stage("numbers", killable.numbers, config={"seed": 0})
    same = run.stage("numbers", killable.numbers, config={"seed": 0})
    other = run.stage("numbers", killable.numbers, config={"seed": 1})
    a = run.stage("total", killable.total, config={"scale": 1}, numbers=first)
    b = run.stage("total", killable.total, config={"scale": 1}, numbers=other)
  assert first.key == same.key != other.key
  assert same.reused
  assert a.key != b.key
  np.testing.assert_array_equal(first.values["values"], same.values["values"])
  assert first.values["words"] == ["a", "", "c\r"]


def test_a_source_file_counts_by_content(tmp_path):
  file = tmp_path / "f"
  file.write_text("one\n")
  before = pipeline.source_file(str(file)).key
  file.write_text("two\n")
  assert pipeline.source_file(str(file)).key != before
  with pytest.raises(InputError, match="nowhere: no such file"):
    pipeline.source_file("nowhere")


def test_run_record_says_how_it_was_made(tmp_path):
  with pipeline.open_run(str(tmp_path), config={"seed": 7}):
    running = json.loads((tmp_path / "run.json").read_text())
  finished = json.loads((tmp_path / "run.json").read_text())
  assert running["status"] == "running"
  assert finished["status"] == "finished"
  assert finished["config"] == {"seed": 7}
  assert {"argv", "code", "versions", "started", "finished"} <= set(finished)


def test_values_survive(tmp_path):
  values = {
    "array": np.arange(6, dtype=np.int16).reshape(2, 3),
    "empty": np.zeros((0, 4), np.float32),
    "lines": ["对 回答", "\u2028 \x0b", ""],
    "json": {"a": [1, 2.5, None], "b": "x"},
    "no_lines": [],
  }
  checkpoint.write(tmp_path / "a", values, {"note": 1})
  read, meta = checkpoint.read(tmp_path / "a")
  assert meta == {"note": 1}
  assert sorted(read) == sorted(values)
  for name in ("array", "empty"):
    np.testing.assert_array_equal(read[name], values[name])
    assert read[name].dtype == values[name].dtype
  for name in ("lines", "json", "no_lines"):
    assert read[name] == values[name]


def test_objects_are_never_pickled(tmp_path):
  with pytest.raises(ValueError):
    checkpoint.write(tmp_path / "a", {"o": np.array([{}])}, {})
  with pytest.raises(ValueError, match="cannot name"):
    checkpoint.write(tmp_path / "b", {"../o": [1]}, {})


def shared(config, *, numbers, partial, tool):
  partial.put(f"by-{tool}", {"seen": [tool]})
  return {"total": config + sum(numbers["values"]), "tool": tool}


def numbers(config):
  return {"values": list(range(config))}


class Board:
  """A crew whose helpers are elsewhere."""

  def __init__(self):
    self.announced = []

  def announce(self, task):
    self.announced.append(task)

  def tasks(self):
    return iter(self.announced)


def test_tools_reach_a_shared_stage_but_not_its_key(tmp_path):
  crew, keys = Board(), []
  for tool in ("hammer", "saw"):
    with pipeline.open_run(
      str(tmp_path / tool), config={}, crew=crew, tools={"tool": tool}
    ) as run:
      given = run.stage("numbers", numbers, config=4)
      made = run.shared_stage("shared", shared, config=1, numbers=given)
    assert made.value == {"total": 7, "tool": tool}
    keys.append(made.key)
  assert keys[0] == keys[1]
  assert [task["stage"] for task in crew.announced] == ["shared", "shared"]


def test_helpers_see_the_same_inputs_and_store(tmp_path):
  crew, seen = Board(), []

  def taking_part(config, **arguments):
    seen.append((config, arguments))
    return shared(config.value, **arguments)

  with pipeline.open_run(
    str(tmp_path), config={}, crew=crew, tools={"tool": "saw"}
  ) as run:
    given = run.stage("numbers", numbers, config=4)
    run.shared_stage(
      "shared", taking_part, config=Setting(value=1), numbers=given
    )
  pipeline.take_part(crew, taking_part, Setting, tools={"tool": "drill"})
  (config, first), (again, second) = seen
  assert config == again == Setting(value=1)
  assert first["numbers"] == second["numbers"]
  assert second["tool"] == "drill"
  crew.announced[0]["code"] = "other"
  with pytest.raises(InputError, match="another version"):
    pipeline.take_part(crew, taking_part, Setting, tools={"tool": "drill"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
  value: int
