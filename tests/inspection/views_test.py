"""What the report shows of sentences is what the decoder did."""

import json

import numpy as np
import pytest

from jaxmt.decode import (
  derivation,
  derivation_rows,
  translate,
  translation_forest,
)
from jaxmt.decode import model as models
from jaxmt.decode.chart import decoder
from jaxmt.experiment.stages import decode, system
from jaxmt.experiment.stages.corpus import Translations
from jaxmt.inspection import chart_views, derivation_views, list_views
from jaxmt.inspection import searched as searching
from jaxmt.text import trees
from tests.reference import tiny_report, tiny_training

SYSTEMS = ("primary", "augmented-forest")


@pytest.fixture(scope="module")
def views():
  return tiny_report.outcome().inspection.value


@pytest.fixture(scope="module")
def sentences(views):
  return [json.loads(line) for line in views.sentences]


@pytest.fixture(scope="module")
def compared():
  """The two models, made anew, with the test sentences in pieces."""
  outcome = tiny_report.outcome()
  built = []
  for name in SYSTEMS:
    own = outcome.systems[name]
    model, _ = system.part_model(
      tiny_report.SEARCH,
      "test",
      corpus=outcome.corpus.value,
      grammar=outcome.grammar.value,
      lm=outcome.lm.value,
      weights=own.tune.value.weights,
      theta=None if own.theta is None else own.theta.value,
    )
    built.append(model)
  pieces = decode.cut(tiny_report.SOURCES)
  source = translate.piece_source(built[0], pieces)
  return derivation_views.ComparedModels(
    names=SYSTEMS, models=built, source=source
  )


def expand(rules, view):
  """The target words of a derivation, read off its view."""
  children = {}
  for place, node in enumerate(view["n"]):
    children.setdefault(node[3], []).append(place)

  def words(place):
    out = []
    for symbol in rules[view["n"][place][0]]["t"]:
      if isinstance(symbol, int):
        out += words(children[place][symbol])
      else:
        out.append(symbol)
    return out

  return [word for root in children[-1] for word in words(root)]


def test_derivations_say_the_translations(views, sentences):
  rules = [json.loads(line) for line in views.rules]
  outcome = tiny_report.outcome()
  for place, name in enumerate(views.systems):
    lines = outcome.translations[name].value.test_hypothesis
    for line, one in zip(lines, sentences, strict=True):
      if one["d"][place] is None:
        assert not line
      else:
        assert " ".join(expand(rules, one["d"][place])) == line


def total(rules, view, system, size):
  """Feature values of a derivation, summed over what the view tells."""
  out = np.zeros(size)
  for rule, _, _, _, added in view["n"]:
    for name, value in [*rules[rule]["v"][system], *added]:
      out[name] += value
  for name, value in view["g"]:
    out[name] += value
  return out


def test_features_of_rules_and_nodes_make_the_scores(views, sentences):
  rules = [json.loads(line) for line in views.rules]
  weights = np.array(views.weights)
  for one in sentences:
    for view in [*one["d"], one.get("r")]:
      if view is None:
        continue
      for place in range(len(views.systems)):
        own = total(rules, view, place, len(views.features)) @ weights[place]
        size = len(view["n"])
        assert own == pytest.approx(view["z"][place], abs=2e-3 * (1 + size))


def test_systems_score_derivations_of_others(compared):
  model = compared.models[0]
  other = compared.models[1]
  own = tiny_report.outcome().translations["primary"].value
  nodes = derivation_rows.from_array(
    own.test_nodes, own.test_node_offsets, own.test_node_scores
  )
  np.testing.assert_allclose(
    derivation_views.score(model, compared.source, nodes),
    nodes.score,
    rtol=1e-5,
  )
  words = derivation.read_off(other, nodes).words
  values = translation_forest.derivation_features(
    other, compared.source, nodes, words
  )
  np.testing.assert_allclose(
    derivation_views.score(other, compared.source, nodes),
    values @ compared.weights[1],
    atol=1e-6,
  )


def test_models_with_other_rules_are_not_compared(compared):
  wide = models.make_model(
    tiny_training.extracted().table,
    tiny_training.language_model(),
    weights=tiny_training.WEIGHTS,
  )
  assert len(wide.table) != len(compared.models[0].table)
  with pytest.raises(ValueError, match="other rules"):
    derivation_views.ComparedModels(
      names=("a", "b"),
      models=[compared.models[0], wide],
      source=compared.source,
    )


