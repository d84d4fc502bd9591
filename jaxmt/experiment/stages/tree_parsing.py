"""Dependency trees of a corpus and phrase dependencies, as stages.

treebank -> parser (of each side)
corpus, parsers -> parse
corpus, links, grammar, parse -> dependencies
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from jaxmt.errors import InputError
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import PARTS, Corpus
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.grammar.dependency_table import DependencyTable
from jaxmt.grammar.extract import parsed_pairs, phrase_dependencies
from jaxmt.grammar.extract.phrase_dependencies import DependencyOptions
from jaxmt.parse import head_rules, text_parsing
from jaxmt.parse.sibling_parser import SiblingConfig
from jaxmt.parse.text_parsing import TextParser
from jaxmt.runtime.runner import Runner
from jaxmt.text import files, kernels, treebank, word_clusters
from jaxmt.text import trees as tree_lib
from jaxmt.text.ragged import from_rows
from jaxmt.text.trees import Trees

NONE, CONSTITUENTS = "none", "constituents"
SOURCE_KINDS = (NONE, CONSTITUENTS, *text_parsing.KINDS)
TARGET_KINDS = (NONE, CONSTITUENTS, *text_parsing.KINDS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParseConfig:
  """Where dependency trees come from.

  Attributes:
    source: trees of source sentences: "supervised", "unsupervised" (learnt from
      the tags of a treebank alone), "random", "constituents" (of the corpus, by
      head rules), or "none".
    target: trees of the training targets: the same, "constituents" are those of
      `target_trees`; "none" for no phrase dependencies.
    source_treebank: CoNLL-U, or `form TAB tag TAB head`; "" if not needed.
    target_treebank: the same of the target language.
    target_trees: file of constituents of the first training targets; all of
      those that are left after dropping pairs must have one.
    head_rules: of the source's constituents.
    target_head_rules: of the target's.
    epochs: of supervised parsers.
    clusters: of target words.
    seed: of random trees.
  """

  source: str = CONSTITUENTS
  target: str = "random"
  source_treebank: str = ""
  target_treebank: str = ""
  target_trees: str = ""
  head_rules: str = "chinese"
  target_head_rules: str = "english"
  epochs: int = 10
  clusters: int = 100
  seed: int = 0


def check(config: ParseConfig) -> None:
  """Raises `ValueError` for settings that make no sense."""
  for name, kind, known in (
    ("source", config.source, SOURCE_KINDS),
    ("target", config.target, TARGET_KINDS),
  ):
    if kind not in known:
      raise ValueError(f"parse.{name} '{kind}' is none of {', '.join(known)}")
    if kind in ("supervised", "unsupervised"):
      if not getattr(config, f"{name}_treebank"):
        raise ValueError(f"parse.{name}={kind} needs parse.{name}_treebank")
  if config.target == CONSTITUENTS and not config.target_trees:
    raise ValueError("parse.target=constituents needs parse.target_trees")
  for rules in (config.head_rules, config.target_head_rules):
    if rules not in head_rules.RULES:
      known = ", ".join(head_rules.RULES)
      raise ValueError(f"head rules '{rules}' are none of {known}")
  if config.clusters < 2 or config.epochs < 1:
    raise ValueError("parse: at least 2 clusters and 1 epoch")


def input_paths(config: ParseConfig) -> dict[str, str]:
  """Returns the files that parsers are learnt from, by side."""
  paths = {}
  for side in ("source", "target"):
    path = getattr(config, f"{side}_treebank")
    if path and getattr(config, side) in ("supervised", "unsupervised"):
      paths[side] = path
  return paths


def tree_paths(config: ParseConfig) -> dict[str, str]:
  """Returns the files of trees that are given, by parameter of `parse`."""
  given = config.target == CONSTITUENTS
  return {"target_trees": config.target_trees} if given else {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParsedCorpus(Record):
  """Dependency trees of a corpus; arrays are empty where there are none.

  Attributes:
    train_heads: heads of the training targets' words, int32.
    tune_heads: of the tuning sources' words.
    test_heads: of the test sources' words.
    clusters: of target words, lines of `word_clusters.to_lines`.
    metrics: numbers of trees.
  """

  train_heads: np.ndarray
  tune_heads: np.ndarray
  test_heads: np.ndarray
  clusters: list[str]
  metrics: dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParserLearningConfig:
  """How a parser of text is learnt, see `ParseConfig`."""

  kind: str
  epochs: int
  seed: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedParser(Record):
  """A parser of text."""

  parser: TextParser

  def to_values(self) -> dict[str, Any]:
    """Returns the parser as named values."""
    return text_parsing.to_values(self.parser)

  @classmethod
  def from_values(cls, values: Mapping[str, Any]) -> Self:
    """Returns the record of `to_values`."""
    return cls(parser=text_parsing.from_values(values))


def learning(config: ParseConfig) -> dict[str, ParserLearningConfig]:
  """Returns how the parser of each side is learnt that has one."""
  return {
    side: ParserLearningConfig(
      kind=kind, epochs=config.epochs, seed=config.seed
    )
    for side, kind in (("source", config.source), ("target", config.target))
    if kind in text_parsing.KINDS
  }


def learn(config: ParserLearningConfig, *, bank: str = "") -> LearnedParser:
  """Learns a parser from a treebank.

  Args:
    config: which, and how.
    bank: the file; "" for random trees.
  """
  try:
    parser = text_parsing.learn(
      config.kind,
      treebank.read_treebank(bank) if bank else None,
      trees=SiblingConfig(epochs=config.epochs),
      seed=config.seed,
    )
  except ValueError as error:
    raise InputError(str(error), path=bank or None) from error
  return LearnedParser(parser=parser)


def parse(
  config: ParseConfig,
  *,
  corpus: Corpus,
  source: LearnedParser | None = None,
  target: LearnedParser | None = None,
  target_trees: str = "",
) -> ParsedCorpus:
  """Parses the sources of tuning and test, and the targets of training.

  Args:
    config: see `ParseConfig`.
    corpus: the text.
    source: parser of its source side.
    target: parser of its target side.
    target_trees: the file that the config names, so that its content counts.

  Raises:
    InputError: for trees that are not of the corpus.
  """
  nothing = np.zeros(0, np.int32)
  tune_heads = test_heads = train_heads = nothing
  if config.source == CONSTITUENTS:
    tune_heads, test_heads = (
      _of_constituents(config, corpus, part) for part in PARTS
    )
  elif source is not None:
    tune_heads, test_heads = (
      text_parsing.parse(source.parser, corpus.part(part).source).heads
      for part in PARTS
    )
  clusters: list[str] = []
  if config.target == CONSTITUENTS:
    train_heads = _of_target_trees(config, target_trees, corpus.train_target)
  elif target is not None:
    train_heads = text_parsing.parse(target.parser, corpus.train_target).heads
  if config.target != NONE:
    cluster_of = word_clusters.cluster_words(
      corpus.train_target, clusters=config.clusters
    )
    clusters = word_clusters.to_lines(cluster_of)
  return ParsedCorpus(
    train_heads=train_heads,
    tune_heads=tune_heads,
    test_heads=test_heads,
    clusters=clusters,
    metrics={"target_words": len(train_heads), "test_words": len(test_heads)},
  )


def _of_constituents(config, corpus: Corpus, part: str) -> np.ndarray:
  """Heads of the source words of a part."""
  given = corpus.part(part)
  if given.trees is None:
    raise InputError("parse.source=constituents: the corpus has no trees")
  parsed = tree_lib.parse_trees(given.trees)
  return _heads(parsed, given.source, config.head_rules)


def _of_target_trees(config, path: str, lines: Sequence[str]) -> np.ndarray:
  """Heads of the words of the training targets."""
  parsed = tree_lib.parse_trees(files.read_lines(path), path=path)
  rows = tree_lib.rows_of(parsed, lines, path=path)
  chosen = tree_lib.select(parsed, rows)
  return _heads(chosen, lines, config.target_head_rules)


def _heads(parsed: Trees, lines: Sequence[str], rules: str) -> np.ndarray:
  """Heads by head rules; a sentence without a tree becomes a chain."""
  bank, rows = head_rules.dependencies(parsed, head_rules.RULES[rules])
  lengths = [len(line.split()) for line in lines]
  heads = [np.arange(-1, length - 1) for length in lengths]
  for place, row in enumerate(rows.tolist()):
    tree = bank.heads[bank.words.offsets[place] : bank.words.offsets[place + 1]]
    if len(tree) == lengths[row]:
      heads[row] = tree
  return from_rows(heads).flat


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseDependencies(Record):
  """A table of phrase dependencies, see `grammar.dependency_table`."""

  keys: np.ndarray
  values: np.ndarray
  sizes: np.ndarray
  metrics: dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractionConfig:
  """Most words of a phrase of a dependency."""

  length: int = 7


def extract(
  config: ExtractionConfig,
  *,
  corpus: Corpus,
  links: Links,
  grammar: Grammar,
  parsed: ParsedCorpus,
) -> PhraseDependencies:
  """Extracts the dependencies of phrases that tuning and test may use."""
  lines = [line for part in PARTS for line in corpus.part(part).source]
  table = table_of(
    lines,
    length=config.length,
    corpus=corpus,
    links=links,
    grammar=grammar,
    parsed=parsed,
  )
  return PhraseDependencies(
    keys=table.keys,
    values=table.values,
    sizes=table.sizes,
    metrics={"events": len(table)},
  )


def table_of(
  lines: Sequence[str],
  *,
  length: int,
  corpus: Corpus,
  links: Links,
  grammar: Grammar,
  parsed: ParsedCorpus,
) -> DependencyTable:
  """Returns the dependencies of phrases that translations of lines may use.

  Args:
    lines: source text.
    length: most words of a phrase.
    corpus: whose training part is extracted from.
    links: its word links.
    grammar: the phrase table.
    parsed: trees of the training targets, clusters.
  """
  clusters = word_clusters.read_lines(parsed.clusters)
  table = system.rule_table(grammar, lines=lines)
  bank = treebank.from_lines([x for x in corpus.train_target if x.split()])
  pairs = parsed_pairs.from_lines(
    corpus.train_source,
    corpus.train_target,
    links.links,
    dataclasses.replace(bank, heads=np.asarray(parsed.train_heads)),
    clusters,
  )
  return phrase_dependencies.extract(
    phrase_dependencies.split(pairs),
    options=DependencyOptions(
      length=length, known=parsed_pairs.known_phrases(table, clusters)
    ),
    runner=Runner(workers=kernels.available_threads()),
  )
