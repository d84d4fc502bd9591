"""Model 1, diagonal and HMM against enumeration of all alignments."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from jaxmt.align import (
  config,
  cooccurrence,
  diagonal,
  hmm,
  model1,
  translation_table,
  types,
)
from jaxmt.text import ragged
from tests.align import bitexts
from tests.reference import alignment as reference

MODULES = {"model1": model1, "diagonal": diagonal, "hmm": hmm}
SIDES = ("forward", "backward")


COMPILED = {
  (name, function): jax.jit(getattr(module, function), static_argnums=2)
  for name, module in MODULES.items()
  for function in ("posteriors", "viterbi")
}


def jump_weights(width, seed):
  rng = np.random.default_rng(seed)
  return rng.uniform(0.1, 1.0, 2 * width + 1).astype(np.float32)


def setting(
  model, side, *, seed=0, source=bitexts.SOURCE, target=bitexts.TARGET
):
  """Returns parameters, corpus, settings, the oracle's prior and tables."""
  data = bitexts.place(source, target)
  settings = config.default(
    model, tension=3.0, uniform_jump=0.3, tension_gradient="exact"
  )
  index = cooccurrence.build(ragged.from_rows(source), ragged.from_rows(target))
  pairs, null, table, null_table = bitexts.random_tables(
    index.table, side, seed
  )
  own = MODULES[model].initial(data.sizes[side], settings)
  prior = reference.model1_prior
  if model == "diagonal":
    prior = functools.partial(
      reference.diagonal_prior,
      tension=settings.tension,
      null_probability=settings.null_probability,
    )
  if model == "hmm":
    width = data.sizes[side].width
    weights = jump_weights(width, seed)
    own = {"jump": jnp.asarray(weights)}
    prior = functools.partial(
      reference.hmm_prior,
      jump={d: float(weights[d + width]) for d in range(-width, width + 1)},
      uniform=settings.uniform_jump,
      null_probability=settings.null_probability,
    )
  parameters = types.Parameters(
    pairs=jnp.asarray(pairs), null=jnp.asarray(null), model=own
  )
  return parameters, data, settings, prior, table, null_table


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("model", MODULES)
def test_posteriors_equal_enumeration(model, side):
  parameters, data, settings, prior, table, null = setting(model, side)
  cases = bitexts.oriented(bitexts.SOURCE, bitexts.TARGET, side)
  (grid,) = bitexts.grids(data, side)
  found = COMPILED[model, "posteriors"](parameters, grid, settings)
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
@pytest.mark.parametrize("model", MODULES)
def test_viterbi_equals_enumeration(model, side, seed):
  parameters, data, settings, prior, table, null = setting(
    model, side, seed=seed
  )
  cases = bitexts.oriented(bitexts.SOURCE, bitexts.TARGET, side)
  (grid,) = bitexts.grids(data, side)
  found = np.array(COMPILED[model, "viterbi"](parameters, grid, settings))
  for b, (given, generated) in enumerate(cases):
    _, _, best = reference.enumerate_pair(given, generated, table, null, prior)
    assert tuple(found[: len(generated), b].tolist()) in best
    assert not found[len(generated) :, b].any()


@pytest.mark.parametrize("model", MODULES)
def test_posteriors_sum_to_one(model):
  rng = np.random.default_rng(1)
  source = [rng.integers(0, 9, n).tolist() for n in (7, 1, 12, 4)]
  target = [rng.integers(0, 9, n).tolist() for n in (3, 9, 11, 4)]
  parameters, data, settings, *_ = setting(
    model, "forward", source=source, target=target
  )
  (grid,) = bitexts.grids(data, "forward")
  found = COMPILED[model, "posteriors"](parameters, grid, settings)
  total = found.links.sum(axis=1) + found.null
  np.testing.assert_allclose(total, 1.0, atol=1e-5)


def widened(grid: types.Grid, extra: int, table_size: int, words: int):
  """The same sentence pairs in a wider grid, and two empty ones."""
  pad = lambda values, fill: np.pad(
    np.array(values),
    [(0, extra)] * (values.ndim - 1) + [(0, 2)],
    constant_values=fill,
  )
  lengths = lambda values: np.pad(np.array(values), (0, 2))
  return types.Grid(
    pairs=pad(grid.pairs, table_size),
    words=pad(grid.words, words),
    generated=lengths(grid.generated),
    conditioning=lengths(grid.conditioning),
    size=lengths(grid.size),
  )


@pytest.mark.parametrize("model", MODULES)
def test_padding_changes_nothing(model):
  parameters, data, settings, *_ = setting(model, "forward")
  module, sizes = MODULES[model], data.sizes["forward"]
  (grid,) = bitexts.grids(data, "forward")
  wide = widened(grid, 3, len(parameters.pairs) - 1, len(parameters.null) - 1)
  wide_sizes = dataclasses.replace(sizes, width=sizes.width + 3)
  wide_parameters = dataclasses.replace(
    parameters, model=module.initial(wide_sizes, settings)
  )
  if model == "hmm":
    jump = np.pad(parameters.model["jump"], 3, constant_values=9.0)
    wide_parameters = dataclasses.replace(
      parameters, model={"jump": jnp.asarray(jump)}
    )
  width, count = sizes.width, grid.pairs.shape[2]
  one = COMPILED[model, "posteriors"](parameters, grid, settings)
  two = COMPILED[model, "posteriors"](wide_parameters, wide, settings)
  np.testing.assert_allclose(
    two.links[:width, :width, :count], one.links, atol=1e-6
  )
  np.testing.assert_allclose(
    two.log_likelihood[:count], one.log_likelihood, rtol=1e-6
  )
  assert not np.array(two.log_likelihood[count:]).any()
  np.testing.assert_array_equal(
    COMPILED[model, "viterbi"](wide_parameters, wide, settings)[:width, :count],
    COMPILED[model, "viterbi"](parameters, grid, settings),
  )
  empty = module.empty_statistics(sizes, settings)
  wide_empty = module.empty_statistics(wide_sizes, settings)
  first = module.accumulate(empty, one.model, grid)
  second = module.accumulate(wide_empty, two.model, wide)
  for name, value in first.items():
    np.testing.assert_allclose(jnp.sum(second[name]), jnp.sum(value), rtol=1e-5)


