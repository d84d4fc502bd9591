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
    found = 0
    low = edge_offsets[node_offsets[row]]
    for edge in range(low, edge_offsets[node_offsets[row + 1]]):
      which = rule[edge]
      if weights[edge] <= 0 or which == size:
        continue
      if which > size:
        which = copy_rule
      if sums[which] == 0.0:
        touched[found] = which
        found += 1
      sums[which] += weights[edge]
    touched[:found].sort()
    for item in range(found):
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


def scaled(made: Contributions, totals: np.ndarray) -> Contributions:
  """Rescales each sentence's counts to sum to about `totals`, float64 `[B]`."""
  row = np.repeat(np.arange(len(made)), made.rules.lengths)
  sums = np.bincount(row, made.units / COUNT_UNIT, minlength=len(made))
  factor = np.divide(totals, sums, out=np.zeros(len(made)), where=sums > 0)
  units = np.rint(made.units * factor[row]).astype(np.int64)
  return Contributions(rules=made.rules, units=units)


def masses(made: Contributions) -> np.ndarray:
  """Returns how many rules each sentence counts in all, float64 `[B]`."""
  sums = ragged.row_offsets(made.units)
  return (
    sums[made.rules.offsets[1:]] - sums[made.rules.offsets[:-1]]
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


def add(total: np.ndarray, made: Contributions) -> None:
  """Adds to the counts of all rules, int64 `[R]`, in place."""
  _add(total, made.rules.flat, made.units)


@njit
def _add(total, rules, units):
  for item in range(len(rules)):
    total[rules[item]] += units[item]


def rows(made: Contributions, start: int, stop: int) -> Contributions:
  """Returns sentences `start` to `stop`."""
  offsets = made.rules.offsets[start : stop + 1]
  part = slice(offsets[0], offsets[-1])
  return Contributions(
    rules=Ragged(flat=made.rules.flat[part], offsets=offsets - offsets[0]),
    units=made.units[part],
  )


def replace(
  made: Contributions, sentences: np.ndarray, others: Contributions
) -> Contributions:
  """Puts the rows of `others` in the place of some sentences', int `[n]`."""
  both = concatenate([made, others])
  order = np.arange(len(made))
  order[sentences] = len(made) + np.arange(len(sentences))
  return select(both, order)


def select(made: Contributions, sentences: np.ndarray) -> Contributions:
  """Returns the rows of some sentences, int `[n]`, in their order."""
  place = Ragged(flat=np.arange(len(made.units)), offsets=made.rules.offsets)
  taken = ragged.select(place, sentences)
  return Contributions(
    rules=Ragged(flat=made.rules.flat[taken.flat], offsets=taken.offsets),
    units=made.units[taken.flat],
  )


def summed(made: Contributions) -> Contributions:
  """Returns all sentences as one row."""
  found, place = np.unique(made.rules.flat, return_inverse=True)
  units = np.zeros(len(found), np.int64)
  _add(units, place, made.units)
  return Contributions(
    rules=Ragged(
      flat=found.astype(np.int32), offsets=np.array([0, len(found)])
    ),
    units=units,
  )
