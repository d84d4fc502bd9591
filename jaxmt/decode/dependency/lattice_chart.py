"""Dependency trees over all paths of a lattice: best tree, sums, counts.

Eisner's parser, generalised from strings to lattices (Gimpel 2012, section
4.5.1): a path and a projective tree over its edges are found together. With
edges a, b and nodes u, v:

    CR(a, end(a)) = score(a)               CL(start(a), a) = 1
    J(a, b)  = ⊕_v CR(a, v) ⊗ CL(v, b)
    CR(a, v) = ⊕_b J(a, b) ⊗ right(a, b) ⊗ CR(b, v)
    CL(v, a) = ⊕_b CL(v, b) ⊗ J(b, a) ⊗ left(b, a)
    total    = ⊕_r ⊕_f CL(0, r) ⊗ root(r) ⊗ CR(r, f) ⊗ final(f)

`right(a, b)` is the arc from the head a to its dependent b, which follows it;
`left(a, b)` the arc from the head b to its dependent a. The kernel goes from
the last node to the first: CL of a node needs what starts at or after it, CR of
an edge what starts at or after its end. All inner loops run over consecutive
numbers: along nodes, or along those of a layer. Time is O(E²V), space
O(E² + EV).
"""

import dataclasses

import numpy as np

from jaxmt.decode.dependency.lattice import Lattice, longest_paths
from jaxmt.text.kernels import njit

