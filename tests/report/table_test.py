"""Significance over seeds in the table of a study."""

import json
import re

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.experiment import study
from tests import util
from tests.report import browser

# One word more or less than the baseline's 5 edits of 10: 1.5 deviations.
BETTER = np.where(np.arange(30) < 19, 4.0, 6.0)
WORSE = 10 - BETTER


def write(workdir, edits, texts):
  """A study of two entries; `texts` are the seeds' hashes of references."""
  about = {"name": "s", "base": "b", "note": "", "baseline": "base"}
  about |= {"entries": ["base", "own"], "seeds": list(range(len(texts)))}
  folders = [f"{e}/s{n}" for e in about["entries"] for n in about["seeds"]]
  about["versions"] = dict.fromkeys(folders, "v")
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
      run = {"status": "finished", "version": "v"}
      (folder / "run.json").write_text(json.dumps(run))
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


def change(path, **values):
  path.write_text(json.dumps(json.loads(path.read_text()) | values))


ROWS = {
  "kind": "rows",
  "headings": ["what"],
  "gain": True,
  "rows": [["first", "base", "x"], ["second", "own", "x"]],
}


def test_gains_are_over_the_seeds_both_have(tmp_path):
  workdir = tmp_path / "w"
  write(workdir, WORSE, ["a", "b"])
  change(workdir / "study.json", layout=ROWS)
  # The baseline is far worse in the second seed, which the other has not run.
  change(workdir / "base/s1/results.json", systems={"x": {"ter": 99.0}})
  (workdir / "own/s1/results.json").unlink()
  change(workdir / "own/s1/run.json", status="running")
  done = util.run_program("tools/table.py", str(workdir))
  assert done.returncode == 0, done.stderr
  assert f"{WORSE.mean() - 5.0:+.2f}" in done.stdout
  assert "3 of 4 runs are done" in done.stdout


def test_the_page_draws_figures_and_learning_curves(tmp_path):
  workdir = tmp_path / "w"
  write(workdir, BETTER, ["a", "b"])
  points = [[1, "base", "x"], [2, "own", "x"]]
  panel = {"title": "TER", "y": "test", "series": {"one": points}}
  change(
    workdir / "study.json",
    layout={"kind": "curves", "x": "k", "panels": [panel]},
  )
  for seed, end in ((0, [[0, 0.2], [1, 0.5]]), (1, [[0, 0.4]])):
    change(workdir / f"own/s{seed}/results.json", curves={"x": end})
  table(workdir)
  page = (workdir / "table.html").read_text()
  blocks = re.findall(r'application/json">(.*?)</script>', page)
  figure, bars, curves = map(json.loads, blocks)
  assert figure["series"]["one"] == [[1, 5.0], [2, float(BETTER.mean())]]
  assert [row["name"] for row in bars["rows"]] == ["base / x", "own / x"]
  assert curves["series"] == {"x": [[0, pytest.approx(0.3)], [1, 0.5]]}
  with browser.opened(tmp_path / "profile") as driver:
    driver.get((workdir / "table.html").as_uri())
    assert (
      browser.wait(
        driver, "return document.querySelectorAll('figure svg').length"
      )
      == 3
    )
    browser.click(driver, "table th:last-child button")
    assert browser.console(driver) == []


def test_figures_of_learning_are_drawn(tmp_path):
  workdir = tmp_path / "w"
  write(workdir, BETTER, ["a", "b"])
  panel = {
    "title": "by epoch",
    "series": {"own": ["own", "x"]},
    "levels": {"tuned": ["base", "x"]},
  }
  change(workdir / "study.json", layout={**ROWS, "learning": [panel]})
  for seed, end in ((0, [[1, 0.2], [2, 0.5]]), (1, [[1, 0.4]])):
    change(workdir / f"own/s{seed}/results.json", curves={"x": end})
    change(workdir / f"base/s{seed}/results.json", tune={"x": {"ter": 44.0}})
  done = util.run_program("tools/plot.py", str(workdir))
  assert done.returncode == 0, done.stderr
  text = re.sub(r"\s+", " ", done.stdout)
  assert f"by epoch: {workdir}/figure-2.png" in text
  assert "own 1 30" in text and "own 2 50" in text  # means over seeds
  assert "tuned 1 44" in text and "tuned 2 44" in text
  for name in ("figure-1.png", "figure-2.png"):
    assert (workdir / name).read_bytes().startswith(b"\x89PNG")


