"""The rule table of the training part, with its features."""

import dataclasses
import functools
from typing import Any

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar import native
from jaxmt.grammar.extract import extraction, ghkm, hiero, static_features
from jaxmt.grammar.extract.ghkm import GhkmOptions
from jaxmt.grammar.extract.hiero import HieroOptions
from jaxmt.grammar.extract.shards import CountOptions, Extractor
from jaxmt.grammar.table import Kind
from jaxmt.runtime.runner import Runner
from jaxmt.text import links as links_lib
from jaxmt.text import trees as trees_lib
from jaxmt.text import vocabulary
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
  """Raises `InputError` if the rules need trees, which are not there."""
  if config.kind in ("t2s", "joint"):
    raise InputError(
      f"config key 'grammar.kind': '{config.kind}' needs trees of the"
      " training source ('data.files.train_trees')"
    )


def extract(
  config: GrammarStageConfig, *, corpus: dict[str, Any], links: dict[str, Any]
) -> dict[str, Any]:
  """Extracts, counts and scores all rules of the training pairs.

  Args:
    config: see `GrammarStageConfig`.
    corpus: as `jaxmt.experiment.stages.corpus` makes it.
    links: "links" are the word links of its training part, Pharaoh lines.

  Returns:
    The table as `native.to_values` takes it apart; if asked for,
    "provenance_offsets", "provenance_rules" and "provenance_counts" (see
    `jaxmt.grammar.provenance`); "binarize": whether trees were; "metrics": the
    number of rules of each kind.
  """
  source_words = vocabulary.build([corpus["train_source"]])
  target_words = vocabulary.build([corpus["train_target"]])
  source = vocabulary.encode(source_words, corpus["train_source"])
  target = vocabulary.encode(target_words, corpus["train_target"])
  extractors: list[Extractor] = []
  trees = None
  if config.kind in ("hiero", "joint"):
    extractors.append(
      functools.partial(extraction.hiero_rules, options=config.hiero)
    )
  if config.kind in ("t2s", "joint"):
    if "train_trees" not in corpus:
      check_without_trees(config)
    trees = parse_trees(corpus["train_trees"], binarize=config.binarize)
    extractors.append(functools.partial(ghkm.tree_rules, options=config.trees))
  made = extraction.extract(
    source,
    target,
    links_lib.parse_links(
      links["links"],
      source_lengths=source.lengths,
      target_lengths=target.lengths,
    ),
    extractors,
    source_words=source_words,
    target_words=target_words,
    trees=trees,
    count=CountOptions(
      min_count=config.min_count, provenance=config.provenance
    ),
    runner=Runner(workers=2),
    alpha=config.alpha,
    features=config.features,
  )
  values = native.to_values(made.table) | {"binarize": config.binarize}
  if made.provenance is not None:
    values |= {
      "provenance_offsets": made.provenance.rules.offsets,
      "provenance_rules": made.provenance.rules.flat,
      "provenance_counts": made.provenance.counts,
    }
  kinds = np.bincount(made.table.kind, minlength=len(Kind))
  metrics = {
    "rules": len(made.table),
    "hiero": int(kinds[Kind.HIERO]),
    "tree_to_string": int(kinds[Kind.TREE_TO_STRING]),
  }
  return values | {"metrics": metrics}
