"""Packed forests: hypergraphs that hold every derivation of a search.

A node is an item that can be derived. An edge is one way to derive its head
node from its tail nodes. A derivation of a sentence is a tree of edges from the
sentence's root down. Its score is the sum of its edges' scores.

Structure and annotation are kept apart. The functions of this package compute
with the structure and with edge scores. Annotation (spans, rules, labels, ...)
is carried along: rows are selected and concatenated, never interpreted.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxmt.text.ragged import row_offsets

Annotation = Any  # a pytree of arrays with equal first axes, or None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Forest:
  """Forests of B sentences: N nodes, E edges of arity up to A.

  The nodes of a sentence stand in topological order, tails before heads. Its
  root is the last one.

  Attributes:
    node_offsets: sentence b has the nodes `node_offsets[b] : node_offsets[b +
      1]`, int64 `[B + 1]`; none for a sentence without derivation.
    edge_offsets: node n's edges are `edge_offsets[n] : edge_offsets[n + 1]`,
      int64 `[N + 1]`.
    tails: tail nodes of each edge, -1 beyond the arity, int32 `[E, A]`.
    score: what each edge adds to a derivation's score, `[E]`.
    nodes: annotation of nodes: arrays with first axis N, or None.
    edges: annotation of edges: arrays with first axis E, or None.
  """

  node_offsets: np.ndarray
  edge_offsets: np.ndarray
  tails: np.ndarray
  score: np.ndarray
  nodes: Annotation = None
  edges: Annotation = None

  def __len__(self) -> int:
    """Returns B."""
    return len(self.node_offsets) - 1

  def __getitem__(self, row: int) -> "Forest":
    """Returns the forest of one sentence."""
    if not -len(self) <= row < len(self):
      raise IndexError(f"sentence {row} of {len(self)}")
    return select(self, np.array([row % len(self)]))[0]

  def _repr_html_(self) -> str:
    """Returns a summary for notebooks."""
    rows = {
      "sentences": len(self),
      "without derivation": int(np.sum(self.roots < 0)),
      "nodes": self.num_nodes,
      "edges": self.num_edges,
      "longest tails": self.tails.shape[1],
    }
    cells = (f"<tr><th>{k}</th><td>{v:,}</td></tr>" for k, v in rows.items())
    return f"<table>{''.join(cells)}</table>"

  @property
  def num_nodes(self) -> int:
    """N."""
    return len(self.edge_offsets) - 1

  @property
  def num_edges(self) -> int:
    """E."""
    return len(self.tails)

  @property
  def heads(self) -> np.ndarray:
    """The head of each edge, int32 `[E]`."""
    sizes = np.diff(self.edge_offsets)
    return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

  @property
  def roots(self) -> np.ndarray:
    """The root of each sentence, int64 `[B]`; -1 without derivation."""
    filled = np.diff(self.node_offsets) > 0
    return np.where(filled, self.node_offsets[1:] - 1, -1)

  @property
  def edge_cuts(self) -> np.ndarray:
    """Sentence b's edges are `edge_cuts[b] : edge_cuts[b + 1]`, `[B + 1]`."""
    return self.edge_offsets[self.node_offsets]


def check(forest: Forest) -> None:
  """Checks arrays that come from outside.

  Raises:
    ValueError: if types or sizes do not fit, or a tail does not stand before
      its head in the same sentence.
  """
  _check_types(forest)
  nodes, edges = forest.num_nodes, forest.num_edges
  for offsets in (forest.node_offsets, forest.edge_offsets):
    if not len(offsets) or offsets[0] != 0:
      raise ValueError("offsets do not begin at 0")
    if np.any(np.diff(offsets) < 0):
      raise ValueError("negative counts")
  if forest.node_offsets[-1] != nodes or forest.edge_offsets[-1] != edges:
    raise ValueError("counts of nodes or edges do not add up")
  columns = [
    ({"score": forest.score}, edges),
    (forest.nodes, nodes),
    (forest.edges, edges),
  ]
  for part, size in columns:
    for path, leaf in jax.tree_util.tree_leaves_with_path(part):
      if leaf.shape[:1] != (size,):
        name = jax.tree_util.keystr(path, simple=True) or "annotation"
        raise ValueError(f"{leaf.size} of '{name}', not {size}")
  first = np.repeat(forest.node_offsets[:-1], np.diff(forest.node_offsets))
  heads = forest.heads[:, None]
  low = first[heads] if edges else heads
  wrong = (forest.tails < low) | (forest.tails >= heads)
  if np.any(wrong & (forest.tails != -1)):
    raise ValueError("a tail does not stand before its head")


