"""The diagonal model: a log-linear reparameterisation of IBM Model 2.

Dyer, Chahuneau & Smith (2013), "A Simple, Fast, and Effective
Reparameterization of IBM Model 2". With h(i, j) = -|i/I - j/J|,

  p(a_j = NULL) = p0,    p(a_j = i) = (1 - p0) exp(tension h(i, j)) / Z_j,

and Z_j, a sum of two geometric series that fall off on either side of the
diagonal, has a closed form (their section 2.1). The tension is improved after
every E-step but the first by gradient steps on

  sum_j sum_i p(a_j = i | ...) tension h(i, j)
    - sum_j p(a_j != NULL | ...) ln Z_j(tension).          (auxiliary function)

`tension_gradient="exact"` is that gradient. "fast_align" is the one the
authors' program computes, which differs in three places: its expected feature
takes j from 0 where the prior takes it from 1; ln Z's derivative is divided by
the Z of the exchanged lengths; and words linked to NULL count in full. It gives
lower tensions (7 instead of 12 on a German-English bitext) and is the default,
so that links agree with that program's.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.align import model1
from jaxmt.align.aligner import (
  AlignConfig,
  Aligner,
  Grid,
  Parameters,
  Posteriors,
  Sizes,
  emissions,
)

TENSION_RANGE = (0.1, 14.0)
_STEPS = 8
_RATE = 20.0


def initialise(sizes: Sizes, config: AlignConfig) -> dict[str, Array]:
  """Returns the starting tension with its ln Z."""
  return _with_partition(float(config.tension), sizes)


def _with_partition(tension: float, sizes: Sizes) -> dict[str, Array]:
  """Returns the tension and ln Z_j per size, `[W, U]`; a batch looks it up."""
  positions = np.arange(1, sizes.width + 1)[:, None]
  value, _ = partition(tension, positions, sizes.generated, sizes.conditioning)
  inside = positions <= sizes.generated
  log_partition = np.log(np.where(inside, value, 1.0))
  return {
    "tension": jnp.asarray(tension, jnp.float32),
    "log_partition": jnp.asarray(log_partition, jnp.float32),
  }


def empty_counts(sizes: Sizes, config: AlignConfig) -> dict[str, Array]:
  """Returns zeros: expected feature; linked words per position and size."""
  del config
  shape = (sizes.width, len(sizes.generated))
  return {"feature": jnp.zeros(()), "linked": jnp.zeros(shape)}


def expectation(
  parameters: Parameters, grid: Grid, config: AlignConfig
) -> Posteriors:
  """Returns the `Posteriors` of a batch."""
  joint = _joint(parameters, grid, config)
  result = model1.independent_posteriors(*joint, grid)
  first = 0 if config.tension_gradient == "fast_align" else 1
  feature = -(result.links * _distance(grid, first=first)).sum()
  linked = jnp.where(grid.rows, 1.0 - result.null, 0.0)
  return Posteriors(
    links=result.links,
    null=result.null,
    log_likelihood=result.log_likelihood,
    model={"feature": feature, "linked": linked},
  )


def accumulate(counts, batch_counts, grid: Grid) -> dict[str, Array]:
  """Adds a batch's expectations to the corpus's."""
  linked = batch_counts["linked"]
  return {
    "feature": counts["feature"] + batch_counts["feature"],
    "linked": counts["linked"].at[: len(linked), grid.size].add(linked),
  }


def links(parameters: Parameters, grid: Grid, config: AlignConfig) -> Array:
  """Returns the best i per generated word, from 1, 0 for NULL; `[J, B]`."""
  return model1.independent_viterbi(*_joint(parameters, grid, config))


def _joint(parameters: Parameters, grid: Grid, config: AlignConfig):
  """Returns ln p(f_j, a_j = i) `[J, I, B]` and ln p(f_j, NULL) `[J, B]`."""
  links, null = emissions(parameters, grid)
  own = parameters.model
  scale = own["log_partition"][: len(grid.pairs)][:, grid.size]
  scale = jnp.log1p(-config.null_probability) - scale
  prior = scale[:, None] - own["tension"] * _distance(grid, first=1)
  return links + prior, null + jnp.log(config.null_probability)


def _distance(grid: Grid, *, first: int) -> Array:
  """Returns |i/I - j/J|, i from 1, j from `first`; `[J, I, B]`."""
  rows, columns, _ = grid.pairs.shape
  i = jnp.arange(1, columns + 1)[:, None] / jnp.maximum(grid.conditioning, 1)
  j = jnp.arange(first, rows + first)[:, None] / jnp.maximum(grid.generated, 1)
  return jnp.abs(i - j[:, None])


def partition(
  tension: float,
  j: np.ndarray,
  generated: np.ndarray,
  conditioning: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns Z_j, the sum over i = 1..I of exp(tension h(i, j)), and its slope.

  The terms with i/I <= j/J and those above fall off geometrically, by
  exp(-tension / I) a step, from the two next to the diagonal. On the host, in
  double precision: there is one value per position and size, not per cell.

  Args:
    tension: positive.
    j: position from 1, integer.
    generated: J, integer.
    conditioning: I, integer. With j > J the sum above the diagonal is taken
      as infinite.

  Returns:
    `(Z_j, d Z_j / d tension)`, float64, of the arguments' common shape.
  """
  below = j * conditioning // generated  # how many i are not above
  above = conditioning - below
  product = conditioning * generated
  gap_below = (j * conditioning - below * generated) / product
  gap_above = ((below + 1) * generated - j * conditioning) / product
  above = np.where(above < 0, np.inf, above)
  low, low_slope = _series(tension, gap_below, below, conditioning)
  high, high_slope = _series(tension, gap_above, above, conditioning)
  return low + high, low_slope + high_slope


