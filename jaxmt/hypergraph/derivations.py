"""Derivations of forests as lists of edges, and the strings they yield.

A derivation is listed as its edges in preorder: the root's edge first, then the
derivation of its first tail, and so on.

Algorithms that build derivations share their parts. They keep *items*: int32
`[I, C + A]`. An item is an edge (column 0) with one item for each of its tails
(columns C to C + A). The kernels here list the edges of items and spell them.

To compare strings they are not spelt. Every item of `kbest_lists` has two
polynomial hashes of its words, which follow from those of its parts; hash sets
tell which strings a node has yielded already.
"""

import dataclasses

import numpy as np

from jaxmt.hypergraph.forest import Forest
from jaxmt.text.kernels import GOLDEN, grown, grown_rows, mixed, njit
from jaxmt.text.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class EdgeStrings:
  """What each of E edges adds to the string that a derivation yields.

  A symbol is a word (0 or above) or a tail (-1 - k for tail k). Edges name one
  of S strings of symbols. X further strings consist of one symbol each: they
  can differ from batch to batch while `symbols` is shared by all.

  Attributes:
    row: the string of each edge, int32 `[E]`: below S a row of `symbols`, S + x
      is the symbol `extra[x]`.
    symbols: S rows of int32.
    extra: int32 `[X]`.
  """

  row: np.ndarray
  symbols: Ragged
  extra: np.ndarray = dataclasses.field(
    default_factory=lambda: np.zeros(0, np.int32)
  )

  @property
  def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The arrays for kernels: row, flat symbols, their offsets, extra."""
    return (
      np.ascontiguousarray(self.row, np.int32),
      np.ascontiguousarray(self.symbols.flat, np.int32),
      np.ascontiguousarray(self.symbols.offsets, np.int64),
      np.ascontiguousarray(self.extra, np.int32),
    )


def no_strings(forest: Forest) -> EdgeStrings:
  """Returns edge strings without any symbol: derivations yield no words."""
  return EdgeStrings(
    row=np.zeros(forest.num_edges, np.int32),
    symbols=Ragged(flat=np.zeros(0, np.int32), offsets=np.zeros(2, np.int64)),
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DerivationLists:
  """D derivations of B sentences.

  Attributes:
    offsets: sentence b's derivations are `offsets[b] : offsets[b + 1]`, int64
      `[B + 1]`; there are none for a sentence without a forest.
    score: their scores, float64 `[D]`.
    edges: the edges of each in preorder, D rows of int32.
    words: the words of each, D rows of int32; empty rows if the edges have no
      strings.
  """

  offsets: np.ndarray
  score: np.ndarray
  edges: Ragged
  words: Ragged

  def __len__(self) -> int:
    """Returns B."""
    return len(self.offsets) - 1

  @property
  def sentence(self) -> np.ndarray:
    """The sentence of each derivation, int64 `[D]`."""
    return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def sum_values(derivations: Ragged, values: np.ndarray) -> np.ndarray:
  """Returns the sum of edge values over each derivation.

  Args:
    derivations: edges of D derivations, at least one edge each.
    values: `[E, F]` or `[E]`.

  Returns:
    float64 `[D, F]` or `[D]`.
  """
  values = np.asarray(values)
  if not len(derivations):
    return np.zeros((0, *values.shape[1:]))
  return np.add.reduceat(
    values[derivations.flat].astype(np.float64, copy=False),
    derivations.offsets[:-1],
    axis=0,
  )


def list_items(
  forest: Forest,
  items: np.ndarray,
  chosen: np.ndarray,
  *,
  strings: EdgeStrings | None = None,
) -> tuple[Ragged, Ragged]:
  """Returns the edges of D items in preorder, and their words.

  Args:
    forest: the forests.
    items: int32 `[I, 1 + A]`: an edge, and the items of its tails.
    chosen: the items to list, int `[D]`.
    strings: what edges add to strings.

  Returns:
    Edges and words, D rows of int32 each.
  """
  strings = no_strings(forest) if strings is None else strings
  edges, words, ends = _list_and_spell(
    np.asarray(chosen, np.int64),
    items,
    np.ascontiguousarray(forest.tails),
    strings.columns,
  )
  offsets = np.zeros((2, len(ends) + 1), np.int64)
  offsets[:, 1:] = ends.T
  return (
    Ragged(flat=edges, offsets=offsets[0]),
    Ragged(flat=words, offsets=offsets[1]),
  )


# --- kernels ------------------------------------------------------------------


@njit
def string_range(which, flat, offsets):
  """Returns the first place of a string's symbols and one past the last.

  Places up to `len(flat)` are those of `EdgeStrings.symbols`; the further
  strings follow.
  """
  if which < len(offsets) - 1:
    return offsets[which], offsets[which + 1]
  place = len(flat) + which - (len(offsets) - 1)
  return place, place + 1


@njit
def symbol_at(place, flat, extra):
  """Returns the symbol at a place of `string_range`."""
  if place < len(flat):
    return np.int64(flat[place])
  return np.int64(extra[place - len(flat)])


@njit
def spell_item(item, items, first, strings, words, stack):
  """Writes the words of an item.

  Args:
    item: the item.
    items: int32 `[I, first + A]`.
    first: column of the first tail's item.
    strings: `EdgeStrings.columns`.
    words: buffer, int32.
    stack: work space, int64 `[S, 2]`.

  Returns:
    `(number of words, words, stack)`; the buffers may have grown.
  """
  row, flat, offsets, extra = strings
  count, top = 0, 0
  now = np.int64(item)
  place, end = string_range(row[items[now, 0]], flat, offsets)
  while True:
    # Back to the innermost item that has symbols left.
    if place == end:
      if top == 0:
        return count, words, stack
      top -= 1
      now, place = stack[top, 0], stack[top, 1]
      _, end = string_range(row[items[now, 0]], flat, offsets)
    symbol = symbol_at(place, flat, extra)
    place += 1
    # A word is written.
    if symbol >= 0:
      if count == len(words):
        words = grown(words, count + 1)
      words[count] = symbol
      count += 1
      continue
    # A tail's item comes next; this one waits if it has more symbols.
    if place < end:
      if top == len(stack):
        stack = grown_rows(stack, top + 1)
      stack[top, 0], stack[top, 1] = now, place
      top += 1
    now = np.int64(items[now, first - 1 - symbol])
    place, end = string_range(row[items[now, 0]], flat, offsets)


@njit
def list_item(item, items, first, tails, edges, used, stack):
  """Appends an item's edges in preorder.

  Args:
    item: the item.
    items: int32 `[I, first + A]`.
    first: column of the first tail's item.
    tails: `Forest.tails`.
    edges: buffer, int32; the first `used` are filled.
    used: how many are filled.
    stack: work space, int64 `[S, 2]`.

  Returns:
    `(used, edges, stack)`; the buffers may have grown.
  """
  arity = tails.shape[1]
  top = 1
  stack[0, 0] = item
  while top:
    now = stack[top - 1, 0]
    top -= 1
    if used == len(edges):
      edges = grown(edges, used + 1)
    edge = items[now, 0]
    edges[used] = edge
    used += 1
    if top + arity > len(stack):
      stack = grown_rows(stack, top + arity)
    for part in range(arity - 1, -1, -1):
      if tails[edge, part] >= 0:
        stack[top, 0] = items[now, first + part]
        top += 1
  return used, edges, stack


@njit
def _list_and_spell(chosen, items, tails, strings):
  """Lists and spells some items.

  Args:
    chosen: D items.
    items: int32 `[I, 1 + A]`.
    tails: `Forest.tails`.
    strings: `EdgeStrings.columns`.

  Returns:
    `(edges, words, ends int64 [D, 2])`: edges and words of all, end to end, and
    where those of each end.
  """
  edges, words = np.empty(1024, np.int32), np.empty(1024, np.int32)
  spelled = np.empty(64, np.int32)
  stack = np.empty((64, 2), np.int64)
  ends = np.empty((len(chosen), 2), np.int64)
  num_edges, num_words = np.int64(0), np.int64(0)
  for number in range(len(chosen)):
    length, spelled, stack = spell_item(
      chosen[number], items, 1, strings, spelled, stack
    )
    if num_words + length > len(words):
      words = grown(words, num_words + length)
    for place in range(length):
      words[num_words + place] = spelled[place]
    num_words += length
    num_edges, edges, stack = list_item(
      chosen[number], items, 1, tails, edges, num_edges, stack
    )
    ends[number, 0], ends[number, 1] = num_edges, num_words
  return edges[:num_edges], words[:num_words], ends


@njit
def link_children(edge_rows, edges, tails):
  """Returns the children of edges listed in preorder, root edges left out.

  Args:
    edge_rows: offsets of the derivations in `edges`, int64 `[D + 1]`.
    edges: edges in preorder, the root's first, int32 `[T]`.
    tails: `Forest.tails`.

  Returns:
    int32 `[T - D, A]`: rows of the result itself, -1 for none.
  """
  arity = tails.shape[1]
  child = np.full((len(edges) - len(edge_rows) + 1, arity), -1, np.int32)
  stack = np.empty((64, 2), np.int64)
  out = 0
  for row in range(len(edge_rows) - 1):
    top = 0
    for _ in range(edge_rows[row] + 1, edge_rows[row + 1]):
      if top:  # the innermost edge that still waits for a child
        child[stack[top - 1, 0], stack[top - 1, 1]] = out
        stack[top - 1, 1] += 1
      if top == len(stack):
        stack = grown_rows(stack, top + 1)
      stack[top, 0], stack[top, 1] = out, 0
      top += 1
      while top and (
        stack[top - 1, 1] == arity
        or tails[edges[stack[top - 1, 0] + row + 1], stack[top - 1, 1]] < 0
      ):
        top -= 1
      out += 1
  return child


# Columns of a record: the edge, both sides of the node's skew heap, the next
# record of the node's list, and one record for each tail.
EDGE, LEFT, RIGHT, NEXT, KIDS = 0, 1, 2, 3, 4
_BASE = GOLDEN  # odd, so that powers never vanish
_OTHER_BASE = np.uint64(0xD1B54A32D192ED03)


@njit
def mix(value):
  """A 64-bit number that looks random, also of 0."""
  return mixed(np.uint64(value) + GOLDEN)


@njit
def hash_string(record, records, hashes, strings):
  """Sets the hashes of a record's words, and the powers for its length."""
  row, flat, offsets, extra = strings
  low, high = string_range(row[records[record, EDGE]], flat, offsets)
  one, two = np.uint64(0), np.uint64(0)
  one_power, two_power = np.uint64(1), np.uint64(1)
  for place in range(low, high):
    symbol = symbol_at(place, flat, extra)
    if symbol >= 0:
      word = mix(symbol)
      one = one * _BASE + word
      two = two * _OTHER_BASE + mix(word)
      one_power *= _BASE
      two_power *= _OTHER_BASE
    else:
      kid = records[record, KIDS - 1 - symbol]
      one = one * hashes[kid, 2] + hashes[kid, 0]
      two = two * hashes[kid, 3] + hashes[kid, 1]
      one_power *= hashes[kid, 2]
      two_power *= hashes[kid, 3]
  hashes[record, 0], hashes[record, 1] = one, two
  hashes[record, 2], hashes[record, 3] = one_power, two_power


