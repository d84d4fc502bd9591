"""The rule table's own format: a folder of memory-mapped columns.

lhs.npy kind.npy counts.npy features.npy
source.npy source_offsets.npy    (target, links, fragments likewise)
labels.txt source_words.txt target_words.txt feature_names.txt
provenance_*.npy                 only if it was kept
manifest.json                    see `jaxmt.text.array_folder`
"""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar import validation
from jaxmt.grammar.extract.packed_rules import UnpackedRules
from jaxmt.grammar.provenance import Provenance
from jaxmt.grammar.table import RuleTable
from jaxmt.grammar.validation import RAGGED, SCALARS
from jaxmt.text import array_folder, vocabulary
from jaxmt.text.array_folder import FolderWriter
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import Vocabulary

META = {"format": "jaxmt-rules", "version": 1}

_PROVENANCE = ("provenance_offsets", "provenance_rules", "provenance_counts")


def to_values(table: RuleTable) -> dict[str, Any]:
  """Returns a table as named arrays and lists of strings."""
  values: dict[str, Any] = {
    "features": table.features,
    "labels": list(table.labels),
    "source_words": vocabulary.to_lines(table.source_words),
    "target_words": vocabulary.to_lines(table.target_words),
    "feature_names": list(table.feature_names),
  }
  for name in SCALARS:
    values[name] = getattr(table, name)
  for name in RAGGED:
    rows = getattr(table, name)
    values[name] = rows.flat
    values[f"{name}_offsets"] = rows.offsets
  return values


def from_values(values: dict[str, Any]) -> RuleTable:
  """Returns the table that `to_values` took apart.

  Raises:
    InputError: naming the first column that is wrong.
  """
  table = _table(values)
  validation.validate(table)
  return table


def provenance_from_values(values: dict[str, Any]) -> Provenance:
  """Returns the provenance among the values of a table.

  Raises:
    InputError: naming the first column that is wrong.
  """
  offsets, rules, counts = (values[name] for name in _PROVENANCE)
  provenance = Provenance(
    rules=Ragged(flat=rules, offsets=offsets), counts=counts
  )
  validation.validate_provenance(provenance, rules=len(values["lhs"]))
  return provenance


def _table(values: dict[str, Any], path: str | None = None) -> RuleTable:
  """The table of the values; their files are in the folder `path`."""

  def words(name: str) -> Vocabulary:
    file = None if path is None else f"{path}/{name}.txt"
    return vocabulary.from_lines(values[name], path=file)

  return RuleTable(
    labels=tuple(values["labels"]),
    source_words=words("source_words"),
    target_words=words("target_words"),
    features=values["features"],
    feature_names=tuple(values["feature_names"]),
    **_columns(values.__getitem__),
  )


def _columns(array) -> dict[str, Any]:
  """The columns of a table but its features, from a source of arrays."""
  columns: dict[str, Any] = {name: array(name) for name in SCALARS}
  for name in RAGGED:
    columns[name] = Ragged(flat=array(name), offsets=array(f"{name}_offsets"))
  return columns


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableWriter:
  """Writes a table in pieces: rules, then features; see `open_writer`."""

  folder: FolderWriter
  labels: tuple[str, ...]
  source_words: Vocabulary
  target_words: Vocabulary

  def append(
    self, columns: UnpackedRules | RuleTable, counts: np.ndarray
  ) -> None:
    """Adds rules and their counts (features come later)."""
    values = {"lhs": columns.lhs, "kind": columns.kind, "counts": counts}
    for name, dtype in SCALARS.items():
      self.folder.append(name, np.asarray(values[name], dtype))
    for name, dtype in RAGGED.items():
      rows: Ragged = getattr(columns, name)
      before = self.folder.rows(name)
      self.folder.append(name, np.asarray(rows.flat, dtype))
      key = f"{name}_offsets"
      start = 1 if self.folder.rows(key) else 0
      self.folder.append(key, rows.offsets[start:] + np.int64(before))

  def table(self) -> RuleTable:
    """Ends the rules; returns them memory-mapped, without features."""
    columns = _columns(self.folder.array)
    return RuleTable(
      labels=self.labels,
      source_words=self.source_words,
      target_words=self.target_words,
      features=np.zeros((len(columns["lhs"]), 0), np.float32),
      feature_names=(),
      **columns,
    )

  def write_features(
    self, names: Sequence[str], blocks: Iterable[np.ndarray]
  ) -> None:
    """Writes the feature columns, `[n, F]` at a time; at least one block."""
    self.folder.write_lines("feature_names", names)
    for block in blocks:
      self.folder.append("features", np.asarray(block, np.float32))

  def write_provenance(self, provenance: Provenance) -> None:
    """Adds the provenance."""
    rules = provenance.rules
    arrays = (rules.offsets, rules.flat, provenance.counts)
    for name, array in zip(_PROVENANCE, arrays, strict=True):
      self.folder.append(name, array)


