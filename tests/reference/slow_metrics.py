"""NIST, WER, PER and GTM straight from their definitions, slowly."""

import itertools
import math
from collections import Counter
from functools import cache


def ngrams(words, n):
  return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def nist(hypotheses, references, order=5):
  """Corpus NIST of token lists; references per sentence."""
  counts = Counter()
  for row in references:
    for reference in row:
      counts[()] += len(reference)
      for n in range(1, order + 1):
        counts += ngrams(reference, n)
  gain = 0.0
  for n in range(1, order + 1):
    information = total = 0.0
    for words, row in zip(hypotheses, references, strict=True):
      mine = ngrams(words, n)
      most = Counter()
      for reference in row:
        most |= ngrams(reference, n)
      for gram, count in (mine & most).items():
        information += count * math.log2(counts[gram[:-1]] / counts[gram])
      total += sum(mine.values())
    gain += information / max(total, 1)
  length = sum(map(len, hypotheses))
  mean = sum(sum(map(len, row)) / len(row) for row in references)
  if length == 0:
    return 0.0
  share = min(1.0, length / mean) if mean else 1.0
  beta = math.log(0.5) / math.log(1.5) ** 2
  return gain * math.exp(beta * math.log(share) ** 2)


def edit_distance(one, other):
  """The recursion of Levenshtein distance, memoised."""

  @cache
  def distance(i, j):
    if i == 0 or j == 0:
      return i + j
    return min(
      distance(i - 1, j) + 1,
      distance(i, j - 1) + 1,
      distance(i - 1, j - 1) + (one[i - 1] != other[j - 1]),
    )

  # Filled row by row, so that the recursion stays shallow.
  for i, j in itertools.product(range(len(one) + 1), range(len(other) + 1)):
    distance(i, j)
  return distance(len(one), len(other))


def bag_distance(one, other):
  """Edits when word order does not matter: what neither side can pair."""
  left, right = Counter(one), Counter(other)
  surplus = sum((left - right).values())
  missing = sum((right - left).values())
  return max(surplus, missing)


def match_size(words, reference, exponent):
  """GTM's greedy matching: take the longest free run again and again."""
  free = {
    (i, j)
    for i, word in enumerate(words)
    for j, other in enumerate(reference)
    if word == other
  }
  total = 0.0
  while free:
    best = (0, 0, 0)
    for i, j in free:
      length = 0
      while (i + length, j + length) in free:
        length += 1
      best = max(best, (length, -i, -j))
    length, i, j = best[0], -best[1], -best[2]
    rows = range(i, i + length)
    columns = range(j, j + length)
    free = {(a, b) for a, b in free if a not in rows and b not in columns}
    total += length**exponent
  return total ** (1 / exponent)


def best_matching(words, reference, exponent):
  """The largest match size over all matchings; for very short texts."""

  def runs(pairs):
    sizes, chosen = [], set(pairs)
    for i, j in sorted(chosen):
      if (i - 1, j - 1) not in chosen:
        length = 0
        while (i + length, j + length) in chosen:
          length += 1
        sizes.append(length)
    return sum(size**exponent for size in sizes) ** (1 / exponent)

  def extend(i, used, pairs):
    if i == len(words):
      return runs(pairs)
    best = extend(i + 1, used, pairs)
    for j, other in enumerate(reference):
      if other == words[i] and j not in used:
        best = max(best, extend(i + 1, used | {j}, [*pairs, (i, j)]))
    return best

  return extend(0, frozenset(), [])
