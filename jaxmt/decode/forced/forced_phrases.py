"""Forced decoding of phrase-based models: all orders that say the reference.

Phrases are said from left to right, so a hypothesis has said the first words of
the reference: how many stands in place of the language model's state. Options
are filtered by the reference, hypotheses are merged as the search merges them
(coverage, last phrase), and nothing is pruned.
"""

import numpy as np

from jaxmt.decode.forced.forced_items import COLUMNS
from jaxmt.decode.forced.forced_kernel import (
  EMPTY,
  LIMIT,
  LONG,
  PARTS,
  UNCOVERED,
  UNFIT,
  WORD,
)
from jaxmt.decode.forced.survey import (
  APPLICABLE,
  FITTING,
  chain_positions,
  is_excluded,
)
from jaxmt.decode.phrase.stack_kernel import cover
from jaxmt.grammar.match.applications import GLUE, GOAL
from jaxmt.grammar.match.source_trie import step
from jaxmt.text.kernels import GOLDEN, grown_rows, mixed, njit

# Columns of an option: source span, rule, words of the reference, and the next
# option that begins with the same word of the reference.
_BEGIN, _END, _RULE, _FIRST, _LAST, _LINK = range(6)
# Columns of a hypothesis: first gap, coverage after it, last phrase, class of
# its forward orientations, words said, words covered, next of its stack and of
# its bucket.
_H_GAP, _H_MASK, _H_BEGIN, _H_END, _H_CLASS, _H_SAID, _H_STACK = range(7)
_H_NEXT, _H_BUCKET, _H_COLUMNS = 7, 8, 9
_BUCKETS = 1 << 13


@njit
def _fit(rule, begin, end, words, text, options, count, produced):
  """Adds an option for each place where the reference has its words."""
  reference, first, link = text
  size = len(words)
  for word in words:
    if first[word] >= 0:
      produced[first[word]] = max(produced[first[word]], APPLICABLE)
  if size == 0:
    return options, count
  place = first[words[0]]
  while place >= 0:
    same = place + size <= len(reference)
    item = 1
    while same and item < size:
      same = reference[place + item] == words[item]
      item += 1
    if same:
      options = grown_rows(options, count + 1)
      options[count, _BEGIN], options[count, _END] = begin, end
      options[count, _RULE] = rule
      options[count, _FIRST], options[count, _LAST] = place, place + size
      count += 1
      for item in range(size):
        produced[first[words[item]]] = FITTING
    place = link[place]
  return options, count


@njit
def _find(words, copies, text, excluded, rules, longest, copy_all):
  """Finds the options of a sentence that fit its reference.

  Returns:
    `(options, heads, produced)`: options in lists by their first word of the
    reference; how well each word of the reference can be produced, at its first
    position.
  """
  (keys, children), (ranked, offsets), (flat, starts), copy_word, _, goal = (
    rules
  )
  options = np.empty((256, 6), np.int32)
  produced = np.zeros(len(text[0]), np.uint8)
  copied = np.empty(1, np.int32)
  count = np.int64(0)
  for begin in range(len(words)):
    node = np.int32(0)
    alone = False
    for place in range(begin, min(begin + longest, len(words))):
      node = step(keys, children, node, words[place])
      if node < 0:
        break
      for entry in range(offsets[node], offsets[node + 1]):
        rule = ranked[entry]
        if len(excluded) and is_excluded(excluded, rule):
          continue
        alone |= place == begin
        said = flat[starts[rule] : starts[rule + 1]]
        options, count = _fit(
          rule, begin, place + 1, said, text, options, count, produced
        )
    # A word that no phrase translates alone is copied.
    copied[0] = copy_word[copies[begin]]
    if (copy_all or not alone) and copied[0] >= 0:
      rule = goal[0] + 1 + copies[begin]
      options, count = _fit(
        rule, begin, begin + 1, copied, text, options, count, produced
      )
  heads = np.full(len(text[0]) + 1, -1, np.int64)
  for item in range(count - 1, -1, -1):
    options[item, _LINK] = heads[options[item, _FIRST]]
    heads[options[item, _FIRST]] = item
  return options[:count], heads, produced


@njit
def _allowed(own, begin, end, limit):
  """Whether a hypothesis may take the words `begin : end` next."""
  offset = begin - own[_H_GAP]
  if offset < 0 or offset > limit or abs(own[_H_END] - begin) > limit:
    return False
  if offset > 0 and offset + end - begin > limit:
    return False
  bits = (np.int64(1) << (end - begin)) - np.int64(1)
  if offset == 0:
    return (own[_H_MASK] & (bits >> 1)) == 0
  return (own[_H_MASK] & (bits << (offset - 1))) == 0


