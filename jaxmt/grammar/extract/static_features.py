"""Static features: columns of the rule table, computed once per rule.

The contract is `values(rules, corpus) -> [R, F]`: a pure function of a block of
rules and of what was counted in the corpus. A new one is a function and a call
of `register`; `extraction.extract(..., features=("name",))` then adds its
columns to the table, and decoding and tuning see them by name like any other.

    static_features.register(StaticFeature(
      name="length",
      columns=("target_length",),
      values=lambda rules, corpus: rules.target.lengths[:, None],
    ))

Rules come in blocks. Rules with the same source side are in one block and are
neighbours; a block has either rules that take part in the estimation (Hiero,
tree-to-string), or others (glue, pass-through).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.align.lexical_table import LexicalTable
from jaxmt.errors import InputError
from jaxmt.grammar import estimate, lexical
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.kernels import njit


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sums:
  """Counts that rules are divided by: L left-hand sides, R rules.

  Attributes:
    lhs: counts by left-hand side, float64 `[L]`.
    lhs_rules: rules by left-hand side, int64 `[L]`.
    target: counts of the rule's target side, float64 `[R]`.
    target_rules: rules with it, int32 `[R]`.
    target_pairs: source sides with it, int32 `[R]`.
  """

  lhs: np.ndarray
  lhs_rules: np.ndarray
  target: np.ndarray
  target_rules: np.ndarray
  target_pairs: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusCounts:
  """What was counted in the corpus, for a block of rules.

  Attributes:
    sums: counts over the whole grammar; those of rules for the block's rules.
    lexicon: word translation probabilities.
    alpha: of add-alpha smoothing.
  """

  sums: Sums
  lexicon: LexicalTable
  alpha: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class StaticFeature:
  """A group of columns of the rule table.

  Attributes:
    name: what `extract(features=...)` calls the group.
    columns: names of its F columns, the names of their weights.
    values: `(rules, corpus) -> [R, F]`, see above.
    start: weights that tuning starts from by column; 0 for others.
  """

  name: str
  columns: tuple[str, ...]
  values: Callable[[RuleTable, CorpusCounts], Any]
  start: Mapping[str, float] = dataclasses.field(default_factory=dict)


_REGISTRY: dict[str, StaticFeature] = {}


def register(feature: StaticFeature) -> None:
  """Makes a feature known by its name.

  Raises:
    ValueError: if the name, or that of a column, is taken.
  """
  if feature.name in _REGISTRY:
    raise ValueError(f"static feature '{feature.name}' exists already")
  columns = {column for known in _REGISTRY.values() for column in known.columns}
  for column in feature.columns:
    if column in columns:
      raise ValueError(f"column '{column}' exists already")
  _REGISTRY[feature.name] = feature


def find(names: Sequence[str]) -> tuple[StaticFeature, ...]:
  """Returns the features of every table, then those with the given names.

  Raises:
    InputError: for an unknown name.
  """
  for name in names:
    if name not in _REGISTRY:
      known = ", ".join(_REGISTRY)
      raise InputError(f"unknown static feature '{name}', not one of: {known}")
  return tuple(_REGISTRY[name] for name in dict.fromkeys((*STANDARD, *names)))


def column_names(features: Sequence[StaticFeature]) -> tuple[str, ...]:
  """Returns the names of the columns of some features, in order."""
  return tuple(column for feature in features for column in feature.columns)


def start_weights() -> dict[str, float]:
  """Returns the weights that tuning starts from, by column."""
  weights: dict[str, float] = {}
  for feature in _REGISTRY.values():
    weights.update(feature.start)
  return weights


def block_values(
  features: Sequence[StaticFeature], rules: RuleTable, corpus: CorpusCounts
) -> np.ndarray:
  """Returns all columns of a block of rules, float32 `[R, F]`.

  Raises:
    ValueError: if a feature returns another shape.
  """
  out = np.empty((len(rules), len(column_names(features))), np.float32)
  column = 0
  for feature in features:
    width = len(feature.columns)
    values = np.asarray(feature.values(rules, corpus))
    if values.shape != (len(rules), width):
      raise ValueError(
        f"static feature '{feature.name}': values {values.shape}, not"
        f" {(len(rules), width)}"
      )
    out[:, column : column + width] = values
    column += width
  return out


def takes_part(rules: RuleTable) -> bool:
  """Whether a block's rules take part in the estimation."""
  return len(rules) > 0 and rules.kind[0] in (Kind.HIERO, Kind.TREE_TO_STRING)


