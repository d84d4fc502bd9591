"""Hiero and phrase-pair extraction.

Chiang, "Hierarchical phrase-based translation", Computational Linguistics 33
(2), 2007, section 3. An *initial phrase pair* of a word-aligned sentence pair
is a source and a target span, at least one link inside, no link from one of
them to outside the other. From an initial pair, rules arise by replacing up to
two smaller initial pairs inside it by non-terminals:

    if <f, e> is initial, X -> <f, e> is a rule;
    if X -> <a f b, c e d> is a rule and <f, e> is initial,
    X -> <a X_k b, c X_k d> is a rule.

Chiang's filters: tight spans only (no unaligned word at an edge), initial
pairs of at most ten words on either side, at most five source symbols, at most
two non-terminals, not adjacent on the source side, and at least one linked
word pair left in the rule. Counts: every occurrence counts one; or (section
3.5) every initial pair has one count and shares it equally among its rules.
"""

import dataclasses

import numpy as np

from jaxmt.grammar.extract.packed_rules import LINK_BASE, SEP, Emission
from jaxmt.grammar.extract.pair_arrays import (
  link_extents,
  pair_arrays,
  sentence_pair,
)
from jaxmt.grammar.extract.rule_buffer import (
  add_row,
  buffer_arrays,
  emission,
  new_buffer,
  set_shares,
  with_room,
)
from jaxmt.grammar.table import Kind, X
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS

_FIRST_WORD = len(SPECIALS)  # rules never hold unknown words
_HIERO = int(Kind.HIERO)
_HOLE = -1 - X


@dataclasses.dataclass(frozen=True, kw_only=True)
class HieroOptions:
  """What is extracted.

  Attributes:
    max_phrase: longest source span of an initial phrase pair.
    max_target_phrase: longest target span of one.
    max_symbols: most source symbols of a rule with non-terminals.
    max_words: most source words of a rule without.
    max_nonterminals: 0 (phrase pairs only), 1 or 2.
    min_hole: fewest source words a non-terminal replaces.
    adjacent: allow non-terminals that are neighbours on the source side.
    tight: no unaligned words at the edges of initial phrase pairs; otherwise
      all ways to add them are taken.
    fractional: share one count among the rules of an initial pair, instead of
      counting each occurrence one.
  """

  max_phrase: int = 10
  max_target_phrase: int = 10
  max_symbols: int = 5
  max_words: int = 5
  max_nonterminals: int = 2
  min_hole: int = 1
  adjacent: bool = False
  tight: bool = True
  fractional: bool = False


def check_options(options: HieroOptions) -> None:
  """Raises `ValueError` for sizes that make no sense."""
  for name in ("max_phrase", "max_target_phrase", "max_symbols", "min_hole"):
    if getattr(options, name) < 1:
      raise ValueError(f"{name} must be at least 1")
  if options.max_words < 0:
    raise ValueError("max_words must not be negative")
  if not 0 <= options.max_nonterminals <= 2:
    raise ValueError("max_nonterminals must be 0, 1 or 2")


def extract_rows(
  source: Ragged,
  target: Ragged,
  links: Ragged,
  options: HieroOptions,
  *,
  first: int = 0,
) -> Emission:
  """Finds every rule occurrence in word-aligned sentence pairs.

  Args:
    source: word ids, int32, B rows.
    target: word ids, int32, B rows.
    links: `[L, 2]` (source, target) positions in B rows, sorted.
    options: what is extracted.
    first: the number of the first sentence.
  """
  check_options(options)
  if not len(source) == len(target) == len(links):
    raise ValueError(
      f"{len(source)} source, {len(target)} target, {len(links)} link rows"
    )
  limits = np.array(
    [
      options.max_phrase,
      options.max_target_phrase,
      options.max_symbols,
      options.max_words,
      options.max_nonterminals,
      options.min_hole,
      0 if options.adjacent else 1,
    ],
    np.int64,
  )
  arrays = _extract(
    pair_arrays(source, target, links),
    limits,
    options.tight,
    options.fractional,
  )
  return emission(arrays, first=first)


