"""Forced decoding of phrase-based models against enumeration."""

import dataclasses

import numpy as np
import pytest

from jaxmt import api, hypergraph
from jaxmt.decode import derivation, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.forced import forced
from jaxmt.decode.forced.forced import ForceConfig
from jaxmt.decode.phrase import markup
from jaxmt.decode.translator import Translator
from jaxmt.errors import InputError
from jaxmt.grammar.match.applications import GLUE, GOAL
from jaxmt.text import ragged
from tests.reference import phrase_enumeration as enumeration


def references_of(case, limit, rng):
  """A string of some derivation of each sentence."""
  out = []
  for words in case.sentences:
    every = enumeration.scored(case, words, limit=limit)
    out.append(" ".join(every[int(rng.integers(len(every)))][1]))
  return out


@pytest.mark.parametrize("kind", ["word", "hierarchical", "none"])
@pytest.mark.parametrize("limit", [0, 2, -1])
def test_forced_forests_have_exactly_the_derivations_of_the_string(kind, limit):
  for seed in range(5):
    case = enumeration.random_case(seed)
    lexical = kind != "none"
    model, source = enumeration.to_model(
      case, distortion=limit, lexical=lexical, orientation=kind
    )
    lines = references_of(case, limit, np.random.default_rng(seed))
    found = forced.force(model, source, lines)
    assert found.reached.all()
    lists = translation_forest.kbest(model, source, found.forest, size=500)
    strings = translation_forest.strings(model, source, lists)
    chains = translation_forest.derivations(found.forest, lists)
    words = derivation.read_off(model, chains).words
    rows = models.select_source(source, lists.sentence)
    values = translation_forest.derivation_features(model, rows, chains, words)
    vector = [model.weights.get(name, 0.0) for name in model.feature_names]
    np.testing.assert_allclose(values @ vector, lists.score, atol=1e-3)
    for row, line in enumerate(lines):
      every = [
        score
        for score, said, _ in enumeration.scored(
          case,
          case.sentences[row],
          limit=limit,
          lexical=lexical,
          hierarchical=kind == "hierarchical",
        )
        if " ".join(said) == line
      ]
      low, high = lists.offsets[row : row + 2]
      assert high - low == min(len(every), 500)
      np.testing.assert_allclose(
        lists.score[low:high], every[: high - low], atol=1e-3
      )
      assert set(strings[low:high]) == {line}


def test_nodes_know_how_much_of_the_reference_they_say():
  case = enumeration.random_case(3)
  model, source = enumeration.to_model(case, distortion=-1)
  lines = references_of(case, -1, np.random.default_rng(0))
  found = forced.force(model, source, lines)
  roots = found.forest.roots
  np.testing.assert_array_equal(found.category[roots], GOAL)
  assert (np.delete(found.category, roots) == GLUE).all()
  np.testing.assert_array_equal(
    found.last[roots], [len(line.split()) for line in lines]
  )
  assert (found.first == 0).all()
  # Every node is part of a derivation.
  assert (hypergraph.marginals(found.forest) > 0).all()


def test_a_reference_beyond_the_distortion_limit_is_not_reached():
  for seed in range(6):
    case = enumeration.random_case(seed, count=9, longest=5)
    free, source = enumeration.to_model(case, distortion=-1)
    tight, _ = enumeration.to_model(case, distortion=0)
    lines = references_of(case, -1, np.random.default_rng(seed))
    found = forced.force(tight, models.make_source(tight, texts(case)), lines)
    assert forced.force(free, source, lines).reached.all()
    for row, words in enumerate(case.sentences):
      strings = {
        " ".join(said)
        for _, said, _ in enumeration.scored(case, words, limit=0)
      }
      assert found.reached[row] == (lines[row] in strings)
      assert (found.reason[row] == "") == found.reached[row]


def texts(case):
  return [" ".join(words) for words in case.sentences]


def test_reasons_name_the_word_or_how_far_it_came():
  case = enumeration.random_case(1)
  model, source = enumeration.to_model(case, distortion=2)
  lines = references_of(case, 2, np.random.default_rng(1))
  found = forced.force(
    model, source, ["", "zzz", lines[2] + " " + lines[2], lines[3]]
  )
  assert found.reason[0] == "empty: reference"
  assert found.reason[1] == "word not producible: 'zzz'"
  assert found.reason[2].startswith("reachable parts only: longest reference")
  assert found.reason[3] == ""
  short = forced.force(model, source, lines, config=ForceConfig(edges=0))
  assert set(short.reason) == {"limit: too many hypotheses"}
  long = forced.force(model, source, lines, config=ForceConfig(words=0))
  assert set(long.reason) == {"limit: over 0 words"}


def test_excluded_rules_are_not_used():
  case = enumeration.random_case(2)
  model, source = enumeration.to_model(case, distortion=-1)
  lines = references_of(case, -1, np.random.default_rng(2))
  whole = forced.force(model, source, lines)
  rules = whole.forest.edges.rule
  used = np.unique(rules[rules < len(model.table)])[:1]
  rest = forced.force(
    model,
    source,
    lines,
    excluded=ragged.from_rows([used.tolist()] * len(lines)),
  )
  assert not np.isin(rest.forest.edges.rule, used).any()
  assert rest.forest.num_edges < whole.forest.num_edges


def test_threads_and_the_api_give_the_same_forests():
  case = enumeration.random_case(4)
  model, _ = enumeration.to_model(case, distortion=3)
  lines = references_of(case, 3, np.random.default_rng(4))
  many = models.make_source(model, texts(case) * 20)
  one, two = (
    forced.force(
      model, many, lines * 20, config=ForceConfig(threads=threads)
    ).forest
    for threads in (1, 2)
  )
  np.testing.assert_array_equal(one.score, two.score)
  found = api.force(Translator(model=model), texts(case), lines)
  assert found.reached.all()
  assert found.derivations[0] is not None


def test_markup_is_refused():
  case = enumeration.random_case(0)
  model, source = enumeration.to_model(case, distortion=3)
  marked = dataclasses.replace(source, marks=markup.no_marks(len(source)))
  with pytest.raises(InputError, match="no markup"):
    forced.force(model, marked, texts(case))
