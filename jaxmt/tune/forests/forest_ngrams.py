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

import numpy as np

from jaxmt.hypergraph import Forest, prune
from jaxmt.metrics import base, reference_trie, text
from jaxmt.text.kernels import njit
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
  known = text.encode_references(pool.references, unit=base.WORD)
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
  forest, kept = spelled.forest, np.arange(len(spelled.target))
  parts: list = [None] * len(spelled)
  waiting, pruned = list(range(len(spelled))), set()
  while waiting:
    for row in waiting:
      parts[row] = _split_sentence(
        forest, kept, symbols, spelled.target.offsets, known, row, max_edges
      )
    waiting = [row for row in waiting if not len(parts[row][0])]
    if waiting:
      sizes = np.diff(forest.edge_offsets[forest.node_offsets])
      sizes[waiting] //= 2
      forest, which = prune(forest, edges=sizes)
      kept = kept[which]
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
    grown = offsets.copy()
    grown[-1] += high - low  # the root is the last node
    none = np.full((high - low, tails.shape[1]), -1, np.int32)
    out.append(
      (
        grown,
        np.concatenate([tails, none]),
        np.concatenate([numbers, first + np.arange(low, high)]),
        np.concatenate([statistics, table[low:high]]),
      )
    )
  return out


def _split_sentence(forest, kept, symbols, offsets, known, row, max_edges):
  """The arrays that `_split` gives of one sentence."""
  low, high = forest.node_offsets[row], forest.node_offsets[row + 1]
  cuts = forest.edge_offsets[low : high + 1]
  tails = forest.tails[cuts[0] : cuts[-1]]
  references = known.references
  return _split(
    cuts - cuts[0],
    np.where(tails >= 0, tails - low, -1).astype(np.int32),
    kept[cuts[0] : cuts[-1]],
    symbols,
    offsets,
    references.tokens.flat,
    references.tokens.offsets,
    references.first[row],
    references.first[row + 1],
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


@njit
def _make_trie(flat, offsets, low, high):
  """`(trie, parent, word, depth, shorter)` of all n-grams of references.

  `shorter` is the n-gram without its first word; all int32 by node.
  """
  tokens = offsets[high] - offsets[low]
  room = ORDER * max(tokens, 1)
  trie = reference_trie.allocate(room)
  reference_trie.reset(trie, room)
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
          node = reference_trie.find_or_add(trie, above, flat[place])
          if place > start:
            link = reference_trie.find_or_add(trie, link, flat[place])
        parent[node], word[node] = above, flat[start + size - 1]
        depth[node], shorter[node] = size, link
  return trie, parent, word, depth, shorter


@njit
def _append(trie, depth, shorter, suffix, token):
  """The longest known suffix after one more word, of up to `ORDER` words."""
  keys, nodes, mask = trie.keys, trie.nodes, trie.state[1]
  while True:
    child = reference_trie.find(keys, nodes, mask, suffix, token)
    if child or suffix == 0:
      return child
    suffix = shorter[suffix]


@njit
def _read(symbols, low, high, states, trie, parent, word, depth, shorter, out):
  """Reads the target side of an edge; fills its statistics.

  Args:
    symbols: words, and `-1 - k` for the k-th tail.
    low: first symbol of the edge.
    high: one past its last.
    states: (prefix, suffix, length up to 3) of each tail, `[A, 3]`.
    trie: of the references, as are the arrays after it.
    parent: see `_make_trie`.
    word: last word of an n-gram.
    depth: words of an n-gram.
    shorter: see `_make_trie`.
    out: statistics, `[8]`.

  Returns:
    `(prefix, suffix, length up to 3)` of the whole.
  """
  keys, nodes, mask = trie.keys, trie.nodes, trie.state[1]
  prefix, suffix, length = np.int32(0), np.int32(0), 0
  growing = True  # all words so far are the prefix
  first = np.empty(_SEEN, np.int32)
  out[:] = 0
  for place in range(low, high):
    symbol = symbols[place]
    if symbol >= 0:
      # A word: n-grams that end with it.
      if growing and length < _SEEN:
        child = reference_trie.find(keys, nodes, mask, prefix, symbol)
        growing = child > 0
        prefix = child if child else prefix
      suffix = _append(trie, depth, shorter, suffix, symbol)
      for n in range(depth[suffix]):
        out[n] += 1
      if depth[suffix] > _SEEN:
        suffix = shorter[suffix]
      length += 1
      continue
    tail_prefix = states[-1 - symbol, 0]
    tail_suffix = states[-1 - symbol, 1]
    size = states[-1 - symbol, 2]
    # The first words of the tail, as far as a reference knows them.
    count = depth[tail_prefix]
    node = tail_prefix
    for k in range(count - 1, -1, -1):
      first[k] = word[node]
      node = parent[node]
    # N-grams that begin before the tail and end in it.
    before = suffix
    for k in range(count):
      if growing and length + k < _SEEN:
        child = reference_trie.find(keys, nodes, mask, prefix, first[k])
        growing = child > 0
        prefix = child if child else prefix
      before = _append(trie, depth, shorter, before, first[k])
      for n in range(k + 1, depth[before]):
        out[n] += 1
      if depth[before] > _SEEN:
        before = shorter[before]
    # Past a word that is not known there, or past three, only the tail counts.
    whole = size < _SEEN and count == size
    suffix = before if whole else tail_suffix
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
  trie, parent, word, depth, shorter = _make_trie(
    words, reference_offsets, 0, 0
  )
  for line in range(len(sentence)):
    row = sentence[line]
    if line == 0 or row != sentence[line - 1]:
      trie, parent, word, depth, shorter = _make_trie(
        words, reference_offsets, references[row], references[row + 1]
      )
    _read(
      flat,
      offsets[line],
      offsets[line + 1],
      states,
      trie,
      parent,
      word,
      depth,
      shorter,
      out[line],
    )
  return out


@njit
def _split(
  edge_offsets,
  tails,
  numbers,
  symbols,
  offsets,
  flat,
  reference_offsets,
  first,
  last,
  limit,
):
  """Splits the nodes of one sentence.

  Args:
    edge_offsets: of its nodes, int64 `[N + 1]`.
    tails: int32 `[E, A]`.
    numbers: the rows of its edges in `offsets`, `[E]`.
    symbols: target sides.
    offsets: where each edge's symbols are.
    flat: words of references.
    reference_offsets: where they are.
    first: the sentence's first reference.
    last: one past its last.
    limit: edges at most.

  Returns:
    `(edge offsets, tails, numbers, statistics)` of the split forest; empty edge
    offsets if there would be more than `limit` edges.
  """
  trie, parent, word, depth, shorter = _make_trie(
    flat, reference_offsets, first, last
  )
  arity = tails.shape[1]
  count_nodes = len(edge_offsets) - 1
  room = 2 * len(tails) + 16
  new_tails = np.full((room, arity), -1, np.int32)
  origin = np.empty(room, np.int64)
  table = np.empty((room, 2 * ORDER), np.int16)
  keys = np.empty(room, np.int64)
  state = np.empty((room, 3), np.int32)  # of each new node
  new_offsets = np.zeros(room + 1, np.int64)
  begin = np.zeros(count_nodes + 1, np.int64)  # new nodes of each node
  picked = np.zeros(arity, np.int64)
  states = np.zeros((arity, 3), np.int32)
  out = np.zeros(2 * ORDER, np.int16)
  nodes, edges = 0, 0
  wide = np.int64(len(depth))
  for node in range(count_nodes):
    base_edge = edges
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      size = 0
      while size < arity and tails[edge, size] >= 0:
        picked[size] = begin[tails[edge, size]]
        size += 1
      number = numbers[edge]
      while True:  # over all choices of new nodes for the tails
        for part in range(size):
          states[part] = state[picked[part]]
        prefix, suffix, length = _read(
          symbols,
          offsets[number],
          offsets[number + 1],
          states,
          trie,
          parent,
          word,
          depth,
          shorter,
          out,
        )
        if edges == limit:
          empty = np.zeros(0, np.int64)
          return empty, new_tails[:0], empty, table[:0]
        if edges == len(origin):
          new_tails = _grown(new_tails)
          table = _grown(table)
          origin = np.concatenate((origin, origin))
          keys = np.concatenate((keys, keys))
        for part in range(arity):
          new_tails[edges, part] = picked[part] if part < size else -1
        origin[edges] = number
        table[edges] = out
        keys[edges] = (prefix * wide + suffix) * (_SEEN + 1) + length
        edges += 1
        # The next choice.
        part = size - 1
        while part >= 0:
          picked[part] += 1
          if picked[part] < begin[tails[edge, part] + 1]:
            break
          picked[part] = begin[tails[edge, part]]
          part -= 1
        if part < 0:
          break
    # Edges of equal states share a head; the root is never split.
    if node == count_nodes - 1:
      keys[base_edge:edges] = 0
    order = np.argsort(keys[base_edge:edges], kind="mergesort") + base_edge
    new_tails[base_edge:edges] = new_tails[order]
    origin[base_edge:edges] = origin[order]
    table[base_edge:edges] = table[order]
    keys[base_edge:edges] = keys[order]
    for edge in range(base_edge, edges):
      if edge == base_edge or keys[edge] != keys[edge - 1]:
        if nodes == len(state):
          state = _grown(state)
          new_offsets = np.concatenate((new_offsets, new_offsets))
        key = keys[edge]
        state[nodes, 2] = key % (_SEEN + 1)
        key //= _SEEN + 1
        state[nodes, 1] = key % wide
        state[nodes, 0] = key // wide
        nodes += 1
      new_offsets[nodes] = edge + 1
    begin[node + 1] = nodes
  return (
    new_offsets[: nodes + 1].copy(),
    new_tails[:edges].copy(),
    origin[:edges].copy(),
    table[:edges].copy(),
  )


@njit
def _grown(table):
  """The table with twice the rows."""
  out = np.empty((2 * len(table), table.shape[1]), table.dtype)
  out[: len(table)] = table
  return out
