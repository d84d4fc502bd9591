"""Feature rows inside compiled loops: scores and differences of candidates.

A candidate's features are a dense row and a sparse one; `Features` is the tuple
of arrays that all kernels take, made by `features_of`. Feature ids are places
in the weight vector: dense first.
"""

from typing import NamedTuple

import numpy as np

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.text.kernels import njit


class Features(NamedTuple):
  """Arrays of a pool's features; see `CandidateLists`."""

  dense: np.ndarray
  ids: np.ndarray
  values: np.ndarray
  offsets: np.ndarray


def features_of(pool: CandidateLists) -> Features:
  """Returns the arrays that the kernels read."""
  return Features(
    dense=np.ascontiguousarray(pool.dense, np.float64),
    ids=np.ascontiguousarray(pool.sparse.ids, np.int32),
    values=np.ascontiguousarray(pool.sparse.values, np.float64),
    offsets=np.ascontiguousarray(pool.sparse.offsets, np.int64),
  )


def room(pool: CandidateLists) -> int:
  """Returns the most features two candidates can differ in."""
  longest = int(np.diff(pool.sparse.offsets).max(initial=0))
  return pool.dense.shape[1] + 2 * longest


@njit
def score(features, weights, row):
  """Returns the dot product of one candidate."""
  dense, ids, values, offsets = features
  width = dense.shape[1]
  total = 0.0
  for column in range(width):
    total += dense[row, column] * weights[column]
  for place in range(offsets[row], offsets[row + 1]):
    total += values[place] * weights[width + ids[place]]
  return total


@njit
def subtract(features, good, bad, out_ids, out_values):
  """Writes the difference of two candidates, good - bad, without zeros.

  Returns:
    How many features differ.
  """
  dense, ids, values, offsets = features
  width = dense.shape[1]
  size = 0
  for column in range(width):
    value = dense[good, column] - dense[bad, column]
    if value != 0.0:
      out_ids[size], out_values[size] = column, value
      size += 1
  mine, theirs = offsets[good], offsets[bad]
  while mine < offsets[good + 1] or theirs < offsets[bad + 1]:
    left = right = np.int32(2147483647)
    if mine < offsets[good + 1]:
      left = ids[mine]
    if theirs < offsets[bad + 1]:
      right = ids[theirs]
    number = min(left, right)
    value = 0.0
    if left == number:
      value += values[mine]
      mine += 1
    if right == number:
      value -= values[theirs]
      theirs += 1
    if value != 0.0:
      out_ids[size], out_values[size] = width + number, value
      size += 1
  return size


@njit
def dot(ids, values, size, weights):
  """Returns the dot product of the first `size` entries with `weights`."""
  total = 0.0
  for place in range(size):
    total += values[place] * weights[ids[place]]
  return total


@njit
def add(ids, values, size, scale, weights):
  """Adds `scale` times the first `size` entries to `weights`, in place."""
  for place in range(size):
    weights[ids[place]] += scale * values[place]
