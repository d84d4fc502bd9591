"""What happened in an epoch: updates, where they were, how large.

A tally is a table of sums, so that tallies of minibatches add up: a row for the
source words of an update's group (rows beyond count as the last), columns
updates, valid updates, violation, updates towards a reference, words by which
d+ is longer, norm. Its last row has sentences, sentences whose best hypothesis
is right, and unreached ones.
"""

import itertools
from typing import Any

import numpy as np

from jaxmt.train.violation import minibatch

Tally = np.ndarray
_SPANS = 64
_COLUMNS = (
  *(minibatch.UPDATED, minibatch.VALID, minibatch.VIOLATION),
  *(minibatch.TOWARDS, minibatch.WORDS, minibatch.SIZE),
)


def empty() -> Tally:
  """Returns the tally of no sentences, float64 `[66, 6]`."""
  return np.zeros((_SPANS + 2, len(_COLUMNS)))


def add(tally: Tally, stats: np.ndarray) -> Tally:
  """Returns a tally with further sentences.

  Args:
    tally: of sentences so far.
    stats: `minibatch.Contribution.stats`, `[B, 10]`.
  """
  out = tally.copy()
  updated = stats[:, minibatch.UPDATED] > 0
  span = np.minimum(stats[updated, minibatch.SPAN].astype(np.int64), _SPANS)
  np.add.at(out, span, stats[updated][:, _COLUMNS])
  right = stats[:, minibatch.RIGHT].sum()
  lost = len(stats) - stats[:, minibatch.REACHED].sum()
  out[-1, :3] += [len(stats), right, lost]
  return out


def describe(tally: Tally) -> dict[str, Any]:
  """Returns the record of a tally.

  "span_shares" are shares of the updates by source words of their groups: 1,
  2, 3 to 4, 5 to 8, 9 to 16, 17 and more. "towards_reference" is the share of
  updates whose d+ is y-good, "longer" how many target words d+ has more than d-
  on average, "size" the mean norm of Φ(d+) - Φ(d-).
  """
  spans, (sentences, right, lost) = tally[:-1], tally[-1, :3]
  updates, valid, violation, towards, longer, size = spans.sum(0)
  mean = lambda value: round(float(value / max(updates, 1)), 4)
  bounds = (0, 2, 3, 5, 9, 17, len(spans))
  shares = [
    round(float(spans[low:high, 0].sum() / max(updates, 1)), 4)
    for low, high in itertools.pairwise(bounds)
  ]
  lengths = np.arange(len(spans))
  return {
    "updates": int(updates),
    "update_share": round(float(updates / max(sentences, 1)), 4),
    "valid_share": mean(valid),
    "right_share": round(float(right / max(sentences, 1)), 4),
    "unreached": int(lost),
    "violation": mean(violation),
    "towards_reference": mean(towards),
    "longer": mean(longer),
    "size": mean(size),
    "span": round(float(lengths @ spans[:, 0] / max(updates, 1)), 3),
    "span_shares": shares,
  }
