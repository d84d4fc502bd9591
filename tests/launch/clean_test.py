"""The program that weights sentence pairs, and extraction with the weights."""

import numpy as np
import pytest

from jaxmt.grammar import native, pair_quality
from tests import util

SOURCE = ["a b c", "a b", "b c", "a c", "c c a"]
TARGET = ["x y z", "x y", "y z", "x z", "q q q"]
LINKS = ["0-0 1-1 2-2", "0-0 1-1", "0-0 1-1", "0-0 1-1", "0-0 1-1 2-2"]


@pytest.fixture
def corpus(tmp_path):
  for name, lines in (("s", SOURCE), ("t", TARGET), ("l", LINKS)):
    (tmp_path / name).write_text("\n".join(lines) + "\n")
  return [f"--{n}={tmp_path / n[0]}" for n in ("source", "target", "links")]


def run(*args):
  return util.run_program("launch/clean.py", *args)


def test_weights_of_pairs_become_features_of_rules(tmp_path, corpus):
  scores = tmp_path / "scores"
  done = run(
    *corpus,
    f"--output={scores}",
    "--keep=0.8",
    f"--filtered={tmp_path / 'best'}",
  )
  assert done.returncode == 0, done.stderr
  weights = np.array(scores.read_text().split(), float)
  assert len(weights) == 5 and weights.argmin() == 4
  for name, lines in (("source", SOURCE), ("target", TARGET), ("links", LINKS)):
    assert (tmp_path / f"best.{name}").read_text().splitlines() == lines[:4]
  for kind in ("hiero", "phrase"):
    out = tmp_path / kind
    done = util.run_program(
      "launch/extract.py",
      *corpus,
      f"--kind={kind}",
      f"--pair_weights={scores}",
      f"--output={out}",
    )
    assert done.returncode == 0, done.stderr
    table = native.read(str(out))
    columns = [table.feature_names.index(name) for name in pair_quality.NAMES]
    assert (table.features[:, columns] < 0).any()


@pytest.mark.parametrize(
  ("weights", "message"),
  [
    ("1\nx\n1\n1\n1\n", "weights:2: 'x' is no weight"),
    ("1\n1\n-1\n1\n1\n", "weights:3: '-1' is no weight"),
    ("1\n1\n", "2 weights for 5 sentence pairs"),
  ],
)
def test_bad_weights_are_one_line(tmp_path, corpus, weights, message):
  (tmp_path / "weights").write_text(weights)
  done = util.run_program(
    "launch/extract.py",
    *corpus,
    f"--pair_weights={tmp_path / 'weights'}",
    f"--output={tmp_path / 'G'}",
  )
  assert done.returncode == 2 and message in done.stderr
  assert not (tmp_path / "G").exists()


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (("--damping=1",), "damping must be"),
    (("--keep=0.5",), "--keep and --filtered go together"),
    (("--keep=0", "--filtered=x"), "--keep must be above 0"),
  ],
)
def test_bad_flags_are_one_line(tmp_path, corpus, flags, message):
  done = run(*corpus, f"--output={tmp_path / 'o'}", *flags)
  assert done.returncode == 2 and message in done.stderr
  assert not (tmp_path / "o").exists()
