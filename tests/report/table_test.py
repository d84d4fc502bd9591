"""Significance over seeds in the table of a study."""

import json

import numpy as np
import pytest

from tests import util

# One word more or less than the baseline's 5 edits of 10: 1.5 deviations.
BETTER = np.where(np.arange(30) < 19, 4.0, 6.0)
WORSE = 10 - BETTER


def write(workdir, edits, texts):
  """A study of two entries; `texts` are the seeds' hashes of references."""
  about = {"name": "s", "base": "b", "note": "", "baseline": "base"}
  about |= {"entries": ["base", "own"], "seeds": list(range(len(texts)))}
  workdir.mkdir()
  (workdir / "study.json").write_text(json.dumps(about))
  for entry, values in (("base", np.full(30, 5.0)), ("own", edits)):
    for seed, text in enumerate(texts):
      folder = workdir / entry / f"s{seed}"
      folder.mkdir(parents=True)
      results = {"systems": {"x": {"ter": float(values.mean())}}}
      if text is not None:
        results["test_references"] = text
      (folder / "results.json").write_text(json.dumps(results))
      table = np.stack([values, np.full(30, 10.0)], axis=1)
      np.savez(folder / "statistics.npz", **{"x/ter": table})


def marks(workdir):
  """What stands behind the score of the entry "own"."""
  done = util.run_program("tools/table.py", str(workdir))
  assert done.returncode == 0, done.stderr
  assert "better than the baseline" in done.stdout
  assert "better than the baseline" in (workdir / "table.html").read_text()
  line = next(line for line in done.stdout.splitlines() if "own" in line)
  shown = line.split("± ")[-1].split()[0]
  return shown.lstrip("0123456789.")


@pytest.mark.parametrize(
  ("edits", "texts", "want"),
  [
    (BETTER, ["a", "b", "c", "d"], "**"),
    (WORSE, ["a", "b", "c", "d"], "--"),
    (BETTER, [None] * 4, "**"),  # results that do not say it
    (BETTER, ["a"] * 4, ""),  # the same 30 sentences four times
    (BETTER, ["a", "a", "a", None], ""),
  ],
)
def test_seeds_with_the_same_references_are_not_more_sentences(
  tmp_path, edits, texts, want
):
  write(tmp_path / "w", edits, texts)
  assert marks(tmp_path / "w") == want


def test_different_test_sets_are_not_compared(tmp_path):
  write(tmp_path / "w", BETTER, ["a", "b", "c", "d"])
  path = tmp_path / "w" / "base" / "s0" / "results.json"
  results = json.loads(path.read_text())
  path.write_text(json.dumps(results | {"test_references": "e"}))
  assert marks(tmp_path / "w") == ""


def test_a_study_can_compare_within_its_entries(tmp_path):
  workdir = tmp_path / "w"
  write(workdir, BETTER, ["a", "b", "c", "d"])
  about = json.loads((workdir / "study.json").read_text())
  about |= {"system": "x", "within": True}
  (workdir / "study.json").write_text(json.dumps(about))
  assert marks(workdir) == ""  # the only system of its entry
