"""Search errors: what a beam misses of the exact best."""

import numpy as np

from jaxmt.chart import exact, search_report
from tests.reference import chart_cases as cases


def test_errors_are_counted_over_what_exact_search_completed():
  errors = exact.search_errors(
    np.array([-1.0, -3.5, -9.0, -4.0]),
    np.array([-1.0, -3.0, -2.0, -4.0]),
    np.array([True, True, False, True]),
  )
  assert errors.sentences == 3
  np.testing.assert_allclose(errors.errors, 1 / 3)
  np.testing.assert_allclose(errors.mean, 0.5 / 3)
  assert errors.worst == 0.5


def test_a_wider_beam_misses_less():
  case = cases.random_case(
    5, order=2, arity=2, sentences=30, longest=5, rules=24
  )
  model, source = cases.to_model(case, arity=2)
  narrow, wide = search_report.search_error_report(
    model, source, sizes=[(1, 2), (24, 160)], limit=1 << 14
  )
  assert narrow[:2] == (1, 2)
  assert narrow[2].errors > wide[2].errors
  assert wide[2].errors <= 0.05
  assert narrow[2].sentences == wide[2].sentences > 10


def test_too_much_work_is_said_not_hidden():
  case = cases.random_case(
    5, order=3, arity=2, sentences=10, longest=6, rules=40
  )
  model, source = cases.to_model(case, arity=2)
  _, complete = search_report.exact_scores(model, source, limit=20)
  assert not complete.all()
