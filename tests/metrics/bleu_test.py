"""BLEU: worked examples, smoothings, arrays on every backend."""

import itertools
import math
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from jaxmt.metrics import bleu, encoded_text, named_metrics
from tests.reference import metric_pairs, slow_metrics

REFERENCE = "the chinese delegation will fully support the presidency ."


def statistics_of(hypotheses, references, **options):
  known = encoded_text.encode_references(references)
  return bleu.statistics(
    known.references,
    known.encode(hypotheses),
    np.arange(len(hypotheses)),
    **options,
  )


@pytest.mark.parametrize(
  ("hypothesis", "expected"),
  [
    ("the chinese delegation will fully support the chair .", 0.780116),
    ("the chinese delegation", math.exp(1 - 9 / 3)),
    ("the delegation of china will support the chair in full .", 0.182196),
    (REFERENCE, 1.0),
    ("no word in common", 0.0),
    ("", 0.0),
  ],
)
def test_plus_one_worked_examples(hypothesis, expected):
  row = statistics_of([hypothesis], [[REFERENCE]])
  plus_one = named_metrics.METRICS["bleu+1"].sentence_score(row)[0]
  assert plus_one == pytest.approx(expected, abs=5e-7)


def test_statistics_of_papinenis_example():
  row = statistics_of(
    ["the the the the the the the"],
    [["the cat is on the mat", "there is a cat on the mat"]],
  )[0]
  assert row.tolist() == [2, 0, 0, 0, 7, 6, 5, 4, 7]
  assert row.dtype == np.int32


@pytest.mark.parametrize(
  ("rule", "length"), [("closest", 4), ("shortest", 2), ("average", 13 / 3)]
)
def test_reference_lengths(rule, length):
  references = [["a b", "a b c d", "a b c d e f g"]]
  row = statistics_of(["v w x y z"], references, reference_length=rule)[0]
  assert row[-1] == pytest.approx(length)
  # A tie between 3 and 5 words goes to the shorter reference, in any order.
  for tied in (["a b c", "a b c d e"], ["a b c d e", "a b c"]):
    assert statistics_of(["w x y z"], [tied])[0, -1] == 3


def brute_statistics(hypothesis, references, order):
  words, refs = hypothesis.split(), [line.split() for line in references]
  matches, totals = [], []
  for n in range(1, order + 1):
    most = Counter()
    for reference in refs:
      most |= slow_metrics.ngrams(reference, n)
    matches.append(sum((slow_metrics.ngrams(words, n) & most).values()))
    totals.append(max(0, len(words) - n + 1))
  closest = min((abs(len(r) - len(words)), len(r)) for r in refs)[1]
  return [*matches, *totals, closest]


@pytest.mark.parametrize("order", [1, 2, 4, 7])
def test_statistics_equal_counters(order):
  hypotheses, references = metric_pairs.pairs(order, 200, references=3)
  got = statistics_of(hypotheses, references, order=order)
  want = [
    brute_statistics(hypothesis, row, order)
    for hypothesis, row in zip(hypotheses, references, strict=True)
  ]
  np.testing.assert_array_equal(got, want)


SMOOTHINGS = [
  ("none", None),
  ("floor", None),
  ("floor", 0.01),
  ("add-k", None),
  ("add-k", 0.3),
  ("exp", None),
]


@pytest.mark.parametrize("order", [1, 2, 4, 6])
@pytest.mark.parametrize("effective", [False, True])
@pytest.mark.parametrize(("method", "value"), SMOOTHINGS)
def test_score_equals_sacrebleu_for_any_counts(order, effective, method, value):
  rng = np.random.default_rng(order)
  smoothing = bleu.Smoothing(
    method=method, value=value, effective_order=effective
  )
  for _ in range(120):
    length = rng.integers(0, 9)
    totals = np.maximum(0, length - np.arange(order))
    matches = rng.integers(0, totals + 1)
    matches = np.minimum.accumulate(matches)
    reference = rng.integers(0, 9)
    row = np.array([*matches, *totals, reference])
    want = BLEU.compute_bleu(
      matches.tolist(), totals.tolist(), int(length), int(reference),
      smooth_method=method, smooth_value=value, effective_order=effective,
      max_ngram_order=order,
    ).score  # fmt: skip
    got = 100 * bleu.score(row, smoothing=smoothing, order=order)
    assert got == pytest.approx(want, abs=1e-9)


ALL_SMOOTHINGS = [
  bleu.NONE,
  bleu.SENTENCE,
  bleu.PLUS_ONE,
  bleu.GROUNDED,
  bleu.Smoothing(method="floor"),
  bleu.Smoothing(method="add-k", clipped=False, length_scale=1.1),
]


