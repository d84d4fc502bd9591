"""The rule table of the training part, with its features."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from jaxmt.errors import InputError
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import (
  Corpus,
  TrainingPairs,
  encode_training,
)
from jaxmt.features import maxent_reordering, sentence_models
from jaxmt.features.maxent_reordering import MaxEntOptions, ReorderingModel
from jaxmt.features.sentence_models import SentenceModel
from jaxmt.grammar import btg, native, pair_quality
from jaxmt.grammar import provenance as provenance_lib
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import (
  block_pairs,
  extraction,
  ghkm,
  hiero,
  phrases,
  static_features,
)
from jaxmt.grammar.extract.ghkm import GhkmOptions
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.phrases import PhraseOptions
from jaxmt.grammar.extract.shards import CountOptions, Extractor
from jaxmt.grammar.pair_quality import WalkOptions
from jaxmt.grammar.provenance import Provenance
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.runtime.runner import Runner
from jaxmt.text import array_folder, ragged
from jaxmt.text import trees as trees_lib
from jaxmt.text.binarize import binarize_left_heavy
from jaxmt.text.trees import Trees

_NO_TREE = "()"  # of a sentence without words
KINDS = ("hiero", "t2s", "joint", "phrase", "btg")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GrammarStageConfig:
  """What to extract.

  Attributes:
    kind: "hiero", "t2s" (tree-to-string), "joint", both, "phrase": a phrase
      table, which is searched from left to right, or "btg": phrase pairs in a
      bracketing grammar with maximum-entropy reordering.
    phrases: which phrase pairs a phrase table or a "btg" has, and how those of
      a phrase table are scored.
    hiero: limits of Hiero rules and phrase pairs.
    trees: limits of tree-to-string rules.
    binarize: make source trees binary, left-heavy; in decoding too.
    min_count: rules seen less often are dropped, word pairs excepted.
    alpha: of add-alpha smoothing of the relative frequencies.
    provenance: keep which sentence gave which rule, for leaving one out.
    features: static features beside the standard ones, by name (see
      `jaxmt.grammar.extract.static_features`).
    keep: share of the training pairs that rules are extracted from, those of
      best quality (see `jaxmt.grammar.pair_quality`).
    weighted: add two translation probabilities from counts that are weighted
      by the quality of sentence pairs (see `jaxmt.grammar.pair_quality`).
    walk: how that quality is found.
    reordering: training of a "btg"'s reordering model.
    models: folders of `launch/embed.py` with trained features of rules in
      sentences.
    similarity: drop rules less similar in both directions than this, by the
      one of `models` that knows (see `jaxmt.features.phrase_similarity`); -1
      drops none.
    similar_best: most similar rules of a source side that stay anyway.
  """

  kind: str = "joint"
  hiero: HieroOptions = dataclasses.field(default_factory=HieroOptions)
  trees: GhkmOptions = dataclasses.field(default_factory=GhkmOptions)
  binarize: bool = False
  min_count: int = 1
  alpha: float = 0.0
  provenance: bool = True
  phrases: PhraseOptions = dataclasses.field(default_factory=PhraseOptions)
  features: tuple[str, ...] = ()
  keep: float = 1.0
  weighted: bool = False
  walk: WalkOptions = dataclasses.field(default_factory=WalkOptions)
  reordering: MaxEntOptions = dataclasses.field(default_factory=MaxEntOptions)
  models: tuple[str, ...] = ()
  similarity: float = -1.0
  similar_best: int = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grammar(Record):
  """The rules of the training part.

  Attributes:
    table: R rules with their features.
    provenance: which sentence gave which rule, or None.
    binarize: whether source trees were binarised.
    kind: "phrase" for a phrase table, "btg" for a bracketing grammar, otherwise
      empty.
    orientation: kind of a phrase table's reordering model.
    reordering: the reordering model of a BTG, or None.
    models: trained features of rules in sentences.
    metrics: the number of rules of each kind; how well reordering is known.
  """

  table: RuleTable
  provenance: Provenance | None = None
  binarize: bool = False
  kind: str = ""
  orientation: str = ""
  reordering: ReorderingModel | None = None
  models: tuple[SentenceModel, ...] = ()
  metrics: dict[str, Any]

  def to_values(self) -> dict[str, Any]:
    """See `Record`; the table's columns are values of their own."""
    values = native.to_values(self.table)
    values |= {"binarize": self.binarize, "metrics": self.metrics}
    values |= {"search": self.kind, "orientation": self.orientation}
    if self.provenance is not None:
      values |= {
        "provenance_offsets": self.provenance.rules.offsets,
        "provenance_rules": self.provenance.rules.flat,
        "provenance_counts": self.provenance.counts,
      }
    if self.reordering is not None:
      values |= maxent_reordering.to_values(self.reordering)
    return values | sentence_models.to_values(self.models)

  @classmethod
  def from_values(cls, values: Mapping[str, Any]) -> Self:
    """See `Record`."""
    provenance = None
    if "provenance_rules" in values:
      provenance = native.provenance_from_values(dict(values))
    return cls(
      table=native.from_values(dict(values)),
      provenance=provenance,
      binarize=values["binarize"],
      kind=values.get("search", ""),
      orientation=values.get("orientation", ""),
      reordering=maxent_reordering.from_values(values)
      if "reordering_theta" in values
      else None,
      models=sentence_models.from_values(values),
      metrics=values["metrics"],
    )


