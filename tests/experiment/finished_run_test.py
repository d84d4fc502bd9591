"""Run folders of other people: refused in one line, never trusted.

Artefacts are changed with matching checksums, as somebody would who makes a
folder for others to open.
"""

import json
import shutil

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.experiment import finished_run, saved_systems
from jaxmt.experiment.stages import grammar, lm
from jaxmt.experiment.stages.grammar import GrammarStageConfig
from jaxmt.experiment.stages.lm import LanguageModel, LmStageConfig
from jaxmt.experiment.stages.system import SearchStageConfig, Theta, Tuned
from jaxmt.runtime import checkpoint
from tests.reference import killable_theta
from tests.reference import tiny_training as tiny

CONFIG = {
  "search": {"beam": 4, "pop": 10, "span": 5, "targets": 20},
  "data": {"reverse": False},
  "systems": ["primary", "augmented-forest"],
  "epochs": 1,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
  """A run as `launch/train.py` leaves it, without what is not read."""
  workdir = tmp_path_factory.mktemp("run")
  text = killable_theta.corpus(None)
  links = killable_theta.links(None, corpus=text)
  rules = grammar.extract(
    GrammarStageConfig(kind="hiero"), corpus=text, links=links
  )
  theta = np.zeros((len(rules.table), 5), np.float32)
  (workdir / "artefacts").mkdir()
  records = {
    "grammar": rules,
    "lm": lm.language_model(LmStageConfig(order=3), corpus=text),
    "tune-primary": Tuned(weights=tiny.WEIGHTS),
    "tune-augmented-forest": Tuned(weights=tiny.WEIGHTS),
    "mix-augmented-forest": Theta(theta=theta),
  }
  for name, record in records.items():
    folder = workdir / "artefacts" / f"{name}-0"
    checkpoint.write(folder, record.to_values(), {"seconds": 1.0})
  lines = [json.dumps({"stage": name, "key": "0"}) for name in records]
  (workdir / "metrics.jsonl").write_text("\n".join(lines) + "\n")
  (workdir / "run.json").write_text(json.dumps({"config": CONFIG}))
  return workdir


@pytest.fixture
def workdir(tmp_path, whole):
  """A copy that a test may spoil."""
  return shutil.copytree(whole, tmp_path / "run")


def change(workdir, stage, **values):
  """Writes an artefact anew, with other values; None leaves one out."""
  folder = workdir / "artefacts" / f"{stage}-0"
  there, meta = checkpoint.read(folder)
  kept = {
    name: np.array(v) if isinstance(v, np.ndarray) else v
    for name, v in there.items()
  }
  kept |= {
    name: value(kept[name]) if callable(value) else value
    for name, value in values.items()
  }
  kept = {name: value for name, value in kept.items() if value is not None}
  checkpoint.write(folder, kept, meta)


def test_a_run_is_loaded_and_exported(workdir, tmp_path):
  for system in (None, "primary"):
    loaded = saved_systems.load(str(workdir), system)
    assert (loaded.beam, loaded.pop) == (4, 10)
  run = finished_run.read(str(workdir))
  for system in ("primary", "augmented-forest"):  # the second replaces
    saved_systems.export(run, system, str(tmp_path / "out"))
    settings = json.loads((tmp_path / "out/settings.json").read_text())
    assert settings["system"] == system
    assert saved_systems.load(str(tmp_path / "out")).beam == 4
  assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]


def put(place, value):
  def changed(array):
    array[place] = value
    return array

  return changed


