"""Bracketing grammars from end to end: an experiment, an export, files."""

import json

import pytest

import jaxmt
from tests import util
from tests.launch import train_test

SOURCE = ["das haus brennt", "ein buch liegt", "das buch", "ein haus"] * 3
TARGET = ["burns the house", "lies a book", "the book", "a house"] * 3
LINKS = ["0-1 1-2 2-0", "0-1 1-2 2-0", "0-0 1-1", "0-0 1-1"] * 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  workdir = tmp_path_factory.mktemp("btg")
  done = train_test.train(workdir, "--config.grammar.kind=btg")
  assert done.returncode == 0, done.stderr
  return workdir


@pytest.mark.slow
def test_an_experiment_with_a_trained_system(run, tmp_path):
  results = json.loads((run / "results.json").read_text())
  assert set(results["systems"]) >= {"primary", "augmented-forest"}
  weights = jaxmt.load(str(run), system="primary").weights
  assert "MaxEntReordering" in weights and "inverted" in weights
  # The exported folder translates as the run does.
  done = util.run_program(
    "launch/export.py",
    f"--workdir={run}",
    "--system=primary",
    f"--output={tmp_path / 'out'}",
  )
  assert done.returncode == 0, done.stderr
  assert "--kind=btg" in (tmp_path / "out" / "README.md").read_text()
  lines = ["他 昨天 买 了 书 。", "书 。"]
  ours, again = (
    jaxmt.decode(jaxmt.load(str(path)), lines, forests=False)
    for path in (run, tmp_path / "out")
  )
  first = jaxmt.decode(
    jaxmt.load(str(run), system="primary"), lines, forests=False
  )
  assert again.text == first.text
  assert again.scores == pytest.approx(first.scores, abs=1e-5)
  assert len(ours.text) == 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("files")
  for name, lines in (("s", SOURCE), ("t", TARGET), ("l", LINKS)):
    (folder / name).write_text("".join(line + "\n" for line in lines))
  flags = [
    f"--source={folder}/s",
    f"--target={folder}/t",
    f"--links={folder}/l",
  ]
  done = util.run_program(
    "launch/extract.py", *flags, "--kind=btg", f"--output={folder}/g"
  )
  assert done.returncode == 0, done.stderr
  assert "reordering: " in done.stderr
  done = util.run_program(
    "launch/lm.py",
    f"--text={folder}/t",
    "--order=2",
    "--discount_fallback",
    f"--output={folder}/lm",
  )
  assert done.returncode == 0, done.stderr
  (folder / "w").write_text(
    "LanguageModel 0.1\nMaxEntReordering 5\nEgivenFCoherent 1\n"
  )
  return folder


def translate(folder, *flags):
  return util.run_program(
    "launch/translate.py",
    f"--lm={folder}/lm",
    f"--weights={folder}/w",
    f"--input={folder}/in",
    "--kind=btg",
    *flags,
  )


def test_files(folder, tmp_path):
  (folder / "in").write_text("das buch brennt\n")
  done = translate(
    folder, f"--grammar={folder}/g", f"--derivations={tmp_path}/d"
  )
  assert done.returncode == 0, done.stderr
  # The reordering model has learned that verbs move to the front.
  assert done.stdout == "burns the book\n"
  assert "X0 X1 | X1 X0" in (tmp_path / "d").read_text()
  loaded = jaxmt.load_files(
    f"{folder}/g", f"{folder}/lm", f"{folder}/w", kind="btg"
  )
  found = jaxmt.decode(loaded, ["das buch brennt"])
  assert found.text == ["burns the book"]
  # The same table of Moses, and the model from the folder.
  moses = "das ||| the ||| 1\nbuch ||| book ||| 1\nbrennt ||| burns ||| 1\n"
  (folder / "moses").write_text(moses)
  flags = [f"--grammar={folder}/moses", "--dialect=moses"]
  done = translate(folder, *flags, f"--reordering={folder}/g")
  assert (done.returncode, done.stdout) == (0, "burns the book\n"), done.stderr


def test_weights_are_learned_on_the_bitext(folder, tmp_path):
  (folder / "against").write_text("LanguageModel 0.1\nMaxEntReordering -1\n")
  done = util.run_program(
    "launch/learn.py",
    "--kind=btg",
    f"--grammar={folder}/g",
    f"--lm={folder}/lm",
    f"--weights={folder}/against",
    f"--source={folder}/s",
    f"--target={folder}/t",
    "--templates=",
    "--epochs=4",
    "--minibatch=4",
    "--dense_rate=0.2",
    "--length_search=none",
    f"--workdir={tmp_path}/work",
    f"--output={tmp_path}/w",
    "--json",
  )
  assert done.returncode == 0, done.stderr
  result = json.loads(done.stdout)
  assert result["reachability"]["reached %"] == 100
  history = result["history"]
  assert all(row["valid_share"] == 1.0 for row in history if row["updates"])
  assert history[0]["right_share"] < history[-1]["right_share"]
  weights = dict(
    line.split() for line in (tmp_path / "w").read_text().splitlines()[1:]
  )
  assert float(weights["MaxEntReordering"]) > -1


def test_damage_is_told(folder, tmp_path):
  (folder / "in").write_text("das buch\n")
  done = translate(
    folder, f"--grammar={folder}/g", f"--reordering={tmp_path}/none"
  )
  assert done.returncode == 2 and "none" in done.stderr
  done = util.run_program(
    "launch/extract.py",
    f"--source={folder}/s",
    f"--target={folder}/t",
    f"--links={folder}/l",
    "--kind=btg",
    "--format=moses",
    f"--output={tmp_path}/g",
  )
  assert done.returncode == 2
  assert "--kind=btg has --format=native" in done.stderr
