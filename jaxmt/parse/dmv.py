"""The dependency model with valence (Klein and Manning 2004), over tags.

A head generates dependents on each side from the inside out: it goes on or
stops, depending on whether it has a dependent there already, and chooses the
tag of each:

    p(tree) = root(r) ∏_(h, dir) stop(h, dir, valence)
                                 ∏_d go(h, dir, valence) c(d | h, dir)

Every head without dependents on a side pays `stop(h, dir, adjacent)`. One with
dependents pays `stop(h, dir, not adjacent)` instead; the quotient of both is
put on the arc to its first dependent. Then the model is arc-factored but for
the first arcs (`eisner.total`), and the gradient of the log likelihood has all
expected counts of EM: those of arcs, split into first and later ones. On CPUs
the kernel of `dmv_kernel` computes the same counts, many times as fast.

T: tags. Directions: 0 left, 1 right. Valence: 0 adjacent, 1 not adjacent.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.hypergraph.semirings import LOG
from jaxmt.parse import dmv_kernel, eisner

Array = jax.Array | np.ndarray
LEFT, RIGHT = 0, 1
_LEAST = 1e-12  # probability of what was never seen


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Dmv:
  """Probabilities, or expected counts of the same events.

  Attributes:
    root: of the tag of the root, `[T]`.
    child: of the tag of a dependent, `[2, T, T]`: direction, head, dependent.
    stop: of stopping, `[2, T, 2]`: direction, head, valence. In counts the
      last axis is followed by those of going on, `[2, T, 2, 2]`.
  """

  root: jax.Array
  child: jax.Array
  stop: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class TagBatch:
  """B distinct sentences of tags.

  Attributes:
    tags: int32 `[B, N]`, 0 in padding.
    lengths: int32 `[B]`.
    weight: how often each sentence occurs, float32 `[B]`.
  """

  tags: Array
  lengths: Array
  weight: Array


def normalised(counts: Dmv, *, numpy: bool = False) -> Dmv:
  """Returns relative frequencies; uniform where nothing was counted.

  Counts are differences of sums, so that rounding may leave some below 0.
  """
  xp: Any = np if numpy else jnp

  def share(counts: Any) -> Any:
    counts = xp.maximum(counts, 0.0)
    total = counts.sum(-1, keepdims=True)
    some = total > 0
    shares = counts / xp.where(some, total, 1.0)
    return xp.where(some, shares, 1.0 / counts.shape[-1])

  return Dmv(
    root=share(counts.root),
    child=share(counts.child),
    stop=share(counts.stop)[..., 0],
  )


def arc_scores(
  model: Dmv, tags: Array, lengths: Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Returns log scores of later and first arcs, and constants.

  Args:
    model: probabilities.
    tags: `[B, N]`.
    lengths: `[B]`.

  Returns:
    Two arrays `[B, N + 1, N]` for `eisner.total`, and what every tree of the
    sentence pays for stopping without dependents, `[B]`.
  """
  size = tags.shape[1]
  log = lambda x: jnp.log(jnp.maximum(x, _LEAST))
  right = np.arange(size)[:, None] < np.arange(size)[None]
  direction = right.astype(np.int32)  # of dependents, by (head, dependent)
  head, child = tags[:, :, None], tags[:, None, :]
  chosen = log(model.child)[direction, head, child]
  stop, go = log(model.stop), log(1.0 - model.stop)
  later = chosen + go[direction, head, 1]
  change = stop[..., 1] - stop[..., 0]
  first = chosen + go[direction, head, 0] + change[direction, head]
  root = log(model.root)[tags][:, None]
  there = jnp.arange(size) < lengths[:, None]
  nothing = stop[LEFT, tags, 0] + stop[RIGHT, tags, 0]
  with_root = lambda x: jnp.concatenate([root, x], axis=1)
  constant = jnp.sum(jnp.where(there, nothing, 0.0), axis=1)
  return with_root(later), with_root(first), constant


def log_likelihoods(model: Dmv, batch: TagBatch) -> jax.Array:
  """Returns log probabilities of the sentences, `[B]`."""
  later, first, constant = arc_scores(model, batch.tags, batch.lengths)
  sums = eisner.total(later, batch.lengths, LOG, first=first)
  return jnp.where(batch.lengths > 0, sums + constant, 0.0)


