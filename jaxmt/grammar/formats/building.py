"""From tokens to the columns of a rule table, whatever the dialect.

Every distinct token is looked at once, in Python; all that is done per rule is
compiled or vectorised. A rule that cannot be read gets a fault, the first one
found; `finish` leaves such rules out and says what was wrong with them.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.formats.scanning import (
  Tokens,
  count_offsets,
  find_equals,
  intern_tokens,
  parse_pairs,
)
from jaxmt.grammar.table import LABELS, RuleTable
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, Vocabulary

FINE, FIELDS, LEFT, EMPTY, SITES, LABEL, FEATURE, LINK, TREE, COUNT = range(10)
CAUSES = {
  FIELDS: "wrong number of fields",
  LEFT: "no left-hand side label",
  EMPTY: "empty source side",
  SITES: "the non-terminals of the two sides do not correspond",
  LABEL: "unknown label: the target side's is not the source side's",
  FEATURE: "a feature is not a number, or there are too few or too many",
  LINK: "a word link is malformed or points outside the rule",
  TREE: "unbalanced or malformed tree fragment",
  COUNT: "a count is not a number",
}
MOST_FEATURES = 4096  # columns are dense

Classify = Callable[[str], tuple[str | None, str | None, int]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Names:
  """Names numbered as they come; the only thing here that changes."""

  labels: dict[str, int]
  source: dict[str, int]
  target: dict[str, int]


def make_names() -> Names:
  """Returns names with the labels and words every table has."""
  words = {word: number for number, word in enumerate(SPECIALS)}
  labels = {label: number for number, label in enumerate(LABELS)}
  return Names(labels=labels, source=words, target=dict(words))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
  """One side of N rules.

  Attributes:
    word: word id, -1 for a non-terminal, int32 `[T]`.
    label: its label, -1 if not written, int32 `[T]`.
    index: its number from 1, 0 if not written, int32 `[T]`.
    offsets: rows, int64 `[N + 1]`.
  """

  word: np.ndarray
  label: np.ndarray
  index: np.ndarray
  offsets: np.ndarray


def read_side(
  data: np.ndarray,
  tokens: Tokens,
  classify: Classify,
  *,
  words: dict[str, int],
  labels: dict[str, int],
) -> Side:
  """Tells words from non-terminals.

  Args:
    data: the text.
    tokens: of one side.
    classify: gives `(word, None, 0)` or `(None, label or None, index or 0)`.
    words: numbers of words, extended.
    labels: numbers of labels, extended.
  """
  ids, strings = intern_tokens(data, tokens)
  facts = np.empty((len(strings), 3), np.int32)
  for number, string in enumerate(strings):
    word, label, index = classify(string)
    if word is not None:
      facts[number] = words.setdefault(word, len(words)), -1, 0
    elif label is not None:
      facts[number] = -1, labels.setdefault(label, len(labels)), index
    else:
      facts[number] = -1, -1, index
  chosen = facts[ids]
  return Side(
    word=chosen[:, 0],
    label=chosen[:, 1],
    index=chosen[:, 2],
    offsets=tokens.offsets,
  )


def join_sides(
  source: Side, target: Side, fault: np.ndarray, *, strict: bool
) -> tuple[Ragged, Ragged]:
  """Returns the symbol columns, non-terminals matched by their numbers.

  Args:
    source: non-terminals without a number are numbered from the left.
    target: of the same rules.
    fault: extended in place.
    strict: whether a label written on the target side must be the source's.
  """
  left, right = _join(
    (source.word, source.label, source.index, source.offsets),
    (target.word, target.label, target.index, target.offsets),
    fault,
    strict,
  )
  return (
    Ragged(flat=left, offsets=source.offsets),
    Ragged(flat=right, offsets=target.offsets),
  )


@njit
def _join(source, target, fault, strict):
  word, label, index, offsets = source
  other, other_label, other_index, other_offsets = target
  left = word.copy()
  right = other.copy()
  for row in range(len(offsets) - 1):
    first, last = offsets[row], offsets[row + 1]
    trouble = FINE
    if first == last:
      trouble = EMPTY
    sites = 0
    for item in range(first, last):
      if word[item] < 0:
        sites += 1
        if label[item] < 0:
          trouble = SITES
        left[item] = -1 - label[item]
    count = 0
    for item in range(other_offsets[row], other_offsets[row + 1]):
      if other[item] >= 0:
        continue
      count += 1
      # The source site with this number: written, or by position.
      ordinal = -1
      seen = 0
      for place in range(first, last):
        if word[place] < 0:
          seen += 1
          number = index[place] if index[place] else seen
          if number == other_index[item]:
            ordinal = seen - 1 if ordinal == -1 else -2
            if (
              strict
              and other_label[item] >= 0
              and other_label[item] != label[place]
            ):
              trouble = LABEL
      right[item] = -1 - ordinal
      if ordinal < 0:
        trouble = SITES
      for place in range(other_offsets[row], item):
        if other[place] < 0 and right[place] == right[item]:
          trouble = SITES
    if count != sites:
      trouble = SITES
    if fault[row] == FINE:
      fault[row] = trouble
  return left, right


def read_links(
  data: np.ndarray,
  tokens: Tokens,
  source: Ragged,
  target: Ragged,
  fault: np.ndarray,
) -> Ragged:
  """Returns the links between words, sorted; others are left out."""
  pairs = parse_pairs(data, tokens.starts, tokens.ends)
  rows = tokens.rows
  size = np.stack([source.lengths[rows], target.lengths[rows]], axis=1)
  bad = ((pairs < 0) | (pairs >= size)).any(axis=1)
  add_fault(fault, rows[bad], LINK)
  rows, pairs = rows[~bad], pairs[~bad]
  one = source.flat[source.offsets[rows] + pairs[:, 0]]
  other = target.flat[target.offsets[rows] + pairs[:, 1]]
  words = (one >= 0) & (other >= 0)
  rows, pairs = rows[words], pairs[words].astype(np.int64)
  order = (rows << 32) | (pairs[:, 0] << 16) | pairs[:, 1]
  if (np.diff(order) <= 0).any():  # most tables are sorted
    order = np.unique(order)
  flat = np.stack([(order >> 16) & 0xFFFF, order & 0xFFFF], axis=1)
  return Ragged(
    flat=flat.astype(np.int16), offsets=count_offsets(order >> 32, len(source))
  )


def add_fault(fault: np.ndarray, rows: np.ndarray, code: int) -> None:
  """Marks rows as faulty that are fine so far."""
  rows = np.asarray(rows)
  fault[rows[fault[rows] == FINE]] = code


def read_numbers(
  data: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> np.ndarray:
  """Returns the numbers written at spans, NaN where there is none."""
  spans = Tokens(starts=starts, ends=ends, offsets=np.zeros(1, np.int64))
  ids, strings = intern_tokens(data, spans)
  return np.array([_number(text) for text in strings], np.float64)[ids]


def _number(text: str) -> float:
  try:
    value = float(text)
  except ValueError:
    return math.nan
  return math.nan if "_" in text else value


def read_features(
  data: np.ndarray,
  tokens: Tokens,
  fault: np.ndarray,
  *,
  bare: Callable[[int], str],
  count_named: bool = False,
  bare_sign: float = 1.0,
) -> tuple[list[str], np.ndarray, np.ndarray]:
  """Reads `name=value` and bare values.

  Args:
    data: the text.
    tokens: the features of N rules.
    fault: extended in place.
    bare: the name of the n-th bare value of a rule.
    count_named: whether n counts named features too, as cdec does.
    bare_sign: what bare values are multiplied by.

  Returns:
    `(names, values float64 [N, F], is_bare bool [F])`, names in order of
    appearance.
  """
  equals = find_equals(data, tokens.starts, tokens.ends)
  named = equals >= 0
  rows = tokens.rows
  value = read_numbers(
    data, np.where(named, equals + 1, tokens.starts), tokens.ends
  )
  add_fault(fault, rows[~np.isfinite(value)], FEATURE)
  value = np.where(named, value, 0.0 + bare_sign * value)  # no minus zero
  ids, strings = intern_tokens(
    data,
    Tokens(
      starts=tokens.starts[named], ends=equals[named], offsets=tokens.offsets
    ),
  )
  if "" in strings:
    add_fault(fault, rows[named][ids == strings.index("")], FEATURE)
  ordinal = np.arange(len(rows)) - tokens.offsets[rows]
  if not count_named:
    before = np.cumsum(~named) - ~named
    first = np.concatenate([before, [0]])[tokens.offsets[:-1]]
    ordinal = before - first[rows]
  column = np.empty(len(rows), np.int64)
  column[named] = ids
  column[~named] = len(strings) + ordinal[~named]
  most = int(ordinal[~named].max(initial=-1)) + 1
  everything = [*strings, *(bare(number) for number in range(most))]
  order = np.unique(column, return_index=True)[1]
  used = column[np.sort(order)]  # in order of appearance
  index: dict[str, int] = {}
  where = np.zeros(len(everything), np.int64)
  for number in used.tolist():
    where[number] = index.setdefault(everything[number], len(index))
  if len(index) > MOST_FEATURES:
    raise InputError(f"more than {MOST_FEATURES} features")
  values = np.zeros((len(tokens.offsets) - 1, len(index)), np.float64)
  values[rows, where[column]] = value
  is_bare = np.zeros(len(index), np.bool_)
  is_bare[where[used[used >= len(strings)]]] = True
  return list(index), values, is_bare


@dataclasses.dataclass(frozen=True, kw_only=True)
class Block:
  """The rules of a block of text, and what was wrong with the others.

  Attributes:
    table: the good rules, without glue.
    faults: `(line within the block from 0, cause)` of the others.
  """

  table: RuleTable
  faults: list[tuple[int, str]]


def finish(
  names: Names,
  *,
  fault: np.ndarray,
  line: np.ndarray,
  lhs: np.ndarray,
  kind: np.ndarray,
  source: Ragged,
  target: Ragged,
  links: Ragged,
  features: np.ndarray,
  feature_names: Sequence[str],
  counts: np.ndarray | float = 0.0,
  fragments: Ragged | None = None,
) -> Block:
  """Makes the table of the rules without fault."""
  table = table_lib.make_table(
    labels=tuple(names.labels),
    source_words=Vocabulary(words=tuple(names.source)),
    target_words=Vocabulary(words=tuple(names.target)),
    lhs=lhs,
    kind=kind,
    source=source,
    target=target,
    links=links,
    counts=counts,
    features=features,
    feature_names=feature_names,
    fragments=fragments,
  )
  bad = np.flatnonzero(fault)
  faults = [(int(line[row]), CAUSES[int(fault[row])]) for row in bad]
  if len(bad):
    table = table_lib.select(table, fault == FINE)
  return Block(table=table, faults=faults)


def read_left(
  data: np.ndarray,
  tokens: Tokens,
  classify: Callable[[str], str | None],
  labels: dict[str, int],
  fault: np.ndarray,
  *,
  needed: np.ndarray,
) -> np.ndarray:
  """Returns the label of each rule's left-hand side, int32 `[N]`.

  Args:
    data: the text.
    tokens: one for each rule.
    classify: gives a token's label, or None.
    labels: numbers of labels, extended.
    fault: extended in place.
    needed: which rules must have one, bool `[N]`.
  """
  ids, strings = intern_tokens(data, tokens)
  kinds = [classify(string) for string in strings]
  numbers = np.array(
    [
      -1 if label is None else labels.setdefault(label, len(labels))
      for label in kinds
    ],
    np.int32,
  )
  lhs = np.full(len(fault), -1, np.int32)
  lhs[tokens.rows] = numbers[ids]
  single = np.diff(tokens.offsets) == 1
  add_fault(fault, np.flatnonzero(needed & ((lhs < 0) | ~single)), LEFT)
  return np.maximum(lhs, 0)
