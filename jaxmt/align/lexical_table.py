"""Word translation tables w(target | source) and w(source | target).

From links by relative frequency, as Koehn, Och & Marcu (2003) and Moses do it:
every link counts one, a word without a link counts as linked to NULL. Or from
what EM has learnt.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxmt.text.ragged import Ragged, row_offsets
from jaxmt.text.vocabulary import PAD

if TYPE_CHECKING:  # it needs JAX, users of tables do not
  from jaxmt.align import em

NULL = PAD  # stands for "no word" on either side: PAD is never in a text

_SHIFT = 32
_ARRAYS = ("offsets", "targets", "forward", "backward")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LexicalTable:
  """Word translation probabilities; P word pairs ordered by source, target.

  Attributes:
    offsets: the pairs of source word f are `offsets[f]` to `offsets[f + 1]`,
      int64 `[Vs + 1]`; word `NULL` has target words without a link.
    targets: target word ids, int32 `[P]`; `NULL` for a source word without a
      link.
    forward: w(target | source), float64 `[P]`.
    backward: w(source | target), float64 `[P]`.
  """

  offsets: np.ndarray
  targets: np.ndarray
  forward: np.ndarray
  backward: np.ndarray

  def __len__(self) -> int:
    return len(self.targets)

  @functools.cached_property
  def sources(self) -> np.ndarray:
    """Source word ids, int32 `[P]`."""
    words = np.arange(len(self.offsets) - 1, dtype=np.int32)
    return np.repeat(words, np.diff(self.offsets))

  @functools.cached_property
  def keys(self) -> np.ndarray:
    """`source << 32 | target`, rising, int64 `[P]`."""
    return _keys(self.sources, self.targets)


def _keys(source: np.ndarray, target: np.ndarray) -> np.ndarray:
  return (np.asarray(source, np.int64) << _SHIFT) | np.asarray(target, np.int64)


def from_links(
  source: Ragged, target: Ragged, links: Ragged, *, source_size: int
) -> LexicalTable:
  """Estimates word translation by relative frequency over links.

  Args:
    source: word ids, N rows; no word has the id `NULL`.
    target: word ids, N rows.
    links: pairs of positions (source, target), N rows.
    source_size: number of source word ids, Vs.
  """
  row = np.repeat(np.arange(len(links)), links.lengths)
  source_at = source.offsets[row] + links.flat[:, 0]
  target_at = target.offsets[row] + links.flat[:, 1]
  lone_source = np.ones(len(source.flat), np.bool_)
  lone_source[source_at] = False
  lone_target = np.ones(len(target.flat), np.bool_)
  lone_target[target_at] = False
  lone_source, lone_target = source.flat[lone_source], target.flat[lone_target]
  keys = np.concatenate(
    [
      _keys(source.flat[source_at], target.flat[target_at]),
      _keys(lone_source, np.full(len(lone_source), NULL)),
      _keys(np.full(len(lone_target), NULL), lone_target),
    ]
  )
  keys, counts = np.unique(keys, return_counts=True)
  sources, targets = keys >> _SHIFT, keys & ((1 << _SHIFT) - 1)
  by_source = np.bincount(sources, counts, minlength=1)
  by_target = np.bincount(targets, counts, minlength=1)
  return _table(
    sources,
    targets,
    counts / by_source[sources],
    counts / by_target[targets],
    source_size,
  )


def _table(sources, targets, forward, backward, source_size) -> LexicalTable:
  """Takes pairs sorted by (source, target)."""
  numbers = np.bincount(sources, minlength=source_size)
  return LexicalTable(
    offsets=row_offsets(numbers),
    targets=targets.astype(np.int32),
    forward=np.asarray(forward, np.float64),
    backward=np.asarray(backward, np.float64),
  )


def from_alignment(
  alignment: "em.Alignment", *, source_size: int, minimum: float = 1e-6
) -> LexicalTable:
  """Returns the translation probabilities that EM has learnt.

  A pair is kept if one of its two probabilities reaches `minimum`. Pairs with
  NULL have a probability in one direction only: 0 in the other.

  Args:
    alignment: of both directions; no word has the id `NULL`.
    source_size: number of source word ids, Vs.
    minimum: least probability.
  """
  table = alignment.table
  forward = alignment.parameters["forward"]
  backward = alignment.parameters["backward"]
  target_null = np.exp(forward.null[1 : table.target_size])
  source_null = np.exp(backward.null[1 : table.source_size])
  some_target = np.arange(1, table.target_size, dtype=np.int64)
  some_source = np.arange(1, table.source_size, dtype=np.int64)
  sources = np.concatenate([table.source, 0 * some_target, some_source])
  targets = np.concatenate([table.target, some_target, 0 * some_source])
  to_target = np.concatenate(
    [np.exp(forward.pairs[:-1]), target_null, 0 * source_null]
  )
  to_source = np.concatenate(
    [np.exp(backward.pairs[:-1]), 0 * target_null, source_null]
  )
  kept = np.flatnonzero(np.maximum(to_target, to_source) >= minimum)
  kept = kept[np.argsort(_keys(sources[kept], targets[kept]), kind="stable")]
  return _table(
    sources[kept], targets[kept], to_target[kept], to_source[kept], source_size
  )


def find(
  table: LexicalTable, source: np.ndarray, target: np.ndarray
) -> np.ndarray:
  """Returns the place of word pairs in the table, -1 if they are not in it.

  Args:
    table: P pairs.
    source: word ids, any shape.
    target: word ids, the same shape.
  """
  wanted = _keys(source, target)
  if not len(table):
    return np.full(wanted.shape, -1, np.int64)
  place = np.minimum(np.searchsorted(table.keys, wanted), len(table) - 1)
  return np.where(table.keys[place] == wanted, place, -1)


def lookup(
  table: LexicalTable,
  source: np.ndarray,
  target: np.ndarray,
  *,
  floor: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns w(target | source) and w(source | target) of word pairs.

  Args:
    table: P pairs.
    source: word ids, any shape.
    target: word ids, the same shape.
    floor: probability of a pair that is not in the table.
  """
  place = find(table, source, target)
  if not len(table):
    return np.full(place.shape, floor), np.full(place.shape, floor)
  known = place >= 0
  return (
    np.where(known, table.forward[place], floor),
    np.where(known, table.backward[place], floor),
  )


