"""Phrase-based models: phrase pairs, their order, a language model, weights."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.model import Model, Units
from jaxmt.errors import InputError
from jaxmt.features import phrase_order
from jaxmt.grammar import reordering
from jaxmt.grammar import table as tables
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.lm.tables import Tables

_LONGEST = 1000  # no limit on the length of phrases beyond the table's


def phrases_only(table: RuleTable, units: Units) -> RuleTable:
  """Returns the phrase pairs of a table and one rule that copies words.

  Columns of features that only glue rules have go.

  Raises:
    InputError: if a rule has non-terminals, glue excepted, or is
      tree-to-string.
  """
  kinds = np.isin(table.kind, (Kind.HIERO, Kind.PASS_THROUGH))
  wrong = (table.kind == Kind.TREE_TO_STRING) | (
    kinds & (tables.arity(table) > 0)
  )
  if wrong.any():
    text = tables.rule_text(table, int(np.flatnonzero(wrong)[0]))
    raise InputError(f"not a phrase table: it has the rule {text}")
  copies = np.flatnonzero(table.kind == Kind.PASS_THROUGH)[:1]
  kept = np.concatenate([np.flatnonzero(table.kind == Kind.HIERO), copies])
  out = tables.select(table, kept)
  if not len(copies):
    own = tables.glue_rules(table.source_words, table.target_words)
    copy = tables.select(own, own.kind == Kind.PASS_THROUGH)
    copy = tables.with_features(copy, (units.pass_through,), np.ones((1, 1)))
    out = tables.concatenate([out, copy])
  glue = table.features[table.kind == Kind.GLUE].any(0)
  glue = {n for n, yes in zip(table.feature_names, glue, strict=True) if yes}
  columns = [
    column
    for column, name in enumerate(out.feature_names)
    if name not in glue or out.features[:, column].any()
  ]
  return dataclasses.replace(
    out,
    features=np.ascontiguousarray(out.features[:, columns]),
    feature_names=tuple(out.feature_names[column] for column in columns),
  )


def make_model(
  table: RuleTable,
  lm: Tables,
  *,
  weights: Mapping[str, float],
  units: Units = models.DIALECTS["jaxmt"],
  distortion: int = phrase_order.DEFAULT_LIMIT,
  targets: int = 20,
  orientation: str = "word",
  **options: Any,
) -> Model:
  """Prepares a phrase table for decoding.

  Args:
    table: phrase pairs, with the columns `units.reordering` if there is a
      reordering model.
    lm: the language model.
    weights: weights by feature name.
    units: names and units of the other features.
    distortion: the distortion limit; -1 for none.
    targets: target sides per source phrase.
    orientation: kind of the reordering model, see `orientations.KINDS`.
    **options: of `models.make_model`.

  Raises:
    InputError: if the table is no phrase table, or the limit is out of range.
  """
  table = phrases_only(table, units)
  table, values = reordering.detach(table, names=units.reordering)
  order = phrase_order.make_order(
    len(table),
    values,
    limit=distortion,
    distortion=units.distortion,
    names=units.reordering,
    hierarchical=orientation == "hierarchical",
  )
  return models.make_model(
    table,
    lm,
    weights=weights,
    units=units,
    limits=MatchConfig(span=_LONGEST, targets=targets),
    order=order,
    **options,
  )
