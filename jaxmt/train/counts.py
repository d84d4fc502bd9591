"""Rule counts as whole numbers: the same bits however the work was divided.

A sentence gives each rule a weight; rounded to units of 1 / `COUNT_UNIT` the
weights are integers, whose sums do not depend on their order. Shards, threads,
devices, processes and Ray therefore lead to the same counts, and so to the
same θ, provided a sentence's own weights are the same.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from jaxmt.grammar.extract.packed_rules import COUNT_UNIT
from jaxmt.grammar.provenance import Provenance
from jaxmt.hypergraph.forest import Forest
from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contributions:
  """Counts that B sentences give to the rules.

  Attributes:
    rules: rule ids in B rows, rising, each once, int32 `[M]`.
    units: the counts in units of 1 / `COUNT_UNIT`, int64 `[M]`.
  """

  rules: Ragged
  units: np.ndarray

  def __len__(self) -> int:
    return len(self.rules)


def contributions(
  forest: Forest, weights: np.ndarray, *, size: int, copy_rule: int
) -> Contributions:
  """Sums edge weights by rule, sentence by sentence.

  Args:
    forest: B sentences, E edges.
    weights: how often each edge counts, float64 `[E]`.
    size: R; rule R is the goal, which does not count, later ones are copies.
    copy_rule: the rule copies count for.
  """
  rules, units, offsets = _contributions(
    forest.node_offsets,
    forest.edge_offsets,
    forest.edges.rule,
    np.ascontiguousarray(weights, np.float64),
    size,
    copy_rule,
  )
  return Contributions(rules=Ragged(flat=rules, offsets=offsets), units=units)


@njit
def _contributions(node_offsets, edge_offsets, rule, weights, size, copy_rule):
  sums = np.zeros(size)
  touched = np.empty(len(rule), np.int32)
  rules = np.empty(len(rule), np.int32)
  units = np.empty(len(rule), np.int64)
  offsets = np.zeros(len(node_offsets), np.int64)
  filled = 0
  for row in range(len(node_offsets) - 1):
    count = 0
    low = edge_offsets[node_offsets[row]]
    for edge in range(low, edge_offsets[node_offsets[row + 1]]):
      which = rule[edge]
      if weights[edge] <= 0 or which == size:
        continue
      if which > size:
        which = copy_rule
      if sums[which] == 0.0:
        touched[count] = which
        count += 1
      sums[which] += weights[edge]
    touched[:count].sort()
    for item in range(count):
      which = touched[item]
      value = np.int64(np.rint(sums[which] * COUNT_UNIT))
      sums[which] = 0.0
      if value > 0:
        rules[filled] = which
        units[filled] = value
        filled += 1
    offsets[row + 1] = filled
  return rules[:filled].copy(), units[:filled].copy(), offsets


def from_provenance(
  provenance: Provenance, sentences: np.ndarray
) -> Contributions:
  """Returns the counts of sentences, int `[B]`, at extraction."""
  sentences = np.asarray(sentences, np.int64)
  starts = provenance.rules.offsets[sentences]
  lengths = provenance.rules.lengths[sentences]
  offsets = ragged.row_offsets(lengths)
  within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
  place = np.repeat(starts, lengths) + within
  return Contributions(
    rules=Ragged(flat=provenance.rules.flat[place], offsets=offsets),
    units=np.rint(provenance.counts[place] * COUNT_UNIT).astype(np.int64),
  )


def scaled(contributions: Contributions, totals: np.ndarray) -> Contributions:
  """Rescales each sentence's counts to sum to about `totals`, float64 `[B]`."""
  row = np.repeat(np.arange(len(contributions)), contributions.rules.lengths)
  sums = np.bincount(
    row, contributions.units / COUNT_UNIT, minlength=len(contributions)
  )
  factor = np.divide(
    totals, sums, out=np.zeros(len(contributions)), where=sums > 0
  )
  units = np.rint(contributions.units * factor[row]).astype(np.int64)
  return Contributions(rules=contributions.rules, units=units)


def masses(contributions: Contributions) -> np.ndarray:
  """Returns how many rules each sentence counts in all, float64 `[B]`."""
  sums = ragged.row_offsets(contributions.units)
  return (
    sums[contributions.rules.offsets[1:]]
    - sums[contributions.rules.offsets[:-1]]
  ) / COUNT_UNIT


def concatenate(parts: Iterable[Contributions]) -> Contributions:
  """Lays the sentences of several parts end to end."""
  parts = list(parts)
  lengths = [part.rules.lengths for part in parts] or [np.zeros(0, np.int64)]
  rules = [part.rules.flat for part in parts] or [np.zeros(0, np.int32)]
  units = [part.units for part in parts] or [np.zeros(0, np.int64)]
  ends = np.cumsum(np.concatenate(lengths))
  return Contributions(
    rules=Ragged(
      flat=np.concatenate(rules),
      offsets=np.concatenate([np.zeros(1, np.int64), ends]),
    ),
    units=np.concatenate(units),
  )


def add(total: np.ndarray, contributions: Contributions) -> None:
  """Adds to the counts of all rules, int64 `[R]`, in place."""
  _add(total, contributions.rules.flat, contributions.units)


@njit
def _add(total, rules, units):
  for item in range(len(rules)):
    total[rules[item]] += units[item]


def rows(contributions: Contributions, start: int, stop: int) -> Contributions:
  """Returns sentences `start` to `stop`."""
  offsets = contributions.rules.offsets[start : stop + 1]
  part = slice(offsets[0], offsets[-1])
  return Contributions(
    rules=Ragged(
      flat=contributions.rules.flat[part], offsets=offsets - offsets[0]
    ),
    units=contributions.units[part],
  )


def replace(
  contributions: Contributions, sentences: np.ndarray, others: Contributions
) -> Contributions:
  """Puts the rows of `others` in the place of some sentences', int `[n]`."""
  both = concatenate([contributions, others])
  order = np.arange(len(contributions))
  order[sentences] = len(contributions) + np.arange(len(sentences))
  return select(both, order)


def select(
  contributions: Contributions, sentences: np.ndarray
) -> Contributions:
  """Returns the rows of some sentences, int `[n]`, in their order."""
  place = Ragged(
    flat=np.arange(len(contributions.units)),
    offsets=contributions.rules.offsets,
  )
  taken = ragged.select(place, sentences)
  return Contributions(
    rules=Ragged(
      flat=contributions.rules.flat[taken.flat], offsets=taken.offsets
    ),
    units=contributions.units[taken.flat],
  )


def summed(contributions: Contributions) -> Contributions:
  """Returns all sentences as one row."""
  rules, place = np.unique(contributions.rules.flat, return_inverse=True)
  units = np.zeros(len(rules), np.int64)
  _add(units, place, contributions.units)
  return Contributions(
    rules=Ragged(
      flat=rules.astype(np.int32), offsets=np.array([0, len(rules)])
    ),
    units=units,
  )