def test_gains_of_different_test_sets_are_not_shown(tmp_path):
  workdir = tmp_path / "w"
  write(workdir, WORSE, ["a"])
  change(workdir / "study.json", layout=ROWS)
  assert f"{WORSE.mean() - 5.0:+.2f}" in table(workdir)
  change(workdir / "base/s0/results.json", test_references="e")
  assert f"{WORSE.mean() - 5.0:+.2f}" not in table(workdir)


def test_a_plus_marks_what_beats_all_of_several(tmp_path):
  workdir = tmp_path / "w"
  texts = ["a", "b", "c", "d"]
  write(workdir, BETTER, texts)
  for number in range(len(texts)):  # a second system, of both entries
    for entry in ("base", "own"):
      folder = workdir / entry / f"s{number}"
      with np.load(folder / "statistics.npz") as arrays:
        mine = arrays["x/ter"]
      other = np.stack([np.full(30, 5.0), mine[:, 1]], axis=1)
      np.savez(folder / "statistics.npz", **{"x/ter": mine, "y/ter": other})
      scores = {"x": {"ter": mine[:, 0].mean()}, "y": {"ter": 5.0}}
      change(folder / "results.json", systems=scores)
  shown = f"{BETTER.mean():.2f} ± 0.00"
  for against, want in ((["y"], "+"), (["y", "z"], ""), (["x"], "")):
    change(workdir / "study.json", layout={**ROWS, "against": against})
    text = table(workdir)
    mark = text.split(shown)[1].split()[0] if shown in text else None
    assert mark is not None and ("+" in mark) == bool(want)
  done = util.run_program("tools/table.py", str(workdir))
  assert "+ better than each of x" in done.stdout


def test_runs_of_another_version_are_left_out(tmp_path):
  workdir = tmp_path / "w"
  write(workdir, BETTER, ["a"])
  assert "own" in table(workdir)
  change(workdir / "own/s0/run.json", version="w")
  assert "own" not in table(workdir)
  change(workdir / "own/s0/run.json", version="v")
  change(workdir / "study.json", versions={"base/s0": "v"})  # own cannot run
  assert "own" not in table(workdir)


def test_one_system_keeps_its_baseline(tmp_path):
  workdir = tmp_path / "w"
  write(workdir, BETTER, ["a", "b", "c", "d"])
  assert "**" in table(workdir, "--system=x")
  done = util.run_program("tools/table.py", str(workdir), "--system=y")
  assert done.returncode == 2 and "no finished run" in done.stderr


def test_another_entry_can_be_the_baseline(tmp_path):
  workdir = tmp_path / "w"
  write(workdir, BETTER, ["a", "b", "c", "d"])
  line = table(workdir, "--baseline=own").splitlines()[2]
  assert line.startswith("base") and "--" in line
  done = util.run_program("tools/table.py", str(workdir), "--baseline=new")
  assert done.returncode == 2 and "no 'new'" in done.stderr


@pytest.mark.parametrize(
  ("program", "flag"),
  [("table", "--metrics=ter,foo"), ("plot", "--metric=foo")],
)
def test_unknown_metrics_exit_2_with_one_line(tmp_path, program, flag):
  workdir = tmp_path / "w"
  write(workdir, BETTER, ["a"])
  done = util.run_program(f"tools/{program}.py", str(workdir), flag)
  assert done.returncode == 2
  assert "no metric 'foo'" in done.stderr and done.stderr.count("\n") == 1


