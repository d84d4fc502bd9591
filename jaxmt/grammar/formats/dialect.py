"""What a dialect is: reading, writing, and the rules its decoder adds."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jaxmt.grammar import estimate
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.formats.building import Block
from jaxmt.grammar.table import Kind, RuleTable


@dataclasses.dataclass(frozen=True, kw_only=True)
class Whole:
  """Properties of the whole table that writing a part of it needs.

  Attributes:
    all_trees: whether every rule has a tree fragment.
    totals: summed counts of the rules with the same source side, and with the
      same target side, float64 `[R, 2]`; None if there are no counts.
  """

  all_trees: bool
  totals: np.ndarray | None


def describe(table: RuleTable) -> Whole:
  """Returns the properties of a table."""
  totals = None
  if table.counts.any():
    groups = estimate.group_rules(table)
    totals = np.stack(
      [
        np.bincount(ids, table.counts)[ids]
        for ids in (groups.source, groups.target)
      ],
      axis=1,
    )
  all_trees = bool(len(table)) and bool((table.fragments.lengths > 0).all())
  return Whole(all_trees=all_trees, totals=totals)


def describe_part(whole: Whole, start: int, stop: int) -> Whole:
  """Returns the same for a slice of the rules."""
  if whole.totals is None:
    return whole
  return dataclasses.replace(whole, totals=whole.totals[start:stop])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dialect:
  """One toolkit's tables.

  Attributes:
    parse: a block of newline-ended lines, uint8 `[B]`, to rules; features are
      in the units in which the toolkit's decoder multiplies them by weights.
    spell: rules (standard glue and pass-through left out) to the bytes of
      their lines.
    ordered: whether lines must be sorted by their bytes.
    first_glue: features of `S -> X`, by name.
    later_glue: features of `S -> S X`.
    copy: features of the rule that copies an unknown word.
    glue_lines: the toolkit's glue grammar file; empty if it is built in.
  """

  parse: Callable[[np.ndarray], Block]
  spell: Callable[[RuleTable, Whole], bytes]
  first_glue: Mapping[str, float]
  later_glue: Mapping[str, float]
  copy: Mapping[str, float]
  glue_lines: Sequence[str] = ()
  ordered: bool = False


def decoder_rules(dialect: Dialect, table: RuleTable) -> RuleTable:
  """Returns the glue and pass-through rules the dialect's decoder adds."""
  rules = table_lib.glue_rules(table.source_words, table.target_words)
  columns = (dialect.first_glue, dialect.later_glue, dialect.copy)
  names = tuple(dict.fromkeys(name for column in columns for name in column))
  values = [[column.get(name, 0.0) for name in names] for column in columns]
  return table_lib.with_features(
    rules, names, np.array(values, np.float32).reshape(3, len(names))
  )


def with_decoder_rules(dialect: Dialect, table: RuleTable) -> RuleTable:
  """Adds what `decoder_rules` gives; of glue only what the table lacks."""
  rules = decoder_rules(dialect, table)
  present = np.unique(table_lib.arity(table)[table.kind == Kind.GLUE])
  present = np.isin(table_lib.arity(rules), present)
  rules = table_lib.select(rules, (rules.kind != Kind.GLUE) | ~present)
  return table_lib.concatenate([table, rules])


def without_decoder_rules(
  dialect: Dialect, table: RuleTable, *, unused: frozenset[str]
) -> RuleTable:
  """Drops what `with_decoder_rules` added.

  Glue rules with other features than the dialect's stay.

  Args:
    dialect: whose decoder adds the rules.
    table: any table.
    unused: features that go if no rule has a value for them.
  """
  features = [dialect.first_glue, dialect.later_glue]
  known = {name for column in features for name in column}
  keep = table.kind != Kind.PASS_THROUGH
  arity = table_lib.arity(table)
  for rule in np.flatnonzero(table.kind == Kind.GLUE).tolist():
    expected = features[min(max(int(arity[rule]) - 1, 0), 1)]
    values = {
      name: float(value)
      for name, value in zip(
        table.feature_names, table.features[rule], strict=True
      )
      if value
    }
    foreign = not known & set(table.feature_names)
    standard = values == {k: float(np.float32(v)) for k, v in expected.items()}
    keep[rule] = not (foreign or standard)
  table = table_lib.select(table, keep)
  columns = [
    column
    for column, name in enumerate(table.feature_names)
    if name not in unused or table.features[:, column].any()
  ]
  return dataclasses.replace(
    table,
    features=np.ascontiguousarray(table.features[:, columns]),
    feature_names=tuple(table.feature_names[column] for column in columns),
  )


def bare_columns(names: Sequence[str], prefix: str) -> list[int]:
  """Returns the columns called `prefix0`, `prefix1`, ... up to a gap."""
  columns = []
  while f"{prefix}{len(columns)}" in names:
    columns.append(list(names).index(f"{prefix}{len(columns)}"))
  return columns


def compile_label(pattern: str) -> Callable[[str], str | None]:
  """Returns a function from a token to the pattern's first group, or None."""
  compiled = re.compile(pattern, re.DOTALL)

  def classify(token: str) -> str | None:
    match = compiled.fullmatch(token)
    return match[1] if match else None

  return classify
