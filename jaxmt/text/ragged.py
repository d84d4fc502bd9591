"""Rows of different lengths as two arrays: what every host kernel works on."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ragged:
  """N rows of items laid end to end.

  Attributes:
    flat: all items, `[T, ...]`.
    offsets: row n is `flat[offsets[n] : offsets[n + 1]]`; int64 `[N + 1]`.
  """

  flat: np.ndarray
  offsets: np.ndarray

  def __len__(self) -> int:
    return len(self.offsets) - 1

  def __getitem__(self, row: int) -> np.ndarray:
    if not -len(self) <= row < len(self):
      raise IndexError(f"row {row} of {len(self)}")
    row %= len(self)
    return self.flat[self.offsets[row] : self.offsets[row + 1]]

  @property
  def lengths(self) -> np.ndarray:
    """Row lengths, int64 `[N]`."""
    return np.diff(self.offsets)


def row_offsets(lengths) -> np.ndarray:
  """Returns where rows of the given lengths start when laid end to end.

  With booleans this counts how many are true before every position.

  Args:
    lengths: integers or booleans, `[N]`.

  Returns:
    `[0, l_0, l_0 + l_1, ...]`, int64 `[N + 1]`.
  """
  return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def from_rows(rows, dtype=np.int32) -> Ragged:
  """Builds a `Ragged` from a list of sequences."""
  lengths = np.array([len(row) for row in rows], np.int64)
  offsets = row_offsets(lengths)
  if len(rows) and offsets[-1]:
    flat = np.concatenate([np.asarray(row, dtype) for row in rows])
  else:
    flat = np.zeros(0, dtype)
  return Ragged(flat=flat, offsets=offsets)


def select(ragged: Ragged, rows: np.ndarray) -> Ragged:
  """Returns the given rows (indices or a boolean mask), in that order."""
  rows = np.asarray(rows)
  if rows.dtype == np.bool_:
    if len(rows) != len(ragged):
      raise ValueError(f"a mask of {len(rows)} for {len(ragged)} rows")
    rows = np.flatnonzero(rows)
  rows = rows.astype(np.int64)  # an empty list comes as floats
  lengths = ragged.lengths[rows]
  offsets = row_offsets(lengths)
  within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
  flat = ragged.flat[np.repeat(ragged.offsets[:-1][rows], lengths) + within]
  return Ragged(flat=flat, offsets=offsets)


def emptied(ragged: Ragged, rows: np.ndarray) -> Ragged:
  """Returns the same number of rows, of which some lose all their items.

  Args:
    ragged: N rows.
    rows: which ones, bool `[N]`.
  """
  return Ragged(
    flat=ragged.flat[~np.repeat(rows, ragged.lengths)],
    offsets=row_offsets(np.where(rows, 0, ragged.lengths)),
  )


def concatenate(parts: list[Ragged]) -> Ragged:
  """Returns the rows of all parts, one part after the other."""
  lengths = np.concatenate([part.lengths for part in parts])
  return Ragged(
    flat=np.concatenate([part.flat for part in parts]),
    offsets=row_offsets(lengths),
  )


def pad(
  ragged: Ragged, *, width: int | None = None, fill: int = 0
) -> tuple[np.ndarray, np.ndarray]:
  """Returns `(padded [N, width, ...], mask [N, width])`.

  Raises:
    ValueError: if a row is longer than `width`.
  """
  lengths = ragged.lengths
  longest = int(lengths.max(initial=0))
  width = longest if width is None else width
  if longest > width:
    raise ValueError(f"a row of length {longest} does not fit width {width}")
  mask = np.arange(width) < lengths[:, None]
  shape = (len(ragged), width, *ragged.flat.shape[1:])
  padded = np.full(shape, fill, ragged.flat.dtype)
  padded[mask] = ragged.flat
  return padded, mask


def bucket(size: int) -> int:
  """Rounds up to 2^k or 3·2^(k-1): few sizes, at most a third is padding."""
  power = 1 << max(size - 1, 1).bit_length()
  return 3 * power // 4 if size <= 3 * power // 4 else power
