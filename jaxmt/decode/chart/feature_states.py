"""States of hypotheses: the one place that knows how they are laid out.

Every feature of `features.stateful` has a table of its own: one row of int32
columns for each hypothesis and, if it is a `StringFeature`, the rules' runs
after them, so that one gather reads either. Search carries these tables,
reads rows by number, and never looks into them.

Search reports values with its candidates. Derivations and forests that come
from elsewhere are evaluated by `edge_values`: states bottom-up, then values.

`[...]` stands for axes over candidates. A: arity. F: names of a feature.
"""

import functools
import operator
import typing
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.decode.model import (
  Model,
  Source,
  device_parameters,
  rule_column,
  start_states,
)
from jaxmt.features.stateful import (
  SiteFeature,
  StatefulFeature,
  StringFeature,
  Values,
)
from jaxmt.text.kernels import njit

_HASHES = (  # seeds and odd factors, of MurmurHash3 and xxHash
  (np.uint32(0x9E3779B9), np.uint32(0x85EBCA6B)),
  (np.uint32(0x165667B1), np.uint32(0xC2B2AE35)),
)

States = tuple[jax.Array, ...]  # one array [..., S] for each feature


class AppliedRules(typing.NamedTuple):
  """Rule applications, as a feature sees them.

  Attributes:
    slots: what stands in each place of the target side, see
      `features.stateful.target_slots`, int32 `[..., 2A + 1]`.
    tails: rows of the children's states, int32 `[..., A]`.
    rule: row of the rule in the feature's inputs, int32 `[...]`.
    base: first row after those of hypotheses in the feature's table.
  """

  slots: jax.Array
  tails: jax.Array
  rule: jax.Array
  base: int


def get(array, *index):
  """Returns `array[index]`; the indices are known to be in bounds."""
  return array.at[index].get(mode="promise_in_bounds")


def tables(
  features: Sequence[StatefulFeature], inputs: Sequence, rows: int
) -> States:
  """Returns empty tables with room for `rows` hypotheses.

  Args:
    features: the features.
    inputs: `RuleInputs.arrays` of each.
    rows: number of hypotheses.
  """
  out = []
  for feature, arrays in zip(features, inputs, strict=True):
    table = jnp.zeros((rows, feature.columns), jnp.int32)
    if isinstance(feature, StringFeature):
      runs = jnp.reshape(arrays, (-1, feature.columns))
      table = jnp.concatenate([table, runs])
    out.append(table)
  return tuple(out)


def by_cell(states: States, cells: int, beam: int) -> States:
  """Returns the hypotheses' rows of tables as `[cells, beam, S]` each."""
  return tuple(
    table[: cells * beam].reshape(cells, beam, -1) for table in states
  )


def combine(
  feature: StatefulFeature,
  parameters,
  inputs,
  table: jax.Array,
  applied: AppliedRules,
) -> tuple[jax.Array, Values]:
  """Returns the states of applications, and the values that they add.

  Args:
    feature: the feature.
    parameters: of `feature.to_device`.
    inputs: `RuleInputs.arrays` of the feature.
    table: its table.
    applied: what is applied to which hypotheses.

  Returns:
    `(int32 [..., S], F arrays float32 [...])`.
  """
  if isinstance(feature, StringFeature):
    return _join_all(feature, parameters, table, applied)
  rule = jax.tree.map(lambda leaf: get(leaf, applied.rule), inputs)
  return feature.apply(parameters, rule, get(table, applied.tails))


def _places(applied: AppliedRules) -> jax.Array:
  """Rows of a table in target order, -1 after the end, int32 `[..., 2A + 1]`.

  The runs of rule r are the rows from `base + r (A + 1)` on.
  """
  slots, tails = applied.slots, applied.tails
  arity = tails.shape[-1]
  run = applied.base + applied.rule[..., None] * (arity + 1) + slots - arity
  place = jnp.where(slots >= 0, run, -1)
  for part in range(arity):
    place = jnp.where(slots == part, tails[..., part, None], place)
  return place


