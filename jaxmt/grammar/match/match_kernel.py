"""The compiled part of `matching`: trie walk, bounds, per-cell limits.

Written to be compiled fast, since that is much of a cold start: loops instead
of assignments to slices, a sort of our own, and counters that begin as
`np.int64(0)` (a literal 0 would have the functions they are passed to compiled
twice).
"""

import numpy as np

from jaxmt.grammar.match import source_trie as tries
from jaxmt.grammar.match import tree_kernel
from jaxmt.grammar.match.source_trie import LEXICAL, SITE, TREE
from jaxmt.text.kernels import (
  by_falling_value,
  clear_row,
  copy_row,
  grown,
  grown_rows,
  largest,
  njit,
  offer,
)

ORDINARY, GLUE, GOAL = 0, 1, 2
_NONE = -np.inf


@njit
def _walk(words, spans, grammar, span, width):
  """All pattern matches of one sentence.

  A stack entry and a match are rows (begin, position, node, root, arity,
  site begin, site end, ...).

  Returns:
    `(matches, count)`.
  """
  keys, children, _, offsets = grammar
  length = len(words)
  columns = 5 + 2 * width
  stack = np.empty((64, columns), np.int32)
  found = np.empty((256, columns), np.int32)
  count = np.int64(0)
  entry = np.empty(columns, np.int32)
  for begin in range(length):
    for root in range(2):
      if root == TREE and len(spans) == 0:
        continue
      stack[0, 0], stack[0, 1], stack[0, 2] = begin, begin, root
      stack[0, 3], stack[0, 4] = root, 0
      top = np.int64(1)
      while top:
        top -= 1
        for column in range(columns):
          entry[column] = stack[top, column]
        position, node, sites = entry[1], entry[2], entry[4]
        if position > begin and offsets[node + 1] > offsets[node]:
          found = grown_rows(found, count + 1)
          for column in range(columns):
            found[count, column] = entry[column]
          count += 1
        if position == length:
          continue
        reach = length if root == TREE else min(length, begin + span)
        if position >= reach:
          continue
        onward = tries.step(keys, children, node, words[position])
        stack = grown_rows(stack, top + 1 + length + len(spans))
        if onward >= 0:
          for column in range(columns):
            stack[top, column] = entry[column]
          stack[top, 1] = position + 1
          stack[top, 2] = onward
          top += 1
        if sites == width:
          continue
        onward = tries.step(keys, children, node, SITE)
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
  return found, count


@njit
def _push(stack, top, entry, node, begin, end):
  sites = entry[4]
  for column in range(len(entry)):
    stack[top, column] = entry[column]
  stack[top, 1] = end
  stack[top, 2] = node
  stack[top, 4] = sites + 1
  stack[top, 5 + 2 * sites] = begin
  stack[top, 6 + 2 * sites] = end
  return top + 1


@njit
def has_label(spans, item, links, label):
  """Whether one of the constituents of a span has the label.

  Args:
    spans: begin, end, label of the sentence's constituents.
    item: the first constituent of the span, -1 for none.
    links: the next one of the same span, -1 for none.
    label: the label.
  """
  while item >= 0:
    if spans[item, 2] == label:
      return True
    item = links[item]
  return False


@njit
def _ordinary(item, pattern, labels, inside, grammar, lhs, scores, heap, items):
  """Offers every pattern application of one cell to its heap.

  Returns:
    `(kept, offered)`.
  """
  found, links, side = pattern
  spans, span_item, span_links = labels
  _, _, rules, offsets = grammar
  size, offered = np.int64(0), np.int64(0)
  while item >= 0:
    total = np.float64(0.0)
    for site in range(found[item, 4]):
      total += inside[
        found[item, 5 + 2 * site] * side + found[item, 6 + 2 * site]
      ]
    if total > _NONE:
      tree = found[item, 3] == TREE
      node = found[item, 2]
      offered += offsets[node + 1] - offsets[node]
      for entry in range(offsets[node], offsets[node + 1]):
        rule = rules[entry]
        bound = total + np.float64(scores[rule])
        if size == len(heap) and bound <= heap[0]:
          break  # rules stand best first: none of the rest gets in
        if tree and not has_label(spans, span_item, span_links, lhs[rule]):
          offered -= 1
          continue
        size = offer(heap, items, size, bound, rule, item)
    item = links[item]
  return size, offered


