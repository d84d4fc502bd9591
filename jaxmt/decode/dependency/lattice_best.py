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
import math
from collections.abc import Iterator

import numpy as np

from jaxmt.decode.dependency import lattice_chart, lattice_forest
from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.dependency.lattice_chart import ArcScores
from jaxmt.hypergraph import Forest
from jaxmt.text.kernels import grown, grown_rows, njit

_FIRST_MARGIN, _LEAST_MARGIN = 4.0, 1e-4
_STEP = 1.15  # a larger margin is at least that many times as large
_ANY = 1 << 40  # edges
_ROUNDING = 1e-3  # margin for sums in another order
_RIGHT, _LEFT, _JOINT = 1, 2, 3  # kinds of items; 0 is none
# Columns of what `_within` makes of an edge.
_OWNER, _KINDS, _ITEMS, _PARTS, _END, _COLUMNS = 0, 1, 3, 7, 10, 11


def best_forests(
  lattice: Lattice,
  arcs: ArcScores,
  *,
  max_edges: int = 100_000,
  margin: float = 64.0,
) -> Iterator[tuple[Forest, float]]:
  """Yields forests with the best derivations, each with its margin.

  Each forest is larger than the one before: the margin is doubled until there
  are too many edges, and then made a little smaller. The margin of a forest of
  all derivations is infinite. Without any derivation, the only one is empty.

  Args:
    lattice: the lattice.
    arcs: scores; -inf where an arc is not allowed.
    max_edges: most forest edges, if that many are not as good as the best one.
    margin: the largest margin, of forests that lack a derivation.
  """
  chart = lattice_chart.chart(lattice, arcs)
  look = functools.partial(within, lattice, arcs, chart, max_edges=max_edges)
  size, too_large = _FIRST_MARGIN, np.inf
  found = look(margin=size)
  while found is None and size > _LEAST_MARGIN:
    size, too_large = size / 4, size
    found = look(margin=size)
  if found is None:  # so many are as good as the best one
    found = within(lattice, arcs, chart, margin=0.0, max_edges=_ANY)
    assert found is not None
    yield lattice_forest.assemble(lattice, arcs, *found[:4]), 0.0
    return
  while True:
    whole = found[4]
    forest = lattice_forest.assemble(lattice, arcs, *found[:4])
    yield forest, np.inf if whole else size
    if whole or size >= margin:
      return
    size, too_large, found = _next(look, size, too_large)
    if found is None:
      return


def _next(look, size: float, too_large: float):
  """A larger margin, one that is too large, and what there is; None: nothing.

  Args:
    look: `within` by margin.
    size: the margin before.
    too_large: a margin with too many edges, or infinity.
  """
  while True:
    more = min(2 * size, math.sqrt(size * too_large))
    if more < _STEP * size:
      return size, too_large, None
    found = look(margin=more)
    if found is not None:
      return more, too_large, found
    too_large = more


