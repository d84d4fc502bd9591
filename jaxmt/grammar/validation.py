"""Checks a rule table's columns against what they promise.

Compiled kernels trust the columns: an offset or an id out of range would read
memory that is not theirs. So every table that comes from a file is checked
once, in one pass over each column: less than half a second for 3 M rules.
"""

from typing import NoReturn

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.provenance import Provenance
from jaxmt.grammar.table import CLOSE, LABELS, Kind, RuleTable
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import UNK

SCALARS = {"lhs": np.int32, "kind": np.int8, "counts": np.float64}
RAGGED = {
  "source": np.int32,
  "target": np.int32,
  "links": np.int16,
  "fragments": np.int32,
}

# What `_first_fault` returns: the column, and what is wrong in it.
_CAUSES = (
  ("", ""),
  ("lhs", "is out of range"),
  ("kind", "is out of range"),
  ("counts", "is not a count"),
  ("source", "has no symbol"),
  ("source", "is out of range"),
  ("target", "is out of range"),
  ("target", "does not use each non-terminal once"),
  ("links", "is out of range"),
  ("links", "links what is not a word"),
  ("fragments", "is out of range"),
  ("fragments", "is not the tree of its source side"),
  ("kind", "is glue, but does not join parts in order"),
  ("kind", "copies words, but is not <unk> | <unk>"),
  ("kind", "has a tree, but is not tree-to-string"),
)
_FINE, _LHS, _KIND, _COUNTS, _EMPTY, _SOURCE, _TARGET, _SITES = range(8)
_LINKS, _LINKED, _FRAGMENT, _TREE, _GLUE, _COPY, _TREELESS = range(8, 15)

_IS_GLUE = int(Kind.GLUE)
_IS_TREE = int(Kind.TREE_TO_STRING)
_IS_COPY = int(Kind.PASS_THROUGH)
_KINDS = len(Kind)
_S, _X = table_lib.S, table_lib.X


def validate(table: RuleTable, *, path: str | None = None) -> None:
  """Checks every promise of the columns.

  Args:
    table: R rules.
    path: the folder it was read from, for messages.

  Raises:
    InputError: naming the column, and the first offending rule.
  """
  check_columns(table, path=path)
  for name in RAGGED:
    _check_order(f"{name}_offsets", getattr(table, name).offsets, path)
  parts = [getattr(table, name) for name in RAGGED]
  sizes = (len(table.labels), len(table.source_words), len(table.target_words))
  code, rule = _first_fault(
    table.lhs,
    table.kind,
    table.counts,
    tuple(part.flat for part in parts),
    tuple(part.offsets for part in parts),
    sizes,
  )
  if code:
    column, cause = _CAUSES[code]
    _refuse(column, f"rule {rule} {cause}", path)
  rule = _not_finite(table.features)
  if rule >= 0:
    _refuse("features", f"rule {rule} has a value that is not finite", path)


def validate_provenance(
  provenance: Provenance, *, rules: int, path: str | None = None
) -> None:
  """Checks a provenance against a table of `rules` rules.

  Raises:
    InputError: naming the column, and the first offending sentence.
  """
  flat, offsets = provenance.rules.flat, provenance.rules.offsets
  _check_array("provenance_rules", flat, np.int32, 1, path)
  _check_array("provenance_offsets", offsets, np.int64, 1, path)
  _check_array("provenance_counts", provenance.counts, np.float64, 1, path)
  if len(provenance.counts) != len(flat):
    cause = f"has {len(provenance.counts)} of {len(flat)} rows"
    _refuse("provenance_counts", cause, path)
  _check_ends("provenance_offsets", offsets, len(flat), path)
  _check_order("provenance_offsets", offsets, path)
  sentence = _provenance_fault(flat, offsets, rules)
  if sentence >= 0:
    cause = f"sentence {sentence}: rules must rise, and be below {rules}"
    _refuse("provenance_rules", cause, path)
  bad = _bad_count(provenance.counts)
  if bad >= 0:
    _refuse("provenance_counts", f"row {bad} is not a count", path)


