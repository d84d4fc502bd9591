"""Packed forests of the best trees of large lattices.

`lattice_forest` makes a node of every item of a lattice, which large ones have
too many of. Here only the derivations count whose score is at most a margin
below the best one: from the chart of best scores (`lattice_chart`) the margin
is handed down, from the goal to the parts of its derivations. An edge that
falls short of the best score of its item by some loss stays if the item has
that much margin left, and leaves the rest to its tails. So an edge stays if and
only if its max-marginal is within the margin: k-best lists, unique or not, are
exact as long as they end within it.
"""

import functools

import numpy as np

from jaxmt.decode.dependency import lattice_chart, lattice_forest
from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.dependency.lattice_chart import ArcScores
from jaxmt.hypergraph import Forest
from jaxmt.text.kernels import grown, grown_rows, njit

_FIRST_MARGIN, _LEAST_MARGIN = 0.5, 1e-4
_ANY = 1 << 40  # edges
_ROUNDING = 1e-3  # margin for sums in another order
_GOAL, _RIGHT, _LEFT, _JOINT = 0, 1, 2, 3


def best_forest(
  lattice: Lattice,
  arcs: ArcScores,
  *,
  max_edges: int = 100_000,
  margin: float = 64.0,
) -> Forest:
  """Returns a forest with the best derivations; without any, an empty one.

  Args:
    lattice: the lattice.
    arcs: scores; -inf where an arc is not allowed.
    max_edges: most forest edges, if that many are not as good as the best one.
      The margin is doubled until there are more than half of them.
    margin: the largest margin.
  """
  chart = lattice_chart.chart(lattice, arcs)
  look = functools.partial(within, lattice, arcs, chart)
  size = _FIRST_MARGIN
  found = look(margin=size, max_edges=max_edges)
  while found is None and size > _LEAST_MARGIN:
    size /= 4
    found = look(margin=size, max_edges=max_edges)
  if found is None:  # so many are as good as the best one
    found = look(margin=0.0, max_edges=_ANY)
    assert found is not None
    return lattice_forest.assemble(lattice, arcs, *found[:4])
  while size < margin and not found[4] and 2 * len(found[1]) <= max_edges:
    size *= 2
    more = look(margin=size, max_edges=max_edges)
    if more is None:
      break
    found = more
  return lattice_forest.assemble(lattice, arcs, *found[:4])


def within(
  lattice: Lattice, arcs: ArcScores, chart, *, margin: float, max_edges: int
):
  """Returns the items within a margin, as `lattice_forest.assemble` has them.

  Args:
    lattice: the lattice.
    arcs: scores.
    chart: of `lattice_chart.chart`.
    margin: how far below the best score.
    max_edges: most edges.

  Returns:
    (edges of each node, tails, parts, final nodes, whether nothing was left
    out), or None if there are more edges.
  """
  right, left, joint = chart
  counts, owner, kind, items, parts, final, numbers, whole = _within(
    lattice.start, lattice.end, lattice.score, lattice.final,
    right, left, joint, arcs.right, arcs.left, arcs.root,
    np.float32(margin + _ROUNDING), max_edges,
  )  # fmt: skip
  if len(owner) > max_edges:
    return None
  # From the goal down to from the leaves up.
  nodes = len(counts)
  order = np.argsort(nodes - 1 - owner, kind="stable")
  tails = np.full((len(owner), 2), -1, np.int32)
  for side in range(2):
    for of, table in zip((_RIGHT, _LEFT, _JOINT), numbers, strict=True):
      rows = kind[:, side] == of
      at = items[rows, side]
      tails[rows, side] = nodes - 1 - table[at[:, 0], at[:, 1]]
  return counts[::-1].copy(), tails[order], parts[order], final[order], whole


