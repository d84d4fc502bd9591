"""Forests of beams: what edges add up to, against the enumeration."""

import numpy as np
import pytest

from jaxmt.decode.chart import beam_forest, decoder
from tests.reference import chart_cases as cases
from tests.reference import chart_enumeration as enumeration
from tests.reference import forests


def decoded(seed, config=forests.CONFIG):
  case = cases.random_case(seed, order=3, arity=2, longest=4)
  model, result = forests.decode(case, arity=2, config=config)
  return case, model, result


def unfold(made, node):
  """Every derivation under a node: (score, ln p, matched, mismatched)."""
  for edge in range(made.edge_offsets[node], made.edge_offsets[node + 1]):
    own = (
      made.score[edge],
      made.edges.lm[edge],
      made.edges.matched[edge],
      made.edges.mismatched[edge],
    )
    totals = [own]
    for tail in made.tails[edge]:
      if tail >= 0:
        assert tail < node
        below = list(unfold(made, tail))
        totals = [
          tuple(a + b for a, b in zip(one, two, strict=True))
          for one in totals
          for two in below
        ]
    yield from totals


@pytest.mark.parametrize("config", [forests.CONFIG, forests.HOST])
@pytest.mark.parametrize("seed", range(12))
def test_forest_holds_every_derivation_once(seed, config):
  case, model, result = decoded(seed, config)
  made = beam_forest.extract(model, result)
  for row, words in enumerate(case.sentences):
    every = enumeration.derivations(case.rules, words, span=case.span)
    if len(every) > 400:
      continue
    want = sorted(
      (
        cases.total(case, one, enumeration.lm_score),
        enumeration.lm_score(case.grams, case.order, one[0]),
        one[2],
        one[3],
      )
      for one in every
    )
    root = made.node_offsets[row + 1] - 1
    got = sorted(unfold(made, root))
    assert len(got) == len(want)
    for column, values in enumerate(zip(*want, strict=True)):
      found = sorted(item[column] for item in got)
      np.testing.assert_allclose(found, sorted(values), atol=5e-4)


def test_without_candidates_there_is_no_forest():
  _, model, result = decoded(0)
  bare = decoder.dataclasses.replace(
    result, beams=decoder.dataclasses.replace(result.beams, candidates=None)
  )
  with pytest.raises(ValueError, match="forest=True"):
    beam_forest.extract(model, bare)
