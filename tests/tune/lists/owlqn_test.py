"""OWL-QN against the lasso."""

import numpy as np

from jaxmt.tune.lists import owlqn


def test_owlqn_solves_the_lasso():
  """Separable quadratic: the solution is soft thresholding."""
  target = np.array([3.0, -0.4, 0.1, -2.0, 0.0])

  def evaluate(w):
    return 0.5 * float((w - target) @ (w - target)), w - target

  found = owlqn.minimise(evaluate, np.zeros(5), l1=0.5, steps=50)
  np.testing.assert_allclose(found[-1], [2.5, 0, 0, -1.5, 0], atol=1e-6)
  assert (found[-1][[1, 2, 4]] == 0).all()
  found = owlqn.minimise(evaluate, np.zeros(5), l1=0.0, steps=50)
  np.testing.assert_allclose(found[-1], target, atol=1e-6)
