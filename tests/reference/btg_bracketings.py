"""Every bracketing of a sentence under phrase pairs, by plain recursion."""

import itertools
import math


def blocks(words, phrases, begin=0, end=None, *, memory=None):
  """All derivations of a span.

  Args:
    words: source words.
    phrases: source tuple -> list of (target tuple, score).
    begin: first word.
    end: one past the last; all words if None.
    memory: of spans that are known.

  Returns:
    A list of (target words, score of phrases, joins); a join is
    (left block, right block, inverted), a block its four words at the edges:
    first and last of the source, first and last of the target.
  """
  memory = {} if memory is None else memory
  end = len(words) if end is None else end
  if (begin, end) in memory:
    return memory[begin, end]
  found = [
    (target, score, ())
    for target, score in phrases.get(tuple(words[begin:end]), ())
  ]
  for middle in range(begin + 1, end):
    left = blocks(words, phrases, begin, middle, memory=memory)
    right = blocks(words, phrases, middle, end, memory=memory)
    for (one, s1, j1), (two, s2, j2) in itertools.product(left, right):
      edges = (
        (words[begin], words[middle - 1], one[0], one[-1]),
        (words[middle], words[end - 1], two[0], two[-1]),
      )
      joins = (*j1, *j2)
      found.append((one + two, s1 + s2, (*joins, (*edges, False))))
      found.append((two + one, s1 + s2, (*joins, (*edges, True))))
  memory[begin, end] = found
  return found


def order_score(odds, joins):
  """Σ ln p(order) of joins; `odds(left, right)` are log odds of straight."""
  total = 0.0
  for left, right, inverted in joins:
    value = odds(left, right)
    total -= math.log1p(math.exp(value if inverted else -value))
  return total
