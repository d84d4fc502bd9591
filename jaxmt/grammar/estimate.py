"""θ: relative frequencies of rules, from any counts.

For rules r = LHS -> <α, β> with counts c, the five conditional probabilities

    P(α|β) = c(α, β) / c(β)      P(β|α) = c(α, β) / c(α)
    P(r|LHS) = c(r) / c(LHS)     P(r|α) = c(r) / c(α)     P(r|β) = c(r) / c(β)

where α and β are strings of words and labelled non-terminals, and c(α, β) sums
over all rules with these sides. Add-alpha smoothing adds alpha to every c(α, β)
and every c(r) before normalising, so each column still sums to one over its
condition. Glue and pass-through rules take no part; their logs are 0.

The functions are pure and take NumPy or (with `xp=jax.numpy`) device arrays.
"""

import dataclasses
from typing import Any

import numpy as np

from jaxmt.grammar import table as table_lib
from jaxmt.grammar.extract import packed_rules as rows_lib
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.ragged import Ragged

THETA = (
  "source_given_target",
  "target_given_source",
  "rule_given_lhs",
  "rule_given_source",
  "rule_given_target",
)
INDICATORS = ("rule_count", "glue", "hiero", "tree_to_string", "pass_through")
FLOOR = 1e-10  # the least probability whose log is taken


@dataclasses.dataclass(frozen=True, kw_only=True)
class Groups:
  """Which rules share a left-hand side, a source side, a target side, both.

  Attributes:
    member: whether the rule takes part, bool `[R]`.
    lhs: group of the rule, int32 `[R]`; there are `sizes[0]`.
    source: likewise, `sizes[1]`.
    target: likewise, `sizes[2]`.
    pair: likewise, `sizes[3]` = P pairs of source and target side.
    pair_source: the source group of a pair, int32 `[P]`.
    pair_target: the target group of a pair, int32 `[P]`.
    pair_member: whether the pair takes part, bool `[P]`.
    sizes: the four numbers of groups.
  """

  member: np.ndarray
  lhs: np.ndarray
  source: np.ndarray
  target: np.ndarray
  pair: np.ndarray
  pair_source: np.ndarray
  pair_target: np.ndarray
  pair_member: np.ndarray
  sizes: tuple[int, int, int, int]


def group_rules(table: RuleTable) -> Groups:
  """Finds the groups of a table's rules."""
  member = np.isin(table.kind, [Kind.HIERO, Kind.TREE_TO_STRING])
  source, source_first = rows_lib.group(table.source)
  target, target_first = rows_lib.group(_labelled_target(table))
  both = np.stack([source, target], axis=1).reshape(-1)
  pair, pair_first = rows_lib.group(
    Ragged(flat=both, offsets=2 * np.arange(len(table) + 1))
  )
  pair_member = np.zeros(len(pair_first), np.bool_)
  pair_member[pair[member]] = True
  return Groups(
    member=member,
    lhs=np.asarray(table.lhs),
    source=source,
    target=target,
    pair=pair,
    pair_source=source[pair_first],
    pair_target=target[pair_first],
    pair_member=pair_member,
    sizes=(
      len(table.labels),
      len(source_first),
      len(target_first),
      len(pair_first),
    ),
  )


def _labelled_target(table: RuleTable) -> Ragged:
  """Target sides whose non-terminals carry their labels too."""
  flat = np.array(table.target.flat, np.int32)
  holes = np.flatnonzero(flat < 0)
  rule = np.searchsorted(table.target.offsets, holes, side="right") - 1
  sites = table_lib.nonterminals(table)
  number = -1 - flat[holes]
  label = sites.flat[sites.offsets[rule] + number]
  flat[holes] = -1 - (label * (1 + int(number.max(initial=0))) + number)
  return Ragged(flat=flat, offsets=table.target.offsets)


def segment_sum(values, ids, size: int, *, xp: Any = np):
  """Sums values `[N]` by id; `[size]`."""
  if xp is np:
    return np.bincount(ids, values, minlength=size)
  return xp.zeros(size, values.dtype).at[ids].add(values)


