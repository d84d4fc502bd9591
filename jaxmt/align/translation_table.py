"""The translation table t(generated | conditioning): start and M-step."""

import jax
import jax.numpy as jnp
from jax import Array

from jaxmt.align.aligner import LOG_ZERO, Statistics

_TINY = 1e-30


def uniform(*, pairs: int, words: int, size: int) -> tuple[Array, Array]:
  """Returns ln t = ln 1 / `words` as `(pairs [P + 1], null [V + 1])`.

  Args:
    pairs: P.
    words: generated words.
    size: V, at least `words`.
  """
  value = -jnp.log(jnp.float32(max(words, 1)))
  return _finish(jnp.full(pairs, value), jnp.full(size, value))


@jax.jit(static_argnames="alpha")
def maximize(
  statistics: Statistics,
  conditioning: Array,
  types_in_group: Array,
  words: Array,
  *,
  alpha: float,
) -> tuple[Array, Array]:
  """Normalises expected counts per conditioning word.

  With `alpha` > 0, variational Bayes under a symmetric Dirichlet prior over
  the words seen with the conditioning word: t = exp(digamma(n + alpha)) /
  exp(digamma(sum of (n + alpha))), as fast_align's option -v.

  Args:
    statistics: summed over the corpus.
    conditioning: conditioning word per pair, `[P]`.
    types_in_group: number of pairs per conditioning word, `[V]`.
    words: number of generated words, `[]`.
    alpha: 0 for maximum likelihood.

  Returns:
    ln t as `(pairs [P + 1], null [V + 1])`.
  """
  counts, null = statistics.pairs[:-1], statistics.null[:-1]
  totals = jax.ops.segment_sum(
    counts, conditioning, num_segments=len(types_in_group)
  )
  logarithm = digamma if alpha > 0 else jnp.log
  # A word whose posteriors have all underflowed must not become 0 / 0.
  totals = logarithm(jnp.maximum(totals, _TINY) + alpha * types_in_group)
  null_total = logarithm(jnp.maximum(null.sum(), _TINY) + alpha * words)
  return _finish(
    logarithm(counts + alpha) - totals[conditioning],
    logarithm(null + alpha) - null_total,
  )


def _finish(pairs: Array, null: Array) -> tuple[Array, Array]:
  """Adds the entries that padding looks up; keeps logarithms finite."""
  pairs = jnp.maximum(pairs, LOG_ZERO)
  null = jnp.maximum(null, LOG_ZERO)
  return (
    jnp.append(pairs, jnp.float32(-jnp.inf)),
    jnp.append(null, jnp.float32(0.0)),
  )


def digamma(x: Array) -> Array:
  """Returns the derivative of ln Gamma for x > 0.

  psi(x) = psi(x + 6) - sum over k < 6 of 1 / (x + k), and the asymptotic
  series (Abramowitz & Stegun, 6.3.18) at x + 6. Without the reflection that
  negative arguments need it takes half the time of the general function.
  """
  shifted = x + 6.0
  inverse = 1.0 / shifted
  square = inverse * inverse
  series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252)))
  # Two fractions 1/x + ... of three terms each: fewer divisions.
  low = _three_inverses(x) + _three_inverses(x + 3.0)
  return jnp.log(shifted) - 0.5 * inverse - series - low


def _three_inverses(x: Array) -> Array:
  """Returns 1 / x + 1 / (x + 1) + 1 / (x + 2) with one division."""
  return (3.0 * x * x + 6.0 * x + 2.0) / (x * (x + 1.0) * (x + 2.0))
