"""IBM Model 1 (Brown et al., 1993, section 4.1): every link is equally likely.

p(f, a | e) is the product over j of t(f_j | e_{a_j}) / (I + 1), with e_0 the
NULL word. The sum over alignments factorises over j, so posteriors are a
softmax in each row of the grid. Other models whose links are independent given
their positions share `independent_posteriors` and `independent_viterbi` and
differ in the prior only.
"""

import jax.numpy as jnp
from jax import Array

from jaxmt.align import types


def posteriors(parameters: types.Parameters, grid: types.Grid, config):
  """Returns the `Posteriors` of a batch."""
  del config
  return independent_posteriors(*_joint(parameters, grid), grid)


def viterbi(parameters: types.Parameters, grid: types.Grid, config) -> Array:
  """Returns the best i per generated word, from 1, 0 for NULL; `[J, B]`."""
  del config
  return independent_viterbi(*_joint(parameters, grid))


def _joint(parameters: types.Parameters, grid: types.Grid):
  links, null = types.emissions(parameters, grid)
  prior = -jnp.log1p(grid.conditioning.astype(jnp.float32))
  return links + prior, null + prior


def initial(sizes: types.Sizes, config) -> dict[str, Array]:
  """Model 1 has no parameters beside the translation table."""
  del sizes, config
  return {}


def empty_statistics(sizes: types.Sizes, config) -> dict[str, Array]:
  """And counts nothing else."""
  return initial(sizes, config)


def accumulate(statistics, posteriors, grid: types.Grid) -> dict[str, Array]:
  """And adds nothing."""
  del posteriors, grid
  return statistics


def update(model, statistics, sizes: types.Sizes, config) -> dict[str, Array]:
  """And updates nothing."""
  del statistics, sizes, config
  return model


def independent_posteriors(
  links: Array, null: Array, grid: types.Grid
) -> types.Posteriors:
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
  return types.Posteriors(
    links=link_mass * share[:, None],
    null=null_mass * share,
    log_likelihood=row_log.sum(axis=0),
    model={},
  )


def independent_viterbi(links: Array, null: Array) -> Array:
  """Returns each row's best; ties go to NULL, then to the lowest i."""
  best = jnp.argmax(links, axis=1).astype(jnp.int32)
  return jnp.where(links.max(axis=1) > null, best + 1, 0)
