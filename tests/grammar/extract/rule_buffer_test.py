"""The buffer of extracted rules against a list."""

import numpy as np
import pytest

from jaxmt.grammar.extract import rule_buffer
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT


@pytest.mark.parametrize("fractional", [False, True])
def test_rows_are_those_that_were_added(fractional):
  rng = np.random.default_rng(0)
  buffer, size = rule_buffer.new_buffer()
  expected, sentences = [], []
  for sentence in range(300):
    before = int(size[1])
    for _ in range(20):
      row = rng.integers(-9, 9, rng.integers(0, 40)).tolist()
      buffer = rule_buffer.with_room(buffer, size, len(row))
      start = int(size[0])
      buffer[0][start : start + len(row)] = row
      rule_buffer.add_row(buffer, size, start + len(row), sentence)
      if row:  # an empty row is none
        expected.append(row)
        sentences.append(sentence)
    rule_buffer.set_shares(buffer, size, before, fractional)
  arrays = rule_buffer.buffer_arrays(buffer, size)
  found = rule_buffer.emission(arrays, first=7)
  assert [
    row.tolist() for row in map(found.rows.__getitem__, range(len(expected)))
  ] == expected
  assert (found.sentences == np.array(sentences) + 7).all()
  rows = np.bincount(sentences)
  share = COUNT_UNIT / rows[sentences] if fractional else COUNT_UNIT
  assert (np.abs(found.shares - share) <= 0.5).all()
