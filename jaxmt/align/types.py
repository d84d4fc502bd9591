"""The arrays that alignment models exchange.

A direction generates the words of one side from those of the other. Dimension
letters: J generated positions, I conditioning positions (I = J = W, the width
of a bucket), B sentence pairs, P word pairs, V words of the larger vocabulary,
U distinct pairs of sentence lengths. Sentence pairs run along the last axis, so
that sums over positions are vectorised across them.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

LOG_ZERO = -1e3  # stands for log 0 where a maximum has to stay finite


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Batch:
  """Sentence pairs of one width, one part per device (D of them).

  Attributes:
    pairs: word pair of each cell, P where padded, int32 `[D, W, W, B]`
      (source x target).
    source: source words, V where padded, int32 `[D, W, B]`.
    target: target words, V where padded, int32 `[D, W, B]`.
    source_length: int32 `[D, B]`.
    target_length: int32 `[D, B]`.
    size: which distinct pair of lengths, int32 `[D, B]`.
  """

  pairs: Any
  source: Any
  target: Any
  source_length: Any
  target_length: Any
  size: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid:
  """Sentence pairs as one direction sees them.

  Attributes:
    pairs: word pair of each cell, P where padded, int32 `[J, I, B]`.
    words: generated words, V where padded, int32 `[J, B]`.
    generated: generated lengths, int32 `[B]`.
    conditioning: conditioning lengths, int32 `[B]`.
    size: which distinct pair of lengths, int32 `[B]`.
  """

  pairs: Any
  words: Any
  generated: Any
  conditioning: Any
  size: Any

  @property
  def rows(self) -> Array:
    """Which generated positions are words, bool `[J, B]`."""
    return jnp.arange(self.pairs.shape[0])[:, None] < self.generated

  @property
  def columns(self) -> Array:
    """Which conditioning positions are words, bool `[I, B]`."""
    return jnp.arange(self.pairs.shape[1])[:, None] < self.conditioning


@jax.jit(static_argnames="direction")
def seen_from(batch: Batch, *, direction: str) -> Grid:
  """Returns a batch as "forward", p(target | source), or "backward" sees it.

  Every array keeps the leading axis of devices.
  """
  if direction == "forward":
    return Grid(
      pairs=batch.pairs.swapaxes(1, 2),
      words=batch.target,
      generated=batch.target_length,
      conditioning=batch.source_length,
      size=batch.size,
    )
  return Grid(
    pairs=batch.pairs,
    words=batch.source,
    generated=batch.source_length,
    conditioning=batch.target_length,
    size=batch.size,
  )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameters:
  """What a direction has learnt.

  Attributes:
    pairs: ln t(generated | conditioning) per word pair, then minus infinity
      for padding, float32 `[P + 1]`.
    null: ln t(generated | NULL), then 0 for padding, float32 `[V + 1]`.
    model: the alignment model's own.
  """

  pairs: Any
  null: Any
  model: dict[str, Any]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Statistics:
  """Expected counts, in the shapes of `Parameters`; the last entry is waste."""

  pairs: Any
  null: Any
  model: dict[str, Any]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Posteriors:
  """The E-step's result for a batch.

  Attributes:
    links: p(a_j = i | both sentences), 0 where padded, float32 `[J, I, B]`.
    null: p(a_j = NULL | both sentences), 1 where padded, float32 `[J, B]`.
    log_likelihood: ln p(generated | conditioning), float32 `[B]`.
    model: expected counts of the alignment model's own parameters.
  """

  links: Array
  null: Array
  log_likelihood: Array
  model: dict[str, Array]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes:
  """The distinct pairs of sentence lengths, as one direction sees them.

  Attributes:
    generated: int64 `[U]`.
    conditioning: int64 `[U]`.
    count: how many sentence pairs have them, int64 `[U]`.
    width: of the widest grid.
  """

  generated: np.ndarray
  conditioning: np.ndarray
  count: np.ndarray
  width: int


def emissions(parameters: Parameters, grid: Grid) -> tuple[Array, Array]:
  """Looks up the translation probabilities of a batch.

  Returns:
    `(ln t(f_j | e_i) [J, I, B], ln t(f_j | NULL) [J, B])`: minus infinity and
    0 where padded.
  """
  links = parameters.pairs.at[grid.pairs].get(mode="promise_in_bounds")
  null = parameters.null.at[grid.words].get(mode="promise_in_bounds")
  return links, null
