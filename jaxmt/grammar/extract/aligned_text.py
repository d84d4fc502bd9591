"""A word-aligned corpus from files, in shards, never held as a whole.

The text is read twice: once for the vocabularies (and the trees' labels), once
for the sentences.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.grammar.extract import shards as shard_lib
from jaxmt.grammar.extract.shards import AlignedShard
from jaxmt.grammar.table import LABELS
from jaxmt.text import bitext, files, vocabulary
from jaxmt.text import links as link_lib
from jaxmt.text import trees as tree_lib
from jaxmt.text.binarize import binarize_left_heavy
from jaxmt.text.ragged import Ragged, row_offsets
from jaxmt.text.trees import Trees
from jaxmt.text.vocabulary import SPECIALS, Vocabulary

_LINES = 10_000  # lines looked at together

OnBad = Callable[[InputError], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paths:
  """The files of a corpus; trees are the source side's."""

  source: str
  target: str
  links: str
  trees: str | None = None


def refuse(error: InputError) -> None:
  """Raises: what is done with a bad sentence unless it may be skipped."""
  raise error


def check_paths(paths: Paths) -> None:
  """Raises `InputError` for standard input, which cannot be read twice."""
  if "-" in dataclasses.astuple(paths):
    raise InputError("the corpus is read twice: it cannot be standard input")


def read_vocabulary(path: str) -> tuple[Vocabulary, int]:
  """Returns what `vocabulary.build` would, and the number of lines."""
  counts: dict[str, int] = {}
  size = 0
  for _, (lines,) in _chunks([path]):
    size += len(lines)
    ids, tokens = vocabulary.intern(lines)
    totals = np.bincount(ids.flat, minlength=len(tokens)).tolist()
    for token, count in zip(tokens, totals, strict=True):
      counts[token] = counts.get(token, 0) + count
  for special in SPECIALS:
    counts.pop(special, None)
  words = sorted(counts, key=lambda word: (-counts[word], word))
  return Vocabulary(words=(*SPECIALS, *words)), size


def read_labels(path: str, *, binarize: bool, on_bad: OnBad) -> tuple[str, ...]:
  """Returns the labels every table has, then those of a file of trees."""
  labels: set[str] = set()
  for first, (lines,) in _chunks([path]):
    trees, _ = _parse_trees(lines, first, path, binarize, on_bad)
    labels.update(np.array(trees.labels, object)[np.unique(trees.label)])
  return shard_lib.table_labels(labels)


def read_shards(
  paths: Paths,
  *,
  source_words: Vocabulary,
  target_words: Vocabulary,
  tokens: int,
  labels: Sequence[str] = LABELS,
  binarize: bool = False,
  on_bad: OnBad = refuse,
) -> Iterator[AlignedShard]:
  """Yields the corpus in shards of about `tokens` source words.

  Args:
    paths: the files.
    source_words: of the source text.
    target_words: of the target text.
    tokens: see `shards.tokens_per_shard`.
    labels: the labels of the trees, in the order of their new ids.
    binarize: make the trees binary, left-heavy.
    on_bad: called with what is wrong with a sentence: raises, or returns to
      have it skipped (it keeps its number, and has no words).

  Raises:
    InputError: if the files differ in their number of lines, or a sentence is
      bad and `on_bad` raises; names file and line.
  """
  names = [paths.source, paths.target, paths.links]
  if paths.trees is not None:
    names.append(paths.trees)
  for first, sides in _chunks(names):
    source = vocabulary.encode(source_words, sides[0])
    target = vocabulary.encode(target_words, sides[1])
    links, good = _parse_links(
      sides[2], first, paths.links, source.lengths, target.lengths, on_bad
    )
    trees = None
    if paths.trees is not None:
      trees, parsed = _parse_trees(
        sides[3], first, paths.trees, binarize, on_bad, sides[0], paths.source
      )
      good &= parsed
    source, target, links = (
      _emptied(rows, good) for rows in (source, target, links)
    )
    if trees is not None:
      trees = shard_lib.relabel(_without(trees, good), labels)
    yield from shard_lib.split(
      source, target, links, trees=trees, tokens=tokens, first=first
    )


