"""ITG derivations and alignments by enumeration, for a few words."""

import functools
import itertools


def alignments(n, m):
  """Yields all sets of one-to-one links of n and m words."""
  for size in range(min(n, m) + 1):
    for sources in itertools.combinations(range(n), size):
      for targets in itertools.permutations(range(m), size):
        yield tuple(zip(sources, targets, strict=True))


def separable(order):
  """Whether a permutation has neither the pattern 2413 nor 3142."""
  for four in itertools.combinations(order, 4):
    ranks = [sorted(four).index(value) for value in four]
    if ranks in ([1, 3, 0, 2], [2, 0, 3, 1]):
      return False
  return True


def inversions(order):
  """Returns `(straight, inverted)` combinations of a separable permutation."""
  stack, counts = [], [0, 0]
  for value in order:
    stack.append((value, value))
    while len(stack) > 1:
      (a, b), (c, d) = stack[-2:]
      if b + 1 == c:
        counts[0] += 1
      elif d + 1 == a:
        counts[1] += 1
      else:
        break
      stack[-2:] = [(min(a, c), max(b, d))]
  return tuple(counts)


def ranked(links):
  """The targets of links in the order of their sources, as ranks."""
  targets = [t for _, t in sorted(links)]
  return [sorted(targets).index(t) for t in targets]


def derivations(n, m, rules=(), *, nulls=True):
  """Returns all derivations: a list of (links, rules used).

  Straight from the grammar's rules, without any node shared.

  Args:
    n: source words.
    m: target words.
    rules: (outer, gap or None, links, name): bi-spans are (i, k, j, l).
    nulls: whether words may be without a link.
  """

  def unlinked(i, k, j, l):
    return nulls or (i == k and j == l)

  @functools.cache
  def cores(i, k, j, l):
    found = []
    if k - i == 1 and l - j == 1:
      found.append((((i, j),), ()))
    for outer, gap, links, name in rules:
      if outer != (i, k, j, l):
        continue
      inner = [((), ())] if gap is None else of("ABC", *gap)
      found += [(links + more, (name, *used)) for more, used in inner]
    return found

  @functools.cache
  def one(category, i, k, j, l):
    found = []
    if category == "C":
      for a in range(i, k):
        for b in range(j, l):
          if unlinked(i, a, j, b):
            found += cores(a, k, b, l)
      return found
    for s in range(i + 1, k):
      for t in range(j + 1, l):
        if category == "A":
          left, right = of("ABC", i, s, j, t), of("BC", s, k, t, l)
        else:
          left, right = of("ABC", i, s, t, l), of("AC", s, k, j, t)
        for (first, used), (second, more) in itertools.product(left, right):
          found.append((first + second, used + more))
    return found

  def of(categories, i, k, j, l):
    return [item for c in categories for item in one(c, i, k, j, l)]

  found = [((), ())] if nulls else []
  for k in range(1, n + 1):
    for l in range(1, m + 1):
      if unlinked(k, n, l, m):
        found += of("ABC", 0, k, 0, l)
  return [(tuple(sorted(links)), used) for links, used in found]
