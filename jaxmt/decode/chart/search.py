"""Beam search over charts as one array program.

Tile by tile (see `chart_layout`), for all cells of a tile at once (see
`search_step`):

1. choose candidates by sums of what is known (`cube`), and score them with the
   stateful features (`feature_states`), twice: first the corners of the best
   applications, then their cubes;
2. merge candidates of equal states: the best one stays;
3. the K best are the cell's hypotheses.

This is cube pruning (Chiang 2007) with the queue unrolled. Scores are natural
logs in float32. They include the estimate of the words whose left context is
not known yet, which is none in a goal cell.

C: cells. K: beam. M: candidates. A: arity. S: columns of a feature's state.
"""

import dataclasses
import functools
import typing
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.decode.chart import feature_states, search_step
from jaxmt.decode.chart.accumulators import (
  AccumulatorState,
  Augmentation,
  AugmentInputs,
)
from jaxmt.decode.chart.chart_layout import NONE, Chart
from jaxmt.features.base import StatefulFeature

Array = jax.Array | np.ndarray
Scalar = jax.Array | np.floating | float


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig:
  """Sizes of the search; static, so each value is compiled once.

  Attributes:
    beam: K, hypotheses kept per cell.
    pop: M, candidates per cell that stateful features score.
    corners: P, how many of them are corners of an application's cube.
    taper: tiers `(applications, rank tuples)` of the candidates, see
      `cube.tier_tuples`.
    trust: share of a corner's gain that its cube is credited with.
    widths: applications per cell the program is compiled for, rising; the last
      is the most a chart may have.
    tile: cells processed together.
    forest: whether all candidates are returned, not just the beams.
  """

  beam: int = 30
  pop: int = 200
  corners: int = 48
  taper: tuple[tuple[int, int], ...] = ((8, 112), (24, 20), (96, 4))
  trust: float = 0.5
  widths: tuple[int, ...] = (16, 64, 128)
  tile: int = 64
  forest: bool = False


def make_config(*, beam: int, pop: int, forest: bool = False) -> SearchConfig:
  """Returns a configuration with the other sizes chosen to suit."""
  return SearchConfig(
    beam=beam,
    pop=max(pop, beam),
    corners=max(min(48, pop * 3 // 8), 1),
    forest=forest,
  )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Weights:
  """What the search itself weighs; the rest is in the static scores.

  Attributes:
    features: for each stateful feature, one weight per name, scale included;
      None for a feature that is not scored. Its states still tell hypotheses
      apart.
    threshold: hypotheses this much below the best of their cell are dropped.
  """

  features: tuple[tuple[Scalar, ...] | None, ...]
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
    gain: what the first feature, the language model, adds to the rule's own
      value, float32 `[C, M]`. Values of the others follow from the forest.
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
    states: states of the features in their order, then the accumulators of an
      augmented search, int32 `[C, K, S]` each.
    back: application and child ranks, int32 `[C, K, 1 + A]`.
    augmented: model score plus extra score, `[C, K]`, or None.
    candidates: the edges, if asked for.
  """

  score: Array
  order: Array
  states: tuple[Array, ...]
  back: Array
  augmented: Array | None = None
  candidates: Candidates | None = None


class Carry(typing.NamedTuple):
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
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
    functools.partial(search_step.process, task=task),
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
) -> Task:
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
  return Task(
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


def _start(task: Task) -> Carry:
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
  return Carry(
    tile=jnp.int32(0),
    score=score,
    order=score if by_both else None,
    tables=feature_states.tables(task.features, task.inputs, cells * beam),
    back=jnp.zeros((cells, beam, 1 + arity), jnp.int32),
    augmented=score if hooked else None,
    candidates=candidates,
  )