def _chunks(paths: Sequence[str]) -> Iterator[tuple[int, list[list[str]]]]:
  """Yields `(number of the first line from 0, lines of each file)`."""
  streams = [files.stream_lines(path) for path in paths]
  first = 0
  while True:
    sides = [
      [line for _, line in itertools.islice(stream, _LINES)]
      for stream in streams
    ]
    sizes = [len(side) for side in sides]
    if min(sizes) < max(sizes):
      _refuse_uneven(paths, streams, [first + size for size in sizes])
    if not sizes[0]:
      return
    yield first, sides
    first += sizes[0]


def _refuse_uneven(paths, streams, counts: list[int]) -> None:
  """Raises for the shortest file, after counting the longest to its end."""
  totals = [
    count + sum(1 for _ in stream)
    for count, stream in zip(counts, streams, strict=True)
  ]
  short = int(np.argmin(totals))
  long = int(np.argmax(totals))
  bitext.check_line_count(
    totals[short],
    path=paths[short],
    expected=totals[long],
    expected_path=paths[long],
  )


def _parse_links(
  lines, first, path, source_lengths, target_lengths, on_bad
) -> tuple[Ragged, np.ndarray]:
  """The links of a chunk, and which sentences are good."""

  def parse(rows: slice, part: list[str]) -> Ragged:
    return link_lib.parse_links(
      part,
      path=path,
      source_lengths=source_lengths[rows],
      target_lengths=target_lengths[rows],
    )

  return _parse_chunk(parse, lines, first, on_bad)


def _parse_trees(
  lines, first, path, binarize, on_bad, sentences=None, sentences_path=None
) -> tuple[Trees, np.ndarray]:
  """The trees of a chunk, and which sentences are good.

  A failed parse is not an error: its sentence stays, without a tree.
  """

  def parse(rows: slice, part: list[str]) -> Trees:
    trees = tree_lib.parse_trees(part, path=path)
    if sentences is not None:
      tree_lib.check_leaves(
        trees,
        sentences[rows],
        path=path,
        lines_path=sentences_path,
        unescape=True,
      )
    return binarize_left_heavy(trees, path=path) if binarize else trees

  return _parse_chunk(parse, lines, first, on_bad)


def _parse_chunk(parse, lines: Sequence[str], first: int, on_bad: OnBad):
  """Parses lines together; only if that fails, one by one to find the bad.

  Returns:
    `(parsed, good)`: bad lines are parsed as empty ones, and marked False.
  """
  everything = slice(0, len(lines))
  good = np.ones(len(lines), np.bool_)
  try:
    return parse(everything, list(lines)), good
  except InputError as error:
    line = None if error.line is None else error.line + first
    if on_bad is refuse:
      raise InputError(error.cause, path=error.path, line=line) from error
  for row, text in enumerate(lines):
    try:
      parse(slice(row, row + 1), [text])
    except InputError as error:
      on_bad(InputError(error.cause, path=error.path, line=first + row + 1))
      good[row] = False
  texts = [text if fine else "" for text, fine in zip(lines, good, strict=True)]
  return parse(everything, texts), good


def _emptied(rows: Ragged, good: np.ndarray) -> Ragged:
  """The rows, those that are not good without items."""
  if good.all():
    return rows
  lengths = np.where(good, rows.lengths, 0)
  return Ragged(
    flat=rows.flat[np.repeat(good, rows.lengths)],
    offsets=row_offsets(lengths),
  )


def _without(trees: Trees, good: np.ndarray) -> Trees:
  """The trees, those of sentences that are not good as failed parses."""
  if good.all():
    return trees
  nodes = np.diff(trees.offsets)
  keep = np.repeat(good, nodes)
  offsets = row_offsets(nodes * good)
  return dataclasses.replace(
    trees,
    offsets=offsets,
    label=trees.label[keep],
    size=trees.size[keep],
    parent=trees.parent[keep],
    start=trees.start[keep],
    end=trees.end[keep],
    words=_emptied(trees.words, good),
  )
