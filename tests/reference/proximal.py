"""Proximal updates by looking for the minimum of what defines them."""

import numpy as np


def minimiser(objective, low=-8.0, high=8.0):
  """The least point of a convex function of one number, by ternary search."""
  for _ in range(200):
    left, right = low + (high - low) / 3, high - (high - low) / 3
    if objective(left) <= objective(right):
      high = right
    else:
      low = left
  return (low + high) / 2


def fobos(start, gradients, *, rates, l1, l2):
  """Weights after each update; each coordinate by itself."""
  start, gradients = np.float64(start), np.float64(gradients)
  weights = [float(value) for value in start]
  squares = [0.0] * len(weights)
  out = []
  for gradient, rate in zip(gradients, rates, strict=True):
    for n, slope in enumerate(gradient):
      squares[n] += slope**2
      pace = rate / (np.sqrt(squares[n]) + 1e-8)
      middle = weights[n] - pace * slope
      weights[n] = minimiser(
        lambda w, m=middle, p=pace, c=start[n]: (
          (w - m) ** 2 / 2 + p * (l1 * abs(w) + l2 * (w - c) ** 2 / 2)
        )
      )
    out.append(list(weights))
  return np.array(out)


def rda(start, gradients, *, rate, l1):
  """Weights after each update; each coordinate by itself."""
  start, gradients = np.float64(start), np.float64(gradients)
  out = []
  for t in range(1, len(gradients) + 1):
    mean = np.mean(gradients[:t], axis=0)
    out.append(
      [
        minimiser(
          lambda w, g=g, c=c, t=t: (
            g * w + l1 * abs(w) + (w - c) ** 2 / (2 * rate * np.sqrt(t))
          )
        )
        for g, c in zip(mean, start, strict=True)
      ]
    )
  return np.array(out)
