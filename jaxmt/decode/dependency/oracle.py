"""Oracle translations of phrase lattices: the best that parsing can find.

From node to node, the strings with most n-grams of the references are kept, by
BLEU+1 of what they are so far as a prefix (its matches over the references'
length). The result is a lower bound of the true oracle, which grows with the
beam; a lattice with at most `beam` strings to every node is searched exactly.
"""

import collections
import math
from collections.abc import Sequence

import numpy as np

from jaxmt.decode.dependency.phrase_lattices import PhraseLattice

_ORDER = 4


def oracle(
  found: PhraseLattice, references: Sequence[str], *, beam: int = 10
) -> str | None:
  """Returns a string of a lattice with high BLEU+1; None without any.

  Args:
    found: the lattice.
    references: of the sentence.
    beam: strings kept for each node.
  """
  texts = [tuple(line.split()) for line in references]
  known: collections.Counter = collections.Counter()
  for words in texts:
    known |= _ngrams(words)
  sizes = [len(words) for words in texts]
  lattice = found.lattice
  strings: list[dict[tuple[str, ...], tuple[int, ...]]] = [
    {} for _ in lattice.final
  ]
  strings[0] = {(): (0,) * _ORDER}
  node = -1
  best: tuple[float, tuple[str, ...]] | None = None
  for edge in range(len(lattice)):
    if int(lattice.start[edge]) != node:
      node = int(lattice.start[edge])
      strings[node] = _cut(strings[node], sizes, beam)
    more = tuple(found.text[edge].split())
    ahead = strings[int(lattice.end[edge])]
    for words, matches in strings[node].items():
      longer = words + more
      if longer not in ahead:
        ahead[longer] = _extended(words, more, matches, known)
  for place in np.flatnonzero(lattice.final > -np.inf).tolist():
    for words, matches in strings[place].items():
      value = _bleu(len(words), matches, sizes)
      if best is None or value > best[0]:
        best = value, words
  return None if best is None else " ".join(best[1])


def _ngrams(words) -> collections.Counter:
  return collections.Counter(
    words[start : start + n]
    for n in range(1, _ORDER + 1)
    for start in range(len(words) - n + 1)
  )


def _extended(words, more, matches, known) -> tuple[int, ...]:
  """Clipped matches of a string with more words."""
  seen = _ngrams(words)
  out = list(matches)
  longer = words + more
  for end in range(len(words) + 1, len(longer) + 1):
    for n in range(1, min(_ORDER, end) + 1):
      gram = longer[end - n : end]
      out[n - 1] += seen[gram] < known[gram]
      seen[gram] += 1
  return tuple(out)


def _cut(strings, sizes, beam):
  """The strings with the best prefixes."""
  if len(strings) <= beam:
    return strings
  value = lambda item: (_bleu(len(item[0]), item[1], sizes, prefix=True),)
  return dict(sorted(strings.items(), key=value, reverse=True)[:beam])


def _bleu(length, matches, sizes, *, prefix: bool = False) -> float:
  """BLEU+1; of prefixes, without the penalty of short ones."""
  total = 0.0
  for n, count in enumerate(matches):
    total += math.log((1 + count) / (1 + max(length - n, 0)))
  closest = min(sizes, key=lambda size: (abs(size - length), size))
  short = not prefix and length < closest
  penalty = 1 - closest / max(length, 1e-9) if short else 0.0
  return total / _ORDER + penalty
