"""Orientations of phrase pairs in word-aligned text.

A phrase pair with source words [b, e) and target words [s, t) is, towards what
stands before it on the target side (backward),

    monotone       if its predecessor ends at source b and target s,
    swap           if its predecessor begins at source e and ends at target s,
    discontinuous  otherwise;

and towards what stands after it (forward) likewise, with the directions of both
sides turned round. What counts as predecessor is the kind of the model:

    word          a link of the words at that corner (Koehn et al. 2005)
    phrase        that, or an extracted phrase pair at that corner (Tillmann
                  2004)
    hierarchical  that, or a phrase pair of any length (Galley & Manning 2008)

The edges of a sentence pair count as linked. Where both corners are linked, the
words say nothing.

Orientations are counted by the engine that counts rules (`shards.py`): a phrase
pair is emitted without its links, with the code 3 · backward + forward in the
place of its left-hand side.
"""

import dataclasses
import functools
from collections.abc import Iterable

import numpy as np

from jaxmt.grammar import estimate, reordering
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import packed_rules, shards
from jaxmt.grammar.extract.hiero import HieroOptions, find_phrases
from jaxmt.grammar.extract.packed_rules import COUNT_UNIT, SEP, Emission
from jaxmt.grammar.extract.pair_arrays import pair_arrays, sentence_pair
from jaxmt.grammar.extract.rule_buffer import (
  add_row,
  buffer_arrays,
  emission,
  new_buffer,
  set_shares,
  with_room,
)
from jaxmt.grammar.extract.shards import AlignedShard, CountOptions
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.runtime.runner import Runner
from jaxmt.text.kernels import njit
from jaxmt.text.vocabulary import SPECIALS, Vocabulary

KINDS = ("word", "phrase", "hierarchical")

_FIRST_WORD = len(SPECIALS)
_HIERO = int(Kind.HIERO)
_CODES = tuple(str(code) for code in range(9))


def orientation_rows(
  shard: AlignedShard, *, options: HieroOptions, kind: str
) -> Emission:
  """Finds every phrase pair with its orientations in a shard.

  Args:
    shard: word-aligned sentence pairs.
    options: limits of phrase pairs, as for their extraction.
    kind: one of `KINDS`.

  Raises:
    ValueError: for another kind.
  """
  if kind not in KINDS:
    raise ValueError(f"reordering '{kind}' is none of {', '.join(KINDS)}")
  arrays = _extract(
    pair_arrays(shard.source, shard.target, shard.links),
    np.array(
      [options.max_phrase, options.max_target_phrase, options.max_words],
      np.int64,
    ),
    options.tight,
    KINDS.index(kind),
  )
  return emission(arrays, first=shard.first)


def count_orientations(
  found: Iterable[AlignedShard],
  *,
  options: HieroOptions,
  kind: str,
  count: CountOptions,
  runner: Runner,
  source_words: Vocabulary,
  target_words: Vocabulary,
  smoothing: float = reordering.SMOOTHING,
) -> RuleTable:
  """Returns phrase pairs with the six features of a reordering model.

  Args:
    found: the corpus.
    options: limits of phrase pairs, as for their extraction.
    kind: one of `KINDS`.
    count: memory and where to spill; every phrase pair is counted.
    runner: where to work.
    source_words: of the source ids.
    target_words: of the target ids.
    smoothing: see `reordering.probabilities`.
  """
  parts, _ = shards.count_rules(
    found,
    [functools.partial(orientation_rows, options=options, kind=kind)],
    options=dataclasses.replace(count, min_count=1, provenance=False),
    runner=runner,
  )
  columns, counts = [], [np.zeros(0)]
  for part in parts:
    columns.append(packed_rules.unpack(part.rows))
    counts.append(part.shares / COUNT_UNIT)
  stack = lambda name: table_lib.stack_rows(
    [getattr(one, name) for one in columns] or [table_lib.empty_rows(0)]
  )
  table = table_lib.make_table(
    source_words=source_words,
    target_words=target_words,
    labels=_CODES,
    source=stack("source"),
    target=stack("target"),
  )
  code = np.concatenate([np.zeros(0, np.int32), *(one.lhs for one in columns)])
  return _summed(table, code, np.concatenate(counts), smoothing)


