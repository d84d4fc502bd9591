"""Every aligner against enumeration of all alignments; laws of the contract."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.align import aligner, named_aligners
from tests.align import bitexts
from tests.reference import alignment as reference

MODELS = ("model1", "diagonal", "hmm")
SIDES = ("forward", "backward")

COMPILED = {
  (name, function): jax.jit(
    getattr(named_aligners.find(name), function), static_argnums=2
  )
  for name in MODELS
  for function in ("expectation", "links")
}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("model", MODELS)
def test_posteriors_equal_enumeration(model, side):
  parameters, data, settings, prior, table, null = bitexts.setting(model, side)
  cases = bitexts.oriented(bitexts.SOURCE, bitexts.TARGET, side)
  (grid,) = bitexts.grids(data, side)
  found = COMPILED[model, "expectation"](parameters, grid, settings)
  for b, (given, generated) in enumerate(cases):
    total, expected, _ = reference.enumerate_pair(
      given, generated, table, null, prior
    )
    np.testing.assert_allclose(
      found.log_likelihood[b], np.log(total), rtol=1e-5
    )
    rows = np.array(expected)
    links = np.array(found.links[..., b])
    np.testing.assert_allclose(
      links[: len(generated), : len(given)], rows[:, 1:], atol=2e-6
    )
    np.testing.assert_allclose(
      found.null[: len(generated), b], rows[:, 0], atol=2e-6
    )
    links[: len(generated), : len(given)] = 0.0
    assert not links.any()  # nothing leaks into padding


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("model", MODELS)
def test_links_equal_enumeration(model, side, seed):
  parameters, data, settings, prior, table, null = bitexts.setting(
    model, side, seed=seed
  )
  cases = bitexts.oriented(bitexts.SOURCE, bitexts.TARGET, side)
  (grid,) = bitexts.grids(data, side)
  found = np.array(COMPILED[model, "links"](parameters, grid, settings))
  for b, (given, generated) in enumerate(cases):
    _, _, best = reference.enumerate_pair(given, generated, table, null, prior)
    assert tuple(found[: len(generated), b].tolist()) in best
    assert not found[len(generated) :, b].any()


@pytest.mark.parametrize("model", MODELS)
def test_posteriors_sum_to_one(model):
  rng = np.random.default_rng(1)
  source = [rng.integers(0, 9, n).tolist() for n in (7, 1, 12, 4)]
  target = [rng.integers(0, 9, n).tolist() for n in (3, 9, 11, 4)]
  parameters, data, settings, *_ = bitexts.setting(
    model, "forward", source=source, target=target
  )
  (grid,) = bitexts.grids(data, "forward")
  found = COMPILED[model, "expectation"](parameters, grid, settings)
  total = found.links.sum(axis=1) + found.null
  np.testing.assert_allclose(total, 1.0, atol=1e-5)


def widened(grid: aligner.Grid, extra: int, table_size: int, words: int):
  """The same sentence pairs in a wider grid, and two empty ones."""
  pad = lambda values, fill: np.pad(
    np.array(values),
    [(0, extra)] * (values.ndim - 1) + [(0, 2)],
    constant_values=fill,
  )
  lengths = lambda values: np.pad(np.array(values), (0, 2))
  return aligner.Grid(
    pairs=pad(grid.pairs, table_size),
    words=pad(grid.words, words),
    generated=lengths(grid.generated),
    conditioning=lengths(grid.conditioning),
    size=lengths(grid.size),
  )


@pytest.mark.parametrize("model", MODELS)
def test_padding_changes_nothing(model):
  parameters, data, settings, *_ = bitexts.setting(model, "forward")
  record, sizes = named_aligners.find(model), data.sizes["forward"]
  (grid,) = bitexts.grids(data, "forward")
  wide = widened(grid, 3, len(parameters.pairs) - 1, len(parameters.null) - 1)
  wide_sizes = dataclasses.replace(sizes, width=sizes.width + 3)
  wide_parameters = dataclasses.replace(
    parameters, model=record.initialise(wide_sizes, settings)
  )
  if model == "hmm":
    jump = np.pad(parameters.model["jump"], 3, constant_values=9.0)
    wide_parameters = dataclasses.replace(
      parameters, model={"jump": jnp.asarray(jump)}
    )
  width, count = sizes.width, grid.pairs.shape[2]
  one = COMPILED[model, "expectation"](parameters, grid, settings)
  two = COMPILED[model, "expectation"](wide_parameters, wide, settings)
  np.testing.assert_allclose(
    two.links[:width, :width, :count], one.links, atol=1e-6
  )
  np.testing.assert_allclose(
    two.log_likelihood[:count], one.log_likelihood, rtol=1e-6
  )
  assert not np.array(two.log_likelihood[count:]).any()
  np.testing.assert_array_equal(
    COMPILED[model, "links"](wide_parameters, wide, settings)[:width, :count],
    COMPILED[model, "links"](parameters, grid, settings),
  )
  empty = aligner.empty_counts(record, sizes, settings)
  wide_empty = aligner.empty_counts(record, wide_sizes, settings)
  first = record.accumulate(empty, one.model, grid)
  second = record.accumulate(wide_empty, two.model, wide)
  for name, value in first.items():
    np.testing.assert_allclose(jnp.sum(second[name]), jnp.sum(value), rtol=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_eager_equals_jit(model):
  parameters, data, settings, *_ = bitexts.setting(model, "backward")
  (grid,) = bitexts.grids(data, "backward")
  for name in ("expectation", "links"):
    function = getattr(named_aligners.find(model), name)
    eager = function(parameters, grid, settings)
    compiled = COMPILED[model, name](parameters, grid, settings)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
      eager,
      compiled,
    )
