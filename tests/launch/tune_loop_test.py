"""The tune program with its decoder in the loop."""

import json
import subprocess
import sys

import numpy as np
import pytest

from jaxmt.features import weights as weight_files
from jaxmt.text import files
from tests import util

WORDS = 8


def rules():
  """Every word has a right and two wrong translations, told apart by `hint`."""
  lines = []
  for word in range(WORDS):
    for name, hint, noise in (("r", 0, -1), ("q", -1, 0), ("p", -2, 0.1)):
      lines.append(
        f"[X] ||| w{word} ||| {name}{word} ||| hint={hint} noise={noise}"
        " ||| 0-0"
      )
    lines.append(
      f"[X] ||| w{word} [X,1] ||| [X,1] r{word} ||| hint=-2 noise=-1 ||| 0-1"
    )
  return lines


def arpa():
  words = [f"{name}{word}" for name in "rqp" for word in range(WORDS)]
  return [
    "\\data\\",
    f"ngram 1={len(words) + 3}",
    "ngram 2=1",
    "",
    "\\1-grams:",
    "-2.0\t<unk>",
    "-99\t<s>\t-0.1",
    "-1.5\t</s>",
    *(f"-1.4\t{word}\t-0.1" for word in words),
    "",
    "\\2-grams:",
    "-1.0\tr0 r1",
    "",
    "\\end\\",
  ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  where = tmp_path_factory.mktemp("loop")
  rng = np.random.default_rng(0)
  rows = [rng.integers(0, WORDS, size).tolist() for size in (4, 5, 6, 5, 7, 6)]
  write = lambda name, lines: files.write_lines(str(where / name), lines)
  write("s", [" ".join(f"w{word}" for word in row) for row in rows])
  write("r", [" ".join(f"r{word}" for word in row) for row in rows])
  write("g", rules())
  write("lm", arpa())
  write("w", ["hint 0.6", "noise 1", "LanguageModel 0.5", "PassThrough -5"])
  return where


def flags(folder, where, **changes):
  given = {
    "method": "mert",
    "metric": "wer",
    "dialect": "cdec",
    "grammar": folder / "g",
    "lm": folder / "lm",
    "input": folder / "s",
    "references": folder / "r",
    "weights": folder / "w",
    "workdir": where,
    "output": f"{where}.w",
    "beam": 8,
    "pop": 20,
    "nbest_size": 8,
    "rounds": 4,
    "option": "restarts=2",
    **changes,
  }
  return [f"--{k}={v}" for k, v in given.items() if v is not None]


def tune(folder, where, **changes):
  return util.run_program("launch/tune.py", *flags(folder, where, **changes))


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
  workdir = tmp_path_factory.mktemp("whole") / "d"
  done = tune(folder, workdir)
  assert done.returncode == 0, done.stderr
  return workdir, done


def weights_of(workdir):
  return weight_files.parse_weights(files.read_lines(f"{workdir}.w"))


def test_it_learns_and_tells(whole):
  workdir, done = whole
  head, *lines = done.stdout.splitlines()
  assert head.split()[:3] == ["round", "score", "loss"]
  before, after = map(float, lines[-1].split("wer ")[1].split(" -> "))
  assert after < before / 2
  tuned = weights_of(workdir)
  assert list(tuned)[:4] == ["hint", "noise", "LanguageModel", "PassThrough"]
  assert tuned["hint"] > tuned["noise"]
  history = [
    json.loads(line)
    for line in (workdir / "history.jsonl").read_text().splitlines()
  ]
  assert len(history) == len(lines) - 1
  assert history[0]["round"] == 0 and history[0]["decode_seconds"] > 0
  assert min(row["score"] for row in history) == pytest.approx(after, abs=1e-4)
  html = (workdir / "report.html").read_text()
  assert html.count("data:image/png") >= 3


def test_started_again_it_has_nothing_to_do(folder, whole):
  workdir, done = whole
  before = weights_of(workdir)
  again = tune(folder, workdir)
  assert again.returncode == 0, again.stderr
  assert again.stdout == done.stdout
  assert weights_of(workdir) == before


def test_other_settings_need_another_workdir(folder, whole):
  done = tune(folder, whole[0], beam=9)
  assert done.returncode == 2
  assert "other settings" in done.stderr and done.stderr.count("\n") == 1


def test_killed_after_a_round_it_goes_on(folder, whole, tmp_path):
  workdir = tmp_path / "d"
  program = [sys.executable, "launch/tune.py", *flags(folder, workdir)]
  with subprocess.Popen(
    program, cwd=util.ROOT, stdout=subprocess.PIPE, text=True
  ) as running:
    assert running.stdout is not None
    for line in running.stdout:
      if line.split()[0] == "1":
        running.kill()
        break
    running.stdout.read()
    assert running.wait(60) == -9
  assert not (tmp_path / "d.w").exists()
  done = tune(folder, workdir)
  assert done.returncode == 0, done.stderr
  assert weights_of(workdir) == weights_of(whole[0])
  first = [line.split() for line in done.stdout.splitlines()]
  second = [line.split() for line in whole[1].stdout.splitlines()]
  # All but the seconds.
  assert [row[:6] for row in first] == [row[:6] for row in second]


def test_online_with_two_seeds_from_default_weights(folder, tmp_path):
  workdir = tmp_path / "d"
  done = tune(
    folder,
    workdir,
    method="kbmira",
    metric="bleu",
    option=None,
    batch_size=3,
    batch_passes=2,
    runs=2,
    rounds=1,
    weights=None,
  )
  assert done.returncode == 0, done.stderr
  assert "2 runs: bleu" in done.stdout and "+-" in done.stdout
  assert (workdir / "weights.0.txt").exists()
  assert (workdir / "weights.1.txt").exists()
  assert "LanguageModel" in weights_of(workdir)


@pytest.mark.parametrize(
  ("changes", "reason"),
  [
    ({"workdir": None}, "--workdir is required"),
    ({"kbest": "x"}, "choose one"),
    ({"method": "none"}, "nothing to do"),
    ({"references": "nothing"}, "nothing"),
    ({"templates": "nonsense"}, "nonsense"),
    ({"batch_size": 3, "shards": 2}, "does not go with --shards"),
  ],
)
def test_errors_are_one_line(folder, tmp_path, changes, reason):
  done = tune(folder, tmp_path / "d", **changes)
  assert done.returncode == 2
  assert reason in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("method", ["softramp2", "kbmira"])
def test_space_of_forests(folder, tmp_path, method):
  option = "steps=20" if method == "softramp2" else "passes=5"
  done = tune(
    folder,
    tmp_path / "d",
    method=method,
    space="forest",
    metric="bleu",
    rounds=2,
    option=option,
  )
  assert done.returncode == 0, done.stderr
  before, after = map(
    float, done.stdout.splitlines()[-1].split("bleu ")[1].split(" -> ")
  )
  assert after > before + 0.2


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"method": "pro"}, "does not work on forests"),
    ({"method": "risk", "metric": "wer"}, "no sum over edges"),
    ({"method": "risk", "grammar": None, "kbest": "x"}, "give --grammar"),
  ],
)
def test_what_cannot_work_on_forests(folder, tmp_path, changes, message):
  given = {"metric": "bleu", "option": None, **changes}
  done = tune(folder, tmp_path / "d", space="forest", **given)
  assert done.returncode == 2
  assert message in done.stderr
  assert len(done.stderr.strip().splitlines()) == 1


