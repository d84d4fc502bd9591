"""Phrase-based search against enumeration, and kernel against array program."""

import gzip

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.decode import derivation, loading, translate, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode import translator as translators
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.phrase import (
  device_search,
  phrase_decoder,
  phrase_model,
  stack_forest,
  stack_search,
)
from jaxmt.errors import InputError
from jaxmt.runtime import parallel
from tests import util
from tests.reference import chart_cases
from tests.reference import phrase_enumeration as enumeration

LIMITS = (0, 1, 2, 3, -1)


def decode(model, source, *, beam=300, pop=300, **options):
  sizes = search.make_config(beam=beam, pop=pop)
  config = DecodeConfig(search=sizes)
  (found,) = [
    part
    for parts in phrase_decoder.decode(model, source, config=config, **options)
    for part in parts
  ]
  return found


def in_rows(result, values):
  """Values of the sentences in the order they were given."""
  return np.asarray(values)[np.argsort(result.rows)]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("kind", ["word", "hierarchical", "none"])
def test_the_best_derivation_is_that_of_the_enumeration(limit, kind):
  for seed in range(5):
    case = enumeration.random_case(seed)
    lexical = kind != "none"
    model, source = enumeration.to_model(
      case,
      distortion=limit,
      lexical=lexical,
      orientation=kind,
    )
    result = decode(model, source, kernel=True)
    best = in_rows(result, result.best().score)
    for row, words in enumerate(case.sentences):
      every = enumeration.scored(
        case,
        words,
        limit=limit,
        lexical=lexical,
        hierarchical=kind == "hierarchical",
      )
      assert best[row] == pytest.approx(every[0][0], abs=1e-4)


@pytest.mark.parametrize("lexical", [True, False])
def test_edges_of_merged_hypotheses_have_their_own_features(lexical):
  for seed in range(12):
    case = enumeration.random_case(seed)
    model, source = enumeration.to_model(case, distortion=3, lexical=lexical)
    result, _ = phrase_decoder.search_exactly(model, source, limit=4096)
    forest = stack_forest.extract(model, result)
    edges = translation_forest.edge_features(model, result.source, forest)
    vector = [model.weights.get(name, 0.0) for name in model.feature_names]
    np.testing.assert_allclose(edges @ vector, forest.score, atol=1e-4)


@pytest.mark.parametrize("kind", ["word", "hierarchical"])
@pytest.mark.parametrize("limit", [1, -1])
def test_lattices_hold_every_derivation_once(limit, kind):
  for seed in range(4):
    case = enumeration.random_case(seed, count=8)
    model, source = enumeration.to_model(
      case, distortion=limit, orientation=kind
    )
    result = decode(model, source)
    forest = stack_forest.extract(model, result)
    assert forest.tails.shape[1] == 1
    size = 400
    found = translation_forest.kbest(model, result.source, forest, size=size)
    lines = translation_forest.strings(model, result.source, found)
    for place, row in enumerate(result.rows.tolist()):
      every = enumeration.scored(
        case,
        case.sentences[row],
        limit=limit,
        hierarchical=kind == "hierarchical",
      )
      low, high = found.offsets[place : place + 2]
      assert high - low == min(len(every), size)
      expected = [one[0] for one in every[:size]]
      np.testing.assert_allclose(found.score[low:high], expected, atol=1e-3)
      assert lines[low].split() == every[0][1]


