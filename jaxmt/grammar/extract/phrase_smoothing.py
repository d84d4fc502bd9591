"""Smoothed probabilities of phrase pairs (Foster, Kuhn & Johnson, EMNLP 2006).

With c(f, e) the count of a pair, n_r the number of pairs seen r times, and P
pairs in all, p(f|e) is

    none            c(f, e) / c(e)
    good-turing     c* / c(e), c* = (r + 1) n_{r+1} / n_r for r = c < 10
    fixed-discount  (c(f, e) - D) / c(e) + D n(e) / c(e) · n(f) / P
    kneser-ney      the same with a D each for counts of 1, 2 and 3 or more

where n(e) is the number of pairs with e and n(f) of those with f. D = n_1 /
(n_1 + 2 n_2); the three discounts are those of modified Kneser-Ney (Chen &
Goodman 1998), as Moses computes them. p(e|f) has the sides exchanged.
"""

import numpy as np

METHODS = ("none", "good-turing", "fixed-discount", "kneser-ney")

_TURING = 10  # counts from here on are trusted
_ADDED = 0.1  # to numbers of counts, as Moses does


def pair_probabilities(
  counts: np.ndarray, source: np.ndarray, target: np.ndarray, *, method: str
) -> np.ndarray:
  """Returns p(source|target) and p(target|source), float64 `[P, 2]`.

  Args:
    counts: of P phrase pairs, above 0.
    source: group of each pair's source side, int `[P]`.
    target: group of its target side, int `[P]`.
    method: one of `METHODS`.

  Raises:
    ValueError: for another method.
  """
  if method not in METHODS:
    raise ValueError(f"smoothing '{method}' is none of {', '.join(METHODS)}")
  counts = np.asarray(counts, np.float64)
  discounted, mass = counts, np.zeros_like(counts)
  if method == "good-turing":
    discounted = counts * turing_factors(counts)[_whole(counts)]
  elif method != "none":
    mass = np.minimum(discounts(counts, method), 0.99 * counts)
    discounted = counts - mass
  columns = []
  for condition, other in ((target, source), (source, target)):
    total = np.bincount(condition, counts)[condition]
    pairs = np.bincount(condition)[condition]
    share = np.bincount(other)[other] / max(len(counts), 1)
    columns.append((discounted + mass * pairs * share) / total)
  return np.stack(columns, axis=1)


def _whole(counts: np.ndarray) -> np.ndarray:
  return np.clip(np.round(counts), 1, _TURING).astype(np.int64)


def numbers_of_counts(counts: np.ndarray) -> np.ndarray:
  """Returns how many pairs have count r, r up to 10, float64 `[11]`."""
  rounded = np.round(counts).astype(np.int64)
  return np.bincount(rounded[rounded <= _TURING], minlength=_TURING + 1).astype(
    np.float64
  )


def turing_factors(counts: np.ndarray) -> np.ndarray:
  """Returns what counts of r are multiplied with, at most 1, `[11]`."""
  numbers = numbers_of_counts(counts) + _ADDED
  rank = np.arange(1, _TURING)
  factors = np.ones(_TURING + 1)
  factors[1:_TURING] = np.minimum(
    (rank + 1) * numbers[rank + 1] / numbers[rank] / rank, 1.0
  )
  return factors


def discounts(counts: np.ndarray, method: str) -> np.ndarray:
  """Returns what is taken off each count, float64 `[P]`."""
  n = numbers_of_counts(counts)
  ratio = lambda a, b: a / b if b else 0.0
  share = ratio(n[1], n[1] + 2 * n[2])
  if method == "fixed-discount":
    return np.full(len(counts), share)
  table = np.array(
    [
      0.0,
      1 - 2 * share * ratio(n[2], n[1]),
      2 - 3 * share * ratio(n[3], n[2]),
      3 - 4 * share * ratio(n[4], n[3]),
    ]
  )
  table = np.maximum(table, 0.0)
  return table[np.minimum(_whole(counts), 3)]
