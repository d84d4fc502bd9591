"""WER and PER against the recursions that define them."""

import numpy as np
import pytest

from jaxmt.metrics import base, edits, encoded_text, named_metrics
from tests.reference import metric_pairs, slow_metrics


def statistics_of(name, hypotheses, references):
  known = encoded_text.encode_references(references)
  return named_metrics.METRICS[name].statistics(
    known.references, known.encode(hypotheses), np.arange(len(hypotheses))
  )


@pytest.mark.parametrize(
  ("name", "distance"),
  [("wer", slow_metrics.edit_distance), ("per", slow_metrics.bag_distance)],
)
def test_equals_the_definition(name, distance):
  hypotheses, references = metric_pairs.pairs(3, 150, references=3)
  for one, other in metric_pairs.AWKWARD:
    hypotheses.append(one)
    references.append([other])
  got = statistics_of(name, hypotheses, references)
  for row, line, several in zip(got, hypotheses, references, strict=True):
    words, split = line.split(), [other.split() for other in several]
    assert row[0] == min(distance(words, other) for other in split)
    assert row[1] == pytest.approx(np.mean([len(other) for other in split]))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 66, 130])
def test_edit_distance_at_the_word_size(length):
  rng = np.random.default_rng(length)
  for other_length in (0, 1, 63, 64, 65, length):
    one = base.read_only(rng.integers(0, 5, length), np.int32)
    other = base.read_only(rng.integers(0, 5, other_length), np.int32)
    want = slow_metrics.edit_distance(one.tolist(), other.tolist())
    assert edits.edit_distance(one, other) == want
    assert edits.edit_distance(other, one) == want


def test_worked_example():
  hypotheses, references = ["b a c x"], [["a b c"]]
  assert statistics_of("wer", hypotheses, references).tolist() == [[3, 3]]
  assert statistics_of("per", hypotheses, references).tolist() == [[1, 3]]
  assert edits.score(np.array([3.0, 3.0])) == 1.0


def test_empty_references():
  scores = edits.score(np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 2.0]]))
  assert scores.tolist() == [0.0, 1.0, 2.0]


def test_per_ter_wer_are_ordered():
  hypotheses, references = metric_pairs.pairs(11, 400, references=3)
  per, ter, wer = (
    statistics_of(name, hypotheses, references)
    for name in ("per", "ter", "wer")
  )
  assert np.all(per[:, 0] <= wer[:, 0])
  assert np.all(ter[:, 0] <= wer[:, 0])
  assert np.any(per[:, 0] < ter[:, 0])
  assert np.any(ter[:, 0] < wer[:, 0])
