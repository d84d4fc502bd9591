"""The tune program: from files to weights, and one-line errors."""

import json

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.features import string_templates, weights
from jaxmt.text import files
from jaxmt.tune.formats import kbest_write
from tests import util
from tests.tune import small_pool


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  where = tmp_path_factory.mktemp("tune")
  made = small_pool.make(0)
  rng = np.random.default_rng(0)
  refs = small_pool.references(rng, 24)
  lines = kbest_write.format_kbest(made, np.zeros(len(made)))
  files.write_lines(str(where / "k.gz"), lines)
  bigrams = string_templates.target_ngrams(made.lines, order=2)
  lines = kbest_write.format_kbest(
    candidate_lists.with_features(made, [bigrams]), np.zeros(len(made))
  )
  files.write_lines(str(where / "bigrams.gz"), lines)
  files.write_lines(str(where / "r"), [row[0] for row in refs])
  files.write_lines(
    str(where / "w"),
    ["# start", "hint 0.02", "length=0.1", "other 5", "noise\t0.3"],
  )
  return where


def tune(folder, *args, **flags):
  given = {
    "kbest": folder / "k.gz",
    "references": folder / "r",
    "weights": folder / "w",
    **flags,
  }
  words = [f"--{k}={v}" for k, v in given.items() if v is not None]
  return util.run_program("launch/tune.py", *words, *args)


@pytest.mark.parametrize("method", ["mert", "softramp3"])
def test_tunes(folder, tmp_path, method):
  out, log = tmp_path / "w", tmp_path / "log"
  done = tune(folder, method=method, output=out, history=log)
  assert done.returncode == 0, done.stderr
  before, after = done.stdout.split("bleu ")[1].split(" in ")[0].split(" -> ")
  assert float(after) > float(before) + 0.01
  tuned = weights.parse_weights(files.read_lines(str(out)))
  # The order of the given file, its unused weight kept, new features last.
  assert list(tuned) == ["hint", "length", "noise", "other", "constant"]
  assert tuned["other"] == 5
  assert "score" in json.loads(log.read_text().splitlines()[0])
  assert "constant" in done.stderr  # a feature without a weight is named
  assert "1 sentences have no candidates" in done.stderr
  again = tmp_path / "again"
  tune(folder, method=method, output=again)
  assert again.read_bytes() == out.read_bytes()


def bigrams_of(path):
  tuned = weights.parse_weights(files.read_lines(str(path)))
  return {k: v for k, v in tuned.items() if k.startswith("ngram:") and v}


def test_several_runs_and_shards(folder, tmp_path):
  out = tmp_path / "w"
  done = tune(
    folder,
    method="arow",
    kbest=folder / "bigrams.gz",
    output=out,
    runs=3,
    shards=2,
    mix_rounds=2,
    mix_keep=5,
    mix_norm=1,
  )
  assert done.returncode == 0, done.stderr
  mean, spread = done.stdout.split("3 runs: bleu ")[1].split(" +- ")
  after = float(done.stdout.split(" -> ")[1].split()[0])
  assert after >= float(mean)
  assert float(spread.split()[0]) >= 0
  assert 0 < len(bigrams_of(out)) <= 5


def test_few_sparse_features_and_then_their_sum(folder, tmp_path):
  sparse, dense = tmp_path / "sparse", tmp_path / "dense"
  done = tune(
    folder,
    method="kbmira",
    kbest=folder / "bigrams.gz",
    output=sparse,
    min_count=2,
    keep_features=7,
    option="passes=5",
  )
  assert done.returncode == 0, done.stderr
  before = bigrams_of(sparse)
  assert 0 < len(before) <= 7
  done = tune(
    folder,
    "--summary",
    method="mert",
    kbest=folder / "bigrams.gz",
    weights=sparse,
    output=dense,
    option="restarts=3",
  )
  assert done.returncode == 0, done.stderr
  first, last = done.stdout.split("bleu ")[1].split(" in ")[0].split(" -> ")
  assert float(last) > float(first)
  after = bigrams_of(dense)
  assert after.keys() == before.keys()
  scales = [after[name] / before[name] for name in before]
  assert scales == pytest.approx([scales[0]] * len(scales))


def test_moses_data_carry_over(folder, tmp_path):
  features, scores = tmp_path / "F", tmp_path / "S"
  done = tune(
    folder, method="none", export_features=features, export_scores=scores
  )
  assert done.returncode == 0, done.stderr
  again = tune(
    folder,
    method="none",
    kbest=None,
    references=None,
    moses_features=features,
    moses_scores=scores,
  )
  assert again.returncode == 0, again.stderr
  assert again.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
  "flags,reason",
  [
    ({"method": "mret", "output": "x"}, "no method 'mret'"),
    ({"method": "mert"}, "--output is required"),
    ({"method": "mert", "output": "x", "weights": None}, "--weights"),
    ({"method": "mert", "output": "x", "kbest": None}, "--kbest is required"),
    ({"method": "mert", "output": "x", "metric": "blue"}, "no metric 'blue'"),
    ({"method": "mert", "output": "x", "option": "a=1"}, "no option 'a'"),
    ({"method": "none", "moses_features": "x"}, "--moses_scores is required"),
  ],
)
def test_errors_are_one_line(folder, flags, reason):
  done = tune(folder, **flags)
  assert done.returncode == 2
  assert reason in done.stderr and done.stderr.count("\n") == 1


def test_bad_lists_are_named(folder, tmp_path):
  bad = tmp_path / "bad"
  bad.write_text("0 ||| a ||| x=1 ||| 0\n0 ||| a\n")
  done = tune(folder, method="none", kbest=bad)
  assert done.returncode == 2 and f"{bad}:2: expected" in done.stderr
  bad.write_text("99 ||| a ||| x=1 ||| 0\n")
  done = tune(folder, method="none", kbest=bad)
  assert done.returncode == 2 and "sentence 99" in done.stderr
  bad.write_text("0 ||| a ||| x=nan ||| 0\n")
  done = tune(folder, method="none", kbest=bad)
  assert done.returncode == 2 and "no usable candidates" in done.stderr
