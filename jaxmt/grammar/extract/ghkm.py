"""GHKM extraction: tree-to-string rules from source trees.

Galley, Hopkins, Knight and Marcu, "What's in a translation rule?", 2004, and
Galley et al., "Scalable inference and training of context-rich syntactic
translation models", 2006, with the tree on the source side. Over a source tree
with word links,

- the *span* of a node is the least interval of target words that holds every
  word linked to one under the node;
- a node is a *frontier* node if it has a span, and no word of the span is
  linked to a word outside the node;
- a *minimal* rule is rooted at a frontier node; its tree fragment ends at words
  and at the nearest frontier nodes below, its sites;
- a *composed* rule joins minimal rules at their sites; its *size* is the number
  of minimal rules in it.

The target side is the root's span with the sites' spans replaced. Target words
without links may stand beside several spans: `attach="tight"` leaves spans as
they are, so such a word goes to the lowest rule whose span is around it;
`attach="all"` takes every way to widen the spans of root and sites by such
words. The root of the tree always has the whole sentence.

Rules are flattened to SCFG form: the labels of root and sites stay, the nodes
between them are kept beside the rule, in its fragment.
"""

import dataclasses

import numpy as np

from jaxmt.grammar.extract.ghkm_choices import attach, find_cuts, find_frontier
from jaxmt.grammar.extract.packed_rules import LINK_BASE, SEP, Emission
from jaxmt.grammar.extract.rule_buffer import (
  add_row,
  buffer_arrays,
  emission,
  new_buffer,
  set_shares,
  with_room,
)
from jaxmt.grammar.extract.shards import AlignedShard
from jaxmt.grammar.table import CLOSE, Kind
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.text.trees import Trees
from jaxmt.text.vocabulary import SPECIALS

ATTACH = ("tight", "all")

_FIRST_WORD = len(SPECIALS)  # rules never hold unknown words
_TREE_TO_STRING = int(Kind.TREE_TO_STRING)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GhkmOptions:
  """What is extracted.

  Attributes:
    max_size: most minimal rules in a composed one; 1 for minimal rules only.
    max_sites: most non-terminals of a rule.
    max_source: most source symbols of a rule.
    max_target: most target symbols of a rule.
    attach: "tight" or "all", see above.
    max_attach: most ways to attach unaligned words taken for one fragment;
      the tight one comes first.
    fractional: the attachments of one fragment share one count, instead of
      counting one each.
  """

  max_size: int = 4
  max_sites: int = 5
  max_source: int = 12
  max_target: int = 20
  attach: str = "tight"
  max_attach: int = 16
  fractional: bool = True


def check_options(options: GhkmOptions) -> None:
  """Raises `ValueError` for values that make no sense."""
  for name in ("max_size", "max_source", "max_target", "max_attach"):
    if getattr(options, name) < 1:
      raise ValueError(f"{name} must be at least 1")
  if options.max_sites < 0:
    raise ValueError("max_sites must not be negative")
  if options.attach not in ATTACH:
    raise ValueError(
      f"attach {options.attach!r} is none of {', '.join(ATTACH)}"
    )


def tree_rules(shard: AlignedShard, *, options: GhkmOptions) -> Emission:
  """The tree-to-string extractor of a shard.

  Raises:
    ValueError: if the shard has no trees.
  """
  if shard.trees is None:
    raise ValueError("tree-to-string rules need trees")
  return extract_rows(
    shard.source,
    shard.target,
    shard.links,
    shard.trees,
    options,
    first=shard.first,
  )


def extract_rows(
  source: Ragged,
  target: Ragged,
  links: Ragged,
  trees: Trees,
  options: GhkmOptions,
  *,
  first: int = 0,
) -> Emission:
  """Finds every rule occurrence in word-aligned sentence pairs with trees.

  A sentence whose tree has no nodes (a failed parse), or has no links, gives
  no rules.

  Args:
    source: word ids, int32, B rows.
    target: word ids, int32, B rows.
    links: `[L, 2]` (source, target) positions in B rows, sorted.
    trees: B source trees, each of no nodes or with as many leaves as the
      sentence has words; its label ids are those of the rules.
    options: what is extracted.
    first: the number of the first sentence.

  Raises:
    ValueError: if the numbers of rows, or of words and leaves, differ.
  """
  check_options(options)
  if not len(source) == len(target) == len(links) == len(trees):
    raise ValueError(
      f"{len(source)} source, {len(target)} target, {len(links)} link rows,"
      f" {len(trees)} trees"
    )
  uneven = ~trees.failed & (trees.words.lengths != source.lengths)
  if uneven.any():
    raise ValueError(f"tree {np.argmax(uneven)} has not the sentence's words")
  limits = np.array(
    [
      options.max_size,
      options.max_sites,
      options.max_source,
      options.max_target,
      options.max_attach if options.attach == "all" else 1,
    ],
    np.int64,
  )
  arrays = _extract(
    (
      np.ascontiguousarray(source.flat, np.int32),
      np.ascontiguousarray(target.flat, np.int32),
      np.ascontiguousarray(links.flat, np.int32),
    ),
    (source.offsets, target.offsets, links.offsets, trees.offsets),
    (trees.label, trees.size, trees.start, trees.end),
    limits,
    options.fractional,
  )
  return emission(arrays, first=first)