def relative_frequency(
  counts,
  groups: Groups,
  *,
  alpha: float = 0.0,
  floor: float = FLOOR,
  xp: Any = np,
):
  """Estimates θ.

  Args:
    counts: weights of the rules, `[R]`; need not be whole.
    groups: of the same rules.
    alpha: added to each count.
    floor: probabilities below it (also 0 / 0) are raised to it.
    xp: numpy, or jax.numpy for device arrays.

  Returns:
    Natural logs in the order of `THETA`, `[R, 5]`.
  """
  total = totals(counts, groups, alpha=alpha, xp=xp)
  return theta_of(total, groups, slice(None), floor=floor, xp=xp)


def theta_of(
  total, groups: Groups, rules, *, floor: float = FLOOR, xp: Any = np
):
  """Returns θ of some rules (a slice or ids `[N]`), natural logs `[N, 5]`."""
  numerators, denominators = _ratios(total, groups, rules, xp=xp)
  member = xp.asarray(groups.member)[rules]
  return _logs(numerators, denominators, member, floor=floor, xp=xp)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Totals:
  """Smoothed counts of rules, pairs, and of what they are conditioned on.

  Attributes:
    rules: c(r) + alpha, `[R]`.
    pairs: c(α, β) + alpha, `[P]`.
    lhs: the sum of `rules` over a left-hand side.
    source: likewise over a source side.
    target: likewise over a target side.
    source_pairs: the sum of `pairs` over a source side.
    target_pairs: the sum of `pairs` over a target side.
  """

  rules: np.ndarray
  pairs: np.ndarray
  lhs: np.ndarray
  source: np.ndarray
  target: np.ndarray
  source_pairs: np.ndarray
  target_pairs: np.ndarray


def totals(
  counts, groups: Groups, *, alpha: float = 0.0, xp: Any = np
) -> Totals:
  """Sums counts over the groups; see `relative_frequency`."""
  lhs_size, source_size, target_size, pair_size = groups.sizes
  counts = xp.where(groups.member, counts, 0)
  rules = xp.where(groups.member, counts + alpha, 0)
  pairs = segment_sum(counts, groups.pair, pair_size, xp=xp)
  pairs = xp.where(groups.pair_member, pairs + alpha, 0)
  return Totals(
    rules=rules,
    pairs=pairs,
    lhs=segment_sum(rules, groups.lhs, lhs_size, xp=xp),
    source=segment_sum(rules, groups.source, source_size, xp=xp),
    target=segment_sum(rules, groups.target, target_size, xp=xp),
    source_pairs=segment_sum(pairs, groups.pair_source, source_size, xp=xp),
    target_pairs=segment_sum(pairs, groups.pair_target, target_size, xp=xp),
  )


def _ratios(total: Totals, groups: Groups, rules, *, xp: Any = np):
  """Numerators and denominators of θ for some rules, both `[N, 5]`."""
  lhs, source, target, pair = (
    xp.asarray(ids)[rules]
    for ids in (groups.lhs, groups.source, groups.target, groups.pair)
  )
  one, both = total.rules[rules], total.pairs[pair]
  numerators = xp.stack([both, both, one, one, one], axis=1)
  denominators = xp.stack(
    [
      total.target_pairs[target],
      total.source_pairs[source],
      total.lhs[lhs],
      total.source[source],
      total.target[target],
    ],
    axis=1,
  )
  return numerators, denominators


def _logs(numerators, denominators, member, *, floor: float, xp: Any = np):
  possible = denominators > 0
  ratio = xp.where(possible, numerators, 0) / xp.where(
    possible, denominators, 1
  )
  logs = xp.log(xp.maximum(ratio, floor))
  return xp.where(member[:, None], logs, 0)