@njit
def first_place(record, node, slots, hashes):
  """Returns the place of the table at which a search begins."""
  mask = np.uint64(len(slots) - 1)
  return np.int64(mix(hashes[record, 0] ^ mix(node)) & mask)


@njit
def find_place(place, record, node, slots, hashes):
  """Looks the words of a record up among those of its node, by their hashes.

  Args:
    place: where to begin.
    record: the record.
    node: its node.
    slots: the table, int32 `[S, 2]`: a record and its node, -1 if free.
    hashes: of all records, uint64 `[R, 4]`.

  Returns:
    The first place that is free or has a record with the same hashes.
  """
  mask = np.int64(len(slots) - 1)
  while slots[place, 0] >= 0:
    other = slots[place, 0]
    if (
      slots[place, 1] == node
      and hashes[other, 0] == hashes[record, 0]
      and hashes[other, 1] == hashes[record, 1]
    ):
      break
    place = (place + 1) & mask
  return place


@njit
def compare_strings(one, other, records, strings, buffers):
  """Returns whether the words of two records are equal, and the buffers.

  Args:
    one: a record.
    other: another one.
    records: all records.
    strings: `EdgeStrings.columns`.
    buffers: room for the words of both and for a stack; they may grow.
  """
  first, second, stack = buffers
  length, first, stack = spell_item(one, records, KIDS, strings, first, stack)
  size, second, stack = spell_item(other, records, KIDS, strings, second, stack)
  same = length == size
  for word in range(min(length, size)):
    same = same and first[word] == second[word]
  return same, (first, second, stack)


@njit
def rehash(slots, hashes):
  """A table of twice the size with the same entries."""
  more = np.full((2 * len(slots), 2), -1, np.int32)
  mask = np.uint64(len(more) - 1)
  for item in range(len(slots)):
    if slots[item, 0] >= 0:
      node = slots[item, 1]
      place = mix(hashes[slots[item, 0], 0] ^ mix(node)) & mask
      while more[place, 0] >= 0:
        place = (place + np.uint64(1)) & mask
      more[place, 0], more[place, 1] = slots[item, 0], node
  return more
