"""Search parameters chosen by the program."""

import pytest

from jaxmt.text import files
from tests import util
from tests.launch.tune_loop_test import folder  # noqa: F401


def run(folder, output, **changes):  # noqa: F811
  given = {
    "dialect": "cdec",
    "grammar": folder / "g",
    "lm": folder / "lm",
    "input": folder / "s",
    "references": folder / "r",
    "weights": folder / "w",
    "metric": "wer",
    "beam": 8,
    "pop": 20,
    "cost": "candidates",
    "evaluations": 4,
    "output": output,
    **changes,
  }
  flags = [f"--{k}={v}" for k, v in given.items() if v is not None]
  return util.run_program("launch/tune_search.py", *flags)


def test_it_writes_flags_that_translate_takes(folder, tmp_path):  # noqa: F811
  done = run(folder, tmp_path / "f", parameters="beam,pop,span")
  assert done.returncode == 0, done.stderr
  trials = [line for line in done.stdout.splitlines() if ": wer" in line]
  assert len(trials) == 4 and trials[0].startswith("beam=8 pop=20 span=10: wer")
  chosen = files.read_lines(str(tmp_path / "f"))
  assert [line.split("=")[0] for line in chosen] == [
    "--beam",
    "--pop",
    "--span",
  ]
  assert done.stdout.splitlines()[-1] == "best: " + " ".join(chosen)
  done = util.run_program(
    "launch/translate.py",
    f"--flagfile={tmp_path / 'f'}",
    "--dialect=cdec",
    f"--grammar={folder / 'g'}",
    f"--lm={folder / 'lm'}",
    f"--weights={folder / 'w'}",
    f"--input={folder / 's'}",
    f"--output={tmp_path / 'out'}",
  )
  assert done.returncode == 0, done.stderr
  assert len(files.read_lines(str(tmp_path / "out"))) == 6


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"parameters": "beam,speed"}, "'speed' is none of: beam, pop"),
    ({"parameters": "distortion"}, "--kind=scfg has no distortion"),
    ({"parameters": "threshold"}, "tuning starts from 1 or more"),
    ({"weights": None}, "weights"),
  ],
)
def test_bad_flags_are_one_line(folder, tmp_path, changes, message):  # noqa: F811
  done = run(folder, tmp_path / "f", **changes)
  assert done.returncode == 2 and message in done.stderr
  assert len(done.stderr.strip().splitlines()) == 1
  assert not (tmp_path / "f").exists()