@njit
def _glued(end, side, inside, glue_inside, glue, scores, heap, items):
  """Offers S[0, end) -> X[0, end) and S[0, i) X[i, end).

  Returns:
    `(kept, offered)`.
  """
  size, offered = np.int64(0), np.int64(0)
  for begin in range(end):
    total = inside[begin * side + end]
    if begin > 0:
      if glue[2] and inside[end] > _NONE:
        break  # a rule covers all the words
      total += glue_inside[begin]
    if total == _NONE:
      continue
    for rule in glue[0] if begin == 0 else glue[1]:
      bound = total + np.float64(scores[rule])
      size = offer(heap, items, size, bound, rule, np.int32(begin))
      offered += 1
  return size, offered


@njit
def _chains(rows, count, side):
  """Linked lists of rows by the pair in their first columns, in row order."""
  heads = np.full(side * side, -1, np.int32)
  links = np.full(max(count, 1), -1, np.int32)
  for item in range(count - 1, -1, -1):
    place = rows[item, 0] * side + rows[item, 1]
    links[item] = heads[place]
    heads[place] = item
  return heads, links


@njit
def _write_ordinary(out, filled, size, heap, items, found, side, cell_of):
  """Appends a cell's applications, best first; returns the new fill."""
  for rank in by_falling_value(heap, size):
    clear_row(out, filled)
    out[filled, 0] = items[rank, 0]
    item = items[rank, 1]
    if item >= 0:
      for site in range(found[item, 4]):
        out[filled, 1 + site] = cell_of[
          found[item, 5 + 2 * site] * side + found[item, 6 + 2 * site]
        ]
    filled += 1
  return filled


@njit
def _write_glue(out, filled, size, heap, items, end, side, cell_of, glue_cell):
  """Appends a glue cell's applications, best first; returns the new fill."""
  for rank in by_falling_value(heap, size):
    clear_row(out, filled)
    split = items[rank, 1]
    out[filled, 0] = items[rank, 0]
    out[filled, 1 + (split > 0)] = cell_of[split * side + end]
    if split > 0:
      out[filled, 1] = glue_cell[split]
    filled += 1
  return filled


@njit
def _sentence(
  text, copies, spans, grammar, lhs, scores, glue, limits, copy_all, base
):
  """Returns one sentence's cells and applications.

  A span (begin, end) is number `begin * side + end`.

  Args:
    text: word ids.
    copies: which copied word each token is.
    spans: constituents: begin, end, label.
    grammar: the trie and its ranked rules, see `match_batch`.
    lhs: labels of the rules.
    scores: of the rules, the goal and the copied words.
    glue: the glue rules of arity 1 and 2, and whether to join only where no
      rule covers all words.
    limits: longest span, most applications of a cell, most sites.
    copy_all: whether known words are copied too.
    base: the number of the first cell.

  Returns:
    `(cells, applications, dropped)`: begin, end, category, level and end of
    the applications of each cell; rule and cells of the sites of each
    application; how many applications did not fit.
  """
  span, limit, width = limits
  length = len(text)
  side = length + 1
  # Pattern matches and constituents, chained by their span.
  found, count = _walk(text, spans, grammar, span, width)
  heads, links = _chains(found, count, side)
  span_heads, span_links = _chains(spans, len(spans), side)
  # By span: the best score inside, and the cell; for glue cells by end.
  inside = np.full(side * side, _NONE, np.float64)
  cell_of = np.full(side * side, -1, np.int32)
  glue_inside = np.full(side, _NONE, np.float64)
  glue_cell = np.full(side, -1, np.int32)
  # The applications of the cell at hand, and all cells and applications.
  heap = np.empty(limit, np.float64)
  items = np.empty((limit, 2), np.int32)
  cells = np.empty((64, 5), np.int32)  # begin, end, category, level, filled
  out = np.empty((4096, 1 + width), np.int32)
  num_cells, filled, dropped = np.int64(0), np.int64(0), np.int64(0)
  # Ordinary cells by length, then glue cells, then the goal.
  for size_of in range(1, length + 3):
    first, last = 0, length - size_of + 1
    if size_of == length + 1:
      first, last = 1, length + 1
    elif size_of == length + 2:
      first, last = length, length + 1
    for begin in range(first, last):
      cells = grown_rows(cells, num_cells + 1)
      out = grown_rows(out, filled + limit)
      if size_of > length:
        cells[num_cells, 0], cells[num_cells, 1] = 0, begin
        if size_of == length + 2:
          # The goal: the glue cell of the whole sentence.
          cells[num_cells, 2] = GOAL
          clear_row(out, filled)
          out[filled, 0], out[filled, 1] = len(lhs), glue_cell[begin]
          filled += 1
        else:
          # A glue cell: the words up to `begin`, cut at every place.
          cells[num_cells, 2] = GLUE
          size, offered = _glued(
            begin, side, inside, glue_inside, glue, scores, heap, items
          )
          dropped += offered - size
          best = largest(heap, size)
          filled = _write_glue(
            out, filled, size, heap, items, begin, side, cell_of, glue_cell
          )
          glue_inside[begin] = best
          glue_cell[begin] = base + num_cells
      else:
        # An ordinary cell: rules whose patterns match its span, best first.
        place = begin * side + begin + size_of
        size, offered = _ordinary(
          heads[place],
          (found, links, side),
          (spans, span_heads[place], span_links),
          inside,
          grammar,
          lhs,
          scores,
          heap,
          items,
        )
        # A single word that no rule translates is copied.
        if size_of == 1:
          node = tries.step(grammar[0], grammar[1], LEXICAL, text[begin])
          known = node >= 0 and grammar[3][node + 1] > grammar[3][node]
          if copy_all or not known:
            rule = len(lhs) + 1 + copies[begin]
            bound = np.float64(scores[rule])
            size = offer(heap, items, size, bound, np.int32(rule), np.int32(-1))
            offered += 1
        if size == 0:
          continue  # no cell
        dropped += offered - size
        inside[place] = largest(heap, size)
        filled = _write_ordinary(
          out, filled, size, heap, items, found, side, cell_of
        )
        cells[num_cells, 0], cells[num_cells, 1] = begin, begin + size_of
        cells[num_cells, 2] = ORDINARY
        cell_of[place] = base + num_cells
      cells[num_cells, 3] = cells[num_cells, 1] - cells[num_cells, 0]
      cells[num_cells, 4] = filled
      num_cells += 1
  return cells[:num_cells], out[:filled], dropped


