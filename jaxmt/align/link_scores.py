"""How well predicted links agree with gold links.

Och & Ney (2003): with A predicted, S sure and P possible links, S a
subset of P,

  precision = |A & P| / |A|,   recall = |A & S| / |S|,
  AER = 1 - (|A & S| + |A & P|) / (|A| + |S|).

Counts are additive over sentences; ratios are taken once.
"""

import dataclasses

import numpy as np

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
  others = [links for links in (sure, possible) if links is not None]
  for links in others:
    if len(links) != len(predicted):
      raise ValueError(f"{len(predicted)} and {len(links)} rows of links")
  found = _keys(predicted)
  surely = _keys(sure)
  allowed = np.unique(np.concatenate([_keys(links) for links in others]))
  return LinkScores(
    predicted=len(found),
    sure=len(surely),
    predicted_sure=len(np.intersect1d(found, surely, assume_unique=True)),
    predicted_possible=len(np.intersect1d(found, allowed, assume_unique=True)),
  )


def _keys(links: Ragged) -> np.ndarray:
  """Returns one number per link, rising, without repetition."""
  row = np.repeat(np.arange(len(links)), links.lengths)
  pairs = links.flat.astype(np.int64).reshape(-1, 2)
  return np.unique((row << 40) + (pairs[:, 0] << 20) + pairs[:, 1])
