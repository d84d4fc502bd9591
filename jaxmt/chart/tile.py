"""One step of the search: all cells of a tile at once.

T: cells of a tile. E: applications. P: corners. M: candidates. K: beam.
A: arity. R: columns of a record.
"""

import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.chart import augment, grid, join
from jaxmt.chart.chart import NONE, POSSIBLE


class _Scored(typing.NamedTuple):
  """Candidates `[T, M]` with everything known about them."""

  application: jax.Array
  ranks: jax.Array  # [T, M, A]
  score: jax.Array  # model score
  gain: jax.Array
  record: jax.Array  # [T, M, R]
  augmented: jax.Array  # model score plus extra score
  accumulators: jax.Array | None


def process(carry, *, chart, lm, weights, inputs, config, augmentation):
  """Processes one tile: `search.Carry` to `search.Carry`."""
  start = chart.tile_start[carry.tile]
  rows = (start + jnp.arange(config.tile))[:, None]
  order_CK = carry.score if carry.order is None else carry.order
  extra = None
  if augmentation is not None:
    sentence_T = _get(chart.sentence, rows[:, 0])
    data = jax.tree.map(
      lambda leaf: _get(leaf, sentence_T)[:, None], inputs.data
    )
    extra = lambda value: augmentation.extra(value, data)
  score = functools.partial(
    _score,
    carry=carry,
    rows=rows,
    chart=chart,
    lm=lm,
    weights=weights,
    inputs=inputs,
    config=config,
    extra=extra,
  )
  write = functools.partial(
    _write,
    carry,
    start=start,
    weights=weights,
    config=config,
    augmentation=augmentation,
    extra=extra,
    counts_T=rows[:, 0] < chart.first_goal,
  )
  sum_TP, application_TP = _corners(
    carry, order_CK, start, chart, weights, config
  )
  child_TPA = _get(chart.child, rows, application_TP)
  corners = score(application_TP, jnp.zeros_like(child_TPA), sum_TP)
  if config.pop == config.corners:
    return write(corners)

  lanes = jnp.arange(config.tile)[:, None]
  credit_TP = config.trust * (
    weights.lm * corners.gain
    if augmentation is None
    else corners.augmented - sum_TP
  )
  credit_TP = jnp.where(sum_TP > POSSIBLE, credit_TP, 0.0)
  _, order_TP = lax.top_k(sum_TP + credit_TP, config.corners)
  static_TP = _get(chart.static, rows, application_TP) + credit_TP
  static_TP = jnp.where(sum_TP > POSSIBLE, static_TP, NONE)
  application_TP = _get(application_TP, lanes, order_TP)
  bonus = None
  if config.labels:
    site_TPA = _get(chart.site, _get(chart.rule, rows, application_TP))
    bonus = lambda first, last, which, part: _label_score(
      carry.table, which, site_TPA[:, first:last, part, None], weights
    )
  sum_TM, place_TM, ranks_TMA = grid.entries(
    _get(static_TP, lanes, order_TP),
    _get(child_TPA, lanes, order_TP),
    order_CK,
    bonus,
    plan=grid.make_plan(
      config.taper,
      places=config.corners,
      arity=child_TPA.shape[2],
      beam=config.beam,
    ),
    count=config.pop - config.corners,
  )
  rest = score(_get(application_TP, lanes, place_TM), ranks_TMA, sum_TM)
  both = jax.tree.map(
    lambda one, two: jnp.concatenate([one, two], axis=1), corners, rest
  )
  return write(both)


def _get(array, *index):
  return array.at[index].get(mode="promise_in_bounds")


def _label_score(table, which, site, weights):
  """Match or mismatch of hypotheses with their sites; 0 at free sites."""
  label = _get(table, which, table.shape[1] - 1)
  score = jnp.where(label == site, weights.match, weights.mismatch)
  return jnp.where(site >= 0, score, 0.0)


def _corners(carry, order_CK, start, chart, weights, config):
  """The best corner sums and their applications, `[T, P]` each."""
  arity = chart.child.shape[2]

  def choose(width):
    static = lax.dynamic_slice(chart.static, (start, 0), (config.tile, width))
    child = lax.dynamic_slice(
      chart.child, (start, 0, 0), (config.tile, width, arity)
    )
    bonus = None
    if config.labels:
      rule = lax.dynamic_slice(chart.rule, (start, 0), (config.tile, width))
      bonus = _label_score(
        carry.table, child * config.beam, _get(chart.site, rule), weights
      ).sum(-1)
    return grid.corners(
      static, child, order_CK[:, 0], bonus, count=config.corners
    )

  return lax.switch(
    chart.tile_width[carry.tile],
    [functools.partial(choose, width) for width in config.widths],
  )


def _score(
  application_TM,
  ranks_TMA,
  sum_TM,
  *,
  carry,
  rows,
  chart,
  lm,
  weights,
  inputs,
  config,
  extra,
) -> _Scored:
  """Scores candidates; impossible sums stay impossible."""
  beam = config.beam
  rule_TM = _get(chart.rule, rows, application_TM)
  which_TMA = _get(chart.child, rows, application_TM) * beam + ranks_TMA
  place_TMS = _places(chart, rule_TM, which_TMA, beam)
  joined = join.join_all(lm, carry.table, place_TMS)
  # Added up anew: the sums may hold credits and augmented scores.
  model_TM = _get(chart.static, rows, application_TM) + weights.lm * joined.gain
  model_TM += _get(carry.score.reshape(-1), which_TMA).sum(-1)
  if config.labels:
    model_TM += _label_score(
      carry.table, which_TMA, _get(chart.site, rule_TM), weights
    ).sum(-1)
  possible = sum_TM > POSSIBLE
  score_TM = jnp.where(possible, model_TM, NONE)
  augmented, accumulators = score_TM, None
  if extra is not None:
    sentence_T = _get(chart.sentence, rows[:, 0])
    value = augment.join_all(
      _get(inputs.reference, sentence_T),
      carry.accumulators,
      place_TMS,
      _get(inputs.inner, rows, application_TM),
    )
    augmented = jnp.where(possible, model_TM + extra(value), NONE)
    accumulators = augment.pack(value)
  return _Scored(
    application=application_TM,
    ranks=ranks_TMA,
    score=score_TM,
    gain=joined.gain,
    record=join.pack(joined, _get(chart.label, rule_TM)),
    augmented=augmented,
    accumulators=accumulators,
  )


