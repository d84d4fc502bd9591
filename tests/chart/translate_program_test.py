"""The translation program: odd lines, wrong input, what it writes."""

import numpy as np

from jaxmt.chart import forest_files, translate
from jaxmt.features import sparse
from jaxmt.tune import kbest
from tests import util

RULES = """\
[X] ||| das haus ||| the house ||| P=-0.2 ||| 0-0 1-1
[X] ||| das ||| the ||| P=-0.5 ||| 0-0
[X] ||| haus ||| house ||| P=-0.4 ||| 0-0
[X] ||| sieht [X,1] ||| sees [X,1] ||| P=-0.3 ||| 0-0
[X] ||| [X,1] von [X,2] ||| [X,2] 's [X,1] ||| P=-0.6 ||| 1-1
[X] ||| er ||| he ||| P=-0.1 ||| 0-0
"""
ARPA = """\
\\data\\
ngram 1=8
ngram 2=4

\\1-grams:
-2.0\t<unk>
-99\t<s>\t-0.3
-1.0\t</s>
-1.1\tthe\t-0.2
-1.2\thouse\t-0.1
-1.4\tsees\t-0.1
-1.3\the\t-0.2
-1.9\t's\t-0.1

\\2-grams:
-0.3\tthe house
-0.4\t<s> he
-0.5\the sees
-0.6\thouse </s>

\\end\\
"""
WEIGHTS = """\
# tuned
P 1.0
LanguageModel 0.5
LanguageModel_OOV -1
WordPenalty -0.3
PassThrough -2
Glue -0.1
"""


def write(folder, text=""):
  (folder / "g").write_text(RULES)
  (folder / "lm").write_text(ARPA)
  (folder / "w").write_text(WEIGHTS)
  (folder / "in").write_bytes(text.encode())
  return [
    "--dialect=cdec",
    "--compile_cache=",
    "--threads=1",
    *(
      f"--{k}={folder / v}"
      for k, v in (
        ("grammar", "g"),
        ("lm", "lm"),
        ("weights", "w"),
        ("input", "in"),
      )
    ),
  ]


ODD = (
  "\x00",
  "\x85",
  "\u2028",
  "\x1f",
  "\x1c er",
  "er\x00haus",
  "\ufeff",
  "|||",
)


def test_every_line_gets_one_line(tmp_path):
  text = "er sieht das haus\n\nhaus\n" + "das haus " * 100 + "\nqux\tzap\n"
  text += "er\x01 \x0b sieht\u2028das haus\n   \nhaus von er\n"
  flags = write(tmp_path, text + "\n".join(ODD) + "\n")
  done = util.run_program(
    "launch/translate.py",
    *flags,
    f"--output={tmp_path / 'out'}",
    f"--scores={tmp_path / 'scores'}",
    f"--derivations={tmp_path / 'trees'}",
    f"--links={tmp_path / 'links'}",
    f"--nbest={tmp_path / 'nbest'}",
    "--nbest_size=3",
    "--unique",
    "--beam=8",
    "--pop=40",
  )
  assert done.returncode == 0, done.stderr
  out = (tmp_path / "out").read_text().split("\n")[:-1]
  assert len(out) == 8 + len(ODD)
  assert out[0] == "he sees the house"
  assert out[1] == out[6] == ""
  assert out[2] == "house"
  assert out[3] == " ".join(["the house"] * 100)
  assert out[4] == "qux zap"
  assert out[5] == "er\x01 sieht\u2028das house"
  assert out[7] == "he 's house"
  assert out[8:] == [*ODD[:4], "\x1c he", *ODD[5:]]
  scores = (tmp_path / "scores").read_text().split("\n")
  assert scores[0].startswith("0 ||| he sees the house ||| P=")
  assert scores[7].split(" ||| ")[1] == out[7]
  links = (tmp_path / "links").read_text().split("\n")
  assert links[0] == "0-0 1-1 2-2 3-3"
  assert links[7] == "0-2 1-1 2-0"
  trees = (tmp_path / "trees").read_text().split("\n")
  assert trees[7] == (
    "(S[0:3] X0 | X0 (X[0:3] X0 von X1 | X1 's X0"
    " (X[0:1] haus | house) (X[2:3] er | he)))"
  )
  found = kbest.parse_kbest((tmp_path / "nbest").read_bytes())
  numbers, firsts = np.unique(found.sentence, return_index=True)
  assert numbers.tolist() == list(range(len(out)))
  best = [found.lines[first] for first in firsts]
  assert best == [*out[:-1], "&#124;" * 3]
  exact = util.run_program(
    "launch/translate.py", *flags, "--exact", "--max_words=60", "--output=-"
  )
  assert exact.returncode == 0, exact.stderr
  assert "line 4 " in exact.stderr
  assert exact.stdout.split("\n")[:-1] == out


