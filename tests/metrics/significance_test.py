"""Significance tests: sacreBLEU's draws, and cases with a known answer."""

import logging

import numpy as np
import pytest
from sacrebleu import significance as sacrebleu_significance
from sacrebleu.metrics import BLEU, CHRF, TER

from jaxmt.metrics import evaluation, named_metrics, significance
from tests.reference import metric_pairs

logging.getLogger("sacrebleu").setLevel(logging.ERROR)
SETTINGS = evaluation.Settings(tokenize="none")


@pytest.fixture(scope="module")
def systems():
  """A baseline, a system hardly better, a clearly better one."""
  first, references = metric_pairs.pairs(1, 300)
  worse, _ = metric_pairs.pairs(2, 300)
  lines = [first, list(first), list(first)]
  for number, (right,) in enumerate(references):
    if number % 9 == 0:
      lines[1][number] = right
    elif number % 18 == 1:
      lines[1][number] = worse[number]
    if number % 3 == 0:
      lines[2][number] = right
  return lines, references


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_equal_sacrebleu_for_the_same_seed(systems, test, monkeypatch):
  lines, references = systems

  def strict(samples, observed):  # as sacreBLEU counts
    return (np.sum(samples > observed + 1e-9) + 1) / (len(samples) + 1)

  monkeypatch.setattr(significance, "_p_value", strict)
  monkeypatch.setenv("SACREBLEU_SEED", "7")
  peers = {
    "BLEU": BLEU(tokenize="none", force=True),
    "TER": TER(),
    "chrF2": CHRF(),
  }
  samples = 200 if test == "bs" else 500
  _, want = sacrebleu_significance.PairedTest(
    [(f"s{n}", system) for n, system in enumerate(lines)],
    peers,
    metric_pairs.streams(references),
    test_type=test,
    n_samples=samples,
    n_ar_confidence=-1,
  )()
  function = {
    "bs": significance.bootstrap,
    "ar": significance.randomization,
  }[test]
  for scored in evaluation.evaluate(references, lines, SETTINGS):
    results = function(
      scored.metric,
      scored.statistics[0],
      scored.statistics[1:],
      samples=samples,
      seed=7,
    )
    for got, theirs in zip(results, want[scored.label][1:], strict=True):
      assert 100 * got.interval.score == pytest.approx(theirs.score, abs=1e-6)
      assert got.p_value == pytest.approx(theirs.p_value, abs=1e-12)
      if test == "bs":  # they sum in float32
        assert 100 * got.interval.mean == pytest.approx(theirs.mean, abs=1e-4)
        assert 100 * got.interval.margin == pytest.approx(theirs.ci, abs=1e-3)
  p_values = [result.p_value for result in want["BLEU"][1:]]
  # Or the comparison would show nothing.
  assert p_values[1] < 0.01 < p_values[0] < 0.99


@pytest.mark.parametrize("name", ["bootstrap", "randomization"])
def test_chunks_change_nothing(systems, name, monkeypatch):
  lines, references = systems
  (scored,) = evaluation.evaluate(
    references, lines, evaluation.Settings(metrics=("bleu",))
  )
  function = getattr(significance, name)
  call = lambda: function(
    scored.metric, scored.statistics[0], scored.statistics[1:], samples=150
  )
  whole = call()
  monkeypatch.setattr(significance, "_CHUNK_CELLS", 64 * 300)
  assert len(list(significance._chunks(150, 300))) == 3
  assert call() == whole


@pytest.mark.parametrize("name", ["bootstrap", "randomization"])
@pytest.mark.parametrize("metric", ["bleu", "ter", "nist"])
def test_identical_systems_are_not_different(systems, name, metric):
  lines, references = systems
  (scored,) = evaluation.evaluate(
    references, lines[:1] * 2, evaluation.Settings(metrics=(metric,))
  )
  (result,) = getattr(significance, name)(
    scored.metric, scored.statistics[0], scored.statistics[1:], samples=64
  )
  assert result.p_value == 1.0
  assert not result.better


def test_ties_count():
  # The systems differ in one sentence only: any swap gives the same gap, which
  # sacreBLEU would not count, calling the difference significant.
  metric = named_metrics.METRICS["wer"]
  first = np.ones((30, 2))
  second = first.copy()
  second[7, 0] = 0
  (result,) = significance.randomization(
    metric, first, second[None], samples=100
  )
  assert result.p_value == 1.0


def test_randomization_of_few_sentences_is_exact():
  # Errors of 4 sentences of one word: all 16 swaps can be listed.
  metric = named_metrics.METRICS["wer"]
  first = np.array([[1.0, 1], [1, 1], [1, 1], [0, 1]])
  second = np.array([[0.0, 1], [0, 1], [0, 1], [0, 1]])
  gaps = [abs(a + b + c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
  exact = np.mean([gap >= 3 for gap in gaps])
  (result,) = significance.randomization(
    metric, first, second[None], samples=20000
  )
  assert result.p_value == pytest.approx(exact, abs=0.01)
  assert result.better
  assert result.interval.score == 0


def test_false_alarms_are_as_rare_as_promised():
  # Two systems of the same quality: p < 0.1 in about one case of ten.
  metric = named_metrics.METRICS["wer"]
  rng = np.random.default_rng(0)
  alarms = 0
  for trial in range(200):
    statistics = np.ones((2, 80, 2))
    statistics[..., 0] = rng.random((2, 80)) < 0.3
    (result,) = significance.randomization(
      metric, statistics[0], statistics[1:], samples=200, seed=trial
    )
    alarms += result.p_value < 0.1
  assert 5 <= alarms <= 32


def test_bootstrap_interval_of_a_proportion():
  # WER of one-word sentences is a proportion: the margin is 1.96 deviations.
  metric = named_metrics.METRICS["wer"]
  statistics = np.ones((400, 2))
  statistics[100:, 0] = 0
  interval = significance.confidence(metric, statistics, samples=4000)
  deviation = np.sqrt(0.25 * 0.75 / 400)
  assert interval.score == 0.25
  assert interval.mean == pytest.approx(0.25, abs=0.002)
  assert interval.margin == pytest.approx(1.96 * deviation, rel=0.05)


def test_seeds():
  metric = named_metrics.METRICS["wer"]
  rng = np.random.default_rng(1)
  statistics = np.ones((2, 50, 2))
  statistics[..., 0] = rng.random((2, 50)) < 0.3
  run = lambda seed: significance.bootstrap(
    metric, statistics[0], statistics[1:], samples=100, seed=seed
  )
  assert run(1) == run(1)
  assert run(1) != run(2)


def test_bad_arguments():
  metric = named_metrics.METRICS["wer"]
  rows = np.ones((3, 2))
  with pytest.raises(ValueError, match="do not fit"):
    significance.bootstrap(metric, rows, rows)
  with pytest.raises(ValueError, match="samples"):
    significance.bootstrap(metric, rows, rows[None], samples=0)
  with pytest.raises(ValueError, match="no sentences"):
    significance.randomization(metric, rows[:0], rows[None, :0])
