"""Beam search with an n-gram language model as one array program.

Tile by tile (see `chart`), for all cells of a tile at once (see `tile`):

1. choose candidates from sums (`grid`), score them with the language model
   (`join`), twice: the best applications' corners, then their cubes;
2. merge candidates of equal state, that is equal label, open first words and
   right language model state: the best stays;
3. keep the K best as the cell's hypotheses.

This is cube pruning (Chiang 2007) with the queue unrolled. Scores are natural
logs in float32 and include the estimate of the words whose left context is not
known yet, which is none in a goal cell.

C: cells. K: beam. M: candidates. A: arity. W: context words.
"""

import dataclasses
import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.decode.chart import search_step as tiles
from jaxmt.decode.chart.accumulators import Augmentation, AugmentInputs
from jaxmt.decode.chart.chart_layout import NONE, Chart
from jaxmt.lm.automaton import NgramAutomaton

Array = jax.Array | np.ndarray
Scalar = jax.Array | np.floating | float


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig:
  """Sizes of the search; static, so each value is compiled once.

  Attributes:
    beam: K, hypotheses kept per cell.
    pop: M, candidates scored with the language model per cell.
    corners: P, how many of them are corners of an application's cube.
    taper: tiers `(applications, rank tuples)` of the candidate grid, see
      `grid.tier_tuples`.
    trust: share of a corner's gain that its cube is credited with.
    widths: applications per cell the program is compiled for, rising; the last
      is the most a chart may have.
    tile: cells processed together.
    labels: whether match and mismatch of labels are scored.
    forest: whether all candidates are returned, not just the beams.
  """

  beam: int = 30
  pop: int = 200
  corners: int = 48
  taper: tuple[tuple[int, int], ...] = ((8, 112), (24, 20), (96, 4))
  trust: float = 0.5
  widths: tuple[int, ...] = (16, 64, 128)
  tile: int = 64
  labels: bool = False
  forest: bool = False