@njit
def _extract(bitext, limits, tight, fractional):
  """Runs over the sentences; see `extract_rows`."""
  buffer, size = new_buffer()
  for sentence in range(len(bitext.source_offsets) - 1):
    words, others, pairs = sentence_pair(bitext, sentence)
    if len(pairs) == 0:
      continue
    phrases, first_at = find_phrases(
      len(words), len(others), pairs, limits[0], limits[1], tight
    )
    for outer in range(len(phrases)):
      before = size[1]
      holes = _choose_holes(phrases, first_at, outer, limits)
      for choice in range(len(holes)):
        # A rule is shorter than its phrase pair with all its links.
        most = phrases[outer, 1] - phrases[outer, 0] + 5
        most += phrases[outer, 3] - phrases[outer, 2] + phrases[outer, 4]
        buffer = with_room(buffer, size, most)
        stop = _write(
          buffer[0],
          size[0],
          words,
          others,
          pairs,
          phrases,
          outer,
          holes[choice],
        )
        add_row(buffer, size, stop, sentence)
      set_shares(buffer, size, before, fractional)
  return buffer_arrays(buffer, size)


@njit
def find_phrases(
  source_size, target_size, links, longest, longest_target, tight
):
  """Lists the initial phrase pairs of a sentence pair.

  Returns:
    `(phrases int32 [P, 5], first_at int64 [source_size + 1])`: source start
    and end, target start and end, number of links; in order of source start,
    those starting at i are `first_at[i]` to `first_at[i + 1]`.
  """
  # Extent of each word's links on the other side, and how many it has.
  low, high, left, right = link_extents(source_size, target_size, links)
  number = np.zeros(source_size, np.int32)
  for link in range(len(links)):
    number[links[link, 0]] += 1
  phrases = np.empty((64, 5), np.int32)
  count = 0
  first_at = np.zeros(source_size + 1, np.int64)
  for start in range(source_size):
    first_at[start] = count
    if tight and number[start] == 0:
      continue
    bottom, top, inside = target_size, -1, 0
    for end in range(start + 1, min(source_size, start + longest) + 1):
      bottom = min(bottom, low[end - 1])
      top = max(top, high[end - 1])
      inside += number[end - 1]
      if top - bottom >= longest_target:
        break
      if inside == 0 or (tight and number[end - 1] == 0):
        continue
      if not _closed(left, right, bottom, top, start, end):
        continue
      phrases, count = _add_phrases(
        phrases,
        count,
        (start, end, bottom, top + 1, inside),
        right,
        longest_target,
        tight,
      )
  first_at[source_size] = count
  return phrases[:count], first_at


@njit
def _closed(left, right, bottom, top, start, end):
  """Whether target words `bottom` to `top` link only into the source span."""
  for other in range(bottom, top + 1):
    if left[other] < start or right[other] >= end:
      return False
  return True


@njit
def _add_phrases(phrases, count, phrase, right, longest_target, tight):
  """Adds a tight pair and, unless only that, its ways to take unaligned words.

  Returns:
    `(phrases, found)`, the array perhaps a larger one.
  """
  start, end, bottom, over, inside = phrase
  begin = bottom
  while begin >= 0 and (begin == bottom or right[begin] < 0):
    stop = over
    while stop <= len(right) and (stop == over or right[stop - 1] < 0):
      if stop - begin > longest_target:
        break
      if count == len(phrases):
        phrases = np.concatenate((phrases, np.empty_like(phrases)))
      phrases[count, 0] = start
      phrases[count, 1] = end
      phrases[count, 2] = begin
      phrases[count, 3] = stop
      phrases[count, 4] = inside
      count += 1
      if tight:
        return phrases, count
      stop += 1
    begin -= 1
  return phrases, count


