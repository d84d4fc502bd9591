"""Moses' rule tables (Hiero, tree-to-string) and phrase tables.

    not [X][X] [X] ||| n' [X][X] pas [X] ||| 0.5 0.25 ||| 0-0 1-1 ||| 4 2 1
    casa ||| house ||| 0.7 0.75 0.40 0.35 ||| 0-0 ||| 2 2

The left-hand sides stand last; `[NP][X]` is a non-terminal with its source and
target label, of which the one that is not X is ours; the links of
non-terminals stand among those of words. A left-hand side on the source side
other than X makes a rule tree-to-string. Scores are probabilities: the decoder
takes ln p, not below -100, and so does this reader, as `TranslationModel0_0`
and so on. Then counts (of the target, the source, both), sparse features
(`name value` pairs, as they are, `TranslationModel0_name`) and properties,
which are passed over. Glue has a file of its own, table 1: every phrase joined
counts TranslationModel1 = ln 2.718; a copied word UnknownWordPenalty0 = -100.

A table of ours without `TranslationModel0_*` is written with all its features
as scores, in their order. Links of `moses-phrases` are those of words only, and
it has no left-hand sides.
"""

import dataclasses
import math
import re

import numpy as np

from jaxmt.grammar.formats import building, gluing, scanning
from jaxmt.grammar.formats.building import Block, Side
from jaxmt.grammar.formats.dialect import Dialect, compile_label
from jaxmt.grammar.formats.escapes import unescape
from jaxmt.grammar.formats.moses_spelling import PREFIX, spell, spell_phrases
from jaxmt.grammar.formats.scanning import Lines, Tokens
from jaxmt.grammar.table import Kind
from jaxmt.text.kernels import njit

GLUE = "TranslationModel1"
LOWEST = -100.0
SOURCE, TARGET, SCORES, LINKS, COUNTS, SPARSE, PROPERTIES = range(7)

_SITE = re.compile(r"\[([^\[\]]+)\]\[([^\[\]]+)\]")
_LEFT = compile_label(r"\[([^\[\]]+)\]")


def _classify(token: str) -> tuple[str | None, str | None, int]:
  match = _SITE.fullmatch(token) if token[0] == "[" else None
  if match:
    return None, _one_label(match[1], match[2]), 0
  return unescape(token), None, 0


def _one_label(source: str, target: str) -> str:
  return unescape(target if source == "X" else source)


def _take_left(
  lines: Lines, tokens: Tokens, fault: np.ndarray
) -> tuple[Tokens, np.ndarray, list[str]]:
  """Takes a trailing `[X]` off each row.

  Returns:
    `(the other tokens, number of each row's label or -1, labels)`.
  """
  filled = np.flatnonzero(np.diff(tokens.offsets))
  last = tokens.offsets[filled + 1] - 1
  ids, strings = scanning.intern_tokens(
    lines.data,
    Tokens(
      starts=tokens.starts[last], ends=tokens.ends[last], offsets=tokens.offsets
    ),
  )
  labels = [_LEFT(string) for string in strings]
  known = np.array([label is not None for label in labels], np.bool_)
  number = np.full(len(fault), -1, np.int64)
  number[filled] = np.where(known[ids], ids, -1) if len(ids) else -1
  keep = np.ones(len(tokens.starts), np.bool_)
  keep[last[number[filled] >= 0]] = False
  return (
    Tokens(
      starts=tokens.starts[keep],
      ends=tokens.ends[keep],
      offsets=scanning.count_offsets(tokens.rows[keep], len(fault)),
    ),
    number,
    [label or "" for label in labels],
  )


