"""Derivations of several batches in one order, and as plain arrays."""

from collections.abc import Sequence

import numpy as np

from jaxmt.decode.derivation import Derivations
from jaxmt.text import ragged


def in_order(
  parts: Sequence[Derivations], order: np.ndarray, *, arity: int
) -> Derivations:
  """Returns derivations of several parts in an order.

  Args:
    parts: D derivations in all.
    order: which of them, counted through all parts; an empty one for -1, int
      `[B]`.
    arity: A.
  """
  starts, columns, scores, base = [], [], [], 0
  for part in parts:
    starts.append(part.offsets[:-1] + base)
    child = np.full((len(part.rule), arity), -1, part.child.dtype)
    below = part.child[:, :arity]  # beyond it there are none
    child[:, : below.shape[1]] = np.where(below >= 0, below + base, -1)
    columns.append((part.rule, part.begin, part.end, child))
    scores.append(part.score)
    base += len(part.rule)
  ends = np.append(np.concatenate([np.zeros(0, np.int64), *starts]), base)
  # One more, so that an order of empty ones needs no derivation.
  sizes = np.append(np.diff(ends), 0)
  lengths = np.where(order >= 0, sizes[np.maximum(order, 0)], 0)
  offsets = ragged.row_offsets(lengths)
  shift = offsets[:-1] - ends[np.maximum(order, 0)]
  place = np.arange(offsets[-1]) - np.repeat(shift, lengths)
  empty = (np.zeros(0, np.int32),) * 3 + (np.zeros((0, arity), np.int32),)
  join = lambda number: np.concatenate(
    [empty[number], *(column[number] for column in columns)]
  )[place]
  child = join(3)
  moved = child + np.repeat(shift, lengths)[:, None]
  score = np.concatenate([np.zeros(0, np.float32), *scores])
  return Derivations(
    offsets=offsets,
    rule=join(0),
    begin=join(1),
    end=join(2),
    child=np.where(child >= 0, moved, -1).astype(np.int32),
    score=np.where(order >= 0, score[np.maximum(order, 0)], 0.0)
    if len(score)
    else np.zeros(len(order), np.float32),
  )


def by_row(
  parts: Sequence[Derivations],
  rows: Sequence[np.ndarray],
  *,
  size: int,
  arity: int,
) -> Derivations:
  """Returns the derivations of `size` sentences that batches hold.

  Args:
    parts: the derivations of each batch.
    rows: which sentences they are of; a sentence without one gets an empty one.
    size: B.
    arity: A.
  """
  order = np.full(size, -1, np.int64)
  if len(rows):
    every = np.concatenate(list(rows))
    order[every] = np.arange(len(every))
  return in_order(parts, order, arity=arity)


def select(derivations: Derivations, rows: np.ndarray) -> Derivations:
  """Returns the derivations of some sentences."""
  arity = derivations.child.shape[1]
  return in_order([derivations], np.asarray(rows), arity=arity)


def to_array(derivations: Derivations) -> np.ndarray:
  """Returns rule, begin, end and children of all nodes, int32 `[N, 3 + A]`."""
  columns = (derivations.rule, derivations.begin, derivations.end)
  return np.column_stack([*columns, derivations.child]).astype(np.int32)


def from_array(
  nodes: np.ndarray, offsets: np.ndarray, score: np.ndarray
) -> Derivations:
  """Returns the derivations of `to_array`.

  Args:
    nodes: int32 `[N, 3 + A]`.
    offsets: of the sentences, int64 `[B + 1]`.
    score: of the derivations, float32 `[B]`.

  Raises:
    ValueError: if the sizes do not fit, or a child does not come after its
      parent.
  """
  size = len(nodes)
  if len(offsets) != len(score) + 1 or offsets[0] or offsets[-1] != size:
    raise ValueError("the offsets of derivations do not fit their nodes")
  if np.any(np.diff(offsets) < 0):
    raise ValueError("the offsets of derivations fall")
  child = nodes[:, 3:]
  after = (child == -1) | (child > np.arange(size)[:, None])
  last = np.repeat(offsets[1:], np.diff(offsets))[:, None]
  if not (after & (child < last)).all():
    raise ValueError("a child stands before its parent, or elsewhere")
  return Derivations(
    offsets=np.asarray(offsets),
    rule=np.ascontiguousarray(nodes[:, 0]),
    begin=np.ascontiguousarray(nodes[:, 1]),
    end=np.ascontiguousarray(nodes[:, 2]),
    child=np.ascontiguousarray(child),
    score=np.asarray(score),
  )
