"""Minimises the loss of a model over rows of data, in minibatches.

A loss is a function `(parameters, constants, rows, key) -> (sum, weight)`: the
sum of the loss over a batch of rows and what it is divided by. `rows` are the
batch's rows of every array of the data; `constants` are arrays that all batches
share; `key` is for what is random. An epoch is one compiled program.

Several devices take a part of each batch. They add up their gradients, so the
result is that of one device up to rounding.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.sharding import Mesh

from jaxmt.errors import InputError
from jaxmt.runtime import parallel

Loss = Callable[[Any, Any, Any, Array], tuple[Array, Array]]
OPTIMIZERS = ("adam", "adagrad", "sgd")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FitOptions:
  """How to minimise.

  Attributes:
    epochs: passes over the rows.
    batch: rows of a step; a last batch that would be smaller is left out, and
      every epoch has another order.
    rate: of the optimizer at the first step; it falls linearly to 0.
    optimizer: one of `OPTIMIZERS`.
    seed: of the orders and of what the loss draws.
  """

  epochs: int = 5
  batch: int = 1024
  rate: float = 0.01
  optimizer: str = "adam"
  seed: int = 0


class EpochStore(Protocol):
  """Stores finished epochs by name; `checkpoint.Partial` is one."""

  def get(self, name: str) -> Any:
    """Returns the values under a name, None if there are none."""

  def put(self, name: str, values: Any) -> None:
    """Stores values under a name."""

  def drop(self, name: str) -> None:
    """Removes what is stored under a name, if anything is."""


class StorePart:
  """A part of a store: its names begin with that of the part."""

  def __init__(self, store: EpochStore, name: str):
    """Names a part of `store`."""
    self._store, self._name = store, name

  def get(self, name: str) -> Any:
    """See `EpochStore`."""
    return self._store.get(f"{self._name}-{name}")

  def put(self, name: str, values: Any) -> None:
    """See `EpochStore`."""
    self._store.put(f"{self._name}-{name}", values)

  def drop(self, name: str) -> None:
    """See `EpochStore`. The last epoch stays: the next part begins with it."""
    self._store.drop(f"{self._name}-{name}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Epoch:
  """What an epoch ended with.

  Attributes:
    number: from 1.
    loss: mean loss of the epoch's batches as they were met.
    parameters: the model's.
  """

  number: int
  loss: float
  parameters: Any


def check_options(options: FitOptions) -> None:
  """Raises `InputError` for settings that make no sense."""
  for name in ("epochs", "batch"):
    if getattr(options, name) < 1:
      raise InputError(f"option '{name}' must be at least 1")
  if not 0 < options.rate < float("inf"):
    raise InputError("option 'rate' must be finite and above 0")
  if options.optimizer not in OPTIMIZERS:
    raise InputError(
      f"option 'optimizer': '{options.optimizer}' is none of"
      f" {', '.join(OPTIMIZERS)}"
    )


def fit(
  loss: Loss,
  parameters: Any,
  data: Any,
  options: FitOptions,
  *,
  constants: Any = (),
  mesh: Mesh | None = None,
  store: EpochStore | None = None,
) -> Iterator[Epoch]:
  """Yields the model after each epoch; first, after the last stored one.

  Args:
    loss: see the module.
    parameters: where to start.
    data: a tree of arrays with N rows each, or a function `(epoch, parameters)
      -> data` that is called before each epoch; sizes must not change.
    options: see `FitOptions`.
    constants: arrays for the loss.
    mesh: devices that take a part of each batch; None for one device.
    store: where finished epochs are kept. A run that was killed resumes after
      the last one and ends with the same bits.

  Raises:
    InputError: if the loss is not finite.
  """
  check_options(options)
  refresh = data if callable(data) else lambda number, parameters: data
  data = refresh(0, parameters)
  rows = len(jax.tree.leaves(data)[0])
  width = 1 if mesh is None else parallel.size(mesh)
  batch = min(options.batch, rows) // width * width
  if not batch:
    raise InputError(f"{rows} rows of data for {width} devices")
  steps = rows // batch
  state = _optimizer(options, steps).init(parameters)
  run = _epoch_function(loss, options, steps, mesh)
  first, carried = 0, (parameters, state)
  if store is not None:
    first, carried, level = _restore(store, carried, options.epochs)
    if first:
      yield Epoch(number=first, loss=level, parameters=carried[0])
  key = jax.random.key(options.seed)
  for number in range(first, options.epochs):
    if number:
      data = refresh(number, carried[0])
    order_key, draw_key = jax.random.split(jax.random.fold_in(key, number))
    order = jax.random.permutation(order_key, rows)[: steps * batch]
    order = order.reshape(steps, batch).T
    *carried, level = run(*carried, constants, data, order, draw_key)
    if not np.isfinite(level):
      raise InputError("the loss is not finite: lower the rate")
    if store is not None:
      _save(store, number + 1, carried, float(level))
    yield Epoch(number=number + 1, loss=float(level), parameters=carried[0])


def _optimizer(options: FitOptions, steps: int) -> optax.GradientTransformation:
  schedule = optax.linear_schedule(options.rate, 0.0, options.epochs * steps)
  return getattr(optax, options.optimizer)(schedule)


@functools.lru_cache(maxsize=16)
def _epoch_function(
  loss: Loss, options: FitOptions, steps: int, mesh: Mesh | None
):
  """`(parameters, state, constants, data, order, key)` -> the same and loss."""
  epoch = functools.partial(
    _epoch,
    loss=loss,
    transformation=_optimizer(options, steps),
    over=mesh is not None,
  )
  if mesh is None:
    return jax.jit(epoch)
  return parallel.data_parallel(
    epoch,
    mesh=mesh,
    inputs=("copied", "copied", "copied", "copied", "split", "copied"),
    outputs=("copied", "copied", "copied"),
  )


def _epoch(
  parameters, state, constants, data, order, key, *, loss, transformation, over
):
  """One pass; `order` has a column of row numbers for each step."""

  def summed(tree):
    return jax.lax.psum(tree, parallel.DATA) if over else tree

  if over:  # what is drawn for a row must not be drawn on every device
    key = jax.random.fold_in(key, jax.lax.axis_index(parallel.DATA))

  def step(carry, numbered):
    parameters, state, total = carry
    number, chosen = numbered
    rows = jax.tree.map(lambda leaf: leaf[chosen], data)
    drawn = jax.random.fold_in(key, number)
    (value, weight), gradient = jax.value_and_grad(loss, has_aux=True)(
      parameters, constants, rows, drawn
    )
    value, weight, gradient = summed((value, weight, gradient))
    weight = jnp.maximum(weight, 1e-30)
    gradient = jax.tree.map(lambda leaf: leaf / weight, gradient)
    updates, state = transformation.update(gradient, state, parameters)
    parameters = optax.apply_updates(parameters, updates)
    return (parameters, state, total + value / weight), None

  steps = order.shape[1]
  begin = (parameters, state, jnp.zeros(()))
  (parameters, state, total), _ = jax.lax.scan(
    step, begin, (jnp.arange(steps), order.T)
  )
  return parameters, state, total / steps


def _save(store: EpochStore, number: int, carried, level: float) -> None:
  leaves = [*jax.tree.leaves(parallel.to_host(carried)), np.float64(level)]
  values = {f"leaf{place}": np.ravel(x) for place, x in enumerate(leaves)}
  store.put(f"epoch{number}", values)
  store.drop(f"epoch{number - 1}")


def _restore(store: EpochStore, carried, epochs: int):
  """The last stored epoch, its state and loss; else 0 and the start."""
  leaves, structure = jax.tree.flatten(carried)
  for number in range(epochs, 0, -1):
    values = store.get(f"epoch{number}")
    if values is None or len(values) != len(leaves) + 1:
      continue
    *columns, level = (values[f"leaf{place}"] for place in range(len(values)))
    pairs = list(zip(columns, leaves, strict=True))
    if all(len(column) == leaf.size for column, leaf in pairs):
      arrays = [
        jnp.asarray(column, leaf.dtype).reshape(leaf.shape)
        for column, leaf in pairs
      ]
      return number, jax.tree.unflatten(structure, arrays), float(level[0])
  return 0, carried, float("nan")
