"""Travatar's rule tables, Hiero and tree-to-string.

    "eat" x0:X @ X ||| x0:X "essen" @ X ||| egfp=-0.5 w=1 ||| 2 5 3 ||| 0-1
    vp ( v ( "ate" ) x0:np ) ||| x0:np "ass" @ vp ||| egfp=-1 ||| 1 1 1 ||| 0-1
    vp ( v ( "ate" ) x0:np ) ||| x0 "ass" ||| egfp=-1

The last is what Travatar's training script writes by default: the target side
of a tree-to-string rule needs no labels, since nothing there is checked. Labels
may be any treebank tag, such as `''` or `-LRB-`.

Words stand in quotes, so none looks like markup. Values are natural logs, all
named, and kept as written. Then counts (of both sides, the source, the target)
and word links, both optional. Tables are sorted by their bytes, as Travatar
wants them, so rules may change their order. Glue has a file of its own; S -> X
is free, joining counts glue = 1. A copied word has unk = 1.
"""

import re

import numpy as np

from jaxmt.grammar.formats import building, gluing, scanning, spelling
from jaxmt.grammar.formats import fragments as fragment_lib
from jaxmt.grammar.formats.building import Block
from jaxmt.grammar.formats.dialect import Dialect, Whole
from jaxmt.grammar.formats.escapes import escape, unescape
from jaxmt.grammar.formats.fragments import LABEL, MARKS, OPENING, SITE, WORD
from jaxmt.grammar.formats.scanning import Lines, Tokens
from jaxmt.grammar.table import RuleTable, S, X
from jaxmt.text.ragged import Ragged

SOURCE, TARGET, FEATURES, COUNTS, LINKS = range(5)

_SITE = re.compile(r"x([0-9]{1,2})(?::(.+))?", re.DOTALL)
_CONFUSING = re.compile(r'[()@]|\|\|\||".*|x[0-9]+(:.*)?', re.DOTALL)


def _is_word(token: str) -> bool:
  return len(token) > 2 and token[0] == '"' and token[-1] == '"'


def _classify(token: str) -> tuple[str | None, str | None, int]:
  if _is_word(token):
    return token[1:-1], None, 0
  match = _SITE.fullmatch(token)
  if match:
    return None, unescape(match[2] or "X"), int(match[1]) + 1
  return None, None, -1  # a site without number: matches nothing


def _label(label: str) -> str:
  if _CONFUSING.fullmatch(label):
    return escape(label, '()@|"x')
  return escape(label, "")


def _take_left(lines: Lines, tokens: Tokens, fault: np.ndarray):
  """Takes a trailing `@ LABEL` off each row.

  Returns:
    `(the other tokens, labels as tokens, bool [N])`: which rows have one.
  """
  ids, strings = scanning.intern_tokens(lines.data, tokens)
  at = strings.index("@") if "@" in strings else -1
  rows = tokens.rows
  places = np.flatnonzero(ids == at)
  has = np.zeros(len(fault), np.bool_)
  has[rows[places]] = True
  # The sign must be the last but one, and the only one.
  wrong = places + 2 != tokens.offsets[rows[places] + 1]
  building.add_fault(fault, rows[places][wrong], building.LEFT)
  places = places[~wrong]
  keep = np.ones(len(rows), np.bool_)
  keep[places] = False
  keep[places + 1] = False
  left = Tokens(
    starts=tokens.starts[places + 1],
    ends=tokens.ends[places + 1],
    offsets=scanning.count_offsets(rows[places], len(fault)),
  )
  rest = Tokens(
    starts=tokens.starts[keep],
    ends=tokens.ends[keep],
    offsets=scanning.count_offsets(rows[keep], len(fault)),
  )
  return rest, left, has


def _fragments(data, tree: Tokens, names, fault):
  """The fragment column, root labels, and the tokens that are leaves."""
  ids, strings = scanning.intern_tokens(data, tree)
  size = len(strings)
  sort = np.full(size, LABEL, np.int8)
  token = np.full(size, -1, np.int32)  # words and sites
  label = np.full(size, -1, np.int32)
  for number, string in enumerate(strings):
    if string in MARKS:
      sort[number] = MARKS[string]
      continue
    word, site, index = _classify(string)
    if word is not None:
      sort[number] = WORD
      token[number] = names.source.setdefault(word, len(names.source))
    elif index > 0 and site is not None:
      sort[number] = SITE
      token[number] = names.labels.setdefault(site, len(names.labels))
  # What stands before an opening bracket is a label, whatever it looks like.
  kind = sort[ids]
  heads = np.zeros(len(ids), np.bool_)
  heads[:-1] = (kind[1:] == OPENING) & (kind[:-1] >= WORD)
  kind[heads] = LABEL
  for number in np.unique(ids[heads]).tolist():
    name = unescape(strings[number])
    label[number] = names.labels.setdefault(name, len(names.labels))
  values = np.where(heads, label[ids], token[ids]).astype(np.int32)
  codes, offsets, root, leaves = fragment_lib.read_fragments(
    values, kind, tree.offsets, True, fault
  )
  return Ragged(flat=codes, offsets=offsets), root, leaves


def _counts(data, tokens: Tokens, fault: np.ndarray) -> np.ndarray:
  """The first count of each rule, 0 if there is none."""
  value = building.read_numbers(data, tokens.starts, tokens.ends)
  bad = ~(value >= 0) | ~np.isfinite(value)
  building.add_fault(fault, tokens.rows[bad], building.COUNT)
  counts = np.zeros(len(fault))
  rows = np.flatnonzero(np.diff(tokens.offsets))
  counts[rows] = value[tokens.offsets[rows]]
  return counts


