"""How well predicted links agree with gold links.

Counts are additive over sentences; ratios are taken once. The formulas are in
`jaxmt.metrics.link_accuracy`.
"""

import dataclasses

from jaxmt.metrics import link_accuracy
from jaxmt.text.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinkScores:
  """Counts of links.

  Attributes:
    predicted: |A|.
    sure: |S|.
    predicted_sure: |A & S|.
    predicted_possible: |A & P|.
  """

  predicted: int
  sure: int
  predicted_sure: int
  predicted_possible: int

  @property
  def precision(self) -> float:
    """The share of predicted links that are possible; 1 of none."""
    return _ratio(self.predicted_possible, self.predicted)

  @property
  def recall(self) -> float:
    """The share of sure links that were predicted; 1 of none."""
    return _ratio(self.predicted_sure, self.sure)

  @property
  def f1(self) -> float:
    """The harmonic mean of precision and recall."""
    total = self.precision + self.recall
    return 2.0 * self.precision * self.recall / total if total else 0.0

  @property
  def aer(self) -> float:
    """The alignment error rate."""
    right = self.predicted_sure + self.predicted_possible
    return 1.0 - _ratio(right, self.predicted + self.sure)


def _ratio(part: int, whole: int) -> float:
  return part / whole if whole else 1.0


def score_links(
  predicted: Ragged, sure: Ragged, possible: Ragged | None = None
) -> LinkScores:
  """Compares links (source, target) of the same sentence pairs.

  Args:
    predicted: int32 pairs, N rows.
    sure: gold links, N rows.
    possible: further gold links, N rows, with the sure ones or without; None
      if all gold links are sure.
  """
  counts = link_accuracy.statistics(predicted, sure, possible).sum(0)
  return LinkScores(
    predicted=int(counts[0]),
    sure=int(counts[1]),
    predicted_sure=int(counts[2]),
    predicted_possible=int(counts[3]),
  )
