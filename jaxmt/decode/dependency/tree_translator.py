"""Translation with trees over phrases, in two passes.

    found = lattices(model, lines, options=options, config=...)
    task = ParsingTask(
      lattices=found, trees=..., dependencies=..., options=options
    )
    best = translations(task, weights)
    decode = make_decode(task, size=150)

See section 4.5 of Gimpel (2012). The coarse pass makes phrase lattices, once;
the fine pass parses them with any weights: that is algorithm 3. `make_decode`
gives k-best lists to `tune.loop`, which learns the weights of the fine pass:
algorithm 4.
"""

import concurrent.futures
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import candidate_lists, decoding
from jaxmt.decode import translate as translate_lib
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.decode.dependency import (
  configurations,
  lattice,
  phrase_lattices,
  phrase_trees,
  probabilities,
  word_lattices,
)
from jaxmt.decode.dependency.configurations import ArcParts, SourceTree
from jaxmt.decode.dependency.phrase_lattices import PhraseLattice
from jaxmt.decode.dependency.phrase_trees import PhraseTree, TranslationList
from jaxmt.decode.dependency.probabilities import Dependencies
from jaxmt.decode.model import Model
from jaxmt.features import sparse
from jaxmt.text import kernels

UNITS = ("phrases", "words")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreeOptions:
  """How lattices are made and parsed.

  Attributes:
    edges: most edges of a lattice.
    source_limit: most source words between two linked phrases.
    target_limit: most target words between them, on any path.
    groups: groups of features, of `configurations.GROUPS`.
    unit: what trees are over, "phrases" (Model P) or "words" (Model W).
  """

  edges: int = 2000
  source_limit: int = 15
  target_limit: int = 20
  groups: tuple[str, ...] = configurations.GROUPS
  unit: str = "phrases"


