"""Tree-aware symmetrisation against slow definitions."""

import numpy as np
import pytest

from jaxmt.align import symmetrize, tree_symmetrize
from jaxmt.text import links, trees


def slow_frontier(pairs, tree, side):
  """Frontier nodes by the definition: span and complement span are apart."""
  count = 0
  start, end = tree.start.tolist(), tree.end.tolist()
  for low, high in zip(start, end, strict=True):
    own = {p[1 - side] for p in pairs if low <= p[side] < high}
    rest = {p[1 - side] for p in pairs if not low <= p[side] < high}
    if own and not any(min(own) <= word <= max(own) for word in rest):
      count += 1
  return count


TREE = "(S (NP (D a) (N b)) (VP (V c) (NP (D d) (N e))))"


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("seed", range(5))
def test_frontier_sizes(side, seed):
  rng = np.random.default_rng(seed)
  tree = trees.parse_trees([TREE])
  pairs = [tuple(pair) for pair in rng.integers(0, 5, (4, 2)).tolist()]
  line = " ".join(f"{s}-{t}" for s, t in pairs)
  found = tree_symmetrize.frontier_sizes(
    links.parse_links([line]), tree, side=tree_symmetrize.SIDES[side]
  )
  assert found.tolist() == [slow_frontier(pairs, tree, side)]


def test_monotone_links_make_every_node_a_frontier_node():
  tree = trees.parse_trees([TREE])
  line = "0-0 1-1 2-2 3-3 4-4"
  found = tree_symmetrize.frontier_sizes(
    links.parse_links([line]), tree, side="target"
  )
  assert found.tolist() == [len(tree.label)]


def directions(seed, size=5):
  rng = np.random.default_rng(seed)
  lines = []
  for _ in range(2):
    targets = np.where(
      rng.random(size) < 0.6, np.arange(size), rng.integers(0, size, size)
    )
    lines.append(" ".join(f"{s}-{t}" for s, t in enumerate(targets)))
  return [links.parse_links([line]) for line in lines]


@pytest.mark.parametrize("method", tree_symmetrize.METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_between_intersection_and_union(method, seed):
  one, two = directions(seed)
  tree = trees.parse_trees([TREE])
  found = tree_symmetrize.symmetrize(one, two, method=method, trees=tree)
  as_set = lambda rows: {tuple(pair) for pair in rows[0].tolist()}
  low = symmetrize.symmetrize(one, two, method="intersect")
  high = symmetrize.symmetrize(one, two, method="union")
  assert as_set(low) <= as_set(found) <= as_set(high)


@pytest.mark.parametrize("seed", range(6))
def test_each_step_takes_the_largest_frontier(seed):
  """IDSG over the grow-diag candidates, link by link."""
  one, two = directions(seed)
  tree = trees.parse_trees([TREE])
  as_set = lambda rows: {tuple(pair) for pair in rows[0].tolist()}
  accepted = as_set(one) & as_set(two)
  waiting = sorted((as_set(one) | as_set(two)) - accepted)
  while True:
    allowed = []
    for s, t in waiting:
      near = any(abs(s - a) < 2 and abs(t - b) < 2 for a, b in accepted)
      covered = s in {a for a, _ in accepted} and t in {b for _, b in accepted}
      if near and not covered and (s, t) not in accepted:
        allowed.append((s, t))
    if not allowed:
      break
    sizes = [slow_frontier([*accepted, link], tree, 1) for link in allowed]
    accepted.add(allowed[int(np.argmax(sizes))])
  found = tree_symmetrize.symmetrize(
    one, two, method="idsg-diag", trees=tree, side="target"
  )
  assert as_set(found) == accepted


def test_idg_adds_no_link_that_makes_phrase_pairs_overlap():
  one = links.parse_links(["0-0 1-1 2-2", "0-0 1-1 2-2"])
  two = links.parse_links(["0-0 2-2", "0-0 1-1 2-1"])
  found = tree_symmetrize.symmetrize(one, two, method="idg")
  # First line: 1-1 stands apart. Second: 2-1 joins 1-1, then 2-2 joins both.
  assert found[0].tolist() == [[0, 0], [1, 1], [2, 2]]
  assert found[1].tolist() == [[0, 0], [1, 1], [2, 1], [2, 2]]
  crossed = (
    links.parse_links(["0-0 2-2 1-1"]),
    links.parse_links(["0-0 2-2 0-2"]),
  )
  found = tree_symmetrize.symmetrize(*crossed, method="idg")
  # 0-2 would join all words from 0 to 2, around 1-1 or before it.
  assert [0, 2] in found[0].tolist() or [1, 1] in found[0].tolist()
  assert not {(0, 2), (1, 1)} <= {tuple(p) for p in found[0].tolist()}


def test_trees_are_needed():
  one, two = directions(0)
  with pytest.raises(ValueError, match="needs trees"):
    tree_symmetrize.symmetrize(one, two, method="idsg")
  with pytest.raises(ValueError, match="rows"):
    tree_symmetrize.symmetrize(
      one, two, method="idsg", trees=trees.parse_trees([TREE, TREE])
    )