@njit
def match_batch(
  words,
  offsets,
  copies,
  spans,
  span_offsets,
  grammar,
  lhs,
  scores,
  glue,
  limits,
  copy_all,
  joins,
):
  """Returns the cells and applications of a batch; see `matching.match`.

  With rules `joins` (`tree_kernel.match_tree`) sentences with a tree are
  matched node by node.
  """
  batch = len(offsets) - 1
  goal = np.full(batch, -1, np.int32)
  dropped = np.zeros(batch, np.int64)
  all_cells = np.empty((1024, 6), np.int32)
  ends = np.zeros(1025, np.int64)
  out = np.empty((8192, 1 + limits[2]), np.int32)
  num_cells, filled = np.int64(0), np.int64(0)
  for sentence in range(batch):
    if offsets[sentence + 1] == offsets[sentence]:
      continue
    text = words[offsets[sentence] : offsets[sentence + 1]]
    copied = copies[offsets[sentence] : offsets[sentence + 1]]
    nodes = spans[span_offsets[sentence] : span_offsets[sentence + 1]]
    if len(joins) and len(nodes):
      cells, rows, lost = tree_kernel.match_tree(
        text,
        copied,
        nodes,
        grammar,
        scores,
        (len(lhs), glue[0], joins),
        limits,
        num_cells,
      )
    else:
      cells, rows, lost = _sentence(
        text,
        copied,
        nodes,
        grammar,
        lhs,
        scores,
        glue,
        limits,
        copy_all,
        num_cells,
      )
    after = num_cells + len(cells)
    all_cells = grown_rows(all_cells, after)
    ends = grown(ends, after + 1)
    out = grown_rows(out, filled + len(rows))
    for cell in range(len(cells)):
      all_cells[num_cells + cell, 0] = sentence
      for column in range(5):
        all_cells[num_cells + cell, 1 + column] = cells[cell, column]
      ends[num_cells + cell + 1] = filled + cells[cell, 4]
    for row in range(len(rows)):
      copy_row(out, filled + row, rows, row)
    filled += len(rows)
    dropped[sentence] = lost
    goal[sentence] = after - 1
    num_cells = after
  return (
    all_cells[:num_cells],
    ends[: num_cells + 1],
    out[:filled],
    (
      goal,
      dropped,
    ),
  )
