"""First pass of forced decoding: which rules could serve the reference.

The source trie is walked along the sentence with nothing built yet. A trie node
has one parent, so all places where its pattern can end follow from those of the
parent, and each node is visited once, whatever the spans of its sites. Of the
rules found, those stay whose runs of words stand in the reference, in order and
without overlap: no other rule can be in a derivation of it. So the limits that
keep ordinary matching fast are not needed here.
"""

import numpy as np

from jaxmt.grammar.match import source_trie as tries
from jaxmt.grammar.match.source_trie import LEXICAL, SITE, TREE
from jaxmt.text.kernels import grown_rows, njit

APPLICABLE, FITTING = 1, 2
# Columns of a pattern: trie node, parent, range of fitting rules, root, pattern
# after a site; then by position the latest begin of a match that ends there,
# and the pattern after the word there. -1 for none.
_NODE, _PARENT, _LOW, _HIGH, _ROOT, _SITE, _COLUMNS = range(7)


@njit
def chain_positions(reference, first):
  """Lists where each word stands: `first[word]`, then `link[position]`, ...

  Args:
    reference: word ids.
    first: -1 for every word; the caller sets it back.
  """
  link = np.empty(len(reference), np.int32)
  for position in range(len(reference) - 1, -1, -1):
    link[position] = first[reference[position]]
    first[reference[position]] = position
  return link


@njit
def _fits(flat, low, high, text):
  """Whether a target side's runs of words stand in the reference in order."""
  reference, first, link = text
  free, item = 0, low
  while item < high:
    if flat[item] < 0:
      item += 1
      continue
    end = item + 1
    while end < high and flat[end] >= 0:
      end += 1
    place = first[flat[item]]
    while place >= 0:
      if place >= free and place + end - item <= len(reference):
        same = 1
        while (
          same < end - item and flat[item + same] == reference[place + same]
        ):
          same += 1
        if same == end - item:
          break
      place = link[place]
    if place < 0:
      return False
    free = place + end - item
    item = end
  return True


@njit
def is_excluded(rules, rule):
  """Whether a sorted list holds the rule."""
  low, high = 0, len(rules)
  while low < high:
    middle = (low + high) >> 1
    if rules[middle] < rule:
      low = middle + 1
    else:
      high = middle
  return low < len(rules) and rules[low] == rule


@njit
def _scan(node, patterns, target, text, excluded, usable, count, produced):
  """Appends a node's fitting rules; returns `(kept, count, any rule)`."""
  rules, offsets = patterns
  flat, starts = target
  first = text[1]
  alive = False
  for entry in range(offsets[node], offsets[node + 1]):
    rule = rules[entry]
    if len(excluded) and is_excluded(excluded, rule):
      continue
    alive = True
    low, high = starts[rule], starts[rule + 1]
    worth = APPLICABLE
    if _fits(flat, low, high, text):
      worth = FITTING
      usable = grown_rows(usable, count + 1)
      usable[count, 0] = rule
      count += 1
    for item in range(low, high):
      if flat[item] >= 0 and first[flat[item]] >= 0:
        place = first[flat[item]]
        produced[place] = max(produced[place], worth)
  return usable, count, alive


@njit
def _spread_sites(nodes, local, below, spans, tree, span):
  """Where a pattern can end after one more site: latest begins by end."""
  side = (nodes.shape[1] - _COLUMNS) // 2
  if tree:
    for item in range(len(spans)):
      begin = nodes[local, _COLUMNS + spans[item, 0]]
      end = _COLUMNS + spans[item, 1]
      nodes[below, end] = max(nodes[below, end], begin)
    return
  for position in range(side - 1):
    begin = nodes[local, _COLUMNS + position]
    if begin >= 0:
      for end in range(position + 1, min(side, begin + span + 1)):
        place = _COLUMNS + end
        nodes[below, place] = max(nodes[below, place], begin)


