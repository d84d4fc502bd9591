"""BLEU of summed statistics inside compiled loops.

The same function of the same statistics as `jaxmt.metrics.bleu` (order 4, no
smoothing: sums over a corpus have matches of every order, otherwise it is 0),
without arrays, for loops that need it millions of times: MERT's intervals and
the pseudo-document of MIRA.
"""

import numpy as np

from jaxmt.text.kernels import njit

ORDER = 4
SIZE = 2 * ORDER + 1


@njit
def bleu(sums):
  """Returns BLEU in 0..1 of matches 1-4, totals 1-4, reference length."""
  above = 1.0
  below = 1.0
  for n in range(ORDER):
    above *= sums[n]
    below *= sums[ORDER + n]
  if above <= 0.0 or below <= 0.0:
    return 0.0
  precision = np.sqrt(np.sqrt(above / below))
  if sums[ORDER] < sums[2 * ORDER]:
    precision *= np.exp(1.0 - sums[2 * ORDER] / sums[ORDER])
  return precision


@njit
def bleu_rows(sums):
  """Returns BLEU of each row, `[I, 9] -> [I]`."""
  out = np.empty(len(sums), np.float64)
  for row in range(len(sums)):
    out[row] = bleu(sums[row])
  return out


@njit
def slopes(sums, out):
  """Fills the slopes of BLEU in matches 1-4 and totals 1-4; all sums above 0.

  Totals of order 1 are the length of the output, so the brevity penalty is in
  their slope.
  """
  value = bleu(sums)
  for n in range(ORDER):
    out[n] = value / (ORDER * sums[n])
    out[ORDER + n] = -value / (ORDER * sums[ORDER + n])
  if sums[ORDER] < sums[2 * ORDER]:
    out[ORDER] += value * sums[2 * ORDER] / sums[ORDER] ** 2
