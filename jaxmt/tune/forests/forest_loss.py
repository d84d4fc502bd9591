"""Minimising a loss over all derivations of forests by its gradient.

As `gradient`, with the forests of the latest decoding instead of k-best lists.
The losses are the `forest` functions of `jaxmt.losses.registry`; costs are
linear BLEU, see `forest_data`. Batch: L-BFGS and OWL-QN, driven from the host.
Stochastic: optax, over groups of sentences. All groups have one shape, rounded
up to few values, so that rounds share what is compiled.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.hypergraph import device_layout, root_edges, select
from jaxmt.losses import forest_losses as forest_losses
from jaxmt.losses import registry as losses
from jaxmt.losses.forest_losses import PackedForests
from jaxmt.text.ragged import bucket
from jaxmt.tune.forests import forest_data
from jaxmt.tune.forests.forest_data import ForestData
from jaxmt.tune.gradient_config import ForestLossConfig, stages
from jaxmt.tune.learning import Chooser
from jaxmt.tune.lists import owlqn

_TILE = 512  # edges of one step of a pass
_GROUP_EDGES = 1 << 18  # of the groups that batch methods sum over
_STEPS = {"sgd": optax.sgd, "adam": optax.adam, "adagrad": optax.adagrad}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestBatch:
  """Forests of a group of sentences on the device.

  Attributes:
    packed: the forests, E edges.
    features: of the decoder's edges, float32 `[E', F]`.
    origin: the decoder's edge of each edge, int32 `[E]`.
    statistics: of BLEU that each edge adds; the reference's length is added by
      the edges of the root. float32 `[E, 9]`.
  """

  packed: PackedForests
  features: Array | np.ndarray
  origin: Array | np.ndarray
  statistics: Array | np.ndarray


def make_batches(
  data: ForestData, groups: list[np.ndarray]
) -> list[ForestBatch]:
  """Lays out groups of sentences, all in one shape.

  Args:
    data: the forests.
    groups: sentence numbers of each group.
  """
  split = data.split
  parts = [select(split.forest, group) for group in groups]
  sizes = device_layout.bucketed(
    *(device_layout.needed_sizes(one, tile=_TILE) for one, _ in parts)
  )
  used = [np.unique(split.edge[edges]) for _, edges in parts]
  rows = bucket(max(16, *map(len, used)))
  return [
    _batch(data, forest, edges, edges_used, group, sizes, rows)
    for (forest, edges), edges_used, group in zip(
      parts, used, groups, strict=True
    )
  ]


def _batch(data, forest, edges, used, group, sizes, rows) -> ForestBatch:
  split = data.split
  features = np.zeros((rows, data.features.shape[1]), np.float32)
  features[: len(used)] = data.features[used]
  origin = np.zeros(sizes.edges, np.int32)
  origin[: len(edges)] = np.searchsorted(used, split.edge[edges])
  table = np.zeros((sizes.edges, 9), np.float32)
  table[: len(edges), :8] = split.statistics[edges]
  tops, rows_of = root_edges(forest)
  table[tops, 8] = data.references[group[rows_of]]
  batch = ForestBatch(
    packed=forest_losses.pack(forest, tile=_TILE, sizes=sizes),
    features=features,
    origin=origin,
    statistics=table,
  )
  return jax.tree.map(jnp.asarray, batch)


def group_sentences(
  data: ForestData, *, edges: int = 0, count: int = 0, seed: int = 0
) -> list[np.ndarray]:
  """Returns groups of sentences: of up to `edges` edges, or `count` sentences.

  Args:
    data: the forests.
    edges: a group has at most this number, or one sentence.
    count: sentences of a group, drawn at random, if `edges` is 0.
    seed: of the draw.
  """
  split = data.split.forest
  sizes = np.diff(split.edge_offsets[split.node_offsets])
  if not edges:
    order = np.random.default_rng(seed).permutation(len(sizes))
    cuts = np.arange(count, len(order), count)
    return [np.sort(group) for group in np.split(order, cuts)]
  group = np.cumsum(sizes) // edges
  return [np.flatnonzero(group == number) for number in np.unique(group)]


# --- the loss of a batch ----------------------------------------------------


def _sums(weights, batch, costing, *, loss):
  """`(sum, weight)` of a batch; the sum may be a vector."""
  slopes, settings = costing
  kind = losses.find(loss)
  scores = (batch.features @ weights)[batch.origin]
  values = batch.statistics
  if not kind.statistics_of:
    values = values[:, :8] @ slopes
  assert kind.forest is not None  # the config has seen to it
  return kind.forest(batch.packed, scores, values, **settings)


@functools.partial(jax.jit, static_argnames="loss")
def _value_and_pull(weights, batch, costing, pull, *, loss):
  """Sum, weight, and the gradient of `sum . pull` in the weights."""
  (total, count), back = jax.vjp(
    functools.partial(_sums, batch=batch, costing=costing, loss=loss), weights
  )
  return total, count, back((pull, jnp.zeros_like(count)))[0]


_sums_alone = functools.partial(jax.jit, static_argnames="loss")(_sums)


@functools.partial(jax.jit, static_argnames=("loss", "kind"))
def _step(weights, state, initial, batch, costing, pace, *, loss, kind):
  """One step of a stochastic optimizer: `(weights, state)`."""
  rate, l2 = pace

  def value(weights):
    total, count = _sums(weights, batch, costing, loss=loss)
    result = _finish(total, count, loss)
    return result + 0.5 * l2 * jnp.sum((weights - initial) ** 2)

  gradient = jax.grad(value)(weights)
  gradient = jnp.where(jnp.isfinite(gradient), gradient, 0.0)
  updates, state = _STEPS[kind](rate).update(gradient, state, weights)
  return optax.apply_updates(weights, updates), state


def _finish(total, count, loss):
  finish = losses.find(loss).finish
  if finish is not None:
    return finish(total, count)
  return total / jnp.maximum(count, 1.0)


class Evaluation:
  """The regularised loss of all sentences, with its gradient."""

  def __init__(
    self,
    batches: list[ForestBatch],
    slopes: np.ndarray,
    *,
    loss: str,
    settings: Mapping[str, float],
    l2: float = 0.0,
    initial: np.ndarray | None = None,
  ):
    """Keeps the batches.

    Args:
      batches: from `make_batches`.
      slopes: cost of each statistic, already times its multiplier, `[8]`.
      loss: a name in the registry of losses, one with a `forest` function.
      settings: of the loss.
      l2: strength of the pull towards `initial`.
      initial: `[F]`.
    """
    self._batches, self._loss, self.l2 = batches, loss, l2
    self.initial = initial
    numbers = {name: jnp.float32(value) for name, value in settings.items()}
    self.costing = (jnp.asarray(slopes, jnp.float32), numbers)

  def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Returns the loss and its gradient, float64 `[F]`."""
    now = jnp.asarray(weights, jnp.float32)
    pull = jnp.ones(())
    if losses.find(self._loss).finish is not None:
      # No sum over sentences: first all sums, then what each is worth.
      parts = [
        _sums_alone(now, batch, self.costing, loss=self._loss)
        for batch in self._batches
      ]
      total, count = jax.tree.map(lambda *x: sum(x), *parts)
      pull = jax.grad(_finish)(total, count, self._loss)
    total, count, gradient = 0.0, 0.0, np.zeros(len(weights))
    for batch in self._batches:
      part = _value_and_pull(now, batch, self.costing, pull, loss=self._loss)
      total, count = total + part[0], count + part[1]
      gradient += np.asarray(part[2], np.float64)
    value = float(_finish(total, count, self._loss))
    if losses.find(self._loss).finish is None:
      gradient /= max(float(count), 1.0)
    if self.l2 and self.initial is not None:
      moved = weights - self.initial
      value += 0.5 * self.l2 * float(moved @ moved)
      gradient += self.l2 * moved
    return value, gradient


# --- optimisers -------------------------------------------------------------


def optimise(
  pool: CandidateLists,
  weights: np.ndarray,
  config: ForestLossConfig,
  seed: int,
  *,
  centre: np.ndarray | None = None,
) -> tuple[np.ndarray, list[dict]]:
  """Minimises a loss on the pool's forests; arguments as `mira.optimise`.

  The regulariser pulls to `centre`, by default the weights to start from.
  """
  data = forest_data.prepare(
    pool, weights, config.metric, brevity=config.brevity
  )
  by_batch = config.optimizer in ("lbfgs", "owlqn")
  groups = group_sentences(
    data,
    edges=_GROUP_EDGES if by_batch else 0,
    count=config.batch_size,
    seed=seed,
  )
  batches = make_batches(data, groups)
  chooser = Chooser(
    pool,
    weights,
    config.metric,
    explore=config.explore,
    last=config.last,
    judge=forest_data.ForestJudge(pool, config.metric),
  )
  current = _scaled(weights, config)
  centre = current if centre is None else _scaled(centre, config)
  for number, settings in enumerate(stages(config)):
    evaluate = Evaluation(
      batches,
      config.cost_scale * data.slopes,
      loss=config.loss,
      settings=settings,
      l2=config.l2 + config.pull / max(pool.sentences, 1),
      initial=centre,
    )
    run = _batch_steps if by_batch else _stochastic_passes
    for step, iterate in run(batches, evaluate, current, config, seed + number):
      current = iterate
      record = {"step": step, "loss": evaluate(iterate)[0]}
      chooser.offer(iterate, record)
  return chooser.best, chooser.history


def _scaled(weights: np.ndarray, config: ForestLossConfig) -> np.ndarray:
  """The weights at the scale to start from."""
  largest = np.abs(weights).max(initial=0.0)
  scale = config.start_scale / largest if config.start_scale and largest else 1
  return np.array(weights, np.float64) * scale


def _batch_steps(
  batches, evaluate, weights, config, seed
) -> Iterator[tuple[int, np.ndarray]]:
  """Yields some of the iterates of L-BFGS, and the last."""
  del batches, seed
  iterates = owlqn.minimise(evaluate, weights, l1=config.l1, steps=config.steps)
  for step, iterate in enumerate(iterates):
    if (step + 1) % config.chunk == 0 or step + 1 == len(iterates):
      yield step + 1, iterate


def _stochastic_passes(
  batches, evaluate, weights, config, seed
) -> Iterator[tuple[int, np.ndarray]]:
  """Yields the weights after each pass over the batches."""
  rng = np.random.default_rng(seed)
  current = jnp.asarray(weights, jnp.float32)
  initial = jnp.asarray(evaluate.initial, jnp.float32)
  state: Any = _STEPS[config.optimizer](config.rate).init(current)
  time = 0
  for number in range(config.passes):
    order = np.arange(len(batches))
    if config.shuffle:
      order = rng.permutation(len(batches))
    for place in order.tolist():
      fall = 1.0 + time / config.half_life if config.half_life else 1.0
      current, state = _step(
        current,
        state,
        initial,
        batches[place],
        evaluate.costing,
        (config.rate / fall, evaluate.l2),
        loss=config.loss,
        kind=config.optimizer,
      )
      time += 1
    yield number + 1, np.asarray(current, np.float64)
