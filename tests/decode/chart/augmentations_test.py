"""Accumulators and augmented search against plain counting and enumeration."""

import collections
import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode.chart import accumulators, augmentations, decoder
from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.decode.chart.search import SearchConfig
from tests.reference import chart_augmented as oracle
from tests.reference import chart_cases as cases
from tests.reference import chart_enumeration as enumeration

CONFIG = SearchConfig(
  beam=32,
  pop=160,
  corners=48,
  taper=((48, 700),),
  widths=(48,),
  tile=8,
)
GOAL: typing.Any = accumulators.Goal  # of host arrays too


def bits(places, lanes):
  words = [0] * lanes
  for place in places:
    words[place // 32] |= 1 << place % 32
  return words


def row_of(words, reference, lanes) -> typing.Any:
  """The accumulators of a whole string, computed directly."""
  make: typing.Any = accumulators.Accumulators
  first, last = oracle.edges(words, reference)
  sets = lambda side: np.array([bits(p, lanes) for p in side], np.uint32)
  return make(
    first=sets(first),
    last=sets(last),
    length=np.array(len(words)),
    matches=np.array(oracle.matches(words, reference)),
    hits=np.array(oracle.hits(words, reference)),
    loss=np.float32(0.5 * len(words)),
  )


def assert_rows_equal(got, want):
  for one, two in zip(got, want, strict=True):
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("seed", range(30))
def test_joining_rows_is_concatenation(seed):
  rng = np.random.default_rng(seed)
  lanes = 1 + seed % 3
  draw = lambda most: rng.integers(0, 2, size=rng.integers(0, most)).tolist()
  one, two, reference = draw(6), draw(6), draw(32 * lanes)
  device = lambda words: jax.tree.map(
    jnp.asarray, row_of(words, reference, lanes)
  )
  want = device(one + two)
  assert_rows_equal(accumulators.join(device(one), device(two)), want)
  assert_rows_equal(accumulators.unpack(accumulators.pack(want)), want)


@pytest.mark.parametrize("length", [6, 40])
def test_inputs_hold_the_accumulators_of_runs(length):
  case = cases.random_case(2, order=2, arity=2, sentences=6, rules=30)
  model, source = cases.to_model(case, arity=2, pass_through="all")
  rng = np.random.default_rng(length)
  words = ("a", "b", "c", "d", "u", "nobody's")
  references = [
    [words[k] for k in rng.integers(0, 6, size=length)] for _ in range(6)
  ]
  prepared = decoder.prepare(model, source, [np.arange(6)], config=CONFIG)
  (inputs,) = decoder.make_inputs(
    model, prepared, [[" ".join(r) for r in references]]
  )
  (matches,) = prepared.matches
  rows = jax.tree.map(np.asarray, accumulators.unpack(jnp.asarray(inputs.runs)))
  lanes = rows.first.shape[-1]
  assert lanes == -(-length // 32)
  seen = 0
  for cell in range(len(matches)):
    sentence = matches.sentence[cell]
    spread = matches.end[cell] - matches.begin[cell]
    np.testing.assert_allclose(
      inputs.share[matches.place[cell]], spread / len(case.sentences[sentence])
    )
    for item in range(matches.offsets[cell], matches.offsets[cell + 1]):
      row = inputs.row[matches.place[cell], item - matches.offsets[cell]]
      for run, text in enumerate(runs_of(model, source, matches.rule[item])):
        want = row_of(text, references[sentence], lanes)._replace(loss=0.0)
        assert_rows_equal([part[row, run] for part in rows], want)
        seen += 1
  assert seen > 30
  np.testing.assert_array_equal(inputs.length[:6], [length] * 6)


def runs_of(model, source, rule):
  """The words between the sites of a rule's target side, run by run."""
  size, names = len(model.table), model.table.target_words.words
  if rule >= size:
    return [[source.words[rule - size - 1]]] if rule > size else []
  symbols = [names[s] if s >= 0 else "|" for s in model.table.target[rule]]
  return [run.split() for run in " ".join(symbols).split("|") if run.strip()]


def test_rank_loss_is_the_papers_worked_case():
  loss = augmentations.rank_loss(jnp.arange(6), beam=3, margin=2, cost=2.0)
  np.testing.assert_allclose(loss, [0, 0.5, 1, 1.5, 2, 2])
  step = augmentations.rank_loss(jnp.arange(6), beam=3, margin=0, cost=2.0)
  np.testing.assert_allclose(step, [0, 0, 0, 2, 2, 2])
  # The paper's own setting: nothing up to 20, all beyond 40.
  ranks = jnp.array([0, 19, 20, 29, 39, 40, 99])
  np.testing.assert_allclose(
    augmentations.rank_loss(ranks), [0, 0, 0.5, 5, 10, 10, 10]
  )


def test_goodness_of_hand_computed_strings():
  good = lambda length, matches: augmentations.log_goodness(
    jnp.array(length), jnp.array(matches)
  )
  # "a b c d" against itself: log 4, every ratio 1.
  np.testing.assert_allclose(good(4, [4, 3, 2, 1]), np.log(4), rtol=1e-6)
  # "a b" against "a b c": the orders 3 and 4 have 0.5 / 0.5.
  np.testing.assert_allclose(good(2, [2, 1, 0, 0]), np.log(2), rtol=1e-6)
  # "a x" against "a a": the a counts twice, no bigram of one.
  want = np.log(2) + 0.25 * (np.log(2.5 / 2.5) + np.log(0.5 / 1.5))
  np.testing.assert_allclose(good(2, [2, 0, 0, 0]), want, rtol=1e-6)
  # No match at all, and no words at all.
  want = np.log(3) + 0.25 * np.log(0.5**3 / (3.5 * 2.5 * 1.5))
  np.testing.assert_allclose(good(3, [0, 0, 0, 0]), want, rtol=1e-6)
  np.testing.assert_allclose(good(0, [0, 0, 0, 0]), 0.0, atol=1e-6)


@pytest.mark.parametrize("name", sorted(augmentations.GOODNESS))
def test_goodness_is_that_of_the_strings(name):
  rng = np.random.default_rng(5)
  draw = lambda: rng.integers(0, 6, size=rng.integers(0, 9)).tolist()
  for _ in range(40):
    words, reference = draw(), draw()
    goal = GOAL(np.float32(max(len(reference), 1)), np.float32(1))
    got = augmentations.GOODNESS[name](row_of(words, reference, 1), goal)
    want = oracle.GOODNESS[name](words, reference)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_error_rates_without_repeated_words():
  """Then PER is exact, and only the reference itself has no edits."""
  rng = np.random.default_rng(6)
  for _ in range(60):
    words = rng.permutation(7)[: rng.integers(1, 8)].tolist()
    reference = rng.permutation(7)[: rng.integers(1, 8)].tolist()
    row = row_of(words, reference, 1)
    goal = GOAL(np.float32(len(reference)), np.float32(1))
    rate = {
      name: -float(augmentations.GOODNESS[name](row, goal))
      for name in ("per", "ter", "wer")
    }
    both = collections.Counter(words) & collections.Counter(reference)
    errors = max(len(words), len(reference)) - both.total()
    np.testing.assert_allclose(rate["per"], errors / len(reference), rtol=1e-6)
    assert rate["per"] <= rate["ter"] <= rate["wer"] + 1e-9
    assert (rate["ter"] == 0) == (words == reference)


def test_unknown_goodness_and_options_are_refused():
  with pytest.raises(ValueError, match="none of bleu"):
    augmentations.hope(goodness="rouge")
  with pytest.raises(ValueError, match="state"):
    augmentations.fear(state="all")
  with pytest.raises(ValueError, match="prune"):
    Augmentation(extra=additive, prune="no")


def additive(value, goal, parameters):
  """An extra score that is a sum, so that merging by state loses nothing."""
  del goal, parameters
  rates = jnp.array([0.9, 0.5, 0.3, 0.2])
  return (value.matches * rates).sum(-1) - 0.1 * value.length


def search(case, model, source, references, augmentation):
  batch = [np.arange(len(source))]
  prepared = decoder.prepare(model, source, batch, config=CONFIG)
  inputs = decoder.make_inputs(model, prepared, [references])
  beams = decoder.run_search(
    prepared,
    model,
    inputs,
    config=CONFIG,
    augmentation=augmentation,
  )
  return decoder.results(batch, prepared, beams)[0]


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
  texts = translation_forest.spell(model, result.source, words)
  root = np.asarray(result.chart.root)[: len(source)]
  top = np.asarray(result.beams.augmented)[root].max(1)
  for row, text in enumerate(texts):
    every = enumeration.derivations(
      case.rules, case.sentences[row], span=case.span
    )

    def augmented(one, reference=references[row]):
      counts = oracle.matches(one[0], reference)
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
  texts = translation_forest.spell(model, result.source, words)
  root = np.asarray(result.chart.root)[: len(source)]
  augmented = np.asarray(result.beams.augmented)[root]
  rank = augmented.argmax(1)
  rows = accumulators.unpack(
    jnp.asarray(np.asarray(result.beams.states[-1])[root, rank])
  )
  for row, text in enumerate(texts):
    assert rows.length[row] == len(text.split())
    want = oracle.matches(text.split(), references[row].split())
    np.testing.assert_array_equal(rows.matches[row], want)
  lengths = np.array([len(r.split()) for r in references], np.float32)
  extra = augmentation.extra(
    rows, GOAL(lengths, np.float32(1)), augmentation.parameters
  )
  np.testing.assert_allclose(
    augmented.max(1),
    result.beams.score[root, rank] + extra,
    rtol=1e-5,
  )


def test_hope_is_nearer_the_reference_than_fear():
  case = cases.random_case(11, order=3, arity=2, longest=4, sentences=8)
  model, source = cases.to_model(case, arity=2, pass_through="all")
  references = ["a b c"] * 8
  totals = []
  for augmentation in (
    augmentations.hope(weight=20.0),
    augmentations.fear(weight=20.0),
  ):
    result = search(case, model, source, references, augmentation)
    words = derivation.read_off(model, result.best()).words
    texts = translation_forest.spell(model, result.source, words)
    totals.append(
      sum(sum(oracle.matches(t.split(), ["a", "b", "c"])) for t in texts)
    )
  assert totals[0] > totals[1]