def best_forest(
  lattice: Lattice,
  arcs: ArcScores,
  *,
  max_edges: int = 100_000,
  margin: float = 64.0,
) -> Forest:
  """Returns the largest of `best_forests`."""
  forests = best_forests(lattice, arcs, max_edges=max_edges, margin=margin)
  *_, (forest, _) = forests
  return forest


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
  counts, made, numbers, whole = _within(
    lattice.start, lattice.end, lattice.score, lattice.final,
    right, left, joint, arcs.right, arcs.left, arcs.root,
    np.float32(margin + _ROUNDING), max_edges,
  )  # fmt: skip
  if len(made) > max_edges:
    return None
  owner, final = made[:, _OWNER], made[:, _END]
  kind, parts = made[:, _KINDS:_ITEMS], made[:, _PARTS:_END]
  items = made[:, _ITEMS:_PARTS].reshape(-1, 2, 2)
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
  # Items beside each other that are read one after the other: CR and CL by
  # node, J with its arc by left or by right edge.
  right_of, left_of = right.T.copy(), left.T.copy()
  joint_right = joint.T + right_arc  # (left one, right one)
  joint_left = joint + left_arc.T  # (right one, left one)
  # Margins that are left, and numbers of items, by item.
  room_right = np.full((edges, nodes), zero, np.float32)
  room_left = np.full((edges, nodes), zero, np.float32)
  room_joint = np.full((edges, edges), zero, np.float32)
  number_right = np.full((edges, nodes), -1, np.int32)
  number_left = np.full((edges, nodes), -1, np.int32)
  number_joint = np.full((edges, edges), -1, np.int32)
  counts = np.zeros(64, np.int64)
  # Of each edge: owner; kinds of tails; which items; parts; final node.
  made = np.empty((64, _COLUMNS), np.int32)
  size, whole = 0, True
  best = zero
  for r in range(edges):
    for v in range(nodes):
      best = max(best, left[r, 0] + root[r] + right[r, v] + final[v])
  node = 1
  if best > zero:
    for r in range(edges):
      made = grown_rows(made, size + nodes)
      for v in range(nodes):
        value = left[r, 0] + root[r] + right[r, v] + final[v]
        if value == zero:
          continue
        room = margin - (best - value)
        if room < 0:
          whole = False
          continue
        _set(made[size], 0, _LEFT, r, 0, _RIGHT, r, v)
        _set_parts(made[size], -2, r, -1, v)
        size += 1
        counts[0] += 1
        room_left[r, 0] = max(room_left[r, 0], room)
        room_right[r, v] = max(room_right[r, v], room)
  by_end = np.argsort(end, kind="mergesort")
  first = np.searchsorted(start, np.arange(nodes + 1))
  position = 0
  for u in range(nodes):
    while position < edges and end[by_end[position]] == u and size <= most:
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
          made = grown_rows(made, size + nodes)
          for w in range(u, v + 1):
            value = right[a, w] + left[b, w]
            if value == zero:
              continue
            room = room_here - (joint[b, a] - value)
            if room < 0:
              whole = False
              continue
            _set(made[size], node, _RIGHT, a, w, _LEFT, b, w)
            _set_parts(made[size], -2, -2, -2, -1)
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
        made = grown_rows(made, size + edges + 1)
        if v == u:
          _set(made[size], node, 0, 0, 0, 0, 0, 0)
          _set_parts(made[size], a, -2, -2, -1)
          size += 1
          counts[node] += 1
        else:
          for b in range(first[u], first[v]):
            value = joint_right[a, b] + right_of[v, b]
            if value == zero:
              continue
            room = room_here - (right[a, v] - value)
            if room < 0:
              whole = False
              continue
            _set(made[size], node, _JOINT, b, a, _RIGHT, b, v)
            _set_parts(made[size], -2, b, a, -1)
            size += 1
            counts[node] += 1
            room_joint[b, a] = max(room_joint[b, a], room)
            room_right[b, v] = max(room_right[b, v], room)
        node += 1
    # CL(u, b): nothing, or a first dependent c.
    for b in range(edges - 1, first[u] - 1, -1):
      room_here = room_left[b, u]
      if room_here < 0 or size > most:
        continue
      counts = grown(counts, node + 1)
      counts[node] = 0
      number_left[b, u] = node
      made = grown_rows(made, size + edges + 1)
      if start[b] == u:
        _set(made[size], node, 0, 0, 0, 0, 0, 0)
        _set_parts(made[size], -2, -2, -2, -1)
        size += 1
        counts[node] += 1
      else:
        for c in range(first[u], first[start[b]]):
          value = left_of[u, c] + joint_left[b, c]
          if value == zero:
            continue
          room = room_here - (left[b, u] - value)
          if room < 0:
            whole = False
            continue
          _set(made[size], node, _LEFT, c, u, _JOINT, b, c)
          _set_parts(made[size], -2, c, b, -1)
          size += 1
          counts[node] += 1
          room_left[c, u] = max(room_left[c, u], room)
          room_joint[b, c] = max(room_joint[b, c], room)
      node += 1
    if size > most:
      break
  return (
    counts[:node].copy(),
    made[:size].copy(),
    (number_right, number_left, number_joint),
    whole,
  )


@njit
def _set(row, owner, one_kind, one, one_at, other_kind, other, other_at):
  """Sets the owner of an edge and its tails: kind, edge, node or edge."""
  row[_OWNER] = owner
  row[_KINDS], row[_KINDS + 1] = one_kind, other_kind
  row[_ITEMS], row[_ITEMS + 1] = one, one_at
  row[_ITEMS + 2], row[_ITEMS + 3] = other, other_at


@njit
def _set_parts(row, edge, child, head, final):
  """Sets what an edge adds, and the final node that it ends at."""
  row[_PARTS], row[_PARTS + 1], row[_PARTS + 2] = edge, child, head
  row[_END] = final
