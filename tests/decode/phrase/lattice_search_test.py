"""Cube pruning over phrase lattices against all paths."""

import itertools

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.phrase import lattice_search, phrase_decoder, stack_forest
from jaxmt.decode.phrase.lattice_search import LatticeOptions
from jaxmt.errors import InputError
from jaxmt.features import frequent_events, sparse
from tests.reference import chart_cases
from tests.reference import phrase_enumeration as enumeration

WIDE = LatticeOptions(ratio=1e-300, edges=10**6, width=5000)


def _events(seed):
  """Some events of the words of the random cases, with weights."""
  rng = np.random.default_rng(seed)
  words = chart_cases.TARGET
  names = [
    f"Ngram:{'_'.join(gram)}" for gram in itertools.product(words, words)
  ]
  names += [f"Ngram:{a}_{b}_{a}" for a, b in itertools.permutations(words, 2)]
  names += [f"Ngram:{word}" for word in words]
  names += [f"Trigger:{a}_{b}" for a, b in itertools.product(words, words)]
  names += [
    f"Linked:{a}_{b}" for a, b in itertools.product(chart_cases.SOURCE, words)
  ]
  return {name: float(rng.normal()) for name in names}


def _lattices(seed, weights=None, *, count=10):
  case = enumeration.random_case(seed, count=count)
  model, source = enumeration.to_model(
    case, distortion=2, weights={**enumeration.WEIGHTS, **(weights or {})}
  )
  config = DecodeConfig(search=search.make_config(beam=300, pop=300))
  (result,) = next(iter(phrase_decoder.decode(model, source, config=config)))
  return case, model, result, stack_forest.extract(model, result)


def _event_score(chain, words, weights):
  """What events add to a derivation of the enumeration, by definition."""
  total = 0.0
  for size in (1, 2, 3):
    for place in range(len(words) - size + 1):
      gram = "_".join(words[place : place + size])
      total += weights.get(f"Ngram:{gram}", 0.0)
  for pair in itertools.combinations(words, 2):
    total += weights.get("Trigger:" + "_".join(pair), 0.0)
  for option, source in chain:
    if not option[5]:  # phrases link their first words
      total += weights.get(f"Linked:{source}_{option[2][0]}", 0.0)
  return total


@pytest.mark.parametrize("seed", range(4))
def test_wide_lists_equal_the_enumeration(seed):
  weights = _events(seed)
  case, model, result, forest = _lattices(seed, weights)
  events = frequent_events.make_table(frequent_events.of_weights(weights))
  lists = lattice_search.kbest(
    model, result.source, forest, events, size=5000, options=WIDE
  )
  texts = translation_forest.strings(model, result.source, lists)
  for place, row in enumerate(result.rows.tolist()):
    sentence = case.sentences[row]
    every = []
    for score, words, chain in enumeration.scored(case, sentence, limit=2):
      marked = [(option, sentence[option[0]]) for option in chain]
      every.append((score + _event_score(marked, words, weights), words))
    every.sort(key=lambda one: -one[0])
    low, high = lists.offsets[place : place + 2]
    assert high - low == len(every)
    np.testing.assert_allclose(
      lists.score[low:high], [one[0] for one in every], atol=1e-3
    )
    assert texts[low].split() == every[0][1]


@pytest.mark.parametrize("width", [2, 30])
def test_scores_are_features_times_weights(width):
  weights = _events(1)
  _, model, result, forest = _lattices(1, weights, count=20)
  events = frequent_events.make_table(frequent_events.of_weights(weights))
  lists = lattice_search.kbest(
    model,
    result.source,
    forest,
    events,
    size=20,
    unique=True,
    options=LatticeOptions(width=width),
  )
  dense = translation_forest.list_features(model, result.source, forest, lists)
  rows, names = lattice_search.event_rows(
    model, result.source, forest, lists, events
  )
  vector = [model.weights.get(name, 0.0) for name in model.feature_names]
  total = dense @ vector + sparse.dot(
    rows, np.array([weights[name] for name in names])
  )
  np.testing.assert_allclose(lists.score, total, atol=1e-3)
  for row in range(len(lists)):
    low, high = lists.offsets[row : row + 2]
    assert np.all(np.diff(lists.score[low:high]) <= 1e-12)
    own = [tuple(lists.words[n].tolist()) for n in range(low, high)]
    assert len(set(own)) == len(own)


def test_without_weights_lists_are_those_of_the_lattice():
  _, model, result, forest = _lattices(2)
  events = frequent_events.make_table(frequent_events.of_weights(_events(2)))
  lists = lattice_search.kbest(
    model, result.source, forest, events, size=40, options=WIDE
  )
  plain = translation_forest.kbest(model, result.source, forest, size=40)
  np.testing.assert_array_equal(lists.offsets, plain.offsets)
  np.testing.assert_allclose(lists.score, plain.score, atol=1e-6)


def test_pruning_keeps_the_best_path_and_few_edges():
  _, model, result, forest = _lattices(3, count=25)
  best = translation_forest.kbest(model, result.source, forest, size=1).score
  sizes = []
  for options in (
    LatticeOptions(ratio=1e-9),
    LatticeOptions(ratio=0.1),
    LatticeOptions(ratio=1e-9, edges=6),
  ):
    small, chosen = lattice_search.prune(forest, options)
    np.testing.assert_array_equal(forest.score[chosen], small.score)
    again = translation_forest.kbest(model, result.source, small, size=1)
    np.testing.assert_allclose(again.score, best)
    sizes.append(small.num_edges)
  assert sizes[1] < sizes[0] and sizes[2] < sizes[0]


def test_charts_have_no_phrase_lattices():
  case = chart_cases.random_case(0, order=2, arity=2)
  model, _ = chart_cases.to_model(case, arity=2)
  assert isinstance(model, models.Model)
  with pytest.raises(InputError, match="phrase-based"):
    lattice_search.check_model(model)
