import pytest

from jaxmt.text import treebank
from tests import util

PAIRS = [
  ("das haus ist klein", "the house is small", "0-0 1-1 2-2 3-3"),
  ("das buch ist alt", "the book is old", "0-0 1-1 2-2 3-3"),
  ("ein haus ist alt", "a house is old", "0-0 1-1 2-2 3-3"),
  ("ein buch", "a book", "0-0 1-1"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  path = tmp_path_factory.mktemp("trees")
  for name, column in (("s", 0), ("t", 1), ("links", 2)):
    lines = [pair[column] for pair in PAIRS * 3]
    (path / name).write_text("".join(line + "\n" for line in lines))
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
  (path / "source").write_text(
    "das\tD\t2\nhaus\tN\t3\nist\tV\t0\nalt\tA\t3\n\n"
    "ein\tD\t2\nbuch\tN\t3\nist\tV\t0\nklein\tA\t3\n"
  )
  return path


def run(folder, *args):
  return util.run_program(
    "launch/translate_trees.py",
    *(f"--grammar={folder / 'G'}", f"--lm={folder / 'lm'}"),
    *(f"--weights={folder / 'W'}", f"--input={folder / 'in'}"),
    *(f"--output={folder / 'out'}", *args),
  )


def test_translates_with_trees_and_lists(folder):
  (folder / "D").write_text("dep_parent-child_left 0.5\nphrase_score 0.9\n")
  done = run(
    folder,
    *(f"--source_trees={folder / 'source'}", f"--trees={folder / 'trees'}"),
    *(f"--dependency_weights={folder / 'D'}", f"--nbest={folder / 'nbest'}"),
    "--nbest_size=5",
  )
  assert done.returncode == 0, done.stderr
  lines = (folder / "out").read_text().splitlines()
  assert lines == ["the house is old", "", "a book is small"]
  bank = treebank.read_treebank(str(folder / "trees"))
  assert len(bank) == 2 and bank.has_trees.all()
  entries = (folder / "nbest").read_text().splitlines()
  assert entries[0].startswith("0 ||| the house is old ||| phrase_score=")
  assert len({e.split(" ||| ")[1] for e in entries if e[0] == "0"}) == len(
    [e for e in entries if e[0] == "0"]
  )


def test_bad_input_is_one_line(folder):
  (folder / "bad").write_text("dep_unknown 1\n")
  done = run(folder, f"--dependency_weights={folder / 'bad'}")
  assert done.returncode == 2 and "no feature 'dep_unknown'" in done.stderr
  (folder / "one").write_text("das\tD\t0\n")
  done = run(folder, f"--source_trees={folder / 'one'}")
  assert done.returncode == 2
  assert "1 trees for 2 lines with words" in done.stderr
