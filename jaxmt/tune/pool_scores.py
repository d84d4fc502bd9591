"""Scores of a pool under weights, and what follows from them.

N: candidates. D: dense features. F: sparse features.
"""

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.features import sparse
from jaxmt.text.kernels import njit
from jaxmt.tune.pool import find_metric


def scores(pool: CandidateLists, weights: np.ndarray) -> np.ndarray:
  """Returns the model score of each candidate, float64 `[N]`."""
  width = pool.dense.shape[1]
  if len(weights) != len(pool.names):
    raise ValueError(f"{len(weights)} weights, {len(pool.names)} features")
  total = _dense_scores(pool.dense, np.asarray(weights, np.float64))
  if len(pool.sparse.ids):
    total += sparse.dot(pool.sparse, weights[width:])
  return total


@njit
def _dense_scores(dense, weights):
  """`dense @ weights`: rows this short are slower through BLAS."""
  out = np.zeros(dense.shape[0], np.float64)
  for row in range(dense.shape[0]):
    total = 0.0
    for column in range(dense.shape[1]):
      total += dense[row, column] * weights[column]
    out[row] = total
  return out


def best(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
  """Returns the first highest candidate of each non-empty list; int64."""
  return _best(np.asarray(values, np.float64), offsets)


@njit
def _best(values, offsets):
  out = np.empty(len(offsets) - 1, np.int64)
  count = 0
  for row in range(len(offsets) - 1):
    if offsets[row] == offsets[row + 1]:
      continue
    top = offsets[row]
    for place in range(offsets[row] + 1, offsets[row + 1]):
      if values[place] > values[top]:
        top = place
    out[count] = top
    count += 1
  return out[:count]


def backward(pool: CandidateLists, slopes: np.ndarray) -> np.ndarray:
  """Returns the gradient in the weights, given that in the scores.

  Args:
    pool: N candidates.
    slopes: d loss / d score of each candidate, `[N]`.

  Returns:
    float64 `[D + F]`.
  """
  width = pool.dense.shape[1]
  out = np.zeros(len(pool.names), np.float64)
  _backward(
    pool.dense,
    pool.sparse.ids,
    pool.sparse.values,
    pool.sparse.offsets,
    np.asarray(slopes, np.float64),
    out[:width],
    out[width:],
  )
  return out


@njit
def _backward(dense, ids, values, offsets, slopes, out, thin):
  for row in range(len(slopes)):
    slope = slopes[row]
    if slope == 0.0:
      continue
    for column in range(dense.shape[1]):
      out[column] += slope * dense[row, column]
    for place in range(offsets[row], offsets[row + 1]):
      thin[ids[place]] += slope * values[place]


def pool_score(pool: CandidateLists, weights: np.ndarray, metric: str) -> float:
  """Returns the corpus score of the best candidates under `weights`."""
  chosen = best(scores(pool, weights), pool.offsets)
  total = pool.statistics[metric][chosen].sum(0, dtype=np.float64)
  return float(find_metric(metric).corpus_score(total))


def sentence_costs(pool: CandidateLists, metric: str) -> np.ndarray:
  """Returns each candidate's sentence-level error, float64 `[N]`.

  `1 - score` for metrics where higher is better, the score for error rates.
  BLEU's sentence form is BLEU+1.
  """
  kind = find_metric("bleu+1" if metric == "bleu" else metric)
  values = np.asarray(kind.sentence_score(pool.statistics[metric]), np.float64)
  return 1.0 - values if kind.higher_is_better else values
