"""The chart of forced decoding: spans of the source, filled with items.

Spans are filled from the right to the left and short before long (CKY+):
patterns that begin at a word grow by the words and by the spans already filled
after them, and only by spans that have items. Glue cells `[0, end)` follow.
"""

import numpy as np

from jaxmt.decode.forced.forced_items import (
  COLUMNS,
  ITEMS,
  add_edge,
  apply_rule,
  close_cell,
  full,
  no_buckets,
)
from jaxmt.grammar.match.applications import GLUE, ORDINARY, has_label
from jaxmt.grammar.match.source_trie import TREE
from jaxmt.grammar.table import X
from jaxmt.text.kernels import grown_rows, njit

# Columns of a pattern under way.
_NEXT, _NODE, _ROOT, _SITES, _SPANS = 0, 1, 2, 3, 4


@njit
def _push(rows, heads, used, before, node, position, begin):
  """Adds a pattern grown from row `before` (-1 - root: from nothing) to `node`.

  A row is (next row with the same end, node, root, sites, site begin, site end,
  ...); `begin` is that of the site it grew by, -1 for a word.
  """
  rows = grown_rows(rows, used + 1)
  if before < 0:
    rows[used, _ROOT], rows[used, _SITES] = -1 - before, 0
  else:
    for column in range(rows.shape[1]):
      rows[used, column] = rows[before, column]
  rows[used, _NODE] = node
  if begin >= 0:
    place = _SPANS + 2 * rows[used, _SITES]
    rows[used, place], rows[used, place + 1] = begin, position
    rows[used, _SITES] += 1
  rows[used, _NEXT] = heads[position]
  heads[position] = used
  return rows, used + 1


@njit
def _chain_spans(spans, side):
  """Linked lists of constituents by span: (spans, heads, links)."""
  heads = np.full((side, side), -1, np.int32)
  links = np.empty(len(spans), np.int32)
  for item in range(len(spans)):
    links[item] = heads[spans[item, 0], spans[item, 1]]
    heads[spans[item, 0], spans[item, 1]] = item
  return spans, heads, links


@njit
def _apply_patterns(
  rows, row, surveyed, cell, constituents, table, state, chart
):
  """Applies the rules of all patterns that end where the open cell does."""
  _, ranges, usable, _, _ = surveyed
  spans, span_heads, span_links = constituents
  lhs, flat, starts, _, _ = table
  text, order, bounds, sites, work = state
  while row >= 0:
    low, high = ranges[rows[row, _NODE], 0], ranges[rows[row, _NODE], 1]
    for number in range(rows[row, _SITES]):
      place = _SPANS + 2 * number
      begin, end = rows[row, place], rows[row, place + 1]
      sites[number, 0] = bounds[begin, end, 0]
      sites[number, 1] = bounds[begin, end, 1]
    for entry in range(low, high):
      rule = usable[entry, 0]
      if rows[row, _ROOT] == TREE and not has_label(
        spans, span_heads[cell[0], cell[1]], span_links, lhs[rule]
      ):
        continue
      symbols = flat[starts[rule] : starts[rule + 1]]
      chart = apply_rule(
        rule,
        lhs[rule],
        np.int64(-1),
        sites,
        cell,
        symbols,
        text,
        chart,
        order,
        work,
      )
      if full(work[0], work[1]):
        return chart
    row = rows[row, _NEXT]
  return chart


@njit
def _extend(rows, used, heads, cell, after, span_heads, bounds, span):
  """Grows the patterns that end where a closed cell does."""
  begin, end = cell[0], cell[1]
  length = len(heads) - 1
  width = (rows.shape[1] - _SPANS) // 2
  row = heads[end]
  while row >= 0:  # new ones end further right
    node, tree = rows[row, _NODE], rows[row, _ROOT] == TREE
    reach = length if tree else min(length, begin + span)
    if end < reach and after[node, end] >= 0:
      rows, used = _push(
        rows, heads, used, row, after[node, end], end + 1, np.int64(-1)
      )
    onward = after[node, length + 1]
    if onward >= 0 and rows[row, _SITES] < width:
      for stop in range(end + 1, reach + 1):
        if bounds[end, stop, 1] > bounds[end, stop, 0] and (
          not tree or span_heads[end, stop] >= 0
        ):
          rows, used = _push(rows, heads, used, row, onward, stop, end)
    row = rows[row, _NEXT]
  return rows, used


@njit
def _start(rows, used, heads, cell, after, span_heads, bounds, span):
  """Adds the patterns that begin with the closed cell as a site."""
  begin, end = cell[0], cell[1]
  for root in range(2):
    allowed = end - begin <= span
    if root == TREE:
      allowed = span_heads[begin, end] >= 0
    node = after[root, len(heads)]
    if allowed and node >= 0 and bounds[begin, end, 1] > bounds[begin, end, 0]:
      rows, used = _push(rows, heads, used, -1 - root, node, end, begin)
  return rows, used


