"""Ranks of wanted derivations against the beams themselves."""

import numpy as np
import pytest

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import Kind
from jaxmt.train import explain, reference_derivations, theta_features
from jaxmt.train.theta_config import ThetaConfig
from tests.reference import tiny_training as tiny

CONFIG = DecodeConfig(search=tiny.SEARCH)


@pytest.fixture(scope="module")
def world():
  model, bitext = tiny.make()
  near = reference_derivations.reference_like(
    model, bitext.source, list(bitext.lines), config=CONFIG
  )
  return model, bitext, near


def test_wanted_derivations_say_the_reference(world):
  model, bitext, near = world
  words = derivation.read_off(model, near.derivations).words
  said = translation_forest.spell(model, bitext.source, words)
  assert near.exact.sum() > 5
  for row, line in enumerate(bitext.lines):
    assert (said[row] == line) == bool(near.exact[row])
    assert (near.distance[row] == 0) == bool(near.exact[row])


def test_something_near_is_found_where_the_reference_is_not(world):
  model, bitext, _ = world
  lines = list(bitext.lines)
  lines[4] = "the small house is ancient"
  lines[7] = "nothing of this"
  near = reference_derivations.reference_like(
    model, bitext.source, lines, config=CONFIG
  )
  assert not near.exact[4] and not near.exact[7]
  words = derivation.read_off(model, near.derivations).words
  said = translation_forest.spell(model, bitext.source, words)
  assert said[4].startswith("the small house is")
  assert near.distance[4] == 1
  assert near.distance[7] >= 3


def searched(world):
  """The best derivations of a plain search, and their nodes' places."""
  model, bitext, _ = world
  config = ThetaConfig(alpha1=0.0, alpha2=0.0)
  _, forest = tiny.forests(model, bitext, config)
  found = translation_forest.kbest(model, bitext.source, forest, size=1)
  below = np.ones(len(found.edges.flat), bool)
  below[found.edges.offsets[:-1]] = False  # the goal
  edges = found.edges.flat[below]
  heads = np.searchsorted(forest.edge_offsets, edges, side="right") - 1
  return forest, translation_forest.derivations(forest, found), heads


def test_parts_of_the_best_derivation_have_their_ranks(world):
  model, bitext, _ = world
  forest, best, heads = searched(world)
  got = explain.ranks(model, bitext.source, best, config=CONFIG)
  # Equal up to hypotheses of the same score.
  assert (got.rank <= forest.nodes.rank[heads] + 1).all()
  assert (got.rank > forest.nodes.rank[heads] - 2).all()
  assert (got.rank <= got.competing).all()
  assert got.rank.max() > 1
  assert got.found.all() and (got.gap >= -1e-3).all()


def test_parts_the_search_has_no_cell_for_are_lost(world):
  """A narrower model has no cells for the longer parts."""
  model, bitext, near = world
  narrow = models.make_model(
    model.table,
    tiny.language_model(),
    weights=model.weights,
    limits=MatchConfig(span=2, targets=20, applications=32),
  )
  source = models.make_source(narrow, [pair[0] for pair in tiny.PAIRS])
  got = explain.ranks(narrow, source, near.derivations, config=CONFIG)
  derivations = near.derivations
  size = derivations.end - derivations.begin
  glue = np.isin(
    derivations.rule, np.flatnonzero(model.table.kind == Kind.GLUE)
  )
  long = (size > 2) & ~glue
  assert long.sum() > 3
  assert (got.competing[long] == 0).all() and np.isnan(got.gap[long]).all()
  assert got.lost(100)[long].all()
  seen = {"narrow": got}
  (total,) = explain.summary(near, seen, beam=100)
  assert total["parts lost %"] >= round(100 * float(long.mean()), 2)
  assert total["at the best %"] <= round(100 * float(np.mean(~long)), 2)
  rows = [
    row
    for sentence in range(len(bitext))
    for row in explain.story(
      model, bitext.source, sentence, derivations, seen, beam=100
    )
  ]
  assert sum("> 0 (lost)" in row["narrow"] for row in rows) >= long.sum()


def test_story_and_summary_agree_on_what_is_lost(world):
  model, bitext, near = world
  number = len(near.derivations.rule)
  rank, competing = np.ones(number, np.int64), np.full(number, 9)
  rank[:4], competing[:4] = (3, 7, 1, 1), (9, 6, 0, 9)
  got = explain.Ranks(
    rank=rank,
    competing=competing,
    gap=np.zeros(number),
    found=np.arange(number) > 3,  # and the first
  )
  got.found[0] = True
  seen = {"x": got}
  assert got.lost(5)[:5].tolist() == [False, True, True, True, False]
  assert got.lost(2)[:5].tolist() == [True, True, True, True, False]
  for beam in (2, 5):
    shown = [
      row["x"]
      for sentence in range(len(bitext))
      for row in explain.story(
        model, bitext.source, sentence, near.derivations, seen, beam=beam
      )
    ]
    lost = sum("lost" in text for text in shown)
    assert lost == got.lost(beam).sum()
    assert {"> 6 (lost)", "> 0 (lost)", "not found (lost)"} < set(shown)
    (total,) = explain.summary(near, seen, beam=beam)
    assert total["parts lost %"] == round(100 * lost / number, 2)
    assert total["at the best %"] == round(100 * (number - 4) / number, 2)
    assert total["mean rank"] == round((number - 4 + 3) / (number - 3), 2)


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
  # "the house" is merged into the better "that house": the only one lost.
  (wide,) = explain.summary(near, seen, beam=100)
  share = 100 / len(near.derivations.rule)
  assert wide["parts lost %"] == pytest.approx(share, abs=0.01)
  assert wide["kept whole by the beam"] == len(bitext) - 1


def test_moved_rules_are_sorted_by_what_moved(world):
  model, _, _ = world
  before = theta_features.theta_features(model)
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
  (wide,) = explain.search_errors(
    {"before": model},
    {"before": bitext.source},
    sizes=((4, 16),),
    wide=(200, 2000),  # nothing of so little text is lost
  )
  assert wide == row
  (none,) = explain.search_errors(
    {"before": model},
    {"before": bitext.source},
    sizes=((1, 4),),
    wide=(1, 4),
  )
  (some,) = explain.search_errors(
    {"before": model},
    {"before": bitext.source},
    sizes=((1, 4),),
    wide=(200, 2000),
  )
  assert none["errors %"] == 0 < some["errors %"]
