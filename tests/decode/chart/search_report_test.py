"""Search errors: what a beam misses of the exact best."""

import dataclasses

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.chart import exact, search_report
from jaxmt.decode.chart import exact as exact_decoder
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
  rows = search_report.as_rows([narrow, wide])
  assert [(row["beam"], row["pop"]) for row in rows] == [(1, 2), (24, 160)]
  errors = narrow[2]
  assert rows[0]["missed %"] == round(100 * errors.errors, 2)
  assert rows[0]["mean shortfall"] <= rows[0]["if missed"] <= rows[0]["worst"]


def test_too_much_work_is_said_not_hidden():
  case = cases.random_case(
    5, order=3, arity=2, sentences=10, longest=6, rules=40
  )
  model, source = cases.to_model(case, arity=2)
  _, complete = search_report.exact_scores(model, source, limit=20)
  assert not complete.all()
  none = search_report.search_error_report(
    model, source, sizes=[(2, 4)], limit=0
  )
  assert none[0][2] == exact.SearchErrors(
    sentences=0, errors=0.0, mean=0.0, worst=0.0
  )


def test_all_target_sides_without_limits():
  case = cases.random_case(
    5, order=2, arity=2, sentences=20, longest=3, rules=60
  )
  whole, source = cases.to_model(case, arity=2)
  limits = dataclasses.replace(whole.limits, targets=1)
  few = dataclasses.replace(whole, limits=limits)
  few = models.with_weights(few, few.weights)
  limited, _ = search_report.exact_scores(few, source)
  want, complete = search_report.exact_scores(whole, source)
  assert complete.all() and (limited < want - 1e-3).any()
  lifted = exact_decoder.without_limits(few)
  got, _ = search_report.exact_scores(lifted, source)
  np.testing.assert_array_equal(got, want)
