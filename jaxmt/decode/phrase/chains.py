"""Chains of phrases: words, links, strings and order features.

A phrase-based derivation is a chain: the root is the last phrase, the child of
a phrase is the one said before it. The target string is read from the far end
of the chain, so rules have no place for their child on the target side.
"""

import numpy as np

from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase.stack_kernel import block_around, cover
from jaxmt.features.phrase_order import order_values
from jaxmt.hypergraph.forest import Forest
from jaxmt.text import ragged
from jaxmt.text.kernels import GOLDEN, mixed, njit
from jaxmt.text.ragged import Ragged, row_offsets


def _rows(model: Model, rule: np.ndarray) -> Ragged:
  """The target words of applied rules; `V + c` is the c-th copied word."""
  table = model.table
  size, known = len(table), len(table.target_words)
  copied = np.unique(rule[rule > size])
  sides = Ragged(
    flat=np.concatenate(
      [table.target.flat, (known + copied - size - 1).astype(np.int32)]
    ),
    offsets=np.concatenate(
      [
        table.target.offsets,
        table.target.offsets[-1] + np.arange(1, 1 + len(copied)),
      ]
    ),
  )
  place = np.where(rule > size, size + np.searchsorted(copied, rule), rule)
  return ragged.select(sides, place)


def said_order(offsets: np.ndarray) -> np.ndarray:
  """Returns the nodes of chains in the order they are said, int64 `[N]`."""
  ends = np.repeat(offsets[:-1] + offsets[1:] - 1, np.diff(offsets))
  return ends - np.arange(len(ends))


def read_off(
  model: Model, offsets: np.ndarray, rule: np.ndarray, begin: np.ndarray
) -> tuple[Ragged, Ragged]:
  """Returns words and links of D chains, as `derivation.Yields` has them.

  Args:
    model: the phrases.
    offsets: chain d has the nodes `offsets[d] : offsets[d + 1]`, `[D + 1]`.
    rule: applied rule of each node, int `[N]`.
    begin: first source word of each, int `[N]`.
  """
  nodes = said_order(offsets)
  rule, begin = rule[nodes], begin[nodes]
  chain = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
  targets = _rows(model, rule)
  words = Ragged(flat=targets.flat, offsets=targets.offsets[offsets])
  table, size = model.table, len(model.table)
  known = np.minimum(rule, size - 1)
  is_copy = rule > size
  counts = np.where(is_copy, 1, table.links.lengths[known])
  first = row_offsets(counts)
  node = np.repeat(np.arange(len(rule)), counts)
  within = np.arange(len(node)) - first[node]
  links = np.zeros((len(node), 2), np.int64)
  own = ~is_copy[node]
  place = table.links.offsets[known[node[own]]] + within[own]
  links[own] = np.asarray(table.links.flat).reshape(-1, 2)[place]
  links[:, 0] += begin[node]
  links[:, 1] += targets.offsets[node] - words.offsets[chain[node]]
  order = np.lexsort((links[:, 1], links[:, 0], chain[node]))
  return words, Ragged(
    flat=links[order].astype(np.int32), offsets=first[offsets]
  )


def chain_values(
  model: Model,
  offsets: np.ndarray,
  rule: np.ndarray,
  begin: np.ndarray,
  end: np.ndarray,
) -> np.ndarray:
  """Returns the order features of D chains, float64 `[D, names]`."""
  order, size = model.phrase_order, len(model.table)
  nodes = said_order(offsets)
  span = np.stack([begin, end], axis=1)[nodes]
  known = np.minimum(rule, size)[nodes]
  chain = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
  first = np.zeros(len(nodes), bool)
  first[offsets[:-1][np.diff(offsets) > 0]] = True
  before = np.where(first[:, None], [-1, 0], np.roll(span, 1, axis=0))
  block = None
  if order.hierarchical:
    block = _chain_blocks(np.asarray(offsets), span)
  values = order_values(
    order,
    rule=known,
    span=span,
    before_rule=np.where(first, size, np.roll(known, 1)),
    before=before,
    block=block,
  )
  out = np.zeros((len(offsets) - 1, values.shape[1]))
  np.add.at(out, chain, values)
  return out


@njit
def _chain_blocks(offsets, span):
  """The covered run around the phrase before each phrase, `[N, 2]`."""
  out = np.zeros((len(span), 2), np.int64)
  for chain in range(len(offsets) - 1):
    gap, mask, begin, end = np.int64(0), np.int64(0), -1, 0
    for node in range(offsets[chain], offsets[chain + 1]):
      out[node, 0], out[node, 1] = block_around(gap, mask, begin, end)
      begin, end = span[node, 0], span[node, 1]
      gap, mask = cover(gap, mask, begin, end - begin)
  return out


