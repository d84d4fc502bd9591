"""The best derivation of one sentence, for learners that go one by one."""

import numpy as np

from jaxmt.text.kernels import njit


@njit
def workspace(node_offsets):
  """Returns room for `best_derivation`: (inside, back, stack)."""
  most = 1
  for row in range(len(node_offsets) - 1):
    most = max(most, node_offsets[row + 1] - node_offsets[row])
  return np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)


@njit
def best_derivation(low, high, edge_offsets, tails, values, first, room, out):
  """Finds the best derivation of one sentence; the first of equal ones.

  Args:
    low: its first node.
    high: one past its last, the root.
    edge_offsets: of all nodes.
    tails: of all edges.
    values: what each of its edges adds, from edge `first` on.
    first: its first edge.
    room: from `workspace`.
    out: gets the edges of the derivation; as long as it needs.

  Returns:
    `(out, number of edges)`: `out` itself, or a longer array.
  """
  inside, back, stack = room
  arity = tails.shape[1]
  for node in range(low, high):
    inside[node - low], back[node - low] = -np.inf, -1
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      value = values[edge - first]
      for part in range(arity):
        if tails[edge, part] < 0:
          break
        value += inside[tails[edge, part] - low]
      if value > inside[node - low]:
        inside[node - low], back[node - low] = value, edge
  # Down from the root. A node may be used several times, so `stack` may grow.
  count, top = 0, 1
  stack[0] = high - 1
  while top:
    top -= 1
    edge = back[stack[top] - low]
    if count == len(out):
      out = np.concatenate((out, np.empty_like(out)))
    out[count] = edge
    count += 1
    if top + arity > len(stack):
      stack = np.concatenate((stack, np.empty(arity, np.int64)))
    for part in range(arity):
      if tails[edge, part] < 0:
        break
      stack[top] = tails[edge, part]
      top += 1
  return out, count
