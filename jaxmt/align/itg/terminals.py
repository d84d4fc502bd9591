"""What the terminals of ITG forests stand for: links, features, statistics.

Features of a derivation are sums: of its links (`FeatureArrays.link`), of its
words by how many links they have (`source`, `target`), of its rules, and the
numbers of straight and inverted combinations. So each edge of a forest has one
row of a table: terminals come first, then three rows for edges without a
terminal (`edge_rows`).

T: terminals. L: features of links. S, U: features of source and target words.
R: features of rules. F = L + S + U + R + 2.
"""

import dataclasses

import numpy as np

from jaxmt.align.itg.parse import (
  NO_CORE,
  TERMINAL,
  WORD_PAIR,
  ItgForest,
)
from jaxmt.align.itg.rules import ItgRuleTable
from jaxmt.metrics import link_accuracy as metric
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

FERTILITIES = 4  # 0, 1, 2, and 3 or more links of a word
RULE_FEATURES = (
  "rule target given source",
  "rule source given target",
  "rule seen once",
  "phrase pairs",
  "hierarchical pairs",
  "blocks",
)
TREE_FEATURES = ("straight", "inverted")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeatureArrays:
  """Features of the links and words of B sentence pairs.

  Attributes:
    link: of each cell, pair after pair, row after row, float32 `[cells, L]`.
    source: of each source word with 0, 1, 2, 3 or more links, float32
      `[words, 4, S]`.
    target: likewise, `[words, 4, U]`.
    cell_offsets: first cell of each pair, int64 `[B + 1]`.
    source_offsets: first source word of each pair, int64 `[B + 1]`.
    target_offsets: first target word of each pair, int64 `[B + 1]`.
  """

  link: np.ndarray
  source: np.ndarray
  target: np.ndarray
  cell_offsets: np.ndarray
  source_offsets: np.ndarray
  target_offsets: np.ndarray


def edge_rows(parsed: ItgForest) -> np.ndarray:
  """Returns each edge's row in tables of T + 3 rows, int32 `[E]`.

  Row T is of edges that pass on their tail, T + 1 of straight and T + 2 of
  inverted ones.
  """
  kind = parsed.forest.edges["kind"].astype(np.int32)
  terminal = parsed.forest.edges["terminal"]
  return np.where(kind == TERMINAL, terminal, len(parsed.places) + kind)


def features(
  parsed: ItgForest, arrays: FeatureArrays, rules: ItgRuleTable
) -> np.ndarray:
  """Returns the features of all rows of `edge_rows`, float32 `[T + 3, F]`."""
  widths = (
    arrays.link.shape[1],
    arrays.source.shape[2],
    arrays.target.shape[2],
  )
  total = sum(widths) + len(RULE_FEATURES) + len(TREE_FEATURES)
  out = np.zeros((len(parsed.places) + 3, total), np.float32)
  _sum_features(
    parsed.places,
    np.ascontiguousarray(rules.links),
    _rule_columns(rules),
    len(rules),
    arrays.link,
    arrays.source,
    arrays.target,
    _run_sums(arrays.source),
    _run_sums(arrays.target),
    arrays.cell_offsets,
    arrays.source_offsets,
    arrays.target_offsets,
    out,
  )
  out[-2, -2] = 1.0
  out[-1, -1] = 1.0
  return out


def _rule_columns(rules: ItgRuleTable) -> np.ndarray:
  """The first features of each rule, float32 `[P + D, 3]`."""
  return np.stack(
    [rules.forward, rules.backward, (rules.count == 1).astype(np.float32)],
    axis=1,
  )


def _run_sums(words: np.ndarray) -> np.ndarray:
  """Sums of the features of words without links up to each word."""
  out = np.zeros((len(words) + 1, words.shape[2]))
  np.cumsum(words[:, 0], axis=0, out=out[1:])
  return out


def links(parsed: ItgForest, rules: ItgRuleTable) -> Ragged:
  """Returns the links of each terminal, int32 (source, target), T rows."""
  flat, offsets = _list_links(parsed.places, np.ascontiguousarray(rules.links))
  return Ragged(flat=flat, offsets=offsets)


def statistics(
  parsed: ItgForest, rules: ItgRuleTable, sure: Ragged, possible: Ragged
) -> np.ndarray:
  """Returns what each row of `edge_rows` adds to the counts of `LinkScores`.

  Args:
    parsed: B sentence pairs.
    rules: the table.
    sure: gold links, B rows.
    possible: gold links that count as right, sure ones included, B rows.

  Returns:
    float64 `[T + 3, 4]`: predicted, sure (0: that is the sentence pair's),
    predicted and sure, predicted and possible.
  """
  found = links(parsed, rules)
  terminal = np.repeat(np.arange(len(found)), found.lengths)
  keys = parsed.places[terminal, 0].astype(np.int64) << 40
  keys += (found.flat[:, 0].astype(np.int64) << 20) + found.flat[:, 1]
  out = np.zeros((len(parsed.places) + 3, 4))
  out[: len(found), 0] = found.lengths
  for column, gold in ((2, sure), (3, possible)):
    right = np.isin(keys, metric.link_keys(gold))
    out[:, column] = np.bincount(terminal, right, minlength=len(out))
  return out


