"""Stacks, phrase lattices and ranks against all derivations of a sentence."""

import dataclasses
import itertools

import numpy as np
import pytest

from jaxmt.decode import translation_forest
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.phrase import phrase_decoder, stack_forest
from jaxmt.inspection import derivation_views, phrase_views
from jaxmt.inspection.derivation_views import ComparedModels, RuleBook
from tests.reference import phrase_enumeration as enumeration

KINDS = ["word", "hierarchical"]


def searched(seed=0, *, beam=300, kind="word", limit=2):
  case = enumeration.random_case(seed)
  model, source = enumeration.to_model(case, distortion=limit, orientation=kind)
  sizes = search.make_config(beam=beam, pop=beam)
  (found,) = [
    part
    for parts in phrase_decoder.decode(
      model, source, config=DecodeConfig(search=sizes)
    )
    for part in parts
  ]
  return model, found


def by_place(result):
  """The same search, its sentences numbered as they stand in it."""
  return dataclasses.replace(result, rows=np.arange(len(result.rows)))


def every_derivation(model, result):
  """All derivations of the lattices: (sentence, score, phrases)."""
  forest = stack_forest.extract(model, result)
  lists = translation_forest.kbest(model, result.source, forest, size=5000)
  found = translation_forest.derivations(forest, lists)
  for number, place in enumerate(lists.sentence.tolist()):
    nodes = slice(*found.offsets[number : number + 2].tolist())
    columns = (found.begin, found.end, found.rule)
    phrases = zip(*(column[nodes].tolist() for column in columns), strict=True)
    yield place, float(lists.score[number]), list(phrases)


@pytest.mark.parametrize("kind", KINDS)
def test_a_phrase_scores_as_its_best_derivation(kind):
  for seed in range(3):
    model, result = searched(seed, kind=kind)
    forest = stack_forest.extract(model, result)
    best = {}
    for place, score, phrases in every_derivation(model, result):
      own = best.setdefault(place, {})
      for begin, end, rule in phrases:
        text = phrase_views.option_text(model, result.source, rule)
        key = (begin, end, text)
        own[key] = max(own.get(key, -np.inf), score)
    for place, expected in best.items():
      view = phrase_views.lattice_view(
        model, result, forest, place, options=10_000
      )
      top = max(expected.values())
      found = {}
      for begin, end, text, score in view.edges:
        key = (begin, end, text)
        found[key] = max(found.get(key, -np.inf), score)
      assert found.keys() == expected.keys() and not view.hidden
      for key, score in found.items():
        assert score == pytest.approx(expected[key] - top, abs=1e-3)
      spans = sorted(view.edges[n][:2] for n in view.best)
      assert spans[0][0] == 0 and spans[-1][1] == len(view.words)
      assert all(a[1] == b[0] for a, b in itertools.pairwise(spans))


def test_few_phrases_keep_the_best_path():
  model, result = searched()
  forest = stack_forest.extract(model, result)
  whole = phrase_views.lattice_view(model, result, forest, 0)
  few = phrase_views.lattice_view(model, result, forest, 0, options=1)
  assert len(few.edges) == len(few.best) == len(whole.best)
  assert few.hidden == len(whole.edges) - len(few.edges)


@pytest.mark.parametrize("kind", KINDS)
def test_stacks_end_in_the_translations(kind):
  model, result = searched(1, kind=kind)
  every = {}
  for place, _, phrases in every_derivation(model, result):
    texts = [
      phrase_views.option_text(model, result.source, rule)
      for *_, rule in reversed(phrases)  # the last phrase is the root
    ]
    every.setdefault(place, set()).add(" ".join(filter(None, texts)))
  for place, texts in every.items():
    view = phrase_views.stack_view(
      model, result, place, hypotheses=1000, pruned=1000
    )
    assert view.stacks and len(view.cells) == result.chart.length[place]
    for stack, cell in enumerate(view.cells, start=1):
      assert (cell.begin, cell.end) == (0, stack)
      totals = [total for _, total in cell.beam]
      assert totals == sorted(totals, reverse=True)
      assert cell.fill == len(cell.beam) <= cell.scored
    assert {text for text, _ in view.cells[-1].beam} <= texts


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_derivation_is_in_every_stack(kind):
  model, result = searched(2, kind=kind)
  ordered = result.best()
  ranks = phrase_views.ranks_in(
    model, result.source, ordered, [by_place(result)], tolerance=1e-3
  )
  assert ranks.found.all()
  last = ordered.offsets[:-1][np.diff(ordered.offsets) > 0]
  # The end of a sentence may turn the order of the last stack.
  assert (ranks.rank[last] <= ranks.competing[last]).all()
  covered = phrase_views.covered_words(ordered)
  np.testing.assert_array_equal(
    covered[last], np.asarray(result.chart.length)[result.chart.length > 0]
  )


def test_a_narrow_search_loses_what_a_wide_one_finds():
  lost = 0
  for seed in range(12):
    model, wide = searched(seed, limit=-1)
    _, narrow = searched(seed, limit=-1, beam=1)
    best = wide.best()
    same = best.score <= narrow.best().score + 1e-3
    assert (wide.rows == narrow.rows).all()
    ranks = phrase_views.ranks_in(
      model, wide.source, best, [by_place(narrow)], tolerance=1e-3
    )
    row = np.repeat(np.arange(len(best)), np.diff(best.offsets))
    fell = np.bincount(row, ~ranks.found, minlength=len(best)) > 0
    assert fell[~same].all()  # what was not found fell out somewhere
    lost += int(fell.sum())
  assert lost


def test_chains_are_shown_in_the_order_they_are_said():
  model, result = searched(3)
  compared = ComparedModels(names=["one"], models=[model], source=result.source)
  book = RuleBook()
  best = result.best()
  shown = derivation_views.derivation_views(compared, best, book)
  rules = book.views(compared)
  stacks = phrase_views.covered_words(best)
  weights = compared.weights[0]
  for row, view in enumerate(shown):
    if view is None:
      continue
    text = [w for node in view.nodes for w in rules[node.rule].target]
    links = [two for _, two in view.links]
    assert max(links, default=-1) < len(text)
    assert {node.parent for node in view.nodes} == {-1}
    total = sum(weights[name] * value for name, value in view.goal)
    for node in view.nodes:
      for name, value in [*rules[node.rule].systems[0], *node.added]:
        total += weights[name] * value
    assert total == pytest.approx(view.scores[0], abs=1e-2)
    assert view.scores[0] == pytest.approx(best.score[row], abs=1e-2)
    parts = derivation_views.part_views(
      model,
      best,
      phrase_views.Ranks(
        rank=stacks, competing=stacks, gap=stacks * 0.0, found=stacks > 0
      ),
      row,
    )
    assert [part.end for part in parts] == np.cumsum(
      [node.end - node.begin for node in view.nodes]
    ).tolist()
