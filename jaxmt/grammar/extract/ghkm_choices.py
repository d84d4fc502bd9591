"""Which rules a tree has: frontier, sites, attachments; see `ghkm.py`.

A tree is the tuple of its nodes' columns (label, size, start, end).
"""

import numpy as np

from jaxmt.grammar.extract.pair_arrays import link_extents
from jaxmt.text.kernels import grown_rows, njit


@njit
def find_frontier(tree, source_size, target_size, links):
  """Finds the frontier nodes of one tree and their spans.

  Returns:
    `(spans int32 [M, 2], free int32 [T + 1, 2])`: first and one past the last
    target word of each frontier node, -1 for other nodes; and how many
    unaligned words stand right before and right after each gap between words.
  """
  _, _, start, end = tree
  low, high, left, right = link_extents(source_size, target_size, links)
  spans = np.full((len(start), 2), -1, np.int32)
  for node in range(len(start)):
    bottom, top = target_size, -1
    for word in range(start[node], end[node]):
      bottom = min(bottom, low[word])
      top = max(top, high[word])
    consistent = top >= 0
    for other in range(bottom, top + 1):
      if right[other] >= 0 and (
        left[other] < start[node] or right[other] >= end[node]
      ):
        consistent = False
        break
    if consistent:
      spans[node, 0] = bottom
      spans[node, 1] = top + 1
  free = np.zeros((target_size + 1, 2), np.int32)
  for other in range(target_size):
    if right[other] < 0:
      free[other + 1, 0] = free[other, 0] + 1
    back = target_size - 1 - other
    if right[back] < 0:
      free[back, 1] = free[back + 1, 1] + 1
  return spans, free


@njit
def _push_sites(size, spans, node, stack, row, place):
  """Writes the nearest frontier nodes below `node`, last one first."""
  count = 0
  below = node + 1
  stop = node + size[node]
  while below < stop:
    if spans[below, 0] >= 0:
      stack[row, place + count] = below
      count += 1
      below += size[below]
    else:
      below += 1
  for step in range(count // 2):
    swap = stack[row, place + step]
    stack[row, place + step] = stack[row, place + count - 1 - step]
    stack[row, place + count - 1 - step] = swap
  return count


@njit
def find_cuts(tree, spans, root, limits):
  """Lists the site sets of all rules rooted at a frontier node.

  Depth first over the decision at each site, in source order: leave it, or
  put the minimal rule below it in its place. A state is one row of the stack:
  sites left, sites undecided, size, and both lists (the next to decide last).

  Returns:
    `(cuts int32, number)`: per cut the number of sites, then the sites in
    source order.
  """
  size = tree[1]
  most_size, most_sites = limits[0], limits[1]
  below = size[root]  # no list is longer
  width = 3 + 2 * below
  stack = np.empty((2 * below + 4, width), np.int32)
  cuts = np.empty((4, 1 + min(most_sites, below)), np.int32)
  count = 0
  stack[0, 0] = 0
  stack[0, 1] = _push_sites(size, spans, root, stack, 0, 3 + below)
  stack[0, 2] = 1
  top = 1
  while top:
    row = top - 1
    cut_count, waiting = stack[row, 0], stack[row, 1]
    # Every further minimal rule takes away one undecided site at most.
    spare = min(waiting, most_size - stack[row, 2])
    if cut_count + waiting - spare > most_sites:
      top -= 1
    elif waiting == 0:
      cuts = grown_rows(cuts, count + 1)
      cuts[count, 0] = cut_count
      for place in range(cut_count):
        cuts[count, 1 + place] = stack[row, 3 + place]
      count += 1
      top -= 1
    else:
      site = stack[row, 2 + below + waiting]
      leaving = row
      if stack[row, 2] < most_size:
        # The copy above leaves the site, which comes first; the state itself
        # becomes the one that replaces it.
        leaving = top
        for column in range(width):
          stack[top, column] = stack[row, column]
        top += 1
        stack[row, 2] += 1
        added = _push_sites(size, spans, site, stack, row, 2 + below + waiting)
        stack[row, 1] = waiting - 1 + added
      stack[leaving, 3 + cut_count] = site
      stack[leaving, 0] = cut_count + 1
      stack[leaving, 1] = waiting - 1
  return cuts, count


@njit
def _by_target(spans, sites, number):
  """The sites' numbers in the order of their spans."""
  order = np.empty(number, np.int64)
  for item in range(number):
    place = item
    while place and spans[sites[order[place - 1]], 0] > spans[sites[item], 0]:
      order[place] = order[place - 1]
      place -= 1
    order[place] = item
  return order


@njit
def attach(spans, free, root, sites, most):
  """Lists the target spans of a rule's root and sites.

  Args:
    spans: of the frontier nodes.
    free: unaligned words beside each gap, see `find_frontier`.
    root: the rule's root.
    sites: its sites.
    most: the most ways to return; 1 gives the tight spans only.

  Returns:
    `(variants int32, number)`: begin and end of the root's span, then of the
    sites', `[number, 2 + 2 S]`.
  """
  number = len(sites)
  order = _by_target(spans, sites, number)
  # Words added before and after: of the root, then of the sites in order.
  digits = np.zeros(2 + 2 * number, np.int32)
  room = np.zeros(2 + 2 * number, np.int32)
  first = 2 if root == 0 else 0  # the tree's root has the whole sentence
  out = np.empty((min(most, 4), 2 + 2 * number), np.int32)
  count = 0
  while True:
    begin, end = spans[root, 0], spans[root, 1]
    room[0], room[1] = free[begin, 0], free[end, 1]
    if first:
      digits[0], digits[1] = room[0], room[1]
    begin -= digits[0]
    end += digits[1]
    out = grown_rows(out, count + 1)
    out[count, 0], out[count, 1] = begin, end
    for place in range(number):
      low, high = spans[sites[order[place]], 0], spans[sites[order[place]], 1]
      digit = 2 + 2 * place
      room[digit] = min(free[low, 0], low - begin)
      room[digit + 1] = min(free[high, 1], end - high)
      begin = high + digits[digit + 1]
      out[count, 2 + 2 * order[place]] = low - digits[digit]
      out[count, 3 + 2 * order[place]] = begin
    count += 1
    if count == most:
      break
    # The next number, last digit fastest; its bounds hang on earlier digits.
    step = 1 + 2 * number
    while step >= first and digits[step] == room[step]:
      digits[step] = 0
      step -= 1
    if step < first:
      break
    digits[step] += 1
  return out, count