def derivation_links(
  parsed: ItgForest, rules: ItgRuleTable, derivations: Ragged
) -> Ragged:
  """Returns the links of derivations, sorted, int32 `[_, 2]`, D rows.

  Args:
    parsed: the forests.
    rules: the table.
    derivations: edges of D derivations.
  """
  own = links(parsed, rules)
  terminal = parsed.forest.edges["terminal"][derivations.flat]
  row = np.repeat(np.arange(len(derivations)), derivations.lengths)
  row, terminal = row[terminal >= 0], terminal[terminal >= 0]
  lengths = own.lengths[terminal]
  ends = np.cumsum(lengths)
  within = np.arange(ends[-1] if len(ends) else 0)
  within = within - np.repeat(ends - lengths, lengths)
  flat = own.flat[np.repeat(own.offsets[terminal], lengths) + within]
  row = np.repeat(row, lengths)
  order = np.lexsort((flat[:, 1], flat[:, 0], row))
  return Ragged(
    flat=np.ascontiguousarray(flat[order]),
    offsets=np.searchsorted(row[order], np.arange(len(derivations) + 1)),
  )


# --- kernels ------------------------------------------------------------------


@njit
def _positions(place, first, second):
  """Positions of a rule's words on one side; the gap is left out.

  Args:
    place: a row of `ItgForest.places`.
    first: column of the core's start; its end is in column `second`.
    second: see above.

  Returns:
    `(positions int64 [8], how many)`.
  """
  out = np.empty(8, np.int64)
  count = 0
  gap = 7 if second == 5 else 9
  for position in range(place[first], place[second]):
    if place[gap] <= position < place[gap + 1]:
      continue
    out[count] = position
    count += 1
  return out, count


@njit
def _list_links(places, masks):
  """Links of all terminals: `(int32 [_, 2], offsets)`."""
  offsets = np.zeros(len(places) + 1, np.int64)
  for row in range(len(places)):
    rule = places[row, 11]
    number = 0
    if rule == WORD_PAIR:
      number = 1
    elif rule >= 0:
      for bit in range(16):
        number += (masks[rule] >> bit) & 1
    offsets[row + 1] = offsets[row] + number
  flat = np.empty((offsets[-1], 2), np.int32)
  for row in range(len(places)):
    rule = places[row, 11]
    out = offsets[row]
    if rule == WORD_PAIR:
      flat[out, 0], flat[out, 1] = places[row, 2], places[row, 4]
    elif rule >= 0:
      source, _ = _positions(places[row], 2, 5)
      target, _ = _positions(places[row], 4, 6)
      for bit in range(16):
        if (masks[rule] >> bit) & 1:
          flat[out, 0], flat[out, 1] = source[bit // 4], target[bit % 4]
          out += 1
  return flat, offsets


@njit
def _sum_features(
  places,
  masks,
  columns,
  table_size,
  link,
  source,
  target,
  source_runs,
  target_runs,
  cell_offsets,
  source_offsets,
  target_offsets,
  out,
):
  """Adds up the features of all terminals; see `FeatureArrays`."""
  wide, tall, deep = link.shape[1], source.shape[2], target.shape[2]
  top = FERTILITIES - 1
  for row in range(len(places)):
    place = places[row]
    pair, rule = place[0], place[11]
    first, second = source_offsets[pair], target_offsets[pair]
    cells = cell_offsets[pair]
    m = target_offsets[pair + 1] - second
    # Words without links before the core: differences of running sums.
    for c in range(tall):
      out[row, wide + c] = (
        source_runs[first + place[2], c] - source_runs[first + place[1], c]
      )
    for c in range(deep):
      out[row, wide + tall + c] = (
        target_runs[second + place[4], c] - target_runs[second + place[3], c]
      )
    if rule == NO_CORE:
      continue
    # A word pair: one link, one link of either word.
    if rule == WORD_PAIR:
      cell = cells + place[2] * m + place[4]
      for c in range(wide):
        out[row, c] = link[cell, c]
      for c in range(tall):
        out[row, wide + c] += source[first + place[2], 1, c]
      for c in range(deep):
        out[row, wide + tall + c] += target[second + place[4], 1, c]
      continue
    # A rule: its links, its words by their number of links, its own features.
    words, count = _positions(place, 2, 5)
    others, number = _positions(place, 4, 6)
    for p in range(count):
      linked = 0
      for q in range(number):
        if (masks[rule] >> (4 * p + q)) & 1:
          linked += 1
          cell = cells + words[p] * m + others[q]
          for c in range(wide):
            out[row, c] += link[cell, c]
      for c in range(tall):
        out[row, wide + c] += source[first + words[p], min(linked, top), c]
    for q in range(number):
      linked = 0
      for p in range(count):
        linked += (masks[rule] >> (4 * p + q)) & 1
      for c in range(deep):
        out[row, wide + tall + c] += target[
          second + others[q], min(linked, top), c
        ]
    base = wide + tall + deep
    for c in range(3):
      out[row, base + c] = columns[rule, c]
    kind = 5 if rule >= table_size else 4 if place[7] >= 0 else 3
    out[row, base + kind] = 1.0