@njit
def _choose_holes(phrases, first_at, outer, limits):
  """Lists the ways to make a rule of one initial phrase pair.

  Returns:
    int32 `[C, 2]`: phrases replaced by non-terminals in source order, -1 for
    none.
  """
  start, end = phrases[outer, 0], phrases[outer, 1]
  length = end - start
  chosen = np.empty((8, 2), np.int32)
  count = 0
  if length <= limits[3]:
    chosen[0, 0] = -1
    chosen[0, 1] = -1
    count = 1
  if limits[4] == 0:
    return chosen[:count]
  for one in range(first_at[start], first_at[end]):
    if not _fits(phrases, outer, one, limits[5]):
      continue
    left = length - (phrases[one, 1] - phrases[one, 0])
    links = phrases[outer, 4] - phrases[one, 4]
    if links == 0:
      continue
    if left + 1 <= limits[2]:
      if count == len(chosen):
        chosen = np.concatenate((chosen, np.empty_like(chosen)))
      chosen[count, 0] = one
      chosen[count, 1] = -1
      count += 1
    after = phrases[one, 1] + limits[6]
    # The second must be long enough to leave few symbols.
    shortest = max(limits[5], left + 2 - limits[2])
    if limits[4] < 2 or end - after < shortest:
      continue
    for two in range(first_at[after], first_at[end - shortest + 1]):
      if (
        phrases[two, 1] - phrases[two, 0] >= shortest
        and links > phrases[two, 4]
        and _fits(phrases, outer, two, limits[5])
        and (
          phrases[two, 2] >= phrases[one, 3]
          or phrases[two, 3] <= phrases[one, 2]
        )
      ):
        if count == len(chosen):
          chosen = np.concatenate((chosen, np.empty_like(chosen)))
        chosen[count, 0] = one
        chosen[count, 1] = two
        count += 1
  return chosen[:count]


@njit
def _fits(phrases, outer, inner, shortest):
  """Whether one phrase pair lies inside another and is long enough."""
  return (
    phrases[inner, 1] <= phrases[outer, 1]
    and phrases[inner, 2] >= phrases[outer, 2]
    and phrases[inner, 3] <= phrases[outer, 3]
    and phrases[inner, 1] - phrases[inner, 0] >= shortest
  )


@njit
def _write(flat, position, words, others, links, phrases, outer, holes):
  """Writes one rule's row; returns its end, or `position` if it has an UNK."""
  start = position
  place = phrases[outer, 0]
  while place < phrases[outer, 1]:
    symbol = words[place]
    step = place + 1
    for hole in holes:
      if hole >= 0 and phrases[hole, 0] == place:
        symbol = _HOLE
        step = phrases[hole, 1]
    if 0 <= symbol < _FIRST_WORD:
      return start
    flat[position] = symbol
    position += 1
    place = step
  flat[position] = SEP
  position += 1
  place = phrases[outer, 2]
  while place < phrases[outer, 3]:
    symbol = others[place]
    step = place + 1
    for number in range(2):
      hole = holes[number]
      if hole >= 0 and phrases[hole, 2] == place:
        symbol = -1 - number
        step = phrases[hole, 3]
    if 0 <= symbol < _FIRST_WORD:
      return start
    flat[position] = symbol
    position += 1
    place = step
  flat[position] = SEP
  flat[position + 1] = X
  flat[position + 2] = _HIERO
  flat[position + 3] = SEP
  return _write_links(flat, position + 4, links, phrases, outer, holes)


@njit
def _write_links(flat, position, links, phrases, outer, holes):
  """Writes the links between the words of a rule; returns the row's end."""
  for link in range(len(links)):
    word, other = links[link, 0], links[link, 1]
    if word < phrases[outer, 0] or word >= phrases[outer, 1]:
      continue
    source_place = word - phrases[outer, 0]
    target_place = other - phrases[outer, 2]
    inside = False
    for hole in holes:
      if hole < 0:
        continue
      if phrases[hole, 0] <= word < phrases[hole, 1]:
        inside = True
        break
      # A hole before the word is one symbol, not its length.
      if phrases[hole, 1] <= word:
        source_place -= phrases[hole, 1] - phrases[hole, 0] - 1
      if phrases[hole, 3] <= other:
        target_place -= phrases[hole, 3] - phrases[hole, 2] - 1
    if not inside:
      flat[position] = source_place * LINK_BASE + target_place
      position += 1
  return position
