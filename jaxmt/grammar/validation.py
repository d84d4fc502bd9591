"""Checks a rule table's columns against what they promise."""

import numpy as np

from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import LABELS, Kind, RuleTable
from jaxmt.text.ragged import Ragged


def validate(table: RuleTable) -> None:
  """Checks every promise of the columns.

  Raises:
    ValueError: naming the column, and the first offending rule.
  """
  size = len(table)
  if tuple(table.labels[: len(LABELS)]) != LABELS:
    raise ValueError(f"labels must start with {LABELS}")
  if len(set(table.labels)) != len(table.labels):
    raise ValueError("labels: a name stands twice")
  for name in ("kind", "counts", "features"):
    if len(getattr(table, name)) != size:
      raise ValueError(f"{name} has {len(getattr(table, name))} of {size} rows")
  if table.features.shape != (size, len(table.feature_names)):
    raise ValueError(
      f"features {table.features.shape}: {len(table.feature_names)} names"
    )
  for name in ("source", "target", "links", "fragments"):
    _validate_offsets(name, getattr(table, name), size)
  _refuse("lhs", (table.lhs < 0) | (table.lhs >= len(table.labels)))
  _refuse("kind", ~np.isin(table.kind, [kind.value for kind in Kind]))
  _refuse("counts", ~(table.counts >= 0) | ~np.isfinite(table.counts))
  _refuse("features", np.any(np.isnan(table.features), axis=1))
  _validate_symbols(table)
  _validate_links(table)


def _refuse(name: str, bad: np.ndarray) -> None:
  if bad.any():
    raise ValueError(f"{name}: rule {int(np.argmax(bad))} is out of range")


def _validate_offsets(name: str, rows: Ragged, size: int) -> None:
  offsets = rows.offsets
  if (
    len(offsets) != size + 1
    or offsets[0] != 0
    or (np.diff(offsets) < 0).any()
    or offsets[-1] != len(rows.flat)
  ):
    raise ValueError(f"{name}: offsets do not describe {size} rows")


def _rows_of(rows: Ragged) -> np.ndarray:
  """The row each flat item belongs to, int64 `[T]`."""
  return np.repeat(np.arange(len(rows)), rows.lengths)


def _refuse_items(name: str, rows: Ragged, bad: np.ndarray) -> None:
  if bad.any():
    row = int(np.searchsorted(rows.offsets, np.argmax(bad), side="right")) - 1
    raise ValueError(f"{name}: rule {row} is out of range")


def _validate_symbols(table: RuleTable) -> None:
  source, target = table.source, table.target
  _refuse_items(
    "source",
    source,
    (source.flat >= len(table.source_words))
    | (source.flat < -len(table.labels)),
  )
  _refuse_items("target", target, target.flat >= len(table.target_words))
  _refuse("source", source.lengths == 0)
  # The target must hold each of the rule's non-terminals exactly once.
  holes = target.flat < 0
  sites = -1 - target.flat[holes].astype(np.int64)
  number = table_lib.arity(table)
  owner = _rows_of(target)[holes]
  used = np.bincount(owner, minlength=len(table))
  _refuse("target", used != number)
  _refuse("target", np.bincount(owner, sites >= number[owner]) > 0)
  starts = np.concatenate([[0], np.cumsum(number)])
  seen = np.bincount(starts[owner] + sites, minlength=int(starts[-1]))
  if (seen != 1).any():
    rule = int(np.searchsorted(starts, np.argmax(seen != 1), side="right")) - 1
    raise ValueError(f"target: rule {rule} uses a non-terminal twice")
  codes = table.fragments.flat
  _refuse_items(
    "fragments",
    table.fragments,
    (codes >= len(table.source_words)) | (codes < -1 - len(table.labels)),
  )


def _validate_links(table: RuleTable) -> None:
  links = table.links
  if not len(links.flat):
    return
  owner = _rows_of(links)
  for side, rows in enumerate((table.source, table.target)):
    position = links.flat[:, side].astype(np.int64)
    inside = (position >= 0) & (position < rows.lengths[owner])
    _refuse_items("links", links, ~inside)
    symbol = rows.flat[rows.offsets[owner] + position]
    _refuse_items("links", links, symbol < 0)
