import numpy as np
import pytest

from jaxmt.parse import (
  attachment_scores,
  sibling_kernel,
  sibling_parser,
  sibling_posteriors,
)
from jaxmt.parse.sibling_parser import SiblingConfig, SiblingParser
from jaxmt.text import treebank
from tests.parse.arc_parser_test import random_bank
from tests.reference import dependency_trees as reference


def tree_score(heads, arcs, pairs):
  """Sum over arcs and neighbouring siblings, by the definition."""
  total = 0.0
  for child, head in enumerate(heads):
    total += arcs[head + 1, child]
    if head < 0:
      continue
    nearer = [
      other
      for other, parent in enumerate(heads)
      if parent == head and min(head, child) < other < max(head, child)
    ]
    sibling = min(nearer, key=lambda word: abs(word - child), default=-1)
    total += pairs[head, sibling + 1, child]
  return total


@pytest.mark.parametrize("size", range(1, 6))
def test_the_best_tree_is_that_of_enumeration(size):
  rng = np.random.default_rng(size)
  for _ in range(4):
    arcs = rng.normal(size=(size + 1, size)).astype(np.float32)
    pairs = rng.normal(size=(size, size + 1, size)).astype(np.float32)
    heads = np.full(size, -1, np.int32)
    score = sibling_kernel.best_tree(arcs, pairs, size, heads)
    trees = reference.projective_trees(size)
    scores = [tree_score(tree, arcs, pairs) for tree in trees]
    assert score == pytest.approx(max(scores), abs=1e-5)
    assert heads.tolist() == list(trees[int(np.argmax(scores))])


def test_features_of_a_tree_are_those_that_score_it(tmp_path):
  bank = random_bank(tmp_path)
  columns = sibling_parser.token_columns(bank)
  weights = np.random.default_rng(0).normal(size=1 << 12).astype(np.float32)
  shift = np.uint64(64 - 12)
  for row in range(5):
    first, stop = bank.words.offsets[row : row + 2]
    n = stop - first
    keys, rows = sibling_kernel.sentence_keys(columns, first, stop)
    arcs, pairs = sibling_kernel.scores(keys, rows, n, weights, shift)
    heads = np.full(n, -1, np.int32)
    score = sibling_kernel.best_tree(arcs, pairs, n, heads)
    change = np.zeros(1 << 12, np.int32)
    room = sibling_kernel.ROOM + n
    sibling_kernel._add_tree(
      *(keys, rows, heads, n, shift, 1, change),
      *(np.empty(2 * n * room, np.int64), 0, np.empty(room, np.int64)),
    )
    assert change @ weights == pytest.approx(score, rel=1e-4)
    assert tree_score(heads, arcs, pairs) == pytest.approx(score, rel=1e-4)


def test_posteriors_are_those_of_enumeration():
  rng = np.random.default_rng(0)
  for size in range(1, 6):
    arcs = rng.normal(size=(size + 1, size))
    pairs = rng.normal(size=(size, size + 1, size))
    found, log = sibling_posteriors.posteriors(arcs, pairs, size)
    trees = reference.projective_trees(size)
    scores = np.array([tree_score(tree, arcs, pairs) for tree in trees])
    assert log == pytest.approx(np.logaddexp.reduce(scores))
    expected = np.zeros((size + 1, size + 1, size))
    for tree, share in zip(trees, np.exp(scores - log), strict=True):
      heads = np.array(tree)
      for child, head in enumerate(tree):
        sibling = (
          sibling_posteriors.nearer_sibling(heads, child) if head >= 0 else -1
        )
        expected[head + 1, sibling + 1, child] += share
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_sums_too_small_for_a_number_give_the_best_trees(tmp_path):
  bank = random_bank(tmp_path)
  rng = np.random.default_rng(0)
  wild = (1e4 * rng.normal(size=1 << 10)).astype(np.float32)
  heads = [
    sibling_parser.parse(SiblingParser(loss=loss, weights=wild), bank)
    for loss in ("likelihood", "margin")
  ]
  for row in range(len(bank)):
    assert reference.is_tree(heads[0][row])
  assert np.mean(heads[0].flat == heads[1].flat) > 0.9


def test_parsers_together_have_the_mean_of_their_posteriors(tmp_path):
  bank = random_bank(tmp_path)
  rng = np.random.default_rng(0)
  parsers = [
    SiblingParser(
      loss="likelihood", weights=rng.normal(size=1 << 10).astype(np.float32)
    )
    for _ in range(3)
  ]
  found = sibling_parser.parse_together(parsers, bank)
  columns = sibling_parser.token_columns(bank)
  differ = 0
  for row in range(len(bank)):
    first, stop = bank.words.offsets[row : row + 2]
    size = stop - first
    sums = np.zeros((size + 1, size))
    for parser in parsers:
      shift = sibling_kernel.shift_of(parser.weights)
      keys, rows = sibling_kernel.sentence_keys(columns, first, stop)
      given = sibling_kernel.scores(keys, rows, size, parser.weights, shift)
      sums += sibling_posteriors.posteriors(*given, size)[0].sum(1)
    trees = reference.projective_trees(size)
    gains = [
      sum(sums[head + 1, child] for child, head in enumerate(tree))
      for tree in trees
    ]
    assert found[row].tolist() == list(trees[int(np.argmax(gains))])
    one = sibling_parser.parse(parsers[0], bank)[row]
    differ += found[row].tolist() != one.tolist()
  assert differ
  margin = SiblingParser(loss="margin", weights=parsers[0].weights)
  with pytest.raises(ValueError, match="have no posteriors"):
    sibling_parser.parse_together([parsers[0], margin], bank)


@pytest.mark.parametrize("loss", sibling_parser.LOSSES)
def test_learns_and_is_the_same_again(tmp_path, loss):
  bank = random_bank(tmp_path)
  errors = []
  config = SiblingConfig(epochs=4, bits=14, loss=loss)
  parser = sibling_parser.train(
    bank, config, report=lambda epoch, share: errors.append(share)
  )
  assert errors[-1] < errors[0]
  test = random_bank(tmp_path, seed=1)
  heads = sibling_parser.parse(parser, test)
  assert attachment_scores.attachment(test, heads)["accuracy"] > 95
  for row in range(len(test)):
    assert reference.is_tree(heads[row])
  again = sibling_parser.train(bank, config)
  np.testing.assert_array_equal(parser.weights, again.weights)


def test_the_mean_is_that_of_all_steps(tmp_path):
  """Weights after each sentence, summed by learning from prefixes."""
  bank = treebank.select(random_bank(tmp_path), np.arange(6))
  config = SiblingConfig(epochs=1, bits=10, loss="margin")
  parser = sibling_parser.train(bank, config)
  order = np.random.default_rng(0).permutation(6)
  total = np.zeros(1 << 10)
  columns = sibling_parser.token_columns(bank)
  for size in range(1, 7):
    weights, late = np.zeros(1 << 10, np.float32), np.zeros(1 << 10)
    sibling_kernel.learn(
      columns, bank.words.offsets, bank.heads, order[:size], weights, late, 0,
      config.aggressiveness,
    )  # fmt: skip
    total += weights
  np.testing.assert_allclose(parser.weights, total / 6, atol=1e-5)
