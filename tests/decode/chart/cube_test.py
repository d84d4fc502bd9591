"""Which candidates are tried: rank tuples, and what they reach."""

import itertools
import math

import numpy as np
import pytest

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.chart import cube, decoder, exact, search
from jaxmt.grammar import table as tables
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import Kind
from jaxmt.text.ragged import from_rows
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
from tests.reference import chart_cases as cases

WORDS = 45  # translations of one word
WANTED = 40  # the one that the language model asks for


def as_set(tuples):
  return set(map(tuple, tuples.tolist()))


@pytest.mark.parametrize(("arity", "beam"), [(1, 7), (2, 6), (3, 4), (5, 3)])
def test_rank_tuples_are_those_a_queue_reaches_first(arity, beam):
  product = lambda ranks: math.prod(rank + 1 for rank in ranks)
  every = sorted(itertools.product(range(beam), repeat=arity), key=product)[1:]
  for count in (0, 1, 5, 20, 10**4):
    got = cube.rank_tuples(count=count, arity=arity, beam=beam)
    assert got.shape == (min(count, len(every)), arity)
    assert list(map(tuple, got.tolist())) == every[:count]


@pytest.mark.parametrize("arity", [1, 2, 3, 5])
@pytest.mark.parametrize("beam", [1, 10, 30, 100])
@pytest.mark.parametrize("count", [4, 20, 112])
def test_tiers_hold_the_tuples_of_two_and_of_all_children(arity, beam, count):
  few = min(arity, 2)
  wider = lambda ranks: (*ranks, *(0,) * (arity - len(ranks)))
  for first in (False, True):
    got = cube.tier_tuples(count=count, arity=arity, beam=beam, first=first)
    assert got.shape[1] == arity and len(as_set(got)) == len(got)
    assert got.min(initial=0) >= 0 and got.max(initial=0) < beam
    assert got.any(1).all()
    want = as_set(cube.rank_tuples(count=count, arity=arity, beam=beam))
    two = as_set(cube.rank_tuples(count=count, arity=few, beam=beam))
    want |= set(map(wider, two))
    alone = {
      wider((0,) * part + (rank,))
      for part in range(few)
      for rank in range(1, beam)
    }
    assert as_set(got) == (want | alone if first else want)


def test_tiers_of_two_children_are_plain_where_all_ranks_are_in_reach():
  sizes = {"count": 112, "arity": 2, "beam": 30}
  np.testing.assert_array_equal(
    cube.tier_tuples(**sizes, first=True), cube.rank_tuples(**sizes)
  )


def test_tiers_without_tuples():
  got = cube.tier_tuples(count=0, arity=5, beam=100, first=True)
  assert got.shape == (0, 5)


def many_words():
  """A model whose rules have up to five sites, and two sentences.

  The word g has translations t0, t1, ... of falling score; the language model
  wants t40 behind an a. So the best translation of "f g" and of "g h g" needs
  the hypothesis of rank 40 of the first child, and of the second.
  """
  source = Vocabulary(words=(*SPECIALS, "f", "g", "h"))
  names = [f"t{k}" for k in range(WORDS)]
  target = Vocabulary(words=(*SPECIALS, "a", *names))
  f, g, h = (source.index[word] for word in "fgh")
  a, t0 = target.index["a"], target.index["t0"]
  label = cases.LABELS.index
  x, wide = label("X"), [-1 - label("NP")] * 5
  sides = [
    *(([g], [t0 + k], -0.01 * k) for k in range(WORDS)),
    ([f, -1 - x], [a, -1], 0.0),
    ([-1 - x, h, -1 - x], [-1, a, -2], 0.0),
    (wide, [-1, -2, -3, -4, -5], 0.0),
  ]
  kinds = [Kind.HIERO] * (len(sides) - 1) + [Kind.TREE_TO_STRING]
  table = tables.make_table(
    source_words=source,
    target_words=target,
    labels=cases.LABELS,
    lhs=np.array([x] * (len(sides) - 1) + [label("NP")], np.int32),
    kind=np.array(kinds, np.int8),
    source=from_rows([side for side, _, _ in sides]),
    target=from_rows([side for _, side, _ in sides]),
    features=np.array([[score] for _, _, score in sides], np.float32),
    feature_names=("score",),
  )
  grams = dict.fromkeys(
    ((word,) for word in ("<unk>", "<s>", "</s>", "a", *names)), (-1.0, 0.0)
  )
  for name in names:  # so that no two of them have the same state
    grams["a", name] = (-0.01 if name == f"t{WANTED}" else -1.0, 0.0)
  model = models.make_model(
    table,
    cases.to_tables(grams, 2),
    weights=cases.WEIGHTS,
    limits=MatchConfig(targets=WORDS),
  )
  return model, models.make_source(model, ["f g", "g h g"])


def test_high_ranks_are_reached_in_grammars_with_wide_rules():
  model, source = many_words()
  assert model.arity == 5
  # The kernel of hosts, which takes candidates one by one, would need more.
  config = search.make_config(beam=100, pop=300, forest=True, backend="device")
  ((found,),) = decoder.decode(
    model, source, config=decoder.DecodeConfig(search=config)
  )
  best = found.best()
  words = derivation.read_off(model, best).words
  assert translation_forest.spell(model, source, words) == [
    f"a t{WANTED}",
    f"t0 a t{WANTED}",
  ]
  _, result, root = exact.search_exactly(model, source, limit=1 << 20)
  scores = np.asarray(result.beams.score)[root, 0]
  np.testing.assert_allclose(best.score, scores, atol=1e-4)
  tried = found.beams.candidates
  ranks = tried.ranks[np.asarray(tried.head) >= 0]
  for part in (0, 1):
    assert len(np.unique(ranks[:, part])) == WORDS
