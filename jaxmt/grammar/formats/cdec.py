"""cdec's grammars: SCFG and tree-to-string.

    [X] ||| eat [X,1] now ||| [X,1] jetzt essen ||| Cost=0.2 Count=1 ||| 0-2 2-1
    [X] ||| [X] b ||| [1] c ||| 0.5 1.5
    (VP (VBD was) [NP]) ||| [1] war ||| R3=1 ||| 0-1

Values are kept as written: cdec multiplies them by its weights as they are
(its extractor writes costs, -log10 p, and its tuned weights are negative for
them). A value without a name is `PhraseModel_n`, n its place among all the
rule's features. The glue rules are built in: `S -> X`, `S -> S X` with Glue=1;
a copied word has PassThrough=1. A rule with a tree in a sixth field, or of the
tree-to-string form, is tree-to-string. Tables of such rules only are written
in the tree-to-string form, mixed ones with the tree in the sixth field.
Lines beginning with `#` are comments.
"""

import re

import numpy as np

from jaxmt.grammar.formats import building, gluing, scanning, spelling
from jaxmt.grammar.formats import fragments as fragment_lib
from jaxmt.grammar.formats.building import Block
from jaxmt.grammar.formats.dialect import (
  Dialect,
  Whole,
  bare_columns,
  compile_label,
)
from jaxmt.grammar.formats.escapes import escape_label, escape_word, unescape
from jaxmt.grammar.formats.fragments import LABEL, MARKS, OPENING, SITE, WORD
from jaxmt.grammar.formats.scanning import Lines, Tokens
from jaxmt.grammar.table import RuleTable
from jaxmt.text.ragged import Ragged

BARE = "PhraseModel_"
LEFT, SOURCE, TARGET, FEATURES, LINKS, TREE = range(6)

_SOURCE_SITE = re.compile(r"\[([^\[\]]+?)(?:,([1-9][0-9]?))?\]")
_TARGET_SITE = re.compile(r"\[(?:([^\[\]]+?),)?([1-9][0-9]?)\]")
_LEFT = compile_label(r"\[([^\[\]]+)\]")
_TREE_FIELDS = np.array([TREE, TARGET, FEATURES, LINKS], np.int8)


def classify_source(token: str) -> tuple[str | None, str | None, int]:
  """Tells `[X]` and `[X,1]` from words; see `building.read_side`."""
  match = _SOURCE_SITE.fullmatch(token) if token[0] == "[" else None
  if match:
    return None, unescape(match[1]), int(match[2] or 0)
  return unescape(token), None, 0


def classify_target(token: str) -> tuple[str | None, str | None, int]:
  """Tells `[1]` and `[X,1]` from words."""
  match = _TARGET_SITE.fullmatch(token) if token[0] == "[" else None
  if match:
    return None, match[1] and unescape(match[1]), int(match[2])
  return unescape(token), None, 0


def left_label(token: str) -> str | None:
  """The label of `[X]`."""
  label = _LEFT(token)
  return label and unescape(label)


def _sort_fields(lines: Lines, fault: np.ndarray):
  """Which rules are trees, and the field of each token.

  Tree-to-string lines have their fields at other places.
  """
  is_tree = np.zeros(len(fault), np.bool_)
  first = np.flatnonzero(np.diff(lines.row, prepend=-1))
  is_tree[lines.row[first]] = lines.data[lines.starts[first]] == ord("(")
  field = lines.field.copy()
  moved = is_tree[lines.row] & (field < len(_TREE_FIELDS))
  field[moved] = _TREE_FIELDS[field[moved]]
  fewest = np.where(is_tree, 2, 3)
  most = np.where(is_tree, len(_TREE_FIELDS), 6)
  bad = (lines.fields < fewest) | (lines.fields > most)
  building.add_fault(fault, np.flatnonzero(bad), building.FIELDS)
  return is_tree, field


def parse(data: np.ndarray) -> Block:
  """Reads a block of lines; see `dialect.Dialect`."""
  lines = scanning.scan_lines(data, comment=ord("#"))
  names = building.make_names()
  fault = np.zeros(len(lines.fields), np.int8)
  is_tree, field = _sort_fields(lines, fault)

  def take(number: int) -> Tokens:
    return scanning.take_field(lines, field, number)

  tree = scanning.split_at(data, take(TREE), brackets=True)
  fragments, root, leaves = _fragments(data, tree, names, fault)
  # Where there is only a tree, its leaves are the source side.
  chosen = leaves[is_tree[tree.rows[leaves]]]
  source_tokens = scanning.merge_rows(
    take(SOURCE),
    Tokens(
      starts=tree.starts[chosen],
      ends=tree.ends[chosen],
      offsets=scanning.count_offsets(tree.rows[chosen], len(fault)),
    ),
  )
  source_side = building.read_side(
    data,
    source_tokens,
    classify_source,
    words=names.source,
    labels=names.labels,
  )
  target_side = building.read_side(
    data,
    take(TARGET),
    classify_target,
    words=names.target,
    labels=names.labels,
  )
  lhs = building.read_left(
    data, take(LEFT), left_label, names.labels, fault, needed=~is_tree
  )
  lhs = np.where(is_tree, np.maximum(root, 0), lhs)
  source, target = building.join_sides(
    source_side, target_side, fault, strict=True
  )
  _check_trees(source, fragments, root, lhs, fault)
  feature_names, values, _ = building.read_features(
    data,
    scanning.split_at(data, take(FEATURES), brackets=False),
    fault,
    bare=lambda n: f"{BARE}{n}",
    count_named=True,
  )
  return building.finish(
    names,
    lhs=lhs,
    kind=gluing.kinds(lhs, source, target, root >= 0),
    source=source,
    target=target,
    links=building.read_links(data, take(LINKS), source, target, fault),
    features=values,
    feature_names=feature_names,
    fragments=fragments,
    fault=fault,
    line=lines.line,
  )