def check(config: GrammarStageConfig) -> None:
  """Raises `InputError` for settings that make no sense."""
  if config.kind not in KINDS:
    raise InputError(
      f"config key 'grammar.kind': '{config.kind}' is none of"
      f" {', '.join(KINDS)}"
    )
  try:
    hiero.check_options(config.hiero)
    ghkm.check_options(config.trees)
    phrases.check_options(config.phrases)
    static_features.find(config.features)
    pair_quality.check_options(config.walk)
    maxent_reordering.check_options(config.reordering)
  except ValueError as error:
    raise InputError(f"config key 'grammar': {error}") from error
  if config.kind == "btg" and (
    config.phrases.smoothing != "none" or config.phrases.significance
  ):
    raise InputError("config key 'grammar.phrases': a btg has only 'length'")
  if config.similarity > -1 and not config.models:
    raise InputError("config key 'grammar.similarity' needs 'grammar.models'")
  if config.similar_best < 0:
    raise InputError("config key 'grammar.similar_best' must not be negative")
  if not 0 < config.keep <= 1:
    raise InputError("config key 'grammar.keep' is not above 0 and at most 1")
  if config.weighted and not config.provenance:
    raise InputError("config key 'grammar.weighted' needs 'provenance'")


def parse_trees(lines: list[str], *, binarize: bool) -> Trees:
  """Reads trees the way the grammar's rules were extracted from them."""
  parsed = trees_lib.parse_trees(lines)
  return binarize_left_heavy(parsed) if binarize else parsed


def check_without_trees(config: GrammarStageConfig) -> None:
  """Raises `InputError` if the rules cannot do without trees."""
  if config.kind in ("t2s", "joint"):
    raise _needs_trees(config)


def _needs_trees(config: GrammarStageConfig) -> InputError:
  return InputError(
    f"config key 'grammar.kind': '{config.kind}' needs trees of the"
    " training source ('data.files.train_trees')"
  )


def input_paths(config: GrammarStageConfig) -> dict[str, str]:
  """Returns the files that the rules depend on beside the text."""
  return {
    f"model{place}": f"{folder}/{array_folder.MANIFEST}"
    for place, folder in enumerate(config.models)
  }


def extract(
  config: GrammarStageConfig, *, corpus: Corpus, links: Links, **manifests: str
) -> Grammar:
  """Extracts, counts and scores all rules of the training pairs.

  Args:
    config: see `GrammarStageConfig`.
    corpus: the text.
    links: of its training part.
    **manifests: those of the folders of `config.models`.
  """
  del manifests  # they tell the content of the folders
  grammar = _extract(config, corpus, links)
  models = sentence_models.read_all(config.models, grammar.table)
  grammar = dataclasses.replace(grammar, models=models)
  return _without_dissimilar(config, grammar)


def _without_dissimilar(
  config: GrammarStageConfig, grammar: Grammar
) -> Grammar:
  """Drops the rules that `config.similarity` says."""
  if config.similarity <= -1:
    return grammar
  stays = sentence_models.similar_rules(
    grammar.models,
    grammar.table,
    threshold=config.similarity,
    best=config.similar_best,
  )
  provenance = grammar.provenance
  return dataclasses.replace(
    grammar,
    table=table_lib.select(grammar.table, stays),
    provenance=provenance and provenance_lib.select(provenance, stays),
    metrics=grammar.metrics | {"similar": int(stays.sum())},
  )