@njit
def _useful_links(nodes, count, side):
  """Links without those that lead to no fitting rule, and rules of nodes."""
  useful = np.zeros(count, np.bool_)
  ranges = np.empty((count, 2), np.int64)
  after = np.full((count, side + 1), -1, np.int64)
  for local in range(count - 1, -1, -1):  # parents stand before children
    low, high = nodes[local, _LOW], nodes[local, _HIGH]
    ranges[local, 0], ranges[local, 1] = low, high
    useful[local] |= high > low
    if useful[local] and nodes[local, _PARENT] >= 0:
      useful[nodes[local, _PARENT]] = True
  for local in range(count):
    for position in range(side + 1):
      below = nodes[local, _SITE]
      if position < side:
        below = nodes[local, _COLUMNS + side + position]
      if below >= 0 and useful[below]:
        after[local, position] = below
  return after, ranges


@njit
def survey(
  words, spans, trie, patterns, target, text, excluded, local_of, span
):
  """Finds the patterns of one sentence and the rules that fit its reference.

  Args:
    words: source word ids, n of them.
    spans: constituents, int32 `[M, 3]`.
    trie: its (keys, children).
    patterns: the rules of each node, as (rules, offsets).
    target: target sides, as (flat, offsets).
    text: reference of m words: (words, first, link); see `chain_positions`.
    excluded: rules not to use, rising.
    local_of: -1 for every trie node; it is again when this returns.
    span: longest span of Hiero rules.

  Returns:
    `(after, ranges, kept, produced, known)` for N nodes, of which 0 and 1 are
    the roots of Hiero and of tree-to-string rules. Node after node x by the
    word at p `after[x, p]`, by a site `after[x, n + 1]`, -1 if there is none or
    no fitting rule after it; fitting rules of x
    `kept[ranges[x, 0] : ranges[x, 1], 0]`; 0, `APPLICABLE` or `FITTING` at the
    first position of each reference word that some rule could produce,
    `produced`; whether Hiero rules translate word p alone, `known[p]`.
  """
  keys, children = trie
  length, side = len(words), len(words) + 1
  nodes = np.full((256, _COLUMNS + 2 * side), -1, np.int32)
  usable = np.empty((256, 1), np.int32)
  produced = np.zeros(len(text[0]), np.uint8)
  known = np.zeros(length, np.bool_)
  count, num_kept = np.int64(2), np.int64(0)
  # Both roots can begin at every word.
  for root in range(2):
    nodes[root, _NODE], nodes[root, _ROOT] = root, root
    nodes[root, _LOW], nodes[root, _HIGH] = 0, 0
    if root == LEXICAL or len(spans):
      for position in range(length):
        nodes[root, _COLUMNS + position] = position
  # Breadth first: nodes that patterns in the sentence reach.
  local = 0
  while local < count:
    node, tree = nodes[local, _NODE], nodes[local, _ROOT] == TREE
    for step in range(length + 1):  # each word, then a site
      begin = nodes[local, _COLUMNS + step]
      symbol = np.int32(SITE)
      if step < length:
        if begin < 0 or not (tree or step < begin + span):
          continue
        symbol = words[step]
      onward = tries.step(keys, children, node, symbol)
      if onward < 0:
        continue
      # A node met for the first time: which of its rules fit the reference?
      below = local_of[onward]
      if below < 0:
        below = count
        local_of[onward] = below
        count += 1
        nodes = grown_rows(nodes, count)
        for column in range(nodes.shape[1]):
          nodes[below, column] = -1
        nodes[below, _NODE], nodes[below, _PARENT] = onward, local
        nodes[below, _ROOT] = nodes[local, _ROOT]
        nodes[below, _LOW] = num_kept
        usable, num_kept, alive = _scan(
          onward, patterns, target, text, excluded, usable, num_kept, produced
        )
        nodes[below, _HIGH] = num_kept
        if local == LEXICAL and step < length and alive:
          for position in range(step, length):
            known[position] |= words[position] == words[step]
      # Link it, and note where reading goes on: after a word, after sites.
      if step < length:
        nodes[local, _COLUMNS + side + step] = below
        place = _COLUMNS + step + 1
        nodes[below, place] = max(nodes[below, place], begin)
      else:
        nodes[local, _SITE] = below
        _spread_sites(nodes, local, below, spans, tree, span)
    local += 1
  # Leave the table of local numbers empty, and drop links that lead nowhere.
  for local in range(2, count):
    local_of[nodes[local, _NODE]] = -1
  after, ranges = _useful_links(nodes, count, side)
  return after, ranges, usable, produced, known
