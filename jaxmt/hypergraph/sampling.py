"""Random derivations of forests.

A derivation is drawn from the root down. At each node an edge is drawn with its
share of the node's inside sum, so that a derivation as a whole is drawn with

    p(derivation | sentence) ~ exp(score(derivation))

Every derivation has a random number generator of its own (splitmix64), whose
state follows from the seed, the sentence's place in the batch and the
derivation's place in its list. A longer list begins with the shorter one.
"""

import numpy as np

from jaxmt.hypergraph import host_passes
from jaxmt.hypergraph.derivations import (
  DerivationLists,
  EdgeStrings,
  list_items,
  sum_values,
)
from jaxmt.hypergraph.forest import Forest, edge_scores
from jaxmt.text.kernels import GOLDEN, grown_rows, mixed, njit
from jaxmt.text.ragged import row_offsets


def sample(
  forest: Forest,
  *,
  size: int,
  seed: int,
  scores: np.ndarray | None = None,
  strings: EdgeStrings | None = None,
) -> DerivationLists:
  """Draws derivations of each sentence, independently and with replacement.

  Args:
    forest: B sentences.
    size: derivations per sentence; none where there is no derivation.
    seed: from 0 to 2^64 - 1; the same seed draws the same derivations.
    scores: what each edge adds, `[E]`; `forest.score` if None. The derivations
      are drawn by these scores, and `DerivationLists.score` holds them.
    strings: what edges add to the strings of derivations.

  Raises:
    ValueError: for sizes and seeds that cannot be.
  """
  if size < 1:
    raise ValueError(f"samples of size {size}")
  if not 0 <= seed < 1 << 64:
    raise ValueError(f"seed {seed} is not between 0 and 2^64 - 1")
  values = edge_scores(forest, scores)
  tails = np.ascontiguousarray(forest.tails)
  sums, share, _ = host_passes.inside_log(forest.edge_offsets, tails, values)
  roots = forest.roots
  possible = roots >= 0
  possible[possible] = sums[roots[possible]] > -np.inf
  items, tops = _draw(
    np.where(possible, roots, -1),
    (forest.edge_offsets, tails, share),
    size,
    np.uint64(seed),
  )
  edges, words = list_items(forest, items, tops, strings=strings)
  return DerivationLists(
    offsets=row_offsets(possible * size),
    score=sum_values(edges, values),
    edges=edges,
    words=words,
  )


@njit
def _draw_edge(low, high, share, uniform):
  """Draws one of the edges from `low` up to `high`."""
  passed, last = 0.0, low
  for edge in range(low, high):
    if share[edge] > 0.0:
      last = edge
      passed += share[edge]
      if passed > uniform:
        break
  return last  # if rounding left a rest: the last possible one


@njit
def _draw(roots, forest, size, seed):
  """Draws `size` derivations of each root that is not -1.

  Args:
    roots: int64 `[B]`.
    forest: edge offsets, tails, and each edge's share of its head's sum.
    size: how many to draw.
    seed: uint64.

  Returns:
    Items as in `derivations`, int32 `[I, 1 + A]`, and the item at the top of
    each derivation, int64.
  """
  edge_offsets, tails, share = forest
  arity = tails.shape[1]
  items = np.empty((1024, 1 + arity), np.int32)
  tops = np.empty(size * np.sum(roots >= 0), np.int64)
  stack = np.empty((64, 3), np.int64)  # a node, the item above, which tail
  used, done = 0, 0
  for row in range(len(roots)):
    if roots[row] < 0:
      continue
    for number in range(size):
      state = mixed(mixed(seed + GOLDEN) ^ np.uint64(row))
      state = mixed(state ^ np.uint64(number))
      tops[done] = used
      done += 1
      stack[0, 0], stack[0, 1], stack[0, 2] = roots[row], -1, 0
      top = 1
      while top:
        top -= 1
        node, above, part = stack[top, 0], stack[top, 1], stack[top, 2]
        # A number from 0 up to 1 of 53 random bits.
        state += GOLDEN
        uniform = np.float64(mixed(state) >> np.uint64(11)) * 2.0**-53
        edge = _draw_edge(
          edge_offsets[node], edge_offsets[node + 1], share, uniform
        )
        # A new item, known to the one above it.
        items = grown_rows(items, used + 1)
        items[used, 0] = edge
        if above >= 0:
          items[above, 1 + part] = used
        # Its tails are to be drawn next.
        stack = grown_rows(stack, top + arity)
        for tail in range(arity - 1, -1, -1):
          items[used, 1 + tail] = -1
          if tails[edge, tail] >= 0:
            stack[top, 0], stack[top, 1] = tails[edge, tail], used
            stack[top, 2] = tail
            top += 1
        used += 1
  return items[:used], tops