def _check_types(forest: Forest) -> None:
  """Raises `ValueError` for arrays that kernels are not compiled for."""
  for name, kind, axes in (
    ("node_offsets", np.int64, 1),
    ("edge_offsets", np.int64, 1),
    ("tails", np.int32, 2),
    ("score", np.floating, 1),
  ):
    array = np.asarray(getattr(forest, name))
    if array.ndim != axes or not np.issubdtype(array.dtype, kind):
      raise ValueError(f"'{name}' is {array.dtype} with {array.ndim} axes")


def edge_scores(forest: Forest, scores: np.ndarray | None) -> np.ndarray:
  """Returns the scores to use, float64 `[E]`: `forest.score` if None.

  Raises:
    ValueError: if there are not E of them.
  """
  scores = forest.score if scores is None else np.asarray(scores)
  if scores.shape != (forest.num_edges,):
    raise ValueError(f"scores {scores.shape} for {forest.num_edges} edges")
  return np.ascontiguousarray(scores, np.float64)


def root_edges(forest: Forest) -> tuple[np.ndarray, np.ndarray]:
  """Returns the root edges, int64 `[D]`, and their sentences, int64 `[D]`."""
  filled = np.flatnonzero(forest.roots >= 0)
  edges, starts = _gather(forest.edge_offsets, forest.roots[filled])
  return edges, np.repeat(filled, np.diff(starts))


def concatenate(forests: Sequence[Forest]) -> Forest:
  """Returns the forests of all sentences, in this order.

  Raises:
    ValueError: if there are none, or if they have different annotation.
  """
  if not forests:
    raise ValueError("no forests")
  arity = max(one.tails.shape[1] for one in forests)
  nodes = row_offsets([one.num_nodes for one in forests])
  edges = row_offsets([one.num_edges for one in forests])
  tails = np.full((edges[-1], arity), -1, np.int32)
  for one, low, shift in zip(forests, edges, nodes, strict=False):
    old_tails = one.tails
    part = tails[low : low + len(old_tails), : old_tails.shape[1]]
    part[:] = np.where(old_tails >= 0, old_tails + shift, -1)
  shifted = lambda parts, shifts: np.concatenate(
    [np.zeros(1, np.int64)]
    + [part[1:] + shift for part, shift in zip(parts, shifts, strict=False)]
  )
  return Forest(
    node_offsets=shifted([one.node_offsets for one in forests], nodes),
    edge_offsets=shifted([one.edge_offsets for one in forests], edges),
    tails=tails,
    score=np.concatenate([one.score for one in forests]),
    nodes=_joined([one.nodes for one in forests]),
    edges=_joined([one.edges for one in forests]),
  )


def select(
  forest: Forest, rows: np.ndarray | Sequence[int]
) -> tuple[Forest, np.ndarray]:
  """Returns the forests of some sentences, in the order of `rows`.

  Also returns which edge each of their edges was, int64 `[E]`.
  """
  rows = np.asarray(rows, np.int64)
  nodes, node_offsets = _gather(forest.node_offsets, rows)
  edges, edge_offsets = _gather(forest.edge_offsets, nodes)
  return _part(forest, nodes, edges, node_offsets, edge_offsets), edges


def restrict(forest: Forest, edges: np.ndarray) -> Forest:
  """Returns the forests that are left of some edges.

  Nodes without edges are dropped.

  Args:
    forest: B sentences.
    edges: the edges to keep, rising, int64. The tails of an edge must have
      edges, too.
  """
  counts = np.bincount(forest.heads[edges], minlength=forest.num_nodes)
  alive = np.flatnonzero(counts)
  before = row_offsets(counts > 0)
  return _part(
    forest,
    alive,
    edges,
    before[forest.node_offsets],
    row_offsets(counts[alive]),
  )


def _part(forest, nodes, edges, node_offsets, edge_offsets) -> Forest:
  """Some nodes and edges of a forest, renumbered."""
  number = np.full(forest.num_nodes + 1, -1, np.int32)  # the last: of tail -1
  number[nodes] = np.arange(len(nodes), dtype=np.int32)
  return Forest(
    node_offsets=node_offsets,
    edge_offsets=edge_offsets,
    tails=number[forest.tails[edges]],
    score=forest.score[edges],
    nodes=jax.tree.map(lambda leaf: leaf[nodes], forest.nodes),
    edges=jax.tree.map(lambda leaf: leaf[edges], forest.edges),
  )


def _joined(annotations: Sequence[Annotation]) -> Annotation:
  kinds = [jax.tree.structure(one) for one in annotations]
  if any(kind != kinds[0] for kind in kinds):
    raise ValueError("forests with different annotation")
  return jax.tree.map(lambda *leaves: np.concatenate(leaves), *annotations)


def _gather(offsets, rows):
  """Items of some rows, and where the rows are then."""
  lengths = np.diff(offsets)[rows]
  new = row_offsets(lengths)
  within = np.arange(new[-1]) - np.repeat(new[:-1], lengths)
  return np.repeat(offsets[:-1][rows], lengths) + within, new