@njit
def _within(
  start, end, score, final, right, left, joint, right_arc, left_arc, root,
  margin, most,
):  # fmt: skip
  """Edges of each node from the goal down; see `within`."""
  edges, nodes = len(start), right.shape[1]
  zero = np.float32(-np.inf)
  # Margins that are left, and numbers of items, by item.
  room_right = np.full((edges, nodes), zero, np.float32)
  room_left = np.full((edges, nodes), zero, np.float32)
  room_joint = np.full((edges, edges), zero, np.float32)
  number_right = np.full((edges, nodes), -1, np.int32)
  number_left = np.full((edges, nodes), -1, np.int32)
  number_joint = np.full((edges, edges), -1, np.int32)
  counts = np.zeros(64, np.int64)
  owner = np.empty(64, np.int64)
  # Tails: what kind of item, and which.
  kind = np.zeros((64, 2), np.int8)
  items = np.zeros((64, 2, 2), np.int32)
  parts = np.full((64, 3), -2, np.int32)
  ends = np.full(64, -1, np.int32)
  size, whole = 0, True
  best = zero
  for r in range(edges):
    for v in range(nodes):
      best = max(best, left[r, 0] + root[r] + right[r, v] + final[v])
  node = 1
  if best > zero:
    for r in range(edges):
      for v in range(nodes):
        value = left[r, 0] + root[r] + right[r, v] + final[v]
        if value == zero:
          continue
        room = margin - (best - value)
        if room < 0:
          whole = False
          continue
        owner, kind, items, parts, ends = _room(
          owner, kind, items, parts, ends, size
        )
        owner[size], ends[size] = 0, v
        kind[size, 0], kind[size, 1] = _LEFT, _RIGHT
        items[size, 0, 0], items[size, 0, 1] = r, 0
        items[size, 1, 0], items[size, 1, 1] = r, v
        parts[size, 0], parts[size, 1], parts[size, 2] = -2, r, -1
        size += 1
        counts[0] += 1
        room_left[r, 0] = max(room_left[r, 0], room)
        room_right[r, v] = max(room_right[r, v], room)
  by_end = np.argsort(end, kind="mergesort")
  first = np.searchsorted(start, np.arange(nodes + 1))
  position = 0
  for u in range(nodes):
    while position < edges and end[by_end[position]] == u:
      a = by_end[position]
      position += 1
      for v in range(nodes - 1, u - 1, -1):
        # J(a, b) of the edges b that start at v: from CR(a, w) and CL(w, b).
        for b in range(first[v], first[v + 1]):
          room_here = room_joint[b, a]
          if room_here < 0:
            continue
          counts = grown(counts, node + 1)
          counts[node] = 0
          number_joint[b, a] = node
          for w in range(u, v + 1):
            value = right[a, w] + left[b, w]
            if value == zero:
              continue
            room = room_here - (joint[b, a] - value)
            if room < 0:
              whole = False
              continue
            owner, kind, items, parts, ends = _room(
              owner, kind, items, parts, ends, size
            )
            owner[size], ends[size] = node, -1
            kind[size, 0], kind[size, 1] = _RIGHT, _LEFT
            items[size, 0, 0], items[size, 0, 1] = a, w
            items[size, 1, 0], items[size, 1, 1] = b, w
            parts[size, 0], parts[size, 1], parts[size, 2] = -2, -2, -2
            size += 1
            counts[node] += 1
            room_right[a, w] = max(room_right[a, w], room)
            room_left[b, w] = max(room_left[b, w], room)
          node += 1
        room_here = room_right[a, v]
        if room_here < 0:
          continue
        # CR(a, v): the edge alone, or a last dependent b.
        counts = grown(counts, node + 1)
        counts[node] = 0
        number_right[a, v] = node
        if v == u:
          owner, kind, items, parts, ends = _room(
            owner, kind, items, parts, ends, size
          )
          owner[size], ends[size] = node, -1
          kind[size, 0], kind[size, 1] = 0, 0
          parts[size, 0], parts[size, 1], parts[size, 2] = a, -2, -2
          size += 1
          counts[node] += 1
        else:
          for b in range(first[u], first[v]):
            value = joint[b, a] + right_arc[a, b] + right[b, v]
            if value == zero:
              continue
            room = room_here - (right[a, v] - value)
            if room < 0:
              whole = False
              continue
            owner, kind, items, parts, ends = _room(
              owner, kind, items, parts, ends, size
            )
            owner[size], ends[size] = node, -1
            kind[size, 0], kind[size, 1] = _JOINT, _RIGHT
            items[size, 0, 0], items[size, 0, 1] = b, a
            items[size, 1, 0], items[size, 1, 1] = b, v
            parts[size, 0], parts[size, 1], parts[size, 2] = -2, b, a
            size += 1
            counts[node] += 1
            room_joint[b, a] = max(room_joint[b, a], room)
            room_right[b, v] = max(room_right[b, v], room)
        node += 1
    # CL(u, b): nothing, or a first dependent c.
    for b in range(edges - 1, first[u] - 1, -1):
      room_here = room_left[b, u]
      if room_here < 0:
        continue
      counts = grown(counts, node + 1)
      counts[node] = 0
      number_left[b, u] = node
      if start[b] == u:
        owner, kind, items, parts, ends = _room(
          owner, kind, items, parts, ends, size
        )
        owner[size], ends[size] = node, -1
        kind[size, 0], kind[size, 1] = 0, 0
        parts[size, 0], parts[size, 1], parts[size, 2] = -2, -2, -2
        size += 1
        counts[node] += 1
      else:
        for c in range(first[u], first[start[b]]):
          value = left[c, u] + joint[b, c] + left_arc[c, b]
          if value == zero:
            continue
          room = room_here - (left[b, u] - value)
          if room < 0:
            whole = False
            continue
          owner, kind, items, parts, ends = _room(
            owner, kind, items, parts, ends, size
          )
          owner[size], ends[size] = node, -1
          kind[size, 0], kind[size, 1] = _LEFT, _JOINT
          items[size, 0, 0], items[size, 0, 1] = c, u
          items[size, 1, 0], items[size, 1, 1] = b, c
          parts[size, 0], parts[size, 1], parts[size, 2] = -2, c, b
          size += 1
          counts[node] += 1
          room_left[c, u] = max(room_left[c, u], room)
          room_joint[b, c] = max(room_joint[b, c], room)
      node += 1
    if size > most:
      break
  return (
    counts[:node].copy(),
    owner[:size].copy(),
    kind[:size].copy(),
    items[:size].copy(),
    parts[:size].copy(),
    ends[:size].copy(),
    (number_right, number_left, number_joint),
    whole,
  )


@njit
def _room(owner, kind, items, parts, ends, size):
  """The columns of edges, with room for one more."""
  if size < len(owner):
    return owner, kind, items, parts, ends
  larger = np.zeros((2 * len(owner), 2, 2), np.int32)
  for row in range(size):
    for side in range(2):
      larger[row, side, 0] = items[row, side, 0]
      larger[row, side, 1] = items[row, side, 1]
  return (
    grown(owner, size + 1),
    grown_rows(kind, size + 1),
    larger,
    grown_rows(parts, size + 1),
    grown(ends, size + 1),
  )