def check(options: TreeOptions) -> None:
  """Raises `ValueError` for settings that make no sense."""
  if options.edges < 1:
    raise ValueError("a lattice needs at least 1 edge")
  for group in options.groups:
    if group not in configurations.GROUPS:
      known = ", ".join(configurations.GROUPS)
      raise ValueError(f"no group '{group}'; there are: {known}")
  if options.unit not in UNITS:
    raise ValueError(f"unit '{options.unit}' is none of {', '.join(UNITS)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParsingTask:
  """B sentences to parse.

  Attributes:
    lattices: of each sentence, None where there is no translation.
    trees: source trees, or None each.
    dependencies: for the probability features, or None.
    options: see `TreeOptions`.
    coarse: weights of the phrase-based features in the coarse pass.
    names: of the phrase-based features.
  """

  lattices: Sequence[PhraseLattice | None]
  trees: Sequence[SourceTree | None]
  dependencies: Dependencies | None
  options: TreeOptions
  coarse: Mapping[str, float]
  names: tuple[str, ...]

  @property
  def feature_names(self) -> tuple[str, ...]:
    """Names of all features: those of paths, then those of arcs."""
    some_tree = any(tree is not None for tree in self.trees)
    missing: set[str] = set()
    if not some_tree:
      missing |= {"tree-to-tree", "path"}
    if self.dependencies is None:
      missing |= {"target-tree", "rules"}
    arcs = tuple(
      name
      for group in configurations.GROUPS
      if group in self.options.groups and group not in missing
      for name in configurations.NAMES[group]
    )
    return (*self.names, *arcs)


def lattices(
  model: Model, lines: Sequence[str], *, options: TreeOptions, config: Any
) -> Iterator[tuple[int, PhraseLattice | None]]:
  """Yields line numbers and lattices, as they are done.

  Args:
    model: a phrase-based model with the weights of the coarse pass.
    lines: the sentences.
    options: see `TreeOptions`.
    config: of the decoder, with forests.
  """
  longest = max([len(line.split()) for line in lines] + [1])
  pieces = translate_lib.cut_lines(lines, longest=longest)
  for part, _ in translate_lib.stream(model, pieces, config=config):
    forest = decoding.forest(model, part)
    pruned = lattice.prune_to_budget(forest, edges=options.edges)
    part_lattices = phrase_lattices.from_forest(model, part.source, pruned)
    for row, one in zip(part.rows.tolist(), part_lattices, strict=True):
      if one is not None and options.unit == "words":
        one = word_lattices.split(one)
      yield row, one


def prepare(
  task: ParsingTask, row: int
) -> tuple[PhraseLattice, ArcParts] | None:
  """Returns a lattice with the parts of the features of its arcs."""
  lattice, options = task.lattices[row], task.options
  if lattice is None:
    return None
  keys = None
  if task.dependencies is not None:
    keys = probabilities.option_keys(
      lattice.lattice, lattice.text, lattice.source, task.dependencies
    )
  return lattice, configurations.arc_parts(
    lattice.lattice,
    tree=task.trees[row],
    options=keys,
    groups=options.groups,
    source_limit=options.source_limit,
    target_limit=options.target_limit,
  )


def _mapped(function: Callable, rows: Sequence[int], threads: int) -> Iterator:
  """Results in the order of the rows."""
  with concurrent.futures.ThreadPoolExecutor(
    threads or kernels.available_threads()
  ) as pool:
    yield from pool.map(function, rows)


def translations(
  task: ParsingTask, weights: Mapping[str, float], *, threads: int = 0
) -> Iterator[PhraseTree | None]:
  """Yields the best translation with its tree of each sentence.

  Args:
    task: the sentences.
    weights: of paths and arcs, see `phrase_trees.fine_weights`.
    threads: sentences at a time; 0: one for each core.
  """

  def work(row):
    prepared = prepare(task, row)
    return prepared and phrase_trees.best(*prepared, weights)

  return _mapped(work, range(len(task.lattices)), threads)


def lists(
  task: ParsingTask,
  weights: Mapping[str, float],
  rows: Sequence[int],
  *,
  size: int,
  threads: int = 0,
) -> Iterator[TranslationList | None]:
  """Yields the k-best list of each of some sentences; see `translations`.

  A list is None where there is no translation.
  """

  def work(row):
    prepared = prepare(task, row)
    return prepared and phrase_trees.kbest(*prepared, weights, size=size)

  return _mapped(work, rows, threads)


def make_decode(
  task: ParsingTask, *, size: int, threads: int = 0
) -> Callable[[Mapping[str, float], np.ndarray], CandidateLists]:
  """Returns what `tune.loop.run` takes as its decoder.

  Args:
    task: the sentences.
    size: candidates of a list, all with different words.
    threads: as in `translations`.
  """
  names = task.feature_names
  column = {name: place for place, name in enumerate(names)}

  def decode(
    weights: Mapping[str, float], numbers: np.ndarray
  ) -> CandidateLists:
    sentence, lines, rows = [], [], [np.zeros((0, len(names)))]
    trees = lists(task, weights, numbers.tolist(), size=size, threads=threads)
    for place, entries in enumerate(trees):
      if entries is None:
        continue
      values = np.zeros((len(entries), len(names)))
      # Features that no sentence has are in the list, but not in the task.
      kept = [name in column for name in entries.names]
      of = [column[name] for name in entries.names if name in column]
      values[:, of] = entries.values[:, kept]
      sentence += [place] * len(entries)
      lines += entries.text
      rows.append(values)
    if not lines:
      return candidate_lists.from_rows(
        np.zeros(0, np.int64), [], sparse.empty(0), names
      )
    whole = candidate_lists.from_dense(
      np.array(sentence, np.int64), lines, np.concatenate(rows), names
    )
    return dataclasses.replace(whole, sentences=len(numbers))

  return decode


def start_weights(
  task: ParsingTask, given: Mapping[str, float] | None = None
) -> dict[str, float]:
  """Returns where learning starts: λ_C, 0.002 for probabilities, 0 for others.

  Args:
    task: the sentences.
    given: weights that are known already.
  """
  fine = phrase_trees.fine_weights(task.coarse, given or {})
  counted = {*probabilities.NAMES["target-tree"], *probabilities.NAMES["rules"]}
  start = {
    name: 0.002 if name in counted else 0.0 for name in task.feature_names
  }
  return {name: fine.get(name, value) for name, value in start.items()}
