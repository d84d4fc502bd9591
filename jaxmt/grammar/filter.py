"""Keeps the rules whose source side can match some sentence.

A source side is words and gaps (each non-terminal at least one word). To find
whether it matches anywhere, its rarest word is looked up in an index of the
sentences, and from each occurrence the rest is matched outwards, every stretch
of words at its first possible place: without a limit on spans the first place
is as good as any.
"""

import numpy as np

from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import packed_rules as rows_lib
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets


def usable(table: RuleTable, sentences: Ragged) -> np.ndarray:
  """Tells which rules can be used on some sentences.

  Args:
    table: R rules.
    sentences: source word ids (of the table's vocabulary), int32, N rows.

  Returns:
    bool `[R]`; glue and pass-through rules always can.
  """
  ids, first = rows_lib.group(table.source)
  patterns = rows_lib.take(table.source, first)
  order = np.argsort(sentences.flat, kind="stable")
  numbers = np.bincount(sentences.flat, minlength=len(table.source_words))
  matched = _match_all(
    patterns.flat,
    patterns.offsets,
    np.ascontiguousarray(sentences.flat, np.int32),
    sentences.offsets,
    np.repeat(np.arange(len(sentences)), sentences.lengths),
    order,
    row_offsets(numbers),
  )
  always = np.isin(table.kind, [Kind.GLUE, Kind.PASS_THROUGH])
  return matched[ids] | always


def filter_table(table: RuleTable, sentences: Ragged) -> RuleTable:
  """Returns only the rules that `usable` keeps."""
  return table_lib.select(table, usable(table, sentences))


@njit
def _match_all(
  flat, offsets, words, sentence_offsets, sentence_of, order, starts
):
  """Whether each pattern matches; `order[starts[w] :]` are w's positions."""
  matched = np.zeros(len(offsets) - 1, np.bool_)
  for row in range(len(matched)):
    pattern = flat[offsets[row] : offsets[row + 1]]
    rarest = -1
    for place in range(len(pattern)):
      if pattern[place] < 0:
        continue
      if rarest < 0 or _number(starts, pattern[place]) < _number(
        starts, pattern[rarest]
      ):
        rarest = place
    if rarest < 0:  # nothing but non-terminals: needs that many words
      for sentence in range(len(sentence_offsets) - 1):
        size = sentence_offsets[sentence + 1] - sentence_offsets[sentence]
        if size >= len(pattern):
          matched[row] = True
          break
      continue
    word = pattern[rarest]
    for item in range(starts[word], starts[word + 1]):
      position = order[item]
      sentence = sentence_of[position]
      begin = sentence_offsets[sentence]
      end = sentence_offsets[sentence + 1]
      if _match_right(pattern, rarest, words, position, end) and _match_left(
        pattern, rarest, words, position, begin
      ):
        matched[row] = True
        break
  return matched


@njit
def _number(starts, word):
  return starts[word + 1] - starts[word]


@njit
def _match_right(pattern, anchor, words, position, end):
  """Whether the pattern after its anchor matches before `end`."""
  place = anchor + 1
  position += 1
  gap = False
  while place < len(pattern):
    if pattern[place] < 0:
      position += 1  # a non-terminal takes one word at least
      gap = True
      place += 1
      continue
    stop = place
    while stop < len(pattern) and pattern[stop] >= 0:
      stop += 1
    size = stop - place
    while position + size <= end:
      same = True
      for step in range(size):
        if words[position + step] != pattern[place + step]:
          same = False
          break
      if same or not gap:
        break
      position += 1
    else:
      return False
    if not same:
      return False
    position += size
    place = stop
    gap = False
  return position <= end


@njit
def _match_left(pattern, anchor, words, position, begin):
  """Whether the pattern before its anchor matches after `begin`."""
  place = anchor - 1
  gap = False
  while place >= 0:
    if pattern[place] < 0:
      position -= 1
      gap = True
      place -= 1
      continue
    stop = place
    while stop >= 0 and pattern[stop] >= 0:
      stop -= 1
    size = place - stop
    while position - size >= begin:
      same = True
      for step in range(size):
        if words[position - size + step] != pattern[stop + 1 + step]:
          same = False
          break
      if same or not gap:
        break
      position -= 1
    else:
      return False
    if not same:
      return False
    position -= size
    place = stop
    gap = False
  return position >= begin
