"""Exact tree-to-string matching: fragments against a tree, node by node.

Every node of the tree has a cell. A rule applies at a node if its fragment is
the top of the node's subtree: the same labels and words in the same shape,
where a site stands for a whole subtree of its label (Liu, Liu & Lin 2006; as
Travatar does it). A tree in preorder is a string of codes

    -2 - l opens a node of label l, w >= 0 is a word, CLOSE ends a node,

as fragments are in the rule table. So a walk over the trie of fragments reads
the codes of a subtree and may skip what is below a node whenever the trie
opens a node of its label and closes it at once.

A word that no rule matches is copied; of any other such node the children's
translations are joined in order (Travatar's unknown rules).
"""

import numpy as np

from jaxmt.grammar.match import source_trie as tries
from jaxmt.grammar.match.source_trie import TREE
from jaxmt.grammar.table import CLOSE
from jaxmt.text.kernels import (
  by_falling_value,
  clear_row,
  grown_rows,
  largest,
  njit,
  offer,
)

ORDINARY, GLUE, GOAL = 0, 1, 2
UNKNOWN_LABEL = -1


@njit
def tree_codes(words, nodes):
  """Writes a tree as a string of codes.

  Args:
    words: word ids, int32 `[W]`.
    nodes: begin, end and label (`UNKNOWN_LABEL` for one that no rule has) of
      the N nodes in preorder, int32 `[N, 3]`.

  Returns:
    `(codes int32 [W + 2N], node int32 [W + 2N], skip int64 [W + 2N], opening
    int64 [N], parent int32 [N])`: the node that a code opens (else -1), and
    the place after its subtree; the place that opens each node; its parent.
  """
  size = len(nodes)
  codes = np.empty(len(words) + 2 * size, np.int32)
  owner = np.full(len(codes), -1, np.int32)
  skip = np.zeros(len(codes), np.int64)
  opening = np.zeros(size, np.int64)
  parent = np.full(size, -1, np.int32)
  place = np.int64(0)
  above = np.int64(-1)
  for node in range(size + 1):
    begin = nodes[node, 0] if node < size else nodes[0, 1]
    # Nodes that end before this one are closed.
    while above >= 0 and nodes[above, 1] <= begin:
      codes[place] = CLOSE
      place += 1
      skip[opening[above]] = place
      above = np.int64(parent[above])
    if node == size:
      break
    codes[place] = -2 - nodes[node, 2]
    owner[place] = node
    opening[node] = place
    parent[node] = above
    place += 1
    above = np.int64(node)
    # A node without nodes below holds a word.
    if node + 1 == size or nodes[node + 1, 0] >= nodes[node, 1]:
      codes[place] = words[begin]
      place += 1
  return codes, owner, skip, opening, parent


@njit
def find_fragments(tree, nodes, root, grammar, width):
  """Finds all fragments that match at one node.

  A stack entry and a match are rows (place, trie node, arity, site, ...).

  Returns:
    `(matches, count)`.
  """
  codes, owner, skip, opening, _ = tree
  keys, children, _, offsets = grammar
  columns = 3 + width
  stack = np.empty((32, columns), np.int32)
  rows = np.empty((16, columns), np.int32)
  entry = np.empty(columns, np.int32)
  count = np.int64(0)
  if nodes[root, 2] == UNKNOWN_LABEL:
    return rows, count
  first = opening[root]
  node = tries.step(keys, children, np.int32(TREE), codes[first])
  if node < 0:
    return rows, count
  stack[0, 0], stack[0, 1], stack[0, 2] = first + 1, node, 0
  top = np.int64(1)
  while top:
    top -= 1
    for column in range(columns):
      entry[column] = stack[top, column]
    place, node, sites = entry[0], entry[1], entry[2]
    if place == skip[first]:
      # The root is closed: a whole fragment, if it is one of the table.
      if offsets[node + 1] > offsets[node]:
        rows = grown_rows(rows, count + 1)
        for column in range(columns):
          rows[count, column] = entry[column]
        count += 1
      continue
    below = owner[place]
    if below >= 0 and nodes[below, 2] == UNKNOWN_LABEL:
      continue
    onward = tries.step(keys, children, node, codes[place])
    if onward < 0:
      continue
    stack = grown_rows(stack, top + 2)
    # On to the next code: into the node, if this one opens one.
    for column in range(columns):
      stack[top, column] = entry[column]
    stack[top, 0], stack[top, 1] = place + 1, onward
    top += 1
    if below < 0 or sites == width:
      continue
    # Or past the node: a site.
    onward = tries.step(keys, children, onward, np.int32(CLOSE))
    if onward >= 0:
      for column in range(columns):
        stack[top, column] = entry[column]
      stack[top, 0], stack[top, 1], stack[top, 2] = (
        skip[place],
        onward,
        sites + 1,
      )
      stack[top, 3 + sites] = below
      top += 1
  return rows, count


@njit
def _offer_rules(matches, count, grammar, scores, inside, heap, items):
  """Offers the rules of all fragments found at a node to its heap.

  Returns:
    `(kept, offered)`.
  """
  _, _, rules, offsets = grammar
  size, offered = np.int64(0), np.int64(0)
  for item in range(count):
    total = np.float64(0.0)
    for site in range(matches[item, 2]):
      total += inside[matches[item, 3 + site]]
    node = matches[item, 1]
    for entry in range(offsets[node], offsets[node + 1]):
      rule = rules[entry]
      bound = total + np.float64(scores[rule])
      offered += 1
      size = offer(heap, items, size, bound, rule, np.int32(item))
  return size, offered