def table(workdir, *flags):
  """What the program prints above the legend."""
  done = util.run_program("tools/table.py", str(workdir), *flags)
  assert done.returncode == 0, done.stderr
  return done.stdout.rpartition("\n\n")[0]


def test_a_study_can_compare_within_its_entries(tmp_path):
  workdir = tmp_path / "w"
  write(workdir, BETTER, ["a", "b", "c", "d"])
  about = json.loads((workdir / "study.json").read_text())
  about |= {"system": "x", "within": True}
  (workdir / "study.json").write_text(json.dumps(about))
  assert marks(workdir) == ""  # the only system of its entry


def spoil(name, data):
  def function(folder):
    if data is None:
      (folder / name).unlink()
    else:
      (folder / name).write_bytes(data)

  return function


def objects(folder):
  values = np.array([{"a": 1}], dtype=object)
  np.savez(folder / "statistics.npz", **{"x/ter": values})


def cut(folder):
  data = (folder / "statistics.npz").read_bytes()
  (folder / "statistics.npz").write_bytes(data[: len(data) // 2])


def flipped(folder):
  data = bytearray((folder / "statistics.npz").read_bytes())
  data[len(data) // 2] ^= 1
  (folder / "statistics.npz").write_bytes(data)


@pytest.mark.parametrize(
  ("damage", "message"),
  [
    (spoil("results.json", b"{"), "results.json:1: not JSON"),
    (spoil("results.json", b"[]"), "results.json: no results"),
    (spoil("results.json", b"{}"), "results.json: 'systems' has no scores"),
    (
      spoil("results.json", b'{"systems": {"x": {"ter": "1"}}}'),
      "results.json: ter of x is no number",
    ),
    (
      spoil("results.json", b'{"systems": {"x": {"ter": 1%s}}}' % (b"0" * 400)),
      "results.json: ter of x is no number",
    ),
    (
      spoil("results.json", b'{"systems": {"y": {"ter": 1}}}'),
      "statistics.npz: lacks ter of y",
    ),
    (spoil("results.json", None), "results.json: no such file"),
    (spoil("statistics.npz", None), "statistics.npz: no such file"),
    (spoil("statistics.npz", b""), "statistics.npz: not a file of arrays"),
    (spoil("statistics.npz", b"text"), "statistics.npz: not a file of arrays"),
    (cut, "statistics.npz: damaged"),
    (flipped, "statistics.npz: damaged"),
    (objects, "statistics.npz: not a file of arrays"),
  ],
)
def test_damaged_results_are_named(tmp_path, damage, message):
  write(tmp_path / "w", BETTER, ["a"])
  damage(tmp_path / "w" / "own" / "s0")
  about = study.read_description(tmp_path / "w")
  with pytest.raises(InputError) as caught:
    study.outcomes(tmp_path / "w", about)
  assert message in str(caught.value)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"entries": ["../../other"]}, "cannot name a folder"),
    ({"entries": "base"}, "'entries' is no list"),
    ({"seeds": [-1]}, "seed -1"),
    ({"versions": []}, "'versions' is no dict"),
    ({"layout": []}, "'layout' must be a dict"),
    ({"layout": {"kind": "x"}}, "LAYOUT kind"),
  ],
)
def test_a_damaged_description_is_told(tmp_path, values, message):
  write(tmp_path / "w", BETTER, ["a"])
  change(tmp_path / "w" / "study.json", **values)
  with pytest.raises(InputError, match=message):
    study.read_description(tmp_path / "w")


def test_the_program_says_it_in_one_line(tmp_path):
  write(tmp_path / "w", BETTER, ["a"])
  spoil("results.json", b"{")(tmp_path / "w" / "own" / "s0")
  done = util.run_program("tools/table.py", str(tmp_path / "w"))
  assert done.returncode == 2
  assert done.stderr.count("\n") == 1
