"""Exact and beam search against every derivation of tiny joint grammars."""

import numpy as np
import pytest

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode.chart import exact
from jaxmt.grammar.match import matching
from tests.reference import chart_cases as cases
from tests.reference import forests

TOLERANCE = 2e-4
SEEDS = range(40)
SENTENCES, WIDE = 130, 45  # of each order at least


def check(model, source, derivations, every):
  """Compares the best derivations with all there are.

  Args:
    model: the model.
    source: B sentences.
    derivations: what was found.
    every: derivations of each sentence, scores in front.
  """
  words = derivation.read_off(model, derivations).words
  texts = translation_forest.spell(model, source, words)
  values = translation_forest.derivation_features(
    model, source, derivations, words
  )
  weights = np.array([model.weights.get(n, 0) for n in model.feature_names])
  tops = [max(one[0] for one in some) for some in every]
  np.testing.assert_allclose(derivations.score, tops, atol=TOLERANCE)
  np.testing.assert_allclose(values @ weights, tops, atol=TOLERANCE)
  for text, top, some in zip(texts, tops, every, strict=True):
    assert text in {" ".join(o[1]) for o in some if o[0] > top - TOLERANCE}


def exact_derivations(model, source):
  found = matching.match(
    source.ids,
    table=model.table,
    trie=model.trie,
    ranked=model.ranked,
    scores=np.concatenate([model.columns.score, source.columns.score]),
    copies=source.copies,
    config=model.limits,
    spans=source.spans,
    width=model.arity,
  )
  result = exact.exact_search(model, source, found)
  assert result.complete.all()
  return derivation.best(
    found, score=result.beams.score, back=result.beams.back
  )


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_joint_grammars_equal_enumeration(order):
  compared = wide = used = 0
  for seed in SEEDS:
    one = forests.joint(seed, order=order)
    found = exact_derivations(one.model, one.source)
    check(one.model, one.source, found, one.every)
    check(one.model, one.source, one.best, one.every)
    host = forests.joint(seed, order=order, config=forests.HOST)
    check(host.model, host.source, host.best, one.every)
    compared += len(one.every)
    wide += np.count_nonzero(one.wide)
    used += ((found.child >= 0).sum(1) == 5).sum()
  # Rules of five sites take part, and some belong to the best derivation.
  assert compared >= SENTENCES
  assert wide >= WIDE
  assert used >= 10


@pytest.mark.parametrize("order", [1, 3])
def test_grammars_of_two_sites_equal_enumeration(order):
  for seed in range(20):
    case = cases.random_case(seed, order=order, arity=2)
    config = forests.HOST if seed % 2 else forests.CONFIG
    model, result = forests.decode(case, arity=2, copy="all", config=config)
    every = [
      forests.enumerate_case(case, row, copy="all")
      for row in range(len(case.sentences))
    ]
    check(model, result.source, result.best(), every)
    found = exact_derivations(model, result.source)
    check(model, result.source, found, every)
