"""launch/align.py with hand-aligned pairs, and its --evaluate."""

import json
import os

import numpy as np
import pytest

from tests import util
from tests.train import itg_training_test


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
  """A bitext of 60 pairs, and 30 hand-aligned ones beside it."""
  folder = tmp_path_factory.mktemp("gold")
  rng = np.random.default_rng(3)
  rows = [itg_training_test.sentence(rng) for _ in range(90)]
  texts = [
    [" ".join(map(str, row[side])) + "\n" for row in rows] for side in (0, 1)
  ]
  lines = [" ".join(f"{s}-{t}" for s, t in row[2]) + "\n" for row in rows]
  for name, column in (("fr", texts[0]), ("en", texts[1]), ("align", lines)):
    (folder / f"text.{name}").write_text("".join(column[:60]))
    (folder / f"dev.{name}").write_text("".join(column[60:]))
  (folder / "dev.en.tree").write_text("not read\n")
  return folder


def run(folder, *args):
  environment = {
    **os.environ,
    "JAX_NUM_CPU_DEVICES": "1",
    "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
  }
  return util.run_program("launch/align.py", *args, env=environment)


def text(folder):
  return f"--source={folder}/text.fr", f"--target={folder}/text.en"


def scores(folder, links, *args):
  done = run(
    folder,
    f"--evaluate={links}",
    f"--gold={folder}/text.align",
    "--json",
    *args,
  )
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


def test_itg_beats_the_hmm(folder):
  done = run(
    folder,
    *text(folder),
    f"--output={folder}/itg",
    "--model=itg",
    f"--train_gold={folder}/dev",
  )
  assert done.returncode == 0, done.stderr
  assert "hp softmax round 2: aer" in done.stderr
  done = run(folder, *text(folder), f"--output={folder}/hmm", "--model=hmm")
  assert done.returncode == 0, done.stderr
  ours = scores(folder, f"{folder}/itg", *text(folder))
  theirs = scores(folder, f"{folder}/hmm")
  assert ours["aer"] < theirs["aer"]
  assert [row["links"] for row in ours["types"]][-1] == "null"
  page = folder / "matrices.html"
  done = run(
    folder,
    *text(folder),
    f"--evaluate={folder}/itg",
    f"--gold={folder}/text.align",
    f"--matrices={page}",
  )
  assert done.returncode == 0, done.stderr
  assert "aer" in done.stdout and "discontiguous" in done.stdout
  assert page.read_text().count("<svg") == 60


@pytest.mark.parametrize(
  ("args", "reason"),
  [
    (["--model=itg"], "ITG alignment needs --train_gold"),
    (["--model=itg", "--train_gold={}/text2"], "no file '{}/text2.en'"),
  ],
)
def test_bad_input_is_told_in_one_line(folder, args, reason):
  done = run(
    folder,
    *text(folder),
    f"--output={folder}/none",
    *(arg.format(folder) for arg in args),
  )
  assert done.returncode == 2
  assert reason.format(folder) in done.stderr
  assert not (folder / "none").exists()


def test_uneven_files_are_told(folder):
  short = folder / "short"
  short.write_text("0-0\n")
  done = run(folder, f"--evaluate={short}", f"--gold={folder}/text.align")
  assert done.returncode == 2 and "has 60" in done.stderr
