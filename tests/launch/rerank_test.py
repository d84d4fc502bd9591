"""The rerank program: lists in, best candidates out; one-line errors."""

import numpy as np
import pytest

from jaxmt.text import files
from jaxmt.tune.formats import kbest_write
from tests import util
from tests.tune import small_pool


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  where = tmp_path_factory.mktemp("rerank")
  for name, seed in (("k", 0), ("other", 5)):
    made = small_pool.make(seed)
    refs = small_pool.references(np.random.default_rng(seed), 24)
    lines = kbest_write.format_kbest(made, np.zeros(len(made)))
    files.write_lines(str(where / name), lines)
    files.write_lines(str(where / f"{name}.r"), [row[0] for row in refs])
  files.write_lines(str(where / "w"), ["hint 0.02", "length 0.1", "noise 0.3"])
  return where


def rerank(folder, *args, **flags):
  given = {
    "kbest": folder / "k",
    "references": folder / "k.r",
    "weights": folder / "w",
    "output": folder / "h",
    **flags,
  }
  words = [f"--{k}={v}" for k, v in given.items() if v is not None]
  return util.run_program("launch/rerank.py", *words, *args)


@pytest.mark.parametrize(
  "model,option",
  [("kernel", "steps=30"), ("boosted", "method=kbmira")],
)
def test_reranks_other_lists(folder, model, option):
  done = rerank(
    folder,
    model=model,
    option=option,
    apply=folder / "other",
    apply_references=folder / "other.r",
  )
  assert done.returncode == 0, done.stderr
  first, second = done.stdout.strip().splitlines()
  assert "training lists: bleu" in first and "other lists: bleu" in second
  before, after = first.split("bleu ")[1].split(" -> ")
  assert float(after) > float(before) + 0.01
  written = files.read_lines(str(folder / "h"))
  texts = {line.split(" ||| ")[1].strip() for line in
           files.read_lines(str(folder / "other"))}  # fmt: skip
  assert len(written) == 24
  # Sentence 3 has no candidate.
  assert all(line in texts for n, line in enumerate(written) if n != 3)


@pytest.mark.parametrize(
  "flags",
  [
    {"option": "loss=xbleu"},
    {"option": "steps=0"},
    {"option": "steps"},
    {"metric": "blue"},
    {"model": "boosted", "option": "rankers=0"},
    {"weights": None},
  ],
)
def test_bad_input_is_one_line(folder, tmp_path, flags):
  done = rerank(folder, **{"output": tmp_path / "h", **flags})
  assert done.returncode == 2
  assert len(done.stderr.strip().splitlines()) == 1
  assert not (tmp_path / "h").exists()
