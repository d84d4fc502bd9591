"""Forests of other sentences: all of several, or some of one."""

from collections.abc import Sequence

import numpy as np

from jaxmt.hypergraph.forest import Forest

NODE_FIELDS = ("begin", "end", "label", "rank")
EDGE_FIELDS = ("rule", "score", "lm", "matched", "mismatched")


def concatenate(forests: Sequence[Forest]) -> Forest:
  """Returns the forests of all sentences, in this order.

  `augmented` is kept if all have it.

  Raises:
    ValueError: if there are none.
  """
  if not forests:
    raise ValueError("no forests")
  arity = max(one.tails.shape[1] for one in forests)
  nodes = _offsets([len(one.begin) for one in forests])
  edges = _offsets([len(one.rule) for one in forests])
  tails = np.full((edges[-1], arity), -1, np.int32)
  for one, low, shift in zip(forests, edges, nodes, strict=False):
    own = one.tails
    part = tails[low : low + len(own), : own.shape[1]]
    part[:] = np.where(own >= 0, own + shift, -1)
  join = lambda name: np.concatenate([getattr(one, name) for one in forests])
  shifted = lambda name, shifts: np.concatenate(
    [np.zeros(1, np.int64)]
    + [
      getattr(one, name)[1:] + shift
      for one, shift in zip(forests, shifts, strict=False)
    ]
  )
  augmented = all(one.augmented is not None for one in forests)
  return Forest(
    node_offsets=shifted("node_offsets", nodes),
    edge_offsets=shifted("edge_offsets", edges),
    tails=tails,
    augmented=join("augmented") if augmented else None,
    **{name: join(name) for name in (*NODE_FIELDS, *EDGE_FIELDS)},
  )


def select(forest: Forest, rows: np.ndarray) -> tuple[Forest, np.ndarray]:
  """Returns the forests of some sentences, in the order of `rows`.

  Also returns which edge each of their edges was, int64 `[E]`.
  """
  rows = np.asarray(rows, np.int64)
  nodes, node_offsets = _gather(forest.node_offsets, rows)
  edges, edge_offsets = _gather(forest.edge_offsets, nodes)
  number = np.full(len(forest.begin) + 1, -1, np.int32)
  number[nodes] = np.arange(len(nodes), dtype=np.int32)
  augmented = forest.augmented
  made = Forest(
    node_offsets=node_offsets,
    edge_offsets=edge_offsets,
    tails=number[forest.tails[edges]],
    augmented=None if augmented is None else augmented[edges],
    **{name: getattr(forest, name)[nodes] for name in NODE_FIELDS},
    **{name: getattr(forest, name)[edges] for name in EDGE_FIELDS},
  )
  return made, edges


def _gather(offsets, rows):
  """Items of some rows, and where the rows are then."""
  lengths = np.diff(offsets)[rows]
  new = _offsets(lengths)
  within = np.arange(new[-1]) - np.repeat(new[:-1], lengths)
  return np.repeat(offsets[:-1][rows], lengths) + within, new


def _offsets(lengths):
  return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(
    np.int64
  )
