"""From artefacts to a model that decodes: what tuning and decoding share."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode import translator
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.model import Model
from jaxmt.decode.phrase import phrase_model
from jaxmt.decode.translator import Translator
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.grammar import Grammar, parse_trees
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.features import maxent_reordering, phrase_order, sentence_models
from jaxmt.features.sentence_models import SentenceModel
from jaxmt.grammar import estimate
from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.match import matching
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import RuleTable
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
    distortion: distortion limit of a phrase table, -1 for none.
    batch_cells: cells searched together.
    backend: "host", "device" or "auto", see `chart.search.SearchConfig`.
    threads: batches at a time; 0 for one per core. Results do not depend on
      it.
  """

  beam: int = 30
  pop: int = 200
  span: int = 10
  targets: int = 20
  distortion: int = phrase_order.DEFAULT_LIMIT
  batch_cells: int = 4096
  backend: str = "auto"
  threads: int = dataclasses.field(default=0, metadata={"matters": False})


def check(config: SearchStageConfig) -> None:
  """Raises `ValueError`, naming the field, for sizes that make no sense."""
  for name in ("beam", "span", "targets", "batch_cells"):
    if getattr(config, name) < 1:
      raise ValueError(f"{name} must be at least 1")
  if config.threads < 0:
    raise ValueError("threads must not be negative")
  if not -1 <= config.distortion <= phrase_order.WINDOW:
    raise ValueError(f"distortion is not in -1 to {phrase_order.WINDOW}")
  if config.pop < config.beam:
    raise ValueError("pop must be at least beam")
  if config.backend not in search.BACKENDS:
    raise ValueError(f"backend is none of {', '.join(search.BACKENDS)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Theta(Record):
  """Rule probabilities.

  Attributes:
    theta: natural logs in the order of `estimate.THETA`, float32 `[R, 5]`.
  """

  theta: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuned(Record):
  """Tuned weights.

  Attributes:
    weights: by name of the feature.
    templates: the sparse features among them, see
      `jaxmt.tune.kbest_decoder`.
    history: one record for each decoding.
    metrics: the best score, rounds, sizes.
    lattice: how a second pass over phrase lattices pruned, the values of
      `LatticeOptions`.
  """

  weights: dict[str, float]
  templates: list[str] = dataclasses.field(default_factory=list)
  history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
  metrics: dict[str, Any] | None = None
  lattice: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedModels(Record):
  """Models of rules in sentences, and of derivations.

  Attributes:
    models: see `jaxmt.features.sentence_models`.
    start: weights that they were trained with.
    metrics: how well they learned.
  """

  models: tuple[SentenceModel, ...]
  start: dict[str, float]
  metrics: dict[str, Any]

  def to_values(self) -> dict[str, Any]:
    """See `Record`."""
    values = sentence_models.to_values(self.models)
    return {**values, "start": self.start, "metrics": self.metrics}

  @classmethod
  def from_values(cls, values: Mapping[str, Any]) -> Self:
    """See `Record`."""
    return cls(
      models=sentence_models.from_values(values),
      start=values["start"],
      metrics=values["metrics"],
    )


def with_models(grammar: Grammar, trained: TrainedModels | None) -> Grammar:
  """Returns the rules with trained models beside those they have."""
  if trained is None:
    return grammar
  models = (*grammar.models, *trained.models)
  sentence_models.features(models)  # no name twice
  return dataclasses.replace(grammar, models=models)


def rule_table(
  grammar: Grammar,
  theta: Theta | None = None,
  *,
  lines: Sequence[str] | None = None,
) -> RuleTable:
  """Returns the rules, or those that some sentences can use.

  Args:
    grammar: R rules.
    theta: in place of those of `estimate.THETA` that the table has.
    lines: source sentences to filter for; None keeps all rules.
  """
  table = grammar.table
  if theta is not None:
    own = estimate.theta_names(table)
    columns = [estimate.THETA.index(name) for name in own]
    table = table_lib.with_features(table, own, theta.theta[:, columns])
  if lines is None:
    return table
  return filter_lib.filter_table(
    table, vocabulary.encode(table.source_words, lines)
  )


def part_model(
  config: SearchStageConfig,
  part: str,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  weights: Mapping[str, float],
  theta: Theta | None = None,
  all_rules: bool | None = None,
) -> tuple[Model, Ragged | None]:
  """Returns the model that decodes a part, and the part's constituents.

  Without trees the constituents are None.

  Args:
    config: limits of matching.
    part: "train", "tune" or "test".
    corpus: the text.
    grammar: the rules.
    lm: the language model.
    weights: by name of the feature.
    theta: rule probabilities, if not the grammar's own.
    all_rules: whether the model has all rules, numbered as the grammar does, or
      those that the part's sentences can use. By default only "train" has all.
  """
  if all_rules is None:
    all_rules = part == "train"
  lines = None if all_rules else corpus.part(part).source
  table = rule_table(grammar, theta, lines=lines)
  model = make_model(config, grammar, table=table, lm=lm, weights=weights)
  return model, constituents(model, corpus, part, binarize=grammar.binarize)


def make_model(
  config: SearchStageConfig,
  grammar: Grammar,
  *,
  table: RuleTable,
  lm: LanguageModel,
  weights: Mapping[str, float],
) -> Model:
  """Prepares rules, all or some of the grammar's, for decoding."""
  if grammar.kind == "phrase":
    return phrase_model.make_model(
      table,
      lm.tables,
      weights=weights,
      distortion=config.distortion,
      targets=config.targets,
      orientation=grammar.orientation,
      local=sentence_models.features(grammar.models),
    )
  return models.make_model(
    table,
    lm.tables,
    weights=weights,
    limits=MatchConfig(
      span=config.span,
      targets=config.targets,
      glue="needed" if grammar.kind == "btg" else "always",
    ),
    features=[
      *maxent_reordering.make_features(grammar.reordering),
      *sentence_models.stateful(
        grammar.models, table, lm.tables, grammar.reordering
      ),
    ],
    local=sentence_models.features(grammar.models),
  )


def constituents(
  model: Model, corpus: Corpus, part: str, *, binarize: bool
) -> Ragged | None:
  """Returns the constituents of a part's sentences, None without trees."""
  lines = corpus.part(part).trees
  if lines is None:
    return None
  trees = parse_trees(lines, binarize=binarize)
  return matching.constituents(trees, model.table.labels)


def make_translator(
  config: SearchStageConfig, model: Model, *, binarize: str = ""
) -> Translator:
  """Returns the model with the settings of the search."""
  return Translator(
    model=model,
    beam=config.beam,
    pop=config.pop,
    batch_cells=config.batch_cells,
    backend=config.backend,
    threads=config.threads,
    binarize=binarize,
  )


def decode_config(
  config: SearchStageConfig, model: Model, *, forest: bool = False
) -> DecodeConfig:
  """Returns the decoder's settings, the same for all weights of a model."""
  return translator.decode_config(make_translator(config, model), forest=forest)
