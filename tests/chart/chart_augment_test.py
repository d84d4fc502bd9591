"""Accumulators and augmented search against plain counting and enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.chart import augment, augmentations, decoder, derivation
from jaxmt.chart.augment import Augmentation
from jaxmt.chart.search import SearchConfig
from jaxmt.lm import automaton
from tests.reference import chart_cases as cases
from tests.reference import chart_enumeration as enumeration

CONFIG = SearchConfig(
  beam=32,
  pop=160,
  corners=48,
  taper=((48, 700),),
  widths=(48,),
  tile=8,
  labels=True,
)


def count_matches(words, reference):
  counts = []
  for order in range(1, 5):
    grams = [tuple(words[k : k + order]) for k in range(len(words))]
    want = [tuple(reference[k : k + order]) for k in range(len(reference))]
    counts.append(sum(want.count(g) for g in grams if len(g) == order))
  return counts


def row_of(words, reference):
  """The accumulators of a whole string, computed directly."""
  edge = augment.EDGE
  first = ([*words, -1, -1, -1])[:edge]
  last = ([-1, -1, -1, *words])[-edge:]
  return augment.Accumulators(
    first=jnp.array(first),
    last=jnp.array(last),
    length=jnp.array(len(words)),
    matches=jnp.array(count_matches(words, reference)),
    loss=jnp.float32(0.5 * len(words)),
  )


@pytest.mark.parametrize("seed", range(30))
def test_joining_rows_is_concatenation(seed):
  rng = np.random.default_rng(seed)
  draw = lambda most: rng.integers(0, 3, size=rng.integers(0, most)).tolist()
  one, two, reference = draw(6), draw(6), draw(12)
  padded = jnp.array([*reference, *[-2] * (16 - len(reference))])
  joined = augment.join(
    padded, row_of(one, reference), row_of(two, reference), jnp.array(True)
  )
  want = row_of(one + two, reference)
  for got, value in zip(joined, want, strict=True):
    np.testing.assert_array_equal(got, value)
  np.testing.assert_array_equal(
    augment.pack(augment.unpack(augment.pack(want))), augment.pack(want)
  )


def test_rank_loss_is_the_papers_worked_case():
  loss = augmentations.rank_loss(jnp.arange(6), beam=3, margin=2, cost=2.0)
  np.testing.assert_allclose(loss, [0, 0.5, 1, 1.5, 2, 2])
  step = augmentations.rank_loss(jnp.arange(6), beam=3, margin=0, cost=2.0)
  np.testing.assert_allclose(step, [0, 0, 0, 2, 2, 2])


def test_goodness_is_finite_without_matches_and_for_short_strings():
  lengths = jnp.array([0, 1, 3, 9])
  values = augmentations.log_goodness(lengths, jnp.zeros((4, 4), jnp.int32))
  assert np.isfinite(values).all()


def additive(value, data):
  """An extra score that is a sum, so that merging by state loses nothing."""
  del data
  rates = jnp.array([0.9, 0.5, 0.3, 0.2])
  return (value.matches * rates).sum(-1) - 0.1 * value.length


def search(case, model, source, references, augmentation):
  batch = [np.arange(len(source))]
  prepared = decoder.prepare(model, source, batch, config=CONFIG)
  inputs = augmentations.make_inputs(model, prepared, [references])
  beams = decoder.run_search(
    prepared,
    automaton.to_device(model.lm),
    decoder.search_weights(model),
    inputs,
    config=CONFIG,
    augmentation=augmentation,
  )[0]
  return decoder.Result(
    rows=batch[0],
    source=prepared.sources[0],
    matches=prepared.matches[0],
    layout=prepared.layouts[0],
    chart=prepared.charts[0],
    beams=beams,
  )


ADDITIVE = Augmentation(extra=additive)


@pytest.mark.parametrize("seed", range(25))
def test_augmented_search_equals_enumeration(seed):
  case = cases.random_case(seed, order=4, arity=2, longest=4)
  model, source = cases.to_model(case, arity=2)
  rng = np.random.default_rng(seed)
  references = [
    [("a", "b", "c", "d", "u")[k] for k in rng.integers(0, 5, size=5)]
    for _ in case.sentences
  ]
  result = search(
    case, model, source, [" ".join(r) for r in references], ADDITIVE
  )
  best = result.best()
  words = derivation.read_off(model, best).words
  texts = derivation.strings(model, result.source, words)
  root = np.asarray(result.chart.root)[: len(source)]
  top = result.beams.augmented[root].max(1)
  for row, text in enumerate(texts):
    every = enumeration.derivations(
      case.rules, case.sentences[row], span=case.span
    )

    def augmented(one, reference=references[row]):
      counts = count_matches(one[0], reference)
      extra = np.dot(counts, [0.9, 0.5, 0.3, 0.2]) - 0.1 * len(one[0])
      return cases.total(case, one, enumeration.lm_score) + extra

    scored = [(augmented(one), " ".join(one[0])) for one in every]
    want = max(score for score, _ in scored)
    np.testing.assert_allclose(top[row], want, atol=1e-3)
    assert text in {t for score, t in scored if score > want - 2e-3}


@pytest.mark.parametrize("name", ["loss_augmented", "hope", "fear"])
def test_accumulators_are_those_of_the_chosen_string(name):
  case = cases.random_case(3, order=3, arity=2, longest=4, sentences=6)
  model, source = cases.to_model(case, arity=2)
  references = ["a b c a", "b", "c d u", "a a a", "b c", "u"]
  augmentation = getattr(augmentations, name)()
  result = search(case, model, source, references, augmentation)
  best = result.best()
  words = derivation.read_off(model, best).words
  texts = derivation.strings(model, result.source, words)
  root = np.asarray(result.chart.root)[: len(source)]
  rank = result.beams.augmented[root].argmax(1)
  rows = augment.unpack(jnp.asarray(result.beams.accumulators[root, rank]))
  for row, text in enumerate(texts):
    assert rows.length[row] == len(text.split())
    want = count_matches(text.split(), references[row].split())
    np.testing.assert_array_equal(rows.matches[row], want)
  extra = augmentation.extra(
    rows,
    jax.tree.map(lambda leaf: leaf[: len(source)], inputs_data(references)),
  )
  np.testing.assert_allclose(
    result.beams.augmented[root, rank],
    result.beams.score[root, rank] + extra,
    rtol=1e-5,
  )


def inputs_data(references):
  return {"length": np.array([len(r.split()) for r in references], np.float32)}


def test_hope_is_nearer_the_reference_than_fear():
  case = cases.random_case(11, order=2, arity=2, longest=4, sentences=8)
  model, source = cases.to_model(case, arity=2, pass_through="all")
  references = ["a b c"] * 8
  totals = []
  for augmentation in (
    augmentations.hope(weight=3.0),
    augmentations.fear(weight=3.0),
  ):
    result = search(case, model, source, references, augmentation)
    words = derivation.read_off(model, result.best()).words
    texts = derivation.strings(model, result.source, words)
    totals.append(
      sum(sum(count_matches(t.split(), ["a", "b", "c"])) for t in texts)
    )
  assert totals[0] > totals[1]
