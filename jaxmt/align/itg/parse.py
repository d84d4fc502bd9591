"""Forests of inversion transduction grammars over lists of bi-spans.

The normal form with words that have no link (Liu, Li & Zhou, Coling 2010,
figure 1; ACL 2010). S: start, A: straight, B: inverted, C: terminals:

  A -> [X N]   X any of A, B, C; N one of B, C: straight runs branch left
  B -> <X M>   M one of A, C: inverted runs branch left, too
  C -> source words without a link, target words without a link, core
  S -> X and the unlinked words after it, or nothing but unlinked words

A word without a link belongs to the core that follows it, or to S. (The papers
link an end token on either side to the same effect.) So every alignment that
the grammar reaches has one derivation. A core is a word pair (W-ITG), a phrase
pair with its inner links (P-ITG), or a hierarchical pair: words around a gap
that any X fills (H-ITG).

`parse` makes one `hypergraph.Forest` of any number of sentence pairs. Counts,
best alignments, k-best lists, marginals, envelopes and losses are those of
`jaxmt.hypergraph` and `jaxmt.losses`. To keep edges few, "one of B, C", "one of
A, C" and "any" are nodes of their own: two bi-spans that fit give one edge.
"""

import dataclasses

import numpy as np

from jaxmt.align.itg.bispans import BiSpans, triangle
from jaxmt.hypergraph import Forest
from jaxmt.text.kernels import grown, grown_rows, njit

# Kinds of edges: what an edge does beside passing on its tail.
PASS, STRAIGHT, INVERTED, TERMINAL = 0, 1, 2, 3
# Categories of nodes.
CORE, C, A, B, NOT_STRAIGHT, NOT_INVERTED, ANY, START = range(8)
# Columns of `Terminals.places`, and what stands for a rule in the last one.
COLUMNS = 12
WORD_PAIR, NO_CORE = -1, -2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cores:
  """Where phrase pairs and hierarchical pairs may stand: S places.

  Attributes:
    bispan: bi-span that each covers, rising, int64 `[S]`.
    rule: row of the table of rules, int32 `[S]`.
    gap: bi-span that fills its gap, -1 without a gap, int64 `[S]`.
  """

  bispan: np.ndarray
  rule: np.ndarray
  gap: np.ndarray