def expected_counts(model: Dmv, batch: TagBatch) -> tuple[Dmv, jax.Array]:
  """Returns expected counts and the log likelihood of a batch (E-step)."""
  later, first, constant = arc_scores(model, batch.tags, batch.lengths)

  def weighted(arcs):
    sums = eisner.total(arcs[0], batch.lengths, LOG, first=arcs[1])
    sums = jnp.where(batch.lengths > 0, sums + constant, 0.0)
    return jnp.sum(batch.weight * sums)

  value, (later, first) = jax.value_and_grad(weighted)((later, first))
  return counts_of(later, first, batch, tags=len(model.root)), value


def counts_of(
  later: jax.Array, first: jax.Array, batch: TagBatch, *, tags: int
) -> Dmv:
  """Returns the model's counts, from those of later and first arcs."""
  size = batch.tags.shape[1]
  there = (jnp.arange(size) < batch.lengths[:, None]) * batch.weight[:, None]
  one_hot = jax.nn.one_hot(batch.tags, tags, dtype=later.dtype)
  right = jnp.asarray(np.triu(np.ones((size, size)), 1), later.dtype)
  sides = jnp.stack([right.T, right])
  after = lambda x: jnp.einsum("dhc,bhc->dbhc", sides, x[:, 1:])
  later_sides, first_sides = after(later), after(first)
  child = jnp.einsum(
    "dbhc,bhs,bct->dst", later_sides + first_sides, one_hot, one_hot
  )
  by_head = lambda x: jnp.einsum("dbh,bhs->ds", x, one_hot)
  has = first_sides.sum(-1)  # heads with a dependent on that side
  go = (by_head(has), by_head(later_sides.sum(-1)))
  stop = (by_head(there[None] - has), by_head(has))
  return Dmv(
    root=jnp.einsum("bc,bct->t", later[:, 0], one_hot),
    child=child,
    stop=jnp.stack([jnp.stack(stop, -1), jnp.stack(go, -1)], -1),
  )


@functools.partial(jax.jit, donate_argnums=0)
def _iteration(model: Dmv, batches: TagBatch) -> tuple[Dmv, jax.Array]:
  """One step of EM over stacked batches `[C, B, ...]`."""

  def add(sums, batch):
    counts, value = expected_counts(model, batch)
    return jax.tree.map(jnp.add, sums, (counts, value)), None

  tags = len(model.root)
  zeros = Dmv(
    root=jnp.zeros(tags),
    child=jnp.zeros((2, tags, tags)),
    stop=jnp.zeros((2, tags, 2, 2)),
  )
  (counts, value), _ = jax.lax.scan(add, (zeros, jnp.zeros(())), batches)
  return normalised(counts), value


def fit(
  model: Dmv,
  batches: TagBatch,
  *,
  iterations: int,
  report: Callable[[int, float], None] = lambda iteration, value: None,
  kernel: bool | None = None,
) -> tuple[Dmv, list[float]]:
  """Runs EM.

  Args:
    model: the start.
    batches: sentences, stacked: `[C, B, ...]`.
    iterations: steps.
    report: called with the number of each step and the log likelihood of the
      model before it.
    kernel: whether the host kernel computes the counts; by default it does on
      CPUs.

  Returns:
    The model, and the log likelihood before each step.
  """
  history = []
  on_host = jax.default_backend() == "cpu" if kernel is None else kernel
  step = _host_iteration if on_host else _iteration
  like = (lambda x: np.array(x, np.float64)) if on_host else jnp.array
  model = jax.tree.map(like, model)  # the start stays the caller's
  for iteration in range(1, iterations + 1):
    model, value = step(model, batches)
    history.append(float(value))
    report(iteration, history[-1])
  return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), model), history


def _host_iteration(model: Dmv, batches: TagBatch) -> tuple[Dmv, float]:
  """The same as `_iteration`, by the host kernel in float64."""
  flat = jax.tree.map(
    lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), batches
  )
  root, child, stop, value = dmv_kernel.expected_counts(
    model.root, model.child, model.stop, flat.tags, flat.lengths, flat.weight
  )
  if not value > -np.inf:
    single = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), model)
    model, value = _iteration(single, batches)
    return jax.tree.map(lambda x: np.asarray(x, np.float64), model), value
  counts = Dmv(root=root, child=child, stop=stop)
  return normalised(counts, numpy=True), value