def to_values(table: LexicalTable) -> dict[str, np.ndarray]:
  """Returns the table's arrays by name, as artefacts keep them."""
  return {name: getattr(table, name) for name in _ARRAYS}


def from_values(values: Mapping[str, np.ndarray]) -> LexicalTable:
  """Returns the table of `to_values`; arrays may be memory-mapped."""
  return LexicalTable(**{name: values[name] for name in _ARRAYS})


def to_lines(
  table: LexicalTable,
  source_words: Sequence[str],
  target_words: Sequence[str],
) -> tuple[list[str], list[str]]:
  """Returns the lines of Moses's files `lex.f2e` and `lex.e2f`.

  The first has `target source w(target | source)`, the second `source target
  w(source | target)`; pairs with probability 0 are left out.

  Args:
    table: P pairs.
    source_words: word of each source id; that of `NULL` should be "NULL".
    target_words: likewise.
  """
  sources = [source_words[word] for word in table.sources.tolist()]
  targets = [target_words[word] for word in table.targets.tolist()]
  forward = table.forward.tolist()
  backward = table.backward.tolist()
  return (
    [
      f"{target} {source} {value:.7f}"
      for source, target, value in zip(sources, targets, forward, strict=True)
      if value
    ],
    [
      f"{source} {target} {value:.7f}"
      for source, target, value in zip(sources, targets, backward, strict=True)
      if value
    ],
  )
