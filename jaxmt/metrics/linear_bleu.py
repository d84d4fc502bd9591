"""Linear BLEU: corpus BLEU to first order, seen from one sentence.

It works on BLEU's statistics (`jaxmt.metrics.bleu`) of one hypothesis or of
arrays of them, in NumPy and JAX. Equation numbers are those of Neubig and
Watanabe (2016).
"""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearBleu:
  """The constants of linear BLEU, taken from an earlier pass over the corpus.

  Attributes:
    length: c, words in the corpus output.
    matches: m_n, n-gram matches in the corpus output, `[order]`.
  """

  length: float
  matches: tuple[float, ...]


def linearize(corpus: np.ndarray) -> LinearBleu:
  """Takes the constants from a corpus's summed statistics `[2 * order + 1]`.

  An order without any match would make the error infinite; half a match is
  assumed there.
  """
  order = len(corpus) // 2
  return LinearBleu(
    length=max(1.0, float(corpus[order])),
    matches=tuple(max(0.5, float(count)) for count in corpus[:order]),
  )


def linear_bleu_error(statistics: Any, constants: LinearBleu) -> Any:
  """Returns a sentence's share in the corpus's log BLEU, negated (Eq 46-52).

  `c(e) / c - 1 / order * sum_n m_n(e) / m_n` to first order, for an unchanged
  brevity penalty. It is a sum over words and n-grams, so it can be minimised
  inside a search, and it may be negative.

  Args:
    statistics: `[..., 2 * order + 1]`.
    constants: see `linearize`.
  """
  order = len(constants.matches)
  weights = np.array([1.0 / (order * count) for count in constants.matches])
  gain = (statistics[..., :order] * weights).sum(-1)
  return statistics[..., order] / constants.length - gain
