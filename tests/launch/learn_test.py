"""The program that learns weights on a bitext."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from jaxmt.features import weights as weight_files
from jaxmt.text import files
from tests import util

WORDS = 6


def rules():
  """Every word has a right and two wrong translations, told by the word."""
  lines = []
  for word in range(WORDS):
    for name, hint in (("r", -2), ("q", -1), ("p", -1.5)):
      lines.append(f"[X] ||| w{word} ||| {name}{word} ||| hint={hint} ||| 0-0")
    lines.append(f"[X] ||| w{word} [X,1] ||| [X,1] r{word} ||| hint=-2 ||| 0-1")
  return lines


def arpa():
  words = [f"{name}{word}" for name in "rqp" for word in range(WORDS)]
  return [
    "\\data\\",
    f"ngram 1={len(words) + 3}",
    "",
    "\\1-grams:",
    "-2.0\t<unk>",
    "-99\t<s>",
    "-1.5\t</s>",
    *(f"-1.4\t{word}" for word in words),
    "",
    "\\end\\",
  ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  where = tmp_path_factory.mktemp("learn")
  rng = np.random.default_rng(0)
  rows = [rng.integers(0, WORDS, size).tolist() for size in (2, 3, 4, 3, 2, 4)]
  write = lambda name, lines: files.write_lines(str(where / name), lines)
  write("s", [" ".join(f"w{word}" for word in row) for row in rows])
  lines = [" ".join(f"r{word}" for word in row) for row in rows]
  write("t", [*lines[:-1], "nobody says this"])
  turns = [[(word + n) % WORDS for n in range(5)] for word in range(WORDS)]
  write("ds", [" ".join(f"w{word}" for word in row) for row in turns])
  write("dr", [" ".join(f"r{word}" for word in row) for row in turns])
  write("g", rules())
  write("lm", arpa())
  write("w", ["hint 1", "LanguageModel 0.5", "PassThrough -5"])
  return where


def flags(folder, where, **changes):
  given = {
    "update": "max-violation",
    "dialect": "cdec",
    "grammar": folder / "g",
    "lm": folder / "lm",
    "weights": folder / "w",
    "source": folder / "s",
    "target": folder / "t",
    "dev_source": folder / "ds",
    "dev_references": folder / "dr",
    "templates": "edges:simple",
    "epochs": 3,
    "minibatch": 2,
    "beam": 4,
    "pop": 12,
    "checkpoint": 1,
    "length_ratio": 1.0,
    "workdir": where,
    "output": f"{where}.w",
    **changes,
  }
  return [f"--{name}={value}" for name, value in given.items()]


def test_learns_what_the_bitext_says(folder, tmp_path):
  whole = tmp_path / "whole"
  done = util.run_program("launch/learn.py", *flags(folder, whole), "--json")
  assert done.returncode == 0, done.stderr
  result = json.loads(done.stdout)
  assert result["best"]["bleu"] > 30  # without learning, no word is right
  some = [row for row in result["history"] if row["updates"]]
  assert some and all(row["valid_share"] == 1.0 for row in some)
  assert result["reachability"]["reached"] == 5
  assert result["history"][0]["left_out"] == 1
  assert "not reached, and not used: 1" in done.stderr
  weights = weight_files.parse_weights(files.read_lines(f"{whole}.w"))
  sparse = [name for name in weights if name.startswith("Edge:")]
  assert len(sparse) == result["nonzero"] > 10
  total = lambda letter: sum(
    value
    for name, value in weights.items()
    if name.startswith("Edge:fF:w") and f"_{letter}" in name
  )
  assert total("r") > 0 > total("q")
  assert (whole / "report.html").is_file()
  # Started again, it finds everything done and writes the same.
  before = files.read_bytes(f"{whole}.w")
  again = util.run_program("launch/learn.py", *flags(folder, whole, threads=1))
  assert again.returncode == 0, again.stderr
  assert files.read_bytes(f"{whole}.w") == before


def test_the_development_text_may_have_rules_of_its_own(folder, tmp_path):
  right = [line for line in rules() if "||| r" in line]
  files.write_lines(str(tmp_path / "g"), right)
  fixed = {"epochs": 1, "rate": 0, "dense_rate": 0}
  scores = {}
  for name, more in (("same", {}), ("own", {"dev_grammar": tmp_path / "g"})):
    given = flags(folder, tmp_path / name, **fixed, **more)
    done = util.run_program("launch/learn.py", *given, "--json")
    assert done.returncode == 0, done.stderr
    scores[name] = json.loads(done.stdout)["best"]["bleu"]
    assert "5 of 6 references reached" in done.stderr
  assert scores["same"] < 5 < 30 < scores["own"]


@pytest.mark.parametrize(
  ("change", "text"),
  [
    ({"update": "bold"}, "--update 'bold' is none of max-violation"),
    ({"epochs": 0}, "--epochs must be at least 1"),
    ({"margin": -1}, "--margin=-1: -1.0 is not a non-negative number"),
    ({"templates": "edge"}, "unknown feature template 'edge'"),
    ({"length_ratio": 0}, "--length_ratio must be between"),
    ({"dev_references": ""}, "--dev_source and --dev_references go together"),
    ({"target": "nothing"}, "nothing"),
    (
      {"dev_source": "", "dev_references": "", "dev_lm": "x"},
      "--dev_grammar and --dev_lm need --dev_source",
    ),
    ({"dev_lm": "no-such-file"}, "no-such-file"),
    ({"shares": "1,x"}, "--shares: could not convert"),
    ({"shares": "-1"}, "--shares must be numbers from 0 to 10"),
    ({"leave_one_out": "singletons"}, "--leave_one_out needs a jaxmt grammar"),
  ],
)
def test_bad_options_are_one_line(folder, tmp_path, change, text):
  done = util.run_program(
    "launch/learn.py", *flags(folder, tmp_path / "bad", **change)
  )
  assert done.returncode == 2
  assert len(done.stderr.splitlines()) == 1 and text in done.stderr
  assert not (tmp_path / "bad.w").exists()


@pytest.mark.skipif(
  not os.environ.get("JAXMT_SLOW"), reason="half a minute: JAXMT_SLOW=1"
)
def test_two_processes_learn_what_one_does(folder, tmp_path):
  alone, both = tmp_path / "alone", tmp_path / "both"
  done = util.run_program("launch/learn.py", *flags(folder, alone))
  assert done.returncode == 0, done.stderr
  with socket.socket() as free:
    free.bind(("localhost", 0))
    port = free.getsockname()[1]
  running = [
    subprocess.Popen(
      [
        *(sys.executable, "launch/learn.py", *flags(folder, both)),
        *(f"--coordinator=localhost:{port}", "--num_processes=2"),
        f"--process_id={number}",
      ],
      cwd=util.ROOT,
      stderr=subprocess.PIPE,
      text=True,
      env={**os.environ, "PYTHONPATH": str(util.ROOT)},
    )
    for number in range(2)
  ]
  try:
    said = [one.communicate(timeout=util.PATIENCE)[1] for one in running]
  finally:
    for one in running:
      one.kill()
  for one, text in zip(running, said, strict=True):
    assert one.returncode == 0, text
  assert files.read_bytes(f"{both}.w") == files.read_bytes(f"{alone}.w")
