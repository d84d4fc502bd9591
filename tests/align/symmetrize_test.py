"""Symmetrisation against sets, its laws, and atools' own output."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from jaxmt.align import symmetrize
from jaxmt.text import links, ragged
from tests.align import em_test
from tests.reference import alignment as reference

link = strategies.tuples(strategies.integers(0, 6), strategies.integers(0, 6))
link_set = strategies.sets(link, max_size=14)
case = strategies.lists(strategies.tuples(link_set, link_set), max_size=5)


def as_links(rows):
  flat = [np.array(sorted(row), np.int32).reshape(-1, 2) for row in rows]
  lengths = np.array([len(row) for row in rows], np.int64)
  offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
  return ragged.Ragged(
    flat=np.concatenate([np.zeros((0, 2), np.int32), *flat]), offsets=offsets
  )


def as_sets(found):
  return [{tuple(pair) for pair in row.tolist()} for row in found]


@pytest.mark.parametrize("method", symmetrize.METHODS)
@hypothesis.given(case)
def test_equals_the_definition(method, rows):
  forward = as_links([row for row, _ in rows])
  backward = as_links([row for _, row in rows])
  found = symmetrize.symmetrize(forward, backward, method=method)
  if method in ("forward", "backward"):
    expected = [row[method == "backward"] for row in rows]
  else:
    expected = [reference.symmetrize(*row, method) for row in rows]
  assert as_sets(found) == expected
  np.testing.assert_array_equal(found.flat, links.normalize(found).flat)


@hypothesis.given(case)
def test_methods_lie_between_intersection_and_union(rows):
  forward = as_links([row for row, _ in rows])
  backward = as_links([row for _, row in rows])
  found = {
    method: as_sets(symmetrize.symmetrize(forward, backward, method=method))
    for method in symmetrize.METHODS
  }
  for row in range(len(rows)):
    grown = found["grow-diag"][row]
    assert found["intersect"][row] <= grown <= found["union"][row]
    for method in ("grow-diag-final", "grow-diag-final-and"):
      assert grown <= found[method][row] <= found["union"][row]


def test_equals_atools():
  # `atools -c grow-diag-final-and` of the links that fast_align printed.
  found = symmetrize.symmetrize(
    links.parse_links(em_test.FORWARD),
    links.parse_links(em_test.BACKWARD),
    method="grow-diag-final-and",
  )
  assert links.format_links(found) == [
    "0-0 1-1 2-2 3-3 4-4 5-5",
    "0-0 1-1 2-2 3-3 4-4",
    "0-0 1-1 2-2 3-3 4-4 5-5",
    "0-0 1-1 2-2 3-3",
    "0-0 1-3 2-1 3-2 4-4 5-5",
    "0-0 1-1 2-2 3-3",
    "0-0 1-1 2-2 3-4 3-5 4-3",
    "0-0 1-1 2-2 3-3 4-4",
    "0-0 1-1 2-2 3-3 3-4 4-4 5-4 6-6",
    "0-0 1-1 2-6 3-4 4-2 5-3",
    "0-0 1-1 2-2 3-3 3-4 4-5 5-5",
    "0-0 1-1 2-2 3-3 3-4 4-5 5-5",
    "0-0",
  ]


def test_order_decides_between_rivals():
  # 2-1 and 2-3 both touch an accepted link and would cover source 2: the first
  # by (source, target) wins, then the other covers nothing new.
  forward = links.parse_links(["1-1 2-3 3-3"])
  backward = links.parse_links(["1-1 2-1 3-3"])
  for method, expected in (
    ("grow-diag", "1-1 2-1 3-3"),
    ("intersect", "1-1 3-3"),
    ("union", "1-1 2-1 2-3 3-3"),
  ):
    found = symmetrize.symmetrize(forward, backward, method=method)
    assert links.format_links(found) == [expected]


def test_bad_arguments():
  one, two = links.parse_links(["0-0"]), links.parse_links(["0-0", ""])
  with pytest.raises(ValueError, match="'grow'"):
    symmetrize.symmetrize(one, one, method="grow")
  with pytest.raises(ValueError, match="1 forward and 2 backward"):
    symmetrize.symmetrize(one, two, method="union")
