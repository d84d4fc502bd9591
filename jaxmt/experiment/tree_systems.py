"""Systems with trees over phrases of finished runs, for new text.

system = tree_systems.load(finished_run.read("runs/trees"))
trees = tree_systems.translate(system, lines)

New text is parsed with the parser that the run has learnt. Phrase dependencies
are extracted again from the run's training part, since the run has only those
that its own text may use.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from jaxmt.decode.dependency import configurations, tree_translator
from jaxmt.decode.dependency.configurations import SourceTree
from jaxmt.decode.dependency.phrase_trees import PhraseTree
from jaxmt.decode.dependency.probabilities import Dependencies
from jaxmt.decode.dependency.tree_translator import ParsingTask
from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import finished_run, systems
from jaxmt.experiment.finished_run import FinishedRun
from jaxmt.experiment.stages import dependency_trees as tree_stages
from jaxmt.experiment.stages import system as system_lib
from jaxmt.experiment.stages import tree_parsing
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.dependency_trees import TreesConfig
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import SearchStageConfig
from jaxmt.experiment.stages.tree_parsing import LearnedParser, ParsedCorpus
from jaxmt.parse import text_parsing
from jaxmt.parse.text_parsing import TextParser
from jaxmt.text import treebank, word_clusters

_PART = 500  # sentences whose lattices are in memory


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreeSystem:
  """What a run with trees over phrases has learnt.

  Attributes:
    trees: how lattices are made and parsed.
    search: of the coarse pass.
    corpus: the run's text.
    links: its word links.
    grammar: the phrase table.
    lm: the language model.
    parsed: trees of the training targets, clusters.
    parser: of source text; None if the run has learnt none.
    coarse: weights of the coarse pass.
    weights: those of the fine pass.
  """

  trees: TreesConfig
  search: SearchStageConfig
  corpus: Corpus
  links: Links
  grammar: Grammar
  lm: LanguageModel
  parsed: ParsedCorpus
  parser: TextParser | None
  coarse: Mapping[str, float]
  weights: Mapping[str, float]


def load(run: FinishedRun) -> TreeSystem:
  """Reads the system of a run.

  Raises:
    InputError: if the run has none, or its artefacts are damaged.
  """
  name = systems.PHRASE_DEPENDENCY
  if name not in run.config["systems"]:
    raise InputError(f"the run has no system '{name}'", path=run.workdir)
  try:
    trees = config_lib.freeze(TreesConfig, run.config["trees"])
    tree_stages.check(trees)
  except (KeyError, ValueError, TypeError, AttributeError) as error:
    cause = f"config key 'trees': {error}"
    raise InputError(cause, path=f"{run.workdir}/run.json") from error
  parser = None
  if "source" in tree_parsing.learning(trees.parse):
    parser = run.record("source-parser", LearnedParser).parser
  system = TreeSystem(
    trees=trees,
    search=run.search,
    corpus=run.record(run.corpus, Corpus),
    links=run.record("align", Links),
    grammar=run.record("grammar", Grammar),
    lm=run.record("lm", LanguageModel),
    parsed=run.record("parse", ParsedCorpus),
    parser=parser,
    coarse=run.tuned(systems.PRIMARY).weights,
    weights=run.tuned(name).weights,
  )
  if trees.parse.target != tree_parsing.NONE:
    _check_heads(system, str(run.folders["parse"]))
  return system


def _check_heads(system: TreeSystem, path: str) -> None:
  """Refuses heads that are not of the training targets."""
  heads = system.parsed.train_heads
  sizes = np.array([len(line.split()) for line in system.corpus.train_target])
  size = np.repeat(sizes, sizes)
  fits = (
    isinstance(heads, np.ndarray)
    and heads.dtype == np.int32
    and heads.shape == size.shape
    and bool(np.all((heads >= -1) & (heads < size)))
  )
  if not fits:
    raise InputError("'train_heads' is not of the training targets", path=path)


def tasks(
  system: TreeSystem,
  lines: Sequence[str],
  *,
  source_trees: Sequence[SourceTree | None] | None = None,
  size: int = _PART,
) -> Iterator[ParsingTask]:
  """Yields lines in parts, with their lattices, trees and dependencies.

  Args:
    system: from `load`.
    lines: tokenised sentences; of an empty list there is one empty part.
    source_trees: of the lines; None to parse them.
    size: sentences of a part, all of whose lattices are in memory.

  Raises:
    InputError: if the run's own trees are of constituents, and none are given.
  """
  if source_trees is None:
    source_trees = _parse(system, lines)
  dependencies = None
  if system.trees.parse.target != tree_parsing.NONE:
    dependencies = Dependencies(
      table=tree_parsing.table_of(
        lines,
        length=system.trees.length,
        corpus=system.corpus,
        links=system.links,
        grammar=system.grammar,
        parsed=system.parsed,
      ),
      clusters=word_clusters.read_lines(system.parsed.clusters),
    )
  model = system_lib.make_model(
    system.search,
    system.grammar,
    table=system_lib.rule_table(system.grammar, lines=lines),
    lm=system.lm,
    weights=system.coarse,
  )
  for first in range(0, max(len(lines), 1), size):
    yield tree_stages.make_task(
      model,
      lines[first : first + size],
      trees=system.trees,
      search=system.search,
      source_trees=source_trees[first : first + size],
      coarse=system.coarse,
      dependencies=dependencies,
    )


def _parse(system: TreeSystem, lines) -> list[SourceTree | None]:
  kind = system.trees.parse.source
  if kind == tree_parsing.NONE:
    return [None] * len(lines)
  if system.parser is None:
    raise InputError(
      f"source trees of this run are of {kind}: new text needs its own"
    )
  heads = text_parsing.parse(system.parser, lines).heads
  return configurations.source_trees(heads, lines)


def translate(
  system: TreeSystem,
  lines: Sequence[str],
  *,
  source_trees: Sequence[Sequence[int] | None] | None = None,
) -> list[PhraseTree | None]:
  """Returns the best translation with its tree of each line.

  Args:
    system: from `load`.
    lines: N tokenised sentences.
    source_trees: heads of the words of each, -1 is the root; None to parse
      them with the run's parser.

  Raises:
    InputError: for trees that are not of the lines, or that are missing.
  """
  given = None
  if source_trees is not None:
    if len(source_trees) != len(lines):
      raise InputError(f"{len(source_trees)} trees for {len(lines)} lines")
    given = [
      None if tree is None else configurations.source_tree(_tree(tree, line))
      for tree, line in zip(source_trees, lines, strict=True)
    ]
  out: list[PhraseTree | None] = []
  for task in tasks(system, lines, source_trees=given):
    out += tree_translator.translations(
      task, system.weights, threads=system.search.threads
    )
  return out


def _tree(heads: Sequence[int], line: str) -> np.ndarray:
  array = np.asarray(heads, np.int32)
  if len(array) != len(line.split()) or not treebank.is_tree(array):
    raise InputError(f"no tree of the words of '{line}'")
  return array


def read(workdir: str, store: str | None = None) -> TreeSystem:
  """Reads the system of the run in a workdir; see `load`."""
  return load(finished_run.read(workdir, store))
