"""The two ways of exact search: the compiled kernel and the general one."""

import numpy as np
import pytest

from jaxmt.decode.chart import exact
from tests.reference import chart_cases as cases


@pytest.mark.parametrize("seed", range(4))
def test_the_general_way_equals_the_kernel(seed):
  case = cases.random_case(
    seed, order=3, arity=2, sentences=3, longest=5, rules=30
  )
  model, source = cases.to_model(case, arity=2, pass_through="all")
  matches, fast, _ = exact.search_exactly(model, source, limit=10**5)
  slow = exact.exact_search(model, source, matches, limit=10**5, general=True)
  np.testing.assert_array_equal(slow.counts, fast.counts)
  np.testing.assert_array_equal(slow.complete, fast.complete)
  np.testing.assert_allclose(slow.beams.score, fast.beams.score, atol=1e-4)
  assert fast.counts.max() > 1


@pytest.mark.parametrize("general", [False, True])
def test_a_limit_is_told(general):
  case = cases.random_case(1, order=2, arity=2, sentences=4, longest=5)
  model, source = cases.to_model(case, arity=2)
  matches, every, _ = exact.search_exactly(model, source, limit=10**5)
  few = exact.exact_search(model, source, matches, limit=3, general=general)
  assert every.complete.all() and not few.complete.all()
