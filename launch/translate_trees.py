r"""Translates by parsing phrase lattices: dependency trees over phrases.

    python launch/translate_trees.py --grammar=G --lm=LM.arpa --weights=W \
        --input=S [--source_trees=CONLLU] [--dependency_weights=D] --output=H

G is a phrase table. Its search makes lattices, which are pruned; a translation
and a projective dependency tree over its phrases are then found together. D
weighs features of the tree (`name value` lines): lengths, configurations, and,
given trees of the source, relations of the source words and path lengths;
`phrase_score` is the weight of the phrase-based model's own score (1). --trees
writes the trees, a phrase a token, its source words in place of the tag.
--nbest writes lists with the values of these features, which
`tune.py --kbest` tunes on.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from absl import flags

from jaxmt.decode import decoding, loading
from jaxmt.decode import model as models
from jaxmt.decode import translate as translate_lib
from jaxmt.decode import translator as translators
from jaxmt.decode.dependency import (
  configurations,
  lattice,
  phrase_lattices,
  phrase_trees,
)
from jaxmt.decode.dependency.configurations import SourceTree
from jaxmt.decode.dependency.phrase_lattices import PhraseLattice
from jaxmt.decode.dependency.phrase_trees import PhraseTree
from jaxmt.errors import InputError
from jaxmt.runtime import progress
from jaxmt.text import files, ragged, treebank, vocabulary
from jaxmt.text.treebank import Treebank

_GRAMMAR = flags.DEFINE_string("grammar", "", "phrase table")
_LM = flags.DEFINE_string("lm", "", "language model, ARPA")
_WEIGHTS = flags.DEFINE_string("weights", "", "weights of the phrase search")
_REORDERING = flags.DEFINE_string("reordering", "", "reordering model")
_DIALECT = flags.DEFINE_enum(
  "dialect", "jaxmt", tuple(models.DIALECTS), "format of the phrase table"
)
_DISTORTION = flags.DEFINE_integer("distortion", 6, "limit, -1 for none")
_BEAM = flags.DEFINE_integer("beam", 100, "hypotheses of a stack")
_INPUT = flags.DEFINE_string("input", "", "text to translate")
_SOURCE_TREES = flags.DEFINE_string(
  "source_trees", "", "dependency trees of the text, CoNLL-U"
)
_DEPENDENCY = flags.DEFINE_string(
  "dependency_weights", "", "weights of the features of trees"
)
_EDGES = flags.DEFINE_integer("edges", 2000, "most edges of a lattice")
_SOURCE_LIMIT = flags.DEFINE_integer(
  "source_limit", 15, "most source words between two linked phrases"
)
_TARGET_LIMIT = flags.DEFINE_integer(
  "target_limit", 20, "most target words between them on any path"
)
_OUTPUT = flags.DEFINE_string("output", "", "translations")
_TREES = flags.DEFINE_string("trees", "", "trees of the translations, CoNLL-U")
_NBEST = flags.DEFINE_string("nbest", "", "k-best lists with feature values")
_NBEST_SIZE = flags.DEFINE_integer("nbest_size", 150, "distinct translations")
_NBEST_EDGES = flags.DEFINE_integer(
  "nbest_edges", 200, "most edges of a lattice that lists are made of"
)


def main(argv: list[str]) -> None:
  """Translates a text."""
  del argv
  program.check_paths(
    outputs=("output", "trees", "nbest"),
    inputs=("grammar", "lm", "weights", "input", "source_trees"),
  )
  program.required(
    grammar=_GRAMMAR.value,
    lm=_LM.value,
    weights=_WEIGHTS.value,
    input=_INPUT.value,
    output=_OUTPUT.value,
  )
  for flag in (_EDGES, _NBEST_EDGES, _NBEST_SIZE, _BEAM):
    if flag.value < 1:
      raise InputError(f"--{flag.name} must be at least 1")
  weights = _read_weights()
  lines = files.read_lines(_INPUT.value)
  trees = _source_trees(lines)
  found: list[PhraseTree | None] = [None] * len(lines)
  lists: list[list[str]] = [[] for _ in lines]
  with progress.steps(label="translating", total=len(lines)) as step:
    for row, full, small in _lattices(lines):
      found[row] = _best(full, weights, trees[row])
      if small is not None:
        lists[row] = _list(row, small, weights, trees[row])
      step(1)
  lost = [row for row, one in enumerate(found) if one is None and lines[row]]
  if lost:
    progress.say(
      f"{len(lost)} lines without a translation, first {lost[0] + 1}"
    )
  files.write_lines(_OUTPUT.value, [one.text if one else "" for one in found])
  if _TREES.value:
    treebank.write_treebank(_TREES.value, _treebank(found))
  if _NBEST.value:
    files.write_lines(_NBEST.value, [line for own in lists for line in own])


def _read_weights() -> dict[str, float]:
  if not _DEPENDENCY.value:
    return {}
  weights = loading.read_weights(_DEPENDENCY.value)
  for name in weights:
    if name not in phrase_trees.NAMES:
      raise InputError(f"no feature '{name}'", path=_DEPENDENCY.value)
  return weights


def _source_trees(lines: Sequence[str]) -> list[SourceTree | None]:
  """The tree of each line, after comparing their words."""
  path = _SOURCE_TREES.value
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


def _lattices(
  lines: Sequence[str],
) -> Iterator[tuple[int, PhraseLattice | None, PhraseLattice | None]]:
  """Yields line, lattice, and the lattice for lists, as they are done."""
  translator = loading.load_files(
    _GRAMMAR.value,
    lm=_LM.value,
    weights=_WEIGHTS.value,
    dialect=_DIALECT.value,
    lines=lines,
    kind="phrase",
    reordering=_REORDERING.value,
    distortion=_DISTORTION.value,
  )
  longest = int(max((len(line.split()) for line in lines), default=1))
  pieces = translate_lib.cut_lines(lines, longest=max(longest, 1))
  beam = _BEAM.value
  translator = translators.Translator(
    model=translator.model, beam=beam, pop=2 * beam
  )
  config = translators.decode_config(translator, forest=True)
  for part, _ in translate_lib.stream(translator.model, pieces, config=config):
    forest = decoding.forest(translator.model, part)
    cut = lattice.prune_to_budget(forest, edges=_EDGES.value)
    make = phrase_lattices.from_forest
    full = make(translator.model, part.source, cut)
    small: list[PhraseLattice | None] = [None] * len(full)
    if _NBEST.value:
      cut = lattice.prune_to_budget(forest, edges=_NBEST_EDGES.value)
      small = make(translator.model, part.source, cut)
    yield from zip(part.rows.tolist(), full, small, strict=True)


def _parts(found: PhraseLattice, tree: SourceTree | None):
  return configurations.arc_parts(
    found.lattice,
    tree=tree,
    source_limit=_SOURCE_LIMIT.value,
    target_limit=_TARGET_LIMIT.value,
  )


def _best(found, weights: Mapping[str, float], tree) -> PhraseTree | None:
  if found is None:
    return None
  return phrase_trees.best(found, _parts(found, tree), weights)


def _list(row: int, found, weights: Mapping[str, float], tree) -> list[str]:
  """Lines of a k-best list."""
  entries = phrase_trees.kbest(
    found, _parts(found, tree), weights, size=_NBEST_SIZE.value
  )
  named = lambda values: " ".join(f"{k}={v:.6g}" for k, v in values.items())
  return [
    f"{row} ||| {one.text} ||| {named(one.features)} ||| {one.score:.6g}"
    for one in entries
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
