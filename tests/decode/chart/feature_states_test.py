"""Values of added stateful features, in lists, forests and exact search."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import translation_forest
from jaxmt.decode.chart import beam_forest, decoder, exact
from jaxmt.decode.forced import forced
from jaxmt.errors import InputError
from jaxmt.features.stateful import LabelMatch
from tests import extending_test
from tests.reference import chart_cases as cases
from tests.reference import forests

WEIGHTS = cases.WEIGHTS | {"Repeats": -2.5}


def test_values_in_lists_forests_and_exact_search():
  case = cases.random_case(3, order=2, arity=2, sentences=6)
  model, source = cases.to_model(
    case,
    arity=2,
    weights=WEIGHTS,
    features=[(extending_test.Repeats(), ())],
  )
  config = decoder.DecodeConfig(search=forests.CONFIG)
  ((part,),) = decoder.decode(model, source, config=config)
  forest = beam_forest.extract(model, part)
  lists = translation_forest.kbest(model, part.source, forest, size=50)
  values = translation_forest.derivation_features(
    model,
    part.source,
    translation_forest.derivations(forest, lists),
    lists.words,
  )
  vector = np.array([WEIGHTS.get(name, 0.0) for name in model.feature_names])
  np.testing.assert_allclose(values @ vector, lists.score, atol=2e-4)
  assert values[:, -1].any()
  edges = translation_forest.edge_features(model, part.source, forest)
  np.testing.assert_allclose(edges @ vector, forest.score, atol=2e-4)
  _, result, root = exact.search_exactly(model, source, limit=10**6)
  np.testing.assert_allclose(
    result.beams.score[root[part.rows], 0], part.best().score, atol=2e-4
  )
  # The same derivations, found by their strings.
  lines = translation_forest.spell(model, part.source, lists.words)
  first = lists.offsets[:-1].tolist()
  reached = forced.force(model, part.source, [lines[row] for row in first])
  values = translation_forest.edge_features(model, part.source, reached.forest)
  np.testing.assert_allclose(values @ vector, reached.forest.score, atol=2e-4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OtherLabels(LabelMatch):
  """Label match under another name."""

  names: tuple[str, ...] = ("Same", "Other")


def test_forced_decoding_refuses_what_is_no_string_feature():
  case = cases.random_case(3, order=2, arity=2, sentences=2)
  model, source = cases.to_model(
    case, arity=2, weights=cases.WEIGHTS, features=[(OtherLabels(), ())]
  )
  with pytest.raises(InputError, match="Same, Other"):
    forced.force(model, source, ["a", "b"])