def _join_all(feature: StringFeature, parameters, table, applied):
  """Joins the segments of each application from left to right."""
  place = _places(applied)

  def segment(slot):
    row = lax.dynamic_index_in_dim(place, slot, place.ndim - 1, keepdims=False)
    state = get(table, jnp.maximum(row, 0))
    # Nothing but the empty string stands after the end.
    return feature.unpack(jnp.where((row >= 0)[..., None], state, 0))

  def body(slot, carry):
    left, total = carry
    joined, values = feature.join(parameters, left, segment(slot))
    added = tuple(a + b for a, b in zip(total, values, strict=True))
    return joined, added

  zero = jnp.zeros(place.shape[:-1], jnp.float32)
  longest = jnp.max(jnp.sum(place >= 0, axis=-1))
  start = (segment(0), tuple(zero for _ in feature.names))
  joined, values = lax.fori_loop(1, longest, body, start)
  return feature.pack(joined), values


def weighted(weights, values: Values) -> jax.Array:
  """Returns `Σ weight · value`; a feature has at least one of each."""
  products = [w * value for w, value in zip(weights, values, strict=True)]
  return functools.reduce(jnp.add, products)


def site_scores(task, table, number, rule, part, which):
  """Scores of hypotheses as child `part` under one `SiteFeature`.

  Args:
    task: the search.
    table: the feature's table.
    number: which feature.
    rule: its inputs of the rules; leaves broadcast with `which`.
    part: which child.
    which: rows of the hypotheses.
  """
  feature = task.features[number]
  tail = get(table, which)
  values = feature.site_values(task.parameters[number], rule, part, tail)
  return weighted(task.weights[number], values)


def rule_inputs(task, number, row):
  """A feature's inputs of the rules in rows `[...]`; leaves `[..., n]`."""
  return jax.tree.map(lambda leaf: get(leaf, row), task.inputs[number])


def site_total(task, table, number, row, tails):
  """Scores of applications under one `SiteFeature`, summed over children.

  Args:
    task: the search.
    table: the feature's table.
    number: which feature.
    row: rows of the rules in its inputs, `[...]`.
    tails: rows of the children's states, `[..., A]`.
  """
  rule = rule_inputs(task, number, row)
  return functools.reduce(
    jnp.add,
    [
      site_scores(task, table, number, rule, part, tails[..., part])
      for part in range(tails.shape[-1])
    ],
  )


def site_features(task):
  """The numbers of the features that can be scored before joining."""
  return [
    number
    for number, feature in enumerate(task.features)
    if isinstance(feature, SiteFeature) and task.weights[number] is not None
  ]


def joined_score(task, values):
  """Weighted values of the features that are known only after joining."""
  total = None
  for feature, weights, feature_values in zip(
    task.features, task.weights, values, strict=True
  ):
    if weights is not None and not isinstance(feature, SiteFeature):
      score = weighted(weights, feature_values)
      total = score if total is None else total + score
  return 0.0 if total is None else total


def keys(features: Sequence[StatefulFeature], states: States) -> jax.Array:
  """Hashes what hypotheses must have in common to merge, uint32 `[..., 2]`.

  Two unequal states have equal keys with probability 2^-64. Comparing keys
  takes a fifth of comparing columns.
  """
  parts = [
    state[..., column]
    for feature, state in zip(features, states, strict=True)
    for column in feature.key
  ]
  out = []
  for seed, factor in _HASHES:
    key = jnp.full(parts[0].shape, seed, jnp.uint32)
    for part in parts:
      key = (key ^ lax.bitcast_convert_type(part, jnp.uint32)) * factor
      key ^= key >> 15
    out.append(key)
  # Or the compiler might hash again for every pair that is compared.
  return lax.optimization_barrier(jnp.stack(out, axis=-1))


def apply_rules(
  features: tuple[StatefulFeature, ...],
  parameters: tuple,
  inputs: tuple,
  slots: np.ndarray,
  tails: tuple[np.ndarray, ...],
) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
  """Applies N rules to children whose states are given, from the host.

  Args:
    features: the features.
    parameters: of each, on the device.
    inputs: `RuleInputs.arrays` of each, of the N rules.
    slots: their target sides, int32 `[N, 2A + 1]`.
    tails: states of their children, 0 for none, int32 `[N, A, S]` each.

  Returns:
    For each feature the states `[N, S]`, and its F values `[N]` each.
  """
  size = len(slots)
  room = 1 << max(size - 1, 63).bit_length()  # few sizes are compiled
  pad = lambda leaf: np.concatenate(
    [leaf, np.zeros((room - size, *leaf.shape[1:]), leaf.dtype)]
  )
  padded = jax.tree.map(pad, (inputs, np.asarray(slots), tails))
  outputs = _applier(features)(parameters, *padded)
  states, values = jax.tree.map(lambda leaf: np.asarray(leaf)[:size], outputs)
  return list(states), [list(of_feature) for of_feature in values]


