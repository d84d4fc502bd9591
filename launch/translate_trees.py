r"""Translates by parsing phrase lattices: dependency trees over phrases.

    python launch/translate_trees.py --grammar=G --lm=LM.arpa --weights=W \
        --input=S [--source_trees=CONLLU] [--dependencies=T --clusters=C] \
        [--dependency_weights=D] --output=H
    python launch/translate_trees.py --workdir=RUN --input=S --output=H

The second form takes everything from a finished run of launch/train.py with the
system `phrase-dependency`, and parses S with the parser of the run unless
--source_trees are given. Flags of the search that are not given are then those
of the run.

G is a phrase table. Its search makes lattices, which are pruned; a translation
and a projective dependency tree over its phrases are then found together. D
weighs features of the tree (`name value` lines): lengths, configurations; given
trees of the source, relations of the source words and path lengths; given a
table of phrase dependencies (extract_dependencies.py), their probabilities. D
may also have other weights for the phrase-based features; `phrase_score` is a
factor for all of W. --groups leaves features out; --unit=words makes trees over
words. --trees writes the trees, a phrase a token, its source words in place of
the tag; --page draws the first ones. --nbest writes lists with the values of
all features, which `tune.py --kbest` tunes on; --oracle, given --references,
writes the best translations that the lattices have, as far as a narrow search
finds them; tune_trees.py tunes with the
parser in the loop.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from absl import flags

from jaxmt.decode.dependency import oracle, phrase_trees, tree_translator
from jaxmt.decode.dependency.phrase_trees import PhraseTree, TranslationList
from jaxmt.decode.dependency.tree_translator import ParsingTask
from jaxmt.errors import InputError
from jaxmt.experiment import tree_systems
from jaxmt.experiment.flags import tree_flags
from jaxmt.inspection import phrase_tree_views
from jaxmt.metrics.encoded_text import ReferenceLines
from jaxmt.report import html, page
from jaxmt.runtime import progress
from jaxmt.text import files, ragged, references, treebank
from jaxmt.text.treebank import Treebank

flags.adopt_module_key_flags(tree_flags)
_WORKDIR = flags.DEFINE_string(
  "workdir", "", "finished run, for --grammar etc."
)
_STORE = flags.DEFINE_string(
  "store", None, "the run's artefacts, if not in the workdir (as in a study)"
)
_INPUT = flags.DEFINE_string("input", "", "text to translate")
_OUTPUT = flags.DEFINE_string("output", "", "translations")
_TREES = flags.DEFINE_string("trees", "", "trees of the translations, CoNLL-U")
_PAGE = flags.DEFINE_string("page", "", "page with pictures of the first trees")
_ORACLE = flags.DEFINE_string(
  "oracle", "", "oracle translations of the lattices"
)
_REFERENCES = flags.DEFINE_list("references", [], "reference files of --oracle")
_NBEST = flags.DEFINE_string("nbest", "", "k-best lists with feature values")
_PICTURES = 50  # trees of a page
_PART = 500  # sentences whose lattices are in memory
_NBEST_SIZE = flags.DEFINE_integer(
  "nbest_size", 150, "distinct translations", lower_bound=0
)


def main(argv: list[str]) -> None:
  """Translates a text."""
  del argv
  program.check_paths(
    outputs=("output", "trees", "nbest", "page", "oracle"),
    inputs=(
      *("grammar", "lm", "weights", "reordering"),
      *("input", "source_trees", "dependency_weights", "references"),
      *("dependencies", "clusters", "workdir", "store"),
    ),
  )
  program.required(input=_INPUT.value, output=_OUTPUT.value)
  _check_model()
  if _ORACLE.value and not _REFERENCES.value:
    raise InputError("--oracle needs --references")
  if _NBEST_SIZE.value < 1:
    raise InputError("--nbest_size must be at least 1")
  lines = files.read_lines(_INPUT.value)
  expected = None
  if _ORACLE.value:
    expected = references.read_references(
      _REFERENCES.value, expected=len(lines), expected_path=_INPUT.value
    )
  found: list[PhraseTree | None] = []
  nbest: list[str] = []
  oracles: list[str] = []
  for task, weights in _tasks(lines):
    first = len(found)
    threads = tree_flags.THREADS.value
    found += tree_translator.translations(task, weights, threads=threads)
    if expected is not None:
      oracles += _oracles(task, expected[first:])
    if _NBEST.value:
      lists = tree_translator.lists(
        task,
        weights,
        range(len(task.lattices)),
        size=_NBEST_SIZE.value,
        threads=threads,
      )
      for row, entries in enumerate(lists, start=first):
        nbest += _list(row, entries)
  lost = [row for row, one in enumerate(found) if one is None and lines[row]]
  if lost:
    progress.say(
      f"{len(lost)} lines without a translation, first {lost[0] + 1}"
    )
  files.write_lines(_OUTPUT.value, [one.text if one else "" for one in found])
  if _TREES.value:
    treebank.write_treebank(_TREES.value, _treebank(found))
  if _PAGE.value:
    files.write_text(_PAGE.value, _page(found, lines))
  if _ORACLE.value:
    files.write_lines(_ORACLE.value, oracles)
  if _NBEST.value:
    files.write_lines(_NBEST.value, nbest)


_OF_RUNS = (  # what a run has of its own
  *(tree_flags.GRAMMAR, tree_flags.LM, tree_flags.WEIGHTS),
  *(tree_flags.REORDERING, tree_flags.DEPENDENCIES, tree_flags.CLUSTERS),
)


def _check_model() -> None:
  """Wants either a run or files."""
  if not _WORKDIR.value:
    program.required(
      grammar=tree_flags.GRAMMAR.value,
      lm=tree_flags.LM.value,
      weights=tree_flags.WEIGHTS.value,
    )
  for flag in _OF_RUNS if _WORKDIR.value else ():
    if flag.value:
      raise InputError(f"--workdir has its own --{flag.name}")


def _tasks(
  lines: list[str],
) -> Iterator[tuple[ParsingTask, Mapping[str, float]]]:
  """The sentences in parts, with the weights of the fine pass."""
  if not _WORKDIR.value:
    for task in tree_flags.tasks(lines, size=_PART):
      given = tree_flags.read_given_weights(task.names)
      yield task, phrase_trees.fine_weights(task.coarse, given)
    return
  system = tree_flags.with_flags(
    tree_systems.read(_WORKDIR.value, _STORE.value)
  )
  trees = None
  if tree_flags.SOURCE_TREES.value:
    trees = tree_flags.source_trees(lines)
  for task in tree_systems.tasks(system, lines, source_trees=trees, size=_PART):
    given = tree_flags.read_given_weights(task.names)
    yield task, {**system.weights, **given}


def _oracles(task: ParsingTask, expected: ReferenceLines) -> list[str]:
  """The best translation that each lattice has."""
  out = []
  for found, own in zip(task.lattices, expected, strict=False):
    lines = [line for line in own if line is not None]
    best = None if found is None else oracle.oracle(found, lines)
    out.append(best or "")
  return out


def _page(found: Sequence[PhraseTree | None], lines: Sequence[str]) -> str:
  """A page with the first trees, over target phrases and their source."""
  sections = [
    page.section(
      f"Sentence {row + 1}",
      html.drawn(phrase_tree_views.view(tree, lines[row].split())),
    )
    for row, tree in enumerate(found[:_PICTURES])
    if tree is not None
  ]
  return page.page(
    "Dependency trees over phrases",
    sections,
    footer=f"{len(sections)} of {len(lines)} sentences",
    scripts=page.COMPONENTS,
  )


def _list(row: int, entries: TranslationList | None) -> list[str]:
  """Lines of a k-best list."""
  if entries is None:
    return []
  named = lambda values: " ".join(
    f"{name}={value:.6g}"
    for name, value in zip(entries.names, values, strict=True)
    if value
  )
  lines = zip(
    *(entries.text, entries.values.tolist(), entries.score.tolist()),
    strict=True,
  )
  return [
    f"{row} ||| {text} ||| {named(values)} ||| {score:.6g}"
    for text, values, score in lines
  ]


def _treebank(found: Sequence[PhraseTree | None]) -> Treebank:
  """Trees of phrases as a treebank."""
  trees = [one for one in found if one is not None]
  phrases = [phrase or "_" for one in trees for phrase in one.phrases]
  spans = [f"{begin}-{end}" for one in trees for begin, end in one.spans]
  forms, tags = dict.fromkeys(phrases), dict.fromkeys(spans)
  number = lambda names: {name: place for place, name in enumerate(names)}
  word, tag = number(forms), number(tags)
  rows = [one.heads for one in trees]
  heads = ragged.from_rows(rows)
  return Treebank(
    forms=tuple(forms),
    tag_names=tuple(tags),
    label_names=("_",),
    words=ragged.Ragged(
      flat=np.array([word[phrase] for phrase in phrases], np.int32),
      offsets=heads.offsets,
    ),
    tags=np.array([tag[span] for span in spans], np.int32),
    heads=heads.flat,
    labels=np.zeros(len(phrases), np.int32),
  )


if __name__ == "__main__":
  program.run(main)