def _fragments(data, tree: Tokens, names, fault):
  """The fragment column, root labels, and the tokens that are leaves."""
  ids, strings = scanning.intern_tokens(data, tree)
  sort = np.full(len(strings), WORD, np.int8)
  word = np.full(len(strings), -1, np.int32)
  label = np.full(len(strings), -1, np.int32)
  for number, string in enumerate(strings):
    if string in MARKS:
      sort[number] = MARKS[string]
      continue
    site = left_label(string)
    if site is not None:
      sort[number] = SITE
      label[number] = names.labels.setdefault(site, len(names.labels))
  # What follows an opening bracket is a label, whatever it looks like.
  kind = sort[ids]
  heads = np.zeros(len(ids), np.bool_)
  heads[1:] = (kind[:-1] == OPENING) & (kind[1:] >= WORD)
  heads[np.minimum(tree.offsets[:-1], max(len(ids) - 1, 0))[: len(ids)]] = False
  kind[heads] = LABEL
  for number in np.unique(ids[heads]).tolist():
    name = unescape(strings[number])
    label[number] = names.labels.setdefault(name, len(names.labels))
  for number in np.unique(ids[kind == WORD]).tolist():
    name = unescape(strings[number])
    word[number] = names.source.setdefault(name, len(names.source))
  token = np.where(kind == WORD, word[ids], label[ids]).astype(np.int32)
  codes, offsets, root, leaves = fragment_lib.read_fragments(
    token, kind, tree.offsets, False, fault
  )
  return Ragged(flat=codes, offsets=offsets), root, leaves


def _check_trees(source, fragments, root, lhs, fault) -> None:
  """A tree beside a rule must be the rule's: same leaves, same root."""
  same = fragment_lib.same_leaves(
    source.flat, source.offsets, fragments.flat, fragments.offsets
  )
  bad = (root >= 0) & (~same | (lhs != root))
  building.add_fault(fault, np.flatnonzero(bad), building.TREE)


def _site(label: str, index: int, is_target: bool) -> str:
  del is_target
  return f"[{escape_label(label)},{index}]"


def _tree_site(label: str, index: int, is_target: bool) -> str:
  return f"[{index}]" if is_target else _site(label, index, is_target)


def spell(table: RuleTable, whole: Whole) -> bytes:
  """Writes rules; see `dialect.Dialect`."""
  speller = spelling.make_speller(
    table,
    write_word=escape_word,
    write_site=_tree_site if whole.all_trees else _site,
  )
  size = len(table)
  bar = spelling.constant_pieces(speller, "||| ", size)
  tree = spelling.fragment_pieces(
    speller,
    table,
    write_open=lambda label: f"({escape_label(label)} ",
    write_word=lambda word: escape_word(word, "()") + " ",
    write_site=lambda label, index: f"[{escape_label(label)}] ",
    close=f"{spelling.GLUE}) ",
  )
  names = list(table.feature_names)
  bare = bare_columns(names, BARE)
  order = bare + [n for n in range(len(names)) if n not in bare]
  features = spelling.feature_pieces(
    speller,
    ["" if n in bare else names[n] for n in order],
    table.features[:, order],
  )
  target = spelling.target_pieces(speller, table)
  links = spelling.link_pieces(speller, table.links)
  has_tree = table.fragments.lengths > 0
  if whole.all_trees:
    parts = [tree, bar, target, bar, features, bar, links]
  else:
    left = spelling.column_pieces(
      speller,
      table.lhs,
      lambda label: f"[{escape_label(table.labels[label])}] ",
    )
    source = spelling.source_pieces(speller, table)
    parts = [left, bar, source, bar, target, bar, features, bar, links]
    # Only rules with a tree have the sixth field.
    parts += [spelling.keep_pieces(bar, has_tree), tree]
  return spelling.spell_lines(speller, parts)


DIALECT = Dialect(
  parse=parse,
  spell=spell,
  first_glue={},
  later_glue={"Glue": 1.0},
  copy={"PassThrough": 1.0},
)
