"""Phrase pairs and their orientations by definition, and chance by counting."""

import itertools
import math

from tests.reference import hiero

MONOTONE, SWAP, OTHER = range(3)


def linked(links, source_size, target_size, i, j):
  """Whether two words are linked; the corners of the sentence pair are."""
  if (i, j) in ((-1, -1), (source_size, target_size)):
    return True
  return (i, j) in set(links)


def orientations(sizes, links, options, kind, phrase):
  """(backward, forward) orientation of a phrase pair."""
  begin, end, low, high = phrase
  blocks = []
  if kind == "phrase":
    blocks = hiero.initial_pairs(*sizes, links, options)
  elif kind == "hierarchical":
    whole = type(options)(
      max_phrase=sizes[0], max_target_phrase=sizes[1], tight=options.tight
    )
    blocks = hiero.initial_pairs(*sizes, links, whole)
  at = lambda i, j: linked(links, *sizes, i, j)

  def choose(straight, crossed, straight_blocks, crossed_blocks):
    if (straight and not crossed) or straight_blocks:
      return MONOTONE
    if (crossed and not straight) or crossed_blocks:
      return SWAP
    return OTHER

  backward = choose(
    at(begin - 1, low - 1),
    at(end, low - 1),
    [b for b in blocks if b[1] == begin and b[3] == low],
    [b for b in blocks if b[0] == end and b[3] == low],
  )
  forward = choose(
    at(end, high),
    at(begin - 1, high),
    [b for b in blocks if b[0] == end and b[2] == high],
    [b for b in blocks if b[1] == begin and b[2] == high],
  )
  return backward, forward


def orientation_counts(pairs, options, kind):
  """Six counts of each (source words, target words), a dict."""
  counts = {}
  for source, target, links in pairs:
    sizes = len(source), len(target)
    for phrase in hiero.initial_pairs(*sizes, links, options):
      begin, end, low, high = phrase
      key = tuple(source[begin:end]), tuple(target[low:high])
      own = counts.setdefault(key, [0] * 6)
      back, forth = orientations(sizes, links, options, kind, phrase)
      own[back] += 1
      own[3 + forth] += 1
  return counts


def contains(sentence, phrase):
  size = len(phrase)
  return any(
    tuple(sentence[i : i + size]) == tuple(phrase)
    for i in range(len(sentence) - size + 1)
  )


def chance(pairs, source, target):
  """-ln P(as many sentence pairs with both sides, or more), by counting."""
  first = sum(contains(one, source) for one, _ in pairs)
  second = sum(contains(other, target) for _, other in pairs)
  both = sum(contains(o, source) and contains(t, target) for o, t in pairs)
  size = len(pairs)
  ways = sum(
    math.comb(first, k) * math.comb(size - first, second - k)
    for k in range(both, min(first, second) + 1)
  )
  return -math.log(ways / math.comb(size, second))


def every_alignment(source_size, target_size):
  """All sets of links of two short sentences."""
  cells = list(itertools.product(range(source_size), range(target_size)))
  for size in range(1, len(cells) + 1):
    yield from itertools.combinations(cells, size)
