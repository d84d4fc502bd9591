"""Rows of a table by number, with a gradient that is fast on CPUs.

The gradient of a lookup adds up the rows of each number. As a scatter, XLA does
that on CPUs one row after the other, at a microsecond or more each. Sorting the
numbers and adding up runs of equal ones by a segmented scan is the same sum, up
to rounding, in a few passes over all rows.
"""

import jax
import jax.numpy as jnp
from jax import Array


@jax.custom_vjp
def rows_of(table: Array, numbers: Array) -> Array:
  """Returns `table[numbers]`.

  Args:
    table: `[V, D]`.
    numbers: int, from 0 to V - 1, any shape.

  Returns:
    `[..., D]`.
  """
  return table[numbers]


def _forward(table, numbers):
  return table[numbers], (table, numbers)


def _backward(seen, gradient):
  table, numbers = seen
  rows = gradient.reshape(-1, table.shape[1])
  return sums_by_number(rows, numbers.reshape(-1), len(table)), None


rows_of.defvjp(_forward, _backward)


def sums_by_number(rows: Array, numbers: Array, size: int) -> Array:
  """Adds up the rows of each number.

  Args:
    rows: `[N, D]`, N above 0.
    numbers: int `[N]`, below `size`.
    size: V.

  Returns:
    `[V, D]`.
  """
  order = jnp.argsort(numbers, stable=True)
  rows, numbers = rows[order], numbers[order]
  first = jnp.pad(numbers[1:] != numbers[:-1], (1, 0), constant_values=True)[
    :, None
  ]

  def join(left, right):
    begins = right[1]
    return jnp.where(begins, right[0], left[0] + right[0]), left[1] | begins

  sums, _ = jax.lax.associative_scan(join, (rows, first))
  every = jnp.arange(size)
  last = jnp.searchsorted(numbers, every, side="right") - 1
  place = jnp.maximum(last, 0)
  have = (last >= 0) & (numbers[place] == every)
  return jnp.where(have[:, None], sums[place], 0.0)