def _series(tension, gap, count, conditioning):
  """Sums exp(-tension (gap + k / I)) over k < count; also the derivative."""
  step = tension / conditioning
  first = np.exp(-tension * gap)
  tail = np.exp(-step * count)
  missing = -np.expm1(-step)  # 1 - ratio, and 1 - ratio^count below
  terms = -np.expm1(-step * count) / missing
  with_tail = np.where(np.isinf(count), 0.0, count) * tail / missing
  slope = with_tail - terms * np.exp(-step) / missing
  return first * terms, first * (slope / conditioning - gap * terms)


def maximise(
  own, counts, sizes: Sizes, config: AlignConfig
) -> dict[str, Array]:
  """Takes gradient steps on the tension, per generated word.

  Args:
    own: has "tension".
    counts: summed over the corpus, see `empty_counts`.
    sizes: the corpus's sentence lengths.
    config: an `AlignConfig`.
  """
  if not config.optimize_tension:
    return own
  positions = np.arange(1, sizes.width + 1)[:, None]
  weight = np.where(positions <= sizes.generated, sizes.count, 0.0)
  feature = float(counts["feature"])
  linked = np.asarray(counts["linked"], np.float64)
  tension = float(own["tension"])
  for _ in range(_STEPS):
    value, slope = partition(
      tension, positions, sizes.generated, sizes.conditioning
    )
    if config.tension_gradient == "exact":
      expected = (linked * slope / value).sum()
    else:
      exchanged, _ = partition(
        tension, positions, sizes.conditioning, sizes.generated
      )
      expected = (weight * slope / exchanged).sum()
    tension += _RATE * (feature - expected) / max(weight.sum(), 1.0)
    tension = min(max(tension, TENSION_RANGE[0]), TENSION_RANGE[1])
  return _with_partition(tension, sizes)


ALIGNER = Aligner(
  name="diagonal",
  initialise=initialise,
  expectation=expectation,
  maximise=maximise,
  links=links,
  counts=empty_counts,
  accumulate=accumulate,
  settings=("null_probability", "tension_gradient"),
)
