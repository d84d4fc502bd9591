"""Search and inside-outside lower for CUDA and TPU, without an accelerator."""

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode.chart import augmentations, decoder
from jaxmt.decode.chart.beam_search import search as search_program
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.hypergraph import device_layout, inside_outside
from tests import util
from tests.reference import chart_cases as cases
from tests.reference import forests

SIZES = dict(beam=6, pop=24, corners=8, widths=(8, 48), tile=8)


def arguments(*, labels, forest, hook):
  """A small batch: positional and static arguments of the search."""
  case = cases.random_case(5, order=3, arity=2, sentences=3)
  weights = dict(cases.WEIGHTS)
  if not labels:
    weights.update(Match=0.0, Mismatch=0.0)
    case.rules[:] = [r for r in case.rules if r[1] in ("X", "S")]
  model, source = cases.to_model(case, arity=2, weights=weights)
  config = SearchConfig(**SIZES, forest=forest)
  rows = [np.arange(len(source))]
  prepared = decoder.prepare(model, source, rows, config=config)
  references = None
  if hook is not None:
    lines = [["a b c"] * len(source)]
    (references,) = decoder.make_inputs(model, prepared, lines)
  return (
    prepared.charts[0],
    models.device_parameters(model),
    decoder.search_weights(model),
    references,
    () if hook is None else tuple(map(np.float32, hook.parameters)),
  ), dict(config=config, features=model.features, augmentation=hook)


@pytest.mark.parametrize(
  ("labels", "forest", "hook"),
  [
    (False, False, None),
    (True, False, None),
    (True, True, None),
    (True, True, augmentations.loss_augmented(state="accumulators")),
    (True, False, augmentations.hope()),
  ],
  ids=["plain", "labels", "forest", "loss-augmented", "hope"],
)
def test_search_lowers(labels, forest, hook):
  dynamic, static = arguments(labels=labels, forest=forest, hook=hook)
  assert (dynamic[2].features[1] is not None) == labels
  for program in util.lowered(search_program, *dynamic, **static):
    assert "stablehlo.while" in program


def test_inside_outside_lowers():
  made = forests.random_forest(1)
  levels = device_layout.lay_out(made, tile=4)
  score = made.score.astype(np.float32)
  for program in util.lowered(inside_outside.marginals, levels, score):
    assert "stablehlo" in program
