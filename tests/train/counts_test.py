"""Counts are whole numbers: any way to add them up gives the same."""

import dataclasses
import itertools

import numpy as np
import pytest

from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.train import counts, edge_selection, shard_counting
from jaxmt.train.theta_config import FALLBACKS, ThetaConfig
from tests.reference import tiny_training as tiny

CONFIG = ThetaConfig(counts="forest", constraint=1.0)


def make_world():
  """A model, its training text and the forests of one search."""
  model, bitext = tiny.make()
  result, forest = tiny.forests(model, bitext, CONFIG)
  chosen = edge_selection.select(
    model, result.source, forest, bitext.references, CONFIG
  )
  made = counts.contributions(
    forest, chosen.weights, size=len(model.table), copy_rule=model.copy_rule
  )
  return model, bitext, forest, chosen, made


@pytest.fixture(scope="module")
def world():
  return make_world()


def test_contributions_sum_edges_by_rule(world):
  model, bitext, forest, chosen, made = world
  size = len(model.table)
  edges = np.diff(forest.edge_offsets[forest.node_offsets])
  sentence = np.repeat(np.arange(len(forest)), edges)
  for row in range(len(bitext)):
    want = np.zeros(size)
    for edge in np.flatnonzero(sentence == row):
      rule = forest.edges.rule[edge]
      if rule != size:
        want[rule if rule < size else model.copy_rule] += chosen.weights[edge]
    got = np.zeros(size)
    start, stop = made.rules.offsets[row : row + 2]
    got[made.rules.flat[start:stop]] = made.units[start:stop] / COUNT_UNIT
    np.testing.assert_allclose(got, want, atol=1 / COUNT_UNIT)
    assert (np.diff(made.rules.flat[start:stop]) > 0).all()


def test_posterior_counts_sum_to_the_expected_number_of_rules(world):
  model, bitext, forest, chosen, made = world
  below = forest.edges.rule != len(model.table)
  want = np.bincount(
    np.repeat(
      np.arange(len(forest)),
      np.diff(forest.edge_offsets[forest.node_offsets]),
    )[below],
    chosen.weights[below],
    minlength=len(bitext),
  )
  np.testing.assert_allclose(counts.masses(made), want, atol=1e-6)
  assert (want > 1).all()


def test_any_split_of_the_sentences_gives_the_same_total(world):
  model, _, _, _, made = world
  whole = np.zeros(len(model.table), np.int64)
  counts.add(whole, made)
  for cuts in ([0, 3, 10], [0, 1, 2, 5, 9, 10]):
    parts = [
      counts.rows(made, one, two) for one, two in itertools.pairwise(cuts)
    ]
    for order in (parts, parts[::-1]):
      total = np.zeros_like(whole)
      for part in order:
        counts.add(total, part)
      np.testing.assert_array_equal(total, whole)
      again = counts.summed(counts.concatenate(order))
      total[:] = 0
      counts.add(total, again)
      np.testing.assert_array_equal(total, whole)


def test_provenance_contributes_what_extraction_counted(world):
  model, bitext, _, _, _ = world
  given = counts.from_provenance(bitext.provenance, np.arange(len(bitext)))
  total = np.zeros(len(model.table), np.int64)
  counts.add(total, given)
  np.testing.assert_allclose(total / COUNT_UNIT, model.table.counts)


def test_replacing_rows_and_scaling(world):
  _, bitext, _, _, made = world
  rows = np.array([1, 4])
  given = counts.from_provenance(bitext.provenance, rows)
  scaled = counts.scaled(given, np.array([3.0, 7.5]))
  np.testing.assert_allclose(counts.masses(scaled), [3.0, 7.5], atol=1e-6)
  both = counts.replace(made, rows, given)
  masses = counts.masses(made)
  masses[rows] = counts.masses(given)
  np.testing.assert_allclose(counts.masses(both), masses)


@pytest.mark.parametrize("fallback", sorted({*FALLBACKS} - {"default"}))
def test_sentences_without_admissible_derivation_fall_back(world, fallback):
  model, bitext, forest, _, _ = world
  config = dataclasses.replace(CONFIG, constraint=0.0, fallback=fallback)
  lines = list(bitext.lines)
  lines[2], lines[5] = "quite another house", "it"
  references = edge_selection.encode_references(model, bitext.source, lines)
  chosen = edge_selection.select(
    model, bitext.source, forest, references, config
  )
  lost = ~chosen.admissible
  assert lost[[2, 5]].all() and not lost.all()
  rows = np.arange(len(bitext))
  got = shard_counting.count(
    tiny.work(model, bitext, config), rows, forest, chosen
  )
  np.testing.assert_array_equal(got.admissible, ~lost)
  masses = counts.masses(got.made)
  extraction = counts.masses(counts.from_provenance(bitext.provenance, rows))
  rules = chosen.nearest.lengths - 1
  want = {
    "extraction": extraction,
    "scaled": rules,
    "nearest": rules,
    "skip": np.zeros(len(rows)),
  }[fallback]
  np.testing.assert_allclose(masses[lost], want[lost], atol=1e-6)
  np.testing.assert_array_equal(got.values[:, 3], masses)