@contextlib.contextmanager
def open_writer(
  path: str,
  *,
  labels: Sequence[str],
  source_words: Vocabulary,
  target_words: Vocabulary,
) -> Iterator[TableWriter]:
  """Opens a table for writing; it appears, whole, only on success.

  Rules must be appended and features written before the end. An older table
  at `path` is replaced.
  """
  with array_folder.open_writer(path) as folder:
    folder.meta.update(META)
    folder.write_lines("labels", labels)
    folder.write_lines("source_words", vocabulary.to_lines(source_words))
    folder.write_lines("target_words", vocabulary.to_lines(target_words))
    yield TableWriter(
      folder=folder,
      labels=tuple(labels),
      source_words=source_words,
      target_words=target_words,
    )


def write(
  path: str,
  table: RuleTable,
  *,
  provenance: Provenance | None = None,
  beside: Mapping[str, Any] | None = None,
) -> None:
  """Writes a table atomically.

  Args:
    path: the folder.
    table: the rules.
    provenance: which sentences they came from.
    beside: further arrays and lists of strings to keep in the folder, by name.
  """
  with open_writer(
    path,
    labels=table.labels,
    source_words=table.source_words,
    target_words=table.target_words,
  ) as writer:
    writer.append(table, table.counts)
    writer.write_features(table.feature_names, [table.features])
    if provenance is not None:
      writer.write_provenance(provenance)
    for name, value in (beside or {}).items():
      if isinstance(value, np.ndarray):
        writer.folder.append(name, value)
      else:
        writer.folder.write_lines(name, value)


def is_table(path: str) -> bool:
  """Whether something in this format is at `path`."""
  return array_folder.is_folder(path)


def read(path: str, *, verify: bool = True) -> RuleTable:
  """Opens a table; its arrays are memory-mapped and read-only.

  Args:
    path: the folder.
    verify: read every file once, to compare its checksum and to check every
      rule. Without it only types and shapes are checked: for tables that this
      process has written itself.

  Raises:
    InputError: naming the file that is missing, cut short, changed or wrong.
  """
  folder = _open(path, verify=verify)
  names = [*SCALARS, *RAGGED, *(f"{name}_offsets" for name in RAGGED)]
  values: dict[str, Any] = {
    name: folder.array(name) for name in [*names, "features"]
  }
  for name in ("labels", "source_words", "target_words", "feature_names"):
    values[name] = folder.lines(name)
  table = _table(values, path)
  check = validation.validate if verify else validation.check_columns
  check(table, path=path)
  return table


def read_provenance(path: str, *, verify: bool = True) -> Provenance:
  """Opens the provenance kept with a table, and checks it.

  Args:
    path: the folder.
    verify: also compare every file's checksum, which reads it once.

  Raises:
    InputError: if it was not kept, is damaged or wrong.
  """
  folder = _open(path, verify=verify)
  if f"{_PROVENANCE[0]}.npy" not in folder.names:
    raise InputError("was extracted without provenance", path=path)
  offsets, rules, counts = map(folder.array, _PROVENANCE)
  provenance = Provenance(
    rules=Ragged(flat=rules, offsets=offsets), counts=counts
  )
  validation.validate_provenance(
    provenance, rules=len(folder.array("lhs")), path=path
  )
  return provenance


def _open(path: str, *, verify: bool) -> array_folder.Folder:
  folder = array_folder.open_folder(path, verify=verify)
  if {key: folder.meta.get(key) for key in META} != META:
    raise InputError("not a rule table of this version", path=path)
  return folder
