"""Reports of links against gold."""

import pytest

from jaxmt.align import gold_report, link_scores
from jaxmt.text import links

PREDICTED = ["0-0 1-1 1-2", "0-0 2-0", "0-1"]
GOLD = ["0-0 1-1 1?2", "0-0 2-0 1-1", "0-0"]


def test_scores_and_kinds():
  predicted = links.parse_links(PREDICTED)
  sure, possible = links.parse_gold(GOLD)
  report = gold_report.evaluate(
    predicted,
    sure,
    possible,
    source_lengths=[2, 3, 1],
    target_lengths=[3, 2, 2],
    samples=200,
  )
  scores = link_scores.score_links(predicted, sure, possible)
  assert report["aer"] == pytest.approx(scores.aer, abs=1e-5)
  assert report["f1"] == pytest.approx(scores.f1, abs=1e-5)
  assert report["aer_margin"] > 0
  rows = {row["links"]: row for row in report["types"]}
  # 1-1: 0-0 of the first line is right, 0-1 of the last is wrong.
  assert (rows["1-1"]["predicted"], rows["1-1"]["precision"]) == (2, 0.5)
  # 1-n: 1-1 and the possible 1-2; only 1-1 is sure.
  assert (rows["1-n"]["predicted"], rows["1-n"]["precision"]) == (2, 1.0)
  assert (rows["1-n"]["sure"], rows["1-n"]["recall"]) == (1, 1.0)
  assert (rows["discontiguous"]["sure"], rows["discontiguous"]["recall"]) == (
    2,
    1.0,
  )
  # Unlinked: source 1 and target 1 of the second line, target 0 of the last.
  assert rows["null"]["predicted"] == 3 and rows["null"]["sure"] == 1
  assert rows["null"]["recall"] == 0.0


def test_gold_formats():
  sure, possible = links.parse_gold(["0-0 1?2", ""])
  assert sure[0].tolist() == [[0, 0]]
  assert possible[0].tolist() == [[0, 0], [1, 2]]
