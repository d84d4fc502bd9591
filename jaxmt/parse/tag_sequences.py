"""Sequences of tags: sums over all of them in a semiring.

    p(tags, words) = start(t_1) e(w_1 | t_1) ∏_i p(t_i | t_(i-1)) e(w_i | t_i)

The gradient of the log sum in the emissions is the posterior of each tag, that
of the best score is the best sequence.

B: sentences. N: words, padding included. K: tags.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.hypergraph.semirings import LOG, MAX, Semiring

Array = jax.Array | np.ndarray


def total(
  start: Array,
  transition: Array,
  emission: Array,
  lengths: Array,
  semiring: Semiring,
) -> jax.Array:
  """Returns the sum over all tag sequences of each sentence, `[B]`.

  Args:
    start: log probabilities of first tags, `[K]`.
    transition: of the next tag (column) given a tag (row), `[K, K]`.
    emission: of each word given each tag, `[B, N, K]`.
    lengths: `[B]`; what lies beyond is not read. 0 without words.
    semiring: `LOG` or `MAX`.
  """
  lift = lambda x: semiring.lift(x, jnp.zeros(x.shape, jnp.int32))
  score = lambda x: jax.tree.leaves(x)[0]
  summed = lambda x: score(semiring.total(lift(x), axes=x.ndim))

  def step(last, word):
    scores, there = word
    # [K before, B, K after]
    reached = last.T[:, :, None] + jnp.asarray(transition)[:, None, :]
    return jnp.where(there[:, None], summed(reached) + scores, last), None

  emission = jnp.asarray(emission)
  there = jnp.arange(emission.shape[1]) < jnp.asarray(lengths)[:, None]
  words = (jnp.swapaxes(emission, 0, 1)[1:], there.T[1:])
  last, _ = jax.lax.scan(step, start + emission[:, 0], words)
  return jnp.where(jnp.asarray(lengths) > 0, summed(last.T), 0.0)


@jax.jit
def best_tags(
  start: Array, transition: Array, emission: Array, lengths: Array
) -> jax.Array:
  """Returns the best tags, int `[B, N]`; padding has 0."""
  best = lambda x: jnp.sum(total(start, transition, x, lengths, MAX))
  return jnp.argmax(jax.grad(best)(jnp.asarray(emission)), axis=-1)


@jax.jit
def posteriors(
  start: Array, transition: Array, emission: Array, lengths: Array
) -> jax.Array:
  """Returns the posterior of each tag, `[B, N, K]`; padding has 0."""
  log_sum = lambda x: jnp.sum(total(start, transition, x, lengths, LOG))
  return jax.grad(log_sum)(jnp.asarray(emission))
