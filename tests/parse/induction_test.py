import numpy as np
import pytest

from jaxmt.parse import concave, dmv, induction
from jaxmt.parse.induction import InductionConfig
from jaxmt.text import treebank
from jaxmt.text.ragged import from_rows
from tests.reference import dependency_trees as reference


def read(tmp_path, text):
  (tmp_path / "bank").write_text(text)
  return treebank.read_treebank(str(tmp_path / "bank"))


def sentences(rows):
  return "\n\n".join(
    "\n".join(f"w\t{tag}" for tag in row.split()) for row in rows
  )


ROWS = (
  ["DET NOUN VERB", "DET NOUN VERB DET NOUN", "NOUN VERB DET NOUN"] * 3
  + ["VERB", "DET ADJ NOUN VERB PUNCT", "PUNCT NOUN VERB"]
  + ["NOUN VERB NOUN NOUN NOUN NOUN NOUN NOUN NOUN NOUN NOUN"]
)


@pytest.fixture
def bank(tmp_path):
  return read(tmp_path, sentences(ROWS) + "\n")


def config(**changes):
  return InductionConfig(iterations=5, concave_iterations=5, **changes)


def test_every_start_and_model_gives_trees(bank):
  for start in induction.STARTS:
    parser, history = induction.learn(bank, config(start=start))
    assert len(history) == 5 and history[-1] > history[0]
  heads = induction.parse(parser, bank)
  for row in range(len(bank)):
    assert reference.is_tree(heads[row])
  for model in ("ccv1", "ccv2"):
    parser, history = induction.learn(bank, config(model=model))
    assert np.diff(history).min() > -1e-4
    assert reference.is_tree(induction.parse(parser, bank)[0])


def test_starts_differ_and_long_sentences_are_left_out(bank):
  parsers = [
    induction.learn(bank, config(start=s))[0] for s in ("ccv1", "ccv2")
  ]
  assert np.abs(parsers[0].model.child - parsers[1].model.child).max() > 1e-3
  with pytest.raises(ValueError, match="no sentence of 1 to 0 words"):
    induction.learn(bank, config(max_length=0))
  with pytest.raises(ValueError, match="no start 'x'"):
    induction.learn(bank, config(start="x"))


def test_distinct_sentences_are_weighted():
  tags = from_rows([[1, 2], [1, 2], [3], [1, 2, 0]])
  batch = induction.tag_batches(tags, cells=18)
  assert batch.tags.shape == (2, 2, 3)
  assert sorted(batch.weight.flatten().tolist()) == [0, 1, 1, 2]
  assert int((batch.weight * batch.lengths).sum()) == 8


def test_one_step_of_the_concave_model_by_hand():
  """Two words, tags 0 and 1, uniform start: each head has 1/2."""
  batches = induction.tag_batches(from_rows([[0, 1]]))
  none = np.zeros(2, bool)
  model, history = concave.fit(batches, tags=2, iterations=1, verbs=none)
  np.testing.assert_allclose(model.root, [0.5, 0.5])
  np.testing.assert_allclose(model.child[dmv.RIGHT, 0], [0, 1])
  np.testing.assert_allclose(model.child[dmv.LEFT, 1], [1, 0])
  np.testing.assert_allclose(model.child[dmv.LEFT, 0], [0.5, 0.5])
  # Each word: 1/2 from the root and 1/2 from the other, less log 3.
  np.testing.assert_allclose(history, [-2 * np.log(3)], rtol=1e-5)
  # With a verb, tag 1, the other word cannot be the root.
  verb = np.array([False, True])
  model, _ = concave.fit(batches, tags=2, iterations=1, verbs=verb)
  np.testing.assert_allclose(model.root, [0, 1])


def test_the_concave_likelihood_is_concave():
  """On the segment between two models, above the chord."""
  rng = np.random.default_rng(0)
  tags = from_rows([rng.integers(0, 3, rng.integers(1, 6)) for _ in range(30)])
  batches = induction.tag_batches(tags)
  verbs = np.array([True, False, False])
  value = lambda model: float(concave._iteration(model, batches, verbs)[1])
  for seed in range(4):
    one, other = dmv.random(3, seed), dmv.random(3, seed + 10)
    middle = dmv.Dmv(
      root=(one.root + other.root) / 2,
      child=(one.child + other.child) / 2,
      stop=one.stop,
    )
    assert value(middle) >= (value(one) + value(other)) / 2 - 1e-4


def test_punctuation_hangs_on_the_word_before(tmp_path):
  bank = read(tmp_path, "\n".join("w\t" + t for t in "PUNCT A PUNCT B".split()))
  parser, _ = induction.learn(bank, config(start="harmonic"))
  heads = induction.parse(parser, bank)[0]
  assert heads[0] == 1 and heads[2] == 1
  assert {heads[1], heads[3]} in ({-1, 1}, {-1, 3})
