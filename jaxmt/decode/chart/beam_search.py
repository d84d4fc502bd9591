"""Beam search over charts as one array program.

Tile by tile (see `chart_layout`), for all cells of a tile at once:

1. choose candidates by sums of what is known (`cube`), and score them with the
   stateful features (`feature_states`), twice: first the corners of the best
   applications, then their cubes;
2. merge candidates of equal states: the best one stays;
3. the K best are the cell's hypotheses.

This is cube pruning (Chiang 2007) with the queue unrolled. Scores are natural
logs in float32. They include the estimate of the words whose left context is
not known yet, which is none in a goal cell.

C: cells. T: cells of a tile. E: applications. P: corners. M: candidates.
K: beam. A: arity. S: columns of a feature's state.
"""

import dataclasses
import functools
import typing
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxmt.decode.chart import accumulators, cube, feature_states
from jaxmt.decode.chart.accumulators import (
  AccumulatorState,
  Augmentation,
  AugmentInputs,
)
from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE, Chart
from jaxmt.decode.chart.feature_states import AppliedRules, get
from jaxmt.decode.chart.search import (
  TIE,
  Array,
  Beams,
  Candidates,
  Scalar,
  SearchConfig,
  Weights,
)
from jaxmt.features.stateful import StatefulFeature

_STEPS = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Task:
  """All that a search is given, while it is traced.

  The features are those of the model; with an augmentation its accumulators
  are one more, which is not weighed.

  Attributes:
    chart: cells and applications.
    config: sizes.
    features: the stateful features.
    parameters: of each feature, on the device.
    inputs: each feature's inputs of rules.
    rows: row of each application in them, int32 `[C, E]`, by feature.
    weights: weights of the features, None where not scored.
    threshold: see `Weights`.
    augmentation: or None.
    references: with an augmentation, what it needs of them.
    numbers: the augmentation's parameters.
  """

  chart: Chart
  config: SearchConfig
  features: tuple[StatefulFeature, ...]
  parameters: tuple[Any, ...]
  inputs: tuple[Any, ...]
  rows: tuple[Array, ...]
  weights: tuple[tuple[Scalar, ...] | None, ...]
  threshold: Scalar
  augmentation: Augmentation | None
  references: AugmentInputs | None
  numbers: tuple[Scalar, ...]


class _Carry(typing.NamedTuple):
  """The state between tiles.

  Attributes:
    tile: the next tile.
    score: model scores, `[C, K]`.
    order: what hypotheses are sorted by, `[C, K]`; None if it is the score.
    tables: states, see `feature_states.tables`.
    back: back pointers, `[C, K, 1 + A]`.
    augmented: augmented scores, `[C, K]`, or None.
    candidates: the edges, or None.
  """

  tile: jax.Array
  score: jax.Array
  order: jax.Array | None
  tables: feature_states.States
  back: jax.Array
  augmented: jax.Array | None
  candidates: Candidates | None


class _Scored(typing.NamedTuple):
  """Candidates `[T, M]` with everything known about them.

  Attributes:
    application: which application of the cell.
    ranks: child ranks, `[T, M, A]`.
    score: model score.
    values: what each name of each feature adds, a tuple per feature.
    states: states of the features, `[T, M, S]` each.
    augmented: model score plus extra score.
  """

  application: jax.Array
  ranks: jax.Array
  score: jax.Array
  values: tuple[tuple[jax.Array, ...], ...]
  states: feature_states.States
  augmented: jax.Array


class _Kept(typing.NamedTuple):
  """The hypotheses of the tile's cells, `[T, K]`.

  Attributes:
    index: which candidate each is.
    order: what they are sorted by.
    exists: whether there is one.
    score: model score.
    states: states of the features, `[T, K, S]` each.
    loss: loss by rank, or None.
  """

  index: jax.Array
  order: jax.Array
  exists: jax.Array
  score: jax.Array
  states: feature_states.States
  loss: jax.Array | None