def _summed(
  table: RuleTable, code: np.ndarray, counts: np.ndarray, smoothing: float
) -> RuleTable:
  """One row for each phrase pair, with its probabilities."""
  pair = estimate.group_rules(table).pair
  size = int(pair.max(initial=-1)) + 1
  totals = np.zeros((size, 6))
  np.add.at(totals, (pair, code // 3), counts)
  np.add.at(totals, (pair, 3 + code % 3), counts)
  _, first = np.unique(pair, return_index=True)
  distinct = table_lib.select(table, first)
  return dataclasses.replace(
    distinct,
    labels=table_lib.LABELS,
    counts=totals[:, :3].sum(1),
    features=reordering.probabilities(totals, smoothing=smoothing),
    feature_names=reordering.NAMES,
  )


@njit
def _extract(bitext, limits, tight, kind):
  """Runs over the sentences; see `orientation_rows`."""
  buffer, size = new_buffer()
  for sentence in range(len(bitext.source_offsets) - 1):
    words, others, pairs = sentence_pair(bitext, sentence)
    if len(pairs) == 0:
      continue
    height, width = len(words), len(others)
    phrases, _ = find_phrases(height, width, pairs, limits[0], limits[1], tight)
    # Which corners of the alignment matrix are linked: [0] and the last row
    # stand for the edges.
    linked = np.zeros((height + 2, width + 2), np.bool_)
    linked[0, 0] = True
    linked[height + 1, width + 1] = True
    for link in range(len(pairs)):
      linked[1 + pairs[link, 0], 1 + pairs[link, 1]] = True
    # Which points (source, target) are corners of phrase pairs: by their
    # source end or start, and their target end or start.
    corners = np.zeros((4, height + 1, width + 1), np.bool_)
    if kind > 0:
      blocks = phrases
      if kind == 2:
        blocks, _ = find_phrases(height, width, pairs, height, width, tight)
      for block in range(len(blocks)):
        begin, end, low, high = blocks[block, :4]
        corners[0, end, high] = True  # before, monotone
        corners[1, begin, high] = True  # before, swap
        corners[2, begin, low] = True  # after, monotone
        corners[3, end, low] = True  # after, swap
    before_rows = size[1]
    for number in range(len(phrases)):
      begin, end, low, high = phrases[number, :4]
      if end - begin > limits[2]:
        continue
      # In `linked`, word w stands at w + 1.
      backward = _orientation(
        linked[begin, low],
        linked[end + 1, low],
        corners[0, begin, low],
        corners[1, end, low],
      )
      forward = _orientation(
        linked[end + 1, high + 1],
        linked[begin, high + 1],
        corners[2, end, high],
        corners[3, begin, high],
      )
      buffer = with_room(buffer, size, end - begin + high - low + 5)
      stop = _write(
        buffer[0],
        size[0],
        words[begin:end],
        others[low:high],
        3 * backward + forward,
      )
      add_row(buffer, size, stop, sentence)
    set_shares(buffer, size, before_rows, False)
  return buffer_arrays(buffer, size)


@njit
def _orientation(straight, crossed, straight_block, crossed_block):
  """The orientation, from links and blocks at the two corners."""
  if (straight and not crossed) or straight_block:
    return 0
  if (crossed and not straight) or crossed_block:
    return 1
  return 2


@njit
def _write(flat, position, words, others, code):
  """Writes one row; returns its end, or `position` if it has an UNK."""
  start = position
  for word in words:
    if word < _FIRST_WORD:
      return start
    flat[position] = word
    position += 1
  flat[position] = SEP
  position += 1
  for word in others:
    if word < _FIRST_WORD:
      return start
    flat[position] = word
    position += 1
  flat[position] = SEP
  flat[position + 1] = code
  flat[position + 2] = _HIERO
  flat[position + 3] = SEP
  return position + 4
