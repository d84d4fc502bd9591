"""The rule table: synchronous grammar rules as columns.

A rule `LHS -> <α, β>` is one row of every column. Symbols are ids:

- in `source`, a word id `w >= 0`, or `-1 - l` for a non-terminal with label l.
  The non-terminals of a rule are numbered 0, 1, ... from left to right;
- in `target`, a word id `w >= 0`, or `-1 - k` for the k-th source non-terminal
  (so its label is the one written on the source side);
- in `fragments`, the source tree a tree-to-string rule was flattened from, in
  pre-order: `-2 - l` opens a node with label l, a word id `w >= 0` is a leaf,
  `CLOSE` ends a node. A node that is opened and closed at once is the next
  non-terminal site. Rules of other kinds have an empty row.

Everything is host memory (NumPy, often memory-mapped); nothing here writes to
an array it was given.
"""

import dataclasses
import enum
import functools
from collections.abc import Sequence

import numpy as np

from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import UNK, Vocabulary

X, S = 0, 1
LABELS = ("X", "S")
CLOSE = -1


class Kind(enum.IntEnum):
  """Where a rule comes from. Phrase pairs are `HIERO` with no non-terminal.

  Pass-through rules copy words and join tree nodes that no other rule matches.
  """

  GLUE = 0
  HIERO = 1
  TREE_TO_STRING = 2
  PASS_THROUGH = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleTable:
  """R rules with F features.

  Attributes:
    labels: names of the non-terminals; `LABELS` come first.
    source_words: the vocabulary of source word ids.
    target_words: the vocabulary of target word ids.
    lhs: left-hand side label, int32 `[R]`.
    kind: a `Kind`, int8 `[R]`.
    source: source symbols, int32, R rows.
    target: target symbols, int32, R rows.
    links: word links, int16 `[L, 2]` in R rows: (source position, target
      position) within the rule's own symbols, sorted.
    counts: how often the rule was seen, float64 `[R]`.
    features: natural-log, higher-is-better values, float32 `[R, F]`.
    feature_names: F names.
    fragments: source tree fragments, int32, R rows.
  """

  labels: tuple[str, ...]
  source_words: Vocabulary
  target_words: Vocabulary
  lhs: np.ndarray
  kind: np.ndarray
  source: Ragged
  target: Ragged
  links: Ragged
  counts: np.ndarray
  features: np.ndarray
  feature_names: tuple[str, ...]
  fragments: Ragged

  def __len__(self) -> int:
    return len(self.lhs)

  @functools.cached_property
  def arities(self) -> np.ndarray:
    """`arity`, counted once, read-only."""
    counts = arity(self)
    counts.flags.writeable = False
    return counts


def make_table(
  *,
  source_words: Vocabulary,
  target_words: Vocabulary,
  source: Ragged,
  target: Ragged,
  labels: Sequence[str] = LABELS,
  lhs: np.ndarray | int = X,
  kind: np.ndarray | int = Kind.HIERO,
  links: Ragged | None = None,
  counts: np.ndarray | float = 0.0,
  features: np.ndarray | None = None,
  feature_names: Sequence[str] = (),
  fragments: Ragged | None = None,
) -> RuleTable:
  """Builds a table from its columns; single values stand for whole columns."""
  size = len(source)
  if features is None:
    features = np.zeros((size, len(feature_names)), np.float32)
  return RuleTable(
    labels=tuple(labels),
    source_words=source_words,
    target_words=target_words,
    lhs=_column(lhs, np.int32, size),
    kind=_column(kind, np.int8, size),
    source=_rows(source, np.int32),
    target=_rows(target, np.int32),
    links=_rows(links or empty_rows(size, width=2), np.int16),
    counts=_column(counts, np.float64, size),
    features=np.asarray(features, np.float32),
    feature_names=tuple(feature_names),
    fragments=_rows(fragments or empty_rows(size), np.int32),
  )


def _column(value, dtype, size: int) -> np.ndarray:
  if np.ndim(value) == 0:
    return np.full(size, value, dtype)
  return np.asarray(value, dtype)


def _rows(rows: Ragged, dtype) -> Ragged:
  return Ragged(
    flat=np.asarray(rows.flat, dtype),
    offsets=np.asarray(rows.offsets, np.int64),
  )


def empty_rows(size: int, *, width: int | None = None) -> Ragged:
  """Returns `size` empty rows (of items `[width]`, if given)."""
  shape = (0,) if width is None else (0, width)
  return Ragged(
    flat=np.zeros(shape, np.int32), offsets=np.zeros(size + 1, np.int64)
  )


