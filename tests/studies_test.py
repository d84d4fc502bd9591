"""The studies that ship: every run is a valid experiment, and shown if asked.

A study is hours of work; a wrong key in its last entry should not be what
ends it.
"""

import pathlib

import pytest

from jaxmt import experiment, study
from jaxmt.report import layouts
from tests import util

FILES = sorted(pathlib.Path(util.ROOT, "configs", "ablations").glob("*.py"))
PUBLISHED = [f"table{n:02}_" for n in range(1, 11)] + [
  f"figure{n:02}_" for n in range(7, 11)
]


@pytest.fixture(autouse=True)
def _at_root(monkeypatch):
  monkeypatch.chdir(util.ROOT)  # bases are named from there


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_run_is_a_valid_experiment(path):
  plan = study.load(str(path))
  runs = study.trials(plan)
  assert len(runs) == len(plan.ablations) * len(plan.seeds)
  frozen = [experiment.freeze(trial.config) for trial in runs]
  assert len(set(frozen)) == len(frozen)  # no entry is another one again
  assert plan.note.endswith(".")
  made = {t.entry: c.systems for t, c in zip(runs, frozen, strict=True)}
  if plan.system:
    entries = made if plan.within else [plan.baseline]
    assert all(plan.system in made[entry] for entry in entries)
  if plan.layout is not None:
    shown = layouts.places(plan.layout)
    assert shown
    for entry, system in shown:
      assert system in made[entry]
    assert {entry for entry, _ in shown} == set(made)  # nothing run for nothing


def test_all_tables_and_figures_of_the_paper_are_there():
  names = [path.stem for path in FILES]
  for start in PUBLISHED:
    assert sum(name.startswith(start) for name in names) == 1
