import numpy as np
import pytest

from jaxmt.decode.dependency import (
  configurations,
  phrase_lattices,
  phrase_trees,
  word_lattices,
)
from jaxmt.decode.dependency import lattice as lattices
from tests.decode.dependency.phrase_trees_test import decoded, small  # noqa: F401
from tests.reference import lattice_trees as reference


def strings(found):
  """Scores of all strings, by path."""
  lattice, out = found.lattice, []
  for path in reference.paths(lattice):
    words = " ".join(found.text[edge] for edge in path if found.text[edge])
    score = lattice.score[path].sum() + lattice.final[lattice.end[path[-1]]]
    features = found.features[path].sum(0)
    features += found.final_features[lattice.end[path[-1]]]
    out.append((words, float(score), features.tolist()))
  return sorted(out)


def test_words_have_the_paths_of_their_phrases(decoded):  # noqa: F811
  model = decoded[0]
  weights = phrase_trees.fine_weights(model.weights, {})
  for one in small(decoded):
    split = word_lattices.split(one)
    lattices.check(split.lattice)
    assert split.lattice.words.max() <= 1
    for (text, score, values), (other, again, same) in zip(
      strings(one), strings(split), strict=True
    ):
      assert text == other and score == pytest.approx(again, abs=1e-4)
      np.testing.assert_allclose(values, same, atol=1e-4)
    for edge, word in enumerate(split.text):
      begin, end = split.lattice.span[edge]
      assert end == begin + 1 and 0 <= begin < len(split.source)
      assert " " not in word
    parts = configurations.arc_parts(split.lattice)
    tree = phrase_trees.best(split, parts, weights)
    whole = phrase_trees.best(
      one, configurations.arc_parts(one.lattice), weights
    )
    assert tree.text == whole.text


def test_links_say_which_source_word_a_word_has(decoded):  # noqa: F811
  model, part, forest = decoded
  for one in phrase_lattices.from_forest(model, part.source, forest):
    assert (one.aligned.lengths == np.maximum(one.lattice.words, 1)).all()
    for edge in range(len(one.lattice)):
      begin, end = one.lattice.span[edge]
      own = one.aligned[edge]
      assert ((own >= begin) & (own < end)).all()
