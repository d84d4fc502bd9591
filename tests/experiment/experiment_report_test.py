"""Numbers of an experiment's results."""

import math

import pytest

from jaxmt.experiment import experiment_report
from tests.reference import tiny_report


def test_scores_fall_into_precision_and_length():
  outcome = tiny_report.outcome()
  found = experiment_report.results(outcome)
  references = outcome.corpus.value.test_references
  for name, own in outcome.translations.items():
    lines = [line.split() for line in own.value.test_hypothesis]
    # The closest reference, the shorter one of two that are equally close.
    closest = [
      min(
        (len(one.split()) for one in row),
        key=lambda size, line=line: (abs(size - len(line)), size),
      )
      for line, row in zip(lines, references, strict=True)
    ]
    ratio = sum(map(len, lines)) / sum(closest)
    assert ratio > 0
    measures = found["measures"][name]
    assert measures["test_length_ratio"] == pytest.approx(ratio, abs=1e-4)
    penalty = min(1.0, math.exp(1 - 1 / ratio))
    assert measures["test_brevity_penalty"] == pytest.approx(penalty, abs=1e-4)
    assert measures["test_precision"] * penalty == pytest.approx(
      found["systems"][name]["bleu"], rel=1e-3
    )
    # Nothing was written for the tuning part.
    assert measures["tune_length_ratio"] == 0


def test_share_of_changed_translations():
  outcome = tiny_report.outcome()
  found = experiment_report.results(outcome)["measures"]
  first, *others = outcome.translations
  lines = lambda name: outcome.translations[name].value.test_hypothesis
  assert others and "test_changed" not in found[first]
  for name in set(others) & set(found):
    changed = sum(
      a != b for a, b in zip(lines(first), lines(name), strict=True)
    )
    assert found[name]["test_changed"] == 100 * changed / len(lines(first))
  assert len({tuple(lines(name)) for name in outcome.translations}) > 1
