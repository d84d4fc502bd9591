"""Explaining runs of other shapes than the default."""

import json

import pytest

from jaxmt.runtime import checkpoint
from tests import util
from tests.launch.train_places_test import FLAGS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  """A run of two epochs from English to Chinese."""
  workdir = tmp_path_factory.mktemp("run")
  done = util.run_program(
    "launch/train.py",
    *FLAGS,
    "--config.data.reverse=true",
    "--config.epochs=2",
    "--config.theta.iterations=1",
    f"--workdir={workdir}",
  )
  assert done.returncode == 0, done.stderr
  # The second epoch leaves own counts out as the first one does.
  folders = sorted((workdir / "artefacts").glob("theta-*"))
  made = [checkpoint.read(folder)[0] for folder in folders]
  assert [m["history"][0]["left_out"] for m in made] == ["counts", "counts"]
  assert all("own_rules" in m for m in made)
  return workdir


def explain(run, *flags):
  return util.run_program(
    "launch/explain.py",
    f"--workdir={run}",
    "--system=augmented-viterbi",
    *flags,
  )


def test_the_run_s_own_direction_epochs_and_search_are_explained(run):
  done = explain(
    run,
    "--sentences=2",
    "--number=5",
    "--wide=12",
    "--pop=24",
    "--exact_words=0",
    f"--output={run / 'explain.html'}",
  )
  assert done.returncode == 0, done.stderr
  for stage in ("reverse", "mix-augmented-viterbi-2", "tune-primary"):
    assert f"reading {stage}\n" in done.stderr
  assert "reading tune-augmented-viterbi-2\n" in done.stderr
  # The reference is Chinese, and the beam the run's.
  assert "reference: " in done.stdout and " 。" in done.stdout
  assert "Ranks at beam 4" in done.stdout
  assert "over 5 sentences" in done.stdout
  for name in ("before", "new rules", "after"):
    assert any(line.startswith(name) for line in done.stdout.splitlines())
  assert "new rules" in (run / "explain.html").read_text()


def test_an_unknown_system_is_one_line(run):
  done = explain(run, "--system=magic")
  assert done.returncode == 2
  assert "no system 'magic'" in done.stderr
  config = json.loads((run / "run.json").read_text())["config"]
  assert config["epochs"] == 2


@pytest.mark.parametrize(
  ("metrics", "record", "message"),
  [
    ('{"stage": "corp', "{}", "metrics.jsonl:1: not JSON"),
    ('{"stage": "corpus"}', "{}", "metrics.jsonl:1: has no 'key'"),
    ("", "[]", "run.json: has no 'config'"),
    ("", "{", "run.json: not JSON"),
  ],
)
def test_a_damaged_run_is_one_line(tmp_path, metrics, record, message):
  (tmp_path / "metrics.jsonl").write_text(metrics)
  (tmp_path / "run.json").write_text(record)
  done = explain(tmp_path)
  assert done.returncode == 2
  assert message in done.stderr
  assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("flag", ["--beam=-3", "--number=0", "--pop=0"])
def test_impossible_sizes_are_refused(tmp_path, flag):
  done = explain(tmp_path, flag)
  assert done.returncode == 2
  assert flag.partition("=")[0].lstrip("-") in done.stderr