@njit
def _join_children(node, tree, rules, written, num_cells, filled):
  """Appends the application that joins a node's children in order.

  All but the last are joined two at a time, each pair in a cell of its own.

  Returns:
    `(cells, applications, score, level)`: how many there are now, the score
    inside the node, and the level of what it joins.
  """
  nodes, parent, height, inside, cell_of = tree
  joins, scores, base = rules
  cells, out = written
  size = len(nodes)
  left, level = np.int32(-1), np.int32(0)
  total = np.float64(0.0)
  child = node + 1
  while child < size and parent[child] == node:
    after = child + 1
    while after < size and nodes[after, 0] < nodes[child, 1]:
      after += 1
    total += inside[child]
    is_last = after == size or nodes[after, 0] >= nodes[node, 1]
    level = max(level, height[child])
    if left < 0 and not is_last:
      left = cell_of[child]
      child = after
      continue
    rule = joins[2] if not is_last else joins[0 if left < 0 else 1]
    total += np.float64(scores[rule])
    clear_row(out, filled)
    out[filled, 0] = rule
    out[filled, 1] = cell_of[child] if left < 0 else left
    if left >= 0:
      out[filled, 2] = cell_of[child]
    filled += 1
    if not is_last:
      level += 1
      cells[num_cells, 0] = nodes[node, 0]
      cells[num_cells, 1] = nodes[child, 1]
      cells[num_cells, 2], cells[num_cells, 3] = ORDINARY, level
      cells[num_cells, 4] = filled
      left = np.int32(base + num_cells)
      num_cells += 1
    child = after
  return num_cells, filled, total, level


@njit
def match_tree(words, copies, nodes, grammar, scores, special, limits, base):
  """Returns the cells and applications of one sentence with a tree.

  Args:
    words: word ids, int32 `[W]`.
    copies: which copied word each token is, int32 `[W]`.
    nodes: see `tree_codes`.
    grammar: the trie and its ranked rules, see `applications.select`.
    scores: of the rules, the goal and the copied words.
    special: number of the goal rule; glue rules of arity 1; the three rules
      that join: one child, two children, two of more.
    limits: most applications of a cell, most sites.
    base: the number of the first cell.

  Returns:
    `(cells, applications, dropped)`, as `applications` does for sentences.
  """
  goal, glue, joins = special
  limit, width = limits
  size = len(nodes)
  tree = tree_codes(words, nodes)
  parent = tree[4]
  height = np.zeros(size, np.int32)
  inside = np.zeros(size, np.float64)
  cell_of = np.full(size, -1, np.int32)
  heap = np.empty(limit, np.float64)
  items = np.empty((limit, 2), np.int32)
  # begin, end, category, level, filled
  cells = np.empty((2 * size + 2, 5), np.int32)
  out = np.empty((4096, 1 + width), np.int32)
  num_cells, filled, dropped = np.int64(0), np.int64(0), np.int64(0)
  for node in range(size - 1, -1, -1):  # children stand after their parent
    out = grown_rows(out, filled + limit + size)
    cells = grown_rows(cells, num_cells + size + 2)
    # Fragments that match at the node, best first.
    matches, count = find_fragments(tree, nodes, node, grammar, width)
    count_kept, offered = _offer_rules(
      matches, count, grammar, scores, inside, heap, items
    )
    dropped += offered - count_kept
    is_leaf = node + 1 == size or nodes[node + 1, 0] >= nodes[node, 1]
    # The applications of the cell: fragments, a copied word, or joined parts.
    if count_kept:
      inside[node] = largest(heap, count_kept)
      for rank in by_falling_value(heap, count_kept):
        clear_row(out, filled)
        out[filled, 0] = items[rank, 0]
        for site in range(matches[items[rank, 1], 2]):
          out[filled, 1 + site] = cell_of[matches[items[rank, 1], 3 + site]]
        filled += 1
    elif is_leaf:
      clear_row(out, filled)
      out[filled, 0] = goal + 1 + copies[nodes[node, 0]]
      inside[node] = np.float64(scores[out[filled, 0]])
      filled += 1
    else:
      num_cells, filled, total, level = _join_children(
        node,
        (nodes, parent, height, inside, cell_of),
        (joins, scores, base),
        (cells, out),
        num_cells,
        filled,
      )
      inside[node] = total
      height[node] = max(height[node], level + 1)
    cells[num_cells, 0], cells[num_cells, 1] = nodes[node, 0], nodes[node, 1]
    cells[num_cells, 2], cells[num_cells, 3] = ORDINARY, height[node]
    cells[num_cells, 4] = filled
    cell_of[node] = base + num_cells
    num_cells += 1
    if parent[node] >= 0:
      height[parent[node]] = max(height[parent[node]], height[node] + 1)
  # The root becomes a glue cell, and that the goal.
  out = grown_rows(out, filled + len(glue) + 1)
  for rule in glue:
    clear_row(out, filled)
    out[filled, 0], out[filled, 1] = rule, cell_of[0]
    filled += 1
  for step in range(2):
    cells[num_cells, 0], cells[num_cells, 1] = 0, len(words)
    cells[num_cells, 2], cells[num_cells, 3] = GLUE + step, len(words)
    if step:
      clear_row(out, filled)
      out[filled, 0], out[filled, 1] = goal, base + num_cells - 1
      filled += 1
    cells[num_cells, 4] = filled
    num_cells += 1
  return cells[:num_cells], out[:filled], dropped
