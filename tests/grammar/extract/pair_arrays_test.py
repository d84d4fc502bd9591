"""Sentence pairs as kernels read them."""

import numpy as np

from jaxmt.grammar.extract import pair_arrays
from jaxmt.text import links as links_lib
from jaxmt.text.ragged import from_rows

SOURCE = [[5, 6, 7], [], [8, 9]]
TARGET = [[1, 2], [3], [4, 5, 6, 7]]
LINKS = ["0-1 2-0 2-1", "", "1-0 1-3"]


def test_rows_of_a_sentence_pair():
  pairs = pair_arrays.pair_arrays(
    from_rows(SOURCE), from_rows(TARGET), links_lib.parse_links(LINKS)
  )
  for row, line in enumerate(LINKS):
    source, target, links = pair_arrays.sentence_pair(pairs, row)
    assert source.tolist() == SOURCE[row]
    assert target.tolist() == TARGET[row]
    assert " ".join(f"{i}-{j}" for i, j in links.tolist()) == line


def test_keys_of_words_keep_all_their_bits():
  keys = np.array([2**63 + 1, 7], np.uint64)
  rows = from_rows([keys.tolist()], np.uint64)
  pairs = pair_arrays.pair_arrays(
    rows, rows, links_lib.parse_links(["0-0"]), words=np.uint64
  )
  assert pairs.source.dtype == np.uint64
  assert pairs.source.tolist() == pairs.target.tolist() == keys.tolist()


def test_extents_against_enumeration():
  rng = np.random.default_rng(0)
  for _ in range(20):
    source, target = rng.integers(1, 6, 2).tolist()
    matrix = rng.random((source, target)) < 0.3
    low, high, left, right = pair_arrays.link_extents(
      source, target, np.argwhere(matrix).astype(np.int32)
    )
    for i in range(source):
      linked = np.flatnonzero(matrix[i]).tolist()
      expected = (linked[0], linked[-1]) if linked else (target, -1)
      assert (low[i], high[i]) == expected
    for j in range(target):
      linked = np.flatnonzero(matrix[:, j]).tolist()
      expected = (linked[0], linked[-1]) if linked else (source, -1)
      assert (left[j], right[j]) == expected
