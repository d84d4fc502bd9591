"""The source sides of a grammar as a trie in flat arrays.

Edges live in one open-addressing hash table keyed by (node, symbol), so that
building and walking need no sorting and no per-node storage. Substitution is
fuzzy (any label may fill any site), hence all non-terminals are one symbol
here; labels are compared during search, as features.

`find_patterns` walks it over sentences. That depends on no weights, so it is
done once however often a text is decoded.

Node `LEXICAL` is the root of Hiero rules and phrase pairs, node `TREE` the root
of tree-to-string rules, which match constituents only. Where tree fragments are
matched exactly, the latter are inserted as the codes of their fragments.
"""

import dataclasses

import numpy as np

from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.kernels import grown_rows, njit
from jaxmt.text.ragged import Ragged, select

LEXICAL, TREE = 0, 1
SITE = -1
_EMPTY = np.int64(-1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trie:
  """Source patterns of R rules in N nodes.

  Attributes:
    keys: `(node << 32) | (symbol + 1)` of each edge or -1, int64 `[H]`, H a
      power of two.
    children: the node each edge leads to, int32 `[H]`.
    end: the node at which a rule's source side ends, -1 for rules that never
      match by pattern (glue, pass-through, a lone non-terminal), int32 `[R]`.
    group: rules with equal source side, kind and left-hand side share a number,
      -1 where `end` is, int32 `[R]`. Labels of sites count, so fuzzy patterns
      hold several groups.
    num_nodes: N.
  """

  keys: np.ndarray
  children: np.ndarray
  end: np.ndarray
  group: np.ndarray
  num_nodes: int


def build_trie(table: RuleTable, *, exact: bool = False) -> Trie:
  """Builds the trie of a table's source sides.

  Rules whose source side is empty or a single non-terminal are left out: they
  would make a cell its own child, and with fuzzy substitution they say nothing
  the substitution itself does not. Tree fragments matched exactly stay: each
  node of the tree has a cell of its own.

  Args:
    table: the rules.
    exact: whether tree-to-string rules match by their fragments.
  """
  root = np.full(len(table), -1, np.int32)
  root[table.kind == Kind.HIERO] = LEXICAL
  root[table.kind == Kind.TREE_TO_STRING] = TREE
  lengths = table.source.lengths
  root[lengths == 0] = -1
  first = (
    table.source.flat[
      np.minimum(table.source.offsets[:-1], max(len(table.source.flat) - 1, 0))
    ]
    if len(table.source.flat)
    else np.zeros(len(table), np.int32)
  )
  root[(lengths == 1) & (first < 0)] = -1
  patterns = table.source
  if exact:
    is_tree = table.kind == Kind.TREE_TO_STRING
    is_tree &= table.fragments.lengths > 0
    root[is_tree] = TREE
    patterns = _either(table.fragments, table.source, is_tree)
  size = _capacity(len(patterns.flat))
  keys, children, end, num_nodes = _insert(
    np.asarray(patterns.flat),
    patterns.offsets,
    root,
    size,
    np.array([True, not exact]),
  )
  # A second trie, with labels told apart, numbers the source patterns.
  _, _, pattern, _ = _insert(
    np.asarray(patterns.flat),
    patterns.offsets,
    root,
    size,
    np.array([False, False]),
  )
  group = np.full(len(table), -1, np.int32)
  usable = np.flatnonzero(end >= 0)
  key = (pattern[usable].astype(np.int64) << 32) | table.lhs[usable]
  group[usable] = np.unique(key, return_inverse=True)[1]
  return Trie(
    keys=keys, children=children, end=end, group=group, num_nodes=num_nodes
  )


def insert(
  rows: Ragged, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
  """Builds a trie of any rows of symbols.

  Args:
    rows: int32, R rows.
    root: node under which each row goes, -1 for none, int32 `[R]`.

  Returns:
    `(keys, children, end, num_nodes)`, see `Trie`.
  """
  size = _capacity(len(rows.flat))
  fuzzy = np.ones(int(root.max(initial=0)) + 1, np.bool_)
  return _insert(np.asarray(rows.flat), rows.offsets, root, size, fuzzy)


def _either(one: Ragged, other: Ragged, choose: np.ndarray) -> Ragged:
  """The rows of `one` where `choose` says so, else those of `other`."""
  both = Ragged(
    flat=np.concatenate([one.flat, other.flat]),
    offsets=np.concatenate([one.offsets, other.offsets[1:] + len(one.flat)]),
  )
  rows = np.arange(len(one))
  return select(both, np.where(choose, rows, rows + len(one)))


def _capacity(symbols: int) -> int:
  return 1 << max(int(2 * symbols + 2).bit_length(), 4)


@njit(inline="always")
def slot(keys, key):
  """The place of `key`, or of the free slot where it belongs."""
  mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
  place = np.int64((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(8)) & (
    len(keys) - 1
  )
  while keys[place] != key and keys[place] != _EMPTY:
    place = (place + 1) & (len(keys) - 1)
  return place


@njit
def step(keys, children, node, symbol):
  """The node that edge `symbol` of `node` leads to, or -1. Sites are `SITE`."""
  key = (np.int64(node) << 32) | (np.int64(symbol) + np.int64(1 << 30))
  place = slot(keys, key)
  return children[place] if keys[place] == key else np.int32(-1)


@njit
def _insert(flat, offsets, root, size, fuzzy):
  """Inserts rows of symbols; `fuzzy`: under which roots labels are one."""
  keys = np.full(size, _EMPTY, np.int64)
  children = np.zeros(size, np.int32)
  end = np.full(len(root), -1, np.int32)
  count = 2
  for rule in range(len(root)):
    node = root[rule]
    if node < 0:
      continue
    for item in range(offsets[rule], offsets[rule + 1]):
      symbol = np.int64(flat[item])
      if fuzzy[root[rule]] and symbol < 0:
        symbol = np.int64(SITE)
      key = (np.int64(node) << 32) | (symbol + np.int64(1 << 30))
      place = slot(keys, key)
      if keys[place] == _EMPTY:
        keys[place] = key
        children[place] = count
        count += 1
      node = children[place]
    end[rule] = node
  return keys, children, end, count


def find_patterns(
  sentences: Ragged, spans: Ragged, trie: Trie, *, span: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
  """Finds all places where source patterns of some rule stand in sentences.

  Args:
    sentences: source word ids, B rows.
    spans: constituents (begin, end, label), B rows of `[3]`.
    trie: the source sides.
    span: longest span of lexical patterns.
    width: A, the most sites.

  Returns:
    `(rows, offsets)`: int32 `[M, 5 + 2A]` and int64 `[B + 1]`. A row is (begin,
    end, node, root, number of sites, begin and end of each site).
  """
  holds_rules = np.zeros(trie.num_nodes, bool)
  holds_rules[trie.end[trie.end >= 0]] = True
  return _walk_all(
    np.ascontiguousarray(sentences.flat, np.int32),
    np.asarray(sentences.offsets, np.int64),
    np.ascontiguousarray(spans.flat, np.int32),
    np.asarray(spans.offsets, np.int64),
    (trie.keys, trie.children, holds_rules),
    span,
    width,
  )


@njit
def _walk_all(words, offsets, spans, span_offsets, patterns, span, width):
  """Walks all sentences; see `find_patterns`."""
  rows = np.empty((256, 5 + 2 * width), np.int32)
  ends = np.zeros(len(offsets), np.int64)
  count = np.int64(0)
  for sentence in range(len(offsets) - 1):
    rows, count = _walk(
      words[offsets[sentence] : offsets[sentence + 1]],
      spans[span_offsets[sentence] : span_offsets[sentence + 1]],
      patterns,
      (span, width),
      rows,
      count,
    )
    ends[sentence + 1] = count
  return rows[:count].copy(), ends


@njit
def _walk(words, spans, patterns, limits, rows, count):
  """Appends the pattern matches of one sentence to `rows`.

  Entries of the stack are rows, too, whose end is the position reached.

  Returns:
    `(rows, count)`: the rows, moved if there was no room, and their number.
  """
  keys, children, holds_rules = patterns
  span, width = limits
  length = len(words)
  columns = 5 + 2 * width
  stack = np.empty((64, columns), np.int32)
  entry = np.empty(columns, np.int32)
  for begin in range(length):
    for root in range(2):
      if root == TREE and len(spans) == 0:
        continue
      stack[0, 0], stack[0, 1], stack[0, 2] = begin, begin, root
      stack[0, 3], stack[0, 4] = root, 0
      top = np.int64(1)
      while top:
        # Take an entry; it is a match if rules end at its node.
        top -= 1
        for column in range(columns):
          entry[column] = stack[top, column]
        position, node, sites = entry[1], entry[2], entry[4]
        if position > begin and holds_rules[node]:
          rows = grown_rows(rows, count + 1)
          for column in range(columns):
            rows[count, column] = entry[column]
          count += 1
        if position == length:
          continue
        reach = length if root == TREE else min(length, begin + span)
        if position >= reach:
          continue
        # Read a word.
        onward = step(keys, children, node, words[position])
        stack = grown_rows(stack, top + 1 + length + len(spans))
        if onward >= 0:
          for column in range(columns):
            stack[top, column] = entry[column]
          stack[top, 1] = position + 1
          stack[top, 2] = onward
          top += 1
        # Or a site: any span of words, or a constituent.
        if sites == width:
          continue
        onward = step(keys, children, node, SITE)
        if onward < 0:
          continue
        if root == LEXICAL:
          for after in range(position + 1, reach + 1):
            top = _push(stack, top, entry, onward, position, np.int32(after))
        else:
          last = -1
          for item in range(len(spans)):
            if spans[item, 0] == position and spans[item, 1] != last:
              last = spans[item, 1]
              top = _push(stack, top, entry, onward, position, last)
  return rows, count


@njit
def _push(stack, top, entry, node, begin, end):
  """Puts an entry with one more site on the stack; returns the new top."""
  sites = entry[4]
  for column in range(len(entry)):
    stack[top, column] = entry[column]
  stack[top, 1] = end
  stack[top, 2] = node
  stack[top, 4] = sites + 1
  stack[top, 5 + 2 * sites] = begin
  stack[top, 6 + 2 * sites] = end
  return top + 1