# --- starts -----------------------------------------------------------------


def uniform(tags: int) -> Dmv:
  """Returns the model in which all choices are equally likely."""
  return Dmv(
    root=jnp.full(tags, 1 / tags),
    child=jnp.full((2, tags, tags), 1 / tags),
    stop=jnp.full((2, tags, 2), 0.5),
  )


def random(tags: int, seed: int) -> Dmv:
  """Returns probabilities from uniform random numbers."""
  rng = np.random.default_rng(seed)
  draw = lambda *shape: jnp.asarray(rng.uniform(size=shape), jnp.float32)
  return normalised(
    Dmv(
      root=draw(tags),
      child=draw(2, tags, tags),
      stop=draw(2, tags, 2, 2),
    )
  )


def harmonic(batches: TagBatch, tags: int) -> Dmv:
  """Returns Klein and Manning's start: affinities fall with the distance.

  Every word is the root with probability `1 / n`. Otherwise its head is i with
  probability proportional to `1 / |i - j|`. These are the posteriors of an
  E-step. A head has a dependent on a side with the probability that not all
  words there have another head, as if they chose independently.
  """

  def counts(batch):
    size = batch.tags.shape[1]
    place = np.arange(size)
    far = np.abs(place[:, None] - place[None])
    affinity = np.where(far > 0, 1.0 / np.maximum(far, 1), 0.0)
    there = (place < batch.lengths[:, None]).astype(jnp.float32)
    both = there[:, :, None] * there[:, None, :]
    length = jnp.maximum(batch.lengths, 1)[:, None]
    near = affinity * both
    total = jnp.maximum(near.sum(1, keepdims=True), 1e-9)
    heads = near / total * (1.0 - 1.0 / length[:, None])
    root = there / length
    # Share of first arcs: P(some dependent) over the expected number.
    right = jnp.asarray(np.triu(np.ones((size, size)), 1))
    first = jnp.zeros_like(heads)
    for side in (right, right.T):
      own = heads * side
      some = 1.0 - jnp.exp(jnp.sum(jnp.log1p(-jnp.minimum(own, 1 - 1e-6)), -1))
      number = own.sum(-1)
      share = jnp.where(number > 0, some / jnp.maximum(number, 1e-9), 0.0)
      first += own * share[..., None]
    weight = batch.weight[:, None, None]
    later = jnp.concatenate([root[:, None], heads - first], 1) * weight
    first = jnp.pad(first, ((0, 0), (1, 0), (0, 0))) * weight
    return counts_of(later, first, batch, tags=tags)

  parts = jax.lax.map(counts, batches)
  return normalised(jax.tree.map(lambda x: x.sum(0), parts))


# --- parsing ----------------------------------------------------------------


def least_risk_trees(
  model: Dmv, tags: Array, lengths: Array, *, kernel: bool | None = None
) -> np.ndarray:
  """Returns heads of the trees with most expected right arcs, `[B, N]`.

  Args:
    model: probabilities.
    tags: `[B, N]`.
    lengths: `[B]`.
    kernel: as in `fit`.
  """
  if jax.default_backend() == "cpu" if kernel is None else kernel:
    like = lambda x: np.asarray(x, np.float64)
    heads, small = dmv_kernel.least_risk_trees(
      *(like(model.root), like(model.child), like(model.stop)),
      *(np.asarray(tags), np.asarray(lengths)),
    )
    if small.any():
      logs = _least_risk_trees(model, tags, np.where(small, lengths, 0))
      heads = np.where(small[:, None], np.asarray(logs), heads)
    return heads
  return np.asarray(_least_risk_trees(model, tags, lengths))


@jax.jit
def _least_risk_trees(model: Dmv, tags: Array, lengths: Array) -> jax.Array:
  later, first, _ = arc_scores(model, tags, lengths)

  def summed(arcs):
    sums = eisner.total(arcs[0], lengths, LOG, first=arcs[1])
    return jnp.sum(jnp.where(lengths > 0, sums, 0.0))

  slopes = jax.grad(summed)((later, first))
  return eisner.best_trees(slopes[0] + slopes[1], lengths)
