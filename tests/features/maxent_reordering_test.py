"""The reordering model: gradients, training, and held-out accuracy."""

import gzip

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from jaxmt.errors import InputError
from jaxmt.features import maxent_reordering as maxent
from jaxmt.grammar.extract import block_pairs
from jaxmt.text import links, vocabulary
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
from tests import util

WORDS = Vocabulary(words=(*SPECIALS, "a", "b", "c", "d"))
FIRST = len(SPECIALS)


def random_examples(rng, size):
  """Inverted where the left block ends with `b`, mostly."""
  words = rng.integers(FIRST, FIRST + 4, (size, 8)).astype(np.int32)
  inverted = (words[:, 1] == FIRST + 1) ^ (rng.random(size) < 0.05)
  return words, inverted, np.arange(size)


def fit(words, inverted, sentence, **options):
  return maxent.train(
    words,
    inverted,
    sentence,
    source_words=WORDS,
    target_words=WORDS,
    options=maxent.MaxEntOptions(bits=6, **options),
  )


def test_gradients():
  rng = np.random.default_rng(0)
  words, inverted, _ = random_examples(rng, 12)
  sizes, bits = (len(WORDS.words),) * 2, 5
  ids = maxent.feature_ids(words, sizes=sizes, bits=bits)
  assert ids.shape == (12, 8 + len(maxent.PAIRS))
  size = maxent.num_parameters(sizes, bits)
  assert 0 < int(ids.min()) and int(ids.max()) < size
  theta = jnp.asarray(rng.normal(size=size), jnp.float32)
  weight = jnp.asarray(rng.random(12), jnp.float32)
  value = lambda t: maxent.loss(t, ids, jnp.asarray(inverted), weight, 0.5)
  check_grads(value, (theta,), order=1, modes=["rev"], atol=1e-2, rtol=1e-2)
  # The gradient by its formula: Σ (p - y) over the parameters of an example.
  odds = np.asarray(maxent.logits(theta, ids), np.float64)
  gap = (1 / (1 + np.exp(-odds)) - ~inverted) * np.asarray(weight)
  want = np.zeros(size)
  np.add.at(want, np.asarray(ids).reshape(-1), np.repeat(gap, ids.shape[1]))
  want[0] += gap.sum()
  total = max(float(weight.sum()), 1.0)
  want = want / total + 0.5 * np.asarray(theta) / total
  np.testing.assert_allclose(jax.grad(value)(theta), want, atol=1e-5)


def test_training_finds_what_decides():
  rng = np.random.default_rng(1)
  model, report = fit(*random_examples(rng, 4000), l2=1.0)
  assert report.held_out == 200 and report.examples == 3800
  assert report.majority < 0.8 < 0.92 < report.accuracy
  words = np.full((2, 8), FIRST, np.int32)
  words[1, 1] = FIRST + 1
  straight, inverted = maxent.log_odds(model, words)
  assert straight > 1 and inverted < -1
  # The same bits again, and a stronger prior pulls to zero.
  again, _ = fit(*random_examples(np.random.default_rng(1), 4000), l2=1.0)
  np.testing.assert_array_equal(again.theta, model.theta)
  pulled, _ = fit(*random_examples(np.random.default_rng(1), 4000), l2=1e4)
  assert np.linalg.norm(pulled.theta) < np.linalg.norm(model.theta) / 2


def test_the_optimum_has_no_gradient():
  rng = np.random.default_rng(2)
  words, inverted, sentence = random_examples(rng, 300)
  model, _ = fit(words, inverted, sentence, held_out=0, l2=2.0, steps=200)
  ids = maxent.feature_ids(words, sizes=model.sizes, bits=model.bits)
  gradient = jax.grad(maxent.loss)(
    jnp.asarray(model.theta), ids, jnp.asarray(inverted), jnp.ones(300), 2.0
  )
  assert float(jnp.abs(gradient).max()) < 1e-3


def test_no_examples():
  model, report = fit(
    np.zeros((0, 8), np.int32), np.zeros(0, bool), np.zeros(0, np.int32)
  )
  assert not model.theta.any() and report.examples == 0


def test_values_come_back_and_damage_is_told():
  model, _ = fit(*random_examples(np.random.default_rng(3), 50))
  values = maxent.to_values(model)
  again = maxent.from_values(values)
  assert again.source_words.words == model.source_words.words
  np.testing.assert_array_equal(again.theta, model.theta)
  short = {**values, "reordering_theta": model.theta[:-1]}
  with pytest.raises(InputError, match="G: reordering_theta is not"):
    maxent.from_values(short, path="G")
  wrong = {**values, "reordering_theta": np.full_like(model.theta, np.nan)}
  with pytest.raises(InputError, match="no number"):
    maxent.from_values(wrong)
  bits = {**values, "reordering_bits": np.array([99], np.int32)}
  with pytest.raises(InputError, match="out of range"):
    maxent.from_values(bits)


def test_held_out_accuracy_on_a_real_corpus():
  folder = util.corpus("enja-trees")

  def read(name):
    with gzip.open(folder / name, "rt") as text:
      return text.read().split("\n")[:6000]

  sides = [read("train.en.gz"), read("train.ja.gz")]
  known = [vocabulary.build([lines]) for lines in sides]
  source, target = (
    vocabulary.encode(words, lines)
    for words, lines in zip(known, sides, strict=True)
  )
  pairs = links.parse_links(read("train.en-ja.align.gz"))
  found = block_pairs.find(source, target, pairs)
  _, report = maxent.train(
    found.words,
    found.inverted,
    found.sentence,
    source_words=known[0],
    target_words=known[1],
    options=maxent.MaxEntOptions(),
  )
  assert report.accuracy > report.majority + 0.1, report


@pytest.mark.parametrize(
  "bits",
  [
    np.array([np.nan]),
    np.array([3.0]),
    np.array([1 << 40]),
    np.array([31], np.int32),
    np.zeros((1, 1), np.int32),
  ],
)
def test_bits_that_are_no_number_of_bits(bits):
  values = {"reordering_theta": np.zeros(9), "reordering_bits": bits}
  with pytest.raises(InputError, match="reordering_bits is out of range"):
    maxent.from_values(values)