def search(
  chart: Chart,
  parameters: tuple[Any, ...],
  weights: Weights,
  references: AugmentInputs | None = None,
  numbers: tuple[Scalar, ...] = (),
  *,
  config: SearchConfig,
  features: tuple[StatefulFeature, ...],
  augmentation: Augmentation | None = None,
) -> Beams:
  """Fills a chart with hypotheses.

  Args:
    chart: the cells and their applications.
    parameters: parameters of the features, on the device.
    weights: weights that act during the search.
    references: with an augmentation, what it needs of them.
    numbers: the augmentation's parameters (its own are not used here).
    config: sizes.
    features: the stateful features of the model.
    augmentation: extra scores from accumulators.

  Raises:
    ValueError: at trace time, if the sizes contradict each other.
  """
  _check(config, references, augmentation)
  task = _task(
    chart,
    parameters,
    weights,
    references,
    numbers,
    config=config,
    features=features,
    augmentation=augmentation,
  )
  carry = lax.while_loop(
    lambda carry: carry.tile < chart.num_tiles,
    functools.partial(_process, task=task),
    _start(task),
  )
  cells = chart.rule.shape[0]
  return Beams(
    score=carry.score,
    order=carry.score if carry.order is None else carry.order,
    states=feature_states.by_cell(carry.tables, cells, config.beam),
    back=carry.back,
    augmented=carry.augmented,
    candidates=carry.candidates,
  )


def _check(config, references, augmentation):
  if not 0 < config.corners <= config.pop:
    raise ValueError(f"{config.corners} corners of {config.pop} candidates")
  if config.beam > config.pop:
    raise ValueError(f"beam {config.beam} of {config.pop} candidates")
  if (references is None) != (augmentation is None):
    raise ValueError("an augmentation and its inputs go together")


def _task(
  chart,
  parameters,
  weights,
  references,
  numbers,
  *,
  config,
  features,
  augmentation,
) -> _Task:
  """Adds the accumulators, if any, to the features of the model."""
  inputs, weighed = chart.inputs, weights.features
  rows = (chart.rule,) * len(features)
  if augmentation is not None:
    accumulator = AccumulatorState(
      columns=references.runs.shape[2],
      distinct=augmentation.state == "accumulators",
    )
    features, parameters = (*features, accumulator), (*parameters, ())
    inputs, rows = (*inputs, references.runs), (*rows, references.row)
    weighed = (*weighed, None)
  return _Task(
    chart=chart,
    config=config,
    features=features,
    parameters=parameters,
    inputs=inputs,
    rows=rows,
    weights=weighed,
    threshold=weights.threshold,
    augmentation=augmentation,
    references=references,
    numbers=numbers,
  )


def _start(task: _Task) -> _Carry:
  """Nothing known but the null cell and the runs."""
  cells, _, arity = task.chart.child.shape
  beam, pop = task.config.beam, task.config.pop
  score = jnp.full((cells, beam), NONE).at[0, 0].set(0.0)
  hook = task.augmentation
  hooked = hook is not None
  candidates = None
  if task.config.forest:
    candidates = Candidates(
      application=jnp.zeros((cells, pop), jnp.int32),
      ranks=jnp.zeros((cells, pop, arity), jnp.int32),
      head=jnp.full((cells, pop), -1, jnp.int32),
      gain=jnp.zeros((cells, pop), jnp.float32),
      score=jnp.full((cells, pop), NONE),
      augmented=jnp.full((cells, pop), NONE) if hooked else None,
    )
  by_both = hook is not None and hook.prune == "augmented"
  return _Carry(
    tile=jnp.int32(0),
    score=score,
    order=score if by_both else None,
    tables=feature_states.tables(task.features, task.inputs, cells * beam),
    back=jnp.zeros((cells, beam, 1 + arity), jnp.int32),
    augmented=score if hooked else None,
    candidates=candidates,
  )


def _process(carry: _Carry, *, task: _Task) -> _Carry:
  """Processes one tile."""
  start = task.chart.tile_start[carry.tile]
  rows = (start + jnp.arange(task.config.tile))[:, None]
  # First round: the corner of each of the best applications.
  sum_TP, application_TP = cube.corners(task, carry, start)
  child_TPA = get(task.chart.child, rows, application_TP)
  scored = _score(
    task, carry, rows, application_TP, jnp.zeros_like(child_TPA), sum_TP
  )
  # Second round: the rest of their cubes, with what the corners told.
  if task.config.pop > task.config.corners:
    chosen = cube.entries(task, carry, rows, scored, sum_TP)
    rest = _score(task, carry, rows, *chosen)
    scored = jax.tree.map(
      lambda one, two: jnp.concatenate([one, two], axis=1), scored, rest
    )
  # Merge equal states, prune, and write the tile's cells.
  keys_TM = feature_states.keys(task.features, scored.states)
  hypotheses = _prune(task, carry, rows, scored, keys_TM)
  carry = _put_beams(task, carry, rows, scored, hypotheses)
  if carry.candidates is None:
    return carry
  return _put_candidates(task, carry, rows, scored, hypotheses, keys_TM)


