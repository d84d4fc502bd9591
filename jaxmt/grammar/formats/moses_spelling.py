"""Writes Moses' rule tables and phrase tables; see `moses.py`."""

import dataclasses
import math

import numpy as np

from jaxmt.grammar import table as table_lib
from jaxmt.grammar.formats import scanning, spelling
from jaxmt.grammar.formats.dialect import Whole, bare_columns
from jaxmt.grammar.formats.escapes import escape, escape_label
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.ragged import Ragged, row_offsets

PREFIX = "TranslationModel0_"


def _word(word: str) -> str:
  """A bar divides factors, brackets are labels."""
  brackets = "[]" if word[0] == "[" and word[-1] == "]" else ""
  return escape(word, "|" + brackets)


def _bracketed(table: RuleTable) -> RuleTable:
  """The table with its labels written as Moses' pairs.

  Those of tree-to-string rules are `[L][X]`, the others `[X][L]`.
  """
  number = len(table.labels)
  labels = [escape_label(label) for label in table.labels]
  rows = np.repeat(np.arange(len(table)), table.source.lengths)
  flat = np.array(table.source.flat)
  is_tree = table.kind == Kind.TREE_TO_STRING
  flat[(flat < 0) & is_tree[rows]] -= number
  return dataclasses.replace(
    table,
    labels=(
      *(f"[X][{label}]" for label in labels),
      *(f"[{label}][X]" for label in labels),
    ),
    source=Ragged(flat=flat, offsets=table.source.offsets),
    lhs=table.lhs + number * is_tree,
  )


def _all_links(table: RuleTable) -> Ragged:
  """The links of words and of non-terminals, sorted."""
  holes = np.flatnonzero(table.target.flat < 0)
  rule = np.searchsorted(table.target.offsets, holes, side="right") - 1
  places = np.flatnonzero(table.source.flat < 0)
  sites = row_offsets(table_lib.arity(table))
  number = -1 - table.target.flat[holes].astype(np.int64)
  one = places[sites[rule] + number] - table.source.offsets[rule]
  other = holes - table.target.offsets[rule]
  words = np.repeat(np.arange(len(table)), table.links.lengths)
  pairs = table.links.flat.astype(np.int64)
  keys = np.sort(
    np.concatenate(
      [
        rule << 32 | one << 16 | other,
        words << 32 | pairs[:, 0] << 16 | pairs[:, 1],
      ]
    )
  )
  flat = np.stack([(keys >> 16) & 0xFFFF, keys & 0xFFFF], axis=1)
  return Ragged(
    flat=flat, offsets=scanning.count_offsets(keys >> 32, len(table))
  )


def write_probability(value: np.float32) -> str:
  """The shortest of two texts whose natural log is the float32 given."""
  probability = math.exp(float(value))
  text = f"{probability:.7g}"
  back = float(text)
  if back > 0 and np.float32(math.log(back)) == value:
    return text
  return repr(probability)


def _spell(table: RuleTable, whole: Whole, *, phrases: bool) -> bytes:
  names = list(table.feature_names)
  dense = bare_columns(names, PREFIX)
  rest = [n for n in range(len(names)) if n not in dense]
  if not dense:
    dense, rest = rest, []
  links = table.links if phrases else _all_links(table)
  features = table.features
  table = _bracketed(table)
  speller = spelling.make_speller(
    table, write_word=_word, write_site=lambda label, *_: label
  )
  size = len(table)
  bar = spelling.constant_pieces(speller, "||| ", size)

  def left(place: int) -> list[Ragged]:
    if phrases:
      return []
    return [
      spelling.column_pieces(
        speller,
        table.lhs,
        lambda label: f"[{table.labels[label][1:-1].split('][')[place]}] ",
      )
    ]

  source = spelling.source_pieces(speller, table)
  target = spelling.target_pieces(speller, table)
  scores = spelling.feature_pieces(
    speller, [""] * len(dense), features[:, dense], write_probability
  )
  parts = [source, *left(0), bar, target, *left(1), bar, scores, bar]
  parts += [spelling.link_pieces(speller, links), bar]
  if whole.totals is not None:
    counts = np.stack(
      [whole.totals[:, 1], whole.totals[:, 0], table.counts], axis=1
    )
    parts.append(
      spelling.feature_pieces(speller, [""] * 3, counts, spelling.write_exactly)
    )
  if rest:
    sparse = _sparse_pieces(speller, names, features, rest)
    parts += [spelling.keep_pieces(bar, sparse.lengths > 0), sparse]
  return spelling.spell_lines(speller, parts)


def _sparse_pieces(speller, names, features, rest: list[int]) -> Ragged:
  """The `name value` pairs of the values that are not 0."""
  values = features[:, rest]
  rows, columns = np.nonzero(values)
  first = speller.pool.add(
    [names[column].removeprefix(PREFIX) + " " for column in rest]
  )
  numbers = spelling.number_pieces(
    speller, values[rows, columns], spelling.write_number
  )
  flat = np.stack([first + columns, numbers], axis=1).reshape(-1)
  return Ragged(
    flat=flat, offsets=2 * scanning.count_offsets(rows, len(features))
  )


def spell(table: RuleTable, whole: Whole) -> bytes:
  """Writes rules; see `dialect.Dialect`."""
  return _spell(table, whole, phrases=False)


def spell_phrases(table: RuleTable, whole: Whole) -> bytes:
  """Writes phrase pairs.

  Raises:
    ValueError: if a rule has non-terminals.
  """
  if (table.source.flat < 0).any():
    raise ValueError("a phrase table has no rules with non-terminals")
  return _spell(table, whole, phrases=True)
