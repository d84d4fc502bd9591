"""Packed forests of all dependency trees over all paths of a lattice.

The items of `lattice_chart` are nodes, so that k-best lists with distinct
strings, posteriors, sampling and losses work on them, in any semiring. Only
items that can be part of a whole tree get nodes. The number of forest edges
grows with E²V: this is for lattices of some hundred edges.
"""

from typing import NamedTuple

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode.dependency.lattice import Lattice, longest_paths
from jaxmt.decode.dependency.lattice_chart import ArcScores
from jaxmt.hypergraph import Forest
from jaxmt.text.kernels import grown, grown_rows, njit
from jaxmt.text.ragged import row_offsets

NONE, ROOT = -2, -1


class EdgeParts(NamedTuple):
  """What each forest edge adds to a tree; `NONE` where it adds nothing.

  Attributes:
    edge: lattice edge whose score it adds, int32 `[F]`.
    child: dependent of the arc it adds, int32 `[F]`.
    head: its head, `ROOT` for the root's, int32 `[F]`.
  """

  edge: np.ndarray
  child: np.ndarray
  head: np.ndarray


def forest(
  lattice: Lattice, arcs: ArcScores, *, max_edges: int = 20_000_000
) -> Forest:
  """Returns the forest of a lattice.

  Args:
    lattice: the lattice.
    arcs: scores; -inf where an arc is not allowed.
    max_edges: most forest edges.

  Raises:
    ValueError: if there are more.
  """
  allowed_right = arcs.right > -np.inf
  allowed_left = arcs.left > -np.inf
  made = _items(
    lattice.start,
    lattice.end,
    allowed_right,
    allowed_left,
    arcs.root > -np.inf,
    lattice.final > -np.inf,
    longest_paths(lattice) >= 0,
    max_edges,
  )
  if len(made[1]) > max_edges:
    raise ValueError(f"over {max_edges} edges: prune the lattice")
  return _useful(assemble(lattice, arcs, *made))


def assemble(
  lattice: Lattice,
  arcs: ArcScores,
  counts: np.ndarray,
  tails: np.ndarray,
  parts: np.ndarray,
  final: np.ndarray,
) -> Forest:
  """Returns a forest of items, scored.

  Args:
    lattice: the lattice.
    arcs: scores of its arcs.
    counts: edges of each node, the goal's last.
    tails: of each edge, -1 for none, `[F, 2]`.
    parts: columns of `EdgeParts`, `[F, 3]`.
    final: the node of the lattice that an edge of the goal ends at, or -1.
  """
  edge, child, head = parts.T
  # Where an edge adds nothing, the first item is read and not used.
  some = lambda number: np.maximum(number, 0)
  score = np.where(edge >= 0, lattice.score[some(edge)], 0.0).astype(np.float64)
  linked = (child >= 0) & (head >= 0)
  rightward = lattice.start[some(child)] >= lattice.end[some(head)]
  right, left = linked & rightward, linked & ~rightward
  score += np.where(right, arcs.right[some(head), some(child)], 0.0)
  score += np.where(left, arcs.left[some(child), some(head)], 0.0)
  score += np.where(head == ROOT, arcs.root[some(child)], 0.0)
  score += np.where(final >= 0, lattice.final[some(final)], 0.0)
  return Forest(
    node_offsets=np.array([0, len(counts)]),
    edge_offsets=row_offsets(counts),
    tails=tails,
    score=score,
    edges=EdgeParts(
      edge=edge.astype(np.int32),
      child=child.astype(np.int32),
      head=head.astype(np.int32),
    ),
  )


def _useful(whole: Forest) -> Forest:
  """Drops what no derivation of the root uses."""
  if not whole.edge_offsets[-1] or not np.diff(whole.edge_offsets)[-1]:
    empty = np.zeros(0, np.int64)
    return hypergraph.select(whole, empty)[0]
  used = _used_edges(whole.edge_offsets, whole.tails)
  return hypergraph.restrict(whole, np.flatnonzero(used))


@njit
def _used_edges(offsets, tails):
  nodes = len(offsets) - 1
  alive = np.zeros(nodes, np.bool_)
  alive[nodes - 1] = True
  used = np.zeros(len(tails), np.bool_)
  for node in range(nodes - 1, -1, -1):
    if alive[node]:
      for edge in range(offsets[node], offsets[node + 1]):
        used[edge] = True
        for part in range(tails.shape[1]):
          if tails[edge, part] >= 0:
            alive[tails[edge, part]] = True
  return used