@njit
def _extract(texts, rows, nodes, limits, fractional):
  """Runs over the sentences; see `extract_rows`."""
  source, target, links = texts
  source_rows, target_rows, link_rows, node_rows = rows
  buffer, size = new_buffer()
  for row in range(len(source_rows) - 1):
    low, high = node_rows[row], node_rows[row + 1]
    pairs = links[link_rows[row] : link_rows[row + 1]]
    if low == high or len(pairs) == 0:
      continue
    words = source[source_rows[row] : source_rows[row + 1]]
    others = target[target_rows[row] : target_rows[row + 1]]
    tree = (
      nodes[0][low:high],
      nodes[1][low:high],
      nodes[2][low:high],
      nodes[3][low:high],
    )
    spans, free = find_frontier(tree, len(words), len(others), pairs)
    most = _row_size(tree, words, others, pairs)
    for node in range(high - low):
      if spans[node, 0] < 0:
        continue
      cuts, number = find_cuts(tree, spans, node, limits)
      for cut in range(number):
        sites = cuts[cut, 1 : 1 + cuts[cut, 0]]
        variants, ways = attach(spans, free, node, sites, limits[4])
        before = size[1]
        for variant in range(ways):
          buffer = with_room(buffer, size, most)
          stop = _write_rule(
            buffer[0],
            size[0],
            (words, others, pairs),
            tree,
            node,
            sites,
            variants[variant],
            (limits[2], limits[3]),
          )
          add_row(buffer, size, stop, row)
        set_shares(buffer, size, before, fractional)
  return buffer_arrays(buffer, size)


@njit
def _row_size(tree, words, others, links):
  """Returns how long a row of this sentence can be."""
  return 3 * len(words) + len(others) + 2 * len(tree[0]) + len(links) + 5


@njit
def _write_rule(flat, position, texts, tree, root, sites, spans, limits):
  """Writes one rule as a row, see `packed_rules`.

  Args:
    flat: where rows are written.
    position: where this one begins.
    texts: source words, target words, links of the sentence.
    tree: label, size, start, end of its nodes.
    root: the rule's root.
    sites: its sites in source order.
    spans: begin and end of the target spans of root and sites, `[2 + 2 S]`.
    limits: most source symbols, most target symbols.

  Returns:
    The end of the row, or `position` if the rule is too long or has an unknown
    word.
  """
  words, others, links = texts
  begin = position
  # The rule's position of each word, -1 for words under a site.
  source_place = np.full(len(words), -1, np.int32)
  target_place = np.full(len(others), -1, np.int32)
  # Both sides, each followed by a separator.
  position = _write_source(flat, begin, words, tree, root, sites, source_place)
  if position < 0 or position - begin > limits[0]:
    return begin
  flat[position] = SEP
  middle = position + 1
  position = _write_target(flat, middle, others, sites, spans, target_place)
  if position < 0 or position - middle > limits[1]:
    return begin
  flat[position] = SEP
  # Label, kind and fragment.
  flat[position + 1] = tree[0][root]
  flat[position + 2] = _TREE_TO_STRING
  position = _write_fragment(flat, position + 3, words, tree, root, sites)
  flat[position] = SEP
  position += 1
  # Links between words that are in the rule.
  for link in range(len(links)):
    one, other = source_place[links[link, 0]], target_place[links[link, 1]]
    if one >= 0 and other >= 0:
      flat[position] = one * LINK_BASE + other
      position += 1
  return position


@njit
def _write_source(flat, begin, words, tree, root, sites, place):
  """Writes the source side: words, and labels of sites.

  Returns:
    Its end, or -1 if it has an unknown word; `place` is filled.
  """
  label, _, start, end = tree
  position = begin
  word = start[root]
  site = 0
  while word < end[root]:
    if site < len(sites) and start[sites[site]] == word:
      flat[position] = -1 - label[sites[site]]
      word = end[sites[site]]
      site += 1
    else:
      if words[word] < _FIRST_WORD:
        return -1
      place[word] = position - begin
      flat[position] = words[word]
      word += 1
    position += 1
  return position


@njit
def _write_target(flat, begin, others, sites, spans, place):
  """Writes the target side: words, and numbers of sites.

  Returns:
    Its end, or -1 if it has an unknown word; `place` is filled.
  """
  position = begin
  word = spans[0]
  while word < spans[1]:
    step = word + 1
    symbol = others[word]
    # A site whose span begins here stands for all of it.
    for site in range(len(sites)):
      if spans[2 + 2 * site] == word:
        symbol = np.int32(-1 - site)
        step = spans[3 + 2 * site]
    if symbol >= 0:
      if symbol < _FIRST_WORD:
        return -1
      place[word] = position - begin
    flat[position] = symbol
    position += 1
    word = step
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
    # Close the nodes that ended before this one.
    while depth and open_until[depth - 1] <= node:
      flat[position] = CLOSE
      position += 1
      depth -= 1
    # Open this one: a site is a leaf without a word.
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