def check_columns(table: RuleTable, *, path: str | None = None) -> None:
  """Checks types, shapes and names of the columns, without reading them.

  Raises:
    InputError: naming the column.
  """
  size = len(table.lhs)
  for name, dtype in SCALARS.items():
    column = getattr(table, name)
    _check_array(name, column, dtype, 1, path)
    if len(column) != size:
      _refuse(name, f"has {len(column)} of {size} rows", path)
  for name, dtype in RAGGED.items():
    rows: Ragged = getattr(table, name)
    _check_array(name, rows.flat, dtype, 2 if name == "links" else 1, path)
    _check_array(f"{name}_offsets", rows.offsets, np.int64, 1, path)
    if name == "links" and rows.flat.shape[1] != 2:
      _refuse(name, f"has {rows.flat.shape[1]} columns, not 2", path)
    if len(rows.offsets) != size + 1:
      _refuse(f"{name}_offsets", f"do not describe {size} rows", path)
    _check_ends(f"{name}_offsets", rows.offsets, len(rows.flat), path)
  _check_array("features", table.features, np.float32, 2, path)
  if table.features.shape != (size, len(table.feature_names)):
    cause = (
      f"is {table.features.shape} for {size} rules and"
      f" {len(table.feature_names)} names"
    )
    _refuse("features", cause, path)
  if tuple(table.labels[: len(LABELS)]) != LABELS:
    _refuse("labels", f"must start with {', '.join(LABELS)}", path)
  for name in ("labels", "feature_names"):
    if len(set(getattr(table, name))) != len(getattr(table, name)):
      _refuse(name, "a name stands twice", path)


def _refuse(column: str, cause: str, path: str | None) -> NoReturn:
  """Raises with the column's file, or its name if there is no folder."""
  if path is not None:
    text = column in ("labels", "feature_names")
    column = f"{path}/{column}{'.txt' if text else '.npy'}"
  raise InputError(cause, path=column)


def _check_array(
  name: str, array: np.ndarray, dtype: type, ndim: int, path: str | None
) -> None:
  """Refuses arrays that kernels are not compiled for."""
  if array.dtype != dtype or array.ndim != ndim:
    cause = f"is {array.dtype} with {array.ndim} axes, not"
    _refuse(name, f"{cause} {np.dtype(dtype)} with {ndim}", path)


def _check_ends(
  name: str, offsets: np.ndarray, total: int, path: str | None
) -> None:
  if not len(offsets) or offsets[0] != 0 or offsets[-1] != total:
    _refuse(name, f"do not lead from 0 to {total}", path)


def _check_order(name: str, offsets: np.ndarray, path: str | None) -> None:
  row = _first_fall(offsets)
  if row >= 0:
    _refuse(name, f"fall at row {row}", path)


@njit
def _first_fall(offsets):
  """The first row that ends before it starts, -1 if none does."""
  for row in range(len(offsets) - 1):
    if offsets[row + 1] < offsets[row]:
      return row
  return -1


@njit
def _not_finite(features):
  """The first rule with a value that is not finite, -1 if there is none."""
  for rule in range(features.shape[0]):
    for column in range(features.shape[1]):
      if not np.isfinite(features[rule, column]):
        return rule
  return -1


@njit
def _bad_count(counts):
  """The first value that is negative or not finite, -1 if there is none."""
  for row in range(len(counts)):
    if not (0.0 <= counts[row] < np.inf):
      return row
  return -1


@njit
def _provenance_fault(rules, offsets, size):
  """The first sentence whose rules do not rise within [0, size), or -1."""
  for sentence in range(len(offsets) - 1):
    last = -1
    for item in range(offsets[sentence], offsets[sentence + 1]):
      if rules[item] <= last or rules[item] >= size:
        return sentence
      last = rules[item]
  return -1


