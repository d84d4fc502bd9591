"""IBM Model 1 (Brown et al., 1993, section 4.1): every link is equally likely.

p(f, a | e) is the product over j of t(f_j | e_{a_j}) / (I + 1), with e_0 the
NULL word. The sum over alignments factorises over j, so posteriors are a
softmax in each row of the grid. Other models whose links are independent given
their positions share `independent_posteriors` and `independent_viterbi` and
differ only in the prior.
"""

import jax.numpy as jnp
from jax import Array

from jaxmt.align.aligner import (
  AlignConfig,
  Aligner,
  Grid,
  Parameters,
  Posteriors,
  emissions,
)


def expectation(
  parameters: Parameters, grid: Grid, config: AlignConfig
) -> Posteriors:
  """Returns the `Posteriors` of a batch."""
  del config
  return independent_posteriors(*_joint(parameters, grid), grid)


def links(parameters: Parameters, grid: Grid, config: AlignConfig) -> Array:
  """Returns the best i per generated word, from 1, 0 for NULL; `[J, B]`."""
  del config
  return independent_viterbi(*_joint(parameters, grid))


def _joint(parameters: Parameters, grid: Grid) -> tuple[Array, Array]:
  """Returns ln p(f_j, a_j = i) `[J, I, B]` and ln p(f_j, NULL) `[J, B]`."""
  links, null = emissions(parameters, grid)
  prior = -jnp.log1p(grid.conditioning.astype(jnp.float32))
  return links + prior, null + prior


def independent_posteriors(links: Array, null: Array, grid: Grid) -> Posteriors:
  """Normalises each row of joint log probabilities.

  Args:
    links: ln p(f_j, a_j = i), minus infinity where padded, `[J, I, B]`.
    null: ln p(f_j, a_j = NULL), finite everywhere, `[J, B]`.
    grid: the batch.
  """
  highest = jnp.maximum(links.max(axis=1), null)
  link_mass = jnp.exp(links - highest[:, None])
  null_mass = jnp.exp(null - highest)
  total = link_mass.sum(axis=1) + null_mass
  row_log = jnp.where(grid.rows, jnp.log(total) + highest, 0.0)
  share = 1.0 / total
  return Posteriors(
    links=link_mass * share[:, None],
    null=null_mass * share,
    log_likelihood=row_log.sum(axis=0),
    model={},
  )


def independent_viterbi(links: Array, null: Array) -> Array:
  """Returns each row's best; ties go to NULL, then to the lowest i."""
  best = jnp.argmax(links, axis=1).astype(jnp.int32)
  return jnp.where(links.max(axis=1) > null, best + 1, 0)


ALIGNER = Aligner(
  name="model1",
  expectation=expectation,
  links=links,
  defaults={"alpha": 0.0},
)
