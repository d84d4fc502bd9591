"""Our decoder in the loop: its lists are the k best of what it searched."""

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.chart import beam_forest, decoder, search
from jaxmt.features import sparse
from jaxmt.tune import kbest_decoder, loop, methods
from tests.reference import chart_cases

OTHER = {**chart_cases.WEIGHTS, "score": 0.3, "LanguageModel": 1.2, "Match": 1}
CONFIG = decoder.DecodeConfig(
  search=search.make_config(beam=16, pop=64), threads=2
)
LIMIT = 8


@pytest.fixture(scope="module")
def case():
  made = chart_cases.random_case(
    11, order=3, arity=3, sentences=5, rules=30, tree_rules=12
  )
  model, source = chart_cases.to_model(made, arity=3)
  lines = [" ".join(words) for words in made.sentences]
  lines.insert(2, "")  # an empty line has no candidates
  spans = source.spans
  assert spans is not None
  offsets = np.insert(spans.offsets, 2, spans.offsets[2])
  return model, lines, type(spans)(flat=spans.flat, offsets=offsets)


@pytest.fixture(scope="module")
def decode(case):
  model, lines, spans = case
  return kbest_decoder.make_decode(
    model,
    lines,
    kbest_decoder.ListOptions(
      size=LIMIT,
    ),
    config=CONFIG,
    spans=spans,
  )


def expected(case, weights):
  """Strings and scores of each sentence, one sentence at a time."""
  model, lines, spans = case
  model = models.with_weights(model, weights)
  source = models.make_source(model, lines, spans=spans)
  config = search.make_config(beam=16, pop=64, forest=True)
  out = {}
  for batch in decoder.decode(
    model, source, config=decoder.DecodeConfig(search=config)
  ):
    for part in batch:
      grown = beam_forest.extract(model, part)
      found = translation_forest.kbest(
        model, part.source, grown, size=LIMIT, unique=True
      )
      texts = translation_forest.strings(model, part.source, found)
      for place, row in enumerate(found.sentence.tolist()):
        own = out.setdefault(int(part.rows[row]), [])
        own.append((texts[place], found.score[place]))
  return out


@pytest.mark.parametrize("weights", [chart_cases.WEIGHTS, OTHER])
def test_lists_are_the_k_best(case, decode, weights):
  model, lines, _ = case
  found = decode(weights, np.arange(len(lines)))
  assert found.names == model.feature_names
  assert (np.diff(found.sentence) >= 0).all()
  vector = np.array([weights.get(name, 0.0) for name in found.names])
  scores = sparse.dot(found.features, vector)
  wanted = expected(case, weights)
  assert sorted(set(found.sentence.tolist())) == [0, 1, 3, 4, 5]
  for row, own in wanted.items():
    mine = np.flatnonzero(found.sentence == row)
    assert [found.lines[place] for place in mine] == [text for text, _ in own]
    np.testing.assert_allclose(
      scores[mine], [score for _, score in own], atol=1e-4
    )
    assert len(set(found.lines[place] for place in mine)) == len(mine)


def test_some_sentences_only(case, decode):
  _, lines, _ = case
  whole = decode(OTHER, np.arange(len(lines)))
  part = decode(OTHER, np.array([1, 4]))
  keep = np.flatnonzero(np.isin(whole.sentence, [1, 4]))
  assert part.sentences == 2 and len(part)
  asked = np.array([1, 4])[part.sentence]
  assert asked.tolist() == whole.sentence[keep].tolist()
  assert part.lines == [whole.lines[row] for row in keep]
  np.testing.assert_array_equal(
    part.features.values, sparse.select(whole.features, keep).values
  )
  nothing = decode(OTHER, np.array([2]))
  assert len(nothing) == 0 and nothing.names == whole.names


def test_equal_derivations_have_equal_features(case, decode):
  """So the pool knows them again, whatever weights they were found with."""
  _, lines, _ = case
  every = np.arange(len(lines))
  seen = [
    {
      (sentence, line, values.tobytes())
      for sentence, line, values in zip(
        found.sentence.tolist(),
        found.lines,
        sparse.to_dense(found.features, len(found.names)),
        strict=True,
      )
    }
    for found in (
      decode(chart_cases.WEIGHTS, every),
      decode({**chart_cases.WEIGHTS, "LanguageModel": 0.7001}, every),
    )
  ]
  assert len(seen[0] & seen[1]) > 0.8 * len(seen[0])


def test_the_loop_runs_on_it_and_improves(case, decode):
  _, lines, _ = case
  every = decode(OTHER, np.arange(len(lines)))
  # References: the worst of each list, so that there is something to learn.
  wanted = dict(zip(every.sentence.tolist(), every.lines, strict=True))
  refs = [[wanted.get(row, "a")] for row in range(len(lines))]
  start = {name: 0.1 for name in every.names}
  method = methods.configure(methods.find("mert"), {"metric": "wer"})
  state = loop.run(
    decode,
    refs,
    method,
    loop.begin(start),
    loop.LoopConfig(metric="wer", rounds=3),
    0,
  )
  assert -state.best_score < state.history[0]["score"]


def test_start_weights_cover_known_features():
  names = ("target_given_source", "LanguageModel", "WordPenalty", "mine")
  weights = kbest_decoder.start_weights(names)
  assert list(weights) == list(names)
  assert weights["LanguageModel"] > 0 > weights["WordPenalty"]
  assert weights["mine"] == 0
  units = models.DIALECTS["travatar"]
  assert kbest_decoder.start_weights(("word", "lm"), units)["word"] > 0
