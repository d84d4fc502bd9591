"""The aligner contract: one record of functions, and the arrays they exchange.

An aligner is an `Aligner` record. The engine (`jaxmt.align.em`) owns the
translation table t(generated | conditioning); the aligner says how likely the
positions of links are, and owns the parameters of that. Per direction, the
engine runs

  own = initialise(sizes, config)
  repeat: for every batch     posteriors = expectation(parameters, grid, config)
          once for the bitext own = maximise(own, counts, sizes, config)
  links(parameters, grid, config).

The shortest aligner, every link equally likely but on the diagonal twice so:

  def joint(parameters, grid):
    links, null = emissions(parameters, grid)
    return links + jnp.log(1.0 + jnp.eye(len(links)))[..., None], null

  registry.register(Aligner(
    name="eye",
    expectation=lambda p, grid, config: model1.independent_posteriors(
      *joint(p, grid), grid),
    links=lambda p, grid, config: model1.independent_viterbi(*joint(p, grid)),
  ))

A direction generates the words of one side from those of the other. Dimension
letters: J generated positions, I conditioning positions (I = J = W, the width
of a bucket), B sentence pairs, P word pairs, V words of the larger vocabulary,
U distinct pairs of sentence lengths. Sentence pairs run along the last axis, so
that sums over positions are vectorised across them.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

LOG_ZERO = -1e3  # stands for log 0 where a maximum has to stay finite
DECODERS = ("viterbi", "posterior")
GRADIENTS = ("fast_align", "exact")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignConfig:
  """How to align; `named_aligners.default_config` has the usual values.

  Attributes:
    model: name of a registered aligner.
    iterations: passes over the bitext. The last one finds the links instead
      of counting, as in fast_align, so there is one M-step less.
    warm_up: M-steps of the aligner's warm-up model, if it has one.
    null_probability: p0 of the diagonal model and the HMM.
    alpha: Dirichlet prior on translation probabilities, 0 for none.
    tension: at the start, diagonal model.
    optimize_tension: whether to learn it.
    tension_gradient: one of `GRADIENTS`, see `diagonal`.
    uniform_jump: weight of uniform jumps in the HMM, s.
    decoder: one of `DECODERS`.
    threshold: least posterior of a link for the posterior decoder.
    cells_per_batch: how much goes to the devices at once; with `bucket_cost`
      it changes speed and memory, not the result.
    bucket_cost: price of one more grid width, see
      `cooccurrence.bucket_widths`.
  """

  model: str = "diagonal"
  iterations: int = 5
  warm_up: int = 5
  null_probability: float = 0.08
  alpha: float = 0.01
  tension: float = 4.0
  optimize_tension: bool = True
  tension_gradient: str = "fast_align"
  uniform_jump: float = 0.2
  decoder: str = "viterbi"
  threshold: float = 0.5
  cells_per_batch: int = 1 << 20
  bucket_cost: int = 1 << 20


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


def _no_parameters(sizes: Sizes, config: AlignConfig) -> dict[str, Array]:
  """Returns no parameters beside the translation table."""
  del sizes, config
  return {}


def _keep_parameters(own, counts, sizes: Sizes, config: AlignConfig):
  """Returns the aligner's parameters as they are."""
  del counts, sizes, config
  return own


def _add_counts(counts, batch_counts, grid: Grid) -> dict[str, Array]:
  """Adds a batch's counts, which have the shapes of the corpus's."""
  del grid
  return jax.tree.map(jnp.add, counts, batch_counts)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aligner:
  """An alignment model. `expectation` and `links` are traced by JAX.

  A model without parameters of its own needs only `name`, `expectation` and
  `links`.

  Attributes:
    name: what `AlignConfig.model`, flags and configs call it.
    initialise: `(sizes, config) -> own`: the first parameters of its own, a
      dict of arrays.
    expectation: `(parameters, grid, config) -> Posteriors` of a batch.
    maximise: `(own, counts, sizes, config) -> own`: better parameters from the
      counts of the whole bitext; on the host.
    links: `(parameters, grid, config) -> int32 [J, B]`: the best i for each
      generated word, from 1; 0 for NULL.
    counts: `(sizes, config) -> counts`: zeros to add expectations to. None:
      counts have the shapes of the parameters.
    accumulate: `(counts, posteriors.model, grid) -> counts`: adds a batch.
    warm_up: name of the aligner that runs for `config.warm_up` M-steps first,
      and whose translation table this one starts from; None for none.
    maximise_first: whether the first posteriors say something about positions.
      If not, the first M-step leaves the parameters of its own as they are.
    defaults: fields of `AlignConfig` whose usual value is another here.
    settings: fields of `AlignConfig` that `expectation` or `links` read. A
      change of any other field does not compile them again.
  """

  name: str
  expectation: Callable[[Parameters, Grid, AlignConfig], Posteriors]
  links: Callable[[Parameters, Grid, AlignConfig], Array]
  initialise: Callable[[Sizes, AlignConfig], dict[str, Array]] = _no_parameters
  maximise: Callable[[Any, Any, Sizes, AlignConfig], dict[str, Array]] = (
    _keep_parameters
  )
  counts: Callable[[Sizes, AlignConfig], dict[str, Array]] | None = None
  accumulate: Callable[[Any, Any, Grid], dict[str, Array]] = _add_counts
  warm_up: str | None = None
  maximise_first: bool = False
  defaults: Mapping[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )
  settings: tuple[str, ...] = ()


def empty_counts(
  aligner: Aligner, sizes: Sizes, config: AlignConfig
) -> dict[str, Array]:
  """Returns zeros in the shapes of the counts of an aligner's parameters."""
  if aligner.counts is not None:
    return aligner.counts(sizes, config)
  return jax.tree.map(jnp.zeros_like, aligner.initialise(sizes, config))


def emissions(parameters: Parameters, grid: Grid) -> tuple[Array, Array]:
  """Looks up the translation probabilities of a batch.

  Returns:
    `(ln t(f_j | e_i) [J, I, B], ln t(f_j | NULL) [J, B])`: minus infinity and
    0 where padded.
  """
  links = parameters.pairs.at[grid.pairs].get(mode="promise_in_bounds")
  null = parameters.null.at[grid.words].get(mode="promise_in_bounds")
  return links, null
