import numpy as np
import pytest

from jaxmt.parse import concave, concave_tagger, dmv, induction, tagger
from jaxmt.text import treebank
from jaxmt.text.ragged import from_rows
from tests.parse.tagger_test import bank_of

TAGS = 3


def head_rows(rows):
  """Each word as a row: its tag, and how many heads of each kind it may have.

  Kinds are the root, and tags of words on the left and on the right.
  """
  words, constants = [], []
  for row in rows:
    for place, tag in enumerate(row):
      own = np.zeros(1 + 2 * TAGS)
      own[0] = 1
      for other, head in enumerate(row):
        if other != place:
          own[1 + TAGS * (other < place) + head] += 1
      words.append(tag)
      constants.append(own)
  return np.array(words), np.array(constants)


def test_heads_as_tags_are_the_concave_parser():
  rng = np.random.default_rng(0)
  rows = [rng.integers(0, TAGS, rng.integers(1, 6)) for _ in range(40)]
  batches = induction.tag_batches(from_rows(rows))
  wanted, history = concave.fit(
    batches, tags=TAGS, iterations=7, verbs=np.zeros(TAGS, bool)
  )
  words, constants = head_rows(rows)
  found, values = concave_tagger.fit_emissions(
    words, np.zeros(TAGS, int), constants, np.ones(len(words)), iterations=7
  )
  np.testing.assert_allclose(found[:, 0], wanted.root, atol=1e-5)
  np.testing.assert_allclose(
    found[:, 1 : 1 + TAGS].T, wanted.child[dmv.LEFT], atol=1e-5
  )
  np.testing.assert_allclose(
    found[:, 1 + TAGS :].T, wanted.child[dmv.RIGHT], atol=1e-5
  )
  constant = sum(len(row) * np.log(len(row) + 1) for row in rows)
  np.testing.assert_allclose(np.array(values) - constant, history, rtol=1e-5)
  assert np.diff(values).min() > -1e-9


def test_the_likelihood_is_concave_and_has_one_maximum():
  rng = np.random.default_rng(1)
  constants = rng.integers(0, 2, (12, 3)) + np.eye(3)[rng.integers(0, 3, 12)]
  group, counts = np.arange(12) % 8, rng.integers(1, 5, 12)
  value = lambda table: concave_tagger._posteriors(
    table, group, constants, counts
  )[1]
  table = lambda: rng.dirichlet(np.ones(8), 3).T
  best, history = concave_tagger.fit_emissions(
    group, np.zeros(8, int), constants, counts, iterations=3000
  )
  assert value(best) == pytest.approx(history[-1], abs=1e-6)
  for _ in range(20):
    one, other = table(), table()
    middle = value((one + other) / 2)
    assert middle >= (value(one) + value(other)) / 2
    assert value(one) < value(best)


def test_contexts_have_distributions_of_their_own():
  context = np.array([0, 0, 1, 1])
  found, _ = concave_tagger.fit_emissions(
    np.arange(4), context, np.ones((4, 1)), np.array([1, 3, 2, 2]), iterations=1
  )
  np.testing.assert_allclose(found[:, 0], [0.25, 0.75, 0.5, 0.5])


def test_a_small_dictionary_teaches_the_other_words(tmp_path):
  bank, test = bank_of(tmp_path, 0, sentences=300), bank_of(tmp_path, 1)
  small = treebank.select(bank, np.arange(len(bank)) < 8)
  values = []
  found = concave_tagger.fit(
    bank,
    small,
    iterations=30,
    report=lambda step, value: values.append(value),
  )
  assert len(values) == 30 and np.diff(values).min() > -1e-9
  known = {small.forms[word] for word in small.words.flat}
  there = [test.forms[word] in known for word in test.words.flat]
  assert 0.5 < np.mean(there) < 0.8
  tags = tagger.tag(found, test)
  assert tagger.accuracy(found, test, tags) > 90
  assert found.tag_names == small.tag_names
  # Learnt further from words alone, its tags keep their names.
  config = tagger.FeatureConfig(iterations=10)
  later = tagger.fit(bank, config, start=found, report=lambda *_: None)
  assert later.kind == "features" and later.tag_names == small.tag_names
  better = tagger.accuracy(later, test, tagger.tag(later, test))
  alone = tagger.fit(bank, tagger.FeatureConfig(tags=4, iterations=10))
  assert better > tagger.accuracy(alone, test, tagger.tag(alone, test))
  with pytest.raises(ValueError, match="has its own tags"):
    tagger.fit(bank, tagger.FeatureConfig(tags=4), start=found)


def test_a_dictionary_needs_words(tmp_path):
  bank = bank_of(tmp_path, 0, sentences=3)
  with pytest.raises(ValueError, match="no word stands 99 times"):
    concave_tagger.fit(bank, bank, least=99)
  with pytest.raises(ValueError, match="no sentences"):
    concave_tagger.fit(treebank.select(bank, np.zeros(3, bool)), bank)


def test_where_all_is_known_the_counts_are_those_of_the_tags(tmp_path):
  bank = bank_of(tmp_path, 0)
  found = concave_tagger.fit(bank, bank, iterations=3)
  wanted = tagger.count(bank)
  order = [found.tag_names.index(name) for name in wanted.tag_names]
  np.testing.assert_allclose(
    found.transition[order][:, order], wanted.transition, atol=1e-5
  )
  np.testing.assert_allclose(found.start[order], wanted.start, atol=1e-5)
