"""Items of forced decoding, and how a rule joins them.

An item is what derivations of one span with one label and one interval of the
reference have in common (the index language model of Zhao et al.'s forced
decoding: the state is a first and a last position). A word that stands at
several places makes several items. A rule is joined to items from left to right
along its target side, each site with items that begin where the part before it
ended.

An item that says nothing has no interval, hence no place: it fits anywhere.
"""

import numpy as np

from jaxmt.text.kernels import grown_rows, njit

# Columns of an item.
BEGIN, END, CATEGORY, LABEL, FIRST, LAST = 0, 1, 2, 3, 4, 5
COLUMNS = 6
# What is counted, and limited.
ITEMS, EDGES, STEPS = 0, 1, 2


@njit
def no_buckets(size):
  """Empty buckets for the items of a cell."""
  buckets = np.empty(size, np.int32)
  for place in range(size):
    buckets[place] = -1
  return buckets


@njit
def _item_hash(label, first, last):
  value = np.uint64(label) * np.uint64(0x9E3779B97F4A7C15)
  value ^= np.uint64(first + 1) * np.uint64(0xC2B2AE3D27D4EB4F)
  value ^= np.uint64(last + 1) * np.uint64(0x165667B19E3779F9)
  return np.int64((value ^ (value >> np.uint64(29))) >> np.uint64(8))


@njit
def _slot(items, buckets, label, first, last):
  """The bucket of an item of the open cell, or the free one for it."""
  place = _item_hash(label, first, last) & (len(buckets) - 1)
  while buckets[place] >= 0:
    item = items[buckets[place]]
    if item[LABEL] == label and item[FIRST] == first and item[LAST] == last:
      break
    place = (place + 1) & (len(buckets) - 1)
  return place


@njit
def add_edge(chart, cell, label, first, last, rule, tails, counts):
  """Adds an edge to the item of the open cell it makes, maybe a new one."""
  items, edges, buckets = chart
  begin, end, category, start = cell
  if first >= last:
    first = last = np.int32(-1)
  place = _slot(items, buckets, label, first, last)
  item = buckets[place]
  if item < 0:
    item = np.int32(counts[ITEMS])
    items = grown_rows(items, item + 1)
    items[item, BEGIN], items[item, END] = begin, end
    items[item, CATEGORY], items[item, LABEL] = category, label
    items[item, FIRST], items[item, LAST] = first, last
    buckets[place] = item
    counts[ITEMS] += 1
    if 2 * (counts[ITEMS] - start) > len(buckets):
      buckets = no_buckets(2 * len(buckets))
      for old in range(start, counts[ITEMS]):
        row = items[old]
        place = _slot(items, buckets, row[LABEL], row[FIRST], row[LAST])
        buckets[place] = old
  edge = counts[EDGES]
  edges = grown_rows(edges, edge + 1)
  edges[edge, 0], edges[edge, 1] = item, rule
  for part in range(len(tails)):
    edges[edge, 2 + part] = tails[part]
  counts[EDGES] += 1
  return items, edges, buckets


@njit
def _next(items, order, low, high, cursor, at):
  """The next entry of a closed cell that begins at `at` or has no place.

  Entries stand by rising first position, those without interval before all.
  """
  place = low if cursor < 0 else cursor + 1
  if place >= high:
    return -1
  here = items[order[place, 0], FIRST]
  if at < 0 or here < 0 or here == at:
    return place
  while place < high:  # binary search for the first of them
    middle = (place + high) >> 1
    if items[order[middle, 0], FIRST] < at:
      place = middle + 1
    elif middle > place and items[order[middle - 1, 0], FIRST] >= at:
      high = middle
    else:
      return middle if items[order[middle, 0], FIRST] == at else -1
  return -1


@njit
def apply_rule(
  rule, label, start, sites, cell, symbols, text, chart, order, work
):
  """Joins a rule to items of its sites in every way the reference allows.

  Args:
    rule: the rule.
    label: its left-hand side.
    start: where it has to begin, -1 for anywhere.
    sites: ranges of `order` by site, `[A, 2]`.
    cell: the open cell, see `add_edge`.
    symbols: its target side.
    text: the reference, see `chain_positions`.
    chart: items, edges, buckets of the open cell.
    order: items of closed cells, see `_next`.
    work: (counts, limits, three int32 arrays with a place for every symbol of
      a target side and one more, tails).
  """
  reference, first, link = text
  counts, limits, scratch, tails = work
  at, opened, cursor = scratch
  for part in range(len(tails)):
    tails[part] = -1
  place = 0
  at[0], opened[0], cursor[0] = start, start, -1
  while place >= 0:
    counts[STEPS] += 1
    if counts[STEPS] > limits[STEPS]:
      break
    # All symbols stand: an edge. Then look for the next way to place them.
    if place == len(symbols):
      chart = add_edge(
        chart, cell, label, opened[place], at[place], rule, tails, counts
      )
      if full(counts, limits):
        break
      place -= 1
      continue
    # The next place of a word, or the next item of a site, that follows on.
    symbol, here = symbols[place], at[place]
    if symbol >= 0:
      if here < 0:
        follower = first[symbol] if cursor[place] < 0 else link[cursor[place]]
      elif cursor[place] < 0 and here < len(reference):
        follower = here if reference[here] == symbol else np.int32(-1)
      else:
        follower = np.int32(-1)
      begin, end = follower, follower + 1
    else:
      site = -1 - symbol
      follower = _next(
        chart[0], order, sites[site, 0], sites[site, 1], cursor[place], here
      )
      begin = end = here
      if follower >= 0:
        item = order[follower, 0]
        tails[site] = item
        if chart[0][item, FIRST] >= 0:
          begin, end = chart[0][item, FIRST], chart[0][item, LAST]
    # Without one go back a symbol; else on to the next.
    if follower < 0:
      place -= 1
      continue
    cursor[place] = follower
    place += 1
    at[place], cursor[place] = end, -1
    opened[place] = begin if here < 0 else opened[place - 1]
  return chart


@njit
def full(counts, limits):
  """Whether a sentence has become too large."""
  return (
    counts[ITEMS] > limits[ITEMS]
    or counts[EDGES] > limits[EDGES]
    or counts[STEPS] > limits[STEPS]
  )


@njit
def close_cell(items, order, start, end, words):
  """Lists the items of a cell that is done, by first position."""
  if start == end:
    return order
  order = grown_rows(order, end)
  places = np.zeros(words + 2, np.int64)
  for item in range(start, end):
    places[items[item, FIRST] + 2] += 1
  places[0] = start
  for position in range(words + 1):
    places[position + 1] += places[position]
  for item in range(start, end):
    place = items[item, FIRST] + 1
    order[places[place], 0] = item
    places[place] += 1
  return order
