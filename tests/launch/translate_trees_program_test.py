import numpy as np
import pytest

from jaxmt.text import treebank
from tests import util

PAIRS = [
  ("das haus ist klein", "the house is small", "0-0 1-1 2-2 3-3"),
  ("das buch ist alt", "the book is old", "0-0 1-1 2-2 3-3"),
  ("ein haus ist alt", "a house is old", "0-0 1-1 2-2 3-3"),
  ("ein buch", "a book", "0-0 1-1"),
]
TREES = {4: (2, 3, 0, 3), 2: (2, 0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  path = tmp_path_factory.mktemp("trees")
  for name, column in (("s", 0), ("t", 1), ("links", 2)):
    lines = [pair[column] for pair in PAIRS * 3]
    (path / name).write_text("".join(line + "\n" for line in lines))
  (path / "target").write_text(
    "\n".join(
      "".join(
        f"{word}\tX\t{head}\n"
        for word, head in zip(
          pair[1].split(), TREES[len(pair[1].split())], strict=True
        )
      )
      for pair in PAIRS * 3
    )
  )
  (path / "C").write_text("0\tthe\t1\n0\ta\t1\n10\thouse\t1\n10\tbook\t1\n")
  done = util.run_program(
    "launch/extract.py",
    *(f"--source={path / 's'}", f"--target={path / 't'}"),
    *(f"--links={path / 'links'}", "--kind=phrase", f"--output={path / 'G'}"),
  )
  assert done.returncode == 0, done.stderr
  done = util.run_program(
    "launch/lm.py",
    *(f"--text={path / 't'}", "--order=2", f"--output={path / 'lm'}"),
    "--discount_fallback",
  )
  assert done.returncode == 0, done.stderr
  (path / "W").write_text("LanguageModel 0.5\nWordPenalty -0.2\n")
  (path / "in").write_text("das haus ist alt\n\nein buch ist klein\n")
  (path / "ref").write_text("the house is old\n\na book is tiny\n")
  (path / "source").write_text(
    "das\tD\t2\nhaus\tN\t3\nist\tV\t0\nalt\tA\t3\n\n"
    "ein\tD\t2\nbuch\tN\t3\nist\tV\t0\nklein\tA\t3\n"
  )
  return path


def run(folder, *args, program="launch/translate_trees.py"):
  return util.run_program(
    program,
    *(f"--grammar={folder / 'G'}", f"--lm={folder / 'lm'}"),
    *(f"--weights={folder / 'W'}", f"--input={folder / 'in'}"),
    *(f"--output={folder / 'out'}", *args),
  )


def extract(folder, *args, trees="target"):
  return util.run_program(
    "launch/extract_dependencies.py",
    *(f"--source={folder / 's'}", f"--target={folder / 't'}"),
    *(f"--links={folder / 'links'}", f"--target_trees={folder / trees}"),
    *(f"--clusters={folder / 'C'}", f"--grammar={folder / 'G'}", *args),
  )


def test_learns_and_translates_with_all_features(folder):
  done = extract(folder, f"--output={folder / 'T'}")
  assert done.returncode == 0, done.stderr
  assert "events of 12 pairs" in done.stderr
  shared = (
    f"--source_trees={folder / 'source'}",
    *(f"--dependencies={folder / 'T'}", f"--clusters={folder / 'C'}"),
  )
  done = run(
    folder,
    *shared,
    *(f"--references={folder / 'ref'}", f"--workdir={folder / 'tuning'}"),
    *("--rounds=2", "--nbest=20"),
    program="launch/tune_trees.py",
  )
  assert done.returncode == 0, done.stderr
  assert "ramp3: bleu" in done.stdout
  learnt = (folder / "out").read_text()
  (folder / "D").write_text(learnt)
  names = {line.split()[0] for line in learnt.splitlines() if line[0] != "#"}
  assert {"LanguageModel", "dep_phrase", "dep_pair", "dep_path"} <= names
  done = run(
    folder,
    *(*shared, f"--trees={folder / 'trees'}", f"--page={folder / 'page'}"),
    *(f"--dependency_weights={folder / 'D'}", f"--nbest={folder / 'nbest'}"),
    *("--nbest_size=5", f"--oracle={folder / 'oracle'}"),
    f"--references={folder / 'ref'}",
  )
  assert done.returncode == 0, done.stderr
  lines = (folder / "out").read_text().splitlines()
  assert lines == ["the house is old", "", "a book is small"]
  best = (folder / "oracle").read_text().splitlines()
  assert best == ["the house is old", "", "a book is small"]
  bank = treebank.read_treebank(str(folder / "trees"))
  assert len(bank) == 2 and bank.has_trees.all()
  assert "Sentence 3" in (folder / "page").read_text()
  entries = (folder / "nbest").read_text().splitlines()
  weights = dict(line.split() for line in learnt.splitlines() if line[0] != "#")
  for entry in entries:
    _, _, values, score = entry.split(" ||| ")
    pairs = [item.rsplit("=", 1) for item in values.split()]
    total = sum(float(v) * float(weights.get(n, 0)) for n, v in pairs)
    np.testing.assert_allclose(total, float(score), atol=1e-3)
  first = [e.split(" ||| ")[1] for e in entries if e[0] == "0"]
  assert len(set(first)) == len(first)


def test_trees_over_words(folder):
  done = run(
    folder,
    *("--unit=words", f"--trees={folder / 'trees'}", "--groups=length"),
  )
  assert done.returncode == 0, done.stderr
  lines = (folder / "out").read_text().splitlines()
  assert lines == ["the house is old", "", "a book is small"]
  bank = treebank.read_treebank(str(folder / "trees"))
  assert bank.lengths.tolist() == [4, 4]


def test_bad_input_is_one_line(folder):
  (folder / "bad").write_text("dep_unknown 1\n")
  done = run(folder, f"--dependency_weights={folder / 'bad'}")
  assert done.returncode == 2 and "no feature 'dep_unknown'" in done.stderr
  (folder / "one").write_text("das\tD\t0\n")
  done = run(folder, f"--source_trees={folder / 'one'}")
  assert done.returncode == 2
  assert "1 trees for 2 lines with words" in done.stderr
  done = run(folder, "--groups=tree")
  assert done.returncode == 2 and "no group 'tree'" in done.stderr
  done = extract(folder, f"--output={folder / 'T2'}", trees="one")
  assert done.returncode == 2
  assert "1 trees for 12 lines with words" in done.stderr