@pytest.mark.parametrize("smoothing", ALL_SMOOTHINGS)
def test_jit_and_vmap_equal_numpy(smoothing):
  hypotheses, references = metric_pairs.pairs(5, 60, references=2)
  rows = statistics_of(hypotheses, references)
  rows = rows.reshape(6, 10, -1)
  score = lambda stats: bleu.score(stats, smoothing=smoothing)
  want = score(rows)
  device = jnp.asarray(rows)
  assert device.dtype == jnp.int32
  for got in (
    jax.jit(score)(device),
    jax.jit(jax.vmap(jax.vmap(score)))(device),
    jax.jit(score)(device.astype(jnp.float32)),
  ):
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_eager_equals_numpy():
  rows = np.array([[5, 3, 1, 0, 6, 5, 4, 3, 7], [6, 5, 4, 3, 6, 5, 4, 3, 6]])
  got = bleu.score(jnp.asarray(rows))
  assert isinstance(got, jax.Array)
  np.testing.assert_allclose(got, bleu.score(rows), rtol=1e-6)


@pytest.mark.parametrize("smoothing", ALL_SMOOTHINGS)
def test_gradients_are_finite_everywhere(smoothing):
  rows = np.zeros((4, 9), np.float32)
  rows[1] = [3, 0, 0, 0, 3, 2, 1, 0, 9]
  rows[2] = [3, 2, 1, 0, 3, 2, 1, 0, 3]
  rows[3] = [9, 8, 7, 6, 9, 8, 7, 6, 9]
  score = lambda row: bleu.score(row, smoothing=smoothing)
  grad = jax.jit(jax.vmap(jax.grad(score)))
  assert np.all(np.isfinite(grad(jnp.asarray(rows))))


def test_gradient_equals_finite_differences():
  row = np.array([70.0, 45, 30, 20, 100, 95, 90, 85, 110])
  score = lambda stats: bleu.score(stats, smoothing=bleu.NONE)
  got = jax.jit(jax.grad(score))(jnp.asarray(row))
  for place in range(9):
    step = np.zeros(9)
    step[place] = 1e-4
    slope = (
      bleu.score(row + step, smoothing=bleu.NONE)
      - bleu.score(row - step, smoothing=bleu.NONE)
    ) / 2e-4
    assert got[place] == pytest.approx(slope, rel=1e-3, abs=1e-7)


def test_nakov_variants_by_hand():
  # 3 of 4 unigrams and 1 of 3 bigrams match, the reference has 6 words.
  row = np.array([3, 1, 4, 3, 6])
  option = lambda **given: bleu.score(
    row, order=2, smoothing=bleu.Smoothing(method="add-k", **given)
  )
  precision = math.sqrt(3 / 4 * 2 / 4)
  assert option() == pytest.approx(precision * math.exp(1 - 6 / 4))
  assert option(length_shift=1) == pytest.approx(
    precision * math.exp(1 - 7 / 4)
  )
  assert option(length_scale=0.5) == pytest.approx(precision)
  assert option(length_scale=0.5, clipped=False) == pytest.approx(
    precision * math.exp(1 - 3 / 4)
  )
  everywhere = math.sqrt(4 / 5 * 2 / 4)
  ground = math.sqrt(1 / 5 * 1 / 4)
  got = bleu.score(row, order=2, smoothing=bleu.GROUNDED)
  assert got == pytest.approx((everywhere - ground) * math.exp(1 - 7 / 4))


def test_grounded_is_zero_without_matches_and_rises_with_them():
  rows = np.array([[m, 0, 0, 0, 5, 4, 3, 2, 5] for m in range(6)])
  scores = bleu.score(rows, smoothing=bleu.GROUNDED)
  assert scores[0] == 0
  assert np.all(np.diff(scores) > 0)


def test_more_matches_never_lower_the_score():
  for a, b, c in itertools.product(range(1, 5), range(4), range(3)):
    row = np.array([a, b, c, 0, 5, 4, 3, 2, 6])
    more = row + np.array([1, 0, 0, 0, 0, 0, 0, 0, 0])
    for smoothing in (bleu.NONE, bleu.PLUS_ONE, bleu.GROUNDED):
      before, after = bleu.score(np.stack([row, more]), smoothing=smoothing)
      assert after >= before


def test_bad_settings_are_refused():
  with pytest.raises(ValueError, match="smoothing 'laplace'"):
    bleu.Smoothing(method="laplace")
  with pytest.raises(ValueError, match="order"):
    bleu.metric(order=0)
  with pytest.raises(ValueError, match="longest"):
    bleu.metric(reference_length="longest")


def test_compiled_bleu_is_the_metric():
  rng = np.random.default_rng(0)
  totals = np.sort(rng.integers(5, 400, (200, 4)))[:, ::-1]
  matches = (totals * rng.uniform(0, 1, totals.shape)).astype(int)
  reference = rng.integers(1, 500, (200, 1))
  sums = np.concatenate([matches, totals, reference], 1).astype(np.float64)
  some = (matches > 0).all(1)  # the metric smooths, the kernel gives 0
  np.testing.assert_allclose(
    bleu.bleu_rows(sums[some]),
    named_metrics.METRICS["bleu"].corpus_score(sums[some]),
    rtol=1e-12,
  )
  assert (bleu.bleu_rows(sums[~some]) == 0).all()