@njit
def _locate(nodes, count, row, heads):
  """The hypothesis equal to `row`, `count` if it is new, and its bucket."""
  code = np.uint64(row[_H_GAP]) * GOLDEN ^ np.uint64(row[_H_MASK])
  code = mixed(code + (np.uint64(row[_H_END]) << np.uint64(40)))
  code ^= np.uint64(row[_H_SAID]) << np.uint64(20)
  code = mixed(code + np.uint64(row[_H_CLASS]))
  bucket = np.int64(code & np.uint64(_BUCKETS - 1))
  node = heads[bucket]
  while node >= 0:
    other = nodes[node]
    same = other[_H_BEGIN] == row[_H_BEGIN]
    for column in (_H_GAP, _H_MASK, _H_END, _H_CLASS, _H_SAID):
      same = same and other[column] == row[column]
    if same:
      return node, bucket
    node = other[_H_BUCKET]
  return count, bucket


@njit
def _search(length, options, heads, classes, num_rules, limits):
  """All hypotheses from left to right.

  Returns:
    `(nodes, edges, stacks, done)`: hypotheses, the first one has covered
    nothing; (head, rule, tail) in the order of tails; first hypothesis of each
    stack; whether no limit was passed.
  """
  limit, most = limits
  nodes = np.zeros((256, _H_COLUMNS), np.int64)
  edges = np.zeros((1024, 3), np.int32)
  stacks = np.full(length + 1, -1, np.int64)
  buckets = np.full(_BUCKETS, -1, np.int64)
  row = np.zeros(_H_COLUMNS, np.int64)
  nodes[0, _H_BEGIN], nodes[0, _H_NEXT] = -1, -1
  nodes[0, _H_CLASS] = classes[num_rules]
  stacks[0] = 0
  count, total, steps = np.int64(1), np.int64(0), np.int64(0)
  for stack in range(length):
    tail = stacks[stack]
    while tail >= 0:
      option = heads[nodes[tail, _H_SAID]]
      while option >= 0:
        begin, end = options[option, _BEGIN], options[option, _END]
        steps += 1
        if _allowed(nodes[tail], begin, end, limit):
          rule = options[option, _RULE]
          gap, mask = cover(
            nodes[tail, _H_GAP], nodes[tail, _H_MASK], begin, end - begin
          )
          row[_H_GAP], row[_H_MASK] = gap, mask
          row[_H_BEGIN], row[_H_END] = begin, end
          row[_H_CLASS] = classes[min(rule, num_rules)]
          row[_H_SAID] = options[option, _LAST]
          row[_H_STACK] = stack + end - begin
          head, bucket = _locate(nodes, count, row, buckets)
          if head == count:
            nodes = grown_rows(nodes, count + 1)
            row[_H_NEXT] = stacks[row[_H_STACK]]
            row[_H_BUCKET] = buckets[bucket]
            nodes[count] = row
            stacks[row[_H_STACK]] = count
            buckets[bucket] = count
            count += 1
          edges = grown_rows(edges, total + 1)
          edges[total, 0], edges[total, 1] = head, rule
          edges[total, 2] = tail
          total += 1
        if count > most[0] or total > most[1] or steps > most[2]:
          return nodes[:count], edges[:total], stacks, False
        option = options[option, _LINK]
      tail = nodes[tail, _H_NEXT]
  return nodes[:count], edges[:total], stacks, True


@njit
def _finish(length, said, nodes, edges, stacks, goal):
  """Adds the goal; keeps what derivations of the whole reference use.

  Returns:
    `(nodes, edges by head, edge counts of the nodes)` as forced charts have
    them; none if there is no derivation.
  """
  # Hypotheses of all source words that have said the whole reference.
  keep = np.zeros(len(nodes), np.bool_)
  complete = 0
  node = stacks[length]
  while node >= 0:
    if nodes[node, _H_SAID] == said:
      keep[node] = True
      complete += 1
    node = nodes[node, _H_NEXT]
  # From them down: mark what they use, count edges of each head.
  sizes = np.zeros(len(nodes), np.int64)
  for edge in range(len(edges) - 1, -1, -1):  # edges of later tails come first
    if keep[edges[edge, 0]]:
      sizes[edges[edge, 0]] += 1
      keep[edges[edge, 2]] = True
  # Number the marked ones, stack by stack, and give their edges room.
  number = np.full(len(nodes), -1, np.int32)
  places = np.zeros(len(nodes), np.int64)
  num_nodes, total = 0, 0
  for stack in range(1, length + 1):
    node = stacks[stack]
    while node >= 0:
      if keep[node]:
        number[node], places[node] = num_nodes, total
        num_nodes += 1
        total += sizes[node]
      node = nodes[node, _H_NEXT]
  # Write nodes, then edges by head.
  more = 1 if complete else 0
  out = np.zeros((num_nodes + more, COLUMNS), np.int32)
  counts = np.zeros(num_nodes + more, np.int64)
  links = np.full((total + complete, 2), -1, np.int32)
  for node in range(1, len(nodes)):
    if keep[node]:
      counts[number[node]] = sizes[node]
      out[number[node], 0] = nodes[node, _H_BEGIN]
      out[number[node], 1] = nodes[node, _H_END]
      out[number[node], 2], out[number[node], 3] = GLUE, goal[1]
      out[number[node], 5] = nodes[node, _H_SAID]
  for edge in range(len(edges)):
    head = edges[edge, 0]
    if keep[head]:
      links[places[head], 0] = edges[edge, 1]
      if edges[edge, 2] > 0:
        links[places[head], 1] = number[edges[edge, 2]]
      places[head] += 1
  # The goal, over all complete hypotheses.
  if complete:
    out[num_nodes, 1], out[num_nodes, 2] = length, GOAL
    out[num_nodes, 3], out[num_nodes, 5] = goal[1], said
    counts[num_nodes] = complete
    node = stacks[length]
    while node >= 0:
      if keep[node]:
        links[total, 0], links[total, 1] = goal[0], number[node]
        total += 1
      node = nodes[node, _H_NEXT]
  return out, links, counts


