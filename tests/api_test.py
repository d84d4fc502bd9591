"""The public names: fast to import, and what README.md shows works."""

import importlib
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import jaxmt
from jaxmt.train.violation.learn_config import LearnConfig
from tests import util
from tests.reference import tiny_run

LOOK = """
import os, sys, time
before, start = dict(os.environ), time.process_time()
import jaxmt
assert time.process_time() - start < 1.5
assert dict(os.environ) == before
assert not {"jax", "numba", "numpy"} & set(sys.modules), sys.modules.keys()
assert "decode" in dir(jaxmt) and len(jaxmt.__all__) >= 25
print(sorted(jaxmt.__all__))
"""


def test_importing_is_fast_and_changes_nothing(tmp_path):
  home = {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
  done = subprocess.run(
    [sys.executable, "-c", LOOK],
    env={**os.environ, **home, "PYTHONPATH": str(util.ROOT)},
    cwd=tmp_path,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  assert not list(tmp_path.iterdir())


def test_every_public_name_is_there():
  for name in jaxmt.__all__:
    assert getattr(jaxmt, name) is not None
    package = getattr(jaxmt, name)
    if hasattr(package, "__path__"):
      for module in getattr(package, "__all__", ()):
        assert getattr(package, module) is not None, f"{name}.{module}"
  with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
    _ = jaxmt.nonsense


def test_every_package_exports_names():
  for path in sorted((util.ROOT / "jaxmt").rglob("__init__.py")):
    folder = path.parent
    name = ".".join(folder.relative_to(util.ROOT).parts)
    package = importlib.import_module(name)
    assert package.__all__, name
    for one in package.__all__:
      is_module = (folder / f"{one}.py").exists() or (folder / one).is_dir()
      assert is_module or hasattr(package, one), f"{name}.{one}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  return tiny_run.make(tmp_path_factory.mktemp("run"), "primary")


@pytest.fixture(scope="module")
def model(run):
  return jaxmt.load(str(run), system="primary")


@pytest.fixture(scope="module")
def text(run):
  """Source, trees and references of the test part."""
  read = lambda name: tiny_run.artefact(run, "corpus", name)
  references = tiny_run.file(run, "corpus", "test_references.json")
  return (
    read("test_source.txt"),
    read("test_trees.txt"),
    json.loads(references.read_text()),
  )


@pytest.fixture(scope="module")
def out(model, text):
  return jaxmt.decode(model, text[0], trees=text[1])


def test_translations_and_derivations_are_those_of_the_run(run, out):
  kept = lambda name: tiny_run.artefact(
    run, "decode-primary", f"test_{name}.txt"
  )
  assert out.text == kept("hypothesis")
  assert [str(one) for one in out.derivations] == kept("derivations")
  weights = out.model.weights
  for score, features in zip(out.scores, out.features, strict=True):
    total = sum(weights[name] * value for name, value in features.items())
    assert score == pytest.approx(total, abs=1e-3)


def test_lists_have_padded_arrays(out, text):
  lists = jaxmt.kbest(out, k=7, references=text[2])
  assert [one[0] for one in lists.lines] == out.text
  assert lists.scores.shape == lists.costs.shape == lists.mask.shape
  assert lists.mask.shape[1] <= 7 and lists.mask[:, 0].all()
  vector = np.array([out.model.weights[name] for name in lists.names])
  again = lists.features @ vector
  np.testing.assert_allclose(again, lists.scores, atol=2e-3)
  one = jaxmt.kbest(out, k=1, references=text[2])
  np.testing.assert_allclose(one.costs[:, 0], lists.costs[:, 0])
  assert 0 <= one.costs.min() and one.costs.max() <= 1
  assert all(len(set(row)) == len(row) for row in lists.lines)
  with pytest.raises(ValueError, match="references"):
    _ = jaxmt.kbest(out, k=1).costs


def test_other_weights_score_forests_anew(out):
  weights = {**out.model.weights, "LanguageModel": 0.3, "WordPenalty": -1.0}
  lists = jaxmt.kbest(out, k=5, weights=weights)
  vector = np.array([weights[name] for name in lists.names])
  np.testing.assert_allclose(lists.features @ vector, lists.scores, atol=2e-3)
  falls = np.diff(lists.scores, axis=1)[np.asarray(lists.mask)[:, 1:]]
  assert (falls <= 1e-6).all()


def test_notebooks_get_escaped_html(out, text):
  shown = out.derivations[0]._repr_html_()
  assert "<details" in shown and "S[0:" in shown
  lists = jaxmt.kbest(out, k=2, references=text[2])
  assert lists._repr_html_().count("<tr>") == 11
  assert "<td>20</td>" in out.forests._repr_html_()
  odd = jaxmt.decode(out.model, ["<script> & 'x'"])
  for shown in (
    odd.derivations[0]._repr_html_(),
    jaxmt.kbest(odd, k=1)._repr_html_(),
  ):
    assert shown.count("<script>") == 1 and "&lt;script&gt;" in shown
    assert "<script> &" not in shown  # only the components' own code is one


def test_forced_derivations(model, text, out):
  source, trees, references = text
  own = jaxmt.force(model, source, out.text, trees=trees)
  assert own.reached.all() and len(own.forests) == len(source)
  other = jaxmt.force(model, source[:3], ["no such words"] * 3, trees=trees[:3])
  assert not other.reached.any() and all(other.reasons)
  assert other.derivations == [None] * 3
  del references


@pytest.mark.parametrize("space", ["kbest", "forest"])
def test_tuning_and_scores(model, text, out, space):
  source, trees, references = text
  settings = {"trees": trees, "rounds": 1, "k": 20, "space": space}
  tuned = jaxmt.tune(model, source, references, method="kbmira", **settings)
  before, after = (
    jaxmt.evaluate(one.text, references, tokenize="none")
    for one in (out, jaxmt.decode(tuned, source, trees=trees))
  )
  assert set(before) == {"bleu", "ter", "chrf"}
  assert after["bleu"] >= before["bleu"]  # chosen on the same sentences
  if space == "forest":
    with pytest.raises(jaxmt.InputError, match="costs on forests are of BLEU"):
      jaxmt.tune(model, source, references, metric="ter", **settings)


def test_learning_gives_weights_to_sparse_features(model, text, out):
  source, trees, _ = text
  # What the model itself says can be derived.
  references = [[line] for line in out.text]
  learned = jaxmt.learn(
    model,
    source,
    references,
    dev_lines=source,
    dev_references=references,
    trees=trees,
    dev_trees=trees,
    settings=LearnConfig(epochs=1, minibatch=8, length_search="none"),
  )
  assert any(name.startswith("Edge:") for name in learned.model.weights)
  again = jaxmt.decode(learned, source, trees=trees)
  scores = jaxmt.evaluate(again.text, references, tokenize="none")
  assert scores["bleu"] > 50


def test_one_string_is_refused(model):
  with pytest.raises(ValueError, match="not one string"):
    jaxmt.decode(model, "a b")


def test_readme_runs(run):
  blocks = re.findall(
    r"```python\n(.*?)```", (util.ROOT / "README.md").read_text(), re.DOTALL
  )
  assert blocks
  for block in blocks:
    code = block.replace("runs/quickstart", str(run))
    done = subprocess.run(
      [sys.executable, "-c", code],
      cwd=util.ROOT,
      capture_output=True,
      text=True,
    )
    assert done.returncode == 0, done.stderr


def test_example_runs(run):
  done = util.run_program("launch/example.py", str(run))
  assert done.returncode == 0, done.stderr
  assert "risk" in done.stdout
  lines = (util.ROOT / "launch" / "example.py").read_text().splitlines()
  assert len(lines) <= 40
