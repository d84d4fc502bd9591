"""The index of word pairs against sets and loops."""

import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from jaxmt.align import cooccurrence
from jaxmt.text import ragged

sentence = strategies.lists(strategies.integers(0, 6), max_size=7)
bitext = strategies.lists(strategies.tuples(sentence, sentence), max_size=8)


@hypothesis.given(bitext)
def test_every_cell_holds_its_pair(pairs):
  source = [s for s, _ in pairs]
  target = [t for _, t in pairs]
  index = cooccurrence.build(ragged.from_rows(source), ragged.from_rows(target))
  expected = sorted({(e, f) for s, t in pairs for e in s for f in t})
  table = index.table
  found = list(zip(table.source.tolist(), table.target.tolist(), strict=True))
  assert found == expected
  seen = []
  for bucket in index.buckets:
    for row, line in enumerate(bucket.sentences.tolist()):
      seen.append(line)
      s, t = source[line], target[line]
      grid = np.full((bucket.width, bucket.width), len(expected))
      for i, e in enumerate(s):
        for j, f in enumerate(t):
          grid[i, j] = expected.index((e, f))
      np.testing.assert_array_equal(bucket.pairs[row], grid)
      assert bucket.source[row, : len(s)].tolist() == s
      assert bucket.target[row, : len(t)].tolist() == t
      assert (bucket.source[row, len(s) :] == table.source_size).all()
      assert (bucket.target[row, len(t) :] == table.target_size).all()
      assert bucket.source_length[row] == len(s)
      assert bucket.target_length[row] == len(t)
  assert sorted(seen) == [n for n, (s, t) in enumerate(pairs) if s and t]


@hypothesis.given(
  strategies.lists(strategies.integers(1, 9), min_size=1, max_size=12),
  strategies.integers(1, 200),
)
def test_bucket_widths_are_the_best(lengths, cost):
  lengths = np.array(lengths)
  sizes = np.unique(lengths)

  def price(widths):
    widths = np.array(widths)
    chosen = widths[np.searchsorted(widths, lengths)]
    return (chosen**2).sum() + cost * len(widths)

  options = [
    [*some, sizes[-1]]
    for count in range(len(sizes))
    for some in itertools.combinations(sizes[:-1], count)
  ]
  found = cooccurrence.bucket_widths(lengths, bucket_cost=cost)
  assert price(found) == min(map(price, options))


def test_uneven_sides_are_refused():
  with pytest.raises(ValueError, match="1 source and 2 target"):
    cooccurrence.build(ragged.from_rows([[1]]), ragged.from_rows([[1], [2]]))
