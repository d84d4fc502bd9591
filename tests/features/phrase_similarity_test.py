"""Similarity of the sides of rules: values, pruning, folders, decoding."""

import dataclasses
import functools

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.features import phrase_similarity, sentence_models
from jaxmt.grammar import table as tables
from jaxmt.models.fitting import FitOptions
from jaxmt.models.phrase_pair_training import PhrasePairOptions
from jaxmt.train import similarity_training
from tests.reference import recursive_autoencoder as slow
from tests.reference import tiny_training as tiny

OPTIONS = PhrasePairOptions(
  size=6,
  rebuild=FitOptions(epochs=1, batch=16, rate=0.01),
  tune=FitOptions(epochs=2, batch=16, rate=0.01),
)


@functools.cache
def learned():
  """`(model of the decoder, what forcing used, similarities)`."""
  model, _ = tiny.make()
  source, target, _ = zip(*tiny.PAIRS, strict=True)
  use = similarity_training.used_rules(model, source, target)
  pairs = similarity_training.phrase_pairs(model, use.counts)
  *_, (_, similar) = similarity_training.train(pairs, OPTIONS)
  return model, use, similar


def test_phrase_pairs_are_those_of_forced_derivations():
  model, use, _ = learned()
  assert use.reached == len(tiny.PAIRS)
  pairs = similarity_training.phrase_pairs(model, use.counts)
  spelled = phrase_similarity.phrase_lines(
    model.table, np.arange(len(model.table))
  )
  every = set(zip(*spelled, strict=True))
  assert 5 < len(pairs[0]) < len(every)
  assert set(zip(*pairs, strict=True)) <= every
  assert len(set(zip(*pairs, strict=True))) == len(pairs[0])
  # Each derivation covers its sentence: all reference words are produced.
  words = {word for line in pairs[1] for word in line.split()}
  assert words >= {word for _, line, _ in tiny.PAIRS for word in line.split()}
  short = similarity_training.phrase_pairs(model, use.counts, longest=1)
  assert all(" " not in line for side in short for line in side)


def test_values_are_cosines_of_loops_with_gaps_as_words():
  model, _, similar = learned()
  table = model.table
  rules = np.flatnonzero(table.kind == tables.Kind.HIERO)[::7]
  found = similar.values(table, rules, ("any",))
  lines = phrase_similarity.phrase_lines(table, rules)
  assert any("[X]" in line for line in lines[0])
  layers = [similar.parameters[s]["params"] for s in ("source", "target")]
  for row in range(len(rules)):
    tops = []
    for place in range(2):
      index = similar.words[place].index
      ids = [index.get(word, 1) for word in lines[place][row].split()]
      tops.append(slow.fold(layers[place], ids, unit=False)[0])
    for place in range(2):
      moved = slow.image(layers[place], tops[place])
      other = tops[1 - place]
      norm = np.sqrt((moved**2).sum() * (other**2).sum())
      np.testing.assert_allclose(
        found[row, place], moved @ other / norm, atol=2e-6
      )


def test_a_rule_has_the_same_bits_in_every_table():
  model, _, similar = learned()
  table = model.table
  rows = np.arange(len(table))[::-3].copy()
  np.testing.assert_array_equal(
    phrase_similarity.similarities(similar, table)[rows],
    phrase_similarity.similarities(similar, tables.select(table, rows)),
  )


def test_pruning_is_monotone_and_leaves_the_best_of_each_source_side():
  model, _, similar = learned()
  table = model.table
  values = phrase_similarity.similarities(similar, table)
  group = {}
  for rule in range(len(table)):
    group.setdefault(tuple(table.source[rule].tolist()), []).append(rule)
  before = np.ones(len(table), bool)
  for threshold in (-1.0, -0.5, 0.0, 0.5, 0.9, 1.1):
    stays = phrase_similarity.prune(table, values, threshold=threshold, best=2)
    assert not (stays & ~before).any()
    before = stays
    for rules in group.values():
      assert stays[rules].sum() >= min(2, len(rules))
      best = sorted(rules, key=lambda r: (-values[r].sum(), r))[:2]
      assert stays[best].all()
      gone = [r for r in rules if not stays[r]]
      assert (values[gone] < threshold).all()
  assert 0 < before.sum() < len(table)
  everything = phrase_similarity.prune(table, values, threshold=-1.0, best=0)
  assert everything.all()
  again = sentence_models.similar_rules([similar], table, threshold=1.1, best=2)
  np.testing.assert_array_equal(again, before)
  with pytest.raises(InputError, match="none of the models"):
    sentence_models.similar_rules([], table, threshold=0.5)


def test_a_folder_is_read_as_written_and_checked(tmp_path):
  model, _, similar = learned()
  path = str(tmp_path / "s")
  sentence_models.write(path, [similar])
  (read,) = sentence_models.read_all([path], model.table)
  np.testing.assert_array_equal(
    phrase_similarity.similarities(read, model.table),
    phrase_similarity.similarities(similar, model.table),
  )
  foreign = dataclasses.replace(
    model.table, source_words=model.table.target_words
  )
  with pytest.raises(InputError, match="no source word of the grammar"):
    sentence_models.read_all([path], foreign)
  values = similar.to_values()
  for name, change, message in (
    ("similarity_source_encoder", lambda a: a[:-1], "wrong type or shape"),
    ("similarity_target_vectors", lambda a: a[:-1], "wrong type or shape"),
    ("similarity_source_vectors", lambda a: a * np.float32("nan"), "no usable"),
    ("similarity_unit", lambda a: a + 2, "neither 0 nor 1"),
  ):
    with pytest.raises(InputError, match=message):
      phrase_similarity.from_values(values | {name: change(values[name])})