def _lefts(lines: Lines, fault: np.ndarray, labels: dict[str, int]):
  """The sides without their left-hand sides, lhs ids, which are of trees."""
  source, one, one_names = _take_left(
    lines, scanning.take_field(lines, lines.field, SOURCE), fault
  )
  target, other, other_names = _take_left(
    lines, scanning.take_field(lines, lines.field, TARGET), fault
  )
  lone = (one >= 0) != (other >= 0)
  building.add_fault(fault, np.flatnonzero(lone), building.LEFT)
  keys = np.where(lone, -1, one * len(other_names) + other)
  distinct, inverse = np.unique(keys, return_inverse=True)
  lhs = np.zeros(len(distinct), np.int32)
  is_tree = np.zeros(len(distinct), np.bool_)
  for number, key in enumerate(distinct.tolist()):
    if key < 0:  # a phrase pair
      continue
    pair = (
      one_names[key // len(other_names)],
      other_names[key % len(other_names)],
    )
    label = _one_label(*pair)
    lhs[number] = labels.setdefault(label, len(labels))
    is_tree[number] = pair[0] != "X"
  inverse = inverse.reshape(-1)
  return source, target, lhs[inverse], is_tree[inverse]


@njit
def _number_by_links(source, source_rows, target, target_rows, pairs, rows):
  """Numbers non-terminals by the links between them."""
  one = np.zeros(len(source), np.int32)
  other = np.zeros(len(target), np.int32)
  for row in range(len(rows) - 1):
    first, second = source_rows[row], target_rows[row]
    for item in range(rows[row], rows[row + 1]):
      left, right = first + pairs[item, 0], second + pairs[item, 1]
      if (
        pairs[item, 0] >= 0
        and left < source_rows[row + 1]
        and right < target_rows[row + 1]
        and source[left] < 0
        and target[right] < 0
      ):
        one[left] = pairs[item, 0] + 1
        other[right] = pairs[item, 0] + 1
  return one, other


def _sides(data, source: Tokens, target: Tokens, links: Tokens, names, fault):
  """The symbol columns."""

  def side(tokens: Tokens, words: dict[str, int]) -> Side:
    return building.read_side(
      data, tokens, _classify, words=words, labels=names.labels
    )

  left, right = side(source, names.source), side(target, names.target)
  pairs = scanning.parse_pairs(data, links.starts, links.ends)
  one, other = _number_by_links(
    left.word, left.offsets, right.word, right.offsets, pairs, links.offsets
  )
  return building.join_sides(
    dataclasses.replace(left, index=one),
    dataclasses.replace(right, index=other),
    fault,
    strict=False,
  )


def _scores(data, tokens: Tokens, is_glue: np.ndarray, fault: np.ndarray):
  """Names and natural logs of the scores."""
  names, values, is_bare = building.read_features(
    data, tokens, fault, bare=lambda n: f"{PREFIX}{n}"
  )
  rows = tokens.rows
  named = np.zeros(len(fault), np.bool_)
  if not is_bare.all():
    named = values[:, ~is_bare].any(axis=1)
  width = np.diff(tokens.offsets)
  fine = ~is_glue & (fault == building.FINE)
  if fine.any():
    named |= ~is_glue & (width != width[fine][0])
  building.add_fault(fault, np.flatnonzero(named), building.FEATURE)
  negative = np.zeros(len(fault), np.bool_)
  present = np.zeros(values.shape, np.bool_)
  if len(rows):
    present[:] = np.arange(values.shape[1]) < width[:, None]
  negative = ((values < 0) & present).any(axis=1)
  building.add_fault(fault, np.flatnonzero(negative), building.FEATURE)
  logs = np.log(np.maximum(values, math.exp(LOWEST)))
  logs = np.where(values <= 0, LOWEST, logs)
  return gluing.move_values(
    names,
    np.where(present, np.maximum(logs, LOWEST), 0),
    is_bare,
    is_glue,
    lambda n: GLUE if n == 0 else f"{GLUE}_{n}",
  )


def _sparse(data, tokens: Tokens, fault: np.ndarray):
  """Names and values of `name value` pairs."""
  rows = tokens.rows
  odd = np.diff(tokens.offsets) % 2 == 1
  building.add_fault(fault, np.flatnonzero(odd), building.FEATURE)
  ordinal = np.arange(len(rows)) - tokens.offsets[rows]
  is_name = (ordinal % 2 == 0) & ~odd[rows]
  name = np.flatnonzero(is_name)
  value = building.read_numbers(
    data, tokens.starts[name + 1], tokens.ends[name + 1]
  )
  building.add_fault(fault, rows[name][~np.isfinite(value)], building.FEATURE)
  ids, strings = scanning.intern_tokens(
    data,
    Tokens(
      starts=tokens.starts[name], ends=tokens.ends[name], offsets=tokens.offsets
    ),
  )
  values = np.zeros((len(fault), len(strings)))
  values[rows[name], ids] = value
  return [f"{PREFIX}{string}" for string in strings], values


def _counts(data, tokens: Tokens, fault: np.ndarray) -> np.ndarray:
  """The third count of each rule, 0 if there are fewer."""
  value = building.read_numbers(data, tokens.starts, tokens.ends)
  bad = ~(value >= 0) | ~np.isfinite(value)
  building.add_fault(fault, tokens.rows[bad], building.COUNT)
  counts = np.zeros(len(fault))
  rows = np.flatnonzero(np.diff(tokens.offsets) >= 3)
  counts[rows] = value[tokens.offsets[rows] + 2]
  return counts


def parse(data: np.ndarray) -> Block:
  """Reads a block of lines; see `dialect.Dialect`."""
  lines = scanning.scan_lines(data)
  names = building.make_names()
  fault = np.zeros(len(lines.fields), np.int8)
  building.add_fault(fault, np.flatnonzero(lines.fields < 3), building.FIELDS)
  source, target, lhs, is_tree = _lefts(lines, fault, names.labels)
  links = scanning.take_field(lines, lines.field, LINKS)
  source, target = _sides(data, source, target, links, names, fault)
  kind = gluing.kinds(lhs, source, target, is_tree)
  glue = (kind == Kind.GLUE) | gluing.find_boundaries(lhs, source)
  feature_names, values = _scores(
    data, scanning.take_field(lines, lines.field, SCORES), glue, fault
  )
  more_names, more = _sparse(
    data, scanning.take_field(lines, lines.field, SPARSE), fault
  )
  return gluing.fold_boundaries(
    building.finish(
      names,
      fault=fault,
      line=lines.line,
      lhs=lhs,
      kind=kind,
      source=source,
      target=target,
      links=building.read_links(data, links, source, target, fault),
      features=np.concatenate([values, more], axis=1),
      feature_names=[*feature_names, *more_names],
      counts=_counts(
        data, scanning.take_field(lines, lines.field, COUNTS), fault
      ),
    )
  )


DIALECT = Dialect(
  parse=parse,
  spell=spell,
  first_glue={GLUE: math.log(2.718)},
  later_glue={GLUE: math.log(2.718)},
  copy={"UnknownWordPenalty0": LOWEST},
  glue_lines=(
    "<s> [X] ||| <s> [S] ||| 1 ||| ||| 0",
    "[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 ||| 0",
    "[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 0",
  ),
)
PHRASES = dataclasses.replace(DIALECT, spell=spell_phrases)
