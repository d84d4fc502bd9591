"""Which candidates a cell tries: cube pruning without a queue.

For application e with child ranks r the score before the language model joins
the parts is the sum `static(e) + Σ_k score(child_k, r_k)`. Cube pruning pushes
the *corner* r = 0 of every application with its true score and then pops
neighbours one by one. Here it takes two rounds:

1. the P applications with the best corner sums have their corners scored;
2. what the language model changed at a corner, `gain(e)`, is taken as an
   estimate for the whole cube: a fixed set of (e, r) is summed with it at once,
   and the best M sums are scored.

The set is *tapered*: applications are sorted by corner score, and the further
down one stands, the fewer rank tuples it gets, those of least Π (r_k + 1) (the
part of the cube a queue would reach first). Most applications have fewer
children than the widest rule: tuples are chosen for two children, and again for
all of them, and in the first tier every rank of the first and of the second
child is tried alone, so that no hypothesis is out of reach.

T: cells of a tile. E, P: applications. A: arity. K: beam. G: entries of a plan.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.decode.chart import feature_states
from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE
from jaxmt.decode.chart.feature_states import get


def corners(task, carry, start):
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
    for number in feature_states.site_features(task):
      total = feature_states.site_total(
        task,
        carry.tables[number],
        number,
        cut(task.rows[number]),
        child * config.beam,
      )
      bonus = total if bonus is None else bonus + total
    return _best_sums(
      static, child, order_CK[:, 0], bonus, count=config.corners
    )

  return lax.switch(
    chart.tile_width[carry.tile],
    [functools.partial(choose, width) for width in config.widths],
  )


def entries(task, carry, rows, scored, sum_TP):
  """Chooses the other candidates: `(applications, ranks, sums)`.

  Args:
    task: the search.
    carry: its state.
    rows: cells of the tile, `[T, 1]`.
    scored: the scored corners.
    sum_TP: their sums before scoring.
  """
  chart, config = task.chart, task.config
  lanes = jnp.arange(config.tile)[:, None]
  # A cube is credited with part of what scoring changed at its corner.
  # Hypotheses sorted by model score give sums of model scores.
  if carry.order is None:
    gain_TP = feature_states.joined_score(task, scored.values)
  else:
    gain_TP = scored.augmented - sum_TP
  credit_TP = jnp.where(sum_TP > POSSIBLE, config.trust * gain_TP, 0.0)
  _, order_TP = lax.top_k(sum_TP + credit_TP, config.corners)
  static_TP = get(chart.static, rows, scored.application) + credit_TP
  static_TP = jnp.where(sum_TP > POSSIBLE, static_TP, NONE)
  application_TP = get(scored.application, lanes, order_TP)
  sum_TM, place_TM, ranks_TMA = _best_entries(
    get(static_TP, lanes, order_TP),
    get(chart.child, rows, application_TP),
    carry.score if carry.order is None else carry.order,
    _cube_bonus(task, carry, rows, application_TP),
    plan=_make_plan(
      config.taper,
      places=config.corners,
      arity=chart.child.shape[2],
      beam=config.beam,
    ),
    count=config.pop - config.corners,
  )
  return get(application_TP, lanes, place_TM), ranks_TMA, sum_TM


def _cube_bonus(task, carry, rows, application_TP):
  """Site scores as `_best_entries` takes them; None without any."""
  numbers = feature_states.site_features(task)
  if not numbers:
    return None
  rules = [
    feature_states.rule_inputs(
      task, number, get(task.rows[number], rows, application_TP)
    )
    for number in numbers
  ]

  def bonus(first, last, which, part):
    total = None
    for number, rule in zip(numbers, rules, strict=True):
      some = jax.tree.map(lambda leaf: leaf[:, first:last, None], rule)
      score = feature_states.site_scores(
        task, carry.tables[number], number, some, part, which
      )
      total = score if total is None else total + score
    return total

  return bonus


@functools.cache
def rank_tuples(*, count: int, arity: int, beam: int) -> np.ndarray:
  """Returns the `count` rank tuples a queue would reach first.

  They are those of least Π (r_k + 1), ties in lexicographic order, without
  (0, ..., 0); int32 `[N, arity]`, fewer if there are no more.
  """
  budget, tuples = 1, [()]
  while len(tuples) < count + 1 and budget < beam**arity:
    budget = min(2 * budget, beam**arity)
    tuples = _tuples_within(budget, arity, beam)
  tuples = sorted(tuples, key=lambda ranks: math.prod(r + 1 for r in ranks))
  tuples = [ranks for ranks in tuples if any(ranks)][:count]
  return np.array(tuples, np.int32).reshape(len(tuples), arity)


def _tuples_within(budget: int, arity: int, beam: int) -> list[tuple]:
  """All rank tuples with Π (r_k + 1) <= budget, in lexicographic order."""
  tuples: list[tuple[tuple[int, ...], int]] = [((), budget)]
  for _ in range(arity):
    tuples = [
      ((*head, rank), left // (rank + 1))
      for head, left in tuples
      for rank in range(min(beam, left))
    ]
  return [ranks for ranks, _ in tuples]


@functools.cache
def tier_tuples(
  *, count: int, arity: int, beam: int, first: bool
) -> np.ndarray:
  """Returns the rank tuples of a tier, each once; int32 `[N, arity]`.

  Args:
    count: how many for two children, and how many for all.
    arity: A.
    beam: K.
    first: whether every rank of the first two children is tried alone.
  """
  first_children = min(arity, 2)
  chosen = [rank_tuples(count=count, arity=first_children, beam=beam)]
  if first and count:
    alone = np.arange(1, beam, dtype=np.int32)[:, None, None] * np.eye(
      first_children, dtype=np.int32
    )
    chosen.append(alone.reshape(-1, first_children))
  chosen = [
    np.pad(some, ((0, 0), (0, arity - first_children))) for some in chosen
  ]
  if arity > first_children:
    chosen.append(rank_tuples(count=count, arity=arity, beam=beam))
  every = dict.fromkeys(map(tuple, np.concatenate(chosen).tolist()))
  return np.array(list(every), np.int32).reshape(len(every), arity)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _EntryPlan:
  """The fixed set of (application place, ranks).

  Attributes:
    tiers: per tier, the first place and one past the last, and its tuples.
    place: application place of each entry, int32 `[G]`.
    ranks: child ranks of each entry, int32 `[G, A]`.
  """

  tiers: tuple[tuple[int, int, np.ndarray], ...]
  place: np.ndarray
  ranks: np.ndarray


def _make_plan(
  taper: tuple[tuple[int, int], ...], *, places: int, arity: int, beam: int
) -> _EntryPlan:
  """Lays out the tiers `(applications, tuples)` over `places` applications."""
  tiers = []
  where = [np.zeros(0, np.int32)]
  ranks = [np.zeros((0, arity), np.int32)]
  first = 0
  for count, most in taper:
    last = min(first + count, places)
    tuples = tier_tuples(count=most, arity=arity, beam=beam, first=first == 0)
    if last > first and len(tuples):
      tiers.append((first, last, tuples))
      where.append(
        np.repeat(np.arange(first, last, dtype=np.int32), len(tuples))
      )
      ranks.append(np.tile(tuples, (last - first, 1)))
    first = last
  return _EntryPlan(
    tiers=tuple(tiers),
    place=np.concatenate(where).astype(np.int32),
    ranks=np.concatenate(ranks).astype(np.int32),
  )


def _best_sums(
  static_TE: jax.Array,
  child_TEA: jax.Array,
  best_C: jax.Array,
  bonus_TE: jax.Array | None = None,
  *,
  count: int,
) -> tuple[jax.Array, jax.Array]:
  """Returns the `count` applications of best corner sum: `(sum, which)`.

  Args:
    static_TE: static scores.
    child_TEA: child cells.
    best_C: best score of each cell.
    bonus_TE: optional addition to the sums.
    count: P.
  """
  best_TEA = best_C.at[child_TEA].get(mode="promise_in_bounds")
  sum_TE = static_TE + best_TEA.sum(-1)
  if bonus_TE is not None:
    sum_TE = sum_TE + bonus_TE
  width = min(count, sum_TE.shape[1])
  sum_TP, which_TP = lax.top_k(sum_TE, width)
  missing = ((0, 0), (0, count - width))
  return (
    jnp.pad(sum_TP, missing, constant_values=NONE),
    jnp.pad(which_TP, missing),
  )


def _best_entries(
  static_TP: jax.Array,
  child_TPA: jax.Array,
  score_CK: jax.Array,
  bonus=None,
  *,
  plan: _EntryPlan,
  count: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Chooses the `count` entries of the plan with the best sums.

  Args:
    static_TP: static scores (with the corners' gains), best corner first.
    child_TPA: child cells.
    score_CK: scores of all cells' hypotheses, falling along K.
    bonus: optional `(first, last, hypotheses [T, n, r], part) -> [T, n, r]`, an
      addition for the hypotheses of child `part` of places first to last.
    plan: the set to choose from.
    count: M.

  Returns:
    `(sum [T, M], place [T, M], ranks [T, M, A])`.
  """
  tile = static_TP.shape[0]
  beam = score_CK.shape[1]
  flat_score = score_CK.reshape(-1)
  sums = []
  for first, last, tuples in plan.tiers:
    total = static_TP[:, first:last, None]
    for part in range(tuples.shape[1]):
      reach = np.arange(min(int(tuples[:, part].max()) + 1, beam))
      which = child_TPA[:, first:last, part, None] * beam + reach
      score = flat_score.at[which].get(mode="promise_in_bounds")
      if bonus is not None:
        score = score + bonus(first, last, which, part)
      total = total + score[:, :, tuples[:, part]]
    sums.append(total.reshape(tile, -1))
  short = max(count - len(plan.place), 0)
  sums.append(jnp.full((tile, short), NONE))
  sum_TM, entry_TM = lax.top_k(jnp.concatenate(sums, axis=1), count)
  last = max(len(plan.place) - 1, 0)
  entry_TM = jnp.minimum(entry_TM, last)
  if not len(plan.place):
    zero = jnp.zeros_like(entry_TM)
    return sum_TM, zero, jnp.zeros((*zero.shape, child_TPA.shape[2]), jnp.int32)
  return (
    sum_TM,
    jnp.asarray(plan.place)[entry_TM],
    jnp.asarray(plan.ranks)[entry_TM],
  )
