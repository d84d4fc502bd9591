"""Scores of features that depend on span or sentence, in charts.

The rules' own sparse features are part of their static scores already (see
`model.with_weights`). What is left are Word-Edges, and the features of
applications and sentences that `features.local_features` describes.
"""

import dataclasses

import numpy as np

from jaxmt.decode.chart.chart_layout import Chart, Layout
from jaxmt.decode.model import Model, Source
from jaxmt.features import feature_keys, rule_templates
from jaxmt.features.rule_templates import Applications, RuleTemplates, Text
from jaxmt.grammar.match.matching import Matches
from jaxmt.text.ragged import Ragged


def need_sentences(model: Model) -> bool:
  """Whether the model has features that depend on span or sentence."""
  return model.templates is not None and model.templates.need_sentences


def make_text(templates: RuleTemplates, source: Source) -> Text:
  """Returns the sentences as the templates read them."""
  tokens = Ragged(flat=source.copies, offsets=source.ids.offsets)
  return rule_templates.make_text(templates, tokens, source.words)


def of_matches(matches: Matches) -> Applications:
  """Returns the N applications of a chart."""
  counts = np.diff(matches.offsets)
  spread = lambda column: np.repeat(column, counts)
  return Applications(
    rule=matches.rule,
    begin=spread(matches.begin),
    end=spread(matches.end),
    sentence=spread(matches.sentence),
  )


def score_chart(
  model: Model, source: Source, matches: Matches, layout: Layout, chart: Chart
) -> Chart:
  """Returns the chart with these scores added to its static scores.

  Which applications a cell has was decided before, without them.

  Args:
    model: rules and weights.
    source: the chart's sentences.
    matches: its applications.
    layout: how its cells were numbered.
    chart: the chart.
  """
  if model.templates is None or not need_sentences(model):
    return chart
  extra = rule_templates.application_scores(
    model.templates,
    make_text(model.templates, source),
    of_matches(matches),
    feature_keys.make_table(model.weights),
  )
  counts = np.diff(matches.offsets)
  row = np.repeat(layout.cell, counts)
  column = np.arange(len(row)) - np.repeat(matches.offsets[:-1], counts)
  static = np.array(chart.static)
  static[row, column] += extra.astype(np.float32)
  return dataclasses.replace(chart, static=static)
