"""Sparse features in the search, in forests and in k-best lists."""

import dataclasses

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.chart import beam_forest, decoder, exact
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.errors import InputError
from jaxmt.features import rule_templates, sparse
from jaxmt.text.ragged import Ragged
from jaxmt.tune import kbest_decoder
from tests.reference import chart_cases as cases

WIDE = SearchConfig(
  beam=24,
  pop=160,
  corners=48,
  taper=((48, 700),),
  widths=(48,),
  tile=8,
  forest=True,
)
CONFIG = DecodeConfig(search=WIDE)
TEMPLATES = rule_templates.TemplateConfig(names=rule_templates.TEMPLATES)
TOLERANCE = 5e-4


def with_links(table):
  """The first source word linked to the first target word of each rule."""
  pairs, lengths = [], []
  for rule in range(len(table)):
    source = np.flatnonzero(table.source[rule] >= 0)
    target = np.flatnonzero(table.target[rule] >= 0)
    both = len(source) and len(target)
    pairs += [(source[0], target[0])] if both else []
    lengths.append(1 if both else 0)
  return dataclasses.replace(
    table,
    counts=np.arange(1.0, len(table) + 1),
    links=Ragged(
      flat=np.array(pairs, np.int16).reshape(-1, 2),
      offsets=np.concatenate([[0], np.cumsum(lengths)]),
    ),
  )


def make_case(seed):
  """A model with templates but no weights for them, and sentences."""
  case = cases.random_case(seed, order=2, arity=2, rules=8, longest=4)
  model, _ = cases.to_model(case, arity=2, pass_through="all")
  model = dataclasses.replace(model, table=with_links(model.table))
  model = models.with_templates(model, TEMPLATES)
  lines = [" ".join(text) for text in case.sentences]
  return model, models.make_source(model, lines)


def decode(model, source):
  ((result,),) = decoder.decode(model, source, config=CONFIG)
  grown = beam_forest.extract(model, result)
  return result, grown


def everything(model, result, grown):
  """All derivations: dense values, sparse rows, names, sentences."""
  found = translation_forest.kbest(model, result.source, grown, size=5000)
  dense = translation_forest.derivation_features(
    model,
    result.source,
    translation_forest.derivations(grown, found),
    found.words,
  )
  rows, names = kbest_decoder.kbest_rows(model, result.source, grown, found)
  return found, dense, rows, names


def random_weights(seed, names):
  rng = np.random.default_rng(seed)
  return dict(zip(names, rng.normal(0, 0.5, len(names)).tolist(), strict=True))


@hypothesis.settings(max_examples=10)
@hypothesis.given(seed=strategies.integers(0, 10**6))
def test_the_search_finds_the_best_with_sparse_weights(seed):
  """All derivations of the plain search, scored anew, against the search."""
  model, source = make_case(seed)
  result, grown = decode(model, source)
  found, dense, rows, names = everything(model, result, grown)
  extra = random_weights(seed, names)
  weighted = models.with_weights(model, {**cases.WEIGHTS, **extra})
  sparse_part = sparse.dot(rows, np.array([extra[name] for name in names]))
  vector = np.array([cases.WEIGHTS.get(n, 0.0) for n in model.feature_names])
  total = dense @ vector + sparse_part
  again, _ = decode(weighted, models.rescore_source(weighted, source))
  best = again.best()
  for row in range(len(source)):
    mine = found.sentence == row
    np.testing.assert_allclose(
      best.score[row], total[mine].max(), atol=TOLERANCE
    )
  assert np.abs(sparse_part).max() > 0


def test_scores_of_lists_and_forests_are_products():
  model, source = make_case(3)
  _, _, _, names = everything(model, *decode(model, source))
  weights = {**cases.WEIGHTS, **random_weights(0, names)}
  weighted = models.with_weights(model, weights)
  result, grown = decode(weighted, models.rescore_source(weighted, source))
  found, dense, rows, names = everything(weighted, result, grown)
  vector = np.array([weights.get(n, 0.0) for n in weighted.feature_names])
  extra = sparse.dot(rows, np.array([weights.get(n, 0.0) for n in names]))
  np.testing.assert_allclose(found.score, dense @ vector + extra, atol=1e-3)


def test_weights_bring_their_templates():
  model, source = make_case(5)
  _, _, _, names = everything(model, *decode(model, source))
  weights = {**cases.WEIGHTS, **random_weights(1, names)}
  made = models.make_model(
    model.table,
    model.lm,
    weights=weights,
    limits=model.limits,
    arity=2,
  )
  one = models.with_weights(model, weights)
  np.testing.assert_allclose(one.columns.score, made.columns.score, atol=1e-6)
  lines = ["f g u h", "u"]
  results = [
    decode(m, models.make_source(m, lines))[0].best().score for m in (one, made)
  ]
  np.testing.assert_allclose(*results, atol=1e-4)
  plain = models.make_model(
    model.table, model.lm, weights=cases.WEIGHTS, limits=model.limits
  )
  assert plain.templates is None


def test_the_loops_decoder_has_sparse_features():
  model, _ = make_case(7)
  lines = ["f g h", "", "u f"]
  decoded = kbest_decoder.make_decode(
    model,
    lines,
    kbest_decoder.ListOptions(
      size=10,
      templates=("shape", "edges:fF+ba", "bigrams"),
    ),
    config=CONFIG,
  )
  first = decoded(cases.WEIGHTS, np.array([0, 1, 2]))
  kinds = {name.split(":")[0] for name in first.names if ":" in name}
  assert kinds == {"Shape", "Edge", "ngram"}
  edges = {name.split(":")[1] for name in first.names if "Edge:" in name}
  assert edges == {"fF", "ba"}
  assert sorted(set(first.sentence.tolist())) == [0, 2]
  # A weight that only re-ranks: the list is led by who has the bigram.
  dense = sparse.to_dense(first.features, len(first.names))
  ngram = next(n for n in first.names if n.startswith("ngram:"))
  heavy = {**cases.WEIGHTS, ngram: 100.0}
  second = decoded(heavy, np.array([0, 2]))
  dense = sparse.to_dense(second.features, len(second.names))
  vector = np.array([heavy.get(name, 0.0) for name in second.names])
  scores = dense @ vector
  for number in (0, 2):
    mine = scores[second.sentence == number]
    assert (np.diff(mine) <= 1e-6).all()
  column = second.names.index(ngram)
  assert dense[:, column].any()
  lead = np.flatnonzero(second.sentence == 0)[0]
  of_first = dense[second.sentence == 0, column]
  assert dense[lead, column] == of_first.max()


def test_exact_search_refuses_word_edges():
  model, source = make_case(2)
  with pytest.raises(InputError, match="Word-Edges"):
    exact.search_exactly(model, source, limit=1000)
  local = models.with_templates(model, rule_templates.parse(["shape"]))
  exact.search_exactly(local, source, limit=10**6)


@pytest.mark.parametrize("names", [("ruel",), ("bigrams", "edges:xyz")])
def test_wrong_templates(names):
  with pytest.raises(ValueError, match=r"template|letters"):
    kbest_decoder.split_templates(names)
