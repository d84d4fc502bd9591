"""The studies that ship: every run is a valid experiment, and shown if asked.

A study is hours of work; a wrong key in its last entry should not be what
ends it.
"""

import os
import pathlib

import pytest

from jaxmt.errors import InputError
from jaxmt.experiment import config, experiment, study
from jaxmt.report import layouts
from tests import util

FILES = sorted(pathlib.Path(util.ROOT, "configs", "ablations").glob("*.py"))
PUBLISHED = [f"table{n:02}_" for n in range(1, 11)] + [
  f"figure{n:02}_" for n in range(7, 11)
]


@pytest.fixture(autouse=True)
def _at_root(monkeypatch):
  monkeypatch.chdir(util.ROOT)  # bases are named from there
  if not os.environ.get("JAXMT_DATA"):  # some name files of it, none reads them
    monkeypatch.setenv("JAXMT_DATA", "data")


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


@pytest.mark.parametrize(
  ("key", "value"),
  [
    ("theta.goodness", "tre"),
    ("theta.goodness", "chrf"),  # looks at characters
    ("theta.state", "words"),
    ("theta.posterior_scale", -1.0),
    ("theta.batch_cells", 0),
    ("theta.alpha1", float("nan")),
    ("theta.alpha2", float("inf")),
    ("align.model", "ibm5"),
    ("align.symmetrize", "all"),
    ("align.iterations", 0),
    ("lm.order", 0),
    ("data.synthetic.noise", 3.0),
    ("data.synthetic.train", -1),
    ("search.beam", 0),
    ("search.pop", 10),  # less than the beam
    ("tune.rounds", -1),
    ("tune.nbest", 0),
    ("evaluate.metrics", ("blue",)),
    ("evaluate.metrics", ()),
    ("evaluate.tokenize", "13b"),
    ("evaluate.test", "t"),
    ("seed", -5),
    ("seed", 2**32),
  ],
)
def test_a_value_that_cannot_work_is_refused_before_anything_runs(key, value):
  base = config.load("configs/quickstart.py")
  changed = config.apply(base, {key: value})
  with pytest.raises(InputError, match=f"config key '{key.split('.')[0]}"):
    experiment.freeze(changed)


def test_all_tables_and_figures_of_the_paper_are_there():
  names = [path.stem for path in FILES]
  for start in PUBLISHED:
    assert sum(name.startswith(start) for name in names) == 1


@pytest.mark.parametrize("name", ["table04_reverse", "table10_reverse"])
def test_the_other_direction_holds_for_any_base(name):
  plan = study.load(f"configs/ablations/{name}.py")
  base = config.load("configs/quickstart.py")
  for trial in study.trials(plan, base):
    frozen = experiment.freeze(trial.config)
    assert frozen.data.reverse and frozen.grammar.kind == "hiero"


def test_trees_that_are_not_there_are_missed_before_anything_runs():
  turned = config.load("configs/quickstart.py:reverse")
  plan = study.load("configs/ablations/table05_systems.py")
  for trial in study.trials(plan, turned):
    if trial.entry != "t2s":
      experiment.freeze(trial.config)
      continue
    with pytest.raises(InputError, match="'t2s' needs trees"):
      experiment.freeze(trial.config)


def test_k_is_the_beam_of_decoding_unless_it_is_given():
  base = config.load("configs/quickstart.py")
  wide = config.apply(base, {"search.beam": 50})
  assert experiment.freeze(wide).theta.k == 50
  own = config.apply(wide, {"theta.k": 20})
  assert experiment.freeze(own).theta.k == 20


def test_threads_are_no_part_of_a_version():
  base = config.load("configs/quickstart.py")
  version = lambda **changes: experiment.version(
    experiment.freeze(config.apply(base, changes))
  )
  same = version(**{"search.threads": 1, "theta.workers": 7})
  assert version() == same != version(**{"theta.k": 7})


def test_a_base_is_found_from_elsewhere(monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path)
  for path in FILES:
    assert study.trials(study.load(str(path)))


@pytest.mark.parametrize(
  ("text", "cause"),
  [
    ("ABLATIONS = [1]", "ABLATIONS must be a dict of dicts"),
    ("ABLATIONS = {'a': 1}", "ABLATIONS must be a dict of dicts"),
    ("ABLATIONS = {'a': {}}\nSEEDS = 3", "SEEDS is no tuple"),
    ("ABLATIONS = {'a': {}}\nBASE = 3", "BASE is no string"),
    ("ABLATIONS = {'a': {}}\nLAYOUT = 3", "LAYOUT must be a dict"),
    ("ABLATIONS = {1: {}}", "entry 1 cannot name a folder"),
    ("ABLATIONS = {'': {}}", "entry '' cannot name a folder"),
    ("ABLATIONS = {'..': {}}", r"entry '\.\.' cannot name a folder"),
    ("ABLATIONS = {'a/b': {}}", "entry 'a/b' cannot name a folder"),
    ("ABLATIONS = {'artefacts': {}}", "names a folder in use"),
    ("ABLATIONS = {'a': {}}\nSEEDS = (-1,)", "seed -1 is no number from 0"),
    ("ABLATIONS = {'a': {}}\nSEEDS = ('1',)", "seed '1' is no number from 0"),
    ("ABLATIONS = {'a': {}}\nx = 1 / 0", ":4: ZeroDivisionError"),
    ("ABLATIONS = {'a': {}}\nLAYOUT = {'kind': 'rows'}", "malformed"),
    (
      "ABLATIONS = {'a': {}}\n"
      "LAYOUT = {'kind': 'rows', 'rows': [['x', 'a', 'primary']]}",
      "malformed",
    ),
  ],
)
def test_a_bad_study_is_told(tmp_path, text, cause):
  path = tmp_path / "s.py"
  path.write_text(f"BASE = 'b'\nSEEDS = (0,)\n{text}\n")
  with pytest.raises(InputError, match=cause):
    study.load(str(path))