@pytest.mark.parametrize(
  "stage, values, message",
  [
    ("lm", {"check": put(5, 10**9)}, "check: a slot belongs to no state"),
    ("lm", {"check": put(2, -1)}, "check: the root lacks a word"),
    ("lm", {"check": lambda a: a.astype(np.int64)}, "check: is int64"),
    ("lm", {"follow": put(2, 10**8)}, "follow: leads out of the table"),
    ("lm", {"follow": lambda a: a[:-1]}, "follow: is int32"),
    ("lm", {"score": put(3, np.nan)}, "score: a score is no finite number"),
    ("lm", {"length": put(0, 7)}, "length: a context of another length"),
    ("lm", {"words": lambda a: a * 500}, "words: .* words, in a table"),
    ("lm", {"facts": {"begin": 10**9, "order": 3, "ngrams": 1}}, "facts"),
    ("lm", {"facts": {"begin": 0, "order": 99, "ngrams": 1}}, "order 99"),
    ("lm", {"facts": {"begin": "x"}}, "not what stage 'lm' returns"),
    ("lm", {"check": None}, "not what stage 'lm' returns"),
    ("grammar", {"target": put(0, 10**9)}, "target"),
    ("grammar", {"lhs": None}, "not what stage 'grammar' returns"),
    ("grammar", {"features": put((0, 0), np.nan)}, "features"),
    ("tune-augmented-forest", {"weights": {"a": "b"}}, "weight of 'a'"),
    ("tune-augmented-forest", {"weights": [1]}, "weight of ''"),
    ("tune-augmented-forest", {"weights": {"a": 10**400}}, "weight of 'a'"),
    ("tune-augmented-forest", {"weights": {"a": float("nan")}}, "of 'a'"),
    ("mix-augmented-forest", {"theta": lambda a: a[1:]}, "'theta' is not"),
    ("mix-augmented-forest", {"theta": put(0, np.inf)}, "'theta' is not"),
    ("mix-augmented-forest", {"theta": ["a"]}, "'theta' is not"),
  ],
)
def test_wrong_content_with_right_checksums(workdir, stage, values, message):
  change(workdir, stage, **values)
  with pytest.raises(InputError, match=message) as caught:
    saved_systems.load(str(workdir))
  assert str(workdir / "artefacts" / f"{stage}-0") in str(caught.value)
  assert "\n" not in str(caught.value)


def test_back_offs_that_lead_nowhere(workdir):
  """A state whose back-off is itself would be followed without end."""

  def looped(follow, check):
    states = np.flatnonzero(check == np.arange(len(check)))
    follow[states[-1]] = states[-1]
    return follow

  folder = workdir / "artefacts" / "lm-0"
  check = np.array(checkpoint.read(folder)[0]["check"])
  change(workdir, "lm", follow=lambda follow: looped(follow, check))
  with pytest.raises(InputError, match="follow: a back-off is no shorter"):
    saved_systems.load(str(workdir))


@pytest.mark.parametrize(
  "lines, message",
  [
    ('{"stage": "lm", "key": "../../x"}', ":1: no artefact is called"),
    ('{"stage": ["lm"], "key": "0"}', ":1: no artefact is called"),
    ('{"stage": "/lm", "key": "0"}', ":1: no artefact is called"),
    ("[" * 100_000, ":1: not JSON"),
    ("{}", ":1: has no 'stage'"),
  ],
)
def test_records_that_are_none(workdir, lines, message):
  (workdir / "metrics.jsonl").write_text(lines + "\n")
  with pytest.raises(InputError, match=message):
    finished_run.read(str(workdir))


@pytest.mark.parametrize(
  "key, value, message",
  [
    ("search", {"beam": "x"}, "beam"),
    ("search", {"beam": -1}, "beam must be"),
    ("search", [], "'search' is no dict"),
    ("data", {}, "'data.reverse'"),
    ("systems", "primary", "'systems' is no list"),
    ("systems", [["primary"]], "no system"),
    ("epochs", "1", "'epochs' is no int"),
  ],
)
def test_settings_that_make_no_sense(workdir, key, value, message):
  about = {"config": {**CONFIG, key: value}}
  (workdir / "run.json").write_text(json.dumps(about))
  with pytest.raises(InputError, match=message) as caught:
    finished_run.read(str(workdir))
  assert "run.json" in str(caught.value)


@pytest.mark.parametrize(
  "key, value, message",
  [
    ("grammar", "../run/artefacts/grammar-0", "'grammar' is not in this"),
    ("lm", 5, "'lm' is no str"),
    ("weights", "", "'weights' is not in this folder"),
    ("beam", "4", "'beam' is no int"),
    ("beam", True, "'beam' is no int"),
    ("pop", 1, "pop must be at least beam"),
    ("span", 0, "span must be at least 1"),
    ("dialect", "x", "no dialect 'x'"),
    ("binarize", 1, "'binarize' is no bool"),
  ],
)
def test_exported_settings_that_make_no_sense(
  workdir, tmp_path, key, value, message
):
  run = finished_run.read(str(workdir))
  saved_systems.export(run, "primary", str(tmp_path / "out"))
  path = tmp_path / "out/settings.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
  with pytest.raises(InputError, match=message) as caught:
    saved_systems.load(str(tmp_path / "out"))
  assert "settings.json" in str(caught.value)


def test_every_automaton_that_is_built_is_sound(whole):
  values, _ = checkpoint.read(whole / "artefacts" / "lm-0")
  assert LanguageModel.from_values(values).tables.order == 3
  assert SearchStageConfig(**CONFIG["search"]).beam == 4
