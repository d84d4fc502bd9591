"""The HMM alignment model with relative jumps and a NULL word.

Vogel, Ney & Tillmann (1996); NULL and smoothing as in Och & Ney (2003), "A
Systematic Comparison of Various Statistical Alignment Models".
With a_0 = 0 and i' the last position linked before j,

  p(a_j = NULL | i') = p0
  p(a_j = i | i')    = (1 - p0) [(1 - s) c(i - i') / N(i', I) + s / I]
  N(i', I)           = sum over l = 1..I of c(l - i'),

so NULL words keep the place the next jump starts from (Och & Ney's second copy
of every state); the first word jumps from 0. The jump weights c are shared by
all sentence lengths; s mixes in a uniform jump.

The recursions run over positions 0..I. Because c depends on i - i' only, one
step for a whole batch is a matrix product with one Toeplitz matrix C[i', i]:

  alpha_j(i) = t(f_j | e_i) (1 - p0) ((sigma_{j-1} / N) C (1 - s) + s / I)(i)
  sigma_j(i) = alpha_j(i) + t(f_j | NULL) p0 sigma_{j-1}(i),

where sigma is the mass whose last linked position is i. Every step is scaled to
sum to one. N depends on c, so relative counts are not the M-step; with n(d)
and m(i', I) the expected jumps and departures, `maximise` raises

  sum_d n(d) ln c(d) - sum_{I, i'} m(i', I) ln N(i', I)

by minorisation (Hunter, 2004), which never lets the likelihood fall:

  c(d) <- n(d) / (sum over I, i' with 1 <= i' + d <= I of m(i', I) / N(i', I)).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.align.aligner import (
  LOG_ZERO,
  AlignConfig,
  Aligner,
  Grid,
  Parameters,
  Posteriors,
  Sizes,
  emissions,
)

_UPDATE_STEPS = 10


def initialise(sizes: Sizes, config: AlignConfig) -> dict[str, Array]:
  """Returns equal weights for all jumps -W..W, `[2 W + 1]`."""
  del config
  count = 2 * sizes.width + 1
  return {"jump": jnp.full(count, 1.0 / count, jnp.float32)}


def empty_counts(sizes: Sizes, config: AlignConfig) -> dict[str, Array]:
  """Returns zeros: n(d) `[2 W + 1]` and m(i', I) `[W + 1, W + 1]`."""
  del config
  width = sizes.width
  return {
    "jump": jnp.zeros(2 * width + 1),
    "departure": jnp.zeros((width + 1, width + 1)),
  }


def accumulate(counts, batch_counts, grid: Grid) -> dict[str, Array]:
  """Adds a batch's expectations to the corpus's."""
  jump, departure = batch_counts["jump"], batch_counts["departure"]
  # A narrow batch has fewer jumps: its middle lies on the corpus's middle.
  margin = (len(counts["jump"]) - len(jump)) // 2
  return {
    "jump": counts["jump"].at[margin : margin + len(jump)].add(jump),
    "departure": counts["departure"]
    .at[: len(departure), grid.conditioning]
    .add(departure),
  }


class _Chain(NamedTuple):
  """A batch as a hidden Markov chain; probabilities, not logarithms.

  Attributes:
    emission: t(f_j | e_i) over the row's largest, `[J, I, B]`.
    null: t(f_j | NULL) over the same, `[J, B]`.
    highest: ln of the row's largest, `[J, B]`.
    rows: which j are words, `[J, B]`.
    jump: C, `[I + 1, I]`.
    norm: (1 - s) / N(i', I), `[I + 1, B]`.
    uniform: s / I where i is a word, `[I, B]`.
    columns: which i are words, `[I, B]`.
  """

  emission: Array
  null: Array
  highest: Array
  rows: Array
  jump: Array
  norm: Array
  uniform: Array
  columns: Array


def _chain(parameters: Parameters, grid: Grid, config: AlignConfig) -> _Chain:
  """Returns the probabilities of a batch's chain."""
  links, null = emissions(parameters, grid)
  highest = jnp.maximum(links.max(axis=1), null)
  jump = _toeplitz(parameters.model["jump"], grid.pairs.shape[1])
  columns = grid.columns.astype(jnp.float32)
  share = jnp.float32(config.uniform_jump)
  total = jump @ columns
  norm = jnp.where(total > 0, (1.0 - share) / jnp.maximum(total, 1e-30), 0.0)
  return _Chain(
    emission=jnp.exp(links - highest[:, None]),
    null=jnp.exp(null - highest),
    highest=highest,
    rows=grid.rows,
    jump=jump,
    norm=norm,
    uniform=columns * share / jnp.maximum(grid.conditioning, 1),
    columns=columns,
  )


def _toeplitz(jump: Array, width: int) -> Array:
  """Returns C[i', i] = c(i - i'), i' from 0, i from 1, `[W + 1, W]`."""
  middle = len(jump) // 2
  start = jnp.arange(width + 1)[:, None]
  end = jnp.arange(1, width + 1)[None, :]
  return jump[end - start + middle]


def expectation(
  parameters: Parameters, grid: Grid, config: AlignConfig
) -> Posteriors:
  """Returns the `Posteriors` of a batch, by forward and backward."""
  chain = _chain(parameters, grid, config)
  before, reached, scale = _forward(chain, config)
  links, null, jump, departure = _backward(
    chain, before, reached, scale, config
  )
  row_log = jnp.where(chain.rows, jnp.log(scale) + chain.highest, 0.0)
  return Posteriors(
    links=links,
    null=null,
    log_likelihood=row_log.sum(axis=0),
    model={"jump": jump, "departure": departure},
  )


def _forward(chain: _Chain, config) -> tuple[Array, Array, Array]:
  """Returns sigma_{j-1} `[J, I + 1, B]`, alpha_j `[J, I, B]`, scale `[J, B]`.

  sigma is scaled to sum to one; alpha_j and the NULL mass are divided by
  scale_j.
  """
  null_share = config.null_probability

  def step(sigma, row):
    emission, null, is_word = row
    # Mass that jumps to each i, relative and uniform.
    arrive = chain.jump.T @ (sigma * chain.norm)
    arrive += chain.uniform * sigma.sum(axis=0)
    alpha = emission * (1.0 - null_share) * arrive
    # Mass that generates f_j from NULL and keeps its position.
    stay = null * null_share * sigma
    # Padded rows change nothing.
    scale = alpha.sum(axis=0) + stay.sum(axis=0)
    scale = jnp.where(is_word, scale, 1.0)
    alpha = alpha / scale
    after = (stay / scale).at[1:].add(alpha)
    return jnp.where(is_word, after, sigma), (sigma, alpha, scale)

  _, width, batch = chain.emission.shape
  start = jnp.zeros((width + 1, batch)).at[0].set(1.0)
  rows = (chain.emission, chain.null, chain.rows)
  return jax.lax.scan(step, start, rows)[1]


def _backward(chain: _Chain, before, reached, scale, config):
  """Returns posteriors of links and NULL, expected jumps and departures."""
  null_share = config.null_probability
  _, width, batch = chain.emission.shape

  def step(carry, row):
    beta, outer, departure = carry
    emission, null, is_word, sigma, alpha, scale = row
    # Posteriors of this row: forward times backward.
    links = jnp.where(is_word, alpha * beta[1:], 0.0)
    stay = null * null_share / scale * beta
    null_mass = jnp.where(is_word, (sigma * stay).sum(axis=0), 1.0)
    # Expected jumps i' -> i: left(i') C(i', i) right(i).
    right = (1.0 - null_share) * emission * beta[1:] / scale
    right = jnp.where(is_word, right, 0.0)
    left = sigma * chain.norm
    through = chain.jump @ right
    outer += left @ right.T
    departure += left * through
    # The backward recursion: jump, jump uniformly, or stay for NULL.
    to_uniform = (chain.uniform * right).sum(axis=0)
    beta = jnp.where(is_word, chain.norm * through + to_uniform + stay, beta)
    return (beta, outer, departure), (links, null_mass)

  start = (
    jnp.ones((width + 1, batch)),
    jnp.zeros((width + 1, width)),
    jnp.zeros((width + 1, batch)),
  )
  rows = (chain.emission, chain.null, chain.rows, before, reached, scale)
  (_, outer, departure), (links, null) = jax.lax.scan(
    step, start, rows, reverse=True
  )
  return links, null, _diagonals(outer * chain.jump), departure


def _diagonals(matrix: Array) -> Array:
  """Sums `[W + 1, W]` (from 0, to 1) over equal jumps, `[2 W + 1]`."""
  width = matrix.shape[1]
  distance = jnp.arange(1, width + 1)[None, :] - jnp.arange(width + 1)[:, None]
  return jnp.zeros(2 * width + 1).at[distance + width].add(matrix)


def links(parameters: Parameters, grid: Grid, config: AlignConfig) -> Array:
  """Returns the best path: i from 1 per generated word, 0 for NULL; `[J, B]`.

  Ties go to NULL, then to the lowest previous position.
  """
  chain = _chain(parameters, grid, config)
  jump = chain.norm[:, None] * chain.jump[..., None] + chain.uniform
  log_jump = _log(jump * chain.columns) + jnp.log1p(-config.null_probability)
  log_null = _log(chain.null) + jnp.log(config.null_probability)

  def step(best, row):
    emission, null, is_word = row
    arrive = best[:, None] + log_jump
    previous = jnp.argmax(arrive, axis=0).astype(jnp.int32)
    linked = arrive.max(axis=0) + emission
    stay = best + null
    take = (linked > stay[1:]) & is_word
    after = stay.at[1:].set(jnp.where(take, linked, stay[1:]))
    return jnp.where(is_word, after, best), jnp.where(take, previous, -1)

  _, width, batch = chain.emission.shape
  start = jnp.full((width + 1, batch), LOG_ZERO).at[0].set(0.0)
  rows = (_log(chain.emission), log_null, chain.rows)
  best, pointers = jax.lax.scan(step, start, rows)

  def back(state, pointer):
    index = jnp.maximum(state - 1, 0)[None]
    previous = jnp.take_along_axis(pointer, index, axis=0)[0]
    linked = (state > 0) & (previous >= 0)
    return jnp.where(linked, previous, state), jnp.where(linked, state, 0)

  end = jnp.argmax(best, axis=0).astype(jnp.int32)
  return jax.lax.scan(back, end, pointers, reverse=True)[1]


def _log(values: Array) -> Array:
  return jnp.maximum(jnp.log(values), LOG_ZERO)


def maximise(
  own, counts, sizes: Sizes, config: AlignConfig
) -> dict[str, Array]:
  """Improves the jump weights; on the host, in double precision.

  Args:
    own: has "jump", c.
    counts: summed over the corpus, see `empty_counts`.
    sizes: the corpus's sentence lengths.
    config: unused.
  """
  del sizes, config
  jump = np.asarray(own["jump"], np.float64)
  jumps = np.asarray(counts["jump"], np.float64)
  departure = np.asarray(counts["departure"], np.float64)
  for _ in range(_UPDATE_STEPS):
    jump = minorize(jump, jumps, departure)
  return {"jump": jnp.asarray(jump, jnp.float32)}


def minorize(
  jump: np.ndarray, counts: np.ndarray, departure: np.ndarray
) -> np.ndarray:
  """Returns better jump weights, see the module's last equation.

  Args:
    jump: c(d) for d = -W..W, `[2 W + 1]`.
    counts: n(d), `[2 W + 1]`.
    departure: m(i', I) for i', I = 0..W, `[W + 1, W + 1]`.
  """
  width = len(jump) // 2
  start = np.arange(width + 1)[:, None]
  length = np.arange(width + 1)[None, :]
  # Jumps d from i' with 1 <= i' + d <= I are c[low : high] below.
  low = np.broadcast_to(width + 1 - start, departure.shape)
  high = length - start + width + 1
  inside = (start <= length) & (length > 0) & (departure > 0)
  prefix = np.concatenate([[0.0], np.cumsum(jump)])
  norm = prefix[np.where(inside, high, 0)] - prefix[np.where(inside, low, 0)]
  inside &= norm > 0
  share = departure[inside] / norm[inside]
  # A jump d >= 1 can leave i' if d <= I - i', one d <= 0 if i' + d >= 1: sums
  # from either end, so that no large numbers cancel.
  size = len(jump) + 1
  by_low = np.bincount(low[inside], share, minlength=size)
  by_high = np.bincount(high[inside], share, minlength=size)
  exposure = np.concatenate(
    [
      np.cumsum(by_low)[: width + 1],
      np.cumsum(by_high[::-1])[::-1][width + 2 :],
    ]
  )
  new = np.where(counts > 0, counts / np.maximum(exposure, 1e-30), 0.0)
  return new / max(new.sum(), 1e-30)


ALIGNER = Aligner(
  name="hmm",
  initialise=initialise,
  expectation=expectation,
  maximise=maximise,
  links=links,
  counts=empty_counts,
  accumulate=accumulate,
  warm_up="model1",
  maximise_first=True,
  # NULL and uniform jumps as GIZA++ sets them.
  defaults={"null_probability": 0.4, "uniform_jump": 0.2},
  settings=("null_probability", "uniform_jump"),
)
