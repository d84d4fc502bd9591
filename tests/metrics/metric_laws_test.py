"""What holds for every metric."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.metrics import base, encoded_text, named_metrics
from jaxmt.text import ragged
from tests.reference import metric_pairs

NAMES = tuple(named_metrics.METRICS)
CANDIDATES = 7


@functools.cache
def lists(unit):
  """K-best lists of 60 sentences with up to three references."""
  first, references = metric_pairs.pairs(21, 60, references=3)
  lines = []
  for number in range(CANDIDATES):
    other, _ = metric_pairs.pairs(21 + number, 60, references=3)
    lines += other if number else first
  known = encoded_text.encode_references(references, unit=unit)
  return known.references, known.encode(lines), np.tile(np.arange(60), 7)


def computed(name):
  metric = named_metrics.METRICS[name]
  references, hypotheses, sentence = lists(metric.unit)
  prepared = metric.prepare(references)
  return metric, prepared, hypotheses, sentence


@pytest.mark.parametrize("name", NAMES)
def test_batch_equals_loop(name):
  metric, prepared, hypotheses, sentence = computed(name)
  rows = metric.statistics(prepared, hypotheses, sentence)
  assert rows.shape == (len(hypotheses), metric.size)
  for row in range(0, len(hypotheses), 13):
    single = metric.statistics(
      prepared,
      ragged.from_rows([hypotheses[row]]),
      sentence[row : row + 1],
    )
    np.testing.assert_array_equal(rows[row], single[0])


@pytest.mark.parametrize("name", NAMES)
def test_threads_and_order_change_nothing(name):
  metric, prepared, hypotheses, sentence = computed(name)
  rows = metric.statistics(prepared, hypotheses, sentence, threads=3)
  one = metric.statistics(prepared, hypotheses, sentence, threads=1)
  np.testing.assert_array_equal(rows, one)
  shuffled = np.random.default_rng(0).permutation(len(sentence))
  other = metric.statistics(
    prepared, ragged.select(hypotheses, shuffled), sentence[shuffled]
  )
  np.testing.assert_array_equal(rows[shuffled], other)


@pytest.mark.parametrize("name", NAMES)
def test_order_of_references_changes_no_score(name):
  metric, prepared, hypotheses, sentence = computed(name)
  references, _, _ = lists(metric.unit)
  backwards = np.concatenate(
    [
      np.arange(references.first[n + 1] - 1, references.first[n] - 1, -1)
      for n in range(len(references))
    ]
  )
  turned = base.make_references(
    ragged.select(references.tokens, backwards), references.counts
  )
  rows = metric.statistics(prepared, hypotheses, sentence)
  other = metric.statistics(metric.prepare(turned), hypotheses, sentence)
  np.testing.assert_allclose(
    metric.sentence_score(rows), metric.sentence_score(other), atol=1e-12
  )


# NIST's information weights count every reference, so there it matters.
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"nist"}))
def test_repeating_a_reference_changes_nothing(name):
  metric, prepared, hypotheses, sentence = computed(name)
  references, _, _ = lists(metric.unit)
  rows = metric.statistics(prepared, hypotheses, sentence)
  twice = np.concatenate(
    [
      np.tile(np.arange(references.first[n], references.first[n + 1]), 2)
      for n in range(len(references))
    ]
  )
  doubled = base.make_references(
    ragged.select(references.tokens, twice), 2 * references.counts
  )
  other = metric.statistics(metric.prepare(doubled), hypotheses, sentence)
  np.testing.assert_allclose(rows, other, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_scores_best(name):
  metric, prepared, hypotheses, sentence = computed(name)
  references, _, _ = lists(metric.unit)
  first = ragged.select(references.tokens, references.first[:-1])
  perfect = metric.statistics(prepared, first, np.arange(len(references)))
  rows = metric.statistics(prepared, hypotheses, sentence)
  sign = 1 if metric.higher_is_better else -1
  best = sign * metric.corpus_score(perfect.sum(0))
  for candidate in range(CANDIDATES):
    chosen = rows[candidate * 60 : (candidate + 1) * 60]
    assert sign * metric.corpus_score(chosen.sum(0)) < best
  if metric.percent and name != "bleu+1-grounded":
    # BLEU of perfect output is 1, an error rate 0; empty sentences have none.
    full = np.flatnonzero(first.lengths > 3)
    scores = metric.sentence_score(perfect[full])
    np.testing.assert_allclose(
      scores, np.full(len(full), float(metric.higher_is_better)), atol=1e-12
    )


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_the_same_on_the_device(name):
  metric, prepared, hypotheses, sentence = computed(name)
  rows = metric.statistics(prepared, hypotheses, sentence)
  rows = rows.reshape(CANDIDATES, 60, -1)
  sums = rows.sum(1)
  for function, values in (
    (metric.corpus_score, sums),
    (metric.sentence_score, rows),
  ):
    want = function(values)
    assert isinstance(want, np.ndarray)
    assert want.shape == values.shape[:-1]
    device = jnp.asarray(values)
    for compiled in (jax.jit(function), jax.jit(jax.vmap(function))):
      got = compiled(device)
      assert got.shape == want.shape
      np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_no_hypotheses_and_bad_numbers(name):
  metric, prepared, hypotheses, _ = computed(name)
  nothing = ragged.from_rows([])
  none = metric.statistics(prepared, nothing, np.zeros(0, np.int64))
  assert none.shape == (0, metric.size)
  one = ragged.select(hypotheses, [0])
  for sentence in ([60], [-1], [0, 0]):
    with pytest.raises(ValueError, match="sentence"):
      metric.statistics(prepared, one, np.array(sentence))


def test_a_sentence_needs_a_reference():
  with pytest.raises(ValueError, match="sentence 1 has no reference"):
    encoded_text.encode_references([["a"], [None]])
  with pytest.raises(ValueError, match="but counts 2"):
    base.make_references(ragged.from_rows([[1]]), np.array([2]))
