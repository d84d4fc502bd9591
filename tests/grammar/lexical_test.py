"""Lexical weights against their definition."""

import numpy as np
import pytest
from hypothesis import given, settings

from jaxmt.grammar import lexical, table
from tests.grammar import rule_strategies as rules
from tests.grammar.estimate_test import extracted
from tests.reference import theta as reference


@settings(max_examples=60)
@given(rules.corpora(longest=5, most=4))
def test_lexical_weights_equal_their_definition(corpus):
  made = extracted(corpus).table
  tables = reference.lexicon(corpus)
  view = rules.readable(made)
  for rule, ((source, target), (_, links)) in enumerate(view.items()):
    expected = reference.lexical_weight(source, target, links, tables)
    found = [table.feature(made, name)[rule] for name in lexical.NAMES]
    assert found == pytest.approx(expected, abs=1e-4)


def test_unknown_word_pairs_have_a_floor():
  empty = lexical.estimate_lexicon(lexical.no_pairs(), source_size=4)
  made = extracted([(("a",), ("v",), ((0, 0),))]).table
  weights = lexical.lexical_weights(made.source, made.target, made.links, empty)
  assert weights[0] == pytest.approx(np.log([lexical.FLOOR] * 2))