@pytest.fixture(scope="module")
def searched(compared):
  rows = np.array([0, 1, 2])  # before the line that is cut
  configs = {
    name: system.decode_config(
      tiny_report.SEARCH, compared.model(name), forest=True
    )
    for name in SYSTEMS
  }
  return searching.search_again(
    compared,
    rows,
    list(tiny_report.REFERENCES),
    configs=configs,
    nbest_size=5,
  )


def test_charts_show_beams_in_order_and_what_fell_out(compared, searched):
  model = compared.models[0]
  for row, batch, place in searched.places("primary"):
    chart = chart_views.chart_view(model, batch.result, place, hypotheses=50)
    spans = [(cell.begin, cell.end, cell.glue) for cell in chart.cells]
    assert len(set(spans)) == len(spans)
    for cell in chart.cells:
      scores = [score for _, score in cell.beam]
      assert scores == sorted(scores, reverse=True)
      assert len(cell.beam) == cell.fill <= chart.beam
      if cell.pruned:
        assert cell.fill == chart.beam
        assert max(s for _, s in cell.pruned) <= scores[-1] + 1e-4
    # What glue makes of the whole sentence is the translation.
    size = int(searched.source.ids.lengths[row])
    (whole,) = [
      c for c in chart.cells if c.glue and (c.begin, c.end) == (0, size)
    ]
    line = tiny_report.outcome().translations["primary"].value
    said = [text for text, _ in whole.beam]  # without the end of the sentence
    assert line.test_hypothesis[searched.rows[row]] in said[:3]


def test_own_derivations_are_in_the_beam_at_their_rank(compared, searched):
  own = tiny_report.outcome().translations["primary"].value
  nodes = derivation_rows.from_array(
    own.test_nodes, own.test_node_offsets, own.test_node_scores
  )
  some = derivation_rows.select(nodes, searched.rows)
  ranks = searched.ranks("primary", some)
  assert ranks.found.all()
  roots = some.offsets[:-1]
  assert (ranks.rank[roots] <= 3).all()  # without the end of the sentence
  parts = derivation_views.part_views(compared.models[0], some, ranks, 0)
  assert parts[0].glue and parts[0].kept


def test_lists_have_their_scores_and_costs(compared, searched):
  for batch in searched.batches["primary"]:
    names = compared.models[0].feature_names
    shown = list_views.kbest_views(batch.lists, names, costs=batch.costs)
    for own in shown:
      for text, score, features in own.candidates:
        value = sum(compared.weights[0][f] * v for f, v in features)
        assert value == pytest.approx(score, abs=1e-3), text
      assert all(0 <= cost <= 1 for cost in own.costs)


def test_good_derivations_are_the_reference_or_the_cheapest(compared, searched):
  good = searching.good_derivations(searched)
  model = compared.models[-1]
  words = derivation.read_off(model, good.derivations).words
  said = translation_forest.spell(model, searched.source, words)
  for row, number in enumerate(searched.rows.tolist()):
    if good.reached[row]:
      assert said[row] == tiny_report.REFERENCES[number]
      continue
    least, text = np.inf, None
    for name in SYSTEMS:
      for batch in searched.batches[name]:
        for line, place, cost in zip(
          batch.lists.lines,
          batch.lists.sentence.tolist(),
          batch.costs.tolist(),
          strict=True,
        ):
          if batch.result.rows[place] == row and cost < least:
            least, text = cost, line
    assert said[row] == text
  assert good.reached.any()


def test_parses_keep_labels_spans_and_parents():
  parsed = trees.parse_trees(["(S (NP (D the) (N house)) (V stands))"])
  view = list_views.parse_view(parsed, 0, ["the", "house", "stands"])
  assert view.values()["nodes"] == [
    ["S", 0, 3, -1],
    ["NP", 0, 2, 0],
    ["D", 0, 1, 1],
    ["N", 1, 2, 1],
    ["V", 2, 3, 0],
  ]


def test_search_without_forests_has_no_pruned_candidates(compared):
  model = compared.models[0]
  source = models.select_source(compared.source, np.array([0]))
  config = system.decode_config(tiny_report.SEARCH, model)
  ((result,),) = list(decoder.decode(model, source, config=config))
  chart = chart_views.chart_view(model, result, 0)
  assert not any(cell.pruned for cell in chart.cells)


def test_translations_without_nodes_are_read_as_before():
  plain = Translations(tune_hypothesis=[], test_hypothesis=[], metrics={})
  assert Translations.from_values(plain.to_values()).test_nodes is None
