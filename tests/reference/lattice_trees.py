"""All paths of a lattice, with all projective trees over their edges."""

import numpy as np

from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.dependency.lattice_chart import ArcScores
from tests.reference import dependency_trees


def paths(lattice):
  """Every path from node 0 to a final node, as lists of edges."""
  found = []

  def go(node, path):
    if path and lattice.final[node] > -np.inf:
      found.append(path)
    for edge in range(len(lattice)):
      if lattice.start[edge] == node:
        go(lattice.end[edge], [*path, edge])

  go(0, [])
  return found


def derivations(lattice, arcs):
  """Yields (path, heads, score) of everything that is allowed."""
  for path in paths(lattice):
    base = float(sum(lattice.score[edge] for edge in path))
    base += float(lattice.final[lattice.end[path[-1]]])
    for heads in dependency_trees.projective_trees(len(path)):
      score = base
      for place, head in enumerate(heads):
        child = path[place]
        if head < 0:
          score += float(arcs.root[child])
        elif head < place:
          score += float(arcs.right[path[head], child])
        else:
          score += float(arcs.left[child, path[head]])
      if score > -np.inf:
        yield path, heads, score


def items(lattice, arcs, plus):
  """Sums of all items, one at a time: CR and CL `[E, V]`, J `[E, E]`.

  Args:
    lattice: the lattice.
    arcs: scores.
    plus: of two logarithms: `max` or `np.logaddexp`.
  """
  edges, nodes = len(lattice), len(lattice.final)
  right = np.full((edges, nodes), -np.inf)
  left = np.full((edges, nodes), -np.inf)
  joint = np.full((edges, edges), -np.inf)
  order = np.argsort(lattice.end, kind="stable")[::-1]
  for u in range(nodes - 1, -1, -1):
    for b in range(edges):
      if lattice.start[b] == u:
        left[b, u] = 0.0
      for c in range(edges) if lattice.start[b] > u else ():
        more = left[c, u] + joint[b, c] + arcs.left[c, b]
        left[b, u] = plus(left[b, u], more)
    for a in order[lattice.end[order] == u]:
      right[a, u] = lattice.score[a]
      for b in range(edges):
        if lattice.start[b] < u:
          continue
        if arcs.left[a, b] == arcs.right[a, b] == -np.inf:
          continue
        for v in range(u, lattice.start[b] + 1):
          joint[b, a] = plus(joint[b, a], right[a, v] + left[b, v])
        for v in range(nodes):
          more = joint[b, a] + arcs.right[a, b] + right[b, v]
          right[a, v] = plus(right[a, v], more)
  return right, left, joint


def random_lattice(rng, *, nodes, edges, forbidden=0.0):
  """A lattice with some unreachable parts, and scores of its arcs."""
  start = np.sort(rng.integers(0, nodes - 1, edges)).astype(np.int32)
  reach = np.minimum(start + rng.integers(1, 3, edges), nodes - 1)
  final = np.full(nodes, -np.inf, np.float32)
  final[-1] = 0.25
  if nodes > 3:
    final[-2] = rng.normal()
  draw = lambda *shape: np.where(
    rng.random(shape) < forbidden, -np.inf, rng.normal(size=shape)
  ).astype(np.float32)
  begin = rng.integers(0, 6, edges)
  lattice = Lattice(
    start=start,
    end=reach.astype(np.int32),
    score=rng.normal(size=edges).astype(np.float32),
    final=final,
    words=rng.integers(1, 4, edges).astype(np.int32),
    span=np.stack([begin, begin + rng.integers(1, 3, edges)], 1),
  )
  arcs = ArcScores(
    right=draw(edges, edges), left=draw(edges, edges), root=draw(edges)
  )
  return lattice, arcs


def string_lattice(rng, size):
  """A lattice with a single path, and its arcs as `parse.eisner` has them."""
  table = rng.normal(size=(size + 1, size)).astype(np.float32)
  nodes = np.arange(size + 1, dtype=np.int32)
  final = np.full(size + 1, -np.inf, np.float32)
  final[-1] = 0.0
  lattice = Lattice(
    start=nodes[:-1],
    end=nodes[1:],
    score=np.zeros(size, np.float32),
    final=final,
    words=np.ones(size, np.int32),
    span=np.stack([nodes[:-1], nodes[1:]], 1),
  )
  arcs = ArcScores(right=table[1:], left=table[1:].T.copy(), root=table[0])
  return lattice, arcs, table