def arity(table: RuleTable) -> np.ndarray:
  """Returns the number of non-terminals of each rule, int64 `[R]`."""
  seen = ragged.row_offsets(table.source.flat < 0)
  return seen[table.source.offsets[1:]] - seen[table.source.offsets[:-1]]


def nonterminals(table: RuleTable) -> Ragged:
  """Returns the labels of each rule's non-terminals in source order, int32."""
  holes = table.source.flat < 0
  return Ragged(
    flat=-1 - table.source.flat[holes],
    offsets=ragged.row_offsets(arity(table)),
  )


def select(table: RuleTable, rows: np.ndarray) -> RuleTable:
  """Returns the given rules (indices or a boolean mask), in that order."""
  rows = np.asarray(rows)
  if rows.dtype == np.bool_:
    rows = np.flatnonzero(rows)
  return dataclasses.replace(
    table,
    lhs=table.lhs[rows],
    kind=table.kind[rows],
    source=ragged.select(table.source, rows),
    target=ragged.select(table.target, rows),
    links=ragged.select(table.links, rows),
    counts=table.counts[rows],
    features=table.features[rows],
    fragments=ragged.select(table.fragments, rows),
  )


def slice_table(table: RuleTable, start: int, stop: int) -> RuleTable:
  """Returns rules `start` to `stop` without copying their symbols."""
  return dataclasses.replace(
    table,
    lhs=table.lhs[start:stop],
    kind=table.kind[start:stop],
    source=slice_rows(table.source, start, stop),
    target=slice_rows(table.target, start, stop),
    links=slice_rows(table.links, start, stop),
    counts=table.counts[start:stop],
    features=table.features[start:stop],
    fragments=slice_rows(table.fragments, start, stop),
  )


def slice_rows(rows: Ragged, start: int, stop: int) -> Ragged:
  """Returns rows `start` to `stop` without copying their items."""
  offsets = rows.offsets[start : stop + 1]
  return Ragged(
    flat=rows.flat[offsets[0] : offsets[-1]], offsets=offsets - offsets[0]
  )


def concatenate(tables: Sequence[RuleTable]) -> RuleTable:
  """Lays tables end to end under common vocabularies, labels and features.

  Words, labels and features keep the ids of the first table; those only later
  tables know follow in order of appearance. A feature a table does not have
  is 0 there. Rules are not merged.

  Raises:
    ValueError: if there is no table.
  """
  if not tables:
    raise ValueError("concatenate needs at least one table")
  labels, label_maps = _unite([table.labels for table in tables])
  source_words, source_maps = _unite([t.source_words.words for t in tables])
  target_words, target_maps = _unite([t.target_words.words for t in tables])
  names, name_maps = _unite([table.feature_names for table in tables])
  features = np.zeros((sum(map(len, tables)), len(names)), np.float32)
  first = 0
  for table, columns in zip(tables, name_maps, strict=True):
    features[first : first + len(table), columns] = table.features
    first += len(table)
  remapped = [
    _relabel(*parts)
    for parts in zip(tables, label_maps, source_maps, target_maps, strict=True)
  ]
  lhs, source, target, fragments = zip(*remapped, strict=True)
  return RuleTable(
    labels=labels,
    source_words=_vocabulary(source_words, tables[0].source_words),
    target_words=_vocabulary(target_words, tables[0].target_words),
    lhs=np.concatenate(lhs),
    kind=np.concatenate([table.kind for table in tables]),
    source=stack_rows(source),
    target=stack_rows(target),
    links=stack_rows([table.links for table in tables]),
    counts=np.concatenate([table.counts for table in tables]),
    features=features,
    feature_names=names,
    fragments=stack_rows(fragments),
  )


def _unite(
  lists: Sequence[Sequence[str]],
) -> tuple[tuple[str, ...], list[np.ndarray]]:
  """The union of name lists, and for each list its names' places in it."""
  index: dict[str, int] = {}
  maps = []
  for names in lists:
    if maps and names is lists[0]:  # often shared: a long list, mapped once
      maps.append(maps[0])
      continue
    numbers = [index.setdefault(name, len(index)) for name in names]
    maps.append(np.array(numbers, np.int32))
  return tuple(index), maps


def _vocabulary(words: tuple[str, ...], first: Vocabulary) -> Vocabulary:
  return first if words == first.words else Vocabulary(words=words)


