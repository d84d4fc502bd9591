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
from jaxmt.grammar.extract.ghkm_rows import row_size, write_row
from jaxmt.grammar.extract.packed_rules import Emission
from jaxmt.grammar.extract.rule_buffer import (
  add_row,
  buffer_arrays,
  emission,
  new_buffer,
  set_shares,
  with_room,
)
from jaxmt.grammar.extract.shards import Shard
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.text.trees import Trees
from jaxmt.text.vocabulary import SPECIALS

ATTACH = ("tight", "all")

_FIRST_WORD = len(SPECIALS)  # rules never hold unknown words


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


def tree_rules(shard: Shard, *, options: GhkmOptions) -> Emission:
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
    most = row_size(tree, words, others, pairs)
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
          stop = write_row(
            buffer[0],
            size[0],
            (words, others, pairs),
            tree,
            node,
            sites,
            variants[variant],
            (limits[2], limits[3], _FIRST_WORD),
          )
          add_row(buffer, size, stop, row)
        set_shares(buffer, size, before, fractional)
  return buffer_arrays(buffer, size)
