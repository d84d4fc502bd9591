"""Hiero extraction by definition: all spans, all subsets, no cleverness."""

import collections
import fractions
import itertools


def initial_pairs(source_size, target_size, links, options):
  """All (source start, end, target start, end) that are initial pairs."""
  found = []
  for i, j in itertools.combinations(range(source_size + 1), 2):
    for k, l in itertools.combinations(range(target_size + 1), 2):
      if j - i > options.max_phrase or l - k > options.max_target_phrase:
        continue
      inside = [(s, t) for s, t in links if i <= s < j and k <= t < l]
      crossing = [(s, t) for s, t in links if (i <= s < j) != (k <= t < l)]
      if not inside or crossing:
        continue
      if options.tight:
        edges = {i, j - 1} <= {s for s, _ in inside}
        edges = edges and {k, l - 1} <= {t for _, t in inside}
        if not edges:
          continue
      found.append((i, j, k, l))
  return found


def _within(inner, outer):
  return (
    outer[0] <= inner[0]
    and inner[1] <= outer[1]
    and outer[2] <= inner[2]
    and inner[3] <= outer[3]
  )


def _disjoint(one, two):
  return (one[1] <= two[0] or two[1] <= one[0]) and (
    one[3] <= two[2] or two[3] <= one[2]
  )


def _rule(source, target, links, outer, holes):
  """The rule's two sides and its links, by walking over the positions."""
  sides, places = [], []
  for side, words in enumerate((source, target)):
    symbols, place = [], {}
    for position in range(outer[2 * side], outer[2 * side + 1]):
      hole = [
        number
        for number, span in enumerate(holes)
        if span[2 * side] <= position < span[2 * side + 1]
      ]
      if not hole:
        place[position] = len(symbols)
        symbols.append(words[position])
      elif position == holes[hole[0]][2 * side]:
        symbols.append(("X", hole[0]))
    sides.append(tuple(symbols))
    places.append(place)
  kept = tuple(
    sorted(
      (places[0][s], places[1][t])
      for s, t in links
      if s in places[0] and t in places[1]
    )
  )
  return sides[0], sides[1], kept


def rules_of_pair(source, target, links, outer, initial, options):
  """The rules (source, target, links) that arise from one initial pair."""
  inner = [pair for pair in initial if _within(pair, outer)]
  found = []
  for number in range(options.max_nonterminals + 1):
    for holes in itertools.combinations(sorted(inner), number):
      if not all(_disjoint(a, b) for a, b in itertools.combinations(holes, 2)):
        continue
      if any(hole[1] - hole[0] < options.min_hole for hole in holes):
        continue
      if not options.adjacent and any(
        a[1] == b[0] for a, b in itertools.pairwise(holes)
      ):
        continue
      rule = _rule(source, target, links, outer, holes)
      limit = options.max_symbols if holes else options.max_words
      if len(rule[0]) <= limit and rule[2]:
        found.append(rule)
  return found


def extract(corpus, options):
  """Counts the rules of `(source words, target words, links)` triples.

  Returns:
    `{(source, target): (count, occurrences, links)}`: exact counts, and the
    links counted most (the least of equals).
  """
  variants = collections.defaultdict(fractions.Fraction)
  occurrences = collections.Counter()
  for source, target, links in corpus:
    initial = initial_pairs(len(source), len(target), links, options)
    for outer in initial:
      rules = rules_of_pair(source, target, links, outer, initial, options)
      for rule in rules:
        share = fractions.Fraction(1, len(rules) if options.fractional else 1)
        variants[rule] += share
        occurrences[rule[:2]] += 1
  counts = collections.defaultdict(fractions.Fraction)
  best = {}
  for (source, target, links), count in sorted(variants.items(), key=repr):
    key = (source, target)
    counts[key] += count
    if key not in best or (-count, links) < best[key]:
      best[key] = (-count, links)
  return {
    key: (count, occurrences[key], best[key][1])
    for key, count in counts.items()
  }
