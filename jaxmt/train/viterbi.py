"""Kept derivations: the one a search stands by at every node of a forest.

A node's kept derivation is the best of its edges over the kept derivations of
their tails. A root edge therefore has one derivation and one string, and the
strings of a sentence's root edges are what the search offers to choose from.
"""

import dataclasses

import numpy as np

from jaxmt.decode.model import Model
from jaxmt.hypergraph.forest import Forest
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kept:
  """The kept derivations of a forest under some scores.

  Attributes:
    best: best edge of each node, -1 where none is possible, int64 `[N]`.
    inside: score of each node's kept derivation, float64 `[N]`.
    total: score of the kept derivation of each edge, float64 `[E]`.
  """

  best: np.ndarray
  inside: np.ndarray
  total: np.ndarray


def keep(forest: Forest, scores: np.ndarray) -> Kept:
  """Finds kept derivations; of equal edges the first stays.

  Args:
    forest: N nodes, E edges.
    scores: what each edge adds, `[E]`; -inf leaves an edge out.
  """
  best, inside, total = _keep(
    forest.edge_offsets,
    np.ascontiguousarray(forest.tails),
    np.ascontiguousarray(scores, np.float64),
  )
  return Kept(best=best, inside=inside, total=total)


@njit
def _keep(edge_offsets, tails, scores):
  nodes = len(edge_offsets) - 1
  best = np.full(nodes, -1, np.int64)
  inside = np.full(nodes, -np.inf)
  total = np.empty(len(scores))
  for node in range(nodes):
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      value = scores[edge]
      for part in range(tails.shape[1]):
        if tails[edge, part] < 0:
          break
        value += inside[tails[edge, part]]
      total[edge] = value
      if value > inside[node]:
        inside[node] = value
        best[node] = edge
  return best, inside, total


def root_edges(forest: Forest) -> tuple[np.ndarray, np.ndarray]:
  """Returns the root edges, int64 `[D]`, and their sentences, int64 `[D]`."""
  there = np.flatnonzero(np.diff(forest.node_offsets) > 0)
  roots = forest.node_offsets[there + 1] - 1
  first = forest.edge_offsets[roots]
  counts = forest.edge_offsets[roots + 1] - first
  starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
  within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
  return np.repeat(first, counts) + within, np.repeat(there, counts)


def spell(model: Model, forest: Forest, kept: Kept, edges: np.ndarray):
  """Returns the words of the kept derivations of some edges.

  Args:
    model: whose rules they are.
    forest: E edges.
    kept: of the forest.
    edges: int64 `[D]`; all possible ones.

  Returns:
    `Ragged` of D rows, ids as in `derivation.Yields`.
  """
  target = model.table.target
  flat, offsets = _spell(
    np.asarray(edges, np.int64),
    kept.best,
    forest.rule,
    np.ascontiguousarray(forest.tails),
    target.flat,
    target.offsets,
    len(model.table.target_words),
  )
  return Ragged(flat=flat, offsets=offsets)


@njit
def _spell(edges, best, rule, tails, target, target_offsets, words):
  size = len(target_offsets) - 1
  out = np.empty(1024, np.int32)
  offsets = np.zeros(len(edges) + 1, np.int64)
  stack = np.empty((64, 2), np.int64)
  filled = 0
  for row in range(len(edges)):
    stack[0, 0], stack[0, 1] = edges[row], 0
    top = 1
    while top:
      edge, symbol = stack[top - 1, 0], stack[top - 1, 1]
      which = rule[edge]
      length = 1
      if which < size:
        length = target_offsets[which + 1] - target_offsets[which]
      if symbol == length:
        top -= 1
        continue
      stack[top - 1, 1] += 1
      if which > size:
        value = words + which - size - 1
      elif which == size:  # the goal has one tail and no words
        value = -1
      else:
        value = target[target_offsets[which] + symbol]
      if value >= 0:
        if filled == len(out):
          larger = np.empty(2 * filled, np.int32)
          larger[:filled] = out
          out = larger
        out[filled] = value
        filled += 1
        continue
      if top == len(stack):
        wider = np.empty((2 * top, 2), np.int64)
        wider[:top] = stack
        stack = wider
      stack[top, 0], stack[top, 1] = best[tails[edge, -1 - value]], 0
      top += 1
    offsets[row + 1] = filled
  return out[:filled], offsets


def derivation_edges(forest: Forest, kept: Kept, edges: np.ndarray) -> Ragged:
  """Returns the edges of the kept derivations of some edges, preorder."""
  flat, offsets = _derivation_edges(
    np.asarray(edges, np.int64), kept.best, np.ascontiguousarray(forest.tails)
  )
  return Ragged(flat=flat, offsets=offsets)


@njit
def _derivation_edges(edges, best, tails):
  out = np.empty(1024, np.int64)
  stack = np.empty(64, np.int64)
  offsets = np.zeros(len(edges) + 1, np.int64)
  filled = 0
  arity = tails.shape[1]
  for row in range(len(edges)):
    stack[0] = edges[row]
    top = 1
    while top:
      top -= 1
      edge = stack[top]
      if filled == len(out):
        larger = np.empty(2 * filled, np.int64)
        larger[:filled] = out
        out = larger
      out[filled] = edge
      filled += 1
      if top + arity > len(stack):
        wider = np.empty(2 * len(stack), np.int64)
        wider[:top] = stack[:top]
        stack = wider
      for part in range(arity - 1, -1, -1):
        if tails[edge, part] >= 0:
          stack[top] = best[tails[edge, part]]
          top += 1
    offsets[row + 1] = filled
  return out[:filled], offsets
