"""Flags of the programs that parse phrase lattices, and what they name.

from jaxmt.experiment.flags import tree_flags
flags.adopt_module_key_flags(tree_flags)
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from absl import flags

from jaxmt.decode import loading
from jaxmt.decode import translator as translators
from jaxmt.decode.dependency import (
  configurations,
  phrase_trees,
  tree_translator,
)
from jaxmt.decode.dependency.configurations import SourceTree
from jaxmt.decode.dependency.phrase_lattices import PhraseLattice
from jaxmt.decode.dependency.probabilities import Dependencies
from jaxmt.decode.dependency.tree_translator import ParsingTask, TreeOptions
from jaxmt.errors import InputError
from jaxmt.experiment.stages import system as system_stage
from jaxmt.experiment.tree_systems import TreeSystem
from jaxmt.features.weights import DIALECTS
from jaxmt.grammar import dependency_table
from jaxmt.runtime import progress
from jaxmt.text import files, treebank, vocabulary, word_clusters

GRAMMAR = flags.DEFINE_string("grammar", "", "phrase table")
LM = flags.DEFINE_string("lm", "", "language model, ARPA")
WEIGHTS = flags.DEFINE_string("weights", "", "weights of the phrase search")
REORDERING = flags.DEFINE_string("reordering", "", "reordering model")
DIALECT = flags.DEFINE_enum(
  "dialect", "jaxmt", tuple(DIALECTS), "format of the phrase table"
)
DISTORTION = flags.DEFINE_integer(
  "distortion", 6, "limit, -1 for none", lower_bound=-1
)
BEAM = flags.DEFINE_integer("beam", 100, "hypotheses of a stack", lower_bound=0)
SOURCE_TREES = flags.DEFINE_string(
  "source_trees", "", "dependency trees of the text, CoNLL-U"
)
DEPENDENCIES = flags.DEFINE_string(
  "dependencies", "", "table of extract_dependencies.py"
)
CLUSTERS = flags.DEFINE_string(
  "clusters", "", "clusters of the target words that --dependencies has"
)
DEPENDENCY_WEIGHTS = flags.DEFINE_string(
  "dependency_weights",
  "",
  "weights of the features of trees, and of the phrase-based ones where they"
  " differ from --weights",
)
EDGES = flags.DEFINE_integer(
  "edges", 2000, "most edges of a lattice", lower_bound=0
)
SOURCE_LIMIT = flags.DEFINE_integer(
  "source_limit",
  15,
  "most source words between two linked phrases",
  lower_bound=0,
)
TARGET_LIMIT = flags.DEFINE_integer(
  "target_limit",
  20,
  "most target words between them on any path",
  lower_bound=0,
)
GROUPS = flags.DEFINE_list(
  "groups",
  list(configurations.GROUPS),
  "groups of features of trees; none: the phrase-based model",
)
UNIT = flags.DEFINE_enum(
  "unit",
  "phrases",
  tree_translator.UNITS,
  "what trees are over: phrases (Model P) or words (Model W)",
)
THREADS = flags.DEFINE_integer(
  "threads", 0, "sentences at a time; 0: all cores", lower_bound=0
)


def options() -> TreeOptions:
  """Returns the settings of the lattices.

  Raises:
    InputError: for settings that make no sense.
  """
  if BEAM.value < 1:
    raise InputError("--beam must be at least 1")
  if EDGES.value < 1:
    raise InputError("--edges must be at least 1")
  tree_options = TreeOptions(
    edges=EDGES.value,
    source_limit=SOURCE_LIMIT.value,
    target_limit=TARGET_LIMIT.value,
    groups=tuple(group for group in GROUPS.value if group),
    unit=UNIT.value,
  )
  try:
    tree_translator.check(tree_options)
  except ValueError as error:
    raise InputError(f"--groups: {error}") from error
  return tree_options


def with_flags(system: TreeSystem) -> TreeSystem:
  """Returns the system of a run with the limits that flags give.

  Raises:
    InputError: for settings that make no sense.
  """
  given = dataclasses.asdict(options())
  named: dict[str, Any] = {
    name: given[name]
    for name, flag in (
      *(("edges", EDGES), ("groups", GROUPS), ("unit", UNIT)),
      *(("source_limit", SOURCE_LIMIT), ("target_limit", TARGET_LIMIT)),
    )
    if flags.FLAGS[flag.name].present
  }
  search = system.search
  if flags.FLAGS[BEAM.name].present:
    search = dataclasses.replace(search, beam=BEAM.value, pop=2 * BEAM.value)
  if flags.FLAGS[DISTORTION.name].present:
    search = dataclasses.replace(search, distortion=DISTORTION.value)
  if flags.FLAGS[THREADS.name].present:
    search = dataclasses.replace(search, threads=THREADS.value)
  trees = dataclasses.replace(system.trees, **named)
  try:
    system_stage.check(search)
  except ValueError as error:
    raise InputError(f"search: {error}") from error
  return dataclasses.replace(system, trees=trees, search=search)


def load_task(lines: Sequence[str]) -> ParsingTask:
  """Returns all sentences as one part, see `tasks`."""
  (task,) = tasks(lines, size=max(len(lines), 1))
  return task


def tasks(lines: Sequence[str], *, size: int) -> Iterator[ParsingTask]:
  """Yields the sentences in parts, with their lattices, trees and tables.

  Args:
    lines: the text; of an empty one there is one empty part.
    size: sentences of a part, all of whose lattices are in memory.

  Raises:
    InputError: if a file is malformed, or does not fit.
  """
  settings = options()
  trees = source_trees(lines)
  dependencies = read_dependencies()
  read_given_weights(())
  coarse = loading.read_weights(WEIGHTS.value)
  model = _model(lines)
  translator = translators.Translator(
    model=model, beam=BEAM.value, pop=2 * BEAM.value
  )
  config = translators.decode_config(translator, forest=True)
  with progress.steps(label="lattices", total=len(lines)) as step:
    for first in range(0, max(len(lines), 1), size):
      part = lines[first : first + size]
      lattices: list[PhraseLattice | None] = [None] * len(part)
      for row, one in tree_translator.lattices(
        model, part, options=settings, config=config
      ):
        lattices[row] = one
        step(1)
      yield ParsingTask(
        lattices=lattices,
        trees=trees[first : first + size],
        dependencies=dependencies,
        options=settings,
        coarse=coarse,
        names=tuple(model.feature_names),
      )


def _model(lines: Sequence[str]) -> Any:
  return loading.load_files(
    GRAMMAR.value,
    lm=LM.value,
    weights=WEIGHTS.value,
    dialect=DIALECT.value,
    lines=lines,
    kind="phrase",
    reordering=REORDERING.value,
    distortion=DISTORTION.value,
  ).model


def read_given_weights(names: Sequence[str]) -> dict[str, float]:
  """Returns the weights of --dependency_weights.

  Args:
    names: phrase-based features, which it may have, too; empty: any.

  Raises:
    InputError: for a feature that does not exist.
  """
  path = DEPENDENCY_WEIGHTS.value
  if not path:
    return {}
  weights = loading.read_weights(path)
  known = {*phrase_trees.NAMES, phrase_trees.PHRASE_SCORE, *names}
  for name in weights:
    if name not in known and (names or name.startswith("dep_")):
      raise InputError(f"no feature '{name}'", path=path)
  return weights


def read_dependencies() -> Dependencies | None:
  """Returns the table and the clusters, None without them."""
  if not DEPENDENCIES.value:
    return None
  clusters = {}
  if CLUSTERS.value:
    clusters = word_clusters.read_lines(
      files.read_lines(CLUSTERS.value), path=CLUSTERS.value
    )
  return Dependencies(
    table=dependency_table.load(DEPENDENCIES.value), clusters=clusters
  )


def source_trees(lines: Sequence[str]) -> list[SourceTree | None]:
  """Returns the tree of each line, after comparing their words.

  Raises:
    InputError: if there are others.
  """
  path = SOURCE_TREES.value
  if not path:
    return [None] * len(lines)
  bank = treebank.read_treebank(path)
  ids, _ = vocabulary.intern(lines)
  filled = [row for row, length in enumerate(ids.lengths) if length]
  if len(filled) != len(bank):
    cause = f"{len(bank)} trees for {len(filled)} lines with words"
    raise InputError(cause, path=path)
  out: list[SourceTree | None] = [None] * len(lines)
  for tree, row in enumerate(filled):
    words = [bank.forms[word] for word in bank.words[tree]]
    if words != lines[row].split() or not bank.has_trees[tree]:
      raise InputError(f"tree {tree + 1} is not of line {row + 1}", path=path)
    start, end = bank.words.offsets[tree], bank.words.offsets[tree + 1]
    out[row] = configurations.source_tree(bank.heads[start:end])
  return out