@functools.cache
def _applier(features: tuple[StatefulFeature, ...]):
  """The compiled function of `apply_rules`."""

  @jax.jit
  def run(parameters, inputs, slots, tails):
    size, arity = tails[0].shape[:2]
    applied = AppliedRules(
      slots=slots,
      tails=jnp.arange(size * arity).reshape(size, arity),
      rule=jnp.arange(size),
      base=size * arity,
    )
    outputs = []
    for number, feature in enumerate(features):
      (table,) = tables([feature], [inputs[number]], size * arity)
      below = tails[number].reshape(size * arity, -1)
      table = lax.dynamic_update_slice(table, below, (0, 0))
      outputs.append(
        combine(feature, parameters[number], inputs[number], table, applied)
      )
    return tuple(s for s, _ in outputs), tuple(v for _, v in outputs)

  return run


def edge_values(
  model: Model,
  source: Source,
  *,
  edge_offsets: np.ndarray,
  rule: np.ndarray,
  tails: np.ndarray,
) -> np.ndarray:
  """Returns what each edge adds to the added features, float64 `[E, X]`.

  Columns are the names of `model.extra`. All edges of a node must lead to the
  same state, as they do in the forests of a search with these features.

  Args:
    model: the model.
    source: its sentences.
    edge_offsets: node n's edges are `edge_offsets[n] : edge_offsets[n + 1]`;
      nodes stand tails first, int `[N + 1]`.
    rule: rule of each edge as in `Matches.rule`, int `[E]`.
    tails: tail nodes, -1 for none, int `[E, A]`; of phrases, which say their
      first child first, `<s>` stands for none.
  """
  features, first = model.extra, len(model.features) - len(model.extra)
  parameters = device_parameters(model)[first:]
  pick = lambda read: rule_column(model, source, rule, read)
  slots = pick(lambda c: c.slots)
  inputs = pick(lambda c: tuple(one.arrays for one in c.inputs[first:]))
  alone = pick(lambda c: tuple(one.values for one in c.inputs[first:]))
  out = np.concatenate([np.zeros((len(rule), 0)), *alone], axis=1)
  nodes = len(edge_offsets) - 1
  # Row -1 has no state, the one before it that of `<s>`.
  states = [np.zeros((nodes + 2, f.columns), np.int32) for f in features]
  level = _levels(np.asarray(edge_offsets), np.ascontiguousarray(tails))
  below_all = np.full((len(rule), model.arity), -1, np.int64)
  below_all[:, : tails.shape[1]] = tails
  if model.order is not None:
    for table, state in zip(states, start_states(model), strict=True):
      table[nodes] = state
    begins = below_all[:, 0] < 0
    below_all[begins, 0] = nodes
  heads = np.repeat(np.arange(nodes), np.diff(edge_offsets))
  # Level by level: all edges whose tails are known.
  for number in range(int(level.max(initial=-1)) + 1):
    edges = np.flatnonzero(level[heads] == number)
    below = tuple(table[below_all[edges]] for table in states)
    new_states, values = apply_rules(
      features,
      parameters,
      jax.tree.map(operator.itemgetter(edges), inputs),
      slots[edges],
      below,
    )
    for table, rows in zip(states, new_states, strict=True):
      table[heads[edges]] = rows
    out[edges] += np.stack([one for rows in values for one in rows], axis=1)
  scales = [f.scale for f in features for _ in f.names]
  return out * np.array(scales)


@njit
def _levels(edge_offsets, tails):
  """Height of each node, 0 without children."""
  level = np.zeros(len(edge_offsets) - 1, np.int32)
  for node in range(len(level)):
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      for tail in tails[edge]:
        if tail >= 0:
          level[node] = max(level[node], level[tail] + 1)
  return level
