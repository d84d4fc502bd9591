import numpy as np

from jaxmt.parse import eisner, eisner_kernel
from tests.reference import dependency_trees as reference


def test_equals_the_array_program():
  rng = np.random.default_rng(0)
  arcs = rng.normal(size=(20, 10, 9)).astype(np.float32)
  lengths = rng.integers(0, 10, 20).astype(np.int32)
  found = eisner_kernel.best_trees(arcs, lengths)
  wanted = np.asarray(eisner.best_trees(arcs, lengths))
  for row, length in enumerate(lengths):
    np.testing.assert_array_equal(found[row, :length], wanted[row, :length])
    assert (found[row, length:] == -1).all()


def test_equals_enumeration():
  rng = np.random.default_rng(1)
  for size in range(1, 6):
    arcs = rng.normal(size=(1, size + 1, size))
    (heads,) = eisner_kernel.best_trees(arcs, np.array([size]))
    trees = reference.projective_trees(size)
    scores = [
      sum(arcs[0, head + 1, word] for word, head in enumerate(tree))
      for tree in trees
    ]
    assert heads.tolist() == list(trees[int(np.argmax(scores))])