def _turn_glue(lhs: np.ndarray, source: Ragged, is_flat: np.ndarray) -> Ragged:
  """Makes the right-branching glue rule `S -> X S` our `S -> S X`.

  Treebanks have labels X and S, too: rules with a tree stay as they are.
  """
  flat = np.array(source.flat)
  rows = np.flatnonzero((lhs == S) & is_flat & (source.lengths == 2))
  first = source.offsets[rows]
  turned = first[(flat[first] == -1 - X) & (flat[first + 1] == -1 - S)]
  flat[turned], flat[turned + 1] = -1 - S, -1 - X
  return Ragged(flat=flat, offsets=source.offsets)


def _without(tokens: Tokens, rows: np.ndarray) -> Tokens:
  """The tokens, none in the rows given by bool `[N]`."""
  keep = ~rows[tokens.rows]
  return Tokens(
    starts=tokens.starts[keep],
    ends=tokens.ends[keep],
    offsets=scanning.count_offsets(tokens.rows[keep], len(rows)),
  )


def _named(data, tokens: Tokens, fault: np.ndarray):
  """Names and values of the features; a value without name is a fault."""
  names, values, is_bare = building.read_features(
    data, tokens, fault, bare=lambda n: f"bare_{n}"
  )
  equals = scanning.find_equals(data, tokens.starts, tokens.ends)
  building.add_fault(fault, tokens.rows[equals < 0], building.FEATURE)
  named = [name for name, bare in zip(names, is_bare, strict=True) if not bare]
  return named, values[:, ~is_bare]


def _sides(data, source: Tokens, target: Tokens, names, fault):
  """The symbol columns."""

  def side(tokens: Tokens, words: dict[str, int]) -> building.Side:
    return building.read_side(
      data, tokens, _classify, words=words, labels=names.labels
    )

  return building.join_sides(
    side(source, names.source), side(target, names.target), fault, strict=False
  )


def parse(data: np.ndarray) -> Block:
  """Reads a block of lines; see `dialect.Dialect`."""
  lines = scanning.scan_lines(data)
  names = building.make_names()
  fault = np.zeros(len(lines.fields), np.int8)
  building.add_fault(fault, np.flatnonzero(lines.fields < 3), building.FIELDS)

  def take(number: int) -> Tokens:
    return scanning.take_field(lines, lines.field, number)

  rest, left, is_flat = _take_left(lines, take(SOURCE), fault)
  tree = _without(rest, is_flat)
  fragments, root, leaves = _fragments(data, tree, names, fault)
  source_tokens = scanning.merge_rows(
    _without(rest, ~is_flat),
    Tokens(
      starts=tree.starts[leaves],
      ends=tree.ends[leaves],
      offsets=scanning.count_offsets(tree.rows[leaves], len(fault)),
    ),
  )
  target_tokens, _, has = _take_left(lines, take(TARGET), fault)
  building.add_fault(fault, np.flatnonzero(is_flat & ~has), building.LEFT)
  lhs = building.read_left(
    data, left, unescape, names.labels, fault, needed=is_flat
  )
  lhs = np.where(is_flat, lhs, np.maximum(root, 0)).astype(np.int32)
  source, target = _sides(data, source_tokens, target_tokens, names, fault)
  source = _turn_glue(lhs, source, is_flat)
  feature_names, values = _named(data, take(FEATURES), fault)
  return building.finish(
    names,
    lhs=lhs,
    kind=gluing.kinds(lhs, source, target, ~is_flat),
    source=source,
    target=target,
    links=building.read_links(data, take(LINKS), source, target, fault),
    features=values,
    feature_names=feature_names,
    counts=_counts(data, take(COUNTS), fault),
    fragments=fragments,
    fault=fault,
    line=lines.line,
  )


def _site(label: str, index: int, is_target: bool = False) -> str:
  del is_target
  return f"x{index - 1}:{_label(label)}"


def spell(table: RuleTable, whole: Whole) -> bytes:
  """Writes rules; see `dialect.Dialect`."""
  speller = spelling.make_speller(
    table, write_word=lambda word: f'"{word}"', write_site=_site
  )
  size = len(table)
  bar = spelling.constant_pieces(speller, "||| ", size)
  left = spelling.column_pieces(
    speller, table.lhs, lambda label: f"@ {_label(table.labels[label])} "
  )
  tree = spelling.fragment_pieces(
    speller,
    table,
    write_open=lambda label: f"{_label(label)} ( ",
    write_word=lambda word: f'"{word}" ',
    write_site=lambda label, index: _site(label, index) + " ",
    close=") ",
  )
  is_flat = table.fragments.lengths == 0
  source = spelling.drop_rows(spelling.source_pieces(speller, table), ~is_flat)
  parts = [source, spelling.keep_pieces(left, is_flat), tree, bar]
  parts += [spelling.target_pieces(speller, table), left, bar]
  parts += [
    spelling.feature_pieces(speller, table.feature_names, table.features),
    bar,
  ]
  if whole.totals is not None:
    counts = np.concatenate([table.counts[:, None], whole.totals], axis=1)
    parts.append(
      spelling.feature_pieces(speller, [""] * 3, counts, spelling.write_exactly)
    )
  parts += [bar, spelling.link_pieces(speller, table.links)]
  return spelling.spell_lines(speller, parts)


DIALECT = Dialect(
  parse=parse,
  spell=spell,
  first_glue={},
  later_glue={"glue": 1.0},
  copy={"unk": 1.0},
  glue_lines=(
    "x0:X @ S ||| x0:X @ S |||",
    "x0:X x1:S @ S ||| x0:X x1:S @ S ||| glue=1",
  ),
  ordered=True,
)
