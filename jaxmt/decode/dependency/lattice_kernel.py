"""Host kernel of `lattice_chart`: the items of all trees over all paths.

The kernel goes from the last node to the first: CL of a node needs what starts
at or after it, CR of an edge what starts at or after its end. All inner loops
run over consecutive numbers: along nodes, or along those of a layer. In the max
semiring, whose sums may be taken in any order, four edges go through a row
together.

E: edges. V: nodes.
"""

import numpy as np

from jaxmt.text.kernels import njit

MAX, LOG, COUNTING = 0, 1, 2
_WIDTH = 64  # most nodes of a layer
_BLOCK = 16  # edges whose rows are read together
# Sums may be taken in any order; there are no NaN, but infinities.
_FAST = {"nnan", "nsz", "reassoc", "contract"}


@njit(fastmath=_FAST)
def _inner(one, other, low, high, kind):
  """⊕ of products of two rows between low and high."""
  if kind == COUNTING:
    count = np.float32(0.0)
    for v in range(low, high):
      count += one[v] * other[v]
    return count
  best = np.float32(-np.inf)
  for v in range(low, high):
    value = one[v] + other[v]
    best = value if value > best else best
  if kind == MAX or best == np.float32(-np.inf):
    return best
  mass = np.float32(0.0)
  for v in range(low, high):
    mass += np.exp(one[v] + other[v] - best)
  return best + np.log(mass)


@njit(fastmath=_FAST)
def _add(row, other, weight, low, high, kind):
  """Adds `weight ⊗ other` to a row between low and high."""
  if kind == COUNTING:
    for v in range(low, high):
      row[v] += weight * other[v]
  elif kind == MAX:
    for v in range(low, high):
      value = weight + other[v]
      row[v] = value if value > row[v] else row[v]
  else:
    for v in range(low, high):
      value = weight + other[v]
      if value > np.float32(-np.inf):
        most = max(value, row[v])
        least = min(value, row[v])
        row[v] = most + np.log1p(np.exp(least - most))


@njit(fastmath=_FAST)
def _inner_four(row, others, edges, low, high, out):
  """Sets best sums of a row and of those of four edges, low to high."""
  one, two = others[edges[0]], others[edges[1]]
  three, four = others[edges[2]], others[edges[3]]
  first = second = third = fourth = np.float32(-np.inf)
  for v in range(low, high):
    value = row[v]
    sums = value + one[v], value + two[v], value + three[v], value + four[v]
    first = sums[0] if sums[0] > first else first
    second = sums[1] if sums[1] > second else second
    third = sums[2] if sums[2] > third else third
    fourth = sums[3] if sums[3] > fourth else fourth
  out[0], out[1], out[2], out[3] = first, second, third, fourth


@njit(fastmath=_FAST)
def _add_four(row, others, edges, weights, low, high):
  """Adds `weight ⊗ other` of four edges to a row, in the max semiring."""
  one, two = others[edges[0]], others[edges[1]]
  three, four = others[edges[2]], others[edges[3]]
  first, second, third, fourth = weights[0], weights[1], weights[2], weights[3]
  for v in range(low, high):
    best = row[v]
    sums = first + one[v], second + two[v], third + three[v], fourth + four[v]
    best = sums[0] if sums[0] > best else best
    best = sums[1] if sums[1] > best else best
    best = sums[2] if sums[2] > best else best
    row[v] = sums[3] if sums[3] > best else best


@njit(fastmath=_FAST)
def _blend(sums, column, weight, width, kind):
  """Adds `weight ⊗ column` to the sums of some nodes."""
  if kind == MAX:
    for u in range(width):
      value = weight + column[u]
      sums[u] = value if value > sums[u] else sums[u]
  elif kind == COUNTING:
    for u in range(width):
      sums[u] += weight * column[u]
  else:
    for u in range(width):
      value = weight + column[u]
      if value > np.float32(-np.inf):
        most = max(value, sums[u])
        least = min(value, sums[u])
        sums[u] = most + np.log1p(np.exp(least - most))


@njit
def _layer(start, end, first, stop):
  """The lowest node from which on no edge ends before `stop`."""
  low = stop - 1
  while low > 0 and stop - low < _WIDTH:
    for edge in range(first[low - 1], first[low]):
      if end[edge] < stop:
        return low
    low -= 1
  return low


