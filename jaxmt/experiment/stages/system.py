"""From artefacts to a model that decodes: what tuning and decoding share."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxmt.decode import model as models
from jaxmt.decode import translator
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.model import Model
from jaxmt.decode.translator import Translator
from jaxmt.experiment.stages.grammar import parse_trees
from jaxmt.grammar import estimate, native
from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.match import matching
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import RuleTable
from jaxmt.lm.tables import Tables
from jaxmt.text import vocabulary
from jaxmt.text.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchStageConfig:
  """How to search.

  Attributes:
    beam: hypotheses per cell.
    pop: candidates scored with the language model per cell.
    span: longest Hiero span.
    targets: target sides per source pattern.
    batch_cells: cells searched together.
    threads: batches at a time; 0 takes one for each core. Results do not
      depend on it.
  """

  beam: int = 30
  pop: int = 200
  span: int = 10
  targets: int = 20
  batch_cells: int = 4096
  threads: int = dataclasses.field(default=0, metadata={"matters": False})


def check(config: SearchStageConfig) -> None:
  """Raises `ValueError`, naming the field, for sizes that make no sense."""
  for name in ("beam", "span", "targets", "batch_cells"):
    if getattr(config, name) < 1:
      raise ValueError(f"{name} must be at least 1")
  if config.threads < 0:
    raise ValueError("threads must not be negative")
  if config.pop < config.beam:
    raise ValueError("pop must be at least beam")


def language_model(lm: Mapping[str, Any]) -> Tables:
  """Returns the model that `jaxmt.experiment.stages.lm` made."""
  return Tables(
    check=lm["check"],
    follow=lm["follow"],
    score=lm["score"],
    length=lm["length"],
    words=tuple(lm["words"]),
    **lm["facts"],
  )


def rule_table(
  grammar: Mapping[str, Any],
  theta: Mapping[str, Any] | None = None,
  *,
  lines: Sequence[str] | None = None,
) -> RuleTable:
  """Returns the rules, or those that some sentences can use.

  Args:
    grammar: from `jaxmt.experiment.stages.grammar`, R rules.
    theta: "theta" `[R, 5]` in place of the table's own `estimate.THETA`.
    lines: source sentences to filter for; None keeps everything.
  """
  table = native.from_values(dict(grammar))
  if theta is not None:
    table = table_lib.with_features(table, estimate.THETA, theta["theta"])
  if lines is None:
    return table
  return filter_lib.filter_table(
    table, vocabulary.encode(table.source_words, lines)
  )


def make_model(
  config: SearchStageConfig,
  *,
  table: RuleTable,
  lm: Mapping[str, Any],
  weights: Mapping[str, float],
) -> Model:
  """Prepares rules for decoding."""
  return models.make_model(
    table,
    language_model(lm),
    weights=weights,
    limits=MatchConfig(span=config.span, targets=config.targets),
  )


def constituents(
  model: Model, corpus: Mapping[str, Any], part: str, *, binarize: bool
) -> Ragged | None:
  """Returns the constituents of a part's sentences, if there are trees."""
  if f"{part}_trees" not in corpus:
    return None
  trees = parse_trees(corpus[f"{part}_trees"], binarize=binarize)
  return matching.constituents(trees, model.table.labels)


def make_translator(
  config: SearchStageConfig, model: Model, *, binarize: bool = False
) -> Translator:
  """Returns the model with the settings of the search."""
  return Translator(
    model=model,
    beam=config.beam,
    pop=config.pop,
    batch_cells=config.batch_cells,
    threads=config.threads,
    binarize=binarize,
  )


def decode_config(
  config: SearchStageConfig, model: Model, *, forest: bool = False
) -> DecodeConfig:
  """Returns the decoder's settings, the same for all weights of a model."""
  return translator.decode_config(make_translator(config, model), forest=forest)
