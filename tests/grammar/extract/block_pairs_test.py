"""Neighbouring blocks against their definition."""

import itertools

import hypothesis
import numpy as np
from hypothesis import strategies

from jaxmt.grammar.extract import block_pairs
from jaxmt.text import ragged


def block(links, begin, end, length):
  """The target span of a source span, None if it is no block."""
  inside = [t for s, t in links if begin <= s < end]
  if not inside:
    return None
  low, high = min(inside), max(inside) + 1
  if any(low <= t < high and not begin <= s < end for s, t in links):
    return None
  del length
  return low, high


def expected(words, others, links):
  found = []
  linked = {t for _, t in links}
  for middle in range(1, len(words)):
    pairs = []
    for begin, end in itertools.product(
      range(middle), range(middle + 1, len(words) + 1)
    ):
      one = block(links, begin, middle, len(words))
      two = block(links, middle, end, len(words))
      if one is None or two is None:
        continue
      left, right = sorted((one, two))
      between = linked & set(range(left[1], right[0]))
      if left[1] <= right[0] and not between:
        pairs.append((end - begin, begin, end, one, two))
    if not pairs:
      continue
    small = min(pairs, key=lambda pair: pair[0])
    large = max(pairs, key=lambda pair: pair[0])
    for size, begin, end, one, two in [small, large][
      : 1 + (large[0] > small[0])
    ]:
      del size
      edges = (
        *(words[begin], words[middle - 1], others[one[0]], others[one[1] - 1]),
        *(words[middle], words[end - 1], others[two[0]], others[two[1] - 1]),
      )
      found.append((edges, two < one))
  return found


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
  strategies.lists(
    strategies.tuples(
      strategies.integers(1, 6),
      strategies.integers(1, 6),
      strategies.sets(
        strategies.tuples(strategies.integers(0, 5), strategies.integers(0, 5))
      ),
    ),
    max_size=3,
  )
)
def test_examples_are_those_of_the_definition(sentences):
  source, target, links, wants = [], [], [], []
  for number, (rows, columns, pairs) in enumerate(sentences):
    good = sorted((s, t) for s, t in pairs if s < rows and t < columns)
    words = [10 * number + place for place in range(rows)]
    others = [500 + 10 * number + place for place in range(columns)]
    source.append(words)
    target.append(others)
    links.append(np.array(good, np.int32).reshape(-1, 2))
    wants.append(expected(words, others, good))
  found = block_pairs.find(
    ragged.from_rows(source),
    ragged.from_rows(target),
    ragged.Ragged(
      flat=np.concatenate([np.zeros((0, 2), np.int32), *links]),
      offsets=ragged.row_offsets([len(one) for one in links]),
    ),
  )
  for number, want in enumerate(wants):
    rows = np.flatnonzero(found.sentence == number)
    got = [
      (tuple(found.words[row].tolist()), bool(found.inverted[row]))
      for row in rows
    ]
    assert got == want
