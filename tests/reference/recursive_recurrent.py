"""A recursive recurrent network over one derivation, written with recursion."""

import numpy as np


def clip(values):
  return np.clip(values, -1.0, 1.0)


def top(network, tree):
  """`(x, s)` of a derivation, all sums by hand.

  A tree is `("leaf", pair, x)`, or `("join", left, right, x of the joint)` with
  the parts in target order.
  """
  if tree[0] == "leaf":
    return tree[2], clip(network.leaves[tree[1]])
  (x_left, s_left), (x_right, s_right) = (
    top(network, tree[1]),
    top(network, tree[2]),
  )
  whole = np.concatenate([x_left, s_left, x_right, s_right])
  return x_left + x_right + tree[3], clip(whole @ network.encoder)
