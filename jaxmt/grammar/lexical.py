"""Counts of linked words, and lexical weights of rules.

Koehn, Och & Marcu, "Statistical phrase-based translation", NAACL 2003, section
4.2: w(e|f) is relative frequency over the links of the corpus, where a word
without link counts as linked to NULL; a rule with links a has the weight

    lex(β|α, a) = Π_j  1/|{i : (i, j) ∈ a}|  Σ_{(i, j) ∈ a} w(e_j|f_i)

over its target words, with w(e_j|NULL) for a word without link; and likewise
lex(α|β, a) over its source words.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxmt.align.lexical_table import NULL, LexicalTable
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets

FLOOR = 1e-9  # probability of a word pair the table does not have
NAMES = ("lex_source_given_target", "lex_target_given_source")

_SHIFT = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairCounts:
  """How often words were linked.

  Attributes:
    keys: `source << 32 | target`, rising, int64 `[P]`.
    counts: int64 `[P]`.
  """

  keys: np.ndarray
  counts: np.ndarray

  def __len__(self) -> int:
    return len(self.keys)


def no_pairs() -> PairCounts:
  """Returns counts of nothing."""
  return PairCounts(keys=np.zeros(0, np.int64), counts=np.zeros(0, np.int64))


def count_pairs(source: Ragged, target: Ragged, links: Ragged) -> PairCounts:
  """Counts the linked words of sentence pairs, and the unlinked with NULL.

  Args:
    source: word ids, B rows.
    target: word ids, B rows.
    links: `[L, 2]` positions in B rows.
  """
  row = np.repeat(np.arange(len(links)), links.lengths)
  source_at = source.offsets[row] + links.flat[:, 0]
  target_at = target.offsets[row] + links.flat[:, 1]
  lone_source = np.ones(len(source.flat), np.bool_)
  lone_source[source_at] = False
  lone_target = np.ones(len(target.flat), np.bool_)
  lone_target[target_at] = False
  keys = np.concatenate(
    [
      _keys(source.flat[source_at], target.flat[target_at]),
      _keys(source.flat[lone_source], np.int64(NULL)),
      _keys(np.int64(NULL), target.flat[lone_target]),
    ]
  )
  keys, counts = np.unique(keys, return_counts=True)
  return PairCounts(keys=keys, counts=counts.astype(np.int64))


def _keys(source, target) -> np.ndarray:
  return (np.asarray(source, np.int64) << _SHIFT) | np.asarray(target, np.int64)


def add_pairs(parts: Sequence[PairCounts]) -> PairCounts:
  """Adds counts up."""
  keys = np.concatenate([part.keys for part in parts])
  counts = np.concatenate([part.counts for part in parts])
  order = np.argsort(keys, kind="stable")
  keys, counts = keys[order], counts[order]
  first = np.flatnonzero(np.diff(keys, prepend=-1))
  if not len(first):
    return no_pairs()
  return PairCounts(keys=keys[first], counts=np.add.reduceat(counts, first))


def estimate_lexicon(pairs: PairCounts, *, source_size: int) -> LexicalTable:
  """Returns relative frequencies.

  Args:
    pairs: counts.
    source_size: number of source words, Vs.
  """
  sources = (pairs.keys >> _SHIFT).astype(np.int64)
  targets = (pairs.keys & ((1 << _SHIFT) - 1)).astype(np.int64)
  by_source = np.bincount(sources, pairs.counts, minlength=1)
  by_target = np.bincount(targets, pairs.counts, minlength=1)
  numbers = np.bincount(sources, minlength=source_size)
  return LexicalTable(
    offsets=row_offsets(numbers),
    targets=targets.astype(np.int32),
    forward=pairs.counts / by_source[sources],
    backward=pairs.counts / by_target[targets],
  )


def lexical_weights(
  source: Ragged, target: Ragged, links: Ragged, lexicon: LexicalTable
) -> np.ndarray:
  """Returns ln lex(α|β, a) and ln lex(β|α, a) of rules, float32 `[R, 2]`.

  Args:
    source: source symbols, R rows.
    target: target symbols, R rows.
    links: int16 `[L, 2]` positions, R rows, sorted.
    lexicon: word translation probabilities.
  """
  return _weights(
    source.flat,
    source.offsets,
    target.flat,
    target.offsets,
    links.flat,
    links.offsets,
    lexicon.offsets,
    lexicon.targets,
    lexicon.forward,
    lexicon.backward,
  )


@njit
def _find(offsets, targets, source, target):
  """The place of a word pair in the table, or -1."""
  if source >= len(offsets) - 1:
    return -1
  low = offsets[source]
  high = offsets[source + 1]
  while low < high:
    middle = (low + high) // 2
    if targets[middle] < target:
      low = middle + 1
    else:
      high = middle
  if low < offsets[source + 1] and targets[low] == target:
    return low
  return -1


@njit
def _probability(values, place):
  return values[place] if place >= 0 else FLOOR


@njit
def _weights(
  source,
  source_offsets,
  target,
  target_offsets,
  links,
  link_offsets,
  offsets,
  targets,
  forward,
  backward,
):
  size = len(source_offsets) - 1
  out = np.zeros((size, 2), np.float32)
  # Sum of probabilities and number of links per position of one rule.
  widest = 1
  for row in range(size):
    widest = max(
      widest,
      source_offsets[row + 1] - source_offsets[row],
      target_offsets[row + 1] - target_offsets[row],
    )
  sums = np.empty((2, widest))
  numbers = np.empty((2, widest), np.int64)
  for row in range(size):
    first = source_offsets[row]
    other = target_offsets[row]
    used = max(source_offsets[row + 1] - first, target_offsets[row + 1] - other)
    sums[:, :used] = 0
    numbers[:, :used] = 0
    for link in range(link_offsets[row], link_offsets[row + 1]):
      one, two = links[link, 0], links[link, 1]
      place = _find(offsets, targets, source[first + one], target[other + two])
      sums[0, one] += _probability(backward, place)
      sums[1, two] += _probability(forward, place)
      numbers[0, one] += 1
      numbers[1, two] += 1
    for position in range(source_offsets[row + 1] - first):
      word = source[first + position]
      if word < 0:
        continue
      if numbers[0, position]:
        value = sums[0, position] / numbers[0, position]
      else:
        value = _probability(backward, _find(offsets, targets, word, NULL))
      out[row, 0] += np.log(value)
    for position in range(target_offsets[row + 1] - other):
      word = target[other + position]
      if word < 0:
        continue
      if numbers[1, position]:
        value = sums[1, position] / numbers[1, position]
      else:
        value = _probability(forward, _find(offsets, targets, NULL, word))
      out[row, 1] += np.log(value)
  return out
