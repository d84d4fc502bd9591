"""Writes tree-to-string rules as the rows of `rows.py`; see `ghkm.py`."""

import numpy as np

from jaxmt.grammar.extract.packed_rules import LINK_BASE, SEP
from jaxmt.grammar.table import CLOSE, Kind
from jaxmt.text.kernels import njit

_TREE_TO_STRING = int(Kind.TREE_TO_STRING)


@njit
def row_size(tree, words, others, links):
  """Returns how long a row of this sentence can be."""
  return 3 * len(words) + len(others) + 2 * len(tree[0]) + len(links) + 5


@njit
def write_row(flat, position, texts, tree, root, sites, spans, limits):
  """Writes one rule.

  Args:
    flat: where rows are written.
    position: where this one begins.
    texts: source words, target words, links of the sentence.
    tree: label, size, start, end of its nodes.
    root: the rule's root.
    sites: its sites in source order.
    spans: begin and end of the target spans of root and sites, `[2 + 2 S]`.
    limits: most source symbols, most target symbols, first id of a word.

  Returns:
    The end of the row, or `position` if the rule is too long or has an unknown
    word.
  """
  words, others, links = texts
  label, _, start, end = tree
  begin = position
  # The rule's position of each word, -1 for words under a site.
  source_place = np.full(len(words), -1, np.int32)
  target_place = np.full(len(others), -1, np.int32)
  word = start[root]
  site = 0
  while word < end[root]:
    if site < len(sites) and start[sites[site]] == word:
      flat[position] = -1 - label[sites[site]]
      word = end[sites[site]]
      site += 1
    else:
      if words[word] < limits[2]:
        return begin
      source_place[word] = position - begin
      flat[position] = words[word]
      word += 1
    position += 1
  if position - begin > limits[0]:
    return begin
  flat[position] = SEP
  position += 1
  middle = position
  word = spans[0]
  while word < spans[1]:
    step = word + 1
    symbol = others[word]
    for site in range(len(sites)):
      if spans[2 + 2 * site] == word:
        symbol = np.int32(-1 - site)
        step = spans[3 + 2 * site]
    if symbol >= 0:
      if symbol < limits[2]:
        return begin
      target_place[word] = position - middle
    flat[position] = symbol
    position += 1
    word = step
  if position - middle > limits[1]:
    return begin
  flat[position] = SEP
  flat[position + 1] = label[root]
  flat[position + 2] = _TREE_TO_STRING
  position = _write_fragment(flat, position + 3, words, tree, root, sites)
  flat[position] = SEP
  position += 1
  for link in range(len(links)):
    one, other = source_place[links[link, 0]], target_place[links[link, 1]]
    if one >= 0 and other >= 0:
      flat[position] = one * LINK_BASE + other
      position += 1
  return position


@njit
def _write_fragment(flat, position, words, tree, root, sites):
  """Writes the tree from the root down to the sites, in preorder."""
  label, size, start, _ = tree
  open_until = np.empty(size[root], np.int32)  # ends of the open nodes
  depth = 0
  site = 0
  node = root
  while node < root + size[root]:
    while depth and open_until[depth - 1] <= node:
      flat[position] = CLOSE
      position += 1
      depth -= 1
    flat[position] = -2 - label[node]
    position += 1
    if site < len(sites) and sites[site] == node:
      flat[position] = CLOSE
      position += 1
      site += 1
      node += size[node]
    elif size[node] == 1:
      flat[position] = words[start[node]]
      flat[position + 1] = CLOSE
      position += 2
      node += 1
    else:
      open_until[depth] = node + size[node]
      depth += 1
      node += 1
  for _ in range(depth):
    flat[position] = CLOSE
    position += 1
  return position