def test_lists_forests_and_derivations(tmp_path):
  text = "er sieht das haus\n\nhaus von er das haus von er\n"
  flags = [*write(tmp_path, text), "--max_words=4", "--beam=8", "--pop=40"]
  done = util.run_program(
    "launch/translate.py",
    *flags,
    f"--output={tmp_path / 'out'}",
    f"--nbest={tmp_path / 'nbest'}",
    "--nbest_size=6",
    "--nbest_format=moses",
    f"--forest={tmp_path / 'forest.gz'}",
    f"--derivations={tmp_path / 'rules'}",
    "--derivation_format=rules",
    f"--scores={tmp_path / 'scores'}",
    "--detokenize=en",
  )
  assert done.returncode == 0, done.stderr
  assert "line 3" in done.stderr
  out = (tmp_path / "out").read_text().split("\n")[:-1]
  assert out == ["he sees the house", "", "he's house he's the house"]
  lines = (tmp_path / "nbest").read_text().split("\n")[:-1]
  fields = [line.split(" ||| ") for line in lines]
  assert fields[0][0] == "0" and fields[0][4] == "0-0 1-1 2-2 3-3"
  cut = [field for field in fields if field[0] == "2"]
  assert len(cut) == 6
  scores = [float(field[3]) for field in cut]
  assert scores == sorted(scores, reverse=True)
  assert cut[0][4] == "0-2 1-1 2-0 3-5 4-6 5-4 6-3"
  weights = dict(line.split() for line in WEIGHTS.split("\n")[1:-1])
  found = kbest.parse_kbest((tmp_path / "nbest").read_bytes())
  vector = np.array([float(weights.get(name, 0)) for name in found.names])
  dense = sparse.to_dense(found.features, len(found.names))
  np.testing.assert_allclose(
    dense @ vector, [float(field[3]) for field in fields], atol=1e-4
  )
  best = (tmp_path / "scores").read_text().split("\n")[2].split(" ||| ")
  np.testing.assert_allclose(float(best[3]), scores[0], atol=1e-4)
  forests = forest_files.read(str(tmp_path / "forest.gz"))
  assert forests.sentence.tolist() == [0, 1]
  rules = (tmp_path / "rules").read_text().split("\n")
  assert rules[0] == "0 ||| 0 ||| S[0:4] ||| S0 X1 ||| S0 X1 ||| Glue=1"
  assert any(
    rule.startswith("2 ||| 2 ||| X[6:7] ||| er ||| he") for rule in rules
  )
  refused = util.run_program("launch/translate.py", *flags, "--detokenize=q")
  assert refused.returncode == 2 and "--detokenize=q" in refused.stderr


def test_bad_input_is_one_line_and_exit_2(tmp_path):
  flags = write(tmp_path, "er\n")
  (tmp_path / "w").write_text("P\n")
  done = util.run_program("launch/translate.py", *flags, "--output=-")
  assert done.returncode == 2
  assert len(done.stderr.strip().split("\n")) == 1
  assert "w" in done.stderr and "1" in done.stderr
  none = util.run_program("launch/translate.py", "--grammar=x", "--lm=y")
  assert none.returncode == 2
  assert "--weights is required" in none.stderr


def test_long_lines_are_cut_evenly():
  pieces = translate.cut_lines(["a b c", "a b c d e f g", ""], longest=3)
  assert pieces.lines == ["a b c", "a b", "c d", "e f g", ""]
  assert pieces.row.tolist() == [0, 1, 1, 1, 2]
  assert pieces.first.tolist() == [0, 0, 2, 4, 0]
  assert pieces.cut == (1,)
  np.testing.assert_array_equal(pieces.first[pieces.row == 0], 0)


def test_bad_rule_lines_are_named_or_skipped(tmp_path):
  (tmp_path / "g").write_text(
    "[X] ||| a ||| x ||| P=0.5\n[X] || b\n[X] ||| b ||| y ||| P=0.5\n"
  )
  (tmp_path / "more").write_text("[X] ||| c ||| z ||| P=0.5\n")
  (tmp_path / "w").write_text("LanguageModel 0.1\nP 1\n")
  (tmp_path / "lm").write_text(
    "\\data\\\nngram 1=6\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-1\t</s>\n"
    "-1\tx\n-1\ty\n-1\tz\n\n\\end\\\n"
  )
  (tmp_path / "in").write_text("a b c\n")
  flags = (
    f"--grammar={tmp_path / 'g'},{tmp_path / 'more'}",
    f"--lm={tmp_path / 'lm'}",
    f"--weights={tmp_path / 'w'}",
    f"--input={tmp_path / 'in'}",
    "--dialect=cdec",
    "--exact",
  )
  refused = util.run_program("launch/translate.py", *flags)
  assert refused.returncode == 2
  assert f"{tmp_path / 'g'}:2: " in refused.stderr
  done = util.run_program("launch/translate.py", *flags, "--skip_bad")
  assert done.returncode == 0, done.stderr
  assert done.stdout == "x y z\n"
  assert "1 bad lines skipped" in done.stderr
