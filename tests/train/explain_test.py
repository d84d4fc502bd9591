"""Ranks of wanted derivations against the beams themselves."""

import numpy as np
import pytest

from jaxmt.chart import derivation, kbest
from jaxmt.chart.decoder import DecodeConfig
from jaxmt.train import explain, kept, learn_model, wanted
from jaxmt.train.config import ThetaConfig
from tests.reference import tiny_training as tiny

CONFIG = DecodeConfig(search=tiny.SEARCH)


@pytest.fixture(scope="module")
def world():
  model, bitext = tiny.make()
  near = wanted.reference_like(
    model, bitext.source, list(bitext.lines), config=CONFIG
  )
  return model, bitext, near


def test_wanted_derivations_say_the_reference(world):
  model, bitext, near = world
  words = derivation.read_off(model, near.derivations).words
  said = derivation.strings(model, bitext.source, words)
  assert near.exact.sum() > 5
  for row, line in enumerate(bitext.lines):
    assert (said[row] == line) == bool(near.exact[row])
    assert (near.distance[row] == 0) == bool(near.exact[row])


def test_something_near_is_found_where_the_reference_is_not(world):
  model, bitext, _ = world
  lines = list(bitext.lines)
  lines[4] = "the small house is ancient"
  lines[7] = "nothing of this"
  near = wanted.reference_like(model, bitext.source, lines, config=CONFIG)
  assert not near.exact[4] and not near.exact[7]
  words = derivation.read_off(model, near.derivations).words
  said = derivation.strings(model, bitext.source, words)
  assert said[4].startswith("the small house is")
  assert near.distance[4] == 1
  assert near.distance[7] >= 3


def searched(world):
  """The best derivations of a plain search, and their nodes' places."""
  model, bitext, _ = world
  config = ThetaConfig(alpha1=0.0, alpha2=0.0)
  _, forest = tiny.forests(model, bitext, config)
  found = kbest.best(model, bitext.source, forest, size=1)
  below = np.ones(len(found.edges.flat), bool)
  below[found.edges.offsets[:-1]] = False  # the goal
  edges = found.edges.flat[below]
  heads = np.searchsorted(forest.edge_offsets, edges, side="right") - 1
  return forest, kbest.derivations(forest, found), heads


def test_partial_scores_are_those_of_hypotheses(world):
  model, bitext, _ = world
  forest, best, heads = searched(world)
  got = explain.partial_scores(model, bitext.source, best)
  held = kept.keep(forest, forest.score)
  np.testing.assert_allclose(got, held.inside[heads], atol=1e-4)


def test_parts_of_the_best_derivation_have_their_ranks(world):
  model, bitext, _ = world
  forest, best, heads = searched(world)
  got = explain.ranks(model, bitext.source, best, config=CONFIG)
  # Equal up to hypotheses of the same score.
  assert (got.rank <= forest.rank[heads] + 1).all()
  assert (got.rank > forest.rank[heads] - 2).all()
  assert (got.rank <= got.competing).all()
  assert got.rank.max() > 1


def test_story_and_summary_name_what_is_lost(world):
  model, bitext, near = world
  seen = {
    "before": explain.ranks(
      model, bitext.source, near.derivations, config=CONFIG
    )
  }
  rows = explain.story(model, bitext.source, 4, near.derivations, seen, beam=1)
  assert len(rows) == np.diff(near.derivations.offsets)[4]
  assert rows[-1]["source"] == "das kleine haus ist alt"
  assert all("before" in row for row in rows)
  (total,) = explain.summary(near, seen, beam=1)
  lost = np.sum(seen["before"].rank > 1)
  share = 100 * lost / len(near.derivations.rule)
  assert total["parts lost %"] == pytest.approx(share, abs=0.01)
  (wide,) = explain.summary(near, seen, beam=100)
  assert wide["parts lost %"] == 0
  assert wide["kept whole by the beam"] == len(bitext)


def test_moved_rules_are_sorted_by_what_moved(world):
  model, _, _ = world
  before = learn_model.theta_features(model)
  after = before.copy()
  up, down = np.flatnonzero(model.table.counts > 0)[[3, 9]]
  after[up, 3] += 0.5
  after[down, 3] -= 0.5
  rows = explain.moved_rules(model.table, before, after, number=2)
  assert [row["moved"] > 0 for row in rows] == [True, False]
  assert not explain.moved_rules(model.table, before, before, number=3)


def test_search_errors_are_reported_for_each_model(world):
  model, bitext, _ = world
  rows = explain.search_errors(
    {"before": model}, {"before": bitext.source}, sizes=((4, 16),)
  )
  (row,) = rows
  assert row["sentences"] == len(bitext)
  assert 0 <= row["errors %"] <= 100