def _extra(task, rows):
  """The augmentation's extra score as a function of accumulator states."""
  references = task.references
  goal = accumulators.Goal(
    length=get(references.length, get(task.chart.sentence, rows)),
    share=get(references.share, rows),
  )
  return lambda state: task.augmentation.extra(
    accumulators.unpack(state), goal, task.numbers
  )


def _score(task, carry, rows, application_TM, ranks_TMA, sum_TM) -> _Scored:
  """Scores candidates with all features; impossible sums stay impossible."""
  chart, beam = task.chart, task.config.beam
  tails_TMA = get(chart.child, rows, application_TM) * beam + ranks_TMA
  slots_TMS = get(chart.slots, get(chart.rule, rows, application_TM))
  states, values = [], []
  for number, feature in enumerate(task.features):
    state, value = feature_states.combine(
      feature,
      task.parameters[number],
      task.inputs[number],
      carry.tables[number],
      AppliedRules(
        slots=slots_TMS,
        tails=tails_TMA,
        rule=get(task.rows[number], rows, application_TM),
        base=chart.rule.shape[0] * beam,
      ),
    )
    states.append(state)
    values.append(value)
  # Added up again: the sums may hold credits and augmented scores.
  model_TM = get(chart.static, rows, application_TM)
  model_TM += feature_states.joined_score(task, values)
  model_TM += get(carry.score.reshape(-1), tails_TMA).sum(-1)
  for number in feature_states.site_features(task):
    row_TM = get(task.rows[number], rows, application_TM)
    model_TM += feature_states.site_total(
      task, carry.tables[number], number, row_TM, tails_TMA
    )
  possible = sum_TM > POSSIBLE
  score_TM = jnp.where(possible, model_TM, NONE)
  augmented = score_TM
  if task.augmentation is not None:
    extra = _extra(task, rows)
    augmented = jnp.where(possible, model_TM + extra(states[-1]), NONE)
  return _Scored(
    application=application_TM,
    ranks=ranks_TMA,
    score=score_TM,
    values=tuple(values),
    states=tuple(states),
    augmented=augmented,
  )