@pytest.mark.parametrize("model", MODULES)
def test_eager_equals_jit(model):
  parameters, data, settings, *_ = setting(model, "backward")
  (grid,) = bitexts.grids(data, "backward")
  for name in ("posteriors", "viterbi"):
    function = getattr(MODULES[model], name)
    eager = function(parameters, grid, settings)
    compiled = COMPILED[model, name](parameters, grid, settings)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
      eager,
      compiled,
    )


@pytest.mark.parametrize("side", SIDES)
def test_hmm_expectations_equal_enumeration(side):
  parameters, data, settings, prior, table, null = setting("hmm", side)
  (grid,) = bitexts.grids(data, side)
  found = COMPILED["hmm", "posteriors"](parameters, grid, settings)
  counts = hmm.accumulate(
    hmm.empty_statistics(data.sizes[side], settings), found.model, grid
  )
  width = data.sizes[side].width
  jumps = np.zeros(2 * width + 1)
  departures = np.zeros((width + 1, width + 1))
  for given, generated in bitexts.oriented(
    bitexts.SOURCE, bitexts.TARGET, side
  ):
    some_jumps, some_departures = reference.hmm_expectations(
      given, generated, table, null, **prior.keywords
    )
    for d, value in some_jumps.items():
      jumps[d + width] += value
    for key, value in some_departures.items():
      departures[key] += value
  np.testing.assert_allclose(counts["jump"], jumps, atol=1e-5)
  np.testing.assert_allclose(counts["departure"], departures, atol=1e-5)
  new = reference.minorize(
    prior.keywords["jump"],
    dict(zip(range(-width, width + 1), jumps, strict=True)),
    {key: value for key, value in np.ndenumerate(departures) if value},
  )
  found = hmm.minorize(
    np.array(parameters.model["jump"], np.float64), jumps, departures
  )
  expected = [new[d] for d in range(-width, width + 1)]
  np.testing.assert_allclose(found, expected, atol=1e-9)


def test_minorize_never_lowers_the_auxiliary_function():
  rng = np.random.default_rng(3)
  width = 5
  departures = np.triu(rng.exponential(size=(width + 1, width + 1)))
  departures[:, 0] = 0.0
  # Jumps that these departures allow.
  counts = np.zeros(2 * width + 1)
  for (start, length), mass in np.ndenumerate(departures):
    ends = rng.dirichlet(np.ones(length)) * mass if length else []
    for end, share in enumerate(ends, start=1):
      counts[end - start + width] += share
  jump = np.full(2 * width + 1, 1.0)

  def auxiliary(jump):
    value = (counts * np.log(np.maximum(jump, 1e-300))).sum()
    for (start, length), mass in np.ndenumerate(departures):
      if mass:
        norm = jump[1 - start + width : length - start + width + 1].sum()
        value -= mass * np.log(norm)
    return value

  values = [auxiliary(jump)]
  for _ in range(20):
    jump = hmm.minorize(jump, counts, departures)
    values.append(auxiliary(jump))
  assert (np.diff(values) >= -1e-9).all()
  assert values[-1] > values[0] + 0.1


@pytest.mark.parametrize("tension", [0.1, 4.0, 14.0])
def test_partition_equals_the_sum(tension):
  for generated in (1, 2, 5, 9):
    for conditioning in (1, 3, 5, 40):
      j = np.arange(1, generated + 1)
      i = np.arange(1, conditioning + 1)
      h = -np.abs(i[None] / conditioning - j[:, None] / generated)
      value, slope = diagonal.partition(tension, j, generated, conditioning)
      terms = np.exp(tension * h)
      np.testing.assert_allclose(value, terms.sum(axis=1), rtol=1e-10)
      np.testing.assert_allclose(
        slope, (h * terms).sum(axis=1), rtol=1e-8, atol=1e-10
      )


def test_partition_slope_is_the_derivative():
  j, generated, conditioning = np.arange(1, 8), 7, 5
  above, _ = diagonal.partition(3.0 + 1e-5, j, generated, conditioning)
  below, _ = diagonal.partition(3.0 - 1e-5, j, generated, conditioning)
  _, slope = diagonal.partition(3.0, j, generated, conditioning)
  np.testing.assert_allclose((above - below) / 2e-5, slope, rtol=1e-6)


def test_digamma_equals_scipy():
  x = np.concatenate([np.logspace(-4, 6, 300), [0.01, 1.0, 5.999, 6.0]])
  x = x.astype(np.float32)
  expected = scipy.special.psi(x.astype(np.float64))
  np.testing.assert_allclose(
    translation_table.digamma(jnp.asarray(x)), expected, rtol=2e-5, atol=2e-6
  )
