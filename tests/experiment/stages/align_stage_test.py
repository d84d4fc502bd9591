"""The stage that links words, with aligners that need more than text."""

import dataclasses
import pathlib

import numpy as np
import pytest

from jaxmt.experiment.stages import align
from jaxmt.experiment.stages.corpus import Corpus
from tests.train import itg_training_test


@pytest.fixture(name="setting", scope="module")
def _setting(tmp_path_factory):
  rng = np.random.default_rng(3)
  rows = [itg_training_test.sentence(rng) for _ in range(60)]
  texts = [[" ".join(map(str, row[side])) for row in rows] for side in (0, 1)]
  lines = [" ".join(f"{s}-{t}" for s, t in row[2]) for row in rows]
  prefix = tmp_path_factory.mktemp("gold") / "dev"
  for name, column in (("zh", texts[0]), ("en", texts[1]), ("align", lines)):
    text = "".join(line + "\n" for line in column[40:])
    prefix.with_suffix(f".{name}").write_text(text)
  corpus = Corpus(
    train_source=texts[0][:40],
    train_target=texts[1][:40],
    train_links=lines[:40],
    train_trees=[
      "(S " + " ".join(f"(W {word})" for word in line.split()) + ")"
      for line in texts[0][:40]
    ],
  )
  return corpus, str(prefix)


def test_itg_learns_from_hand_aligned_pairs(setting):
  corpus, prefix = setting
  config = align.AlignStageConfig(model="itg", gold=prefix, kind="hp")
  align.check(config)
  paths = align.input_paths(config)
  assert sorted(paths) == ["gold_links", "gold_source", "gold_target"]
  found = align.align(config, corpus=corpus, **paths)
  plain = align.align(align.AlignStageConfig(model="hmm"), corpus=corpus)
  assert len(found.links) == 40
  assert found.metrics is not None and plain.metrics is not None
  assert found.metrics["aer"] < 0.2
  assert found.links != plain.links


def test_rounds_of_semi_supervised_training(setting):
  corpus, prefix = setting
  dictionary = f"{prefix}.dictionary"
  pathlib.Path(dictionary).write_text("1\t11/12 13\n")
  config = align.AlignStageConfig(
    model="itg", gold=prefix, kind="w", emd_rounds=1, dictionary=dictionary
  )
  align.check(config)
  paths = align.input_paths(config)
  assert paths["dictionary"] == dictionary
  found = align.align(config, corpus=corpus, **paths)
  assert len(found.links) == 40
  assert found.metrics is not None and found.metrics["aer"] < 0.3


def test_neural_learns_from_a_teacher(setting):
  corpus, _ = setting
  config = align.AlignStageConfig(
    model="neural", epochs=1, window=1, objective="softmax", start=1.0
  )
  align.check(config)
  assert not align.input_paths(config)
  assert len(align.align(config, corpus=corpus).links) == 40


def test_trees_guide_symmetrisation(setting):
  corpus, _ = setting
  config = align.AlignStageConfig(model="hmm", symmetrize="idsg")
  align.check(config)
  assert len(align.align(config, corpus=corpus).links) == 40
  bare = dataclasses.replace(corpus, train_trees=None)
  with pytest.raises(ValueError, match="no trees"):
    align.align(config, corpus=bare)


def test_bad_settings():
  with pytest.raises(ValueError, match=r"align\.gold"):
    align.input_paths(align.AlignStageConfig(model="itg"))
  with pytest.raises(ValueError, match="teacher"):
    align.check(align.AlignStageConfig(model="neural", teacher="x"))
  with pytest.raises(ValueError, match="objective"):
    align.check(align.AlignStageConfig(model="neural", objective="x"))
  with pytest.raises(ValueError, match="kind"):
    align.check(align.AlignStageConfig(model="itg", gold="x", kind="q"))
