"""Rules as rows: packing, sorting, grouping."""

import dataclasses
import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.grammar.extract import packed_rules
from jaxmt.text import ragged
from tests.grammar import rule_strategies as rules


@settings(max_examples=100)
@given(rules.tables(most=12))
def test_canonical_order_is_that_of_the_rows(made):
  packed = packed_rules.pack(made)
  lists = [packed[rule].tolist() for rule in range(len(made))]
  ordered = packed_rules.pack(packed_rules.sort_canonical(made))
  assert [ordered[rule].tolist() for rule in range(len(made))] == sorted(lists)


@settings(max_examples=100)
@given(rules.tables())
def test_rows_hold_the_whole_rule(made):
  columns = packed_rules.unpack(packed_rules.pack(made))
  fields = {
    f.name: getattr(columns, f.name) for f in dataclasses.fields(columns)
  }
  assert rules.same(dataclasses.replace(made, **fields), made)


@settings(max_examples=100)
@given(
  st.lists(st.lists(st.integers(-3, 3), max_size=5), max_size=60),
  st.lists(st.integers(0, 60), max_size=4),
)
def test_sorting_rows_is_stable(lists, cuts):
  made = ragged.from_rows(lists)
  order = packed_rules.sort_rows(made.flat, made.offsets, np.zeros(0, np.int64))
  expected = sorted(range(len(lists)), key=lists.__getitem__)
  assert order.tolist() == expected
  # Merging stretches that are sorted already.
  bounds = sorted({0, len(lists), *(min(cut, len(lists)) for cut in cuts)})
  pieces = [sorted(lists[a:b]) for a, b in itertools.pairwise(bounds)]
  flat = [row for piece in pieces for row in piece]
  made = ragged.from_rows(flat)
  order = packed_rules.sort_rows(
    made.flat, made.offsets, np.array(bounds, np.int64)
  )
  assert order.tolist() == sorted(range(len(flat)), key=flat.__getitem__)


@given(st.lists(st.lists(st.integers(-300, 300), max_size=3), max_size=20))
def test_groups_are_equal_rows(lists):
  ids, first = packed_rules.group(ragged.from_rows(lists))
  assert [lists[first[number]] for number in ids] == lists
  assert len({tuple(row) for row in lists}) == len(first)
