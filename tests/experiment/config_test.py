"""Configs: freezing, overriding, errors with a suggestion."""

import dataclasses

import ml_collections
import pytest

from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import study


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
  beam: int = 30
  threshold: float | None = None
  labels: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Whole:
  name: str
  search: Search = Search()


def test_freeze_converts_and_is_hashable():
  raw = ml_collections.ConfigDict(
    {"name": "a", "search": {"beam": 5, "threshold": 2, "labels": ["X", "S"]}}
  )
  frozen = config_lib.freeze(Whole, raw)
  expected = Search(beam=5, threshold=2.0, labels=("X", "S"))
  assert frozen == Whole(name="a", search=expected)
  assert hash(frozen) == hash(config_lib.freeze(Whole, raw))


@pytest.mark.parametrize(
  ("raw", "message"),
  [
    ({"name": "a", "serch": {}}, "'serch'; did you mean 'search'?"),
    (
      {"name": "a", "search": {"baem": 1}},
      "'search.baem'; did you mean 'beam'",
    ),
    ({"search": {}}, "'name' is missing"),
    ({"name": 3}, "'name': 3 is not of type str"),
    ({"name": "a", "search": {"beam": 1.5}}, "'search.beam': 1.5 is not of"),
    ({"name": "a", "search": {"beam": True}}, "True is not of type int"),
    ({"name": "a", "search": {"labels": [1]}}, "'search.labels': 1 is not of"),
  ],
)
def test_freeze_errors(raw, message):
  with pytest.raises(InputError, match=message):
    config_lib.freeze(Whole, raw)


def test_json_is_canonical():
  one = config_lib.to_json(Whole(name="é"))
  assert one == (
    '{"name":"é","search":{"beam":30,"labels":[],"threshold":null}}'
  )


def test_apply_copies_and_checks():
  base = ml_collections.ConfigDict({"seed": 0, "search": {"beam": 30}})
  changed = config_lib.apply(base, {"search.beam": 100, "seed": 2})
  assert (base.search.beam, changed.search.beam, changed.seed) == (30, 100, 2)
  with pytest.raises(InputError, match="did you mean 'beam'"):
    config_lib.apply(base, {"search.bem": 1})
  with pytest.raises(InputError, match=r"search\.beam\.x"):
    config_lib.apply(base, {"search.beam.x": 1})
  with pytest.raises(InputError, match=r"search\.beam"):
    config_lib.apply(base, {"search.beam": "many"})


def write_study(tmp_path, text):
  (tmp_path / "base.py").write_text(
    "import ml_collections\n"
    "def get_config(variant=''):\n"
    "  return ml_collections.ConfigDict({'seed': 0, 'beam': 1})\n"
  )
  path = tmp_path / "study.py"
  path.write_text(f"BASE = {str(tmp_path / 'base.py')!r}\n" + text)
  return str(path)


def test_study_is_entries_times_seeds(tmp_path):
  path = write_study(
    tmp_path, "ABLATIONS = {'a': {}, 'b': {'beam': 2}}\nSEEDS = (0, 1)\n"
  )
  plan = study.load(path)
  trials = study.trials(plan)
  assert plan.baseline == "a"
  assert [trial.folder for trial in trials] == ["a/s0", "a/s1", "b/s0", "b/s1"]
  assert [t.config.beam for t in trials] == [1, 1, 2, 2]
  assert [t.config.seed for t in trials] == [0, 1, 0, 1]
  some = study.part(trials, entries=["b"], seeds=["1"])
  assert [trial.folder for trial in some] == ["b/s1"]
  assert study.part(trials) == trials
  for wrong in ({"entries": ["c"]}, {"seeds": ["2"]}):
    with pytest.raises(InputError, match="the study has no"):
      study.part(trials, **wrong)
  parts = [study.shard(trials, f"{i}/3") for i in range(3)]
  assert sorted(t.folder for part in parts for t in part) == sorted(
    t.folder for t in trials
  )


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("SEEDS = (0,)\n", "study.py: defines no ABLATIONS"),
    ("ABLATIONS = {}\nSEEDS = (0,)\n", "no entry"),
    ("ABLATIONS = {'a/b': {}}\nSEEDS = (0,)\n", "cannot name a folder"),
    ("ABLATIONS = {'a': {}}\nSEEDS = (0,)\nBASELINE = 'b'\n", "not an entry"),
    ("ABLATIONS = {\n", "study.py:2"),
  ],
)
def test_bad_studies(tmp_path, text, message):
  with pytest.raises(InputError, match=message):
    study.load(write_study(tmp_path, text))


@pytest.mark.parametrize("spec", ["1", "2/2", "-1/2", "a/b"])
def test_bad_shards(spec):
  with pytest.raises(InputError, match="--shard"):
    study.shard([], spec)
