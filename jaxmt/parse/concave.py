"""Models of dependency trees whose log likelihood is concave.

Each word chooses its head independently of all others (Gimpel 2012, appendix
B): IBM Model 1 from a sentence to itself,

    ∑_j log ∑_{i ≠ j} c(y_j | y_i, sign(j - i)) - m log(m + 1),

where i = 0 is the root. There is no tree constraint, so every local optimum of
EM is a global one. This is CCV1. CCV2 leaves the root out for words that are no
verbs, in sentences with a verb, while learning. The probabilities start the EM
of `jaxmt.parse.dmv`, which has them too.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.parse import dmv, eisner
from jaxmt.parse.dmv import Dmv, TagBatch

# Tags that the universal tag set maps to verbs: its own, and the Treebank's.
VERBS = frozenset(
  ("VERB", "AUX", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "MD")
)


def _choices(model: Dmv, batch: TagBatch, may_be_root):
  """Probabilities of heads, root first, `[B, N + 1, N]`."""
  size = batch.tags.shape[1]
  place = np.arange(size)
  direction = (place[:, None] < place[None]).astype(np.int32)
  head, child = batch.tags[:, :, None], batch.tags[:, None, :]
  there = place < batch.lengths[:, None]
  both = there[:, :, None] & there[:, None, :] & (place[:, None] != place[None])
  arcs = jnp.where(both, model.child[direction, head, child], 0.0)
  root = jnp.where(there & may_be_root, model.root[batch.tags], 0.0)
  return jnp.concatenate([root[:, None], arcs], axis=1)


def _may_be_root(batch: TagBatch, verbs):
  """Words that may be roots: all, or verbs where there is one; `[B, N]`."""
  there = jnp.arange(batch.tags.shape[1]) < batch.lengths[:, None]
  verb = verbs[batch.tags] & there
  return verb | ~verb.any(axis=1, keepdims=True)


@jax.jit
def _iteration(model: Dmv, batches: TagBatch, verbs):
  tags = len(model.root)

  def add(sums, batch):
    chosen = _choices(model, batch, _may_be_root(batch, verbs))
    total = chosen.sum(1, keepdims=True)
    some = total > 0
    shares = jnp.where(some, chosen / jnp.where(some, total, 1.0), 0.0)
    shares *= batch.weight[:, None, None]
    counts = dmv.counts_of(shares, jnp.zeros_like(shares), batch, tags=tags)
    logs = jnp.where(some, jnp.log(jnp.where(some, total, 1.0)), 0.0)
    constant = batch.lengths * jnp.log(batch.lengths + 1.0)
    value = jnp.sum(batch.weight * (logs.sum((1, 2)) - constant))
    return jax.tree.map(jnp.add, sums, (counts.root, counts.child, value)), None

  zeros = (jnp.zeros(tags), jnp.zeros((2, tags, tags)), jnp.zeros(()))
  (root, child, value), _ = jax.lax.scan(add, zeros, batches)
  stop = jnp.ones((2, tags, 2, 2))  # the model has none: uniform
  return dmv.normalised(Dmv(root=root, child=child, stop=stop)), value


def fit(
  batches: TagBatch, *, tags: int, iterations: int, verbs: np.ndarray
) -> tuple[Dmv, list[float]]:
  """Runs EM from uniform probabilities.

  Args:
    batches: sentences, stacked: `[C, B, ...]`.
    tags: T.
    iterations: steps.
    verbs: which tags are verbs, bool `[T]`; none of them for CCV1.

  Returns:
    The probabilities, with stops of 1/2, and the log likelihood before each
    step.
  """
  model, history = dmv.uniform(tags), []
  for _ in range(iterations):
    model, value = _iteration(model, batches, jnp.asarray(verbs))
    history.append(float(value))
  return model, history


@functools.partial(jax.jit)
def best_trees(model: Dmv, tags: jax.Array, lengths: jax.Array) -> jax.Array:
  """Returns heads of the most probable projective trees, `[B, N]`."""
  batch = TagBatch(tags=tags, lengths=lengths, weight=lengths)
  chosen = _choices(model, batch, jnp.ones(tags.shape, bool))
  return eisner.best_trees(jnp.log(jnp.maximum(chosen, 1e-12)), lengths)