@njit(fastmath=_FAST)
def _left_sides(
  start, layer, stop, low, dependents, joined, count, column, left, kind
):
  """Sets CL(node, b) of the nodes of a layer, in the order of their starts.

  Args:
    start: node that each edge leaves.
    layer: the first node of the layer.
    stop: one more than the last.
    low: the first edge that leaves the layer or what follows it.
    dependents: on the left of each edge, `[E, E]`.
    joined: J ⊗ left of each.
    count: how many there are.
    column: work space, `[E, _WIDTH]`.
    left: CL, `[E, V]`, changed.
    kind: of the semiring.
  """
  zero = np.float32(0.0 if kind == COUNTING else -np.inf)
  one = np.float32(1.0 if kind == COUNTING else 0.0)
  width = stop - layer
  lanes = min((width + 7) // 8 * 8, _WIDTH)  # whole vectors
  four = np.empty(4, np.int64)
  weights = np.empty(4, np.float32)
  for b in range(low, len(start)):
    sums = column[b]
    for u in range(lanes):
      sums[u] = zero
    if start[b] < stop:
      sums[start[b] - layer] = one
    else:
      size = 0
      for k in range(count[b]):
        if dependents[b, k] < low:
          continue
        if kind != MAX:
          _blend(sums, column[dependents[b, k]], joined[b, k], width, kind)
          continue
        four[size], weights[size] = dependents[b, k], joined[b, k]
        size += 1
        if size == 4:
          _add_four(sums, column, four, weights, 0, lanes)
          size = 0
      for k in range(size):
        _blend(sums, column[four[k]], weights[k], lanes, kind)
    for u in range(width):
      left[b, layer + u] = sums[u]


@njit(fastmath=_FAST)
def _right_sides(
  start, end, heads, low, right_arc, left_arc, reach,
  dependents, joined, count, right, left, joint, kind,
):  # fmt: skip
  """Sets CR(a, .) and J(a, .) of the edges that end in a layer.

  Right edges are taken by blocks, so that their rows and those of left ones
  stay near; each left edge takes the right ones in their order, and four of
  them together if none of them ends before another one starts.

  Args:
    start: node that each edge leaves.
    end: node that it leads to.
    heads: the edges that end in the layer.
    low: the first edge that leaves the layer or what follows it.
    right_arc: scores.
    left_arc: scores.
    reach: whether a path leads from node to node.
    dependents: on the left of each edge, changed.
    joined: J ⊗ left of each, changed.
    count: how many there are, changed.
    right: CR, changed.
    left: CL.
    joint: J, changed.
    kind: of the semiring.
  """
  edges, nodes = right.shape
  zero = np.float32(0.0 if kind == COUNTING else -np.inf)
  four = np.empty(4, np.int64)
  values = np.empty(4, np.float32)
  for block in range(low, edges, _BLOCK):
    high = min(block + _BLOCK, edges)
    for a in heads:
      node = end[a]
      b = block
      while b < high:
        # Up to four edges that arcs may link with a, where a path leads.
        size, soonest = 0, nodes
        while b < high and size < 4 and start[b] < soonest:
          if (
            (right_arc[a, b] != zero or left_arc[a, b] != zero)
            and start[b] >= node
            and reach[node, start[b]]
          ):
            four[size] = b
            size += 1
            soonest = min(soonest, end[b])
          b += 1
        if size == 0:
          continue
        if kind == MAX:
          for place in range(size, 4):
            four[place] = four[0]
          shared = start[four[0]] + 1
          _inner_four(right[a], left, four, node, shared, values)
          for place in range(1, size):
            other = four[place]
            beyond = _inner(
              right[a], left[other], shared, start[other] + 1, kind
            )
            values[place] = max(values[place], beyond)
        else:
          for place in range(size):
            other = four[place]
            values[place] = _inner(
              right[a], left[other], node, start[other] + 1, kind
            )
        for place in range(size):
          other, value = four[place], values[place]
          if value == zero:
            continue
          joint[other, a] = value
          if left_arc[a, other] != zero:
            dependents[other, count[other]] = a
            joined[other, count[other]] = (
              value * left_arc[a, other]
              if kind == COUNTING
              else value + left_arc[a, other]
            )
            count[other] += 1
          if kind == MAX:
            values[place] = value + right_arc[a, other]
          elif right_arc[a, other] != zero:
            if kind == COUNTING:
              value *= right_arc[a, other]
            else:
              value += right_arc[a, other]
            _add(right[a], right[other], value, end[other], nodes, kind)
        if kind == MAX:
          for place in range(size, 4):
            values[place] = zero
          # Before its end the row of an edge adds nothing.
          _add_four(right[a], right, four, values, soonest, nodes)


@njit(fastmath=_FAST)
def fill(start, end, score, right_arc, left_arc, reach, kind):
  """Returns CR `[E, V]`, CL `[E, V]` by edge, and J `[E, E]` by (right, left).

  Nodes are taken in layers that no edge stays in: what ends or begins in one
  layer does not depend on each other, so that rows are read once for all.
  """
  edges, nodes = len(start), len(reach)
  zero = np.float32(0.0 if kind == COUNTING else -np.inf)
  right = np.full((edges, nodes), zero, np.float32)
  left = np.full((edges, nodes), zero, np.float32)
  joint = np.full((edges, edges), zero, np.float32)
  column = np.empty((edges, _WIDTH), np.float32)  # CL(node of the layer, .)
  # Dependents on the left of each edge, and J ⊗ left of each.
  count = np.zeros(edges, np.int64)
  dependents = np.empty((edges, edges), np.int32)
  joined = np.empty((edges, edges), np.float32)
  # Edges by their ends; the first edge that starts at or after each node.
  by_end = np.argsort(end, kind="mergesort")
  first = np.searchsorted(start, np.arange(nodes + 1))
  last, stop = edges, nodes
  while stop > 0:
    layer = _layer(start, end, first, stop)
    low = first[layer]
    _left_sides(
      start, layer, stop, low, dependents, joined, count, column, left, kind
    )
    before = last
    while last > 0 and end[by_end[last - 1]] >= layer:
      last -= 1
      right[by_end[last], end[by_end[last]]] = score[by_end[last]]
    _right_sides(
      start, end, by_end[last:before], low, right_arc, left_arc, reach,
      dependents, joined, count, right, left, joint, kind,
    )  # fmt: skip
    stop = layer
  return right, left, joint
