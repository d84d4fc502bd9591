"""What a chart search is given and gives: sizes, weights, beams.

The search itself is `beam_search`.

C: cells. K: beam. M: candidates. A: arity. S: columns of a feature's state.
"""

import dataclasses

import jax
import numpy as np

Array = jax.Array | np.ndarray
Scalar = jax.Array | np.floating | float

TIE = 1e-4  # scores that differ by rounding have one rank
BACKENDS = ("auto", "host", "device")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig:
  """Sizes of the search; static, so each value is compiled once.

  Attributes:
    beam: K, hypotheses kept per cell.
    pop: M, candidates per cell that stateful features score.
    corners: P, how many of them are corners of an application's cube.
    taper: tiers `(applications, rank tuples)` of the candidates, see
      `cube.tier_tuples`.
    trust: share of a corner's gain that its cube is credited with; on the host
      of any candidate's gain that its neighbours are.
    widths: applications per cell the program is compiled for, rising; the last
      is the most a chart may have.
    tile: cells processed together.
    forest: whether all candidates are returned, not just the beams.
    backend: "host" for the kernel, "device" for the array program, "auto" for
      the kernel where it can be used, see `host_search`. The kernel has no
      corners, taper and tiles.
  """

  beam: int = 30
  pop: int = 200
  corners: int = 48
  taper: tuple[tuple[int, int], ...] = ((8, 112), (24, 20), (96, 4))
  trust: float = 0.5
  widths: tuple[int, ...] = (16, 64, 128)
  tile: int = 64
  forest: bool = False
  backend: str = "auto"


def make_config(
  *, beam: int, pop: int, forest: bool = False, backend: str = "auto"
) -> SearchConfig:
  """Returns a configuration with the other sizes chosen to suit."""
  return SearchConfig(
    beam=beam,
    pop=max(pop, beam),
    corners=max(min(48, pop * 3 // 8), 1),
    forest=forest,
    backend=backend,
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
