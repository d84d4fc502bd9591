"""Rule bigrams of derivations against a walk through the trees."""

import collections

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode import nbest, translation_forest
from jaxmt.decode.chart import beam_forest, decoder, search
from jaxmt.features import local_features
from jaxmt.features.rule_bigrams import rule_bigrams
from jaxmt.grammar.table import Kind
from tests.features import rule_templates_test as rules
from tests.features.selection_test import counted
from tests.reference import chart_cases


def name(table, words, rule):
  label, left, right = local_features.spell_rule(table, words, rule)
  return f"{label}>{'_'.join(left)}/{'_'.join(right)}"


def is_glue(table, rule):
  return rule < len(table) and table.kind[rule] == Kind.GLUE


def test_parents_and_children():
  # Glue over [rule 0 over a copied word]; rule 2 over rules 3 and 1.
  table, words = rules.TABLE, ("zzz",)
  rule = np.array([5, 0, len(table) + 1, 2, 3, 1])
  child = np.array([[1, -1], [2, -1], [-1, -1], [4, 5], [-1, -1], [-1, -1]])
  rows, names = rule_bigrams(
    table, words, offsets=np.array([0, 3, 3, 6]), rule=rule, child=child
  )
  of = lambda one: name(table, words, one)
  assert of(len(table) + 1) == "X>zzz/zzz"
  assert counted(rows, names) == [
    {f"RuleBi:{of(0)}|X>zzz/zzz": 1},
    {},
    {f"RuleBi:{of(2)}|{of(3)}": 1, f"RuleBi:{of(2)}|{of(1)}": 1},
  ]


def test_they_are_those_of_the_trees():
  made = chart_cases.random_case(
    3, order=2, arity=2, sentences=4, rules=30, tree_rules=0
  )
  model, source = chart_cases.to_model(made, arity=2)
  config = search.make_config(beam=16, pop=64, forest=True)
  seen = 0
  for batch in decoder.decode(
    model, source, config=decoder.DecodeConfig(search=config)
  ):
    for part in batch:
      forest = beam_forest.extract(model, part)
      lists = translation_forest.kbest(model, part.source, forest, size=5)
      every = translation_forest.derivations(forest, lists)
      expected = [collections.Counter() for _ in range(len(every))]
      for row, bag in enumerate(expected):
        for node in range(every.offsets[row], every.offsets[row + 1]):
          for below in every.child[node][every.child[node] >= 0].tolist():
            pair = (int(every.rule[node]), int(every.rule[below]))
            if not any(is_glue(model.table, rule) for rule in pair):
              words = part.source.words
              one, two = (name(model.table, words, rule) for rule in pair)
              bag[f"RuleBi:{one}|{two}"] += 1
              seen += 1
      assert counted(*nbest.bigram_rows(model, part.source, every)) == expected
  assert seen >= 5
  assert models.unknown_weights(model, {"RuleBi:a|b": 1.0}) == []
