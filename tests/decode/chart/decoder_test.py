"""Padding, batching, threads and devices change nothing."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode.chart import decoder
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.runtime import parallel
from tests.reference import chart_cases as cases

SEARCH = SearchConfig(beam=6, pop=24, corners=8, widths=(8, 48), tile=8)
CONFIG = decoder.DecodeConfig(search=SEARCH, batch_cells=150)


def texts(model, source, config, mesh=None):
  out = [""] * len(source)
  scores = np.zeros(len(source))
  for parts in decoder.decode(model, source, config=config, mesh=mesh):
    for part in parts:
      best = part.best()
      words = derivation.read_off(model, best).words
      scores[part.rows] = best.score
      for row, text in zip(
        part.rows,
        translation_forest.spell(model, part.source, words),
        strict=True,
      ):
        out[row] = text
  return out, scores


def load():
  case = cases.random_case(
    5, order=3, arity=2, sentences=40, longest=8, rules=40
  )
  return cases.to_model(case, arity=2)


@pytest.mark.parametrize("backend", ["device", "host"])
def test_batches_threads_and_devices_change_nothing(backend):
  model, source = load()
  small = dataclasses.replace(
    CONFIG, search=dataclasses.replace(SEARCH, backend=backend)
  )
  want, scores = texts(model, source, small)
  assert len({len(text.split()) for text in want}) > 2
  whole = dataclasses.replace(small, batch_cells=10_000)
  threaded = dataclasses.replace(small, threads=2)
  assert jax.device_count() == 8
  for config, mesh in (
    (whole, None),
    (threaded, None),
    (small, parallel.make_mesh(8)),
    (whole, parallel.make_mesh(3)),
  ):
    got, other = texts(model, source, config, mesh)
    assert got == want
    np.testing.assert_array_equal(other, scores)


def test_every_sentence_is_in_one_batch():
  lengths = np.array([3, 0, 9, 200, 1, 40, 9])
  counts = decoder.count_cells(lengths, 10)
  batches = decoder.make_batches(counts, cells=500, parts=2)
  rows = np.concatenate([part for batch in batches for part in batch])
  assert sorted(rows.tolist()) == list(range(7))


@pytest.mark.parametrize("length", [1, 2, 7, 15])
def test_cells_are_counted(length):
  want = sum(min(10, length - begin) for begin in range(length)) + length + 1
  assert decoder.count_cells(np.array([length]), 10) == want


def test_a_threshold_prunes_and_keeps_the_best():
  model, source = load()
  _, scores = texts(model, source, CONFIG)
  greedy = dataclasses.replace(CONFIG, threshold=1e-6)
  _, pruned = texts(model, source, greedy)
  assert (pruned <= scores + 1e-4).all()
  assert (pruned < scores - 1e-3).any()
