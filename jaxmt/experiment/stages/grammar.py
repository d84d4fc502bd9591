"""The rule table of the training part, with its features."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from jaxmt.errors import InputError
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus, encode_training
from jaxmt.grammar import native
from jaxmt.grammar.extract import extraction, ghkm, hiero, static_features
from jaxmt.grammar.extract.ghkm import GhkmOptions
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions, Extractor
from jaxmt.grammar.provenance import Provenance
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.runtime.runner import Runner
from jaxmt.text import trees as trees_lib
from jaxmt.text.binarize import binarize_left_heavy
from jaxmt.text.trees import Trees

KINDS = ("hiero", "t2s", "joint")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GrammarStageConfig:
  """What to extract.

  Attributes:
    kind: "hiero", "t2s" (tree-to-string) or "joint", both.
    hiero: limits of Hiero rules and phrase pairs.
    trees: limits of tree-to-string rules.
    binarize: make source trees binary, left-heavy; in decoding too.
    min_count: rules seen less often are dropped, word pairs excepted.
    alpha: of add-alpha smoothing of the relative frequencies.
    provenance: keep which sentence gave which rule, for leaving one out.
    features: static features beside the standard ones, by name (see
      `jaxmt.grammar.extract.static_features`).
  """

  kind: str = "joint"
  hiero: HieroOptions = dataclasses.field(default_factory=HieroOptions)
  trees: GhkmOptions = dataclasses.field(default_factory=GhkmOptions)
  binarize: bool = False
  min_count: int = 1
  alpha: float = 0.0
  provenance: bool = True
  features: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grammar(Record):
  """The rules of the training part.

  Attributes:
    table: R rules with their features.
    provenance: which sentence gave which rule, or None.
    binarize: whether source trees were binarised.
    metrics: the number of rules of each kind.
  """

  table: RuleTable
  provenance: Provenance | None = None
  binarize: bool = False
  metrics: dict[str, int]

  def to_values(self) -> dict[str, Any]:
    """See `Record`; the table's columns are values of their own."""
    values = native.to_values(self.table)
    values |= {"binarize": self.binarize, "metrics": self.metrics}
    if self.provenance is not None:
      values |= {
        "provenance_offsets": self.provenance.rules.offsets,
        "provenance_rules": self.provenance.rules.flat,
        "provenance_counts": self.provenance.counts,
      }
    return values

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
    static_features.find(config.features)
  except ValueError as error:
    raise InputError(f"config key 'grammar': {error}") from error


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


def extract(
  config: GrammarStageConfig, *, corpus: Corpus, links: Links
) -> Grammar:
  """Extracts, counts and scores all rules of the training pairs.

  Args:
    config: see `GrammarStageConfig`.
    corpus: the text.
    links: of its training part.
  """
  pairs = encode_training(corpus, links.links)
  extractors: list[Extractor] = []
  trees = None
  if config.kind in ("hiero", "joint"):
    extractors.append(
      functools.partial(extraction.hiero_rules, options=config.hiero)
    )
  if config.kind in ("t2s", "joint"):
    if corpus.train_trees is None:
      raise _needs_trees(config)
    trees = parse_trees(corpus.train_trees, binarize=config.binarize)
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
  kinds = np.bincount(extracted.table.kind, minlength=len(Kind))
  return Grammar(
    table=extracted.table,
    provenance=extracted.provenance,
    binarize=config.binarize,
    metrics={
      "rules": len(extracted.table),
      "hiero": int(kinds[Kind.HIERO]),
      "tree_to_string": int(kinds[Kind.TREE_TO_STRING]),
    },
  )
