"""Which sentence counts how much for which rule."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmt.grammar import provenance
from tests.grammar import rule_strategies as rules
from tests.grammar.estimate_test import extracted


@settings(max_examples=50)
@given(rules.corpora(most=4), rules.hiero_options(), st.data())
def test_provenance_gives_the_counts_back(corpus, options, data):
  found = extracted(corpus, options=options)
  origin, made = found.provenance, found.table
  assert len(origin) == len(corpus)
  ones = np.ones(len(corpus))
  again = provenance.recount(origin, ones, size=len(made))
  assert again.tolist() == made.counts.tolist()
  # A weight of 0 or 2 is leaving a sentence out, or having it twice.
  weights = data.draw(
    st.lists(
      st.sampled_from([0, 1, 2]), min_size=len(corpus), max_size=len(corpus)
    )
  )
  weighted = provenance.recount(origin, np.array(weights), size=len(made))
  other = [
    pair
    for pair, weight in zip(corpus, weights, strict=True)
    for _ in range(weight)
  ]
  expected = rules.readable(extracted(other, options=options).table)
  for rule, key in enumerate(rules.readable(made)):
    assert weighted[rule] == expected.get(key, (0,))[0]


@settings(max_examples=40)
@given(rules.corpora(most=4), st.data())
def test_provenance_follows_a_selection(corpus, data):
  found = extracted(corpus)
  size = len(found.table)
  kept = np.array(
    data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool
  )
  part = provenance.select(found.provenance, kept)
  counts = provenance.recount(part, np.ones(len(corpus)), size=kept.sum())
  assert counts.tolist() == found.table.counts[kept].tolist()
