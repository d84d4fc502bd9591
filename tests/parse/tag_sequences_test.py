import itertools

import numpy as np

from jaxmt.hypergraph.semirings import LOG, MAX
from jaxmt.parse import tag_sequences

LENGTHS = np.array([4, 1, 3, 0])


def make():
  rng = np.random.default_rng(0)
  draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
  return draw(3), draw(3, 3), draw(4, 4, 3)


def sequences(start, transition, emission, length):
  for tags in itertools.product(range(3), repeat=length):
    score = start[tags[0]] + sum(emission[n, tag] for n, tag in enumerate(tags))
    yield (
      tags,
      score + sum(transition[a, b] for a, b in itertools.pairwise(tags)),
    )


def test_sums_posteriors_and_best_tags_are_those_of_enumeration():
  start, transition, emission = make()
  logs = tag_sequences.total(start, transition, emission, LENGTHS, LOG)
  best = tag_sequences.total(start, transition, emission, LENGTHS, MAX)
  tags = np.asarray(
    tag_sequences.best_tags(start, transition, emission, LENGTHS)
  )
  shares = np.asarray(
    tag_sequences.posteriors(start, transition, emission, LENGTHS)
  )
  for row, length in enumerate(LENGTHS[:3]):
    found = list(sequences(start, transition, emission[row], length))
    scores = np.array([score for _, score in found])
    np.testing.assert_allclose(
      logs[row], np.logaddexp.reduce(scores), rtol=1e-5
    )
    np.testing.assert_allclose(best[row], scores.max(), rtol=1e-5)
    assert tuple(tags[row, :length]) == found[int(np.argmax(scores))][0]
    weights = np.exp(scores - np.logaddexp.reduce(scores))
    wanted = np.zeros((4, 3))
    for (own, _), weight in zip(found, weights, strict=True):
      wanted[np.arange(length), own] += weight
    np.testing.assert_allclose(shares[row], wanted, atol=1e-5)
  assert logs[3] == 0 and not shares[3].any()