@njit
def _copy(chart, cell, rule, word, text, tails, counts):
  """Adds the items of a copied word, one for each place it has."""
  for part in range(len(tails)):
    tails[part] = -1
  place = text[1][word]
  while place >= 0:
    chart = add_edge(
      chart,
      cell,
      np.int32(X),
      place,
      np.int32(place + 1),
      rule,
      tails,
      counts,
    )
    place = text[2][place]
  return chart


@njit
def fill_spans(copied, spans, surveyed, table, text, span, work):
  """Fills the cells of all spans of one sentence.

  Args:
    copied: (rule, word) that copies each source word, word -1 where there is
      none or it may not be copied; int32 `[n, 2]`.
    spans: constituents, int32 `[M, 3]`.
    surveyed: what `survey` found.
    table: (left-hand sides, target flat, target offsets, glue rules of arity 1,
      of arity 2).
    text: the reference, see `chain_positions`.
    span: longest span of Hiero rules.
    work: (counts, limits, scratch, tails), see `apply_rule`.

  Returns:
    `(items, edges, order, bounds)`: `order` as `apply_rule` needs it, bounds of
    the cells in it by begin and end; row n is left for the glue cells.
  """
  counts, limits, _, tails = work
  width, length = len(tails), len(copied)
  side = length + 1
  constituents = _chain_spans(spans, side)
  span_heads = constituents[1]
  items = np.empty((256, COLUMNS), np.int32)
  edges = np.empty((256, 2 + width), np.int32)
  order = np.empty((256, 1), np.int32)
  bounds = np.zeros((side, side, 2), np.int64)
  sites = np.zeros((width, 2), np.int64)
  rows = np.zeros((256, _SPANS + 2 * width), np.int64)
  heads = np.empty(side, np.int64)
  # Spans from right to left, shorter ones first: sites are filled by then.
  after = surveyed[0]
  for begin in range(length - 1, -1, -1):
    used = np.int64(0)
    for end in range(side):
      heads[end] = -1
    # Patterns that begin with the word at `begin`.
    for root in range(2):
      node = after[root, begin]
      if node >= 0:
        rows, used = _push(
          rows, heads, used, -1 - root, node, begin + 1, np.int64(-1)
        )
    for end in range(begin + 1, side):
      start = counts[ITEMS]
      cell = (begin, end, np.int64(ORDINARY), start)
      state = (text, order, bounds, sites, work)
      chart = (items, edges, no_buckets(np.int64(16)))
      # Patterns that end at `end`, and the word copied.
      chart = _apply_patterns(
        rows, heads[end], surveyed, cell, constituents, table, state, chart
      )
      if end == begin + 1 and copied[begin, 1] >= 0:
        rule, word = copied[begin, 0], copied[begin, 1]
        chart = _copy(chart, cell, rule, word, text, tails, counts)
      items, edges, _ = chart
      if full(counts, limits):
        return items, edges, order, bounds
      # Close the cell, then extend patterns by it: as first site, as next one.
      order = close_cell(items, order, start, counts[ITEMS], len(text[0]))
      bounds[begin, end, 0], bounds[begin, end, 1] = start, counts[ITEMS]
      rows, used = _start(
        rows, used, heads, cell, after, span_heads, bounds, span
      )
      rows, used = _extend(
        rows, used, heads, cell, after, span_heads, bounds, span
      )
  return items, edges, order, bounds


@njit
def fill_glue(made, table, text, work):
  """Fills the glue cells `[0, end)`, which begin where the reference does.

  Args:
    made: what `fill_spans` made.
    table: see `fill_spans`.
    text: the reference.
    work: see `apply_rule`.

  Returns:
    `(items, edges, bounds)`; the glue cells' bounds are row n.
  """
  items, edges, order, bounds = made
  lhs, flat, starts, glue_one, glue_two = table
  counts, limits, _, tails = work
  length = len(bounds) - 1
  sites = np.zeros((len(tails), 2), np.int64)
  for end in range(1, length + 1):
    start = counts[ITEMS]
    cell = (np.int64(0), end, np.int64(GLUE), start)
    chart = (items, edges, no_buckets(np.int64(16)))
    for begin in range(end):
      # The part before stands in row `length`; there is none before the first.
      for side in range(2):
        place = length if begin > 0 else begin
        sites[0, side] = bounds[place, begin if begin > 0 else end, side]
        sites[1, side] = bounds[begin, end, side]
      if sites[0, 0] == sites[0, 1] or sites[1, 0] == sites[1, 1]:
        continue
      for rule in glue_one if begin == 0 else glue_two:
        symbols = flat[starts[rule] : starts[rule + 1]]
        chart = apply_rule(
          rule,
          lhs[rule],
          np.int64(0),
          sites,
          cell,
          symbols,
          text,
          chart,
          order,
          work,
        )
    items, edges, _ = chart
    if full(counts, limits):
      return items, edges, bounds
    order = close_cell(items, order, start, counts[ITEMS], len(text[0]))
    bounds[length, end, 0], bounds[length, end, 1] = start, counts[ITEMS]
  return items, edges, bounds