def _relabel(table, labels, source_words, target_words):
  """The symbol columns of one table under new ids."""
  return (
    labels[table.lhs],
    _translate(table.source, source_words, -1 - labels),
    _translate(table.target, target_words, None),
    _translate(
      table.fragments,
      source_words,
      np.concatenate([np.array([CLOSE], np.int32), -2 - labels]),
    ),
  )


def _translate(
  rows: Ragged, words: np.ndarray, negative: np.ndarray | None
) -> Ragged:
  """Maps `w >= 0` through `words` and `-1 - n` to `negative[n]`, if given."""
  flat = np.array(rows.flat, np.int32)
  word = flat >= 0
  flat[word] = words[flat[word]]
  if negative is not None:
    flat[~word] = negative[-1 - flat[~word]]
  return Ragged(flat=flat, offsets=rows.offsets)


def stack_rows(parts: Sequence[Ragged]) -> Ragged:
  """Lays the rows of several `Ragged` end to end; at least one is needed."""
  lengths = np.concatenate([part.lengths for part in parts])
  return Ragged(
    flat=np.concatenate([part.flat for part in parts]),
    offsets=ragged.row_offsets(lengths),
  )


def with_features(
  table: RuleTable, names: Sequence[str], values: np.ndarray
) -> RuleTable:
  """Sets feature columns: known names are replaced, new ones appended.

  Args:
    table: R rules.
    names: N feature names.
    values: natural-log values, `[R, N]`.
  """
  values = np.asarray(values, np.float32)
  if values.shape != (len(table), len(names)):
    raise ValueError(f"values {values.shape} for {len(table)} x {len(names)}")
  all_names = tuple(dict.fromkeys([*table.feature_names, *names]))
  features = np.zeros((len(table), len(all_names)), np.float32)
  features[:, : len(table.feature_names)] = table.features
  features[:, [all_names.index(name) for name in names]] = values
  return dataclasses.replace(table, features=features, feature_names=all_names)


def feature(table: RuleTable, name: str) -> np.ndarray:
  """Returns one feature's column, float32 `[R]`.

  Raises:
    ValueError: if the table has no such feature.
  """
  if name not in table.feature_names:
    raise ValueError(f"no feature {name!r} among {table.feature_names}")
  return table.features[:, table.feature_names.index(name)]


def rule_text(table: RuleTable, rule: int) -> str:
  """Writes one rule for people: `X -> eat X0 now | X0 jetzt essen`."""
  labels, arguments = table.labels, -1
  words = []
  for symbol in table.source[rule].tolist():
    if symbol >= 0:
      words.append(table.source_words.words[symbol])
    else:
      arguments += 1
      words.append(f"{labels[-1 - symbol]}{arguments}")
  sites = nonterminals(select(table, np.array([rule])))[0]
  target = [
    table.target_words.words[symbol]
    if symbol >= 0
    else f"{labels[sites[-1 - symbol]]}{-1 - symbol}"
    for symbol in table.target[rule].tolist()
  ]
  left = labels[table.lhs[rule]]
  return f"{left} -> {' '.join(words)} | {' '.join(target)}"


def glue_rules(source_words: Vocabulary, target_words: Vocabulary) -> RuleTable:
  """Returns the glue and pass-through rules every grammar needs.

  `S -> <X0, X0>` and `S -> <S0 X1, S0 X1>` join translations monotonically at
  the root; `X -> <UNK, UNK>` copies a source word no other rule translates.
  """
  source = [[-1 - X], [-1 - S, -1 - X], [UNK]]
  target = [[-1], [-1, -2], [UNK]]
  links = Ragged(
    flat=np.zeros((1, 2), np.int16), offsets=np.array([0, 0, 0, 1], np.int64)
  )
  return make_table(
    source_words=source_words,
    target_words=target_words,
    lhs=np.array([S, S, X]),
    kind=np.array([Kind.GLUE, Kind.GLUE, Kind.PASS_THROUGH]),
    source=ragged.from_rows(source),
    target=ragged.from_rows(target),
    links=links,
  )


def joining_rules(
  source_words: Vocabulary, target_words: Vocabulary
) -> RuleTable:
  """Returns `X -> <X0, X0>` and twice `X -> <X0 X1, X0 X1>`.

  They are pass-through rules of tree nodes that no rule matches: one child, two
  children, and two of more.
  """
  return make_table(
    source_words=source_words,
    target_words=target_words,
    kind=Kind.PASS_THROUGH,
    source=ragged.from_rows([[-1 - X], *[[-1 - X, -1 - X]] * 2]),
    target=ragged.from_rows([[-1], *[[-1, -2]] * 2]),
  )