@pytest.mark.parametrize("kind", ["word", "hierarchical"])
def test_features_of_derivations_and_edges_equal_the_enumeration(kind):
  for seed in range(4):
    case = enumeration.random_case(seed)
    model, source = enumeration.to_model(case, distortion=2, orientation=kind)
    result = decode(model, source)
    best = result.best()
    said = derivation.read_off(model, best).words
    values = translation_forest.derivation_features(
      model, result.source, best, said
    )
    forest = stack_forest.extract(model, result)
    edges = translation_forest.edge_features(model, result.source, forest)
    vector = [model.weights.get(name, 0.0) for name in model.feature_names]
    np.testing.assert_allclose(edges @ vector, forest.score, atol=1e-4)
    np.testing.assert_allclose(values @ vector, best.score, atol=1e-4)
    for place, row in enumerate(result.rows.tolist()):
      every = enumeration.scored(
        case,
        case.sentences[row],
        limit=2,
        hierarchical=kind == "hierarchical",
      )
      chain = every[0][2]
      expected, words = enumeration.features(
        case, chain, hierarchical=kind == "hierarchical"
      )
      text = translation_forest.spell(model, result.source, said)
      assert text[place].split() == words
      own = dict(zip(model.feature_names, values[place], strict=True))
      for name, value in expected.items():
        assert own[name] == pytest.approx(value, abs=1e-4), name


@pytest.mark.parametrize(
  ("kind", "limit", "beam", "pop"),
  [("word", 3, 6, 9), ("hierarchical", -1, 20, 40), ("none", 3, 20, 40)],
)
def test_the_kernel_equals_the_array_program(kind, limit, beam, pop):
  case = enumeration.random_case(7, count=40, longest=8)
  model, source = enumeration.to_model(
    case, distortion=limit, orientation=kind, lexical=kind != "none"
  )
  one, two = (
    decode(model, source, beam=beam, pop=pop, kernel=kernel)
    for kernel in (True, False)
  )
  there = one.beams.head >= 0
  np.testing.assert_array_equal(there, two.beams.head >= 0)
  if kind != "none":  # without a reordering model there are ties
    for name in ("head", "option"):
      own, other = getattr(one.beams, name), getattr(two.beams, name)
      np.testing.assert_array_equal(own[there], other[there])
  final = lambda result: np.sort(result.beams.final[..., 0])
  np.testing.assert_allclose(final(one), final(two), rtol=1e-5)
  np.testing.assert_allclose(
    np.sort(one.beams.score), np.sort(two.beams.score), rtol=1e-5
  )


def test_eager_compiled_and_split_searches_agree():
  case = enumeration.random_case(3, count=20)
  model, source = enumeration.to_model(case, distortion=2)
  sizes = phrase_decoder.stack_config(
    model, DecodeConfig(search=search.make_config(beam=4, pop=8))
  )
  chart = phrase_decoder.build_chart(model, source)
  compiled = device_search.search_batch(model, source, chart, config=sizes)
  padded, rules = device_search.localise(model, source, chart)
  eager = stack_search.search(
    jax.tree.map(lambda leaf: jnp.asarray(leaf[:2]), padded),
    jax.tree.map(jnp.asarray, rules),
    models.device_parameters(model)[0],
    device_search.stack_weights(model, np.inf),
    config=sizes,
    feature=model.features[0],
  )
  np.testing.assert_allclose(compiled.final[:2], eager.final, rtol=1e-5)
  if len(jax.devices()) > 1:
    mesh = parallel.make_mesh(2)
    split = device_search.search_batch(
      model, source, chart, config=sizes, mesh=mesh
    )
    np.testing.assert_array_equal(compiled.head, split.head)
    np.testing.assert_array_equal(compiled.final, split.final)


def test_the_array_program_lowers():
  case = enumeration.random_case(3, count=2)
  model, source = enumeration.to_model(case, distortion=2)
  sizes = phrase_decoder.stack_config(
    model, DecodeConfig(search=search.make_config(beam=4, pop=8))
  )
  chart = phrase_decoder.build_chart(model, source)
  programs = util.lowered(
    stack_search.search,
    *device_search.localise(model, source, chart),
    models.device_parameters(model)[0],
    device_search.stack_weights(model, np.inf),
    config=sizes,
    feature=model.features[0],
  )
  assert all("stablehlo.while" in program for program in programs)