def test_candidates_domains_and_features_of_lists(folder, tmp_path):
  """Weights by domain come back in translation."""
  labels = ["x", "y", "x", "y", "x", "y"]
  files.write_lines(str(folder / "d"), labels)
  done = tune(
    folder,
    tmp_path / "d",
    candidates="kbest,sampled,oracle,forced",
    templates="all-pairs,rule-bigrams,bins",
    domains=folder / "d",
    rounds=1,
    method="perceptron",
    option="passes=2",
  )
  assert done.returncode == 0, done.stderr
  tuned = weights_of(tmp_path / "d")
  heads = {name.split(":")[0] for name in tuned}
  assert {"pair", "RuleBi", "Domain", "hint"} <= heads
  assert any(name.startswith("Domain:x:pair:") for name in tuned)
  translate = lambda *more: util.run_program(
    "launch/translate.py",
    "--dialect=cdec",
    f"--grammar={folder / 'g'}",
    f"--lm={folder / 'lm'}",
    f"--weights={tmp_path / 'd.w'}",
    f"--input={folder / 's'}",
    f"--output={tmp_path / 'out'}",
    *more,
  )
  done = translate("--domain=x")
  assert done.returncode == 0 and "no such features" not in done.stderr
  assert len(files.read_lines(str(tmp_path / "out"))) == 6
  done = translate("--domain=z")
  assert done.returncode == 2 and "no weights of the domain 'z'" in done.stderr


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"candidates": "kbest,beam"}, "candidates 'beam' are none of"),
    ({"stages": 2}, "stages need metric 'bleu'"),
    ({"shards": 2, "mix_delay": 1}, "needs an online learner"),
    ({"domains": "r"}, "a domain is one word"),
  ],
)
def test_bad_settings_of_lists_are_one_line(folder, tmp_path, changes, message):
  if "domains" in changes:
    changes = {"domains": folder / changes["domains"]}
  done = tune(folder, tmp_path / "d", **changes)
  assert done.returncode == 2 and message in done.stderr
  assert len(done.stderr.strip().splitlines()) == 1