def _extract(
  config: GrammarStageConfig, corpus: Corpus, links: Links
) -> Grammar:
  """The rules, without trained features."""
  pairs, weights = _judged(config, encode_training(corpus, links.links))
  if config.kind == "phrase":
    return _phrase_table(config, pairs, weights)
  extractors: list[Extractor] = []
  trees = None
  if config.kind in ("hiero", "joint"):
    extractors.append(
      functools.partial(extraction.hiero_rules, options=config.hiero)
    )
  if config.kind == "btg":
    limits = config.phrases.limits
    extractors.append(functools.partial(extraction.hiero_rules, options=limits))
  if config.kind in ("t2s", "joint"):
    if corpus.train_trees is None:
      raise _needs_trees(config)
    dropped = pairs.source.lengths == 0
    lines = [
      _NO_TREE if gone else line
      for gone, line in zip(dropped, corpus.train_trees, strict=True)
    ]
    trees = parse_trees(lines, binarize=config.binarize)
    extractors.append(functools.partial(ghkm.tree_rules, options=config.trees))
  extracted = extraction.extract(
    pairs.source,
    pairs.target,
    pairs.links,
    extractors,
    source_words=pairs.source_words,
    target_words=pairs.target_words,
    trees=trees,
    count=CountOptions(
      min_count=config.min_count, provenance=config.provenance
    ),
    runner=Runner(workers=2),
    alpha=config.alpha,
    features=config.features,
  )
  table = _with_weighted(config, extracted.table, extracted.provenance, weights)
  reordering, known = None, {}
  if config.kind == "btg":
    table = btg.with_joining_rules(table)
    reordering, known = _reordering(config, pairs)
  kinds = np.bincount(table.kind, minlength=len(Kind))
  return Grammar(
    table=table,
    provenance=extracted.provenance,
    binarize=config.binarize,
    kind="btg" if config.kind == "btg" else "",
    reordering=reordering,
    metrics={
      "rules": len(table),
      "hiero": int(kinds[Kind.HIERO]),
      "tree_to_string": int(kinds[Kind.TREE_TO_STRING]),
      **known,
    },
  )


def _reordering(config: GrammarStageConfig, pairs):
  """The reordering model of a BTG, and what its training saw."""
  blocks = block_pairs.find(
    pairs.source,
    pairs.target,
    pairs.links,
    longest=config.reordering.longest,
  )
  model, report = maxent_reordering.train(
    blocks.words,
    blocks.inverted,
    blocks.sentence,
    source_words=pairs.source_words,
    target_words=pairs.target_words,
    options=config.reordering,
  )
  return model, {
    f"reordering_{name}": value
    for name, value in dataclasses.asdict(report).items()
  }


def _judged(
  config: GrammarStageConfig, pairs: TrainingPairs
) -> tuple[TrainingPairs, np.ndarray | None]:
  """The pairs to extract from, dropped ones empty, and weights of all.

  Without weights if nothing needs them.
  """
  if not config.weighted and config.keep == 1:
    return pairs, None
  weights = pair_quality.pair_weights(
    pairs.source,
    pairs.target,
    pairs.links,
    source_words=pairs.source_words,
    target_words=pairs.target_words,
    options=config.walk,
    runner=Runner(workers=2),
  )
  stays = pair_quality.best_pairs(weights, config.keep)
  return dataclasses.replace(
    pairs,
    source=ragged.emptied(pairs.source, ~stays),
    target=ragged.emptied(pairs.target, ~stays),
    links=ragged.emptied(pairs.links, ~stays),
  ), weights


def _with_weighted(
  config: GrammarStageConfig,
  table: RuleTable,
  provenance: Provenance | None,
  weights: np.ndarray | None,
) -> RuleTable:
  """Adds the probabilities that `config.weighted` asks for."""
  if not config.weighted or provenance is None or weights is None:
    return table
  values = pair_quality.weighted_probabilities(
    table, provenance, weights, alpha=config.alpha
  )
  return table_lib.with_features(table, pair_quality.NAMES, values)


def _phrase_table(
  config: GrammarStageConfig,
  pairs: TrainingPairs,
  weights: np.ndarray | None,
) -> Grammar:
  """The phrase table of the training pairs."""
  extracted = phrases.extract(
    pairs.source,
    pairs.target,
    pairs.links,
    source_words=pairs.source_words,
    target_words=pairs.target_words,
    options=config.phrases,
    count=CountOptions(
      min_count=config.min_count, provenance=config.provenance
    ),
    runner=Runner(workers=2),
  )
  table = _with_weighted(config, extracted.table, extracted.provenance, weights)
  return Grammar(
    table=table,
    provenance=extracted.provenance,
    kind="phrase",
    orientation=config.phrases.reordering,
    metrics={"rules": len(table)},
  )
