"""Training of rules on devices, on Ray and in processes: the same bits."""

import os
import shutil
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from jaxmt.runtime import checkpoint
from tests import util

slow = pytest.mark.skipif(
  not os.environ.get("JAXMT_SLOW"), reason="half a minute: JAXMT_SLOW=1"
)

# Small in every respect: compiling takes most of the time.
FLAGS = (
  "--config=configs/quickstart.py",
  "--config.data.synthetic.train=40",
  "--config.data.synthetic.tune=5",
  "--config.data.synthetic.test=5",
  "--config.data.synthetic.max_length=10",
  "--config.systems=('primary','augmented-viterbi')",
  "--config.align.model=model1",
  "--config.grammar.kind=hiero",
  "--config.grammar.hiero.max_words=2",
  "--config.lm.order=2",
  "--config.search.beam=4",
  "--config.search.pop=16",
  "--config.search.span=5",
  "--config.tune.rounds=1",
  "--config.tune.nbest=5",
  "--config.theta.iterations=2",
  "--config.theta.train_beam=12",
  "--config.theta.train_pop=24",
  "--config.theta.k=4",
  "--config.theta.margin=2",
  "--config.theta.shard=10",
  "--config.theta.batch_cells=256",
)


def start(workdir, *flags, program=("launch/train.py",)):
  """Starts `launch/train.py` where the processor counts as one device."""
  command = [sys.executable, *program, *FLAGS]
  return subprocess.Popen(
    [*command, f"--workdir={workdir}", *flags],
    cwd=util.ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env={
      **os.environ,
      "JAX_NUM_CPU_DEVICES": "1",
      "PYTHONPATH": str(util.ROOT),
    },
  )


def finish(*running):
  """Waits for processes; returns what they said on standard error."""
  try:
    said = [
      process.communicate(timeout=util.PATIENCE)[1] for process in running
    ]
  finally:
    for process in running:
      process.kill()
  for process, text in zip(running, said, strict=True):
    assert process.returncode == 0, text
  return said


def processes(workdir, number=2, first=("launch/train.py",)):
  """Starts `launch/train.py` in several; `first` is the first one's program."""
  with socket.socket() as free:
    free.bind(("localhost", 0))
    port = free.getsockname()[1]
  common = (f"--coordinator=localhost:{port}", f"--num_processes={number}")
  return [
    start(
      workdir,
      *common,
      f"--process_id={process}",
      program=("launch/train.py",) if process else first,
    )
    for process in range(number)
  ]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
  """What one process with one device makes."""
  workdir = tmp_path_factory.mktemp("alone")
  finish(start(workdir))
  return workdir


def theta_of(workdir):
  (folder,) = (workdir / "artefacts").glob("theta-*")
  return folder.name, checkpoint.read(folder)[0]


def without_theta(alone, workdir):
  """A workdir where only the training of rules is left to do."""
  shutil.copytree(alone / "artefacts", workdir / "artefacts")
  name, _ = theta_of(alone)
  shutil.rmtree(workdir / "artefacts" / name)
  return workdir


def same(workdir, alone):
  """The artefact has the same name and the same bits."""
  (name, got), (wanted, want) = theta_of(workdir), theta_of(alone)
  assert name == wanted
  for entry in ("theta", "counts"):
    np.testing.assert_array_equal(got[entry], want[entry])
  assert got["metrics"] == want["metrics"]
  results = [folder / "statistics.npz" for folder in (workdir, alone)]
  assert results[0].read_bytes() == results[1].read_bytes()
  assert not list(workdir.glob(".crew-*"))


@pytest.mark.slow
def test_devices_change_nothing(alone, tmp_path):
  workdir = without_theta(alone, tmp_path)
  (said,) = finish(start(workdir, "--devices=2"))
  assert "[theta-augmented-viterbi] running" in said
  assert said.count("running") == 1
  same(workdir, alone)


@slow
def test_ray_changes_nothing(alone, tmp_path):
  pytest.importorskip("ray")
  workdir = without_theta(alone, tmp_path)
  (said,) = finish(start(workdir, "--runner=ray"))
  assert said.count("running") == 1
  assert "os.fork" not in said  # Ray was there before JAX had threads
  same(workdir, alone)


@pytest.mark.slow
def test_two_processes_change_nothing(alone, tmp_path):
  first, second = finish(*processes(tmp_path))
  assert "[corpus] running" in first and "iteration 1" in first
  assert "running" not in second and "iteration" not in second
  same(tmp_path, alone)
  # Nothing is left to do: the second one only sees the first one end.
  first, _ = finish(*processes(tmp_path))
  assert "running" not in first
  same(tmp_path, alone)


@slow
def test_killed_processes_go_on_together(alone, tmp_path):
  workdir = without_theta(alone, tmp_path)
  deadly = ("tests/reference/killable_train.py", "iteration1-shard")
  running = processes(workdir, first=deadly)
  running[0].communicate(timeout=util.PATIENCE)
  assert running[0].returncode == -signal.SIGKILL
  running[1].kill()
  running[1].communicate(timeout=util.PATIENCE)
  assert not list((workdir / "artefacts").glob("theta-*"))
  (folder,) = (workdir / "artefacts" / ".partial").glob("theta-*")
  assert (folder / "iteration0").is_dir()
  (board,) = workdir.glob(".crew-*")
  board.unlink()
  first, _ = finish(*processes(workdir))
  assert first.count("running") == 1
  same(workdir, alone)


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--devices=-1"], "--devices=-1"),
    (["--process_id=3", "--coordinator=localhost:1"], "process_id 3 of 1"),
    (["--runner=ray", "--coordinator=localhost:1"], "cannot be combined"),
  ],
)
def test_bad_places_exit_2_with_one_line(tmp_path, flags, message):
  done = util.run_program(
    "launch/train.py", *FLAGS, f"--workdir={tmp_path}", *flags
  )
  assert done.returncode == 2
  assert message in done.stderr
  assert done.stderr.count("\n") == 1
