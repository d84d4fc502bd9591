"""The translation program with trees and a grammar in its own format."""

import pytest

from tests import util

SOURCE = """\
er sieht das haus
das haus
er sieht er
haus von er
das haus von er
"""
TARGET = """\
he sees the house
the house
he sees her
he 's house
he 's the house
"""
LINKS = """\
0-0 1-1 2-2 3-3
0-0 1-1
0-0 1-1 2-2
0-2 1-1 2-0
0-2 1-3 2-1 3-0
"""
TREES = """\
(S (NP er) (VP (V sieht) (NP (D das) (N haus))))
(NP (D das) (N haus))
(S (NP er) (VP (V sieht) (NP er)))
(NP (NP haus) (P von) (NP er))
(NP (NP (D das) (N haus)) (P von) (NP er))
"""
ARPA = """\
\\data\\
ngram 1=9
ngram 2=3

\\1-grams:
-2.0\t<unk>
-99\t<s>\t-0.3
-1.0\t</s>
-1.1\tthe\t-0.2
-1.2\thouse\t-0.1
-1.4\tsees\t-0.1
-1.3\the\t-0.2
-1.3\ther\t-0.2
-1.9\t's\t-0.1

\\2-grams:
-0.3\tthe house
-0.4\t<s> he
-0.5\the sees

\\end\\
"""
WEIGHTS = """\
source_given_target 0.2
target_given_source 0.3
LanguageModel 0.5
LanguageModel_OOV -1
WordPenalty -0.3
pass_through -5
glue -0.1
Match 0.1
Mismatch -0.1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """The text, its trees, and `joint`: both kinds of rules, binary trees."""
  made = tmp_path_factory.mktemp("trees")
  texts = {
    "s": SOURCE,
    "t": TARGET,
    "a": LINKS,
    "trees": TREES,
    "lm": ARPA,
    "w": WEIGHTS,
  }
  for name, text in texts.items():
    (made / name).write_text(text)
  done = util.run_program(
    "launch/extract.py",
    f"--source={made / 's'}",
    f"--target={made / 't'}",
    f"--links={made / 'a'}",
    f"--trees={made / 'trees'}",
    f"--output={made / 'joint'}",
    "--kind=joint",
    "--binarize",
  )
  assert done.returncode == 0, done.stderr
  return made


def run(folder, *flags, **paths):
  names = {"grammar": "joint", "lm": "lm", "weights": "w", "input": "s"}
  given = [f"--{k}={folder / v}" for k, v in {**names, **paths}.items()]
  return util.run_program(
    "launch/translate.py",
    *given,
    "--compile_cache=",
    "--threads=1",
    "--beam=8",
    "--pop=40",
    *flags,
  )


@pytest.mark.parametrize("leaves", [12, 20_000])
def test_trees_of_other_sentences_are_refused(folder, leaves):
  lines = TREES.split("\n")
  lines[1] = "(NP (D das)" + " (N haus)" * (leaves - 1) + ")"
  (folder / "other").write_text("\n".join(lines))
  done = run(folder, trees="other")
  assert done.returncode == 2
  assert done.stderr == (
    f"translate.py: {folder / 'other'}:2: the tree has {leaves} leaves,"
    " the sentence 2 words\n"
  )


def test_trees_devices_and_search_errors(folder):
  """Two devices say what one says, with binary trees and without."""
  out, trees, errors = {}, {}, []
  for name, flags in {
    "two": ["--binarize", "--devices=2", "--batch_cells=40"],
    "one": [
      "--binarize",
      f"--search_errors={folder / 'errors'}",
      "--error_beams=1,8",
      "--error_pops=1,40",
      "--exact_steps=60",
    ],
    "flat": [],
  }.items():
    done = run(
      folder,
      f"--output={folder / 'out'}",
      f"--derivations={folder / 'd'}",
      f"--scores={folder / 'scores'}",
      *flags,
      trees="trees",
    )
    assert done.returncode == 0, done.stderr
    scores = (folder / "scores").read_text()
    out[name] = (folder / "out").read_text().split("\n")[:-1], scores
    trees[name] = (folder / "d").read_text().split("\n")[:-1]
  assert out["one"] == out["two"] and trees["one"] == trees["two"]
  assert [*out["one"][0][:2], *out["one"][0][3:]] == [
    line for line in TARGET.split("\n")[:-1] if "her" not in line
  ]
  # Rules of binary trees match only trees that were made binary.
  assert "(NP[0:3] @NP0 NP1 | NP1 @NP0" in trees["one"][3]
  assert not any("@NP[" in tree for tree in trees["flat"])
  assert any("(NP[" in tree for tree in trees["flat"])
  assert any("Match=" in line for line in out["one"][1].split("\n"))

  *rows, note = (folder / "errors").read_text().split("\n")[:-1]
  assert rows[0].split() == (
    "beam pop sentences missed % mean shortfall if missed worst".split()
  )
  errors = [list(map(float, row.split())) for row in rows[2:]]
  assert [row[:2] for row in errors] == [[1, 1], [1, 40], [8, 40]]
  left = int(note.split()[0])
  assert 0 < left < 5
  assert note == (
    f"{left} of 5 sentences not compared: too large for exact search"
    " (over 60 candidates)"
  )
  assert {row[2] for row in errors} == {5 - left}
  assert errors[2][3:] == [0, 0, 0, 0]


def test_flags_that_contradict_each_other(folder):
  for flags, cause in (
    (["--binarize"], "--binarize needs --trees"),
    (["--search_errors=-"], "both go to standard output"),
    (["--search_errors=x", "--error_pops=0"], "--error_pops: 0 is less"),
    (["--search_errors=x", "--error_beams=a"], "--error_beams=a: not whole"),
    (["--search_errors=x", "--error_beams=5000"], "all less than"),
  ):
    done = run(folder, *flags)
    assert done.returncode == 2
    assert len(done.stderr.strip().split("\n")) == 1
    assert cause in done.stderr
