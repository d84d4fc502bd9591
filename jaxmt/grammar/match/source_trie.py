"""The source sides of a grammar as a trie in flat arrays.

Edges live in one open-addressing hash table keyed by (node, symbol), so that
building and walking need no sorting and no per-node storage. Substitution is
fuzzy (any label may fill any site), hence all non-terminals are one symbol
here; labels are compared during search, as features.

Node `LEXICAL` is the root of Hiero rules and phrase pairs, node `TREE` the root
of tree-to-string rules, which match constituents only. Where tree fragments are
matched exactly, the latter are inserted as the codes of their fragments.
"""

import dataclasses

import numpy as np

from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.kernels import njit
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
    group: rules with equal source side and kind share a number, int32 `[R]`;
      labels count, so fuzzy patterns hold several groups.
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
  _, _, group, _ = _insert(
    np.asarray(patterns.flat),
    patterns.offsets,
    root,
    size,
    np.array([False, False]),
  )
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


def rank_rules(
  trie: Trie, scores: np.ndarray, lhs: np.ndarray, *, limit: int
) -> Ragged:
  """Lists each node's rules, best first, at most `limit` per source pattern.

  Args:
    trie: N nodes.
    scores: static score of each rule, `[R]`.
    lhs: left-hand side label of each rule, `[R]`; patterns with different
      left-hand sides are limited apart.
    limit: target sides kept per pattern.

  Returns:
    Rule ids, int32, N rows, by falling score, ties by rule id.
  """
  rules = np.flatnonzero(trie.end >= 0)
  best_first = rules[np.argsort(-np.asarray(scores)[rules], kind="stable")]
  flat, offsets = _best_of_patterns(
    best_first,
    trie.group,
    np.asarray(lhs),
    trie.end,
    trie.num_nodes,
    limit,
    _capacity(len(rules)),
  )
  return Ragged(flat=flat, offsets=offsets)


@njit
def _best_of_patterns(rules, group, lhs, end, num_nodes, limit, size):
  """Deals rules, best first, out to their nodes; `(rules, offsets)`.

  Args:
    rules: best first, int64 `[M]`.
    group: pattern of every rule of the table.
    lhs: label of every rule.
    end: node of every rule.
    num_nodes: N.
    limit: rules of one pattern and label at most.
    size: slots of a hash table of M keys, a power of two.
  """
  # Which rules stay, and how many each node has.
  keys = np.full(size, _EMPTY, np.int64)
  taken = np.zeros(size, np.int64)
  stays = np.zeros(len(rules), np.bool_)
  offsets = np.zeros(num_nodes + 1, np.int64)
  for item in range(len(rules)):
    rule = rules[item]
    key = (np.int64(group[rule]) << 32) | np.int64(lhs[rule])
    place = slot(keys, key)
    keys[place] = key
    if taken[place] < limit:
      taken[place] += 1
      stays[item] = True
      offsets[end[rule] + 1] += 1
  for node in range(num_nodes):
    offsets[node + 1] += offsets[node]
  # Rules go to their nodes in the order they come in.
  free = offsets[:-1].copy()
  out = np.empty(offsets[-1], np.int32)
  for item in range(len(rules)):
    if stays[item]:
      node = end[rules[item]]
      out[free[node]] = rules[item]
      free[node] += 1
  return out, offsets
