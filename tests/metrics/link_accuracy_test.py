"""Metrics of links equal the scores of links."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.align import link_scores
from jaxmt.metrics import link_accuracy
from jaxmt.text import links, ragged


@pytest.mark.parametrize("counts", [(7, 6, 4, 5), (3, 0, 0, 1), (0, 2, 0, 0)])
def test_equal_link_scores(counts):
  scores = link_scores.LinkScores(
    predicted=counts[0],
    sure=counts[1],
    predicted_sure=counts[2],
    predicted_possible=counts[3],
  )
  statistics = np.array(counts, np.float64)
  if scores.sure and scores.predicted:
    assert link_accuracy.f1(statistics) == pytest.approx(scores.f1)
  assert link_accuracy.aer(statistics) == pytest.approx(scores.aer)
  assert float(link_accuracy.aer(jnp.asarray(statistics))) == pytest.approx(
    scores.aer, abs=1e-6
  )


def test_text_has_no_statistics_of_links():
  with pytest.raises(ValueError, match="not from text"):
    link_accuracy.METRICS["aer"].prepare(None)


def test_classes_of_frequency():
  """A link is in the class of its rarer word; classes add up to the whole."""
  predicted = links.parse_links(["0-0 1-1 1-2", "0-1"])
  sure, possible = links.parse_gold(["0-0 1?1 1-2", "0-0"])
  frequencies = (
    ragged.from_rows([np.array([9, 2]), np.array([50])]),
    ragged.from_rows([np.array([1, 30, 7]), np.array([3, 40])]),
  )
  rows = link_accuracy.by_frequency(
    predicted, sure, possible, frequencies, [1, 2, 10]
  )
  table = {row["words"]: row for row in rows}
  assert list(table) == ["to 1", "to 2", "to 10", "over 10"]
  # 0-0 has words of 9 and 1; 1-1 of 2 and 30; 1-2 of 2 and 7.
  assert table["to 1"]["predicted"] == 1 and table["to 1"]["recall"] == 1.0
  assert table["to 2"]["predicted"] == 2 and table["to 2"]["precision"] == 1.0
  assert table["to 2"]["sure"] == 1
  # The second line: 0-1 (50, 40) is wrong, the sure 0-0 (50, 3) is missed.
  assert table["over 10"]["precision"] == 0.0
  assert (table["to 10"]["sure"], table["to 10"]["recall"]) == (1, 0.0)
  assert sum(row["predicted"] for row in rows) == len(predicted.flat)
  assert sum(row["sure"] for row in rows) == len(sure.flat)