@njit
def _first_fault(lhs, kind, counts, flats, offsets, sizes):
  """Checks all rules, whose offsets are sound.

  Args:
    lhs: int32 `[R]`.
    kind: int8 `[R]`.
    counts: float64 `[R]`.
    flats: source, target, links, fragments.
    offsets: their offsets.
    sizes: numbers of labels, of source words, of target words.

  Returns:
    `(cause, rule)`, with `_FINE` if there is none.
  """
  source, target, links, fragments = flats
  source_at, target_at, links_at, fragments_at = offsets
  longest = 0
  for rule in range(len(lhs)):
    longest = max(longest, source_at[rule + 1] - source_at[rule])
  user = np.full(longest, -1, np.int64)  # the last rule to use each site
  for rule in range(len(lhs)):
    if not 0 <= lhs[rule] < sizes[0]:
      return _LHS, rule
    if not 0 <= kind[rule] < _KINDS:
      return _KIND, rule
    if not (0.0 <= counts[rule] < np.inf):
      return _COUNTS, rule
    left = source[source_at[rule] : source_at[rule + 1]]
    right = target[target_at[rule] : target_at[rule + 1]]
    code = _sides_fault(left, right, sizes, user, rule)
    if not code:
      pairs = links[links_at[rule] : links_at[rule + 1]]
      code = _links_fault(pairs, left, right)
    if not code:
      tree = fragments[fragments_at[rule] : fragments_at[rule + 1]]
      code = _tree_fault(tree, left, lhs[rule], sizes)
      if not code and len(tree) and kind[rule] != _IS_TREE:
        code = _TREELESS
    if not code:
      code = _kind_fault(kind[rule], lhs[rule], left, right)
    if code:
      return code, rule
  return _FINE, 0


@njit
def _sides_fault(source, target, sizes, user, rule):
  """Words and labels in range; each non-terminal once on the target side."""
  arity = 0
  for symbol in source:
    if symbol < -sizes[0] or symbol >= sizes[1]:
      return _SOURCE
    arity += symbol < 0
  if not len(source):
    return _EMPTY
  used = 0
  for symbol in target:
    if symbol >= sizes[2]:
      return _TARGET
    if symbol < 0:
      site = -1 - symbol
      if site >= arity or user[site] == rule:
        return _SITES
      user[site] = rule
      used += 1
  return _FINE if used == arity else _SITES


@njit
def _links_fault(links, source, target):
  """Links join words of the rule."""
  for link in range(len(links)):
    one, other = links[link, 0], links[link, 1]
    if not (0 <= one < len(source) and 0 <= other < len(target)):
      return _LINKS
    if source[one] < 0 or target[other] < 0:
      return _LINKED
  return _FINE


@njit
def _tree_fault(tree, source, lhs, sizes):
  """A fragment is one whole tree with the rule's label and source side."""
  if not len(tree):
    return _FINE
  for code in tree:
    if code < -1 - sizes[0] or code >= sizes[1]:
      return _FRAGMENT
  if tree[0] != -2 - lhs:
    return _TREE
  depth = leaf = 0
  for place in range(len(tree)):
    code = tree[place]
    if place and not depth:  # the root has been closed
      return _TREE
    if code == CLOSE:
      depth -= 1
      continue
    if code < CLOSE:
      depth += 1
      if place + 1 == len(tree) or tree[place + 1] != CLOSE:
        continue
      code += 1  # a site's label, as the source side writes it
    if leaf == len(source) or source[leaf] != code:
      return _TREE
    leaf += 1
  return _TREE if depth or leaf < len(source) else _FINE


@njit
def _kind_fault(kind, lhs, source, target):
  """Glue and pass-through rules are what decoders take them for."""
  if kind == _IS_GLUE:
    size = len(source)
    if lhs != _S or size > 2 or len(target) != size:
      return _GLUE
    if source[size - 1] != -1 - _X or (size == 2 and source[0] != -1 - _S):
      return _GLUE
    for place in range(size):
      if target[place] != -1 - place:
        return _GLUE
  elif kind == _IS_COPY:
    if len(source) != 1 or len(target) != 1:
      return _COPY
    if source[0] != UNK or target[0] != UNK:
      return _COPY
  return _FINE
