import json

import pytest

from jaxmt.text import treebank
from tests import util

BANK = (
  "the\tDET\t2\tdet\ndog\tNOUN\t3\tnsubj\nbarks\tVERB\t0\troot\n\n"
  "a\tDET\t2\tdet\ncat\tNOUN\t3\tnsubj\nsleeps\tVERB\t0\troot\n\n"
) * 8


def run(*args, **kwargs):
  return util.run_program("launch/parse.py", *args, **kwargs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  path = tmp_path_factory.mktemp("parse")
  (path / "bank").write_text(BANK)
  return path


def test_learns_parses_and_scores(folder):
  bank, model, out = folder / "bank", folder / "arc", folder / "out.conllu"
  done = run(
    *("--model=arc", f"--train={bank}", f"--output={model}", "--bits=12"),
    "--epochs=2",
  )
  assert (done.returncode, done.stdout) == (0, ""), done.stderr
  assert "epoch 2: loss" in done.stderr
  args = (f"--load={model}", f"--input={bank}")
  done = run(*args, "--evaluate", "--json", f"--output={out}")
  assert done.returncode == 0, done.stderr
  scores = json.loads(done.stdout)
  assert scores["accuracy"] == 100 and scores["sentences"] == 16
  assert scores["sentences_per_second"] > 0
  parsed, gold = map(treebank.read_treebank, (str(out), str(bank)))
  assert parsed.heads.tolist() == gold.heads.tolist()
  page = folder / "page.html"
  done = run(*args, f"--page={page}")
  assert done.returncode == 0, done.stderr
  assert page.read_text().count('data-component="dependency"') == 16


def test_learns_pairs_of_siblings(folder):
  bank, model = folder / "bank", folder / "sibling"
  done = run(
    *("--model=sibling", f"--train={bank}", f"--output={model}"),
    *("--bits=12", "--epochs=2"),
  )
  assert done.returncode == 0, done.stderr
  assert "epoch 2: loss" in done.stderr
  done = run(f"--load={model}", f"--input={bank}", "--evaluate", "--json")
  assert json.loads(done.stdout)["accuracy"] == 100
  both = f"--load={model},{model}"
  done = run(both, f"--input={bank}", "--evaluate", "--json")
  assert json.loads(done.stdout)["accuracy"] == 100


def test_draws_trees(folder):
  bank, out = folder / "bank", folder / "drawn.conllu"
  done = run("--random", f"--input={bank}", f"--output={out}", "--seed=3")
  assert done.returncode == 0, done.stderr
  parsed = treebank.read_treebank(str(out))
  assert len(parsed) == 16 and len(set(parsed.heads.tolist())) > 2


def test_learns_from_tags_alone(folder):
  bank, model = folder / "bank", folder / "dmv"
  done = run(
    *("--model=dmv", f"--train={bank}", f"--output={model}"),
    *("--start=ccv2", "--iterations=20", "--concave_iterations=5"),
  )
  assert done.returncode == 0, done.stderr
  assert "iteration 20: log likelihood" in done.stderr
  done = run(f"--load={model}", f"--input={bank}", "--evaluate", "--json")
  scores = json.loads(done.stdout)
  assert 0 <= scores["words_accuracy"] <= 100 and scores["words"] == 48


def test_constituents_become_dependencies(folder):
  path, out = folder / "trees", folder / "trees.conllu"
  path.write_text("(ROOT (S (NP (DT a) (NN b)) (VP (VB c))))\n()\n")
  done = run(f"--trees={path}", f"--output={out}")
  assert done.returncode == 0, done.stderr
  assert "1 lines without a tree" in done.stderr
  bank = treebank.read_treebank(str(out))
  assert bank.heads.tolist() == [1, 2, -1]


def test_bad_input_is_one_line(folder):
  bad = folder / "bad"
  bad.write_text("a\tX\t0\n\nb\tX\t7\n")
  cases = [
    ((f"--train={bad}", f"--output={folder / 'm'}"), f"{bad}:3: not a tree"),
    ((f"--load={bad}", f"--input={bad}", "--evaluate"), "not a directory"),
    ((f"--train={bad}",), "--output is required"),
    ((), "give one of --train, --load, --random and --trees"),
  ]
  for args, cause in cases:
    done = run(*args)
    assert done.returncode == 2 and cause in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
  assert not (folder / "m").exists()
