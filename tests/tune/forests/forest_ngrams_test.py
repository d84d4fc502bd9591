"""Forests split by n-gram contexts, against the strings of all derivations."""

import collections

import numpy as np
import pytest

from jaxmt.tune.forests import forest_ngrams
from tests.reference import forests as reference
from tests.tune.forests import forest_mert_test as forests


def ngrams(words, order):
  return [tuple(words[k : k + order]) for k in range(len(words) - order + 1)]


def statistics(line, references):
  """Matches without clipping and numbers of n-grams, from the string."""
  words = line.split()
  out = []
  for order in range(1, 5):
    known = {g for ref in references for g in ngrams(ref.split(), order)}
    out.append(sum(gram in known for gram in ngrams(words, order)))
  return (*out, *(len(ngrams(words, order)) for order in range(1, 5)))


@pytest.mark.parametrize("seed", range(24))
def test_derivations_and_their_statistics(seed):
  pool = forests.random_pool(seed, nodes=6, arity=2 + seed % 2)
  if seed % 3 == 0:  # several references
    more = [[*refs, "b a c a d"] for refs in pool.references]
    pool = pool.bind(more)
  found = forest_ngrams.split(pool)
  assert found.pruned == 0
  for row in range(len(pool.spelled)):
    before = reference.derivations(pool.spelled.forest, row, limit=10**5)
    after = reference.derivations(found.forest, row, limit=10**5)
    key = lambda edges: tuple(edges)
    assert sorted(map(key, before)) == sorted(
      tuple(found.edge[edges].tolist()) for edges in after
    )
    for edges in after:
      line = forests.text_of(pool.spelled, found.edge[edges].tolist())
      sums = tuple(found.statistics[edges].sum(0).tolist())
      assert sums == statistics(line, pool.references[row])


def test_large_forests_are_pruned():
  pool = forests.random_pool(5, nodes=8, fan=3)
  whole = forest_ngrams.split(pool)
  cuts = whole.forest.edge_offsets[whole.forest.node_offsets]
  limit = int(np.diff(cuts).max()) - 1
  few = forest_ngrams.split(pool, max_edges=limit)
  assert few.pruned == (np.diff(cuts) > limit).sum() > 0
  cuts = few.forest.edge_offsets[few.forest.node_offsets]
  assert np.diff(cuts).max() <= limit
  for row in range(len(pool.spelled)):
    many = collections.Counter(
      tuple(whole.edge[edges].tolist())
      for edges in reference.derivations(whole.forest, row, limit=10**6)
    )
    some = [
      tuple(few.edge[edges].tolist())
      for edges in reference.derivations(few.forest, row, limit=10**6)
    ]
    assert bool(some) == bool(many)
    assert all(many[edges] == 1 for edges in some)
