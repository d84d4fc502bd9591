"""NIST against its definition."""

import math

import numpy as np
import pytest

from jaxmt.metrics import encoded_text, nist
from tests.reference import metric_pairs, slow_metrics


def score_of(hypotheses, references, order=5):
  known = encoded_text.encode_references(references)
  metric = nist.metric(order=order)
  rows = metric.statistics(
    metric.prepare(known.references),
    known.encode(hypotheses),
    np.arange(len(hypotheses)),
  )
  return metric.corpus_score(rows.sum(0))


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("references", [1, 3])
def test_equals_the_definition(order, references):
  hypotheses, rows = metric_pairs.pairs(order, 80, references=references)
  want = slow_metrics.nist(
    [line.split() for line in hypotheses],
    [[line.split() for line in row] for row in rows],
    order,
  )
  assert score_of(hypotheses, rows, order) == pytest.approx(want, rel=1e-12)


def test_worked_example():
  # Four words: "a" twice (1 bit each), "b" and "c" once (2 bits each); the
  # bigrams "a b" and "a c" each follow one of two "a" (1 bit).
  references = [["a b"], ["a c"]]
  assert score_of(["a b", "a c"], references, 1) == pytest.approx(6 / 4)
  assert score_of(["a b", "a c"], references, 2) == pytest.approx(6 / 4 + 1)
  # Two words of three are penalised by one half.
  got = score_of(["a b"], [["a b x"]], 1)
  assert got == pytest.approx(0.5 * math.log2(3))


def test_empty_texts():
  assert score_of(["", ""], [["a"], ["b"]]) == 0
  assert score_of(["a"], [[""]]) == 0
  assert score_of([""], [[""]]) == 0
