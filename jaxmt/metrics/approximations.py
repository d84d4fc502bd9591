"""Corpus BLEU seen from one sentence: what tuners minimise instead of it.

Everything works on BLEU's statistics (`jaxmt.metrics.bleu`) of one hypothesis
or of arrays of them, in NumPy and JAX, inside `jit` and under `grad`. Equation
numbers are those of Neubig and Watanabe (2016).
"""

import dataclasses
from typing import Any

import numpy as np

from jaxmt.metrics import base


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


def decayed(background: Any, statistics: Any, *, decay: float = 0.9) -> Any:
  """Returns the pseudo-document after one more sentence (Eq 57-58).

  Call it once per sentence, with the statistics of its 1-best.

  Args:
    background: `[S]`; start with small positive numbers.
    statistics: `[S]`.
    decay: what is left of the past.
  """
  return decay * background + statistics


def score_in_context(metric: base.Metric, context: Any, statistics: Any) -> Any:
  """Returns the corpus score of `context` with one hypothesis added.

  With the decayed background as context this is Eq 58; with the sum of all
  other sentences' 1-bests it is the pseudo-corpus of Eq 56.

  Args:
    metric: whose statistics they are.
    context: `[S]`, or anything that broadcasts against `statistics`.
    statistics: of candidates, `[..., S]`.
  """
  return metric.corpus_score(context + statistics)


def smooth_brevity_penalty(exponent: Any, *, sharpness: float = 1e4) -> Any:
  """Returns a differentiable `min(1, exp(x))` (Eq A.2), x = 1 - r / c.

  `(e^x - 1) * sigmoid(-sharpness * x) + 1`, written so that nothing overflows.
  """
  xp = base.array_module(exponent)
  scaled = xp.clip(sharpness * exponent, -80.0, 80.0)
  return xp.expm1(exponent) / (1.0 + xp.exp(scaled)) + 1.0


def expected_bleu(statistics: Any, *, order: int = 4) -> Any:
  """Returns xBLEU of expected statistics summed over the corpus (Eq 53-55).

  Args:
    statistics: expectations, `[..., 2 * order + 1]`, all n-gram counts
      positive.
    order: the longest n-gram.
  """
  xp = base.array_module(statistics)
  matches = statistics[..., :order]
  totals = statistics[..., order : 2 * order]
  logs = (xp.log(matches) - xp.log(totals)).sum(-1) / order
  exponent = 1.0 - statistics[..., 2 * order] / statistics[..., order]
  return xp.exp(logs) * smooth_brevity_penalty(exponent)