@njit
def _items(start, end, right_ok, left_ok, root_ok, final_ok, reach, most):
  """Edges of each node, tails, (edge, child, head) and final node of edges.

  Items are made in the order of `lattice_kernel.fill`. CR of an edge is made
  node by node, so that all its parts exist.
  """
  edges, nodes = len(start), len(reach)
  right = np.full((edges, nodes), -1, np.int32)
  left = np.full((edges, nodes), -1, np.int32)
  joint = np.full((edges, edges), -1, np.int32)  # (left, right)
  counts = np.zeros(64, np.int64)
  tails = np.full((64, 2), -1, np.int32)
  parts = np.full((64, 3), -2, np.int32)
  final = np.full(64, -1, np.int32)
  node, size = 0, 0
  by_end = np.argsort(end, kind="mergesort")
  by_start = np.searchsorted(start, np.arange(nodes + 1))
  last = edges
  for u in range(nodes - 1, -1, -1):
    if size > most:
      break
    # CL(u, b), b by rising starts.
    for b in range(by_start[u], edges):
      if not reach[u, start[b]]:
        continue
      before = size
      tails = grown_rows(tails, size + edges + 1)
      parts = grown_rows(parts, size + edges + 1)
      final = grown(final, size + edges + 1)
      if start[b] == u:
        tails[size, 0], tails[size, 1] = -1, -1
        parts[size, 0], parts[size, 1], parts[size, 2] = -2, -2, -2
        final[size] = -1
        size += 1
      else:
        for c in range(by_start[u], by_start[start[b]]):
          if left[c, u] >= 0 and joint[c, b] >= 0 and left_ok[c, b]:
            tails[size, 0], tails[size, 1] = left[c, u], joint[c, b]
            parts[size, 0], parts[size, 1], parts[size, 2] = -2, c, b
            final[size] = -1
            size += 1
      if size > before:
        counts = grown(counts, node + 1)
        counts[node] = size - before
        left[b, u] = node
        node += 1
    # CR(a, v) and J(a, b) of the edges that end at u, v and b rising.
    while last > 0 and end[by_end[last - 1]] == u:
      last -= 1
      a = by_end[last]
      for v in range(u, nodes):
        if not reach[u, v]:
          continue
        before = size
        tails = grown_rows(tails, size + edges + 1)
        parts = grown_rows(parts, size + edges + 1)
        final = grown(final, size + edges + 1)
        if v == u:
          tails[size, 0], tails[size, 1] = -1, -1
          parts[size, 0], parts[size, 1], parts[size, 2] = a, -2, -2
          final[size] = -1
          size += 1
        else:
          for b in range(by_start[u], by_start[v]):
            if joint[a, b] >= 0 and right_ok[a, b] and right[b, v] >= 0:
              tails[size, 0], tails[size, 1] = joint[a, b], right[b, v]
              parts[size, 0], parts[size, 1], parts[size, 2] = -2, b, a
              final[size] = -1
              size += 1
        if size > before:
          counts = grown(counts, node + 1)
          counts[node] = size - before
          right[a, v] = node
          node += 1
        # J(a, b) of the edges b that start at v: CR(a, w), w <= v, is there.
        for b in range(by_start[v], by_start[v + 1]):
          if not (right_ok[a, b] or left_ok[a, b]):
            continue
          before = size
          tails = grown_rows(tails, size + nodes + 1)
          parts = grown_rows(parts, size + nodes + 1)
          final = grown(final, size + nodes + 1)
          for w in range(u, v + 1):
            if right[a, w] >= 0 and left[b, w] >= 0:
              tails[size, 0], tails[size, 1] = right[a, w], left[b, w]
              parts[size, 0], parts[size, 1], parts[size, 2] = -2, -2, -2
              final[size] = -1
              size += 1
          if size > before:
            counts = grown(counts, node + 1)
            counts[node] = size - before
            joint[a, b] = node
            node += 1
  # The goal.
  before = size
  for r in range(edges):
    if left[r, 0] < 0 or not root_ok[r]:
      continue
    tails = grown_rows(tails, size + nodes + 1)
    parts = grown_rows(parts, size + nodes + 1)
    final = grown(final, size + nodes + 1)
    for v in range(nodes):
      if final_ok[v] and right[r, v] >= 0:
        tails[size, 0], tails[size, 1] = left[r, 0], right[r, v]
        parts[size, 0], parts[size, 1], parts[size, 2] = -2, r, -1
        final[size] = v
        size += 1
  counts = grown(counts, node + 1)
  counts[node] = size - before
  node += 1
  return (
    counts[:node].copy(),
    tails[:size].copy(),
    parts[:size].copy(),
    final[:size].copy(),
  )
