"""Forests in which every edge knows the n-grams it completes.

A node of the decoder's forest stands for strings that the language model does
not tell apart; the reference may. Here every node is split by what the
references of its sentence can still see of a string: its longest prefix and
suffix of up to three words that occur in a reference, and its length up to
three. Then the n-grams (n = 1..4) that an edge completes are known, whichever
derivations stand below it, and BLEU's statistics of a derivation are sums over
its edges. The derivations are the same as before, each exactly once.

One thing is not BLEU's: matches are not clipped, since how often an n-gram
occurred elsewhere is not known to an edge. A second "the" counts where the
reference has one.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxmt.hypergraph import Forest, prune
from jaxmt.metrics import base, encoded_text
from jaxmt.text.kernels import grown, grown_rows, njit
from jaxmt.text.ragged import row_offsets
from jaxmt.tune.forests.forest_pool import ForestPool

ORDER = 4
_SEEN = ORDER - 1  # words of a string that its surroundings can reach
# Larger forests of a sentence are pruned before they are split.
MAX_EDGES = 60_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class NgramForests:
  """Split forests of B sentences: E edges of E' edges of the decoder.

  Attributes:
    forest: the structure; its scores are 0.
    edge: the decoder's edge of each edge, or E' + n for line n; int64 `[E]`.
    statistics: what each edge adds to the matches (not clipped) and to the
      number of n-grams, n = 1..4 each, int16 `[E, 8]`.
    pruned: sentences whose forests had to be pruned to fit `MAX_EDGES`.
  """

  forest: Forest
  edge: np.ndarray
  statistics: np.ndarray
  pruned: int


def split(
  pool: ForestPool,
  *,
  lines: Sequence[str] = (),
  sentence: np.ndarray | None = None,
  max_edges: int = MAX_EDGES,
) -> NgramForests:
  """Splits the nodes of forests by their n-gram contexts.

  Args:
    pool: forests with references; several references count as one set of
      n-grams.
    lines: further translations; each becomes an edge of the root without tails.
      Those of a sentence without derivation are left out.
    sentence: the sentence of each line, rising, int64 `[L]`.
    max_edges: of a sentence. A sentence with more is pruned to half of its
      edges, by the score it was decoded with, until it fits.
  """
  spelled = pool.spelled
  known = encoded_text.encode_references(pool.references, unit=base.WORD)
  rows = known.encode(list(spelled.words))
  # A word that is several to the metric, or none, matches nothing.
  single = np.append(rows.flat, 0)[
    np.minimum(rows.offsets[:-1], len(rows.flat))
  ]
  ids = np.where(rows.lengths == 1, single, np.iinfo(np.int32).max - 1)
  symbols = spelled.target.flat
  symbols = np.where(
    symbols >= 0, np.append(ids, 0)[np.maximum(symbols, 0)], symbols
  ).astype(np.int32)
  forest, numbers = spelled.forest, np.arange(len(spelled.target))
  parts: list = [None] * len(spelled)
  waiting, pruned = list(range(len(spelled))), set()
  while waiting:
    for row in waiting:
      parts[row] = _split_sentence(
        forest, numbers, symbols, spelled.target.offsets, known, row, max_edges
      )
    waiting = [row for row in waiting if not len(parts[row][0])]
    if waiting:
      sizes = np.diff(forest.edge_offsets[forest.node_offsets])
      sizes[waiting] //= 2
      forest, which = prune(forest, edges=sizes)
      numbers = numbers[which]
      pruned.update(waiting)
  if len(lines) and sentence is not None:
    parts = _with_lines(parts, lines, sentence, known, len(spelled.target))
  return _joined(parts, spelled.forest.tails.shape[1], len(pruned))


def _with_lines(parts, lines, sentence, known, first):
  """The parts with an edge of the root for each line, from number `first`."""
  rows, references = known.encode(lines), known.references
  table = _line_statistics(
    rows.flat,
    rows.offsets,
    sentence,
    references.tokens.flat,
    references.tokens.offsets,
    references.first,
  )
  cuts = np.searchsorted(sentence, np.arange(len(parts) + 1))
  out = []
  for row, (offsets, tails, numbers, statistics) in enumerate(parts):
    low, high = cuts[row], cuts[row + 1] if len(numbers) else cuts[row]
    longer = offsets.copy()
    longer[-1] += high - low  # the root is the last node
    none = np.full((high - low, tails.shape[1]), -1, np.int32)
    out.append(
      (
        longer,
        np.concatenate([tails, none]),
        np.concatenate([numbers, first + np.arange(low, high)]),
        np.concatenate([statistics, table[low:high]]),
      )
    )
  return out


def _split_sentence(forest, numbers, symbols, offsets, known, row, max_edges):
  """The arrays that `_split` gives of one sentence."""
  low, high = forest.node_offsets[row], forest.node_offsets[row + 1]
  cuts = forest.edge_offsets[low : high + 1]
  tails = forest.tails[cuts[0] : cuts[-1]]
  references = known.references
  tokens, first = references.tokens, references.first
  return _split(
    (
      cuts - cuts[0],
      np.where(tails >= 0, tails - low, -1).astype(np.int32),
    ),
    numbers[cuts[0] : cuts[-1]],
    (symbols, offsets),
    (tokens.flat, tokens.offsets, first[row], first[row + 1]),
    max_edges,
  )


def _joined(parts, arity, pruned) -> NgramForests:
  nodes = row_offsets([len(p[0]) - 1 for p in parts])
  edges = row_offsets([len(p[1]) for p in parts])
  join = lambda rows, empty: np.concatenate([empty, *rows])
  shift = zip(parts, nodes[:-1].tolist(), edges[:-1].tolist(), strict=True)
  offsets, tails = [np.zeros(1, np.int64)], [np.zeros((0, arity), np.int32)]
  for part, node, edge in shift:
    offsets.append(part[0][1:] + edge)
    tails.append(np.where(part[1] >= 0, part[1] + node, -1).astype(np.int32))
  return NgramForests(
    forest=Forest(
      node_offsets=nodes.astype(np.int64),
      edge_offsets=np.concatenate(offsets),
      tails=np.concatenate(tails),
      score=np.zeros(int(edges[-1]), np.float32),
    ),
    edge=join([part[2] for part in parts], np.zeros(0, np.int64)),
    statistics=join(
      [part[3] for part in parts], np.zeros((0, 2 * ORDER), np.int16)
    ),
    pruned=pruned,
  )


# --- strings as the references see them -------------------------------------


class _Ngrams(NamedTuple):
  """All n-grams of references, by node of a trie; int32.

  Attributes:
    trie: finds the n-gram that is one word longer.
    parent: the n-gram without its last word.
    word: its last word.
    depth: its length.
    shorter: the n-gram without its first word.
  """

  trie: base.ReferenceTrie
  parent: np.ndarray
  word: np.ndarray
  depth: np.ndarray
  shorter: np.ndarray


@njit
def _make_ngrams(flat, offsets, low, high):
  """The n-grams of the references `low` to `high`."""
  tokens = offsets[high] - offsets[low]
  room = ORDER * max(tokens, 1)
  trie = base.allocate_trie(room)
  base.reset_trie(trie, room)
  parent = np.zeros(room + 1, np.int32)
  word = np.zeros(room + 1, np.int32)
  depth = np.zeros(room + 1, np.int32)
  shorter = np.zeros(room + 1, np.int32)
  for size in range(1, ORDER + 1):  # shorter n-grams first: they are links
    for row in range(low, high):
      for start in range(offsets[row], offsets[row + 1] - size + 1):
        node, above, link = np.int32(0), np.int32(0), np.int32(0)
        for place in range(start, start + size):
          above = node
          node = base.find_or_add_child(trie, above, flat[place])
          if place > start:
            link = base.find_or_add_child(trie, link, flat[place])
        parent[node], word[node] = above, flat[start + size - 1]
        depth[node], shorter[node] = size, link
  return _Ngrams(trie, parent, word, depth, shorter)


@njit
def _longer(ngrams, node, token):
  """The n-gram with one more word, 0 if no reference has it."""
  trie = ngrams.trie
  keys, nodes, _, _, state = trie
  return base.find_child(keys, nodes, state[1], node, token)


@njit
def _append(ngrams, suffix, token):
  """The longest known suffix after one more word, of up to `ORDER` words."""
  while True:
    child = _longer(ngrams, suffix, token)
    if child or suffix == 0:
      return child
    suffix = ngrams.shorter[suffix]


@njit
def _shorten(ngrams, suffix):
  """At most the last `_SEEN` words of a suffix."""
  return ngrams.shorter[suffix] if ngrams.depth[suffix] > _SEEN else suffix


@njit
def _first_words(ngrams, node, out):
  """Fills the words of an n-gram; returns how many."""
  count = ngrams.depth[node]
  for k in range(count - 1, -1, -1):
    out[k] = ngrams.word[node]
    node = ngrams.parent[node]
  return count


@njit
def _read(symbols, states, ngrams, out):
  """Reads the target side of an edge; fills its statistics.

  Args:
    symbols: words, and `-1 - k` for the k-th tail.
    states: (prefix, suffix, length up to 3) of each tail, `[A, 3]`.
    ngrams: of the references.
    out: statistics, `[8]`.

  Returns:
    `(prefix, suffix, length up to 3)` of the whole.
  """
  depth = ngrams.depth
  prefix, suffix, length = np.int32(0), np.int32(0), 0
  growing = True  # all words so far are the prefix
  first = np.empty(ORDER, np.int32)
  out[:] = 0
  for symbol in symbols:
    if symbol >= 0:
      # A word: n-grams that end with it.
      if growing and length < _SEEN:
        child = _longer(ngrams, prefix, symbol)
        growing = child > 0
        prefix = child if child else prefix
      suffix = _append(ngrams, suffix, symbol)
      for n in range(depth[suffix]):
        out[n] += 1
      suffix = _shorten(ngrams, suffix)
      length += 1
      continue
    size = states[-1 - symbol, 2]
    # The first words of the tail, as far as a reference knows them.
    count = _first_words(ngrams, states[-1 - symbol, 0], first)
    # N-grams that begin before the tail and end in it.
    before = suffix
    for k in range(count):
      if growing and length + k < _SEEN:
        child = _longer(ngrams, prefix, first[k])
        growing = child > 0
        prefix = child if child else prefix
      before = _append(ngrams, before, first[k])
      for n in range(k + 1, depth[before]):
        out[n] += 1
      before = _shorten(ngrams, before)
    # Past a word that is not known there, or past three, only the tail counts.
    whole = size < _SEEN and count == size
    suffix = before if whole else states[-1 - symbol, 1]
    growing = growing and (whole or length + count >= _SEEN)
    length += size
    for n in range(ORDER):
      out[ORDER + n] -= max(0, size - n)
  for n in range(ORDER):
    out[ORDER + n] += max(0, length - n)
  return prefix, suffix, min(length, _SEEN)


@njit
def _line_statistics(
  flat, offsets, sentence, words, reference_offsets, references
):
  """Statistics of whole lines as `_read` counts them, `[L, 8]`."""
  out = np.zeros((len(sentence), 2 * ORDER), np.int16)
  states = np.zeros((1, 3), np.int32)
  ngrams = _make_ngrams(words, reference_offsets, 0, 0)
  for line in range(len(sentence)):
    row = sentence[line]
    if line == 0 or row != sentence[line - 1]:
      ngrams = _make_ngrams(
        words, reference_offsets, references[row], references[row + 1]
      )
    _read(flat[offsets[line] : offsets[line + 1]], states, ngrams, out[line])
  return out


class _SplitEdges(NamedTuple):
  """Edges of a split forest: tails, where they are from, statistics, states."""

  tails: np.ndarray
  origin: np.ndarray
  statistics: np.ndarray
  key: np.ndarray


@njit
def _split(structure, numbers, strings, references, limit):
  """Splits the nodes of one sentence.

  Args:
    structure: edge offsets of its nodes, int64 `[N + 1]`, and tails, int32
      `[E, A]`.
    numbers: the rows of its edges among the strings, `[E]`.
    strings: symbols of target sides, and offsets of rows.
    references: words, offsets, the sentence's first and one past its last.
    limit: edges at most.

  Returns:
    `(edge offsets, tails, numbers, statistics)` of the split forest; empty edge
    offsets if there would be more than `limit` edges.
  """
  # N-grams of the references as a trie; room for split edges and new nodes.
  edge_offsets, tails = structure
  symbols, offsets = strings
  ngrams = _make_ngrams(*references)
  arity = tails.shape[1]
  out = _SplitEdges(
    np.full((2 * len(tails) + 16, arity), -1, np.int32),
    np.empty(2 * len(tails) + 16, np.int64),
    np.empty((2 * len(tails) + 16, 2 * ORDER), np.int16),
    np.empty(2 * len(tails) + 16, np.int64),
  )
  state = np.empty((64, 3), np.int32)  # of each new node
  ends = np.zeros(65, np.int64)  # of each new node's edges
  begin = np.zeros(len(edge_offsets), np.int64)  # new nodes of each node
  picked = np.zeros(arity, np.int64)
  states = np.zeros((arity, 3), np.int32)
  nodes, edges = 0, 0
  wide = np.int64(len(ngrams.depth))
  for node in range(len(edge_offsets) - 1):
    first = edges
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      # The first choice: the first new node of every tail.
      size = 0
      while size < arity and tails[edge, size] >= 0:
        picked[size] = begin[tails[edge, size]]
        size += 1
      string = symbols[offsets[numbers[edge]] : offsets[numbers[edge] + 1]]
      choosing = True
      while choosing:  # over all choices of new nodes for the tails
        if edges == limit:
          empty = np.zeros(0, np.int64)
          return empty, tails[:0].copy(), empty, out.statistics[:0]
        out = _grown_edges(out, edges + 1)
        # Matches of the edge's string between its tails, and its state.
        for part in range(size):
          states[part] = state[picked[part]]
        prefix, suffix, length = _read(
          string, states, ngrams, out.statistics[edges]
        )
        # Write the edge, with its state as a key.
        out.tails[edges] = -1
        out.tails[edges, :size] = picked[:size]
        out.origin[edges] = numbers[edge]
        out.key[edges] = (prefix * wide + suffix) * (_SEEN + 1) + length
        edges += 1
        choosing = _next_choice(picked, size, begin, tails[edge])
    # Edges of equal states share a head; the root is never out.
    if node == len(edge_offsets) - 2:
      out.key[first:edges] = 0
    _sort(out, first, edges)
    for edge in range(first, edges):
      if edge == first or out.key[edge] != out.key[edge - 1]:
        state = grown_rows(state, nodes + 1)
        ends = grown(ends, nodes + 2)
        key = out.key[edge]
        state[nodes, 2] = key % (_SEEN + 1)
        state[nodes, 1] = key // (_SEEN + 1) % wide
        state[nodes, 0] = key // (_SEEN + 1) // wide
        nodes += 1
      ends[nodes] = edge + 1
    begin[node + 1] = nodes
  return (
    ends[: nodes + 1].copy(),
    out.tails[:edges].copy(),
    out.origin[:edges].copy(),
    out.statistics[:edges].copy(),
  )


@njit
def _next_choice(picked, size, begin, tails):
  """Moves to the next choice of new nodes for the tails, if there is one."""
  for part in range(size - 1, -1, -1):
    picked[part] += 1
    if picked[part] < begin[tails[part] + 1]:
      return True
    picked[part] = begin[tails[part]]
  return False


@njit
def _sort(out, low, high):
  """Sorts the edges `low` to `high` by their states, in place."""
  order = np.argsort(out.key[low:high], kind="mergesort") + low
  out.tails[low:high] = out.tails[order]
  out.origin[low:high] = out.origin[order]
  out.statistics[low:high] = out.statistics[order]
  out.key[low:high] = out.key[order]


@njit
def _grown_edges(out, needed):
  """The edges, with room for `needed` of them."""
  if needed <= len(out.key):
    return out
  return _SplitEdges(
    grown_rows(out.tails, needed),
    grown(out.origin, needed),
    grown_rows(out.statistics, needed),
    grown(out.key, needed),
  )
