"""Choosing sparse features, joining them, and folding them into dense ones."""

from collections.abc import Sequence

import numpy as np

from jaxmt.features import sparse
from jaxmt.text.ragged import row_offsets


def sentence_counts(
  rows: sparse.SparseRows, sentence: np.ndarray, features: int
) -> np.ndarray:
  """Returns in how many sentences each feature *varies*, int64 `[F]`.

  A feature with one value for all candidates of a list cannot change their
  ranking; such lists do not count.

  Args:
    rows: N sparse vectors.
    sentence: the sentence of each, `[N]`.
    features: F.
  """
  owner = np.repeat(sentence, np.diff(rows.offsets)).astype(np.int64)
  lists = int(sentence.max(initial=-1)) + 1
  sizes = np.bincount(sentence, minlength=lists)
  keys = owner * features + rows.ids
  order = np.argsort(keys, kind="stable")
  keys, values = keys[order], rows.values[order]
  if not len(keys):
    return np.zeros(features, np.int64)
  first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
  present = np.diff(np.concatenate([first, [len(keys)]]))
  low = np.minimum.reduceat(values, first)
  high = np.maximum.reduceat(values, first)
  where, which = np.divmod(keys[first], features)
  varies = (low != high) | (present < sizes[where])
  return np.bincount(which[varies], minlength=features)


def select(
  rows: sparse.SparseRows, names: Sequence[str], features: np.ndarray
) -> tuple[sparse.SparseRows, tuple[str, ...]]:
  """Returns rows and names of the kept features (bool `[F]`), renumbered."""
  table = np.full(len(names), -1, np.int32)
  chosen = np.flatnonzero(features)
  table[chosen] = np.arange(len(chosen))
  return sparse.renumber(rows, table), tuple(names[n] for n in chosen.tolist())


def most_frequent(counts: np.ndarray, limit: int) -> np.ndarray:
  """Returns the `limit` features of largest count above 0, bool `[F]`."""
  order = np.argsort(-counts, kind="stable")[:limit]
  chosen = np.zeros(len(counts), bool)
  chosen[order] = True
  return chosen & (counts > 0)


def join(
  parts: Sequence[tuple[sparse.SparseRows, Sequence[str]]],
) -> tuple[sparse.SparseRows, tuple[str, ...]]:
  """Returns the vectors of several templates side by side."""
  names: list[str] = []
  ids, values, owner = [], [], []
  for rows, part_names in parts:
    lengths = np.diff(rows.offsets)
    ids.append(rows.ids.astype(np.int64) + len(names))
    values.append(rows.values)
    owner.append(np.repeat(np.arange(len(rows)), lengths))
    names += part_names
  flat_owner = np.concatenate(owner)
  order = np.argsort(flat_owner, kind="stable")
  count = len(parts[0][0])
  lengths = np.bincount(flat_owner, minlength=count)
  offsets = row_offsets(lengths)
  rows = sparse.canonical(
    np.concatenate(ids)[order], np.concatenate(values)[order], offsets
  )
  return rows, tuple(names)


def summary_features(
  rows: sparse.SparseRows, weights: np.ndarray, groups: np.ndarray
) -> np.ndarray:
  """Returns the weighted sum of each group of features (survey, Eq 7).

  The sums are dense features that a method for few features, such as MERT, can
  tune further.

  Args:
    rows: N sparse vectors over F features.
    weights: `[F]`.
    groups: the group of each feature, int `[F]`, from 0.

  Returns:
    float64 `[N, G]`.
  """
  count = int(groups.max(initial=-1)) + 1
  columns = [
    sparse.dot(rows, np.where(groups == group, weights, 0.0))
    for group in range(count)
  ]
  return np.stack(columns, 1) if columns else np.zeros((len(rows), 0))
