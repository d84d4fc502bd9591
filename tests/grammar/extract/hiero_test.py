"""Hiero extraction against its definition."""

import numpy as np
import pytest
from hypothesis import example, given, settings

from jaxmt.grammar import table, validation
from jaxmt.grammar.extract import extraction, hiero, packed_rules
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions
from jaxmt.runtime.runner import Runner
from jaxmt.text.vocabulary import UNK
from tests.grammar import rule_strategies as rules
from tests.reference import hiero as reference

SERIAL = Runner(kind="serial", workers=1)


def extract(corpus, options, **count):
  source, target, links = rules.encode(corpus)
  return extraction.extract_hiero(
    source,
    target,
    links,
    source_words=rules.SOURCE_WORDS,
    target_words=rules.TARGET_WORDS,
    options=options,
    count=CountOptions(**count),
    runner=SERIAL,
  )


@settings(max_examples=500)
@given(rules.corpora(), rules.hiero_options())
@example([(("a", "b", "c"), ("z", "w"), ((0, 1), (2, 0)))], HieroOptions())
def test_equals_the_definition(corpus, options):
  found = extract(corpus, options).table
  validation.validate(found)
  expected = reference.extract(corpus, options)
  view = rules.readable(found)
  assert view.keys() == expected.keys()
  for key, (count, _, links) in expected.items():
    # A fractional count is rounded to a multiple of 2^-32.
    assert view[key][0] == pytest.approx(float(count), abs=1e-7)
    if not options.fractional:
      assert view[key] == (count, links)


@settings(max_examples=100)
@given(rules.corpora(most=4), rules.hiero_options())
def test_pruning_drops_rare_rules_but_not_word_pairs(corpus, options):
  found = rules.readable(extract(corpus, options, min_count=2).table)
  expected = {
    key
    for key, (_, occurrences, _) in reference.extract(corpus, options).items()
    if occurrences >= 2
    or (len(key[0]) == len(key[1]) == 1 and key[0][0] != ("X", 0))
  }
  assert found.keys() == expected


def test_a_worked_case():
  # 0-0 and 1-2 linked, target word 1 between them is not.
  corpus = [(("a", "b"), ("v", "w", "x"), ((0, 0), (1, 2)))]
  found = extract(corpus, HieroOptions()).table
  texts = [table.rule_text(found, rule) for rule in range(len(found))]
  assert sorted(texts) == sorted(
    [
      "X -> a | v",
      "X -> b | x",
      "X -> a b | v w x",
      "X -> X0 b | X0 w x",
      "X -> a X0 | v w X0",
      "S -> X0 | X0",
      "S -> S0 X1 | S0 X1",
      "X -> <unk> | <unk>",
    ]
  )


def test_fractional_counts_of_one_phrase_pair_sum_to_one():
  corpus = [(tuple("abcab"), tuple("vwxvw"), tuple((i, i) for i in range(5)))]
  options = HieroOptions(fractional=True)
  initial = reference.initial_pairs(5, 5, corpus[0][2], options)
  found = extract(corpus, options).table
  assert found.counts.sum() == pytest.approx(len(initial), abs=1e-6)


def test_unknown_words_are_in_no_rule():
  source, target, links = rules.encode(
    [(("a", "b"), ("v", "w"), ((0, 0), (1, 1)))]
  )
  source.flat[0] = UNK
  found = hiero.extract_rows(source, target, links, HieroOptions())
  assert len(found.rows) == 2  # b and X b
  assert UNK not in packed_rules.unpack(found.rows).source.flat


@pytest.mark.parametrize(
  "wrong",
  [
    {"max_phrase": 0},
    {"max_nonterminals": 3},
    {"max_words": -1},
    {"min_hole": 0},
  ],
)
def test_senseless_options_are_refused(wrong):
  source, target, links = rules.encode([])
  with pytest.raises(ValueError, match=next(iter(wrong))):
    hiero.extract_rows(source, target, links, HieroOptions(**wrong))


def test_rows_must_agree():
  source, _, links = rules.encode([(("a",), ("v",), ((0, 0),))])
  other, _, _ = rules.encode([])
  with pytest.raises(ValueError, match="1 source, 0 target, 1 link"):
    hiero.extract_rows(source, other, links, HieroOptions())


def test_long_rows_grow_the_buffers():
  size = 300
  source, target, links = rules.encode(
    [(("a",) * size, ("v",) * size, tuple((i, i) for i in range(size)))]
  )
  options = HieroOptions(
    max_phrase=size, max_target_phrase=size, max_words=size, max_nonterminals=0
  )
  found = hiero.extract_rows(source, target, links, options)
  assert len(found.rows) == size * (size + 1) // 2
  assert np.diff(found.rows.offsets).max() == 3 * size + 5
