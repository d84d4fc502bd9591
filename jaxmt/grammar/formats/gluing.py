"""Glue rules in tables: telling them apart, and making them ours."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.grammar import table as table_lib
from jaxmt.grammar.formats.building import Block
from jaxmt.grammar.table import Kind, S, X
from jaxmt.text.ragged import Ragged, row_offsets
from jaxmt.text.vocabulary import BOS, EOS


def kinds(
  lhs: np.ndarray, source: Ragged, target: Ragged, has_tree: np.ndarray
) -> np.ndarray:
  """Returns the kind of each rule, int8 `[N]`.

  A rule with a tree is tree-to-string, `S -> X` and `S -> S X` are glue; the
  others match anywhere, as Hiero's do.
  """
  glue = (lhs == S) & ~has_tree
  glue &= _equals(source, [-1 - X]) | _equals(source, [-1 - S, -1 - X])
  glue &= _equals(target, [-1]) | _equals(target, [-1, -2])
  kind = np.where(glue, Kind.GLUE, Kind.HIERO)
  return np.where(has_tree, Kind.TREE_TO_STRING, kind).astype(np.int8)


def _equals(rows: Ragged, symbols: Sequence[int]) -> np.ndarray:
  """Which rows are these symbols, bool `[N]`."""
  same = rows.lengths == len(symbols)
  first = rows.offsets[:-1][same]
  for place, symbol in enumerate(symbols):
    same[same] = rows.flat[first + place] == symbol
    first = rows.offsets[:-1][same]
  return same


def move_values(
  names: list[str],
  values: np.ndarray,
  is_bare: np.ndarray,
  rows: np.ndarray,
  rename: Callable[[int], str],
) -> tuple[list[str], np.ndarray]:
  """Gives the bare values of some rows other names: another table's.

  Args:
    names: F names.
    values: `[N, F]`.
    is_bare: which columns are values without a name, in order.
    rows: which rows, bool `[N]`.
    rename: the new name of the n-th.
  """
  if not rows.any():
    return names, values
  columns = np.flatnonzero(is_bare)
  extra = np.where(rows[:, None], values[:, columns], 0)
  used = extra.any(axis=0)
  values = values.copy()
  values[np.ix_(rows, columns)] = 0
  added = [rename(n) for n in np.flatnonzero(used).tolist()]
  left = values.any(axis=0) | ~is_bare | ~rows.all()
  remaining = [name for name, keep in zip(names, left, strict=True) if keep]
  return remaining + added, np.concatenate(
    [values[:, left], extra[:, used]], axis=1
  )


def find_boundaries(lhs: np.ndarray, source: Ragged) -> np.ndarray:
  """Which rules for S hold `<s>` or `</s>`, bool `[N]`."""
  is_boundary = (source.flat == BOS) | (source.flat == EOS)
  seen = row_offsets(is_boundary)
  has = seen[source.offsets[1:]] > seen[source.offsets[:-1]]
  return has & (lhs == S)


def fold_boundaries(block: Block) -> Block:
  """Takes sentence boundaries out of glue rules.

  Decoders that translate `<s> ... </s>` have the rules S -> <s>, S -> S </s>
  and S -> S X; without boundaries this is S -> X and S -> S X, both with the
  features of the latter.
  """
  table = block.table
  boundary = find_boundaries(table.lhs, table.source)
  if not boundary.any():
    return block
  glue = np.flatnonzero((table.kind == Kind.GLUE) & (table.source.lengths == 2))
  first = table_lib.select(table, glue)
  first = dataclasses.replace(
    first,
    source=_repeated([-1 - X], len(glue)),
    target=_repeated([-1], len(glue)),
  )
  others = table_lib.select(table, ~boundary)
  return dataclasses.replace(
    block, table=table_lib.concatenate([others, first])
  )


def _repeated(symbols: Sequence[int], size: int) -> Ragged:
  return Ragged(
    flat=np.tile(np.array(symbols, np.int32), size),
    offsets=np.arange(size + 1) * len(symbols),
  )