def _relative_frequencies(rules: RuleTable, corpus: CorpusCounts) -> np.ndarray:
  """The logs of `estimate.THETA`."""
  values = np.zeros((len(rules), len(estimate.THETA)))
  if not takes_part(rules):
    return values
  counts, sums, alpha = np.asarray(rules.counts), corpus.sums, corpus.alpha
  source, source_rules, source_pairs, both = _neighbours(rules)
  one, both = counts + alpha, both + alpha
  ratios = (
    (both, sums.target + alpha * sums.target_pairs),
    (both, source + alpha * source_pairs),
    (one, (sums.lhs + alpha * sums.lhs_rules)[rules.lhs]),
    (one, source + alpha * source_rules),
    (one, sums.target + alpha * sums.target_rules),
  )
  for column, (above, below) in enumerate(ratios):
    # Where nothing was counted, 0 / 0, the floor stands.
    ratio = above / np.where(below > 0, below, 1)
    values[:, column] = np.log(np.maximum(ratio, estimate.FLOOR))
  return values


def _lexical_weights(rules: RuleTable, corpus: CorpusCounts) -> np.ndarray:
  if not takes_part(rules):
    return np.zeros((len(rules), len(lexical.NAMES)))
  return lexical.lexical_weights(
    rules.source, rules.target, rules.links, corpus.lexicon
  )


def _neighbours(rules: RuleTable):
  """Sums over source sides and pairs of sides, which are neighbours.

  Returns:
    For each rule: the count of its source side, the rules and the target sides
    with it, and the count of its pair of sides.
  """
  new_source, new_pair = borders(rules)
  counts = np.asarray(rules.counts)
  sources = np.flatnonzero(new_source)
  pairs = np.flatnonzero(new_pair)
  source_of = np.cumsum(new_source) - 1
  pair_of = np.cumsum(new_pair) - 1
  return (
    np.add.reduceat(counts, sources)[source_of],
    np.diff(sources, append=len(counts))[source_of],
    np.add.reduceat(new_pair.astype(np.int64), sources)[source_of],
    np.add.reduceat(counts, pairs)[pair_of],
  )


def borders(rules: RuleTable) -> tuple[np.ndarray, np.ndarray]:
  """Which rules differ from the one before in source side, in either side."""
  new_source = _differs(rules.source.flat, rules.source.offsets)
  new_target = _differs(rules.target.flat, rules.target.offsets)
  return new_source, new_source | new_target


@njit
def _differs(flat, offsets):
  """Whether each row differs from the one before; the first does."""
  answer = np.zeros(len(offsets) - 1, np.bool_)
  for row in range(len(answer)):
    start = offsets[row]
    size = offsets[row + 1] - start
    before = offsets[max(row - 1, 0)]
    answer[row] = row == 0 or size != start - before
    if not answer[row]:
      for place in range(size):
        if flat[start + place] != flat[before + place]:
          answer[row] = True
          break
  return answer


# Where tuning starts if nobody says otherwise: in the middle of what tuned
# systems look like. Features are logs of probabilities, so most weights are
# positive; every copied word costs something.
register(
  StaticFeature(
    name="relative_frequencies",
    columns=estimate.THETA,
    values=_relative_frequencies,
    start={
      "source_given_target": 0.2,
      "target_given_source": 0.3,
      "rule_given_lhs": 0.05,
      "rule_given_source": 0.1,
      "rule_given_target": 0.05,
    },
  )
)
register(
  StaticFeature(
    name="lexical_weights",
    columns=lexical.NAMES,
    values=_lexical_weights,
    start=dict.fromkeys(lexical.NAMES, 0.2),
  )
)
register(
  StaticFeature(
    name="indicators",
    columns=estimate.INDICATORS,
    values=lambda rules, corpus: estimate.indicators(rules),
    start={"glue": -0.1, "pass_through": -5.0},
  )
)
STANDARD = tuple(_REGISTRY)  # of every table
