"""OWL-QN: L-BFGS for a smooth loss plus an L1 penalty.

Andrew and Gao (2007): the pseudo-gradient picks an orthant, the direction is
L-BFGS' forced to descend in it, and steps that would leave the orthant stop at
zero. Weights that do not pay for the penalty are exactly 0.
"""

from collections.abc import Callable

import numpy as np

# Losses come in float32: beyond its precision there is nothing to gain.
_TINY = 2e-7
_PATIENCE = 3
_HALVINGS = 15
_DOUBLINGS = 10


def minimise(
  evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]],
  weights: np.ndarray,
  *,
  l1: float,
  steps: int,
  memory: int = 10,
) -> list[np.ndarray]:
  """Minimises `loss(w) + l1 * sum |w|`.

  Args:
    evaluate: the smooth loss and its gradient.
    weights: where to start, `[M]`.
    l1: strength of the penalty; 0 gives plain L-BFGS.
    steps: most steps.
    memory: pairs kept.

  Returns:
    The iterates, without the start; fewer than `steps` when converged.
  """
  iterates: list[np.ndarray] = []
  pairs: list[tuple[np.ndarray, np.ndarray]] = []
  loss, gradient = evaluate(weights)
  total = loss + l1 * np.abs(weights).sum()
  idle = 0
  while len(iterates) < steps and idle < _PATIENCE:
    pseudo = pseudo_gradient(weights, gradient, l1)
    if np.abs(pseudo).max(initial=0.0) < 1e-7:
      break
    direction = -_two_loop(pseudo, pairs)
    if l1 > 0:
      direction[direction * pseudo >= 0] = 0.0
    if float(direction @ pseudo) >= 0.0:
      direction, pairs = -pseudo, []
    orthant = np.where(weights != 0, np.sign(weights), -np.sign(pseudo))
    step = 1.0 if pairs else min(1.0, 1.0 / np.linalg.norm(pseudo))
    result = _line_search(
      evaluate, weights, total, pseudo, direction, step, orthant, l1
    )
    if result is None:
      if not pairs:
        break
      pairs = []  # a bad model of the curvature: try the slope itself
      continue
    point, new_total, new_gradient = result
    change, turn = point - weights, new_gradient - gradient
    if float(change @ turn) > 1e-12:
      pairs = [*pairs[-memory + 1 :], (change, turn)]
    gained = total - new_total
    idle = idle + 1 if gained <= _TINY * max(1.0, abs(total)) else 0
    weights, gradient, total = point, new_gradient, new_total
    iterates.append(weights)
  return iterates


def _line_search(
  evaluate, weights, total, pseudo, direction, step, orthant, l1
):
  """Halves the step until it pays, or doubles it while the slope stays steep.

  Returns:
    `(weights, total, gradient)` of the step taken; None if none pays.
  """

  def attempt(step):
    moved = weights + step * direction
    if l1 > 0:
      moved[moved * orthant < 0] = 0.0
    loss, gradient = evaluate(moved)
    return moved, loss + l1 * np.abs(moved).sum(), gradient

  def pays(moved, new_total):
    return new_total <= total + 1e-4 * float(pseudo @ (moved - weights))

  best = attempt(step)
  if pays(best[0], best[1]):
    slope = float(direction @ pseudo)
    for _ in range(_DOUBLINGS):
      # The curvature condition of Wolfe: flat enough, so far enough.
      if l1 > 0 or float(best[2] @ direction) >= 0.9 * slope:
        break
      step *= 2.0
      further = attempt(step)
      if further[1] >= best[1]:
        break
      best = further
    return best
  for _ in range(_HALVINGS):
    step *= 0.5
    best = attempt(step)
    if pays(best[0], best[1]):
      return best
  return None


def pseudo_gradient(
  weights: np.ndarray, gradient: np.ndarray, l1: float
) -> np.ndarray:
  """Returns the subgradient of least norm of loss + l1 |w|."""
  at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
  return np.where(weights != 0, gradient + l1 * np.sign(weights), at_zero)


def _two_loop(vector, pairs):
  """The inverse Hessian estimate times a vector."""
  out = vector.copy()
  alphas = []
  for change, turn in reversed(pairs):
    alpha = float(change @ out) / float(change @ turn)
    alphas.append(alpha)
    out -= alpha * turn
  if pairs:
    change, turn = pairs[-1]
    out *= float(change @ turn) / float(turn @ turn)
  for (change, turn), alpha in zip(pairs, reversed(alphas), strict=True):
    out += (alpha - float(turn @ out) / float(change @ turn)) * change
  return out