@njit
def _explain(length, options, nodes, status):
  """Says why there is no derivation, or how far the best hypothesis came."""
  covered = np.zeros(length, np.bool_)
  for option in options:
    covered[option[_BEGIN] : option[_END]] = True
  for begin in range(length):
    if not covered[begin]:
      end = begin
      while end < length and not covered[end]:
        end += 1
      status[0], status[1], status[2] = UNCOVERED, begin, end
      return
  best = 0
  for node in range(len(nodes)):
    if nodes[node, _H_SAID] > nodes[best, _H_SAID]:
      best = node
  status[0], status[1] = PARTS, -1
  if nodes[best, _H_SAID]:
    # Source words up to the last one that is covered.
    last, mask = nodes[best, _H_GAP], nodes[best, _H_MASK]
    if mask:
      last += 1
    while mask:
      last += 1
      mask >>= 1
    status[1], status[2], status[4] = 0, nodes[best, _H_SAID], last


@njit
def force_batch(
  batch, source, copies, reference, excluded, rules, num_words, limits
):
  """Forces sentences `batch[0] : batch[1]`; see `forced_kernel.force_batch`.

  Args:
    batch: which sentences.
    source: source words, as (flat, offsets).
    copies: pass-through word of each token.
    reference: target words, as (flat, offsets).
    excluded: rules not to use, rising in each row, as (flat, offsets).
    rules: (trie, patterns, target sides, target word of each pass-through word,
      class of each rule's forward orientations, (goal rule, its label)).
    num_words: number of target words.
    limits: (longest phrase, whether all words may be copied, distortion limit,
      most hypotheses, edges and steps as int64 `[3]`, longest sentence).
  """
  low, high = batch
  longest, copy_all, limit, most, longest_line = limits
  goal, classes = rules[5], rules[4]
  first = np.full(num_words, -1, np.int32)
  status = np.zeros((high - low, 5), np.int32)
  node_counts = np.zeros(high - low, np.int64)
  nodes = np.empty((256, COLUMNS), np.int32)
  edges = np.empty((1024, 2), np.int32)
  edge_counts = np.empty((256, 1), np.int64)
  num_nodes, num_edges = 0, 0
  for row in range(low, high):
    words = source[0][source[1][row] : source[1][row + 1]]
    said = reference[0][reference[1][row] : reference[1][row + 1]]
    out = status[row - low]
    if len(words) == 0 or len(said) == 0:
      out[0] = EMPTY
      continue
    if max(len(words), len(said)) > longest_line:
      out[0] = LONG
      continue
    # Phrase pairs that match the source and occur in the reference.
    text = (said, first, chain_positions(said, first))
    options, heads, produced = _find(
      words,
      copies[source[1][row] : source[1][row + 1]],
      text,
      excluded[0][excluded[1][row] : excluded[1][row + 1]],
      rules,
      longest,
      copy_all,
    )
    # A reference word that no phrase pair produces, or none that fits.
    for place in range(len(said)):
      if out[0] != WORD and first[said[place]] == place:
        if produced[place] == 0:
          out[0], out[1] = WORD, place
        elif produced[place] < FITTING and out[0] == 0:
          out[0], out[1] = UNFIT, place
    for word in said:
      first[word] = -1
    if out[0]:
      continue
    # Search from left to right, then keep what complete hypotheses use.
    hypotheses, links, stacks, done = _search(
      len(words), options, heads, classes, goal[0], (limit, most)
    )
    if not done:
      out[0] = LIMIT
      continue
    forest = _finish(len(words), len(said), hypotheses, links, stacks, goal)
    if len(forest[0]) == 0:
      _explain(len(words), options, hypotheses, out)
      continue
    # Append the sentence to those before it.
    node_counts[row - low] = len(forest[0])
    nodes = grown_rows(nodes, num_nodes + len(forest[0]))
    edge_counts = grown_rows(edge_counts, num_nodes + len(forest[0]))
    edges = grown_rows(edges, num_edges + len(forest[1]))
    nodes[num_nodes : num_nodes + len(forest[0])] = forest[0]
    edge_counts[num_nodes : num_nodes + len(forest[0]), 0] = forest[2]
    edges[num_edges : num_edges + len(forest[1])] = forest[1]
    num_nodes += len(forest[0])
    num_edges += len(forest[1])
  return (
    nodes[:num_nodes],
    node_counts,
    edges[:num_edges],
    edge_counts[:num_nodes, 0],
    status,
  )
