"""The forced decoding program: what it writes, reports and refuses."""

import json
import math

import numpy as np
import pytest

from jaxmt.decode.forced import reachability
from tests import util

SOURCE = """\
er sieht das haus
das haus
er sieht er
haus von er
das haus von er

qux
"""
TARGET = """\
he sees the house
the house
he sees her
he 's house
he 's the house
nothing
qux
"""
LINKS = """\
0-0 1-1 2-2 3-3
0-0 1-1
0-0 1-1 2-2
0-2 1-1 2-0
0-2 1-3 2-1 3-0

0-0
"""
TREES = """\
(S (NP er) (VP (V sieht) (NP (D das) (N haus))))
(NP (D das) (N haus))
(S (NP er) (VP (V sieht) (NP er)))
(NP (NP haus) (PP (P von) (NP er)))
(NP (NP (D das) (N haus)) (PP (P von) (NP er)))
()
(X qux)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """The text and two grammars: `g` with provenance, `t2s` without."""
  made = tmp_path_factory.mktemp("forced")
  texts = {"s": SOURCE, "t": TARGET, "a": LINKS, "trees": TREES}
  for name, text in texts.items():
    (made / name).write_text(text)
  for flags in (
    ("--provenance", f"--output={made / 'g'}"),
    ("--kind=t2s", f"--trees={made / 'trees'}", f"--output={made / 't2s'}"),
  ):
    done = util.run_program(
      "launch/extract.py",
      f"--source={made / 's'}",
      f"--target={made / 't'}",
      f"--links={made / 'a'}",
      *flags,
    )
    assert done.returncode == 0, done.stderr
  return made


def run(folder, *flags, **paths):
  names = {"grammar": "g", "input": "s", "reference": "t", "output": "d"}
  given = [f"--{k}={folder / v}" for k, v in {**names, **paths}.items()]
  return util.run_program("launch/force.py", *given, "--threads=1", *flags)


def test_training_text_is_derived_and_reported(folder):
  done = run(folder, "--report")
  assert done.returncode == 0, done.stderr
  lines = (folder / "d").read_text().split("\n")[:-1]
  assert len(lines) == 7
  assert all(line.startswith("(S[0:") for line in lines[:5])
  assert lines[5] == "() empty: source"
  assert "qux | qux" in lines[6]
  rows = done.stdout.split("\n")
  assert rows[0].split() == (
    "source words sentences reached reached % words words reached %".split()
  )
  assert rows[2].split() == ["0-5", "7", "6", "85.71", "17", "100"]
  assert rows[3].split() == ["all", "7", "6", "85.71", "17", "100"]
  assert rows[5].split() == ["not", "reached", "because", "sentences"]
  assert rows[7].split() == ["empty", "1"]
  assert "6 of 7 references reached" in done.stderr

  alone = run(folder, "--json", "--leave_one_out")
  assert alone.returncode == 0, alone.stderr
  report = json.loads(alone.stdout)
  # Only the third sentence has "her", only the last has "qux", which is copied.
  assert report["overall"]["reached"] < 6
  lines = (folder / "d").read_text().split("\n")[:-1]
  assert lines[2] == "() word not producible: 'her'"
  assert "qux | qux" in lines[6]
  assert report["words"]["word not producible: 'her'"] == 1


def test_several_derivations_weights_and_language_model(folder):
  (folder / "w").write_text("glue -1\nLanguageModel 0.5\n")
  (folder / "lm").write_text(
    "\\data\\\nngram 1=4\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-1\t</s>\n"
    "-1\thouse\n\n\\end\\\n"
  )
  done = run(folder, "--nbest=9", weights="w", lm="lm")
  assert done.returncode == 0, done.stderr
  lines = (folder / "d").read_text().split("\n")[:-1]
  second = [line.split(" ||| ") for line in lines if line.startswith("1 |||")]
  assert len(second) == 4
  # Three words with the end, each 1/10; one glue rule, or two word by word.
  said = 0.5 * 3 * math.log(0.1)
  scores = [float(one[2]) for one in second]
  np.testing.assert_allclose(scores, said - np.array([1, 1, 1, 2]), atol=1e-4)
  assert second[3][1] == (
    "(S[0:2] S0 X1 | S0 X1 (S[0:1] X0 | X0 (X[0:1] das | the))"
    " (X[1:2] haus | house))"
  )
  assert lines[-2] == "5 ||| () ||| empty: source"


def test_trees(folder):
  done = run(folder, grammar="t2s", trees="trees")
  assert done.returncode == 0, done.stderr
  lines = (folder / "d").read_text().split("\n")[:-1]
  assert lines[3].startswith("(S[0:3] X0 | X0 (NP[0:3]")
  assert "6 of 7 references reached" in done.stderr
  plain = run(folder, grammar="t2s")
  assert plain.returncode == 0, plain.stderr
  assert "1 of 7 references reached" in plain.stderr  # what can be copied


def test_refusals(folder):
  (folder / "short").write_text("a\nb\n")
  (folder / "few").write_text("()\n()\n")
  other = TREES.split("\n")
  other[1] = "(NP (D das)" + " (N haus)" * 20_000 + ")"
  (folder / "other").write_text("\n".join(other))
  refused = (
    (run(folder, reference="short"), "short:3: 2 lines"),
    (run(folder, trees="few"), "few:2: uneven: ends after 2 lines"),
    (
      run(folder, grammar="t2s", trees="other"),
      "other:2: the tree has 20001 leaves, the sentence 2 words",
    ),
    (run(folder, "--leave_one_out", grammar="t2s"), "without provenance"),
    (
      run(folder, "--leave_one_out", input="short", reference="short"),
      "was extracted from 7 lines, --input has 2",
    ),
    (run(folder, "--report", "--output=-"), "standard output"),
  )
  for done, text in refused:
    assert done.returncode == 2
    assert len(done.stderr.strip().split("\n")) == 1
    assert text in done.stderr


def test_summary_by_length():
  made = reachability.summarize(
    [5, 6, 41, 0],
    [True, False, False, False],
    ["", "a word: 'x'", "a word: 3 'x'", "limit"],
  )
  assert [row["source words"] for row in made.rows] == ["0-5", "6-10", "41+"]
  assert made.rows[0]["reached %"] == 50.0
  assert made.rows[0]["words reached %"] == 100.0
  assert made.overall["words"] == 52
  assert made.kinds == {"a word": 2, "limit": 1}
  assert made.words == {"a word: 'x'": 2}
