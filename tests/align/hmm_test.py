"""Jumps of the HMM against enumeration; its M-step."""

import numpy as np
import pytest

from jaxmt.align import hmm
from tests.align import bitexts
from tests.reference import alignment as reference


@pytest.mark.parametrize("side", ("forward", "backward"))
def test_hmm_expectations_equal_enumeration(side):
  parameters, data, settings, prior, table, null = bitexts.setting("hmm", side)
  (grid,) = bitexts.grids(data, side)
  found = hmm.expectation(parameters, grid, settings)
  counts = hmm.accumulate(
    hmm.empty_counts(data.sizes[side], settings), found.model, grid
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