def make_config(*, beam: int, pop: int, **others) -> SearchConfig:
  """Returns a configuration with the other sizes chosen to suit."""
  return SearchConfig(
    beam=beam,
    pop=max(pop, beam),
    corners=max(min(48, pop * 3 // 8), 1),
    **others,
  )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Weights:
  """What the search itself weighs; the rest is in the static scores.

  Attributes:
    lm: weight of the language model's ln p.
    match: score of a child whose label is that of its site.
    mismatch: score of a child whose label is another.
    threshold: hypotheses this much below the best of their cell are dropped.
  """

  lm: Scalar
  match: Scalar = 0.0
  mismatch: Scalar = 0.0
  threshold: Scalar = float("inf")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Candidates:
  """All scored candidates of C cells: the edges of the forest.

  Attributes:
    application: which application of the cell, int32 `[C, M]`.
    ranks: child ranks, int32 `[C, M, A]`.
    head: rank of the hypothesis it became or was merged into, -1 if pruned,
      int32 `[C, M]`.
    gain: ln p that the language model added in joining, float32 `[C, M]`.
    score: model score, float32 `[C, M]`.
    augmented: augmented score, with the loss of the rank of `head`, float32
      `[C, M]`, or None.
  """

  application: Array
  ranks: Array
  head: Array
  gain: Array
  score: Array
  augmented: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Beams:
  """The hypotheses of C cells, best first.

  Attributes:
    score: model score, `NONE` where there is none, float32 `[C, K]`.
    order: what they are sorted by: the model score, or the augmented one.
    record: see `segments`, int32 `[C, K, W + 4]`.
    back: application and child ranks, int32 `[C, K, 1 + A]`.
    augmented: model score plus extra score, `[C, K]`, or None.
    accumulators: rows of `augment`, int32 `[C, K, columns]`, or None.
    candidates: the edges, if asked for.
  """

  score: Array
  order: Array
  record: Array
  back: Array
  augmented: Array | None = None
  accumulators: Array | None = None
  candidates: Candidates | None = None


class Carry(typing.NamedTuple):
  """The state between tiles."""

  tile: jax.Array
  score: jax.Array  # [C, K]
  order: jax.Array | None  # [C, K], None if it is the score
  table: jax.Array  # [C * K + runs, W + 4]
  back: jax.Array  # [C, K, 1 + A]
  augmented: jax.Array | None  # [C, K]
  accumulators: jax.Array | None  # [C * K + runs, columns]
  candidates: Candidates | None


def search(
  chart: Chart,
  lm: NgramAutomaton,
  weights: Weights,
  inputs: AugmentInputs | None = None,
  parameters: tuple[Scalar, ...] = (),
  *,
  config: SearchConfig,
  augmentation: Augmentation | None = None,
) -> Beams:
  """Fills a chart with hypotheses.

  Args:
    chart: the cells and their applications.
    lm: the language model.
    weights: weights that act during the search.
    inputs: references and the like, with an augmentation.
    parameters: the augmentation's numbers (its own are not used here).
    config: sizes.
    augmentation: extra scores from accumulators.

  Raises:
    ValueError: at trace time, if the sizes contradict each other.
  """
  if not 0 < config.corners <= config.pop:
    raise ValueError(f"{config.corners} corners of {config.pop} candidates")
  if config.beam > config.pop:
    raise ValueError(f"beam {config.beam} of {config.pop} candidates")
  if (inputs is None) != (augmentation is None):
    raise ValueError("an augmentation and its inputs go together")
  cells = chart.rule.shape[0]
  carry = lax.while_loop(
    lambda carry: carry.tile < chart.num_tiles,
    functools.partial(
      tiles.process,
      chart=chart,
      lm=lm,
      weights=weights,
      inputs=inputs,
      parameters=parameters,
      config=config,
      augmentation=augmentation,
    ),
    _start(chart, inputs, config, augmentation),
  )
  by_cell = lambda table: table[: cells * config.beam].reshape(
    cells, config.beam, -1
  )
  return Beams(
    score=carry.score,
    order=carry.score if carry.order is None else carry.order,
    record=by_cell(carry.table),
    back=carry.back,
    augmented=carry.augmented,
    accumulators=None if inputs is None else by_cell(carry.accumulators),
    candidates=carry.candidates,
  )


def _start(chart, inputs, config, augmentation) -> Carry:
  """Nothing known but the null cell and the runs."""
  cells, _, arity = chart.child.shape
  record = chart.runs.shape[2]
  beam, pop = config.beam, config.pop
  score = jnp.full((cells, beam), NONE).at[0, 0].set(0.0)
  candidates, accumulators = None, None
  if config.forest:
    candidates = Candidates(
      application=jnp.zeros((cells, pop), jnp.int32),
      ranks=jnp.zeros((cells, pop, arity), jnp.int32),
      head=jnp.full((cells, pop), -1, jnp.int32),
      gain=jnp.zeros((cells, pop), jnp.float32),
      score=jnp.full((cells, pop), NONE),
      augmented=None if inputs is None else jnp.full((cells, pop), NONE),
    )
  if inputs is not None:
    accumulators = _table(inputs.runs, cells * beam, inputs.runs.shape[2])
  by_both = augmentation is not None and augmentation.prune == "augmented"
  return Carry(
    tile=jnp.int32(0),
    score=score,
    order=score if by_both else None,
    table=_table(chart.runs, cells * beam, record),
    back=jnp.zeros((cells, beam, 1 + arity), jnp.int32),
    augmented=None if inputs is None else score,
    accumulators=accumulators,
    candidates=candidates,
  )


def _table(runs, rows, columns):
  """Room for hypotheses, and the runs behind it: one array to gather from."""
  empty = jnp.zeros((rows, columns), jnp.int32)
  return jnp.concatenate([empty, jnp.reshape(runs, (-1, columns))])