def _over(count, body, start):
  """Loops `body(n, value)` over n < count, some steps at a time.

  A body may see the last n more than once. For comparing all with all this
  is several times faster than one reduction, which goes through memory.
  """

  def steps(step, value):
    for part in range(_STEPS):
      value = body(jnp.minimum(step * _STEPS + part, count - 1), value)
    return value

  return lax.fori_loop(0, -(-count // _STEPS), steps, start)


def _same(keys, others, n):
  """Whether keys `[T, M, 2]` equal the n-th of others, `[T, M]`."""
  one = lax.dynamic_index_in_dim(others, n, 1)
  return (keys[..., 0] == one[..., 0]) & (keys[..., 1] == one[..., 1])


def _merged(keys_TM, value_TM):
  """Whether another of the same keys is better, or as good and earlier."""
  place = jnp.arange(value_TM.shape[1])

  def body(n, merged):
    other = lax.dynamic_index_in_dim(value_TM, n, 1)
    better = (other > value_TM) | ((other == value_TM) & (n < place))
    return merged | (_same(keys_TM, keys_TM, n) & better)

  start = jnp.zeros(value_TM.shape, bool)
  return _over(value_TM.shape[1], body, start)


def _heads(keys_TM, keys_TK, exists_TK):
  """Which hypothesis has a candidate's keys (one at most), -1 if none."""

  def body(n, head):
    exists = lax.dynamic_index_in_dim(exists_TK, n, 1)
    return jnp.where(_same(keys_TM, keys_TK, n) & exists, n, head)

  start = jnp.full(keys_TM.shape[:2], -1, jnp.int32)
  return _over(exists_TK.shape[1], body, start)


def _prune(task, carry, rows, scored: _Scored, keys_TM) -> _Kept:
  """Merges candidates of equal states and keeps the K best of each cell."""
  # Of equal states the best by augmented score stays, if there is one.
  merged_TM = _merged(keys_TM, scored.augmented)
  order_TM = scored.score if carry.order is None else scored.augmented
  order_TK, index_TK = lax.top_k(
    jnp.where(merged_TM, NONE, order_TM), task.config.beam
  )
  # Those far below the best are dropped.
  far = order_TK < order_TK[:, :1] - task.threshold
  order_TK = jnp.where(far, NONE, order_TK)
  exists_TK = order_TK > POSSIBLE
  pick = _picker(task, index_TK)
  score_TK = jnp.where(exists_TK, pick(scored.score), NONE)
  states = [pick(state) for state in scored.states]
  loss_TK = None
  if task.augmentation is not None and task.augmentation.rank_loss is not None:
    # Goal cells hold no rule and prune nothing: no loss there.
    counts_T = rows[:, 0] < task.chart.first_goal
    loss_TK = _rank_loss(task, score_TK, counts_T)
    states[-1] = accumulators.add_loss(states[-1], loss_TK)
  return _Kept(
    index=index_TK,
    order=order_TK,
    exists=exists_TK,
    score=score_TK,
    states=tuple(states),
    loss=loss_TK,
  )


def _picker(task, index_TK):
  """Reads candidates `[T, M, ...]` at the hypotheses `[T, K, ...]`."""
  lanes = jnp.arange(task.config.tile)[:, None]
  return lambda array: get(array, lanes, index_TK)


def _put(array, part, start):
  """Writes the tile's cells: `part` from row `start` on."""
  return lax.dynamic_update_slice(array, part, (start, *[0] * (part.ndim - 1)))


def _put_beams(task, carry, rows, scored: _Scored, hypotheses: _Kept):
  """Writes the hypotheses of the tile's cells."""
  start = rows[0, 0]
  pick = _picker(task, hypotheses.index)
  back_TKB = jnp.concatenate(
    [pick(scored.application)[..., None], pick(scored.ranks)], axis=-1
  )
  # A table has the hypotheses of all cells one after the other.
  tables = tuple(
    _put(table, part.reshape(-1, part.shape[-1]), start * task.config.beam)
    for table, part in zip(carry.tables, hypotheses.states, strict=True)
  )
  order, augmented = carry.order, carry.augmented
  if order is not None:
    order = _put(order, hypotheses.order, start)
  if augmented is not None:
    extra_TK = _extra(task, rows)(hypotheses.states[-1])
    own_TK = jnp.where(hypotheses.exists, hypotheses.score + extra_TK, NONE)
    augmented = _put(augmented, own_TK, start)
  return carry._replace(
    tile=carry.tile + 1,
    score=_put(carry.score, hypotheses.score, start),
    order=order,
    tables=tables,
    back=_put(carry.back, back_TKB, start),
    augmented=augmented,
  )


def _put_candidates(
  task, carry, rows, scored: _Scored, hypotheses: _Kept, keys_TM
):
  """Writes all candidates of the tile's cells: the edges of the forest."""
  start = rows[0, 0]
  pick = _picker(task, hypotheses.index)
  head_TM = _heads(keys_TM, pick(keys_TM), hypotheses.exists)
  head_TM = jnp.where(scored.score > POSSIBLE, head_TM, -1)
  old = carry.candidates
  augmented = None
  if task.augmentation is not None:
    own_TM = _head_augmented(task, rows, scored, head_TM, hypotheses.loss)
    augmented = _put(old.augmented, own_TM, start)
  put = lambda array, part: _put(array, part, start)
  return carry._replace(
    candidates=Candidates(
      application=put(old.application, scored.application),
      ranks=put(old.ranks, scored.ranks),
      head=put(old.head, head_TM),
      gain=put(old.gain, scored.values[0][0]),
      score=put(old.score, scored.score),
      augmented=augmented,
    )
  )


def _head_augmented(task, rows, scored: _Scored, head_TM, loss_TK):
  """Augmented scores of candidates, each with its head's loss by rank."""
  if loss_TK is None:
    return scored.augmented
  loss_TM = jnp.take_along_axis(loss_TK, jnp.maximum(head_TM, 0), axis=1)
  state = accumulators.add_loss(scored.states[-1], loss_TM)
  value = _extra(task, rows)(state)
  return jnp.where(scored.score > POSSIBLE, scored.score + value, NONE)


def _rank_loss(task, score_TK, counts_T):
  """Each hypothesis's loss by its rank among the model scores."""
  rank_TK = jnp.sum(
    score_TK[:, None, :] > score_TK[:, :, None] + TIE,
    axis=-1,
    dtype=jnp.int32,
  )
  loss_TK = task.augmentation.rank_loss(rank_TK, task.numbers)
  return jnp.where(counts_T[:, None], loss_TK, 0.0)
