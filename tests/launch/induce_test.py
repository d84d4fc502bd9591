import gzip
import json

import pytest

from tests import util

_STUDY = "--config=configs/induction.py"

BANK = "w\tDET\t2\nw\tNOUN\t3\nw\tVERB\t0\n\nw\tNOUN\t2\nw\tVERB\t0\n\n" * 3


def test_runs_resumes_and_prints_the_table(tmp_path):
  for part in ("train", "test"):
    (tmp_path / f"en.{part}.gz").write_bytes(gzip.compress(BANK.encode()))
  args = (
    *("--config=configs/induction.py", f"--workdir={tmp_path / 'runs'}"),
    *(f"--config.data={tmp_path}", "--config.languages=('en',)"),
    *("--config.starts=('ccv2','random')", "--config.seeds=2", "--json"),
    *("--config.iterations=3", "--config.concave_iterations=3"),
  )
  done = util.run_program("launch/induce.py", *args)
  assert done.returncode == 0, done.stderr
  rows = json.loads(done.stdout)
  assert [row["language"] for row in rows] == ["en", "mean"]
  assert rows[0]["ccv2, thesis"] == "54/43"
  assert len(list((tmp_path / "runs").iterdir())) == 3
  # The data is gone: everything comes from the workdir.
  for part in ("train", "test"):
    (tmp_path / f"en.{part}.gz").unlink()
  again = util.run_program("launch/induce.py", *args)
  assert again.stdout == done.stdout, again.stderr
  missing = util.run_program("launch/induce.py", *args, "--config.seeds=3")
  assert missing.returncode == 2
  assert "en.train.gz: no such file" in missing.stderr


@pytest.mark.parametrize(
  ("args", "message"),
  [
    ((), "--config is required"),
    (("--config=configs/quickstart.py",), "no study of parsers"),
    ((_STUDY, "--config.seeds=0"), "--config.seeds must be at least 1"),
    ((_STUDY, "--config.iterations=-1"), "--config.iterations must be"),
    ((_STUDY, "--config.languages=()"), "--config.languages is empty"),
    ((_STUDY, "--config.languages=('../x',)"), "is in another folder"),
    ((_STUDY, "--config.models=('x',)", "--config.data=d"), "no model 'x'"),
    ((_STUDY,), "--config.data is required"),
  ],
)
def test_bad_studies_are_one_line(tmp_path, args, message):
  done = util.run_program(
    "launch/induce.py", f"--workdir={tmp_path / 'runs'}", *args
  )
  assert done.returncode == 2 and done.stdout == ""
  assert message in done.stderr and done.stderr.count("\n") == 1
  assert not (tmp_path / "runs").exists()
