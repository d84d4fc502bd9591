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
`left(a, b)` the arc from the head b to its dependent a. Time is O(E²V), space
O(E² + EV); `lattice_kernel` does it.
"""

import dataclasses

import numpy as np

from jaxmt.decode.dependency import lattice_kernel
from jaxmt.decode.dependency.lattice import Lattice, longest_paths
from jaxmt.text.kernels import njit

_KINDS = {
  "max": lattice_kernel.MAX,
  "log": lattice_kernel.LOG,
  "counting": lattice_kernel.COUNTING,
}


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
  if kind == lattice_kernel.COUNTING:
    score = np.ones(len(lattice), np.float32)
  return lattice_kernel.fill(
    lattice.start,
    lattice.end,
    score.astype(np.float32),
    np.ascontiguousarray(arcs.right, np.float32),
    np.ascontiguousarray(arcs.left, np.float32),
    longest_paths(lattice) >= 0,
    kind,
  )


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
