"""Filtering keeps exactly the rules that can match."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar import table
from jaxmt.grammar.table import Kind
from jaxmt.text import ragged
from tests.grammar import rule_strategies as rules
from tests.reference import theta as reference

SYMBOLS = st.sampled_from([-1, -2, 4, 5, 6])


def with_sources(patterns):
  """A table of rules with these source sides."""
  return table.make_table(
    source_words=rules.SOURCE_WORDS,
    target_words=rules.TARGET_WORDS,
    source=ragged.from_rows(patterns),
    target=ragged.from_rows(
      [[-1 - k for k in range(sum(s < 0 for s in p))] for p in patterns]
    ),
  )


@settings(max_examples=300)
@given(
  st.lists(st.lists(SYMBOLS, min_size=1, max_size=6), max_size=6),
  st.lists(st.lists(st.sampled_from([1, 4, 5, 6]), max_size=9), max_size=3),
)
def test_rules_that_can_match_stay(patterns, sentences):
  found = filter_lib.usable(with_sources(patterns), ragged.from_rows(sentences))
  assert found.tolist() == [
    any(reference.matches(pattern, sentence) for sentence in sentences)
    for pattern in patterns
  ]


def test_glue_and_pass_through_always_stay():
  made = table.concatenate(
    [
      with_sources([[4], [5]]),
      table.glue_rules(rules.SOURCE_WORDS, rules.TARGET_WORDS),
    ]
  )
  kept = filter_lib.filter_table(made, ragged.from_rows([[5]]))
  assert [table.rule_text(kept, rule) for rule in range(len(kept))] == [
    "X -> b | ",
    "S -> X0 | X0",
    "S -> S0 X1 | S0 X1",
    "X -> <unk> | <unk>",
  ]
  assert np.count_nonzero(kept.kind == Kind.HIERO) == 1
