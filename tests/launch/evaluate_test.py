"""launch/evaluate.py: the table, the JSON, and bad input."""

import gzip
import json
import subprocess
import sys

import pytest

from tests import util
from tests.reference import metric_pairs

SCRIPT = "launch/evaluate.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """1,000 lines of output, two references, a better and a broken system."""
  folder = tmp_path_factory.mktemp("evaluate")
  output, references = metric_pairs.pairs(5, 1000)
  other, _ = metric_pairs.pairs(6, 1000)
  first = [row[0] for row in references]
  better = [
    right if number % 2 else line
    for number, (line, right) in enumerate(zip(output, first, strict=True))
  ]
  for name, lines in {
    "output": output,
    "better": better,
    "reference": first,
    "reference2": other,
    "short": output[:700],
  }.items():
    (folder / name).write_text("".join(line + "\n" for line in lines))
  (folder / "latin").write_bytes(b"ok\n" * 41 + b"caf\xe9\n" + b"ok\n" * 958)
  (folder / "empty").write_bytes(b"")
  (folder / "packed.gz").write_bytes(
    gzip.compress((folder / "output").read_bytes())
  )
  return folder


def run(folder, *args, **kwargs):
  args = [arg.replace("@", f"{folder}/") for arg in args]
  return util.run_program(SCRIPT, *args, **kwargs)


def scores(folder, *args, **kwargs):
  done = run(folder, *args, "--json", **kwargs)
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


def sacrebleu(*args):
  done = subprocess.run(
    [sys.executable, "-m", "sacrebleu", *args],
    capture_output=True,
    text=True,
    check=True,
  )
  return json.loads(done.stdout)


def test_equals_the_sacrebleu_program(folder):
  metrics = ["bleu", "chrf", "ter"]
  want = sacrebleu(
    str(folder / "reference"), str(folder / "reference2"),
    "-i", str(folder / "output"), "-m", *metrics, "-w", "8", "--force",
  )  # fmt: skip
  got = scores(
    folder,
    "--hypothesis=@output",
    "--references=@reference,@reference2",
    f"--metrics={','.join(metrics)}",
  )
  assert got["sentences"] == 1000
  assert len(want) == len(got["scores"]) == 3
  for mine, theirs in zip(got["scores"], want, strict=True):
    assert mine["metric"] == theirs["name"]
    assert mine["score"] == pytest.approx(theirs["score"], abs=1e-6)
    assert mine["signature"] == theirs["signature"]
    assert mine.get("detail", "") == theirs.get("verbose_score", "")


def test_table(folder):
  done = run(
    folder,
    "--hypothesis=@output",
    "--references=@reference",
    "--metrics=bleu,ter,nist,wer,per,gtm,chrf",
    "--width=3",
  )
  assert done.returncode == 0, done.stderr
  table, signatures = done.stdout.split("\n\n")
  names = "BLEU TER NIST WER PER GTM chrF2".split()
  assert [line.split()[0] for line in table.split("\n")] == ["metric", *names]
  assert [line.split("|")[0] for line in signatures.splitlines()] == names
  assert "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in (
    signatures
  )


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_significance_against_a_baseline(folder, test):
  got = scores(
    folder,
    "--hypothesis=@better,@output",
    "--baseline=@output",
    "--references=@reference",
    "--metrics=bleu,wer",
    f"--test={test}",
    "--samples=200",
    "--seed=3",
  )["scores"]
  better, same = got[1], got[2]
  assert better["p_value"] == pytest.approx(1 / 201)
  assert better["better"] and better["difference"] > 0
  assert same["p_value"] == 1 and not same["better"]
  assert got[4]["difference"] < 0 and got[4]["better"]
  kind = {"bootstrap": "bs:200", "randomization": "bs:1000|ar:200"}[test]
  assert f"nrefs:1|{kind}|seed:3|case" in better["signature"]


@pytest.mark.parametrize(
  ("flags", "signature"),
  [
    (
      ["--metrics=bleu", "--tokenize=char", "--smoothing=floor",
       "--smoothing_value=0.3", "--order=2", "--reference_length=shortest"],
      "nrefs:2|case:mixed|eff:no|tok:char|smooth:floor[0.30]|order:2"
      "|len:shortest|version:",
    ),
    (
      ["--metrics=chrf", "--lowercase", "--chrf_word_order=1",
       "--chrf_char_order=3", "--chrf_whitespace", "--chrf_epsilon"],
      "nrefs:2|case:lc|eff:no|nc:3|nw:1|space:yes|version:",
    ),
    (
      ["--metrics=ter", "--ter_normalized", "--ter_case_sensitive"],
      "nrefs:2|case:mixed|tok:tercom|norm:yes|punct:yes|asian:no|version:",
    ),
  ],
)  # fmt: skip
def test_options_reach_the_metrics(folder, flags, signature):
  got = scores(
    folder,
    "--hypothesis=@output",
    "--references=@reference,@reference2",
    *flags,
  )["scores"][0]
  assert got["signature"].startswith(signature)


def test_gzip_and_standard_input(folder):
  rows = scores(
    folder,
    "--hypothesis=@output,@packed.gz,-",
    "--references=@reference",
    stdin=(folder / "output").read_bytes(),
  )["scores"]
  assert [row["system"] for row in rows[:3]] == ["output", "packed.gz", "-"]
  for first in (0, 3, 6):
    assert len({row["score"] for row in rows[first : first + 3]}) == 1


def test_sentence_scores(folder, tmp_path):
  path = tmp_path / "scores.tsv"
  done = run(
    folder,
    "--hypothesis=@output",
    "--references=@reference",
    "--metrics=bleu,wer",
    f"--sentence_scores={path}",
  )
  assert done.returncode == 0, done.stderr
  lines = path.read_text().splitlines()
  assert lines[0] == "BLEU output\tWER output"
  assert len(lines) == 1001
  assert all(len(line.split("\t")) == 2 for line in lines)


@pytest.mark.parametrize(
  ("args", "message"),
  [
    (["--hypothesis=@short"], "@short:700: uneven: ends after 700 lines"),
    (["--hypothesis=@output", "--baseline=@short"], "@short:700: uneven"),
    (["--hypothesis=@nowhere"], "@nowhere: no such file"),
    (["--hypothesis=@latin"], "@latin:42: not UTF-8: byte 0xe9"),
    (["--hypothesis=@output", "--metrics=bleu,blue"], "no metric 'blue'"),
    (["--hypothesis=@output", "--tokenize=13b"], "no tokenizer '13b'"),
    (["--hypothesis=@output", "--smoothing=laplace"], "smoothing"),
    (["--hypothesis=@output", "--gtm_exponent=0.5"], "gtm_exponent"),
    (["--hypothesis=@output", "--references="], "--references is required"),
    (["--hypothesis=@empty", "--references=@empty"], "@empty: no sentences"),
  ],
)
def test_bad_input_exits_with_2_and_one_line(folder, args, message):
  if not any(arg.startswith("--references") for arg in args):
    args = [*args, "--references=@reference"]
  done = run(folder, *args)
  assert done.returncode == 2
  assert done.stdout == ""
  assert done.stderr.startswith("evaluate.py: ")
  assert message.replace("@", f"{folder}/") in done.stderr
  assert done.stderr.count("\n") == 1


def test_jax_is_not_loaded(folder):
  code = (
    "import sys, runpy; sys.argv[1:] = sys.argv[2:];"
    f"\ntry: runpy.run_path({SCRIPT!r}, run_name='__main__')"
    "\nexcept SystemExit: pass"
    "\nassert 'jax' not in sys.modules"
  )
  done = subprocess.run(
    [
      sys.executable, "-c", code, "-",
      f"--hypothesis={folder}/output", f"--references={folder}/reference",
    ],
    cwd=util.ROOT,
    capture_output=True,
    text=True,
    check=False,
  )  # fmt: skip
  assert done.returncode == 0, done.stderr
  assert "BLEU" in done.stdout
