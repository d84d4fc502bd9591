"""Sums of rows by number equal loops; gradients are those of indexing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.models import lookup


@pytest.mark.parametrize(("number", "size"), [(1, 3), (7, 2), (500, 40)])
def test_sums_equal_loops(number, size):
  rng = np.random.default_rng(number)
  rows = rng.normal(size=(number, 3)).astype(np.float32)
  numbers = rng.integers(0, size, number)
  expected = np.zeros((size, 3))
  for row, own in zip(rows, numbers, strict=True):
    expected[own] += row
  found = lookup.sums_by_number(jnp.asarray(rows), jnp.asarray(numbers), size)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
  absent = np.setdiff1d(np.arange(size), numbers)
  assert not np.asarray(found)[absent].any()


def test_gradient_is_that_of_indexing():
  rng = np.random.default_rng(0)
  table = jnp.asarray(rng.normal(size=(9, 4)), jnp.float32)
  numbers = jnp.asarray(rng.integers(0, 9, (5, 6)))
  weights = jnp.asarray(rng.normal(size=(5, 6, 4)), jnp.float32)
  value = lambda rows: lambda t: (jnp.sin(rows(t, numbers)) * weights).sum()
  ours = jax.jit(jax.grad(value(lookup.rows_of)))(table)
  plain = jax.grad(value(lambda t, n: t[n]))(table)
  np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-5)
