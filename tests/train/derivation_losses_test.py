"""The losses against the paper's cases, plain counting, and the chart's."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.decode.chart import augmentations
from jaxmt.text.ragged import from_rows
from jaxmt.train import derivation_losses


def test_beam_loss_is_that_of_figure_4():
  values = derivation_losses.beam_loss(np.arange(1, 7), k=3, margin=2, cost=2.0)
  np.testing.assert_allclose(values, [0, 0.5, 1, 1.5, 2, 2])


def test_beam_loss_without_margin_is_a_step():
  values = derivation_losses.beam_loss(np.arange(1, 7), k=3, margin=0, cost=2.0)
  np.testing.assert_allclose(values, [0, 0, 0, 2, 2, 2])


@pytest.mark.parametrize("margin", [0, 1, 10, 40])
def test_beam_loss_equals_equation_10_and_the_search(margin):
  ranks = np.arange(1, 101)
  want = []
  for rank in ranks.tolist():
    if rank > 30 + margin:
      want.append(10.0)
    elif rank > 30 - margin:
      want.append((rank - (30 - margin)) * 10.0 / (2 * margin))
    else:
      want.append(0.0)
  got = derivation_losses.beam_loss(ranks, k=30, margin=margin, cost=10.0)
  np.testing.assert_allclose(got, want)
  chart = augmentations.rank_loss(
    jnp.arange(100), beam=30, margin=margin, cost=10.0
  )
  np.testing.assert_allclose(got, chart, rtol=1e-6, atol=1e-6)


def test_derivation_beam_loss_sums_over_spans():
  ranks = from_rows([[1, 4, 6], [], [2]])
  got = derivation_losses.derivation_beam_loss(ranks, k=3, margin=2, cost=2.0)
  np.testing.assert_allclose(got, [0 + 1.5 + 2, 0, 0.5])


def counted(words, reference):
  out = []
  for order in range(1, 5):
    grams = [tuple(words[k : k + order]) for k in range(len(words) - order + 1)]
    want = [
      tuple(reference[k : k + order]) for k in range(len(reference) - order + 1)
    ]
    out.append(sum(want.count(gram) for gram in grams))
  return out


def strings(seed, number=40):
  rng = np.random.default_rng(seed)
  draw = lambda: rng.integers(0, 4, size=rng.integers(0, 9)).tolist()
  references = [draw() for _ in range(7)]
  sentence = rng.integers(0, 7, size=number)
  rows = [draw() for _ in range(number - 7)] + references
  sentence[-7:] = np.arange(7)
  return rows, references, sentence


@pytest.mark.parametrize("seed", range(3))
def test_matches_and_goodness_equal_plain_counting_and_the_chart(seed):
  rows, references, sentence = strings(seed)
  got = derivation_losses.ngram_matches(
    from_rows(rows), from_rows(references), sentence
  )
  want = [
    counted(r, references[s]) for r, s in zip(rows, sentence, strict=True)
  ]
  np.testing.assert_array_equal(got, want)
  loss = derivation_losses.goodness("bleu")(
    from_rows(rows), from_rows(references), sentence
  )
  chart = augmentations.log_goodness(
    jnp.array([len(row) for row in rows]), jnp.array(want)
  )
  np.testing.assert_allclose(loss, -np.asarray(chart), rtol=1e-5, atol=1e-5)


def test_goodness_of_hand_counted_strings():
  # |t| = 3, reference a b a c: a occurs twice there, so a b c matches
  # 2 + 1 + 1 unigrams, "a b" once, no trigram; s = 1/2 on both sides.
  got = derivation_losses.goodness("bleu")(
    from_rows([[0, 1, 2]]), from_rows([[0, 1, 0, 2]]), np.zeros(1, int)
  )
  logs = [4.5 / 3.5, 1.5 / 2.5, 0.5 / 1.5, 0.5 / 0.5]
  want = -math.log(3) - sum(map(math.log, logs)) / 4
  np.testing.assert_allclose(got, [want])
  # Unsmoothed it is equation (11) as printed.
  full = derivation_losses.bleu_loss(
    np.array([5]), np.array([[5, 4, 3, 2]]), smoothing=0
  )
  np.testing.assert_allclose(full, [-math.log(5)])


def test_goodness_is_finite_for_empty_short_and_foreign_strings():
  rows = from_rows([[], [9], [9, 9, 9, 9, 9]])
  values = derivation_losses.goodness("bleu")(
    rows, from_rows([[1, 2]]), np.zeros(3, int)
  )
  assert np.isfinite(values).all()


@pytest.mark.parametrize("name", ["ter", "wer", "per", "nist", "gtm", "bleu+1"])
def test_any_sentence_metric_is_a_goodness(name):
  _, references, _ = strings(5)
  own = derivation_losses.goodness(name)(
    from_rows(references), from_rows(references), np.arange(7)
  )
  other = derivation_losses.goodness(name)(
    from_rows([[8]] * 7), from_rows(references), np.arange(7)
  )
  filled = np.array([len(row) > 0 for row in references])
  assert (own[filled] < other[filled]).all()
  if name in ("ter", "wer", "per"):
    np.testing.assert_allclose(own[filled], 0.0)


@pytest.mark.parametrize("name", ["chrf", "nonsense"])
def test_unfit_metrics_are_refused(name):
  with pytest.raises(ValueError, match="goodness"):
    derivation_losses.goodness(name)


def test_a_string_is_admissible_up_to_a_quarter_of_the_reference():
  references = from_rows([[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3]])
  rows = from_rows(
    [
      [1, 2, 3, 4, 5, 6, 7, 8],
      [1, 2, 9, 4, 5, 6, 7],  # one substituted, one missing: 2 of 8
      [1, 2, 9, 4, 5, 6],
      [1, 2, 9],  # 1 of 3
      [],
    ]
  )
  got = derivation_losses.admissible(
    rows, references, np.array([0, 0, 0, 1, 1]), share=0.25
  )
  assert got.tolist() == [True, True, False, False, False]