def test_exact_search_says_whether_it_was():
  case = enumeration.random_case(2, count=30, longest=6)
  model, source = enumeration.to_model(case, distortion=3)
  result, complete = phrase_decoder.search_exactly(model, source, limit=1 << 14)
  assert complete.all()
  for row, words in enumerate(case.sentences):
    every = enumeration.scored(case, words, limit=3)
    assert result.best().score[row] == pytest.approx(every[0][0], abs=1e-4)
  _, complete = phrase_decoder.search_exactly(model, source, limit=2)
  assert not complete.all()


def test_no_beam_beats_exact_search_and_a_threshold_drops():
  case = enumeration.random_case(5, count=40, longest=8)
  model, source = enumeration.to_model(case, distortion=-1)
  exact, complete = phrase_decoder.search_exactly(model, source, limit=1 << 16)
  assert complete.all()
  for beam in (1, 4, 16):
    result = decode(model, source, beam=beam, pop=4 * beam)
    own = in_rows(result, result.best().score)
    assert (own <= exact.best().score + 1e-4).all()
  config = DecodeConfig(search=search.make_config(beam=20, pop=40), threshold=0)
  (narrow,) = [
    part
    for parts in phrase_decoder.decode(model, source, config=config)
    for part in parts
  ]
  assert ((narrow.beams.score > -1e29).sum(-1) <= 1).all()


def test_empty_lines_have_no_derivation():
  case = enumeration.random_case(0)
  model, _ = enumeration.to_model(case, distortion=2)
  source = models.make_source(model, ["", "f g", ""])
  result = decode(model, source)
  lengths = in_rows(result, np.diff(result.best().offsets))
  assert (lengths > 0).tolist() == [False, True, False]
  forest = stack_forest.extract(model, result)
  assert (in_rows(result, forest.roots) >= 0).tolist() == [False, True, False]


def test_grammars_and_wide_limits_are_refused():
  case = chart_cases.random_case(0, order=2, arity=2, longest=3)
  with pytest.raises(InputError, match="not a phrase table"):
    phrase_model.make_model(
      chart_cases.to_table(case.rules),
      chart_cases.to_tables(case.grams, 2),
      weights={},
    )
  with pytest.raises(InputError, match="distortion limit 40"):
    enumeration.to_model(enumeration.random_case(0), distortion=40)


@pytest.fixture(scope="module")
def moses():
  folder = util.corpus("moses-multi30k-de-en") / "phrase"
  lm = util.corpus("cdec-multi30k-de-en") / "lm4.arpa.gz"
  return folder, loading.load_files(
    str(folder / "phrase-table.gz"),
    lm=str(lm),
    weights=str(folder / "moses.ini"),
    dialect="moses",
    kind="phrase",
    reordering=str(folder / "reordering-table.gz"),
  )


def test_scores_and_features_are_those_of_moses(moses):
  folder, translator = moses
  lines = (folder.parent / "source.de").read_text().splitlines()
  pieces = translate.cut_lines(lines, longest=250)
  done = translate.translate(
    translator.model, pieces, config=translators.decode_config(translator)
  )
  with gzip.open(folder / "kbest1.cube2000.gz", "rt") as stream:
    theirs = [line.split(" ||| ") for line in stream]
  same = 0
  for own, (_, text, values, score) in zip(done, theirs, strict=True):
    # Never below Moses' best by more than a search error, nor above it.
    assert own.score < float(score) + 1e-3
    if own.text != text.strip() or abs(own.score - float(score)) > 1e-3:
      continue
    same += 1
    name = ""
    for token in values.split():
      if token.endswith("="):
        name, place = token[:-1], 0
        continue
      names = [f"{name}_{place}", name]
      value = [own.features[n] for n in names if n in own.features]
      assert float(token) == pytest.approx(value[0] if value else 0, abs=2e-3)
      place += 1
  assert same >= 190
  assert np.mean([one.score for one in done]) > -40.3701
