"""Forced decoding of a batch: survey, chart, what of it reaches the goal."""

import numpy as np

from jaxmt.decode.forced.forced_chart import fill_glue, fill_spans
from jaxmt.decode.forced.forced_items import (
  BEGIN,
  CATEGORY,
  COLUMNS,
  EDGES,
  END,
  FIRST,
  ITEMS,
  LABEL,
  LAST,
  full,
)
from jaxmt.decode.forced.survey import FITTING, chain_positions, survey
from jaxmt.grammar.match.applications import GOAL, ORDINARY
from jaxmt.text.kernels import grown_rows, njit

# Why there is no derivation.
REACHED, EMPTY, LONG, LIMIT, WORD, UNFIT, UNCOVERED, PARTS = range(8)


@njit
def _finish(items, edges, counts, bounds, length, words, goal):
  """Adds the goal; keeps what derivations of the whole reference use.

  Returns:
    `(nodes, edges by head, edge counts of the nodes)`; none if there is no
    derivation. Edges have the columns (rule, tails).
  """
  # The goal, over every item that has all words of both sides.
  width = edges.shape[1] - 2
  root = counts[ITEMS]
  items = grown_rows(items, root + 1)
  items[root, BEGIN], items[root, END], items[root, CATEGORY] = 0, length, GOAL
  items[root, LABEL] = goal[1]
  items[root, FIRST], items[root, LAST] = (0, words) if words else (-1, -1)
  first_goal = counts[EDGES]
  num_edges = first_goal
  for item in range(bounds[length, length, 0], bounds[length, length, 1]):
    if items[item, FIRST] == items[root, FIRST] and (
      items[item, LAST] == items[root, LAST]
    ):
      edges = grown_rows(edges, num_edges + 1)
      edges[num_edges, 0], edges[num_edges, 1] = root, goal[0]
      for part in range(width):
        edges[num_edges, 2 + part] = item if part == 0 else -1
      num_edges += 1
  # From the goal down: mark what it uses, count edges of each head.
  keep = np.zeros(root + 1, np.bool_)
  keep[root] = num_edges > first_goal
  sizes = np.zeros(root + 1, np.int64)
  for edge in range(num_edges - 1, -1, -1):  # heads stand after their tails
    if keep[edges[edge, 0]]:
      sizes[edges[edge, 0]] += 1
      for part in range(width):
        if edges[edge, 2 + part] >= 0:
          keep[edges[edge, 2 + part]] = True
  # Number the marked items, and give their edges room in that order.
  number = np.zeros(root + 1, np.int32)
  places = np.zeros(root + 1, np.int64)
  num_nodes, total = 0, 0
  for item in range(root + 1):
    if keep[item]:
      number[item] = num_nodes
      places[item] = total
      num_nodes += 1
      total += sizes[item]
  # Write edges by head.
  out = np.empty((total, 1 + width), np.int32)
  for edge in range(num_edges):
    head = edges[edge, 0]
    if keep[head]:
      place = places[head]
      places[head] += 1
      out[place, 0] = edges[edge, 1]
      for part in range(width):
        tail = edges[edge, 2 + part]
        out[place, 1 + part] = number[tail] if tail >= 0 else -1
  # Write nodes.
  nodes = np.empty((num_nodes, COLUMNS), np.int32)
  counts_of = np.empty(num_nodes, np.int64)
  for item in range(root + 1):
    if keep[item]:
      counts_of[number[item]] = sizes[item]
      for column in range(COLUMNS):
        nodes[number[item], column] = items[item, column]
  return nodes, out, counts_of


@njit
def _explain(items, count, length, status):
  """Says how far an unsuccessful chart came."""
  covered = np.zeros(length, np.bool_)
  best = -1
  for item in range(count):
    row = items[item]
    if row[CATEGORY] == ORDINARY:
      for position in range(row[BEGIN], row[END]):
        covered[position] = True
      if best < 0 or (
        row[LAST] - row[FIRST] > items[best, LAST] - items[best, FIRST]
      ):
        best = item
  for begin in range(length):
    if not covered[begin]:
      end = begin
      while end < length and not covered[end]:
        end += 1
      status[0], status[1], status[2] = UNCOVERED, begin, end
      return
  status[0] = PARTS
  status[1], status[2] = items[best, FIRST], items[best, LAST]
  status[3], status[4] = items[best, BEGIN], items[best, END]


@njit
def _copied(copies, copy_word, known, copy_all, num_rules, text, produced):
  """(rule, word) that copies each word; marks what copying produces."""
  out = np.full((len(copies), 2), -1, np.int32)
  for position in range(len(copies)):
    out[position, 0] = num_rules + 1 + copies[position]
    word = copy_word[copies[position]]
    if word >= 0 and (copy_all or not known[position]):
      out[position, 1] = word
      if text[1][word] >= 0:
        produced[text[1][word]] = FITTING
  return out


