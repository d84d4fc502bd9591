"""Choosing and joining sparse features."""

import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.features import selection, sparse, string_templates
from jaxmt.tune import pool
from tests.features.sparse_test import build
from tests.tune import small_pool


def counted(rows, names):
  dense = sparse.to_dense(rows, len(names))
  return [
    {n: v for n, v in zip(names, row, strict=True) if v}
    for row in dense.tolist()
  ]


def test_sentence_counts_see_only_what_varies():
  # Feature 0 is constant in sentence 0, missing once in sentence 1.
  rows = build(
    [[(0, 1), (1, 2)], [(0, 1), (1, 3)], [(0, 1)], [(2, 1)], [(3, 1)]]
  )
  counts = selection.sentence_counts(rows, np.array([0, 0, 1, 1, 2]), 4)
  assert counts.tolist() == [1, 1, 1, 0]
  kept = selection.most_frequent(counts, 2)
  assert kept.tolist() == [True, True, False, False]
  thin, names = selection.select(rows, "abcd", kept)
  assert names == ("a", "b")
  assert counted(thin, names)[0] == {"a": 1, "b": 2}


def test_summary_features_keep_the_scores():
  made = small_pool.make(0, sparse_features=8)
  rng = np.random.default_rng(0)
  weights = rng.normal(size=len(made.names))
  groups = np.arange(8) % 3
  folded = pool.summarised(made, weights, groups)
  assert folded.names[4:] == ("summary_0", "summary_1", "summary_2")
  np.testing.assert_allclose(
    pool.scores(folded, np.concatenate([weights[:4], np.ones(3)])),
    pool.scores(made, weights),
  )


def test_templates_join_a_pool():
  made = small_pool.make(0)
  rows, names = string_templates.target_ngrams(made.lines, order=1)
  wide = candidate_lists.with_features(made, [(rows, names)])
  assert wide.names == (*made.names, *names)
  weights = np.ones(len(wide.names))
  lengths = [len(line.split()) for line in made.lines]
  np.testing.assert_allclose(
    pool.scores(wide, weights), made.dense.sum(1) + lengths
  )
