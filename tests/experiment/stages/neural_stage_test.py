"""Systems with trained models: what they need, what is stored, whole runs."""

import dataclasses
import json
import os

import numpy as np
import pytest

import jaxmt
from jaxmt.errors import InputError
from jaxmt.experiment.stages import lm, neural, system
from jaxmt.experiment.stages.neural import NeuralConfig, NeuralStageConfig
from jaxmt.experiment.stages.system import TrainedModels, Tuned
from jaxmt.features import topic_features
from jaxmt.models.fitting import FitOptions
from jaxmt.models.phrase_pair_training import PhrasePairOptions
from jaxmt.models.topic_mixtures import MixtureOptions
from jaxmt.models.topic_vectors import TopicOptions
from jaxmt.runtime import checkpoint
from tests import util
from tests.experiment.stages import rules_stage_test as rules
from tests.reference import tiny_run

TEXT = dataclasses.replace(
  rules.TEXT, train_documents=["one", "one", "two", "two"]
)
FIT = FitOptions(epochs=2, batch=2, rate=0.01)
NEURAL = NeuralConfig(
  topics=TopicOptions(size=3, documents=1, common=1.0, fit=FIT),
  mixtures=MixtureOptions(size=2, rounds=3),
  similarity=PhrasePairOptions(size=3, rebuild=FIT, tune=FIT),
)


def train(kind, **changes):
  given = {"corpus": TEXT, "grammar": rules.extract(kind="hiero")} | changes
  return neural.train(
    NeuralStageConfig(
      kind=kind, neural=NEURAL, search=system.SearchStageConfig(threads=1)
    ),
    lm=lm.language_model(lm.LmStageConfig(order=2), corpus=TEXT),
    tuned=Tuned(weights={"LanguageModel": 1.0}),
    **given,
  )


@pytest.mark.parametrize("kind", ["topics", "topic-mixtures", "similarity"])
def test_models_are_stored_and_are_features_of_the_rules(kind, tmp_path):
  trained = train(kind)
  checkpoint.write(tmp_path / "m", trained.to_values(), {})
  read = TrainedModels.from_values(checkpoint.read(tmp_path / "m")[0])
  assert read.metrics == trained.metrics
  grammar = rules.extract(kind="hiero")
  table = grammar.table
  values = [
    system.with_models(grammar, one)
    .models[0]
    .values(table, np.arange(len(table)), ("das", "buch"))
    for one in (trained, read)
  ]
  np.testing.assert_array_equal(*values)
  assert np.abs(values[0]).max() > 0.01
  with pytest.raises(InputError, match="two models have the feature"):
    system.with_models(system.with_models(grammar, trained), trained)


def test_topics_are_of_the_documents_of_the_pairs():
  one = train("topics").models[0]
  assert isinstance(one, topic_features.TopicModel)
  assert len(one.index) == 2
  with pytest.raises(ValueError, match="need documents"):
    train("topics", corpus=rules.TEXT)


@pytest.mark.parametrize(
  ("names", "changes", "message"),
  [
    (("topics",), {"documents": False}, "train_documents"),
    (("topic-mixtures",), {"provenance": False}, r"grammar\.provenance"),
    (("recursive",), {}, "bracketing"),
    (("scorer",), {"grammar": "phrase"}, "needs charts"),
  ],
)
def test_systems_that_lack_something(names, changes, message):
  given = {"grammar": "hiero", "documents": True, "provenance": True}
  neural.check_kinds(("primary", "similarity"), **given)
  with pytest.raises(InputError, match=message):
    neural.check_kinds(("primary", *names), **(given | changes))


def run(path, *flags):
  return util.run_program(
    "launch/train.py",
    *tiny_run.FLAGS,
    *("--config.grammar.kind=hiero", "--config.data.synthetic.train=60"),
    *("--config.neural.pairs=20", "--config.neural.similarity.size=3"),
    "--config.neural.similarity.rebuild.epochs=1",
    "--config.neural.similarity.tune.epochs=1",
    "--config.systems=('primary','similarity')",
    *(f"--workdir={path}", *flags),
  )


def test_an_experiment_with_a_trained_model(tmp_path):
  done = run(tmp_path / "run")
  assert done.returncode == 0, done.stderr
  results = json.loads((tmp_path / "run" / "results.json").read_text())
  assert {"primary", "similarity", "gloss"} == results["systems"].keys()
  assert "bleu" in results["significance"]["similarity"]
  # Its two features were tuned with the others.
  lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
  stages = {one["stage"]: one for one in map(json.loads, lines)}
  usual = stages["tune-primary"]["features"]
  assert stages["tune-similarity"]["features"] == usual + 2
  assert stages["models-similarity"]["reached"] > 0
  # It translates alike from the run and exported.
  out = str(tmp_path / "exported")
  jaxmt.export(str(tmp_path / "run"), out, "similarity")
  outputs = [
    jaxmt.decode(jaxmt.load(path), ["他 来 了 。"]).translations[0]
    for path in (str(tmp_path / "run"), out)
  ]
  assert outputs[0].score == outputs[1].score
  assert outputs[0].features == outputs[1].features


@pytest.mark.skipif(not os.environ.get("JAXMT_SLOW"), reason="set JAXMT_SLOW")
def test_an_experiment_with_a_network_of_derivations(tmp_path):
  flags = [
    *("--config.grammar.kind=btg", "--config.grammar.phrases.length=3"),
    *("--config.neural.recursive.size=3", "--config.neural.recursive.local=1"),
    "--config.neural.recursive.global_=0",
    "--config.neural.recursive.embedding=sparse",
    "--config.systems=('primary','recursive')",
  ]
  done = run(tmp_path / "run", *flags)
  assert done.returncode == 0, done.stderr
  found = (tmp_path / "run").glob("artefacts/tune-recursive-*/weights.json")
  assert "RecursiveScore" in json.loads(next(found).read_text())
  again = run(tmp_path / "run", *flags)
  assert "[models-recursive] reused" in again.stderr
