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

from jaxmt.decode.chart import accumulators as augment
from jaxmt.decode.chart import cube, lm_join
from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE

TIE = 1e-4  # scores that differ by rounding have one rank
_STEPS = 8
_HASHES = (  # seeds and odd factors, of MurmurHash3 and xxHash
  (np.uint32(0x9E3779B9), np.uint32(0x85EBCA6B)),
  (np.uint32(0x165667B1), np.uint32(0xC2B2AE35)),
)


class _Scored(typing.NamedTuple):
  """Candidates `[T, M]` with everything known about them."""

  application: jax.Array
  ranks: jax.Array  # [T, M, A]
  score: jax.Array  # model score
  gain: jax.Array
  record: jax.Array  # [T, M, R]
  augmented: jax.Array  # model score plus extra score
  accumulators: jax.Array | None


def process(
  carry, *, chart, lm, weights, inputs, parameters, config, augmentation
):
  """Processes one tile: `search.Carry` to `search.Carry`."""
  start = chart.tile_start[carry.tile]
  rows = (start + jnp.arange(config.tile))[:, None]
  order_CK = carry.score if carry.order is None else carry.order
  extra, rank_loss = None, None
  if augmentation is not None:
    goal = augment.Goal(
      length=_get(inputs.length, _get(chart.sentence, rows)),
      share=_get(inputs.share, rows),
    )
    extra = lambda value: augmentation.extra(value, goal, parameters)
    if augmentation.rank_loss is not None:
      rank_loss = lambda rank: augmentation.rank_loss(rank, parameters)
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
    rank_loss=rank_loss,
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
  # Hypotheses sorted by model score give sums of model scores.
  credit_TP = config.trust * (
    weights.lm * corners.gain
    if carry.order is None
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
  sum_TM, place_TM, ranks_TMA = cube.entries(
    _get(static_TP, lanes, order_TP),
    _get(child_TPA, lanes, order_TP),
    order_CK,
    bonus,
    plan=cube.make_plan(
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
    return cube.corners(
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
  slots_TMS = _get(chart.slots, rule_TM)
  base = chart.rule.shape[0] * beam
  place_TMS = _places(slots_TMS, which_TMA, rule_TM, base)
  joined = lm_join.join_all(lm, carry.table, place_TMS)
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
    row_TM = _get(inputs.row, rows, application_TM)
    value = augment.join_all(
      carry.accumulators, _places(slots_TMS, which_TMA, row_TM, base)
    )
    augmented = jnp.where(possible, model_TM + extra(value), NONE)
    accumulators = augment.pack(value)
  return _Scored(
    application=application_TM,
    ranks=ranks_TMA,
    score=score_TM,
    gain=joined.gain,
    record=lm_join.pack(joined, _get(chart.label, rule_TM)),
    augmented=augmented,
    accumulators=accumulators,
  )


def _places(slots_TMS, which_TMA, rule_TM, base):
  """Rows of a table in target order, int32 `[T, M, 2A + 1]`.

  Args:
    slots_TMS: what stands in each place.
    which_TMA: rows of the hypotheses.
    rule_TM: whose runs, counted in rules from row `base` on.
    base: first row behind the hypotheses.
  """
  arity = which_TMA.shape[-1]
  run_TMS = base + rule_TM[..., None] * (arity + 1) + slots_TMS - arity
  place_TMS = jnp.where(slots_TMS >= 0, run_TMS, -1)
  for part in range(arity):
    place_TMS = jnp.where(
      slots_TMS == part, which_TMA[..., part, None], place_TMS
    )
  return place_TMS


def _keys(record, accumulators):
  """Hashes what hypotheses must have in common, uint32 `[T, M, 2]`.

  That is all columns of the record but the weight, which the words determine,
  and the accumulators, if any. Two unequal states have equal keys with
  probability 2^-64; comparing keys takes a fifth of comparing columns.
  """
  width = record.shape[-1] - 4
  parts = [record[..., column] for column in (*range(width + 1), -2, -1)]
  if accumulators is not None:
    parts += [accumulators[..., n] for n in range(accumulators.shape[-1])]
  keys = []
  for seed, factor in _HASHES:
    key = jnp.full(record.shape[:-1], seed, jnp.uint32)
    for part in parts:
      key = (key ^ lax.bitcast_convert_type(part, jnp.uint32)) * factor
      key ^= key >> 15
    keys.append(key)
  # Or the compiler might hash anew for every pair that is compared.
  return lax.optimization_barrier(jnp.stack(keys, axis=-1))


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


def _heads(keys_TM, keys_TK, there_TK):
  """Which hypothesis has a candidate's keys (one at most), -1 if none."""

  def body(n, head):
    there = lax.dynamic_index_in_dim(there_TK, n, 1)
    return jnp.where(_same(keys_TM, keys_TK, n) & there, n, head)

  start = jnp.full(keys_TM.shape[:2], -1, jnp.int32)
  return _over(there_TK.shape[1], body, start)


def _write(
  carry,
  scored: _Scored,
  *,
  start,
  weights,
  config,
  augmentation,
  extra,
  rank_loss,
  counts_T,
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
    rank_loss: loss by rank, or None.
    counts_T: whether a rank in this cell is a loss (not so in goal cells).
  """
  lanes = jnp.arange(config.tile)[:, None]
  finer = augmentation is not None and augmentation.state == "accumulators"
  keys_TM = _keys(scored.record, scored.accumulators if finer else None)
  merged_TM = _merged(keys_TM, scored.augmented)
  order_TM = scored.score if carry.order is None else scored.augmented
  order_TK, index_TK = lax.top_k(
    jnp.where(merged_TM, NONE, order_TM), config.beam
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
  loss_TK = None
  if augmentation is not None:
    if rank_loss is not None:
      loss_TK = _rank_loss(score_TK, rank_loss, counts_T)
    rows_TKN = _add_loss(pick(scored.accumulators), loss_TK)
    extra_TK = extra(augment.unpack(rows_TKN))
    carry = carry._replace(
      augmented=put(
        carry.augmented, jnp.where(there_TK, score_TK + extra_TK, NONE)
      ),
      accumulators=put_flat(carry.accumulators, rows_TKN),
    )
  if not config.forest:
    return carry
  head = _heads(keys_TM, pick(keys_TM), there_TK)
  head = jnp.where(scored.score > POSSIBLE, head, -1)
  augmented = None
  if augmentation is not None:
    augmented = put(
      carry.candidates.augmented,
      _head_augmented(scored, head, loss_TK, extra),
    )
  old = carry.candidates
  return carry._replace(
    candidates=type(old)(
      application=put(old.application, scored.application),
      ranks=put(old.ranks, scored.ranks),
      head=put(old.head, head),
      gain=put(old.gain, scored.gain),
      score=put(old.score, scored.score),
      augmented=augmented,
    )
  )


def _head_augmented(scored, head_TM, loss_TK, extra):
  """Augmented scores of candidates, each with its head's loss by rank."""
  if loss_TK is None:
    return scored.augmented
  loss_TM = jnp.take_along_axis(loss_TK, jnp.maximum(head_TM, 0), axis=1)
  value = extra(augment.unpack(_add_loss(scored.accumulators, loss_TM)))
  return jnp.where(scored.score > POSSIBLE, scored.score + value, NONE)


def _rank_loss(score_TK, rank_loss, counts_T):
  """Each hypothesis's loss by its rank among the model scores."""
  rank_TK = jnp.sum(
    score_TK[:, None, :] > score_TK[:, :, None] + TIE,
    axis=-1,
    dtype=jnp.int32,
  )
  return jnp.where(counts_T[:, None], rank_loss(rank_TK), 0.0)


def _add_loss(rows, loss):
  """Adds to the loss of accumulator rows, if there is any."""
  if loss is None:
    return rows
  value = augment.unpack(rows)
  return augment.pack(value._replace(loss=value.loss + loss))
