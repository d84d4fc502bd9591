"""A scorer of rules: many sentences together, and one by one."""

import dataclasses

import jax
import numpy as np

from jaxmt.features import rule_scores
from jaxmt.train import scorer_training
from jaxmt.train.scorer_training import ScorerOptions, TrainingText
from tests.reference import tiny_training as tiny

LINES = ["das haus", "das haus ist alt", "ein", "das kleine haus ist alt"]


def drawn(model):
  text = TrainingText(lines=LINES, references=[])
  options = ScorerOptions(size=3, hidden=4, min_count=1)
  scorer = scorer_training.start_model(model, text, options)
  rng = np.random.default_rng(0)
  draw = lambda leaf: rng.normal(0, 0.7, leaf.shape).astype(np.float32)
  return dataclasses.replace(
    scorer, parameters=jax.tree.map(draw, scorer.parameters)
  )


def test_scores_of_many_sentences_are_those_of_the_network():
  model, _ = tiny.make()
  scorer, table = drawn(model), model.table
  sentences = [tuple(line.split()) for line in LINES]
  rng = np.random.default_rng(1)
  rules = rng.integers(0, len(table), 50)
  rows = np.sort(rng.integers(0, len(LINES), 50))
  found = scorer.batch(table, rules, rows, sentences)
  want = scorer.module.apply(
    scorer.parameters,
    *rule_scores.rule_words(scorer, table, rules),
    rule_scores.sentence_words(scorer, sentences),
    rows,
  )
  np.testing.assert_allclose(found, want, atol=1e-5)
  assert np.abs(found).max() > 0.1
  # Not a bit depends on what is computed together, or was before.
  for item in range(50):
    fresh = drawn(model)
    alone = fresh.values(table, rules[item : item + 1], sentences[rows[item]])
    assert alone[0] == found[item]