def _places(chart, rule_TM, which_TMA, beam):
  """Rows of the record table in target order, int32 `[T, M, 2A + 1]`."""
  arity = which_TMA.shape[-1]
  slots_TMS = _get(chart.slots, rule_TM)
  base = chart.rule.shape[0] * beam
  run_TMS = base + rule_TM[..., None] * (arity + 1) + slots_TMS - arity
  place_TMS = jnp.where(slots_TMS >= 0, run_TMS, -1)
  for part in range(arity):
    place_TMS = jnp.where(
      slots_TMS == part, which_TMA[..., part, None], place_TMS
    )
  return place_TMS


def _same(one, two):
  """Whether records `[T, M, R]` and `[T, N, R]` are one state, `[T, M, N]`.

  All columns but the weight, which the words determine.
  """
  width = one.shape[-1] - 4
  same = True
  for column in (width, *range(width), width + 2, width + 3):
    same &= one[:, :, None, column] == two[:, None, :, column]
  return same


def _write(
  carry, scored: _Scored, start, weights, config, augmentation, extra, counts_T
):
  """Merges equal states, keeps the best, and writes the tile's cells.

  Args:
    carry: the state before.
    scored: all candidates of the tile.
    start: the first cell.
    weights: for the threshold.
    config: sizes.
    augmentation: or None.
    extra: extra score of accumulators, with an augmentation.
    counts_T: whether a rank in this cell is a loss (not so in goal cells).
  """
  lanes = jnp.arange(config.tile)[:, None]
  pop = scored.score.shape[1]
  value_TM = scored.augmented
  mine, other = value_TM[:, :, None], value_TM[:, None, :]
  earlier = np.tri(pop, k=-1, dtype=bool)
  better = (other > mine) | ((other == mine) & earlier)
  alone_TM = ~jnp.any(_same(scored.record, scored.record) & better, axis=-1)
  by_both = augmentation is not None and augmentation.prune == "augmented"
  order_TM = scored.augmented if by_both else scored.score
  order_TK, index_TK = lax.top_k(
    jnp.where(alone_TM, order_TM, NONE), config.beam
  )
  far = order_TK < order_TK[:, :1] - weights.threshold
  order_TK = jnp.where(far, NONE, order_TK)
  there_TK = order_TK > POSSIBLE
  pick = lambda array: _get(array, lanes, index_TK)
  score_TK = jnp.where(there_TK, pick(scored.score), NONE)
  record_TKR = pick(scored.record)
  back_TKB = jnp.concatenate(
    [pick(scored.application)[..., None], pick(scored.ranks)], axis=-1
  )
  put = lambda array, part: lax.dynamic_update_slice(
    array, part, (start, *[0] * (array.ndim - 1))
  )
  put_flat = lambda table, part: lax.dynamic_update_slice(
    table,
    part.reshape(-1, part.shape[-1]),
    (start * config.beam, jnp.int32(0)),
  )
  carry = carry._replace(
    tile=carry.tile + 1,
    score=put(carry.score, score_TK),
    table=put_flat(carry.table, record_TKR),
    back=put(carry.back, back_TKB),
  )
  if carry.order is not None:
    carry = carry._replace(order=put(carry.order, order_TK))
  if augmentation is not None:
    rows_TKN = pick(scored.accumulators)
    if augmentation.rank_loss is not None:
      rows_TKN = _add_rank_loss(
        rows_TKN, score_TK, augmentation.rank_loss, counts_T
      )
    extra_TK = extra(augment.unpack(rows_TKN))
    carry = carry._replace(
      augmented=put(
        carry.augmented, jnp.where(there_TK, score_TK + extra_TK, NONE)
      ),
      accumulators=put_flat(carry.accumulators, rows_TKN),
    )
  if config.forest:
    same = _same(scored.record, record_TKR) & there_TK[:, None, :]
    head = jnp.where(same.any(-1), jnp.argmax(same, axis=-1), -1)
    head = jnp.where(scored.score > POSSIBLE, head, -1)
    old = carry.candidates
    carry = carry._replace(
      candidates=type(old)(
        application=put(old.application, scored.application),
        ranks=put(old.ranks, scored.ranks),
        head=put(old.head, head.astype(jnp.int32)),
        gain=put(old.gain, scored.gain),
        score=put(old.score, scored.score),
      )
    )
  return carry


def _add_rank_loss(rows_TKN, score_TK, rank_loss, counts_T):
  """Adds each hypothesis's loss by its rank among the model scores."""
  rank_TK = jnp.sum(
    score_TK[:, None, :] > score_TK[:, :, None], axis=-1, dtype=jnp.int32
  )
  value = augment.unpack(rows_TKN)
  loss_TK = jnp.where(counts_T[:, None], rank_loss(rank_TK), 0.0)
  return augment.pack(value._replace(loss=value.loss + loss_TK))
