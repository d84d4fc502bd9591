"""Brown clusters by computing the information of every possible merger."""

import collections
import itertools
import math


def information(clusters, bigrams, total):
  """Average mutual information of clusters (lists of words)."""
  of = {word: n for n, words in enumerate(clusters) for word in words}
  joint, left, right = (collections.Counter() for _ in range(3))
  for (a, b), count in bigrams.items():
    if a in of:
      left[of[a]] += count
    if b in of:
      right[of[b]] += count
    if a in of and b in of:
      joint[of[a], of[b]] += count
  return sum(
    count / total * math.log(count * total / (left[a] * right[b]))
    for (a, b), count in joint.items()
  )


def cluster(lines, size):
  """Sets of words, and their information."""
  counts = collections.Counter(w for line in lines for w in line.split())
  bigrams = collections.Counter(
    pair for line in lines for pair in itertools.pairwise(line.split())
  )
  total = sum(bigrams.values())
  clusters = []
  for word, _ in sorted(counts.items(), key=lambda item: -item[1]):
    clusters.append([word])
    if len(clusters) > size:
      best = max(
        itertools.combinations(range(len(clusters)), 2),
        key=lambda pair: information(merged(clusters, *pair), bigrams, total),
      )
      clusters = merged(clusters, *best)
  return clusters, information(clusters, bigrams, total)


def merged(clusters, i, j):
  rest = [c for n, c in enumerate(clusters) if n not in (i, j)]
  return [*rest, clusters[i] + clusters[j]]
