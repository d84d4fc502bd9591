"""Phrase-based models: phrase pairs, their order, a language model, weights."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.model import Model, Units
from jaxmt.decode.phrase.markup import MarkedPhrase, Marks
from jaxmt.errors import InputError
from jaxmt.features import phrase_order
from jaxmt.grammar import reordering
from jaxmt.grammar import table as tables
from jaxmt.grammar.extract.phrases import SCORES
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.lm.tables import Tables
from jaxmt.text import vocabulary
from jaxmt.text.ragged import Ragged, row_offsets

_MOSES_SCORES = "TranslationModel"
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


def with_marked(model: Model, marks: Marks) -> tuple[Model, Marks]:
  """Returns the model with marked translations as phrase pairs of their own.

  They match nowhere by themselves; the marks that are returned say where they
  apply. Their ln p is shared by the probabilities of the table; what every
  phrase pair counts, such as a phrase penalty, they count, too.

  Args:
    model: a phrase-based model.
    marks: of all sentences.
  """
  if not marks.phrases:
    return model, marks
  table = model.table
  if model.order is not None and model.order.values is not None:
    names = model.order.names[1:]
    table = tables.with_features(table, names, model.order.values[:-1])
  added = _marked_table(table, marks.phrases)
  size = int(np.sum(table.kind == Kind.HIERO))
  made = make_model(
    tables.concatenate([table, added]),
    model.lm,
    weights=model.weights,
    units=model.units,
    distortion=model.phrase_order.limit,
    targets=model.limits.targets,
    orientation="hierarchical" if model.phrase_order.hierarchical else "word",
    local=model.local,
  )
  end = made.trie.end.copy()
  end[size : size + len(added)] = -1
  made = dataclasses.replace(
    made, trie=dataclasses.replace(made.trie, end=end), limits=model.limits
  )
  options = marks.options.flat + np.array([0, 0, size], np.int32)
  return models.with_weights(made, model.weights), dataclasses.replace(
    marks, options=Ragged(flat=options, offsets=marks.options.offsets)
  )


def _marked_table(
  table: RuleTable, phrases: Sequence[MarkedPhrase]
) -> RuleTable:
  """Marked translations as a table of the same columns."""
  texts = [
    [" ".join(words) for words in side]
    for side in zip(*((one.source, one.target) for one in phrases), strict=True)
  ]
  source, target = (vocabulary.build([lines]) for lines in texts)
  pairs = table.kind == Kind.HIERO
  shared = [
    name in SCORES or name.startswith(_MOSES_SCORES)
    for name in table.feature_names
  ]
  features = np.zeros((len(phrases), len(shared)))
  # What all phrase pairs count once.
  features[:, (table.features[pairs] == 1).all(0) & pairs.any()] = 1.0
  logs = np.array([one.log_probability for one in phrases])
  features[:, shared] = (logs / max(sum(shared), 1))[:, None]
  links = [
    [(min(t, len(one.source) - 1), t) for t in range(len(one.target))]
    for one in phrases
  ]
  return tables.make_table(
    source_words=source,
    target_words=target,
    labels=table.labels,
    source=vocabulary.encode(source, texts[0]),
    target=vocabulary.encode(target, texts[1]),
    links=Ragged(
      flat=np.array(list(itertools.chain(*links)), np.int16).reshape(-1, 2),
      offsets=row_offsets([len(row) for row in links]),
    ),
    features=features,
    feature_names=table.feature_names,
  )
