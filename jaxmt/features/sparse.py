"""Sparse feature vectors of many candidates in compressed rows.

Row n holds the features `ids[offsets[n] : offsets[n + 1]]` with their values;
within a row ids rise and no value is 0, so equal vectors are equal arrays.
"""

import dataclasses

import numpy as np

from jaxmt.text.kernels import njit
from jaxmt.text.ragged import row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class SparseRows:
  """N sparse vectors.

  Attributes:
    ids: feature ids, int32 `[E]`, rising within a row.
    values: float64 `[E]`.
    offsets: where each row begins, int64 `[N + 1]`.
  """

  ids: np.ndarray
  values: np.ndarray
  offsets: np.ndarray

  def __len__(self) -> int:
    return len(self.offsets) - 1


def empty(rows: int) -> SparseRows:
  """Returns rows without features."""
  return SparseRows(
    ids=np.zeros(0, np.int32),
    values=np.zeros(0, np.float64),
    offsets=np.zeros(rows + 1, np.int64),
  )


def canonical(
  ids: np.ndarray, values: np.ndarray, offsets: np.ndarray
) -> SparseRows:
  """Sorts each row by id, adds up repeated ids and drops zeros."""
  ids, values, offsets = _canonical(
    np.array(ids, np.int32),
    np.array(values, np.float64),
    np.ascontiguousarray(offsets, np.int64),
  )
  return SparseRows(ids=ids, values=values, offsets=offsets)


@njit
def _canonical(ids, values, offsets):
  out = np.zeros_like(offsets)
  end = 0
  for row in range(len(offsets) - 1):
    low, high = offsets[row], offsets[row + 1]
    rising = True
    for place in range(low + 1, high):
      rising = rising and ids[place - 1] <= ids[place]
    # Insertion sort for short rows; long ones take the library's.
    if high - low > 64 and not rising:
      order = np.argsort(ids[low:high], kind="mergesort")
      ids[low:high] = ids[low:high][order]
      values[low:high] = values[low:high][order]
    elif not rising:
      for place in range(low + 1, high):
        number, value = ids[place], values[place]
        hole = place
        while hole > low and ids[hole - 1] > number:
          ids[hole] = ids[hole - 1]
          values[hole] = values[hole - 1]
          hole -= 1
        ids[hole], values[hole] = number, value
    place = low
    while place < high:
      number, value = ids[place], values[place]
      place += 1
      while place < high and ids[place] == number:
        value += values[place]
        place += 1
      if value != 0.0:
        ids[end], values[end] = number, value
        end += 1
    out[row + 1] = end
  return ids[:end].copy(), values[:end].copy(), out


def select(rows: SparseRows, chosen: np.ndarray) -> SparseRows:
  """Returns the given rows (indices), in that order."""
  lengths = np.diff(rows.offsets)[chosen]
  offsets = row_offsets(lengths)
  within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
  taken = np.repeat(rows.offsets[:-1][chosen], lengths) + within
  return SparseRows(
    ids=rows.ids[taken], values=rows.values[taken], offsets=offsets
  )


def concatenate(parts: list[SparseRows]) -> SparseRows:
  """Returns all rows, one part after the other."""
  starts = np.cumsum([0] + [int(part.offsets[-1]) for part in parts])
  offsets = [np.zeros(1, np.int64)]
  offsets += [p.offsets[1:] + s for p, s in zip(parts, starts, strict=False)]
  return SparseRows(
    ids=np.concatenate([part.ids for part in parts]),
    values=np.concatenate([part.values for part in parts]),
    offsets=np.concatenate(offsets),
  )


def renumber(rows: SparseRows, table: np.ndarray) -> SparseRows:
  """Gives feature i the id `table[i]`; those with a negative one are dropped.

  Args:
    rows: N vectors.
    table: new id of each old id, int `[F]`.
  """
  ids = np.asarray(table, np.int32)[rows.ids]
  values = np.where(ids >= 0, rows.values, 0.0)
  return canonical(ids, values, rows.offsets)


def from_dense(values: np.ndarray) -> SparseRows:
  """Returns what is not 0 of `values [N, F]`."""
  row, column = np.nonzero(values)
  counts = np.bincount(row, minlength=len(values))
  return SparseRows(
    ids=column.astype(np.int32),
    values=np.asarray(values, np.float64)[row, column],
    offsets=row_offsets(counts),
  )


def to_dense(rows: SparseRows, width: int) -> np.ndarray:
  """Returns `[N, width]` float64; ids must be below `width`."""
  out = np.zeros((len(rows), width), np.float64)
  row = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
  out[row, rows.ids] = rows.values
  return out


def dot(rows: SparseRows, weights: np.ndarray) -> np.ndarray:
  """Returns `[N]` dot products with `weights [F]`."""
  return _dot(rows.ids, rows.values, rows.offsets, np.asarray(weights, float))


@njit
def _dot(ids, values, offsets, weights):
  out = np.zeros(len(offsets) - 1, np.float64)
  for row in range(len(out)):
    total = 0.0
    for place in range(offsets[row], offsets[row + 1]):
      total += values[place] * weights[ids[place]]
    out[row] = total
  return out


def pad(rows: SparseRows, width: int | None = None):
  """Returns `(ids int32 [N, P], values float64 [N, P])`, padded with 0."""
  lengths = np.diff(rows.offsets)
  longest = int(lengths.max(initial=0))
  width = longest if width is None else width
  if longest > width:
    raise ValueError(f"a row of {longest} features does not fit width {width}")
  mask = np.arange(width) < lengths[:, None]
  ids = np.zeros((len(rows), width), np.int32)
  values = np.zeros((len(rows), width), np.float64)
  ids[mask], values[mask] = rows.ids, rows.values
  return ids, values