def no_cores() -> Cores:
  """Returns no places: word pairs are the only cores."""
  return Cores(
    bispan=np.zeros(0, np.int64),
    rule=np.zeros(0, np.int32),
    gap=np.zeros(0, np.int64),
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ItgForest:
  """Forests of B sentence pairs and what their edges stand for.

  Attributes:
    forest: its nodes have "category" int8 and "bispan" int32 (-1 of the
      root); its edges have "kind" int8 and "terminal" int32 (-1 without).
    places: one row per terminal, int32 `[T, 12]`: the sentence pair; the
      unlinked source words before the core, from and to; the unlinked target
      words, from and to; the end of the core in the source and in the target;
      its gap, source from and to, target from and to (-1 without); its rule, or
      `WORD_PAIR`, or `NO_CORE`.
  """

  forest: Forest
  places: np.ndarray


def parse(
  bispans: BiSpans, cores: Cores | None = None, *, nulls: bool = True
) -> ItgForest:
  """Returns the forests of all derivations over lists of bi-spans.

  Two words can be a pair if the bi-span of just them is in the list.

  Args:
    bispans: of B sentence pairs.
    cores: phrase pairs and hierarchical pairs; None for none.
    nulls: whether words may be without a link.
  """
  cores = no_cores() if cores is None else cores
  starts = np.searchsorted(cores.bispan, np.arange(len(bispans.spans) + 1))
  node_offsets, edge_offsets, nodes, edges, places = _parse(
    bispans.spans,
    bispans.offsets,
    bispans.source_lengths,
    bispans.target_lengths,
    starts,
    np.asarray(cores.rule, np.int32),
    np.asarray(cores.gap, np.int64),
    nulls,
  )
  return ItgForest(
    forest=Forest(
      node_offsets=node_offsets,
      edge_offsets=edge_offsets,
      tails=np.ascontiguousarray(edges[:, :2]),
      score=np.zeros(len(edges)),
      nodes={
        "category": nodes[:, 0].astype(np.int8),
        "bispan": np.ascontiguousarray(nodes[:, 1]),
      },
      edges={
        "kind": edges[:, 2].astype(np.int8),
        "terminal": np.ascontiguousarray(edges[:, 3]),
      },
    ),
    places=places,
  )


@njit
def _parse(
  spans, offsets, source_lengths, target_lengths, starts, rules, gaps, nulls
):
  """All sentence pairs, one after the other.

  Args:
    spans: `BiSpans.spans`.
    offsets: `BiSpans.offsets`.
    source_lengths: `[B]`.
    target_lengths: `[B]`.
    starts: cores of bi-span s are `starts[s] : starts[s + 1]`.
    rules: `Cores.rule`.
    gaps: `Cores.gap`.
    nulls: whether words may be without a link.

  Returns:
    `(node_offsets, edge_offsets, nodes [N, 2], edges [E, 4], places)`: nodes
    are (category, bi-span), edges (two tails, kind, terminal).
  """
  pairs = len(offsets) - 1
  node_offsets = np.zeros(pairs + 1, np.int64)
  edge_offsets = np.zeros(1024, np.int64)
  nodes = np.empty((1024, 2), np.int32)
  edges = np.empty((4096, 4), np.int32)
  places = np.empty((1024, COLUMNS), np.int32)
  # The node of each bi-span and category, -1 without.
  node_of = np.full((len(spans), 7), -1, np.int32)
  number, count, rows = 0, 0, 0
  for pair in range(pairs):
    n, m = source_lengths[pair], target_lengths[pair]
    low, high = offsets[pair], offsets[pair + 1]
    first_node, first_edge, first_row = number, count, rows
    # Where each source span's bi-spans are, and each bi-span by its spans.
    height = m * (m + 1) // 2
    begin = np.zeros(n * (n + 1) // 2, np.int64)
    end = np.zeros(n * (n + 1) // 2, np.int64)
    place = np.full((n * (n + 1) // 2, height), -1, np.int32)
    for item in range(low, high):
      source = triangle(spans[item, 0], spans[item, 1], n)
      if end[source] == 0:
        begin[source] = item
      end[source] = item + 1
      place[source, triangle(spans[item, 2], spans[item, 3], m)] = item
    # Bi-spans of each source span by begin and end of their target, rising.
    heads = np.full((2, n * (n + 1) // 2, m + 1), -1, np.int64)
    nexts = np.full((2, high - low), -1, np.int64)
    for item in range(high - 1, low - 1, -1):
      source = triangle(spans[item, 0], spans[item, 1], n)
      for side in range(2):
        bound = spans[item, 2 + side]
        nexts[side, item - low] = heads[side, source, bound]
        heads[side, source, bound] = item
    # Bi-spans with phrase pairs by their lower right corner: a linked list.
    corner = np.full((n + 1) * (m + 1), -1, np.int64)
    onward = np.full(high - low, -1, np.int64)
    lists = np.zeros((n + 1) * (m + 1), np.int64)
    for item in range(low, high):
      i, k, j, l = (
        spans[item, 0],
        spans[item, 1],
        spans[item, 2],
        spans[item, 3],
      )
      # Room for all edges and terminals of this bi-span.
      room = starts[item + 1] - starts[item] + lists[k * (m + 1) + l] + 16
      rest = np.int64(0)
      for split in range(i + 1, k):
        source = triangle(i, split, n)
        rest += end[source] - begin[source]
      edges = grown_rows(edges, count + room + 2 * rest)
      places = grown_rows(places, rows + room)
      nodes = grown_rows(nodes, number + 8)
      edge_offsets = grown(edge_offsets, number + 9)
      # Phrase pairs and hierarchical pairs that cover it exactly.
      before = count
      for core in range(starts[item], starts[item + 1]):
        gap = gaps[core]
        tail = np.int32(-1)
        if gap >= 0:
          tail = node_of[gap, ANY]
          if tail < 0:
            continue
        _place(places, rows, pair, i, i, j, j, k, l, rules[core])
        if gap >= 0:
          for column in range(4):
            places[rows, 7 + column] = spans[gap, column]
        count = _edge(edges, count, tail, -1, TERMINAL, rows)
        rows += 1
      if count > before:
        number = _node(nodes, edge_offsets, node_of, number, count, item, CORE)
        onward[item - low] = corner[k * (m + 1) + l]
        corner[k * (m + 1) + l] = item
        lists[k * (m + 1) + l] += 1
      # Terminals: unlinked words, then a word pair or one of the above.
      before = count
      alone = k - i == 1 and l - j == 1
      unit = place[triangle(k - 1, k, n), triangle(l - 1, l, m)]
      if unit >= 0 and (nulls or alone):
        _place(places, rows, pair, i, k - 1, j, l - 1, k, l, WORD_PAIR)
        count = _edge(edges, count, -1, -1, TERMINAL, rows)
        rows += 1
      core = corner[k * (m + 1) + l]
      while core >= 0:
        a, c = spans[core, 0], spans[core, 2]
        if core == item:
          count = _edge(edges, count, node_of[core, CORE], -1, PASS, -1)
        elif nulls and a >= i and c >= j:
          _place(places, rows, pair, i, a, j, c, a, c, NO_CORE)
          count = _edge(edges, count, node_of[core, CORE], -1, TERMINAL, rows)
          rows += 1
        core = onward[core - low]
      if count > before:
        number = _node(nodes, edge_offsets, node_of, number, count, item, C)
      # Two neighbours, straight, then inverted.
      for inverted in range(2):
        before = count
        for split in range(i + 1, k):
          source = triangle(i, split, n)
          other = triangle(split, k, n)
          onwards = nexts[inverted]
          left = heads[inverted, source, l if inverted else j]
          while left >= 0:
            item_left, left = left, onwards[left - low]
            if node_of[item_left, ANY] < 0:
              continue
            right = np.int32(-1)
            if not inverted and spans[item_left, 3] < l:
              right = place[other, triangle(spans[item_left, 3], l, m)]
            elif inverted and spans[item_left, 2] > j:
              right = place[other, triangle(j, spans[item_left, 2], m)]
            if right < 0:
              continue
            tail = node_of[right, NOT_INVERTED if inverted else NOT_STRAIGHT]
            if tail >= 0:
              kind = INVERTED if inverted else STRAIGHT
              first = node_of[item_left, ANY]
              count = _edge(edges, count, first, tail, kind, -1)
        if count > before:
          category = B if inverted else A
          number = _node(
            nodes, edge_offsets, node_of, number, count, item, category
          )
      # One of B, C; one of A, C; any of the three.
      number, count = _union(
        nodes,
        edges,
        edge_offsets,
        node_of,
        number,
        count,
        item,
        NOT_STRAIGHT,
        B,
        C,
      )
      number, count = _union(
        nodes,
        edges,
        edge_offsets,
        node_of,
        number,
        count,
        item,
        NOT_INVERTED,
        A,
        C,
      )
      number, count = _union(
        nodes,
        edges,
        edge_offsets,
        node_of,
        number,
        count,
        item,
        ANY,
        A,
        NOT_STRAIGHT,
      )
    # The start: an X from the beginning of both sides, unlinked words after.
    before = count
    edges = grown_rows(edges, count + high - low + 1)
    places = grown_rows(places, rows + high - low + 1)
    nodes = grown_rows(nodes, number + 1)
    edge_offsets = grown(edge_offsets, number + 2)
    if nulls:
      _place(places, rows, pair, 0, n, 0, m, n, m, NO_CORE)
      count = _edge(edges, count, -1, -1, TERMINAL, rows)
      rows += 1
    for item in range(low, high):
      k, l = spans[item, 1], spans[item, 3]
      if spans[item, 0] or spans[item, 2] or node_of[item, ANY] < 0:
        continue
      if nulls or (k == n and l == m):
        _place(places, rows, pair, k, n, l, m, n, m, NO_CORE)
        count = _edge(edges, count, node_of[item, ANY], -1, TERMINAL, rows)
        rows += 1
    if count > before:
      nodes[number, 0], nodes[number, 1] = START, -1
      number += 1
      edge_offsets[number] = count
    else:
      number, count, rows = first_node, first_edge, first_row
    node_offsets[pair + 1] = number
  return (
    node_offsets,
    edge_offsets[: number + 1],
    nodes[:number],
    edges[:count],
    places[:rows],
  )


@njit
def _edge(edges, count, left, right, kind, terminal):
  """Appends an edge; returns their number."""
  edges[count, 0], edges[count, 1] = left, right
  edges[count, 2], edges[count, 3] = kind, terminal
  return count + 1


@njit
def _node(nodes, edge_offsets, node_of, number, count, item, category):
  """Appends the node whose edges end at `count`; returns their number."""
  nodes[number, 0], nodes[number, 1] = category, item
  node_of[item, category] = number
  edge_offsets[number + 1] = count
  return number + 1


@njit
def _union(
  nodes, edges, edge_offsets, node_of, number, count, item, category, one, two
):
  """Appends the node of either category, if there is one: `(nodes, edges)`."""
  before = count
  for part in (one, two):
    if node_of[item, part] >= 0:
      count = _edge(edges, count, node_of[item, part], -1, PASS, -1)
  if count > before:
    number = _node(nodes, edge_offsets, node_of, number, count, item, category)
  return number, count


@njit
def _place(places, row, pair, a, b, c, d, e, f, rule):
  """Writes a terminal without a gap; see `ItgForest.places`."""
  places[row, 0] = pair
  places[row, 1], places[row, 2] = a, b
  places[row, 3], places[row, 4] = c, d
  places[row, 5], places[row, 6] = e, f
  for column in range(7, 11):
    places[row, column] = -1
  places[row, 11] = rule
