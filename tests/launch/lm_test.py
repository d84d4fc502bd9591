import gzip
import math

import pytest

from tests import util
from tests.lm import language_models

MARKET = str(language_models.TESTDATA / "market.txt")
ARPA = str(language_models.TESTDATA / "market.3.arpa")


def run(*args, **kwargs):
  return util.run_program("launch/lm.py", *args, **kwargs)


def test_estimates_to_a_file_and_to_standard_output(tmp_path):
  out = tmp_path / "lm.arpa.gz"
  done = run(f"--text={MARKET}", "--order=3", f"--output={out}")
  assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
  wanted = (language_models.TESTDATA / "market.3.arpa").read_bytes()
  assert gzip.decompress(out.read_bytes()) == wanted
  text = (language_models.TESTDATA / "market.txt").read_text()
  piped = run("--text=-", "--order=3", "--prune=0,0,1", stdin=text)
  pruned = language_models.TESTDATA / "market.3.prune001.arpa"
  assert piped.stdout == pruned.read_text()


def test_fallback_discounts_and_skipped_symbols(tmp_path):
  out = tmp_path / "lm.arpa"
  text = "a <s> b\na\n"
  args = ("--text=-", "--order=2", f"--output={out}", "--discount_fallback")
  refused = run(*args, stdin=text)
  assert refused.returncode == 2 and not out.exists()
  assert "-:1: the text contains the special word <s>" in refused.stderr
  assert run(*args, "--skip_symbols", stdin=text).returncode == 0
  assert "\ta b\n" in out.read_text()


def test_scores_lines_and_perplexities():
  sentences = [line for line, _, _ in language_models.MARKET_SCORES]
  done = run(f"--arpa={ARPA}", "--score=-", stdin="\n".join(sentences) + "\n")
  assert done.returncode == 0, done.stderr
  lines = done.stdout.splitlines()
  total = 0.0
  for line, (sentence, score, unknown) in zip(
    lines[: len(sentences)], language_models.MARKET_SCORES, strict=True
  ):
    words = line.split()
    assert words[0] == "Total:" and words[2] == "OOV:"
    assert float(words[1]) == pytest.approx(score, abs=1e-4), sentence
    assert int(words[3]) == unknown
    total += score
  summary = dict(line.split("\t") for line in lines[len(sentences) :])
  assert float(summary["Total:"]) == pytest.approx(total, abs=1e-3)
  assert summary["OOVs:"] == "1"
  assert summary["Tokens:"] == "26"
  # The perplexities that KenLM's query prints for these lines.
  assert float(summary["Perplexity including OOVs:"]) == pytest.approx(
    14.0676744, rel=1e-5
  )
  assert float(summary["Perplexity excluding OOVs:"]) == pytest.approx(
    12.3236757, rel=1e-5
  )


def test_every_word():
  done = run(
    f"--arpa={ARPA}", "--score=-", "--per_word", stdin="the old zebra\n"
  )
  first = done.stdout.splitlines()[0].split("\t")
  assert [item.split("=")[0] for item in first[:4]] == [
    "the",
    "old",
    "zebra",
    "</s>",
  ]
  fields = [item.split("=")[1].split() for item in first[:4]]
  assert [int(length) for _, length, _ in fields] == [2, 3, 1, 1]
  assert fields[2][0] == "0" and fields[3][0] == "2"
  total = float(first[4].split()[1])
  assert math.fsum(float(field[2]) for field in fields) == pytest.approx(
    total, abs=1e-5
  )


def test_nothing_to_score():
  done = run(f"--arpa={ARPA}", "--score=-", stdin="")
  assert done.returncode == 0
  assert "Tokens:\t0" in done.stdout and "nan" in done.stdout


@pytest.mark.parametrize(
  "args, stdin, reason",
  [
    ((), "", "--text"),
    (("--text=-",), "a\n", "--order is required"),
    (("--text=-", "--order=2"), "", "-: the text is empty"),
    (("--text=-", "--order=0"), "a\n", "order 0"),
    (("--text=-", "--order=7"), "a\n", "order 7"),
    (("--text=-", "--order=2", "--prune=1,0"), "a\n", "must not fall"),
    (("--text=-", "--order=2", "--prune=x"), "a\n", "--prune"),
    (("--text=-", "--order=2"), "a b\n", "--discount_fallback"),
    (("--text=none", "--order=2"), "", "none: no such file"),
    (("--text=-", "--order=2"), b"a\n\xff\n", "-:2: not UTF-8"),
    (("--score=-",), "a\n", "--arpa is required"),
    (("--score=-", "--arpa=none"), "a\n", "none: no such file"),
    (("--score=-", f"--arpa={MARKET}"), "a\n", "market.txt:1: not an ARPA"),
    (("--score=-", "--text=-"), "a\n", "either"),
  ],
)
def test_bad_input_is_one_line_and_exit_2(args, stdin, reason):
  done = run(*args, stdin=stdin)
  assert done.returncode == 2
  assert reason in done.stderr
  assert done.stderr.count("\n") == 1
  assert done.stdout == ""
