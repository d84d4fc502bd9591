"""Translation with dependency trees over phrases, as stages of an experiment.

    corpus, treebanks -> parse
    corpus, links, grammar, parse -> dependencies
    all of them, and the baseline's weights -> tune -> decode

The coarse pass is the baseline's phrase-based search with its tuned weights.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmt.decode.dependency import (
  configurations,
  tree_translator,
)
from jaxmt.decode.dependency.configurations import SourceTree
from jaxmt.decode.dependency.phrase_trees import PhraseTree
from jaxmt.decode.dependency.probabilities import Dependencies
from jaxmt.decode.dependency.tree_translator import ParsingTask, TreeOptions
from jaxmt.errors import InputError
from jaxmt.experiment.record import Record
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages import tune as tune_stage
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import PARTS, Corpus, Translations
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import SearchStageConfig, Tuned
from jaxmt.grammar import dependency_table
from jaxmt.grammar.extract import parsed_pairs, phrase_dependencies
from jaxmt.grammar.extract.phrase_dependencies import DependencyOptions
from jaxmt.parse import head_rules, text_parsing
from jaxmt.parse.sibling_parser import SiblingConfig
from jaxmt.runtime.checkpoint import Store
from jaxmt.runtime.runner import Runner
from jaxmt.text import kernels, treebank, word_clusters
from jaxmt.text import trees as tree_lib
from jaxmt.text.ragged import from_rows

NONE, CONSTITUENTS = "none", "constituents"
SOURCE_KINDS = (NONE, CONSTITUENTS, *text_parsing.KINDS)
TARGET_KINDS = (NONE, *text_parsing.KINDS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParseConfig:
  """Where dependency trees come from.

  Attributes:
    source: trees of source sentences: "supervised", "unsupervised" (learnt from
      the tags of a treebank alone), "random", "constituents" (of the corpus, by
      head rules), or "none".
    target: trees of the training targets: "none" for no phrase dependencies.
    source_treebank: CoNLL-U, or `form TAB tag TAB head`; "" if not needed.
    target_treebank: the same of the target language.
    head_rules: of the source's constituents.
    epochs: of supervised parsers.
    clusters: of target words.
    seed: of random trees.
  """

  source: str = CONSTITUENTS
  target: str = "random"
  source_treebank: str = ""
  target_treebank: str = ""
  head_rules: str = "chinese"
  epochs: int = 10
  clusters: int = 100
  seed: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreesConfig:
  """Settings of the system with trees over phrases.

  Attributes:
    parse: where trees come from.
    edges: most edges of a lattice.
    source_limit: most source words between linked phrases.
    target_limit: most target words between them.
    groups: groups of features, of `configurations.GROUPS`.
    unit: "phrases" or "words".
    length: most words of the phrases of dependencies.
    method: a name of `jaxmt.tune.methods`.
    options: settings of the method, "name=value" each.
    rounds: optimisations.
    nbest: candidates of a list.
    pictures: test sentences whose trees the report draws.
  """

  parse: ParseConfig = dataclasses.field(default_factory=ParseConfig)
  edges: int = 500
  source_limit: int = 15
  target_limit: int = 20
  groups: tuple[str, ...] = configurations.GROUPS
  unit: str = "phrases"
  length: int = 7
  method: str = "ramp3"
  options: tuple[str, ...] = ()
  rounds: int = 10
  nbest: int = 150
  pictures: int = 20

  @property
  def lattices(self) -> TreeOptions:
    """How lattices are made and parsed."""
    return TreeOptions(
      edges=self.edges,
      source_limit=self.source_limit,
      target_limit=self.target_limit,
      groups=self.groups,
      unit=self.unit,
    )


def check(config: TreesConfig) -> None:
  """Raises `ValueError` for settings that make no sense."""
  tree_translator.check(config.lattices)
  parse = config.parse
  for name, kind, known in (
    ("source", parse.source, SOURCE_KINDS),
    ("target", parse.target, TARGET_KINDS),
  ):
    if kind not in known:
      raise ValueError(f"parse.{name} '{kind}' is none of {', '.join(known)}")
    if kind in ("supervised", "unsupervised"):
      if not getattr(parse, f"{name}_treebank"):
        raise ValueError(f"parse.{name}={kind} needs parse.{name}_treebank")
  if parse.head_rules not in head_rules.RULES:
    known = ", ".join(head_rules.RULES)
    raise ValueError(f"head rules '{parse.head_rules}' are none of {known}")
  for name in ("rounds", "nbest", "length"):
    if getattr(config, name) < (name != "rounds"):
      raise ValueError(f"{name} is too small")
  if parse.clusters < 2 or parse.epochs < 1:
    raise ValueError("parse: at least 2 clusters and 1 epoch")
  tune_stage.make_method(config.method, config.options, metric="bleu")


def input_paths(config: ParseConfig) -> dict[str, str]:
  """Returns the files that trees are learnt from, by parameter."""
  found = {}
  for name in ("source", "target"):
    path = getattr(config, f"{name}_treebank")
    if path and getattr(config, name) in ("supervised", "unsupervised"):
      found[f"{name}_treebank"] = path
  return found


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


def parse(
  config: ParseConfig,
  *,
  corpus: Corpus,
  source_treebank: str = "",
  target_treebank: str = "",
) -> ParsedCorpus:
  """Parses the sources of tuning and test, and the targets of training.

  Args:
    config: see `ParseConfig`.
    corpus: the text.
    source_treebank: file to learn from.
    target_treebank: the same of the target language.
  """
  nothing = np.zeros(0, np.int32)
  tune_heads = test_heads = train_heads = nothing
  if config.source == CONSTITUENTS:
    tune_heads, test_heads = (
      _of_constituents(config, corpus, part) for part in PARTS
    )
  elif config.source != NONE:
    parser = _learn(config, config.source, source_treebank)
    tune_heads, test_heads = (
      text_parsing.parse(parser, corpus.part(part).source).heads
      for part in PARTS
    )
  clusters: list[str] = []
  if config.target != NONE:
    parser = _learn(config, config.target, target_treebank)
    train_heads = text_parsing.parse(parser, corpus.train_target).heads
    found = word_clusters.cluster_words(
      corpus.train_target, clusters=config.clusters
    )
    clusters = word_clusters.to_lines(found)
  return ParsedCorpus(
    train_heads=train_heads,
    tune_heads=tune_heads,
    test_heads=test_heads,
    clusters=clusters,
    metrics={"target_words": len(train_heads), "test_words": len(test_heads)},
  )


def _learn(config, kind, path):
  bank = treebank.read_treebank(path) if path else None
  try:
    return text_parsing.learn(
      kind, bank, trees=SiblingConfig(epochs=config.epochs), seed=config.seed
    )
  except ValueError as error:
    raise InputError(str(error), path=path or None) from error


def _of_constituents(config, corpus: Corpus, part: str) -> np.ndarray:
  """Heads by head rules; a sentence without a tree becomes a chain."""
  given = corpus.part(part)
  if given.trees is None:
    raise InputError("parse.source=constituents: the corpus has no trees")
  parsed = tree_lib.parse_trees(given.trees)
  rules = head_rules.RULES[config.head_rules]
  bank, rows = head_rules.dependencies(parsed, rules)
  lengths = [len(line.split()) for line in given.source]
  heads = [np.arange(-1, length - 1) for length in lengths]
  for place, row in enumerate(rows.tolist()):
    own = bank.heads[bank.words.offsets[place] : bank.words.offsets[place + 1]]
    if len(own) == lengths[row]:
      heads[row] = own
  return from_rows(heads).flat


def _trees(heads: np.ndarray, lines: Sequence[str]) -> list[SourceTree | None]:
  """The tree of each line."""
  out: list[SourceTree | None] = []
  start = 0
  for line in lines:
    size = len(line.split()) if len(heads) else 0
    own = heads[start : start + size]
    out.append(configurations.source_tree(own) if size else None)
    start += size
  return out


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
  found = phrase_dependencies.extract(
    phrase_dependencies.split(pairs),
    options=DependencyOptions(
      length=config.length,
      known=parsed_pairs.known_phrases(table, clusters),
    ),
    runner=Runner(workers=kernels.available_threads()),
  )
  return PhraseDependencies(
    keys=found.keys,
    values=found.values,
    sizes=found.sizes,
    metrics={"events": len(found)},
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreeTuningConfig:
  """Everything that learning and translation depend on."""

  trees: TreesConfig
  search: SearchStageConfig
  metric: str = "bleu"
  seed: int = 0


def _task(config, part, corpus, grammar, lm, coarse, parsed, dependencies):
  """The sentences of a part with their lattices."""
  lines = corpus.part(part).source
  model, _ = system.part_model(
    config.search,
    part,
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights=coarse.weights,
  )
  settings = system.decode_config(config.search, model, forest=True)
  options = config.trees.lattices
  found: list[Any] = [None] * len(lines)
  for row, one in tree_translator.lattices(
    model, lines, options=options, config=settings
  ):
    found[row] = one
  known = None
  if dependencies is not None:
    known = Dependencies(
      table=dependency_table.of_columns(
        dependencies.keys, dependencies.values, dependencies.sizes
      ),
      clusters=word_clusters.read_lines(parsed.clusters),
    )
  heads = getattr(parsed, f"{part}_heads")
  return ParsingTask(
    lattices=found,
    trees=_trees(heads, lines),
    dependencies=known,
    options=options,
    coarse=coarse.weights,
    names=tuple(model.feature_names),
  )


def tune(
  config: TreeTuningConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  coarse: Tuned,
  parsed: ParsedCorpus,
  dependencies: PhraseDependencies | None = None,
  partial: Store | None = None,
) -> Tuned:
  """Learns the weights of the fine pass on the tuning part.

  Args:
    config: see `TreeTuningConfig`.
    corpus: the text.
    grammar: the phrase table.
    lm: the language model.
    coarse: weights of the coarse pass.
    parsed: source trees, clusters.
    dependencies: of phrases, if target trees are used.
    partial: stores the state after each round, to resume from.
  """
  trees = config.trees
  task = _task(
    config, "tune", corpus, grammar, lm, coarse, parsed, dependencies
  )
  settings = tune_stage.TuneStageConfig(
    method=trees.method,
    options=trees.options,
    rounds=trees.rounds,
    metric=config.metric,
    nbest=trees.nbest,
  )
  return tune_stage.learn_weights(
    tree_translator.make_decode(
      task, size=trees.nbest, threads=config.search.threads
    ),
    tree_translator.start_weights(task),
    corpus.tune_references,
    settings,
    seed=config.seed,
    partial=partial,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreeTranslations(Translations):
  """Translations with their trees, and what they were chosen from.

  Attributes:
    pictures: the trees of the first test sentences: phrases, source spans,
      heads; JSON.
  """

  pictures: list[dict[str, Any] | None]


def translate(
  config: TreeTuningConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  coarse: Tuned,
  tuned: Tuned,
  parsed: ParsedCorpus,
  dependencies: PhraseDependencies | None = None,
) -> TreeTranslations:
  """Translates the tuning and the test part; see `tune`."""
  hypotheses, metrics = {}, {}
  found: list[PhraseTree | None] = []
  for part in PARTS:
    task = _task(
      config, part, corpus, grammar, lm, coarse, parsed, dependencies
    )
    found = list(
      tree_translator.translations(
        task, tuned.weights, threads=config.search.threads
      )
    )
    hypotheses[f"{part}_hypothesis"] = [
      one.text if one else "" for one in found
    ]
    scores = [one.score for one in found if one]
    metrics[f"{part}_score"] = round(float(np.mean(scores or [0.0])), 4)
  pictures: list[dict[str, Any] | None] = [
    {
      "phrases": list(one.phrases),
      "spans": one.spans.tolist(),
      "heads": one.heads.tolist(),
    }
    if one is not None
    else None
    for one in found[: config.trees.pictures]
  ]
  return TreeTranslations(**hypotheses, metrics=metrics, pictures=pictures)
