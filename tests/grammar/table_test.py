"""The rule table: validation, selection, concatenation, canonical order."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.grammar import table, validation
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
from tests.grammar import rule_strategies as rules


def small(**changes):
  """Two valid rules: NP -> a X0 b | X0 z and X -> a | v."""
  made = table.make_table(
    labels=("X", "S", "NP"),
    source_words=rules.SOURCE_WORDS,
    target_words=rules.TARGET_WORDS,
    lhs=np.array([2, 0]),
    source=ragged.from_rows([[4, -1, 5], [4]]),
    target=ragged.from_rows([[-1, 8], [4]]),
    links=Ragged(
      flat=np.array([[2, 1], [0, 0]], np.int16), offsets=np.array([0, 1, 2])
    ),
    counts=np.array([2.0, 1.0]),
    feature_names=("one",),
  )
  return dataclasses.replace(made, **changes)


def test_rules_read_well():
  made = small()
  validation.validate(made)
  assert table.rule_text(made, 0) == "NP -> a X0 b | X0 z"
  assert table.rule_text(made, 1) == "X -> a | v"
  assert table.arity(made).tolist() == [1, 0]
  assert rules.sites(made) == [[0], []]


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"lhs": np.array([3, 0], np.int32)}, "lhs: rule 0"),
    ({"kind": np.array([1, 4], np.int8)}, "kind: rule 1"),
    ({"counts": np.array([-1.0, 0.0])}, "counts: rule 0"),
    ({"counts": np.array([0.0, np.nan])}, "counts: rule 1"),
    ({"counts": np.zeros(3)}, "counts: has 3 of 2"),
    ({"features": np.full((2, 1), np.nan, np.float32)}, "features: rule 0"),
    ({"features": np.zeros((2, 2), np.float32)}, "1 names"),
    ({"labels": ("S", "X", "NP")}, "labels: must start"),
    ({"labels": ("X", "S", "S")}, "stands twice"),
    ({"source": ragged.from_rows([[4, -4, 5], [4]])}, "source: rule 0"),
    ({"source": ragged.from_rows([[4, -1, 5], [99]])}, "source: rule 1"),
    ({"source": ragged.from_rows([[4, -1, 5], []])}, "source: rule 1"),
    ({"target": ragged.from_rows([[-1, 8], [99]])}, "target: rule 1"),
    ({"target": ragged.from_rows([[-2, 8], [4]])}, "target: rule 0"),
    ({"target": ragged.from_rows([[-1, 8], [-1]])}, "target: rule 1"),
    ({"target": ragged.from_rows([[8, 8], [4]])}, "target: rule 0"),
    (
      {
        "source": ragged.from_rows([[-1, -1, 5], [4]]),
        "target": ragged.from_rows([[-1, -1], [4]]),
      },
      "target: rule 0 does not use",
    ),
    ({"source": ragged.from_rows([[4]])}, "source_offsets: do not"),
    ({"fragments": ragged.from_rows([[-5], []])}, "fragments: rule 0"),
  ],
)
def test_broken_promises_are_named(changes, message):
  with pytest.raises(ValueError, match=message):
    validation.validate(small(**changes))


@pytest.mark.parametrize("link", [[3, 1], [-1, 0], [2, 2], [1, 1], [2, 0]])
def test_links_must_join_words_of_the_rule(link):
  links = Ragged(flat=np.array([link], np.int16), offsets=np.array([0, 1, 1]))
  with pytest.raises(ValueError, match="links: rule 0"):
    validation.validate(small(links=links))


@settings(max_examples=60)
@given(rules.tables(), rules.tables(), st.randoms(use_true_random=False))
def test_concatenation_keeps_every_rule(one, two, random):
  # The second table under other ids: words, labels and features shuffled.
  words = list(two.source_words.words[len(SPECIALS) :])
  random.shuffle(words)
  other = table.concatenate(
    [
      table.make_table(
        labels=("X", "S", "VP", "QP"),
        source_words=Vocabulary(words=(*SPECIALS, *words)),
        target_words=two.target_words,
        source=ragged.from_rows([]),
        target=ragged.from_rows([]),
        feature_names=("two", "three"),
      ),
      two,
    ]
  )
  both = table.concatenate([one, other])
  validation.validate(both)
  assert len(both) == len(one) + len(two)
  for rule in range(len(one)):
    assert table.rule_text(both, rule) == table.rule_text(one, rule)
  for rule in range(len(two)):
    assert table.rule_text(both, len(one) + rule) == table.rule_text(two, rule)
  assert both.feature_names == ("one", "two", "three")
  back = table.feature(both, "two")
  assert back.tolist() == [*one.features[:, 1], *two.features[:, 1]]
  assert not table.feature(both, "three").any()
  labels = [both.labels[label] for label in both.lhs]
  assert labels[len(one) :] == [two.labels[label] for label in two.lhs]
  codes = both.fragments.flat[len(one.fragments.flat) :]
  assert [_name(both, code) for code in codes] == [
    _name(two, code) for code in two.fragments.flat
  ]


def _name(made, code):
  if code >= 0:
    return made.source_words.words[code]
  return ")" if code == table.CLOSE else "(" + made.labels[-2 - code]


@settings(max_examples=60)
@given(rules.tables(), st.data())
def test_selection_follows_the_rows(made, data):
  chosen = data.draw(
    st.lists(st.integers(0, len(made) - 1)) if len(made) else st.just([])
  )
  part = table.select(made, np.array(chosen, np.int64))
  assert [table.rule_text(part, rule) for rule in range(len(part))] == [
    table.rule_text(made, rule) for rule in chosen
  ]
  assert part.counts.tolist() == made.counts[chosen].tolist()
  start = data.draw(st.integers(0, len(made)))
  stop = data.draw(st.integers(start, len(made)))
  assert rules.same(
    table.slice_table(made, start, stop),
    table.select(made, np.arange(start, stop)),
  )


def test_features_are_replaced_or_appended():
  made = table.with_features(
    small(), ("two", "one"), np.array([[1, 2], [3, 4]])
  )
  assert made.feature_names == ("one", "two")
  assert made.features.tolist() == [[2, 1], [4, 3]]
  with pytest.raises(ValueError, match="no feature 'three'"):
    table.feature(made, "three")
  with pytest.raises(ValueError, match="values"):
    table.with_features(made, ("one",), np.zeros((1, 1)))


def test_glue_rules_are_valid():
  glue = table.glue_rules(rules.SOURCE_WORDS, rules.TARGET_WORDS)
  validation.validate(glue)
  assert [table.rule_text(glue, rule) for rule in range(3)] == [
    "S -> X0 | X0",
    "S -> S0 X1 | S0 X1",
    "X -> <unk> | <unk>",
  ]
