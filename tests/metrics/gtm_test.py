"""GTM against its definition."""

import random

import numpy as np
import pytest

from jaxmt.metrics import encoded_text, gtm
from tests.reference import metric_pairs, slow_metrics


def statistics_of(hypotheses, references, exponent):
  known = encoded_text.encode_references(references)
  return gtm.metric(exponent=exponent).statistics(
    known.references, known.encode(hypotheses), np.arange(len(hypotheses))
  )


@pytest.mark.parametrize("exponent", [1.0, 1.2, 2.0])
def test_equals_the_greedy_definition(exponent):
  hypotheses, references = metric_pairs.pairs(4, 150, references=3)
  for one, other in metric_pairs.AWKWARD:
    hypotheses.append(one)
    references.append([other])
  got = statistics_of(hypotheses, references, exponent)
  for row, line, several in zip(got, hypotheses, references, strict=True):
    words, best = line.split(), (-1.0,)
    for other in several:
      other = other.split()
      size = slow_metrics.match_size(words, other, exponent)
      value = 2 * size / max(1, len(words) + len(other))
      if value > best[0] + 1e-12:
        best = value, size, len(words), len(other)
    np.testing.assert_allclose(row, best[1:], rtol=1e-12)


def test_exponent_one_is_the_clipped_word_count():
  hypotheses, references = metric_pairs.pairs(6, 200)
  rows = statistics_of(hypotheses, references, 1.0)
  for row, line, (other,) in zip(rows, hypotheses, references, strict=True):
    words, other = line.split(), other.split()
    matches = max(len(words), len(other)) - slow_metrics.bag_distance(
      words, other
    )
    assert row[0] == pytest.approx(matches)


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_greedy_is_close_to_the_best_matching(exponent):
  rng = random.Random(0)
  ratios = []
  for _ in range(60):
    words = [rng.choice("abc") for _ in range(rng.randint(1, 6))]
    other = [rng.choice("abc") for _ in range(rng.randint(1, 6))]
    line, reference = " ".join(words), " ".join(other)
    size = statistics_of([line], [[reference]], exponent)[0, 0]
    best = slow_metrics.best_matching(words, other, exponent)
    assert size <= best + 1e-9
    if best:
      ratios.append(size / best)
  assert np.mean(ratios) > 0.95
  if exponent == 1:
    assert min(ratios) == pytest.approx(1.0)


def test_worked_example():
  # Runs "a b" and "c" of the hypothesis: sqrt(2^2 + 1^2).
  row = statistics_of(["c a b"], [["a b x c"]], 2.0)[0]
  np.testing.assert_allclose(row, [5**0.5, 3, 4])
  assert gtm.score(row) == pytest.approx(2 * 5**0.5 / 7)


def test_exponent_below_one_is_refused():
  with pytest.raises(ValueError, match="exponent"):
    gtm.metric(exponent=0.5)
