"""One step of the search: all cells of a tile at once.

T: cells of a tile. E: applications. P: corners. M: candidates. K: beam.
A: arity. S: columns of a feature's state.
"""

import functools
import typing

import jax
import jax.numpy as jnp
from jax import lax

from jaxmt.decode.chart import accumulators, cube, feature_states
from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE
from jaxmt.decode.chart.feature_states import AppliedRules, get
from jaxmt.features.base import SiteFeature

TIE = 1e-4  # scores that differ by rounding have one rank
_STEPS = 8


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


def process(carry, *, task):
  """Processes one tile: `search.Carry` to `search.Carry`."""
  start = task.chart.tile_start[carry.tile]
  rows = (start + jnp.arange(task.config.tile))[:, None]
  # First round: the corner of each of the best applications.
  sum_TP, application_TP = _corners(task, carry, start)
  child_TPA = get(task.chart.child, rows, application_TP)
  scored = _score(
    task, carry, rows, application_TP, jnp.zeros_like(child_TPA), sum_TP
  )
  # Second round: the rest of their cubes, with what the corners told.
  if task.config.pop > task.config.corners:
    chosen = _cube(task, carry, rows, scored, sum_TP)
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


def _site_scores(task, carry, number, rule, part, which):
  """Scores of hypotheses as child `part` under one `SiteFeature`.

  Args:
    task: the search.
    carry: its state.
    number: which feature.
    rule: its inputs of the rules; leaves broadcast with `which`.
    part: which child.
    which: rows of the hypotheses.
  """
  feature = task.features[number]
  tail = get(carry.tables[number], which)
  values = feature.site_values(task.parameters[number], rule, part, tail)
  return feature_states.weighted(task.weights[number], values)


def _rule_inputs(task, number, row):
  """A feature's inputs of the rules in rows `[...]`; leaves `[..., n]`."""
  return jax.tree.map(lambda leaf: get(leaf, row), task.inputs[number])


def _site_total(task, carry, number, row, tails):
  """Scores of applications under one `SiteFeature`, summed over children.

  Args:
    task: the search.
    carry: its state.
    number: which feature.
    row: rows of the rules in its inputs, `[...]`.
    tails: rows of the children's states, `[..., A]`.
  """
  rule = _rule_inputs(task, number, row)
  return functools.reduce(
    jnp.add,
    [
      _site_scores(task, carry, number, rule, part, tails[..., part])
      for part in range(tails.shape[-1])
    ],
  )


def _sites(task):
  """The numbers of the features that can be scored before joining."""
  return [
    number
    for number, feature in enumerate(task.features)
    if isinstance(feature, SiteFeature) and task.weights[number] is not None
  ]


def _corners(task, carry, start):
  """The best corner sums and their applications, `[T, P]` each."""
  chart, config = task.chart, task.config
  order_CK = carry.score if carry.order is None else carry.order

  def choose(width):
    cut = lambda array: lax.dynamic_slice(
      array,
      (start, *[0] * (array.ndim - 1)),
      (config.tile, width, *array.shape[2:]),
    )
    static, child = cut(chart.static), cut(chart.child)
    bonus = None
    for number in _sites(task):
      total = _site_total(
        task, carry, number, cut(task.rows[number]), child * config.beam
      )
      bonus = total if bonus is None else bonus + total
    return cube.corners(
      static, child, order_CK[:, 0], bonus, count=config.corners
    )

  return lax.switch(
    chart.tile_width[carry.tile],
    [functools.partial(choose, width) for width in config.widths],
  )


def _cube(task, carry, rows, corners, sum_TP):
  """Chooses the other candidates: `(applications, ranks, sums)`.

  Args:
    task: the search.
    carry: its state.
    rows: cells of the tile, `[T, 1]`.
    corners: the scored corners.
    sum_TP: their sums before scoring.
  """
  chart, config = task.chart, task.config
  lanes = jnp.arange(config.tile)[:, None]
  # A cube is credited with part of what scoring changed at its corner.
  # Hypotheses sorted by model score give sums of model scores.
  if carry.order is None:
    gain_TP = _joined_score(task, corners.values)
  else:
    gain_TP = corners.augmented - sum_TP
  credit_TP = jnp.where(sum_TP > POSSIBLE, config.trust * gain_TP, 0.0)
  _, order_TP = lax.top_k(sum_TP + credit_TP, config.corners)
  static_TP = get(chart.static, rows, corners.application) + credit_TP
  static_TP = jnp.where(sum_TP > POSSIBLE, static_TP, NONE)
  application_TP = get(corners.application, lanes, order_TP)
  sum_TM, place_TM, ranks_TMA = cube.entries(
    get(static_TP, lanes, order_TP),
    get(chart.child, rows, application_TP),
    carry.score if carry.order is None else carry.order,
    _cube_bonus(task, carry, rows, application_TP),
    plan=cube.make_plan(
      config.taper,
      places=config.corners,
      arity=chart.child.shape[2],
      beam=config.beam,
    ),
    count=config.pop - config.corners,
  )
  return get(application_TP, lanes, place_TM), ranks_TMA, sum_TM


def _cube_bonus(task, carry, rows, application_TP):
  """Site scores as `cube.entries` takes them; None without any."""
  numbers = _sites(task)
  if not numbers:
    return None
  rules = [
    _rule_inputs(task, number, get(task.rows[number], rows, application_TP))
    for number in numbers
  ]

  def bonus(first, last, which, part):
    total = None
    for number, rule in zip(numbers, rules, strict=True):
      some = jax.tree.map(lambda leaf: leaf[:, first:last, None], rule)
      score = _site_scores(task, carry, number, some, part, which)
      total = score if total is None else total + score
    return total

  return bonus


def _joined_score(task, values):
  """Weighted values of the features that are known only after joining."""
  total = None
  for feature, weights, feature_values in zip(
    task.features, task.weights, values, strict=True
  ):
    if weights is not None and not isinstance(feature, SiteFeature):
      score = feature_states.weighted(weights, feature_values)
      total = score if total is None else total + score
  return 0.0 if total is None else total


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
  # Added up anew: the sums may hold credits and augmented scores.
  model_TM = get(chart.static, rows, application_TM)
  model_TM += _joined_score(task, values)
  model_TM += get(carry.score.reshape(-1), tails_TMA).sum(-1)
  for number in _sites(task):
    row_TM = get(task.rows[number], rows, application_TM)
    model_TM += _site_total(task, carry, number, row_TM, tails_TMA)
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
    candidates=type(old)(
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