def edge_values(model: Model, forest: Forest) -> np.ndarray:
  """Returns the order features of each edge, float64 `[E, names]`.

  Args:
    model: a phrase-based model.
    forest: phrase lattices; nodes have the span of their last phrase.
  """
  order, size = model.phrase_order, len(model.table)
  heads, tail = forest.heads, forest.tails[:, 0]
  spans = np.stack([forest.nodes.begin, forest.nodes.end], axis=1)
  rule = np.minimum(forest.edges.rule, size)
  # All edges of a node have the same forward orientations: take the first's.
  node_rule = rule[np.minimum(forest.edge_offsets[:-1], max(len(rule) - 1, 0))]
  there = tail >= 0
  goal = forest.edges.rule == size
  block = None
  if order.hierarchical:
    block = _node_blocks(forest.edge_offsets, tail, spans)
    block = np.where(there[:, None], block[np.maximum(tail, 0)], [-1, 0])
  values = order_values(
    order,
    rule=rule,
    span=spans[heads],
    before_rule=np.where(there, node_rule[np.maximum(tail, 0)], size),
    before=np.where(there[:, None], spans[np.maximum(tail, 0)], [-1, 0]),
    block=block,
  )
  values[goal] = 0.0
  return values


@njit
def _node_blocks(edge_offsets, tail, spans):
  """The covered run around the last phrase of each node, `[N, 2]`."""
  size = len(edge_offsets) - 1
  state = np.zeros((size, 2), np.int64)
  out = np.zeros((size, 2), np.int64)
  for node in range(size):
    before = tail[edge_offsets[node]]
    gap, mask = np.int64(0), np.int64(0)
    if before >= 0:
      gap, mask = state[before, 0], state[before, 1]
    begin, end = spans[node, 0], spans[node, 1]
    # Goals cover what their tails do.
    if begin >= gap and not (begin > gap and (mask >> (begin - gap - 1)) & 1):
      gap, mask = cover(gap, mask, begin, end - begin)
    state[node, 0], state[node, 1] = gap, mask
    out[node, 0], out[node, 1] = block_around(gap, mask, begin, end)
  return out


@njit
def _coverage(edge_offsets, tail, spans, goal):
  """Covered words, first gap and mask after it of each node, `[N, 3]`."""
  out = np.zeros((len(edge_offsets) - 1, 3), np.int64)
  for node in range(len(out)):
    before = tail[edge_offsets[node]]
    gap, mask, count = np.int64(0), np.int64(0), np.int64(0)
    if before >= 0:
      count, gap, mask = out[before, 0], out[before, 1], out[before, 2]
    if not goal[edge_offsets[node]]:
      begin, end = spans[node, 0], spans[node, 1]
      gap, mask = cover(gap, mask, begin, end - begin)
      count += end - begin
    out[node, 0], out[node, 1], out[node, 2] = count, gap, mask
  return out


def covered(model: Model, forest: Forest) -> tuple[np.ndarray, np.ndarray]:
  """Returns what the hypotheses of phrase lattices have covered.

  Args:
    model: the phrases.
    forest: N nodes.

  Returns:
    `(count, key)`: covered words, int64 `[N]`; a number for coverage, last
    phrase's span and forward orientations, uint64 `[N]`.
  """
  size = len(model.table)
  spans = np.stack([forest.nodes.begin, forest.nodes.end], axis=1)
  rule = np.asarray(forest.edges.rule)
  values = _coverage(
    np.asarray(forest.edge_offsets),
    np.ascontiguousarray(forest.tails[:, 0]),
    spans,
    rule == size,
  )
  first = rule[np.asarray(forest.edge_offsets[:-1])]
  classes = model.phrase_order.classes[np.minimum(first, size)]
  columns = np.stack([values[:, 1], values[:, 2], *spans.T, classes], axis=1)
  return values[:, 0], _mixed(columns.astype(np.uint64))


@njit
def _mixed(columns):
  out = np.zeros(len(columns), np.uint64)
  for row in range(len(columns)):
    for column in range(columns.shape[1]):
      out[row] = mixed(out[row] * GOLDEN + columns[row, column] + np.uint64(1))
  return out


def edge_rows(
  model: Model, source: Source, forest: Forest
) -> tuple[np.ndarray, Ragged]:
  """Returns what the edges of phrase lattices say.

  Args:
    model: the phrases.
    source: the sentences of the lattices. Copied words that the target
      vocabulary has, too, stand under their id there.
    forest: phrase lattices.

  Returns:
    `(row, symbols)`: the string of each edge, int32 `[E]`, among strings of
    words and `-1` for what the tail says.
  """
  size, known = len(model.table), model.table.target_words
  continued = forest.tails[:, 0] >= 0
  keys, row = np.unique(
    2 * forest.edges.rule.astype(np.int64) + continued, return_inverse=True
  )
  rule, after = keys // 2, keys % 2
  goal = rule == size
  words = _rows(model, np.where(goal, 0, rule))
  keep = np.repeat(~goal, words.lengths)
  flat = words.flat[keep]
  first = len(known)
  for copy in np.unique(flat[flat >= first]).tolist():
    word = known.index.get(source.words[copy - first], copy)
    flat = np.where(flat == copy, np.int32(word), flat)
  lengths = np.where(goal, 0, words.lengths)
  offsets = row_offsets(lengths + after)
  symbols = np.full(offsets[-1], -1, np.int32)
  inside = np.ones(len(symbols), bool)
  inside[offsets[:-1][after > 0]] = False
  symbols[inside] = flat
  return row.reshape(-1).astype(np.int32), Ragged(flat=symbols, offsets=offsets)