def leave_one_out(
  total: Totals,
  groups: Groups,
  own_rules: np.ndarray,
  own_counts: np.ndarray,
  rules: np.ndarray,
  *,
  floor: float = FLOOR,
) -> np.ndarray:
  """Estimates θ of some rules as if a sentence had not been in the corpus.

  Args:
    total: sums over the whole corpus.
    groups: of the same rules.
    own_rules: the rules the sentence gave, int `[M]`; see `provenance.py`.
    own_counts: the counts it gave them, `[M]`.
    rules: the rules to estimate, int `[N]`.
    floor: as in `relative_frequency`; a rule that only this sentence has gets
      it (or what alpha leaves).

  Returns:
    Natural logs, `[N, 5]`.
  """
  numerators, denominators = _ratios(total, groups, rules)
  own_counts = np.where(groups.member[own_rules], own_counts, 0)

  def own(ids: np.ndarray) -> np.ndarray:
    return _lookup(ids[own_rules], own_counts, ids[rules])

  rule = _lookup(own_rules, own_counts, rules)
  pair, source, target = (
    own(groups.pair),
    own(groups.source),
    own(groups.target),
  )
  numerators = numerators - np.stack([pair, pair, rule, rule, rule], axis=1)
  denominators = denominators - np.stack(
    [target, source, own(groups.lhs), source, target], axis=1
  )
  # Counts are multiples of 2^-32: less than that is rounding, not a count.
  denominators = np.where(denominators < 1e-9, 0, denominators)
  return _logs(
    np.maximum(numerators, 0), denominators, groups.member[rules], floor=floor
  )


def _lookup(keys, values, queries) -> np.ndarray:
  """The sum of `values` whose key is each query, 0 for none."""
  if not len(keys):
    return np.zeros(len(queries))
  distinct, inverse = np.unique(keys, return_inverse=True)
  sums = np.bincount(inverse, values)
  place = np.minimum(np.searchsorted(distinct, queries), len(distinct) - 1)
  return np.where(distinct[place] == queries, sums[place], 0)


def theta_names(table: RuleTable) -> tuple[str, ...]:
  """Returns which of `THETA` a table has: a phrase table the first two."""
  return tuple(name for name in THETA if name in table.feature_names)


def theta_values(table: RuleTable) -> np.ndarray:
  """Returns the θ of a table's rules, float32 `[R, 5]`.

  A phrase pair is its rule, so that what a phrase table lacks follows from what
  it has, but for P(r|LHS), which is 0 there.

  Raises:
    ValueError: if the table lacks one of the first two.
  """
  names = table.feature_names
  missing = [name for name in THETA[:2] if name not in names]
  if missing:
    raise ValueError(f"the table has no feature {missing[0]!r}")
  source, target = (table_lib.feature(table, name) for name in THETA[:2])
  instead = (source, target, np.zeros_like(source), target, source)
  columns = [
    table_lib.feature(table, name) if name in names else other
    for name, other in zip(THETA, instead, strict=True)
  ]
  return np.stack(columns, axis=1)


def interpolate(first, second, *, weight: float, xp: Any = np):
  """Mixes two θ: ln(weight · exp(first) + (1 - weight) · exp(second)).

  Equation (12) of Xiao et al.'s loss-augmented training.

  Raises:
    ValueError: if the weight is not between 0 and 1.
  """
  if not 0 <= weight <= 1:
    raise ValueError(f"weight {weight} is not between 0 and 1")
  if weight == 0 or weight == 1:  # no log of 0
    return first if weight else second
  return xp.logaddexp(first + np.log(weight), second + np.log1p(-weight))


def indicators(table: RuleTable) -> np.ndarray:
  """Returns the constant features in the order of `INDICATORS`, `[R, 5]`.

  `rule_count` is 1 for every rule except glue; the others mark the kind.
  """
  kind = np.asarray(table.kind)
  columns = [kind != Kind.GLUE] + [
    kind == value
    for value in (
      Kind.GLUE,
      Kind.HIERO,
      Kind.TREE_TO_STRING,
      Kind.PASS_THROUGH,
    )
  ]
  return np.stack(columns, axis=1).astype(np.float32)
