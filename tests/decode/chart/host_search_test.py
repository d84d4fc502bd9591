"""The host kernel against the array program and other kernels."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.chart import (
  augmentations,
  beam_forest,
  decoder,
  host_search,
)
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.errors import InputError
from jaxmt.features import language_model
from tests import extending_test
from tests.decode.chart import chart_layout_test
from tests.reference import chart_cases as cases
from tests.reference import forests

NARROW = SearchConfig(
  beam=3, pop=9, corners=4, widths=(8, 48), tile=8, forest=True
)


def search(model, source, config, **options):
  batch = [np.arange(len(source))]
  prepared = decoder.prepare(model, source, batch, config=config)
  beams = decoder.run_search(prepared, model, config=config, **options)
  (result,) = decoder.results(batch, prepared, beams)
  return result


def on(backend, config):
  return dataclasses.replace(config, backend=backend)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_strings_are_joined_as_elsewhere(order):
  case = cases.random_case(order, order=order, arity=2, rules=60)
  model, _ = cases.to_model(case, arity=2)
  runs = model.columns.inputs[0].arrays.reshape(-1, order + 2 + (order == 1))
  table = model.lm.columns
  width = runs.shape[1] - 3
  rng = np.random.default_rng(order)
  strings = runs[runs.any(1)]
  for _ in range(200):
    parts = strings[rng.integers(len(strings), size=4)].copy()
    expected, joined = parts[0].copy(), parts[:1].copy()
    for number in range(1, 4):
      gain = language_model.join_packed(expected, parts[number], table, width)
      own = language_model.join_rows(
        joined,
        joined.view(np.float32),
        0,
        parts,
        parts.view(np.float32),
        number,
        table,
      )
      assert own == pytest.approx(gain, abs=1e-6)
      np.testing.assert_array_equal(joined[0], expected)


@pytest.mark.parametrize("labels", [True, False])
def test_wide_beams_give_the_lists_of_the_array_program(labels):
  for seed in range(4):
    case = cases.random_case(seed, order=3, arity=2, longest=5)
    weights = dict(cases.WEIGHTS)
    if not labels:
      weights.update(Match=0.0, Mismatch=0.0)
    model, source = cases.to_model(case, arity=2, weights=weights)
    lists = []
    for config in (forests.CONFIG, forests.HOST):
      result = search(model, source, config)
      forest = beam_forest.extract(model, result)
      lists.append(
        translation_forest.kbest(model, source, forest, size=30, unique=True)
      )
    np.testing.assert_array_equal(lists[0].offsets, lists[1].offsets)
    np.testing.assert_allclose(lists[0].score, lists[1].score, atol=2e-4)


def test_edges_and_derivations_score_what_their_features_say():
  for seed in range(6):
    case = cases.random_case(seed, order=3, arity=2, sentences=6, longest=7)
    model, source = cases.to_model(case, arity=2)
    result = search(model, source, on("host", NARROW))
    names = model.feature_names
    vector = np.array([model.weights.get(name, 0.0) for name in names])
    best = result.best()
    words = derivation.read_off(model, best).words
    values = translation_forest.derivation_features(model, source, best, words)
    np.testing.assert_allclose(values @ vector, best.score, atol=2e-4)
    forest = beam_forest.extract(model, result)
    edges = translation_forest.edge_features(model, source, forest)
    np.testing.assert_allclose(edges @ vector, forest.score, atol=2e-4)
    lists = translation_forest.kbest(model, source, forest, size=1)
    np.testing.assert_allclose(lists.score, best.score, atol=2e-4)


def test_beams_fall_and_hold_every_state_once():
  case = cases.random_case(5, order=3, arity=2, sentences=20, longest=8)
  model, source = cases.to_model(case, arity=2)
  result = search(model, source, on("host", NARROW))
  beams, full = result.beams, 0
  for row in result.matches.place.tolist():
    fill = int(np.sum(beams.score[row] > -1e29))
    full += fill == NARROW.beam
    assert (np.diff(beams.score[row, :fill]) <= 0).all()
    words = np.delete(beams.states[0][row, :fill], -2, axis=1)
    states = np.concatenate([words, beams.states[1][row, :fill]], axis=1)
    assert len(np.unique(states, axis=0)) == fill
    heads = beams.candidates.head[row]
    scored = beams.candidates.score[row]
    for rank in range(fill):
      assert scored[heads == rank].max() == beams.score[row, rank]
  assert full >= 5  # cells in which something was pruned


def test_sparse_features_of_spans_and_sentences_count():
  model, source = chart_layout_test.make_case(3)
  found = chart_layout_test.decode(model, source)
  names = chart_layout_test.everything(model, *found)[3]
  extra = chart_layout_test.random_weights(0, names)
  weighted = models.with_weights(model, cases.WEIGHTS | extra)
  source = models.rescore_source(weighted, source)
  device, host = (
    search(weighted, source, config).best()
    for config in (forests.CONFIG, forests.HOST)
  )
  np.testing.assert_allclose(device.score, host.score, atol=5e-4)
  plain = search(model, source, forests.HOST).best()
  assert np.abs(plain.score - host.score).max() > 0.1


def test_a_threshold_drops_hypotheses():
  case = cases.random_case(5, order=3, arity=2, sentences=20, longest=8)
  model, source = cases.to_model(case, arity=2)
  config = on("host", NARROW)
  whole = search(model, source, config).beams.score
  cut = search(model, source, config, threshold=0.5).beams.score
  count = lambda score: int(np.sum(score > -1e29))
  assert 0 < count(cut) < count(whole)
  best = np.where(cut[:, :1] > -1e29, cut[:, :1], 0.0)
  assert ((cut < -1e29) | (cut >= best - 0.5)).all()


def test_which_models_are_searched_on_the_host():
  case = cases.random_case(3, order=2, arity=2, sentences=2)
  model, source = cases.to_model(case, arity=2)
  extended, _ = cases.to_model(
    case, arity=2, features=[(extending_test.Repeats(), ())]
  )
  assert jax.default_backend() == "cpu"
  assert host_search.on_host(model, "auto")
  assert not host_search.on_host(model, "device")
  assert not host_search.on_host(model, "auto", augmented=True)
  assert not host_search.on_host(extended, "auto")
  with pytest.raises(InputError, match="scores Repeats"):
    host_search.on_host(extended, "host")
  with pytest.raises(InputError, match="none of auto, host"):
    host_search.on_host(model, "gpu")
  config = decoder.DecodeConfig(search=on("host", NARROW))
  with pytest.raises(InputError, match="adds losses"):
    list(
      decoder.decode(
        model,
        source,
        config=config,
        augmentation=augmentations.hope(),
        references=["a", "b"],
      )
    )
