"""Systems of our own in the terms of another toolkit: rules and weights.

A toolkit's decoder adds glue and copied words itself and measures the language
model and the length in its own units (`features.weights.Units`), so weights
are scaled such that every derivation has the score that it has here. cdec and
Travatar do not count the first glue rule of a sentence: their scores differ by
a constant, the same for all translations.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxmt.errors import InputError
from jaxmt.features.weights import DIALECTS
from jaxmt.grammar import formats
from jaxmt.grammar import table as tables
from jaxmt.grammar.table import Kind, RuleTable

FORMATS = ("cdec", "moses", "joshua", "travatar")
_MOSES = "TranslationModel0_"


def to_dialect(
  table: RuleTable, weights: Mapping[str, float], dialect: str
) -> tuple[RuleTable, dict[str, float]]:
  """Returns the rules that a toolkit's file has, and its weights.

  Args:
    table: rules of our own, glue included.
    weights: of their features and of those of the search, in our units.
    dialect: one of `FORMATS`.

  Raises:
    InputError: if the format has no place for tree-to-string rules.
  """
  if dialect == "joshua" and (table.kind == Kind.TREE_TO_STRING).any():
    raise InputError("Joshua's format has no tree-to-string rules")
  added = np.isin(table.kind, [Kind.GLUE, Kind.PASS_THROUGH])
  rules = tables.select(table, ~added)
  used = np.flatnonzero(rules.features.any(axis=0)).tolist()
  names = [table.feature_names[column] for column in used]
  written = names
  if dialect == "moses":  # values have no names there, only places
    written = [f"{_MOSES}{place}" for place in range(len(names))]
  rules = dataclasses.replace(
    rules,
    features=np.ascontiguousarray(rules.features[:, used]),
    feature_names=tuple(written),
  )
  search = _search_weights(weights, dialect)
  known = {*table.feature_names, *DIALECTS["jaxmt"].search_names}
  others = {n: w for n, w in weights.items() if n not in known}
  result = others | _decoder_weights(table, weights, dialect) | search
  for name, new in zip(names, written, strict=True):
    result[new] = weights.get(name, 0.0)
  return rules, result


def _search_weights(
  weights: Mapping[str, float], dialect: str
) -> dict[str, float]:
  """Weights of the features that are no columns, in the toolkit's units."""
  ours, theirs = DIALECTS["jaxmt"], DIALECTS[dialect]
  scales = {name: 1.0 for name in ours.search_names}
  scales[ours.lm] = ours.lm_scale / theirs.lm_scale
  scales[ours.words] = ours.per_word / theirs.per_word
  pairs = zip(ours.search_names, theirs.search_names, strict=True)
  return {
    new: weights[name] * scales[name] for name, new in pairs if name in weights
  }


def _decoder_weights(
  table: RuleTable, weights: Mapping[str, float], dialect: str
) -> dict[str, float]:
  """Weights of glue and copied words such that they score as our rules do."""
  vector = np.array([weights.get(name, 0.0) for name in table.feature_names])
  spec = formats.find(dialect)
  arity = tables.arity(table)
  result = {}
  for features, chosen in (
    (spec.later_glue, (table.kind == Kind.GLUE) & (arity == 2)),
    (spec.copy, (table.kind == Kind.PASS_THROUGH) & (arity == 0)),
  ):
    rows = np.flatnonzero(chosen)
    ((name, value),) = features.items()
    score = float(table.features[rows[0]] @ vector) if len(rows) else 0.0
    result[name] = score / value
  return result
