"""Exact and beam search against every derivation of tiny joint grammars."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from jaxmt.chart import decoder, derivation, exact
from jaxmt.chart.search import SearchConfig
from jaxmt.grammar import match
from tests.reference import chart_cases as cases
from tests.reference import chart_enumeration as enumeration

TOLERANCE = 2e-4
WIDE = dict(
  beam=24, pop=160, corners=48, taper=((48, 700),), widths=(48,), tile=8
)


def oracle(case, row, copy="unknown"):
  """The best score of a sentence and every string that has it."""
  all_of = enumeration.derivations(
    case.rules,
    case.sentences[row],
    span=case.span,
    constituents=case.constituents[row],
    copy=copy,
  )
  scored = [
    (cases.total(case, one, enumeration.lm_score), one[0]) for one in all_of
  ]
  top = max(score for score, _ in scored)
  return top, {" ".join(w) for score, w in scored if score > top - TOLERANCE}


def check(case, model, source, derivations, copy="unknown"):
  words = derivation.read_off(model, derivations).words
  texts = derivation.strings(model, source, words)
  values = derivation.features(model, source, derivations, words)
  weights = np.array([model.weights.get(n, 0) for n in model.feature_names])
  for row, text in enumerate(texts):
    top, best = oracle(case, row, copy)
    np.testing.assert_allclose(derivations.score[row], top, atol=TOLERANCE)
    assert text in best
    np.testing.assert_allclose(values[row] @ weights, top, atol=TOLERANCE)


def exact_derivations(model, source):
  found = match.match(
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
  result = exact.exact_search(
    found,
    rules=model.columns,
    copies=source.columns,
    lm=model.lm,
    weights=decoder.search_weights(model),
  )
  assert result.complete.all()
  layout = exact.identity_layout(found)
  return derivation.best(
    found,
    layout,
    score=result.beams.score,
    back=result.beams.back,
    root=layout.cell[found.goal],
  )


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@hypothesis.settings(max_examples=40)
@hypothesis.given(seed=strategies.integers(0, 10**6))
def test_exact_search_equals_enumeration_on_joint_grammars(order, seed):
  case = cases.random_case(seed, order=order, arity=5, tree_rules=4, rules=9)
  model, source = cases.to_model(case, arity=5)
  check(case, model, source, exact_derivations(model, source))


@pytest.mark.parametrize(("order", "arity"), [(1, 2), (2, 5), (3, 2), (4, 5)])
@hypothesis.settings(max_examples=20)
@hypothesis.given(seed=strategies.integers(0, 10**6))
def test_wide_beam_equals_enumeration(order, arity, seed):
  case = cases.random_case(
    seed, order=order, arity=arity, tree_rules=4 if arity > 2 else 0
  )
  model, source = cases.to_model(case, arity=arity, pass_through="all")
  config = SearchConfig(**WIDE, labels=True)
  batch = [np.arange(len(source))]
  prepared = decoder.prepare(model, source, batch, config=config)
  weights = decoder.search_weights(model)
  lm = decoder.automaton.to_device(model.lm)
  beams = decoder.run_search(prepared, lm, weights, config=config)[0]
  result = decoder.Result(
    rows=batch[0],
    source=prepared.sources[0],
    matches=prepared.matches[0],
    layout=prepared.layouts[0],
    chart=prepared.charts[0],
    beams=beams,
  )
  check(case, model, prepared.sources[0], result.best(), copy="all")
