"""The translation program: odd lines, wrong input, what it writes."""

import itertools

import numpy as np

from jaxmt.decode import forest_files, loading, translate
from jaxmt.decode.chart import decoder, search
from jaxmt.features import sparse
from jaxmt.tune import kbest_decoder
from jaxmt.tune.formats import kbest_files
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
  found = kbest_files.parse_kbest((tmp_path / "nbest").read_bytes())
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
  found = kbest_files.parse_kbest((tmp_path / "nbest").read_bytes())
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
  """Exact search, too, finds the best of many target sides."""
  many = "".join(f"[X] ||| a ||| x{k} ||| P=0.4\n" for k in range(25))
  (tmp_path / "g").write_text(
    "[X] ||| a ||| x ||| P=0.5\n[X] || b\n[X] ||| b ||| y ||| P=0.5\n" + many
  )
  (tmp_path / "more").write_text("[X] ||| c ||| z ||| P=0.5\n")
  (tmp_path / "w").write_text("LanguageModel 0.5\nP 1\n")
  (tmp_path / "lm").write_text(
    "\\data\\\nngram 1=7\nngram 2=1\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t0\n"
    "-1\t</s>\n-1\tx\n-1\ty\n-1\tz\n-9\tx24\n\n\\2-grams:\n-0.1\t<s> x24\n\n"
    "\\end\\\n"
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
  assert done.stdout == "x24 y z\n"
  assert "1 bad lines skipped" in done.stderr
  few = util.run_program(
    "launch/translate.py", *flags, "--skip_bad", "--targets=20"
  )
  assert few.stdout == "x y z\n"


MORE_RULES = """\
[X] ||| das ||| that ||| P=-0.7 ||| 0-0
[X] ||| haus ||| home ||| P=-0.6 ||| 0-0
[X] ||| das haus ||| that home ||| P=-0.9 ||| 0-0 1-1
"""
SPARSE = {
  "Lex:das_that": 0.3,
  "Lex:haus_house": -0.1,
  "Shape:T/T": -0.05,
  "Edge:fF:haus_home": 0.2,
  "ngram:that_house": 4.0,
  "ngram:house": -0.2,
  "ngram:<s>_</s>": 9.0,
}


def weight_table(extra=()):
  """The weights as they are written, and as numbers."""
  pairs = [line.split() for line in WEIGHTS.split("\n")[1:-1]]
  weights = {name: float(value) for name, value in pairs} | dict(extra)
  text = "".join(f"{name} {value}\n" for name, value in weights.items())
  return text, weights


def reranked(folder, lines, weights, config):
  """The best of the k-best lists that tuning would see."""
  model = loading.make_model(
    loading.read_table(str(folder / "g"), dialect="cdec"),
    str(folder / "lm"),
    weights=weights,
    dialect="cdec",
    span=10,
    targets=20,
  )
  decode = kbest_decoder.make_decode(
    model,
    lines,
    kbest_decoder.ListOptions(
      templates=("pairs", "shape", "edges:fF", "unigrams", "bigrams"),
    ),
    config=decoder.DecodeConfig(search=config),
  )
  found = decode(weights, np.arange(len(lines)))
  best = [""] * len(lines)
  for sentence, text in reversed(
    list(zip(found.sentence.tolist(), found.lines, strict=True))
  ):
    best[sentence] = text
  return best


def test_sparse_weights_and_n_grams(tmp_path):
  lines = ["er sieht das haus", "", "haus von er", "das haus von er das haus"]
  flags = write(tmp_path, "\n".join(lines) + "\n")
  (tmp_path / "g").write_text(RULES + MORE_RULES)
  text, weights = weight_table(SPARSE.items())
  (tmp_path / "w").write_text(text)
  names = ("output", "nbest", "scores", "links", "derivations")
  done = util.run_program(
    "launch/translate.py",
    *flags,
    *(f"--{name}={tmp_path / name}" for name in names),
    "--nbest_size=20",
    "--beam=30",
    "--pop=100",
    "--max_words=5",
  )
  assert done.returncode == 0, done.stderr
  read = {n: (tmp_path / n).read_text().split("\n")[:-1] for n in names}
  config = search.make_config(beam=30, pop=100)
  want = reranked(tmp_path, lines[:3], weights, config)
  assert read["output"][:3] == want
  assert want[0] == "he sees that house" and want[1] == ""
  # The last line is cut into two pieces; its n-grams are those of the whole.
  assert read["output"][3].count("that house") == 2

  found = kbest_files.parse_kbest((tmp_path / "nbest").read_bytes())
  assert {name for name in SPARSE if name != "ngram:<s>_</s>"} < {*found.names}
  vector = np.array([weights.get(name, 0.0) for name in found.names])
  totals = sparse.dot(found.features, vector)
  fields = [line.split(" ||| ") for line in read["nbest"]]
  scores = np.array([float(field[3]) for field in fields])
  np.testing.assert_allclose(totals, scores, atol=1e-5)
  numbers, firsts = np.unique(found.sentence, return_index=True)
  assert numbers.tolist() == [0, 1, 2, 3]
  assert [found.lines[first] for first in firsts] == read["output"]
  for number in numbers:
    own = np.flatnonzero(found.sentence == number)
    assert (np.diff(scores[own]) <= 1e-9).all()
    assert len({found.lines[k] for k in own}) == len(own) <= 20

  for row, line in enumerate(read["scores"]):
    number, said, values, score = line.split(" ||| ")
    assert (int(number), said) == (row, read["output"][row])
    pairs = [pair.rsplit("=", 1) for pair in values.split()]
    total = sum(weights.get(name, 0.0) * float(v) for name, v in pairs)
    np.testing.assert_allclose(total, float(score), atol=1e-4)
    np.testing.assert_allclose(total, scores[firsts[row]], atol=1e-4)
  assert read["links"][0] == "0-0 1-1 2-2 3-3"
  assert "das | that" in read["derivations"][0]
  assert read["derivations"][1] == "()"

  for flag in ("--exact", "--diversity=1"):
    refused = util.run_program("launch/translate.py", *flags, flag)
    assert refused.returncode == 2
    assert "choose from a list" in refused.stderr
    assert flag.split("=")[0] in refused.stderr


def shared_bigrams(lines):
  """How many bigrams pairs of lines have in common."""
  pairs = [set(itertools.pairwise(["<s>", *l.split(), ""])) for l in lines]
  return sum(len(a & b) for a, b in itertools.combinations(pairs, 2))


def test_formats_threshold_and_diversity(tmp_path):
  flags = write(tmp_path, "er sieht das haus von er\n\ndas haus\n")
  (tmp_path / "g").write_text(RULES + MORE_RULES)
  text, weights = weight_table([("Shape:T/T", -0.05), ("Lex:das_that", 0.3)])
  (tmp_path / "w").write_text(text)
  lists, forests, texts = {}, {}, {}
  for name, more in {
    "travatar": [],
    "joshua": ["--threshold=0.5"],
    "cdec": ["--diversity=2"],
  }.items():
    done = util.run_program(
      "launch/translate.py",
      *flags,
      f"--output={tmp_path / 'out'}",
      f"--nbest={tmp_path / name}",
      f"--nbest_format={name}",
      f"--forest={tmp_path / name}.npz",
      "--nbest_size=5",
      "--unique",
      *more,
    )
    assert done.returncode == 0, done.stderr
    texts[name] = (tmp_path / "out").read_text().split("\n")[:-1]
    lists[name] = kbest_files.parse_kbest(
      (tmp_path / name).read_bytes(), kind=name
    )
    forests[name] = forest_files.read(str(tmp_path / f"{name}.npz"))
    rows = (tmp_path / name).read_text().split("\n")[:-1]
    place = 2 if name == "travatar" else 3
    scores = [float(row.split(" ||| ")[place]) for row in rows]
    vector = np.array([weights.get(n, 0.0) for n in lists[name].names])
    np.testing.assert_allclose(
      sparse.dot(lists[name].features, vector), scores, atol=1e-4
    )
    assert forests[name].sentence.tolist() == [0, 1, 2]
    assert {"Lex:das_the", "Shape:T/T"} < {*lists[name].names}
  assert texts["travatar"] == texts["joshua"] == texts["cdec"]
  # A threshold prunes hypotheses, and so the lists of what is left.
  nodes = {name: made.forest.num_nodes for name, made in forests.items()}
  assert nodes["joshua"] < nodes["travatar"] == nodes["cdec"]
  assert len(lists["joshua"]) < len(lists["travatar"])
  first = {
    name: [
      line
      for line, number in zip(found.lines, found.sentence, strict=True)
      if number == 0
    ]
    for name, found in lists.items()
  }
  assert len(first["travatar"]) == len(first["cdec"]) == 5
  assert shared_bigrams(first["cdec"]) < shared_bigrams(first["travatar"])
