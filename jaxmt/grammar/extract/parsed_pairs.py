"""Aligned text with target trees as keys of words, for phrase dependencies."""

from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.grammar import dependency_events as events
from jaxmt.grammar.extract.phrase_dependencies import KnownPhrases, ParsedPairs
from jaxmt.grammar.table import RuleTable
from jaxmt.text import links as link_lib
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.text.treebank import Treebank

UNKNOWN_CLUSTER = "<unk>"


def cluster_names(
  words: Sequence[str], clusters: Mapping[str, str]
) -> list[str]:
  """Returns the cluster of each word."""
  return [clusters.get(word, UNKNOWN_CLUSTER) for word in words]


def from_lines(
  source: Sequence[str],
  target: Sequence[str],
  links: Sequence[str],
  trees: Treebank,
  clusters: Mapping[str, str],
) -> ParsedPairs:
  """Returns the pairs of a bitext that have words on both sides.

  Args:
    source: source lines.
    target: target lines.
    links: word links in Pharaoh format.
    trees: a tree for each target line with words.
    clusters: cluster of each target word that has one.

  Raises:
    ValueError: if the numbers of lines differ, or a tree is of other words.
  """
  if not len(source) == len(target) == len(links):
    raise ValueError(
      f"{len(source)} source lines, {len(target)} target lines,"
      f" {len(links)} lines of links"
    )
  heads = line_heads(target, trees)
  one, source_words = vocabulary.intern(source)
  other, target_words = vocabulary.intern(target)
  aligned = link_lib.parse_links(
    links, source_lengths=one.lengths, target_lengths=other.lengths
  )
  rows = np.flatnonzero((one.lengths > 0) & (other.lengths > 0))
  as_keys = lambda ids, words: Ragged(
    flat=events.word_keys(words)[ids.flat], offsets=ids.offsets
  )
  select = lambda part: ragged.select(part, rows)
  return ParsedPairs(
    source=select(as_keys(one, source_words)),
    target=select(as_keys(other, target_words)),
    clusters=select(as_keys(other, cluster_names(target_words, clusters))),
    heads=select(heads),
    links=select(aligned),
  )


def line_heads(lines: Sequence[str], trees: Treebank) -> Ragged:
  """Returns the heads of the words of each line, after comparing the words.

  Raises:
    ValueError: if a tree is missing, or is of other words.
  """
  ids, words = vocabulary.intern(lines)
  filled = np.flatnonzero(ids.lengths)
  if len(filled) != len(trees):
    raise ValueError(f"{len(trees)} trees for {len(filled)} lines with words")
  if not trees.has_trees.all():
    place = int(np.flatnonzero(~trees.has_trees)[0])
    raise ValueError(f"sentence {place + 1} has no tree")
  flat = [trees.forms[word] for word in trees.words.flat.tolist()]
  if flat != [words[word] for word in ids.flat.tolist()]:
    for tree, row in enumerate(filled.tolist()):
      tree_words = [trees.forms[word] for word in trees.words[tree].tolist()]
      if tree_words != lines[row].split():
        raise ValueError(f"tree {tree + 1} is not of line {row + 1}")
  return Ragged(flat=trees.heads, offsets=ids.offsets)


def known_phrases(
  table: RuleTable, clusters: Mapping[str, str]
) -> KnownPhrases:
  """Returns the phrases of a phrase table."""
  source_keys = events.word_keys(table.source_words.words)
  names = table.target_words.words
  target_keys = events.word_keys(names)
  cluster_keys = events.word_keys(cluster_names(names, clusters))
  return KnownPhrases(
    source=_phrases(table.source, source_keys),
    target=_phrases(table.target, target_keys),
    clusters=_phrases(table.target, cluster_keys),
  )


def _phrases(rows: Ragged, keys: np.ndarray) -> np.ndarray:
  """Sorted keys of the rows without gaps."""
  holes = ragged.row_offsets(rows.flat < 0)
  plain = holes[rows.offsets[1:]] == holes[rows.offsets[:-1]]
  some = ragged.select(rows, np.flatnonzero(plain & (rows.lengths > 0)))
  return np.unique(events.row_keys(keys[some.flat], some.offsets))
