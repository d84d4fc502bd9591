"""Binned probabilities against their definition, and in a search."""

import dataclasses

import numpy as np

from jaxmt.features import feature_keys, rule_templates, value_bins
from tests.features import rule_templates_test as rules

COLUMNS = ("target_given_source", "lex_target_given_source", "mine")


def table():
  rng = np.random.default_rng(0)
  logs = -rng.uniform(0, 14, (len(rules.TABLE), 3)).astype(np.float32)
  logs[0, :2] = 0.0, -3.0
  logs[1, 0] = 0.2  # no logarithm of a probability: still in the first bin
  return dataclasses.replace(rules.TABLE, features=logs, feature_names=COLUMNS)


def test_each_value_is_in_one_bin():
  own = table()
  some = np.array([0, 1, 3])
  found = value_bins.values(own, some, ())
  names = value_bins.names()
  assert found.shape == (3, len(names)) and len(set(names)) == len(names)
  for row, rule in enumerate(some.tolist()):
    expected = set()
    for column, name in enumerate(COLUMNS[:2]):
      which = int(min(max(-own.features[rule, column] // 1, 0), 9))
      expected.add(f"Bin_{name}_{which}")
    there = {names[k] for k in np.flatnonzero(found[row])}
    assert there == expected and found[row].max() == 1
  assert "Bin_lex_target_given_source_3" in {
    names[k] for k in np.flatnonzero(found[0])
  }


def test_weights_of_bins_say_that_there_are_bins():
  weights = {"Bin_target_given_source_0": 0.5, "hint": 1.0}
  assert rule_templates.config_of(weights).names == ("bins",)
  assert rule_templates.is_template_weight("Bin_target_given_source_9")
  assert not rule_templates.is_template_weight("Bin_target_given_source_10")


def test_scores_are_those_of_the_bins():
  own = table()
  config = rule_templates.parse(["bins"])
  templates = rule_templates.make_templates(own, config)
  text, _ = rules.make_text(templates)
  rng = np.random.default_rng(1)
  weights = dict(
    zip(value_bins.names(), rng.normal(size=70).tolist(), strict=True)
  )
  found = rule_templates.application_scores(
    templates,
    text,
    rules.applications(),
    feature_keys.make_table(weights),
  )
  names = value_bins.names()
  for place, (rule, *_) in enumerate(rules.APPLICATIONS):
    expected = 0.0
    if rule < 5:  # neither glue, the goal nor a copied word
      row = value_bins.values(own, np.array([rule]), ())[0]
      expected = sum(weights[names[k]] for k in np.flatnonzero(row))
    np.testing.assert_allclose(found[place], expected, atol=1e-9)
