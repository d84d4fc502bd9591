"""Alignment error rate and its relatives."""

import pytest

from jaxmt.align import link_scores
from jaxmt.text import links


def score(predicted, sure, possible=None):
  return link_scores.score_links(
    links.parse_links(predicted),
    links.parse_links(sure),
    None if possible is None else links.parse_links(possible),
  )


def test_by_hand():
  # A = {0-0, 1-1, 1-2 | 0-1}, S = {0-0, 1-1 | 0-0, 1-1}, P adds {1-2}.
  found = score(["0-0 1-1 1-2", "0-1"], ["0-0 1-1", "0-0 1-1"], ["1-2", ""])
  assert found.precision == pytest.approx(3 / 4)
  assert found.recall == pytest.approx(2 / 4)
  assert found.aer == pytest.approx(1 - (2 + 3) / (4 + 4))
  assert found.f1 == pytest.approx(2 * 0.75 * 0.5 / 1.25)


def test_sure_links_alone_make_aer_one_minus_f1():
  found = score(["0-0 1-0 2-2"], ["0-0 2-2 3-3 3-4"])
  assert found.aer == pytest.approx(1 - found.f1)


def test_ends_of_the_scale():
  assert score(["0-0", "1-1"], ["0-0", "1-1"]).aer == 0.0
  assert score(["0-0", ""], ["", "0-0"]).aer == 1.0
  assert score(["0-0"], ["0-1"]).f1 == 0.0
  assert score([""], [""]).aer == 0.0


def test_rows_must_agree():
  with pytest.raises(ValueError, match="rows"):
    score(["0-0"], ["0-0", ""])
