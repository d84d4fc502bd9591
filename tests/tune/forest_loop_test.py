"""Forest MERT with our decoder in the loop."""

import numpy as np
import pytest

from jaxmt.decode.chart import decoder, search
from jaxmt.errors import InputError
from jaxmt.tune import kbest_decoder, loop, methods
from tests.reference import chart_cases

CONFIG = decoder.DecodeConfig(
  search=search.make_config(beam=16, pop=64), threads=2
)


@pytest.fixture(scope="module")
def case():
  made = chart_cases.random_case(
    11, order=3, arity=2, sentences=6, rules=30, longest=4
  )
  model, _ = chart_cases.to_model(made, arity=2)
  lines = [" ".join(words) for words in made.sentences]
  return model, [*lines[:2], "", *lines[2:]]


def make(case, **options):
  model, lines = case
  return kbest_decoder.make_decode(
    model, lines, kbest_decoder.ListOptions(size=5, **options), config=CONFIG
  )


def test_forests_come_with_the_lists(case):
  model, lines = case
  chosen = np.array([4, 0, 2])
  found = make(case, density=0.0)(chart_cases.WEIGHTS, chosen)
  spelled = found.forests.spelled
  assert found.forests.names == model.feature_names
  assert len(spelled) == 3
  nodes = np.diff(spelled.forest.node_offsets)
  assert (nodes > 0).tolist() == [bool(lines[k]) for k in chosen]
  few = make(case, density=2.0)(chart_cases.WEIGHTS, chosen).forests.spelled
  assert few.forest.num_edges < spelled.forest.num_edges
  assert make(case)(chart_cases.WEIGHTS, chosen).forests is None


def test_templates_are_refused(case):
  with pytest.raises(InputError, match="dense features only"):
    make(case, density=10.0, templates=["rule"])


def test_loop_improves_and_resumes(case):
  model, lines = case
  decode = make(case, density=50.0)
  # What other weights say is to be found again.
  other = {**chart_cases.WEIGHTS, "score": 0.2, "LanguageModel": 1.5}
  other |= {"WordPenalty": -1.0, "Glue": 0.5}
  found = decode(other, np.arange(len(lines)))
  best = {}
  for row, text in zip(found.sentence.tolist(), found.lines, strict=True):
    best.setdefault(row, text)
  references = [[best.get(row, "a")] for row in range(len(lines))]
  start = {name: 0.1 for name in model.feature_names}
  method = methods.configure(
    methods.find("forest-mert"), {"metric": "ter", "restarts": "3"}
  )
  config = loop.LoopConfig(metric="ter", rounds=3)
  states = []
  last = loop.run(
    decode,
    references,
    method,
    loop.begin(start),
    config,
    5,
    on_round=states.append,
  )
  scores = [record["score"] for record in last.history]
  assert min(scores) < scores[0]
  again = loop.run(
    decode,
    references,
    method,
    loop.from_arrays(loop.to_arrays(states[0])),
    config,
    5,
  )
  assert again.best_weights == last.best_weights
  assert again.history == last.history


def test_online(case):
  model, lines = case
  references = [["a b"]] * len(lines)
  method = methods.configure(
    methods.find("forest-mert"), {"metric": "ter", "restarts": "1"}
  )
  config = loop.LoopConfig(metric="ter", rounds=1, batch_size=3)
  start = {name: 0.1 for name in model.feature_names}
  state = loop.run(
    make(case, density=20.0), references, method, loop.begin(start), config, 0
  )
  assert state.round == 2
