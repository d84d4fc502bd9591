"""Packed forests of all projective trees of sentences.

The items of `jaxmt.parse.eisner` are nodes. What works on forests (k-best
lists, sampling, pruning, expectations, losses) then works on trees. The shape
depends on the number of words alone; it has about `2 n³ / 3` edges.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxmt import hypergraph
from jaxmt.hypergraph import Forest
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets


class EdgeArcs(NamedTuple):
  """Arcs that edges add; -2 and -2 where an edge adds none.

  Attributes:
    head: -1 is the root, int32 `[E]`.
    child: int32 `[E]`.
  """

  head: np.ndarray
  child: np.ndarray


def forests(arcs: np.ndarray, lengths: Sequence[int] | np.ndarray) -> Forest:
  """Returns forests whose derivations are the projective trees.

  Args:
    arcs: scores, `[B, N + 1, N]` as in `jaxmt.parse.eisner`.
    lengths: words of each sentence, `[B]`.
  """
  parts = []
  for scores, length in zip(np.asarray(arcs), lengths, strict=True):
    shape = _shape(int(length))
    head, child = shape.edges
    score = np.where(child >= 0, scores[head + 1, child], 0.0)
    parts.append(
      Forest(
        node_offsets=shape.node_offsets,
        edge_offsets=shape.edge_offsets,
        tails=shape.tails,
        score=score.astype(np.float64),
        edges=shape.edges,
      )
    )
  return hypergraph.concatenate(parts)


@functools.lru_cache(maxsize=256)
def _shape(size: int) -> Forest:
  """The forest of all trees over `size` words, without scores."""
  nodes, tails, head, child = _items(size)
  return Forest(
    node_offsets=np.array([0, len(nodes) - 1]),
    edge_offsets=nodes,
    tails=tails,
    score=np.zeros(len(tails)),
    edges=EdgeArcs(head=head, child=child),
  )


@njit
def _items(size):
  """Edge offsets of nodes, tails, heads and children of edges."""
  splits = (size - 1) * size * (size + 1) // 6  # of all spans of two or more
  most = 4 * splits + 2 * size + size
  tails = np.full((most, 2), -1, np.int32)
  head = np.full(most, -2, np.int32)
  child = np.full(most, -2, np.int32)
  offsets = np.zeros(2 * size * size + 2, np.int64)
  # Numbers of the items by (start, end).
  right = np.full((size, size), -1, np.int32)
  left = np.full((size, size), -1, np.int32)
  open_right = np.full((size, size), -1, np.int32)
  open_left = np.full((size, size), -1, np.int32)
  node, edge = 0, 0
  for width in range(size):
    # Incomplete spans, which need narrower complete ones only.
    for start in range(size - width if width else 0):
      end = start + width
      for leftward in range(2):
        for split in range(start, end):
          tails[edge, 0] = right[start, split]
          tails[edge, 1] = left[split + 1, end]
          head[edge] = end if leftward else start
          child[edge] = start if leftward else end
          edge += 1
        if leftward:
          open_left[start, end] = node
        else:
          open_right[start, end] = node
        node += 1
        offsets[node] = edge
    # Complete spans; of one word they are axioms.
    for start in range(size - width):
      end = start + width
      if width == 0:
        edge += 1
      for split in range(start + 1, end + 1):
        tails[edge, 0] = open_right[start, split]
        tails[edge, 1] = right[split, end]
        edge += 1
      right[start, end] = node
      node += 1
      offsets[node] = edge
      if width == 0:
        edge += 1
      for split in range(start, end):
        tails[edge, 0] = left[start, split]
        tails[edge, 1] = open_left[split, end]
        edge += 1
      left[start, end] = node
      node += 1
      offsets[node] = edge
  for root in range(size):
    tails[edge, 0] = left[0, root]
    tails[edge, 1] = right[root, size - 1]
    head[edge] = -1
    child[edge] = root
    edge += 1
  if size:
    node += 1
    offsets[node] = edge
  return (
    offsets[: node + 1].copy(),
    tails[:edge].copy(),
    head[:edge].copy(),
    child[:edge].copy(),
  )


def heads_of(forest: Forest, edges: np.ndarray, size: int) -> np.ndarray:
  """Returns the heads of the tree that a derivation's edges make, `[size]`."""
  arcs = forest.edges
  used = edges[arcs.child[edges] >= 0]
  heads = np.full(size, -1, np.int32)
  heads[arcs.child[used]] = arcs.head[used]
  return heads


def random_trees(lengths: Sequence[int] | np.ndarray, *, seed: int) -> Ragged:
  """Draws a projective tree of each length, all trees being equally likely.

  Args:
    lengths: words of each sentence, `[N]`.
    seed: the same seed draws the same trees.

  Returns:
    Heads, -1 is the root; int32 rows.
  """
  lengths = np.asarray(lengths, np.int64)
  offsets = row_offsets(lengths)
  heads = np.full(offsets[-1], -1, np.int32)
  for length in np.unique(lengths[lengths > 0]).tolist():
    rows = np.flatnonzero(lengths == length)
    forest = _shape(length)
    drawn = hypergraph.sample(forest, size=len(rows), seed=seed + length)
    # Every derivation has one arc for each word.
    edges = drawn.edges.flat
    edges = edges[forest.edges.child[edges] >= 0]
    base = np.repeat(offsets[rows], length)
    heads[base + forest.edges.child[edges]] = forest.edges.head[edges]
  return Ragged(flat=heads, offsets=offsets)
