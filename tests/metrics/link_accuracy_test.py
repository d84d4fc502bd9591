"""Metrics of links equal the scores of links."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.align import link_scores
from jaxmt.metrics import link_accuracy


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
