"""The registry of static features: names, shapes, faults."""

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.grammar import estimate, lexical
from jaxmt.grammar import table as tables
from jaxmt.grammar.extract import static_features
from jaxmt.grammar.extract.static_features import StaticFeature
from tests.grammar import rule_strategies as rules


def test_standard_columns_come_first_and_once():
  standard = static_features.find(())
  assert static_features.column_names(standard) == (
    *estimate.THETA,
    *lexical.NAMES,
    *estimate.INDICATORS,
  )
  assert static_features.find(("indicators",)) == standard


def test_start_weights_are_those_of_columns():
  columns = static_features.column_names(static_features.find(()))
  assert set(static_features.start_weights()) <= set(columns)


def test_names_are_taken_once():
  values = lambda rules, corpus: np.zeros((len(rules), 1))
  for name, column in (("indicators", "new"), ("new", "glue")):
    feature = StaticFeature(name=name, columns=(column,), values=values)
    with pytest.raises(ValueError, match="exists already"):
      static_features.register(feature)


def test_unknown_names():
  with pytest.raises(InputError, match="unknown static feature 'lenght'"):
    static_features.find(("lenght",))


def test_values_of_another_shape():
  feature = StaticFeature(
    name="flat",
    columns=("flat",),
    values=lambda rules, corpus: np.zeros(len(rules)),
  )
  table = tables.glue_rules(rules.SOURCE_WORDS, rules.TARGET_WORDS)
  with pytest.raises(ValueError, match="static feature 'flat': values"):
    static_features.block_values([feature], table, None)
