"""Latent Dirichlet allocation: the bound by loops, its rise, two topics."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import digamma

from jaxmt.errors import InputError
from jaxmt.models import topic_mixtures, topic_vectors
from jaxmt.models.topic_mixtures import MixtureOptions


def slow_bound(gamma, words, counts, alpha, eta):
  """The bound with phi written out, a sum of expectations and entropies."""
  log_share = digamma(gamma) - digamma(gamma.sum(1, keepdims=True))
  log_word = digamma(words) - digamma(words.sum(1, keepdims=True))
  total = 0.0
  for document, row in enumerate(counts):
    for word, count in enumerate(row):
      phi = np.exp(log_share[document] + log_word[:, word])
      phi = phi / phi.sum()
      inner = log_share[document] + log_word[:, word] - np.log(phi)
      total += count * (phi * inner).sum()
  for parameters, logs, prior in (
    (gamma, log_share, alpha),
    (words, log_word, eta),
  ):
    for own, log in zip(parameters, logs, strict=True):
      size = len(own)
      total += math.lgamma(size * prior) - size * math.lgamma(prior)
      total += ((prior - 1) * log).sum()
      total -= math.lgamma(own.sum()) - sum(map(math.lgamma, own))
      total -= ((own - 1) * log).sum()
  return total


def test_the_bound_is_that_of_loops_and_never_falls():
  rng = np.random.default_rng(0)
  counts = rng.poisson(1.0, (5, 7)).astype(np.float32)
  gamma, words = rng.gamma(2.0, 1.0, (5, 3)), rng.gamma(2.0, 1.0, (3, 7))
  found = topic_mixtures.bound(gamma, words, counts, alpha=0.3, eta=0.2)
  want = slow_bound(gamma, words, counts, 0.3, 0.2)
  np.testing.assert_allclose(found, want, rtol=1e-4)
  fitted = topic_mixtures.fit(counts, MixtureOptions(size=3, rounds=20))
  assert (np.diff(fitted.bounds) > -1e-3 * abs(want)).all()
  assert fitted.bounds[-1] > fitted.bounds[0]
  np.testing.assert_allclose(fitted.shares.sum(1), 1.0, rtol=1e-5)
  again = topic_mixtures.fit(counts, MixtureOptions(size=3, rounds=20))
  np.testing.assert_array_equal(again.shares, fitted.shares)


def test_two_topics_are_told_apart():
  rng = np.random.default_rng(1)
  topic = np.arange(20) % 2
  counts = np.zeros((20, 10), np.float32)
  for row, own in enumerate(topic):
    drawn = rng.integers(0, 5, 30) + 5 * own
    counts[row] = np.bincount(drawn, minlength=10)
  found = topic_mixtures.fit(counts, MixtureOptions(size=2, rounds=30))
  first = found.shares[:, 0] > 0.5
  assert any((first == (topic == one)).all() for one in range(2))
  assert found.shares.max(1).min() > 0.9


def test_shares_of_sentences_and_settings():
  shares = np.array([[1, 0], [0, 1], [0.5, 0.5]], np.float32)
  near = np.array([[0, 1], [2, -1], [-1, -1]], np.int32)
  found = topic_mixtures.sentence_shares(near, shares)
  np.testing.assert_allclose(found, [[0.5, 0.5], [0.5, 0.5], [0, 0]])
  for change in ({"size": 0}, {"eta": 0.0}, {"alpha": -1.0}):
    with pytest.raises(InputError, match="option"):
      topic_mixtures.check_options(
        dataclasses.replace(MixtureOptions(), **change)
      )
  options = topic_vectors.TopicOptions(common=1.0)
  index = topic_vectors.index_documents(["a b", "b c"], options)
  counts = topic_mixtures.joint_counts((index, index), (["a b", "c"],) * 2)
  assert counts.shape == (2, 2 * len(index.words)) and counts.sum() == 6
  with pytest.raises(InputError, match="same documents"):
    topic_mixtures.joint_counts((index, index), (["a"], ["a", "b"]))
