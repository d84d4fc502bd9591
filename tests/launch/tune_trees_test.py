"""The tune program with trees, sparse features and two devices."""

import json

import pytest

from jaxmt.features import weights as weight_files
from jaxmt.text import files
from tests import util

SOURCE = [
  "er sieht das haus",
  "das haus",
  "er sieht er",
  "haus von er",
  "das haus von er",
]
TARGET = [
  "he sees the house",
  "the house",
  "he sees her",
  "he 's house",
  "he 's the house",
]
LINKS = [
  "0-0 1-1 2-2 3-3",
  "0-0 1-1",
  "0-0 1-1 2-2",
  "0-2 1-1 2-0",
  "0-2 1-3 2-1 3-0",
]
TREES = [
  "(S (NP er) (VP (V sieht) (NP (D das) (N haus))))",
  "(NP (D das) (N haus))",
  "(S (NP er) (VP (V sieht) (NP er)))",
  "(NP (NP haus) (P von) (NP er))",
  "(NP (NP (D das) (N haus)) (P von) (NP er))",
]
ARPA = """\
\\data\\
ngram 1=9
ngram 2=2

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

\\end\\"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """The text and a grammar of trees that were made binary."""
  where = tmp_path_factory.mktemp("trees")
  for name, lines in (
    ("source", SOURCE),
    ("target", TARGET),
    ("links", LINKS),
    ("trees", TREES),
    ("lm", ARPA.split("\n")),
  ):
    files.write_lines(str(where / name), lines)
  names = ("source", "target", "links", "trees")
  done = util.run_program(
    "launch/extract.py",
    *(f"--{name}={where / name}" for name in names),
    "--kind=t2s",
    "--binarize",
    f"--output={where / 'grammar'}",
  )
  assert done.returncode == 0, done.stderr
  return where


def tune(folder, workdir, *flags):
  """The weights and the records of all rounds."""
  done = util.run_program(
    "launch/tune.py",
    "--method=kbmira",
    "--metric=bleu",
    f"--grammar={folder / 'grammar'}",
    f"--lm={folder / 'lm'}",
    f"--input={folder / 'source'}",
    f"--trees={folder / 'trees'}",
    f"--references={folder / 'target'}",
    f"--workdir={workdir}",
    f"--output={workdir}.w",
    "--templates=rule,bigrams",
    "--beam=8",
    "--pop=20",
    "--nbest_size=30",
    "--rounds=1",
    *flags,
  )
  assert done.returncode == 0, done.stderr
  lines = (workdir / "history.jsonl").read_text().splitlines()
  tuned = weight_files.parse_weights(files.read_lines(f"{workdir}.w"))
  return tuned, [json.loads(line) for line in lines]


def test_trees_templates_devices_and_lists(folder, tmp_path):
  every = tune(folder, tmp_path / "every", "--binarize", "--nounique")
  two = tune(folder, tmp_path / "two", "--binarize", "--devices=2")
  flat = tune(folder, tmp_path / "flat")
  # Two devices find the same best; of derivations of one string one is left.
  for key in ("score", "length_ratio"):
    assert two[1][0][key] == every[1][0][key]
  assert two[1][0]["pool"] < every[1][0]["pool"]
  # Only a binary tree has the constituents that some rules need.
  assert flat[1][0]["features"] < two[1][0]["features"]
  assert every[1][1]["score"] > every[1][0]["score"]
  kinds = {name.partition(":")[0] for name in every[0] if ":" in name}
  assert kinds == {"Rule", "ngram"}
