"""Inside and outside passes over forests on the host, compiled for CPUs.

The max and the log semiring only, in float64. `inside_outside` is the same as a
device program, with gradients and for any semiring.

Nodes stand in topological order, so the inside pass is a loop over nodes and
their edges, and the outside pass is the loop backwards. An edge of score -inf
is not used.
"""

import numpy as np

from jaxmt.text.kernels import njit


@njit
def inside_max(edge_offsets, tails, scores):
  """Finds the best derivation below each node.

  Args:
    edge_offsets: `Forest.edge_offsets`.
    tails: `Forest.tails`.
    scores: float64 `[E]`.

  Returns:
    `(inside [N], back int64 [N], through [E])`: the score of the best
    derivation of each node, the edge at its top (the first of equal ones, -1 if
    there is no derivation), and the best score of each edge with its tails.
  """
  last = np.int64(len(edge_offsets) - 1)
  return inside_max_between(np.int64(0), last, edge_offsets, tails, scores)


@njit
def inside_max_between(first, last, edge_offsets, tails, scores):
  """Finds the best derivation below each of the nodes of some sentences.

  Args:
    first: the first node.
    last: one past the last node.
    edge_offsets: `Forest.edge_offsets`.
    tails: `Forest.tails`.
    scores: float64 `[E]`.

  Returns:
    As `inside_max`, for these nodes and their edges only.
  """
  base = edge_offsets[first]
  inside = np.empty(last - first)
  back = np.empty(last - first, np.int64)
  through = np.empty(edge_offsets[last] - base)
  for node in range(first, last):
    top, best = -np.inf, np.int64(-1)
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      value = scores[edge]
      for part in range(tails.shape[1]):
        tail = tails[edge, part]
        if tail < 0:
          break
        value += inside[tail - first]
      through[edge - base] = value
      if value > top:
        top, best = value, np.int64(edge)
    inside[node - first], back[node - first] = top, best
  return inside, back, through


@njit
def inside_log(edge_offsets, tails, scores):
  """Sums over the derivations below each node.

  Args:
    edge_offsets: `Forest.edge_offsets`.
    tails: `Forest.tails`.
    scores: float64 `[E]`.

  Returns:
    `(inside [N], share [E], through [E])`: the log of the sum of `exp(score)`
    over the derivations of each node, the share that each edge has in its
    head's sum, and the log of the sum of each edge with its tails.
  """
  nodes = len(edge_offsets) - 1
  inside = np.empty(nodes)
  share = np.empty(len(scores))
  through = np.empty(len(scores))
  for node in range(nodes):
    low, high = edge_offsets[node], edge_offsets[node + 1]
    # The largest term, so that no exponential overflows.
    top = -np.inf
    for edge in range(low, high):
      value = scores[edge]
      for part in range(tails.shape[1]):
        tail = tails[edge, part]
        if tail < 0:
          break
        value += inside[tail]
      through[edge] = value
      top = value if value > top else top
    if top == -np.inf:
      share[low:high] = 0.0
      inside[node] = top
      continue
    total = 0.0
    for edge in range(low, high):
      share[edge] = np.exp(through[edge] - top)
      total += share[edge]
    inside[node] = top + np.log(total)
    for edge in range(low, high):
      share[edge] /= total
  return inside, share, through


@njit
def outside_max(node_offsets, edge_offsets, tails, inside, through):
  """Finds the best surroundings of each node.

  Args:
    node_offsets: `Forest.node_offsets`.
    edge_offsets: `Forest.edge_offsets`.
    tails: `Forest.tails`.
    inside: from `inside_max`, `[N]`.
    through: from `inside_max`, `[E]`.

  Returns:
    `(outside [N], back int64 [N], whole [E])`: the best score of what is around
    each node, the edge by which it is used there (-1 for roots and for nodes
    that no derivation uses), and the score of the best derivation of the
    sentence that uses each edge.
  """
  nodes = len(edge_offsets) - 1
  outside = np.full(nodes, -np.inf)
  back = np.full(nodes, -1, np.int64)
  whole = np.full(len(through), -np.inf)
  for row in range(len(node_offsets) - 1):
    if node_offsets[row + 1] > node_offsets[row]:
      outside[node_offsets[row + 1] - 1] = 0.0
  for node in range(nodes - 1, -1, -1):
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      if through[edge] == -np.inf or outside[node] == -np.inf:
        continue
      whole[edge] = through[edge] + outside[node]
      for part in range(tails.shape[1]):
        tail = tails[edge, part]
        if tail < 0:
          break
        rest = whole[edge] - inside[tail]
        if rest > outside[tail]:
          outside[tail] = rest
          back[tail] = edge
  return outside, back, whole


@njit
def outside_log(node_offsets, edge_offsets, tails, inside, through):
  """Sums over the surroundings of each node.

  Args:
    node_offsets: `Forest.node_offsets`.
    edge_offsets: `Forest.edge_offsets`.
    tails: `Forest.tails`.
    inside: from `inside_log`, `[N]`.
    through: from `inside_log`, `[E]`.

  Returns:
    The log of the sum of `exp(score)` over what can be around each node, `[N]`.
  """
  nodes = len(edge_offsets) - 1
  outside = np.full(nodes, -np.inf)
  for row in range(len(node_offsets) - 1):
    if node_offsets[row + 1] > node_offsets[row]:
      outside[node_offsets[row + 1] - 1] = 0.0
  for node in range(nodes - 1, -1, -1):
    if outside[node] == -np.inf:
      continue
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      if through[edge] == -np.inf:
        continue
      for part in range(tails.shape[1]):
        tail = tails[edge, part]
        if tail < 0:
          break
        rest = through[edge] + outside[node] - inside[tail]
        outside[tail] = np.logaddexp(outside[tail], rest)
  return outside


@njit
def spread_mass(node_offsets, edge_offsets, tails, share):
  """Passes probability mass 1 from each root down to the edges.

  The outside pass of `inside_log` in normalised form: one multiplication for
  each edge.

  Args:
    node_offsets: `Forest.node_offsets`.
    edge_offsets: `Forest.edge_offsets`.
    tails: `Forest.tails`.
    share: from `inside_log`, `[E]`.

  Returns:
    The posterior of each edge, `[E]`.
  """
  nodes = len(edge_offsets) - 1
  mass = np.zeros(nodes)
  out = np.empty(len(share))
  for row in range(len(node_offsets) - 1):
    if node_offsets[row + 1] > node_offsets[row]:
      mass[node_offsets[row + 1] - 1] = 1.0
  for node in range(nodes - 1, -1, -1):
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      out[edge] = share[edge] * mass[node]
      for part in range(tails.shape[1]):
        tail = tails[edge, part]
        if tail < 0:
          break
        mass[tail] += out[edge]
  return out
