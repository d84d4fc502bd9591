"""Whole experiments: results, SIGKILL and resume, studies, bad configs."""

import json
import subprocess
import sys

import pytest

from tests import util

TINY = (
  "--config=configs/quickstart.py",
  "--config.data.synthetic.train=120",
  "--config.data.synthetic.tune=20",
  "--config.data.synthetic.test=20",
  "--config.aligners=('given',)",
)
OUTPUTS = ("results.json", "statistics.npz")


def train(workdir, *flags):
  return util.run_program(
    "launch/train.py", *TINY, f"--workdir={workdir}", *flags
  )


def outputs(workdir):
  return [(workdir / name).read_bytes() for name in OUTPUTS]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
  """An undisturbed run."""
  workdir = tmp_path_factory.mktemp("whole")
  done = train(workdir)
  assert done.returncode == 0, done.stderr
  return workdir, done


def test_results_table_and_report(whole):
  workdir, done = whole
  assert "gloss_given" in done.stdout and "bleu" in done.stdout
  results = json.loads((workdir / "results.json").read_text())
  assert set(results["systems"]) == {"gloss_given", "copy"}
  assert results["systems"]["gloss_given"]["bleu"] > 0
  assert results["systems"]["copy"]["ter"] > 90
  assert "nrefs:3" in results["signatures"]["bleu"]
  stages = [
    json.loads(line)["stage"]
    for line in (workdir / "metrics.jsonl").read_text().splitlines()
  ]
  assert stages[0] == "corpus" and "evaluate" in stages
  html = (workdir / "report.html").read_text()
  assert "<table>" in html and "data:image/png" in html
  run = json.loads((workdir / "run.json").read_text())
  assert run["status"] == "finished"
  assert run["config"]["data"]["synthetic"]["train"] == 120


@pytest.mark.parametrize("stage", ["corpus", "lm", "evaluate"])
def test_sigkill_in_a_stage_then_resume(whole, tmp_path, stage):
  with subprocess.Popen(
    [sys.executable, "launch/train.py", *TINY, f"--workdir={tmp_path}"],
    cwd=util.ROOT,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    text=True,
  ) as running:
    assert running.stderr is not None
    for line in running.stderr:
      if line == f"[{stage}] running\n":
        running.kill()
        break
    assert running.wait(60) == -9
  assert not (tmp_path / "results.json").exists()
  resumed = train(tmp_path)
  assert resumed.returncode == 0, resumed.stderr
  assert outputs(tmp_path) == outputs(whole[0])
  if stage != "corpus":
    assert "[corpus] reused" in resumed.stderr


def test_changed_config_redoes_only_what_depends_on_it(whole, tmp_path):
  first = train(tmp_path)
  assert first.returncode == 0
  second = train(tmp_path, "--config.lm.order=2")
  assert "[corpus] reused" in second.stderr
  assert "[lm] running" in second.stderr
  assert "[evaluate] reused" in second.stderr


def test_seed_changes_the_corpus(whole, tmp_path):
  other = train(tmp_path, "--config.seed=1")
  assert other.returncode == 0
  assert outputs(tmp_path) != outputs(whole[0])


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--config.lm.ordr=2"], "did you mean 'order'?"),
    (["--config.data.kind=none"], "neither 'synthetic' nor 'files'"),
    (["--config=configs/none.py"], "configs/none.py"),
    (["--config=configs/real.py"], "'data.files.train_source' is empty"),
    (["--config=configs/quickstart.py:big"], "not one of small"),
  ],
)
def test_bad_configs_exit_2_with_one_line(tmp_path, flags, message):
  base = () if flags[0].startswith("--config=") else TINY[:1]
  done = util.run_program(
    "launch/train.py", *base, f"--workdir={tmp_path}", *flags
  )
  assert done.returncode == 2
  assert message in done.stderr
  assert done.stderr.count("\n") == 1
  assert not (tmp_path / "results.json").exists()


def test_files_instead_of_the_embedded_corpus(tmp_path):
  lines = {
    "s": ["a b", "b a", "a", "b", "a b a"],
    "t": ["x y", "y x", "x", "y", "x y x"],
  }
  for name, content in lines.items():
    (tmp_path / name).write_text("".join(f"{line}\n" for line in content))
  (tmp_path / "l").write_text("0-0 1-1\n0-0 1-1\n0-0\n0-0\n0-0 1-1 2-2\n")
  names = {
    "train_source": "s",
    "train_target": "t",
    "train_links": "l",
    "tune_source": "s",
    "test_source": "s",
  }
  flags = [
    f"--config.data.files.{key}={tmp_path / name}"
    for key, name in names.items()
  ]
  references = f"('{tmp_path / 't'}',)"
  call = [
    "--config=configs/real.py",
    "--config.aligners=('given',)",
    f"--workdir={tmp_path / 'w'}",
    f"--config.data.files.tune_references={references}",
    f"--config.data.files.test_references={references}",
    *flags,
  ]
  done = util.run_program("launch/train.py", *call)
  assert done.returncode == 0, done.stderr
  results = json.loads((tmp_path / "w" / "results.json").read_text())
  assert results["systems"]["gloss_given"]["ter"] == 0
  (tmp_path / "t").write_text("x\n")
  done = util.run_program("launch/train.py", *call)
  assert done.returncode == 2
  assert f"{tmp_path / 't'}:" in done.stderr


def test_sweep_and_table(tmp_path):
  study = tmp_path / "study.py"
  study.write_text(
    "BASE = 'configs/quickstart.py:small'\n"
    "_TINY = {'data.synthetic.train': 100, 'data.synthetic.tune': 10,\n"
    "         'data.synthetic.test': 30, 'aligners': ('given',)}\n"
    "ABLATIONS = {'clean': {**_TINY, 'data.synthetic.noise': 0.0},\n"
    "             'noisy': {**_TINY, 'data.synthetic.noise': 0.9}}\n"
    "SEEDS = (0, 1)\n"
  )
  flags = (f"--study={study}", f"--workdir={tmp_path / 'w'}")
  dry = util.run_program("launch/sweep.py", *flags, "--dry_run")
  assert dry.stdout.count("to run") == 4
  assert not (tmp_path / "w").exists()
  first = util.run_program("launch/sweep.py", *flags, "--shard=0/2")
  assert first.returncode == 0, first.stderr
  second = util.run_program("launch/sweep.py", *flags)
  assert second.stderr.count("already done") == 2
  table = util.run_program("tools/table.py", str(tmp_path / "w"))
  assert table.returncode == 0, table.stderr
  assert "clean" in table.stdout and "±" in table.stdout
  noisy = next(line for line in table.stdout.splitlines() if "noisy" in line)
  assert "*" in noisy  # so much noise is a significant loss
  assert (tmp_path / "w" / "table.html").is_file()
  nothing = util.run_program("tools/table.py", str(tmp_path))
  assert nothing.returncode == 2
