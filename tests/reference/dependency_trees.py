"""All projective single-root trees of a sentence, by trying every head."""

import itertools


def is_tree(heads) -> bool:
  """One root (-1) and no cycles."""
  if sum(head == -1 for head in heads) != 1:
    return False
  for node in range(len(heads)):
    steps = 0
    while node >= 0:
      node = heads[node]
      steps += 1
      if steps > len(heads):
        return False
  return True


def is_projective(heads) -> bool:
  """No two arcs cross; the root's arc comes from the left end."""
  arcs = [tuple(sorted((child, head))) for child, head in enumerate(heads)]
  for (a, b), (c, d) in itertools.permutations(arcs, 2):
    if a < c < b < d:
      return False
  return True


def projective_trees(size):
  """Every projective tree over `size` words, as tuples of heads."""
  choices = [
    [head for head in range(-1, size) if head != child] for child in range(size)
  ]
  return [
    heads
    for heads in itertools.product(*choices)
    if is_tree(heads) and is_projective(heads)
  ]


def score(heads, arcs) -> float:
  """Sum of the arcs' scores, `arcs [N + 1, N]` with the root in row 0."""
  return sum(arcs[head + 1, child] for child, head in enumerate(heads))


def dmv_probability(heads, tags, root, child, stop) -> float:
  """The generative story of the DMV, one decision after the other.

  `child[direction][head][dependent]`, `stop[direction][head][valence]`.
  """
  value = 1.0
  for word, head in enumerate(heads):
    if head == -1:
      value *= root[tags[word]]
    for direction in (0, 1):
      own = [c for c, h in enumerate(heads) if h == word]
      own = [c for c in own if (c > word) == bool(direction)]
      own.sort(key=lambda c: abs(c - word))
      for number, dependent in enumerate(own):
        valence = 0 if number == 0 else 1
        value *= 1 - stop[direction][tags[word]][valence]
        value *= child[direction][tags[word]][tags[dependent]]
      value *= stop[direction][tags[word]][1 if own else 0]
  return value