_KINDS = {"max": 0, "log": 1, "counting": 2}
_MAX, _LOG, _COUNTING = 0, 1, 2
_WIDTH = 64  # most nodes of a layer
_BLOCK = 16  # edges whose rows are read together
# Sums may be taken in any order; there are no NaN, but infinities.
_FAST = {"nnan", "nsz", "reassoc", "contract"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArcScores:
  """Scores of the arcs of a lattice; -inf where one is not allowed.

  Attributes:
    right: heads before their dependents, float32 `[E, E]`: head, dependent.
    left: dependents before their heads, float32 `[E, E]`: dependent, head.
    root: of the root's arcs, float32 `[E]`.
  """

  right: np.ndarray
  left: np.ndarray
  root: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class PathTree:
  """A path and its dependency tree.

  Attributes:
    edges: lattice edges of the path, int32 `[n]`.
    heads: place on the path of each edge's head, -1 is the root, int32 `[n]`.
    score: of both.
  """

  edges: np.ndarray
  heads: np.ndarray
  score: float


def total(lattice: Lattice, arcs: ArcScores, *, semiring: str) -> float:
  """Returns the sum over all paths and trees.

  Args:
    lattice: the lattice.
    arcs: scores of arcs; for "counting", 1 where an arc is allowed, else 0.
    semiring: "max", "log" or "counting". The last one counts pairs of a path
      and a tree, whatever the scores of edges.
  """
  right, left, _ = _chart(lattice, arcs, semiring)
  return float(_goal(right, left, lattice, arcs, semiring))


def best_tree(lattice: Lattice, arcs: ArcScores) -> PathTree | None:
  """Returns the best path with its best tree; None if there is none."""
  right, left, joint = _chart(lattice, arcs, "max")
  score, root, last = _best_root(
    right, left, lattice.start, arcs.root, lattice.final
  )
  if root < 0:
    return None
  edges, heads = _trace(
    lattice.start, lattice.end, right, left, joint,
    arcs.right, arcs.left, root, last,
  )  # fmt: skip
  order = np.argsort(lattice.start[edges], kind="stable")
  place = np.empty(len(edges), np.int32)
  place[order] = np.arange(len(edges))
  heads = np.where(heads >= 0, place[heads], -1)[order].astype(np.int32)
  return PathTree(edges=edges[order], heads=heads, score=float(score))


def chart(lattice: Lattice, arcs: ArcScores):
  """Returns best scores: CR and CL `[E, V]`, J `[E, E]` (right, left one)."""
  return _chart(lattice, arcs, "max")


def _chart(lattice, arcs, semiring):
  kind = _KINDS[semiring]
  score = lattice.score
  if kind == _COUNTING:
    score = np.ones(len(lattice), np.float32)
  return _fill(
    lattice.start,
    lattice.end,
    score.astype(np.float32),
    np.ascontiguousarray(arcs.right, np.float32),
    np.ascontiguousarray(arcs.left, np.float32),
    longest_paths(lattice) >= 0,
    kind,
  )


@njit(fastmath=_FAST)
def _inner(one, other, low, high, kind):
  """⊕ of products of two rows between low and high."""
  if kind == _COUNTING:
    count = np.float32(0.0)
    for v in range(low, high):
      count += one[v] * other[v]
    return count
  best = np.float32(-np.inf)
  for v in range(low, high):
    value = one[v] + other[v]
    best = value if value > best else best
  if kind == _MAX or best == np.float32(-np.inf):
    return best
  mass = np.float32(0.0)
  for v in range(low, high):
    mass += np.exp(one[v] + other[v] - best)
  return best + np.log(mass)


@njit(fastmath=_FAST)
def _add(row, other, weight, low, high, kind):
  """Adds `weight ⊗ other` to a row between low and high."""
  if kind == _COUNTING:
    for v in range(low, high):
      row[v] += weight * other[v]
  elif kind == _MAX:
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
def _blend(sums, column, weight, width, kind):
  """Adds `weight ⊗ column` to the sums of some nodes."""
  if kind == _MAX:
    for u in range(width):
      value = weight + column[u]
      sums[u] = value if value > sums[u] else sums[u]
  elif kind == _COUNTING:
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
def _fill(start, end, score, right_arc, left_arc, reach, kind):
  """CR `[E, V]`, CL `[E, V]` by edge, and J `[E, E]` by (right, left).

  Nodes are taken in layers that no edge stays in: what ends or begins in one
  layer does not depend on each other, so that rows are read once for all.
  """
  edges, nodes = len(start), len(reach)
  zero = np.float32(0.0 if kind == _COUNTING else -np.inf)
  one = np.float32(1.0 if kind == _COUNTING else 0.0)
  right = np.full((edges, nodes), zero, np.float32)
  left = np.full((edges, nodes), zero, np.float32)
  joint = np.full((edges, edges), zero, np.float32)
  column = np.empty((edges, _WIDTH), np.float32)  # CL(node of the layer, .)
  # Dependents on the left of each edge, and J ⊗ left of each.
  count = np.zeros(edges, np.int64)
  dependent = np.empty((edges, edges), np.int32)
  with_left = np.empty((edges, edges), np.float32)
  # Edges by their ends; the first edge that starts at or after each node.
  by_end = np.argsort(end, kind="mergesort")
  first = np.searchsorted(start, np.arange(nodes + 1))
  last, stop = edges, nodes
  while stop > 0:
    layer = _layer(start, end, first, stop)
    width, low = stop - layer, first[layer]
    # CL(node, b) of all edges b from here on, in the order of their starts.
    for b in range(low, edges):
      sums = column[b]
      for u in range(width):
        sums[u] = zero
      if start[b] < stop:
        sums[start[b] - layer] = one
      else:
        for k in range(count[b]):
          if dependent[b, k] >= low:
            other = column[dependent[b, k]]
            _blend(sums, other, with_left[b, k], width, kind)
      for u in range(width):
        left[b, layer + u] = sums[u]
    # CR(a, .) of the edges that end here.
    before = last
    while last > 0 and end[by_end[last - 1]] >= layer:
      last -= 1
      right[by_end[last], end[by_end[last]]] = score[by_end[last]]
    # Blocks of right edges, so that their rows and those of left ones stay
    # near; each left edge takes the right ones in their order.
    for block in range(low, edges, _BLOCK):
      for place in range(last, before):
        a = by_end[place]
        node = end[a]
        for b in range(block, min(block + _BLOCK, edges)):
          # No arc may link them, or no path leads from a to b.
          if right_arc[a, b] == zero and left_arc[a, b] == zero:
            continue
          if start[b] < node or not reach[node, start[b]]:
            continue
          value = _inner(right[a], left[b], node, start[b] + 1, kind)
          if value == zero:
            continue
          joint[b, a] = value
          if left_arc[a, b] != zero:
            dependent[b, count[b]] = a
            with_left[b, count[b]] = (
              value * left_arc[a, b]
              if kind == _COUNTING
              else value + left_arc[a, b]
            )
            count[b] += 1
          if right_arc[a, b] != zero:
            if kind == _COUNTING:
              value *= right_arc[a, b]
            else:
              value += right_arc[a, b]
            _add(right[a], right[b], value, end[b], nodes, kind)
    stop = layer
  return right, left, joint


def _goal(right, left, lattice, arcs, semiring):
  """The sum over roots and final nodes."""
  final = lattice.final
  if semiring == "counting":
    ends = right.astype(np.float64) @ (final > -np.inf)
    return np.sum(left[:, 0] * arcs.root * ends)
  values = left[:, :1] + arcs.root[:, None] + right + final
  values = values.astype(np.float64)
  if semiring == "max":
    return values.max(initial=-np.inf)
  best = values.max(initial=-np.inf)
  if best == -np.inf:
    return best
  return best + np.log(np.exp(values - best).sum())


@njit
def _best_root(right, left, start, root, final):
  """(score, edge, final node) of the best root; edge -1 if there is none."""
  best, edge, node = np.float32(-np.inf), -1, -1
  for r in range(len(start)):
    base = left[r, 0] + root[r]
    for v in range(len(final)):
      value = base + right[r, v] + final[v]
      if value > best:
        best, edge, node = value, r, v
  return best, edge, node


@njit
def _trace(start, end, right, left, joint, right_arc, left_arc, root, last):
  """Edges and heads (places in the same arrays) of the best derivation."""
  edges = len(start)
  path = np.full(edges, -1, np.int32)
  heads = np.full(edges, -1, np.int64)
  path[0], size = root, 1
  # Items to expand: side (1 right, 0 left), place of the edge, node.
  side = np.zeros(3 * edges + 3, np.int64)
  place = np.zeros(3 * edges + 3, np.int64)
  node = np.zeros(3 * edges + 3, np.int64)
  side[1], node[0], node[1], top = 1, 0, last, 2
  while top > 0:
    top -= 1
    head, v, rightward = place[top], node[top], side[top] == 1
    a = path[head]
    if v == (end[a] if rightward else start[a]):
      continue  # no more dependents on this side
    # The outermost dependent b: joined at J, with the rest beyond it.
    best, b = np.float32(-np.inf), -1
    for other in range(edges):
      if rightward:
        value = joint[other, a] + right_arc[a, other] + right[other, v]
      else:
        value = left[other, v] + joint[a, other] + left_arc[other, a]
      if value > best:
        best, b = value, other
    child = size
    path[child], heads[child] = b, head
    size += 1
    # Where CR of the left one of both meets CL of the right one.
    one, two = (a, b) if rightward else (b, a)
    best, middle = np.float32(-np.inf), -1
    for w in range(end[one], start[two] + 1):
      value = right[one, w] + left[two, w]
      if value > best:
        best, middle = value, w
    side[top], place[top], node[top] = (1 if rightward else 0), child, v
    side[top + 1], place[top + 1], node[top + 1] = (
      1,
      (head if rightward else child),
      middle,
    )
    side[top + 2], place[top + 2], node[top + 2] = (
      0,
      (child if rightward else head),
      middle,
    )
    top += 3
  return path[:size].copy(), heads[:size].copy()