@njit
def _sentence(
  words, copies, spans, excluded, text, rules, scratch, limits, out
):
  """One sentence's chart; see `force_batch` for the arguments."""
  trie, patterns, table, copy_word, goal = rules
  span, copy_all, most, width = limits
  counts = np.zeros(3, np.int64)
  target = (table[1], table[2])
  surveyed = survey(
    words, spans, trie, patterns, target, text, excluded, scratch[1], span
  )
  produced = surveyed[3]
  copied = _copied(
    copies, copy_word, surveyed[4], copy_all, len(table[0]), text, produced
  )
  nothing = (
    np.empty((0, COLUMNS), np.int32),
    np.empty((0, 1 + width), np.int32),
    np.empty(0, np.int64),
  )
  for worst in range(FITTING):
    for place in range(len(produced)):
      if text[1][text[0][place]] == place and produced[place] == worst:
        out[0], out[1] = (WORD if worst == 0 else UNFIT), place
        return nothing
  tails = np.empty(width, np.int32)
  work = (counts, most, scratch[2], tails)
  spanned = fill_spans(copied, spans, surveyed, table, text, span, work)
  if full(counts, most):
    out[0] = LIMIT
    return nothing
  items, edges, bounds = fill_glue(spanned, table, text, work)
  if full(counts, most):
    out[0] = LIMIT
    return nothing
  finished = _finish(
    items, edges, counts, bounds, len(words), len(text[0]), goal
  )
  if len(finished[0]) == 0:
    if len(text[0]) == 0:
      out[0] = EMPTY
    else:
      _explain(items, counts[ITEMS], len(words), out)
  return finished


@njit
def force_batch(
  batch, source, copies, spans, reference, excluded, rules, sizes, limits
):
  """Forces sentences `batch[0] : batch[1]`.

  Args:
    batch: which sentences.
    source: source words, as (flat, offsets).
    copies: pass-through word of each token.
    spans: constituents, as (flat, offsets).
    reference: target words, as (flat, offsets).
    excluded: rules not to use, rising in each row, as (flat, offsets).
    rules: (trie, patterns, table, target word of each pass-through word, (goal
      rule, its label)), see `survey` and `fill_spans`.
    sizes: numbers of target words, of trie nodes, of symbols of the longest
      target side.
    limits: (longest Hiero span, whether all words may be copied, most items,
      edges and steps as int64 `[3]`, A, longest sentence).

  Returns:
    `(nodes, node counts, edges, edge counts, status)`: items that derivations
    use, `[N, COLUMNS]`; how many each sentence has; (rule, tails) by node, with
    nodes numbered from 0 in each sentence; how many each node has; a reason
    and its details for each sentence, int32 `[B, 5]`.
  """
  low, high = batch
  width = limits[3]
  # Room that all sentences share.
  scratch = (
    np.full(sizes[0], -1, np.int32),
    np.full(sizes[1], -1, np.int32),
    (
      np.empty(sizes[2] + 2, np.int32),
      np.empty(sizes[2] + 2, np.int32),
      np.empty(sizes[2] + 2, np.int32),
    ),
  )
  status = np.zeros((high - low, 5), np.int32)
  node_counts = np.zeros(high - low, np.int64)
  nodes = np.empty((256, COLUMNS), np.int32)
  edges = np.empty((1024, 1 + width), np.int32)
  edge_counts = np.empty((256, 1), np.int64)
  num_nodes, num_edges = 0, 0
  for row in range(low, high):
    words = source[0][source[1][row] : source[1][row + 1]]
    goal = reference[0][reference[1][row] : reference[1][row + 1]]
    if len(words) == 0:
      status[row - low, 0] = EMPTY
      continue
    if max(len(words), len(goal)) > limits[4]:
      status[row - low, 0] = LONG
      continue
    # Where each word stands in the reference; then all items and edges.
    link = chain_positions(goal, scratch[0])
    sentence = _sentence(
      words,
      copies[source[1][row] : source[1][row + 1]],
      spans[0][spans[1][row] : spans[1][row + 1]],
      excluded[0][excluded[1][row] : excluded[1][row + 1]],
      (goal, scratch[0], link),
      rules,
      scratch,
      limits[:4],
      status[row - low],
    )
    for word in goal:
      scratch[0][word] = -1
    # Append the sentence to those before it.
    node_counts[row - low] = len(sentence[0])
    nodes = grown_rows(nodes, num_nodes + len(sentence[0]))
    edge_counts = grown_rows(edge_counts, num_nodes + len(sentence[0]))
    edges = grown_rows(edges, num_edges + len(sentence[1]))
    nodes[num_nodes : num_nodes + len(sentence[0])] = sentence[0]
    edge_counts[num_nodes : num_nodes + len(sentence[0]), 0] = sentence[2]
    edges[num_edges : num_edges + len(sentence[1])] = sentence[1]
    num_nodes += len(sentence[0])
    num_edges += len(sentence[1])
  return (
    nodes[:num_nodes],
    node_counts,
    edges[:num_edges],
    edge_counts[:num_nodes, 0],
    status,
  )
