import dataclasses

import numpy as np
import pytest

from jaxmt.decode.dependency import configurations
from jaxmt.decode.dependency import lattice as lattices
from tests.reference import dependency_trees
from tests.reference import lattice_trees as reference

HEADS = np.array([1, -1, 3, 1, 3, 4])


def ancestors(word):
  out = []
  while HEADS[word] >= 0:
    word = HEADS[word]
    out.append(int(word))
  return out


def distance(j, k):
  up, other = [j, *ancestors(j)], [k, *ancestors(k)]
  common = next(node for node in up if node in other)
  return up.index(common) + other.index(common)


def relation(j, k, covered):
  """As the thesis has it, one after the other."""
  if HEADS[k] == j:
    return "parent-child"
  if HEADS[j] == k:
    return "child-parent"
  if HEADS[k] >= 0 and HEADS[k] not in covered:
    if HEADS[HEADS[k]] == j:
      return "grandparent-grandchild"
    if HEADS[j] == HEADS[k]:
      return "sibling"
  for one, other in ((j, k), (k, j)):
    top = HEADS[one]
    if top >= 0 and top not in covered and top in ancestors(other):
      return "c-command"
  return "other"


def features(lattice, longest, parent, child):
  """Feature values of an arc, by name."""
  right = lattice.start[child] >= lattice.end[parent]
  direction = "right" if right else "left"
  one, two = (parent, child) if right else (child, parent)
  spans = [range(*lattice.span[edge]) for edge in (parent, child)]
  order = "swap" if lattice.span[one, 0] > lattice.span[two, 0] else "same"
  ends = sorted((lattice.span[parent], lattice.span[child]), key=tuple)
  gap = max(int(ends[1][0] - ends[0][1]), 0)
  source = "yes" if gap else "no"
  target = "no" if lattice.end[one] == lattice.start[two] else "yes"
  pairs = [(j, k) for j in spans[0] for k in spans[1]]
  covered = {*spans[0], *spans[1]}
  kinds = [(abs(j - k), relation(j, k, covered)) for j, k in pairs]
  kinds = [item for item in kinds if item[1] != "other"]
  kind = max(kinds, key=lambda item: item[0])[1] if kinds else "other"
  values = {
    "dep_source_length": gap,
    "dep_target_length": longest[lattice.end[one], lattice.start[two]],
    f"dep_{direction}_{order}": 1,
    f"dep_{direction}_{order}_{source}_{target}": 1,
    f"dep_{kind}_{direction}": 1,
    f"dep_{kind}_{order}": 1,
    f"dep_{kind}_{source}_{target}": 1,
    "dep_path": sum(1 / distance(j, k) for j, k in pairs if j != k),
    "dep_directed_path": sum(
      1 / distance(j, k) for j, k in pairs if j in ancestors(k)
    ),
  }
  return values


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_sums_of_features(seed):
  rng = np.random.default_rng(seed)
  lattice, _ = reference.random_lattice(rng, nodes=6, edges=14)
  begin = rng.integers(0, 5, 14)
  width = np.minimum(rng.integers(1, 3, 14), 6 - begin)
  lattice = dataclasses.replace(
    lattice, span=np.stack([begin, begin + width], 1)
  )
  names = [name for group in configurations.NAMES.values() for name in group]
  weights = dict(zip(names, rng.normal(size=len(names)), strict=True))
  longest = lattices.longest_paths(lattice)
  parts = configurations.arc_parts(
    lattice, tree=configurations.source_tree(HEADS)
  )
  found = configurations.scores(parts, weights)
  for left in range(14):
    for right in range(14):
      if longest[lattice.end[left], lattice.start[right]] < 0:
        assert found.right[left, right] == found.left[left, right] == -np.inf
        continue
      for parent, child, score in (
        (left, right, found.right[left, right]),
        (right, left, found.left[left, right]),
      ):
        values = features(lattice, longest, parent, child)
        wanted = sum(weights[name] * value for name, value in values.items())
        np.testing.assert_allclose(score, wanted, rtol=1e-4, atol=1e-4)
        named = configurations.values(
          parts, left, right, rightward=child == right
        )
        assert named == pytest.approx({k: v for k, v in values.items() if v})
  inside = (lattice.span[:, 0] <= 1) & (1 < lattice.span[:, 1])
  np.testing.assert_allclose(
    found.root, weights["dep_root-root"] * inside, rtol=1e-5
  )


def test_numbers_of_features_are_those_of_the_thesis():
  sizes = {group: len(names) for group, names in configurations.NAMES.items()}
  assert sizes == {
    "target-tree": 4,
    "rules": 11,
    "length": 2,
    "string-to-tree": 20,
    "tree-to-tree": 49,
    "path": 2,
  }


def test_without_a_source_tree_its_features_are_not_there():
  rng = np.random.default_rng(0)
  lattice, _ = reference.random_lattice(rng, nodes=5, edges=8)
  names = (*configurations.NAMES["tree-to-tree"], *configurations.NAMES["path"])
  parts = configurations.arc_parts(lattice)
  found = configurations.scores(parts, dict.fromkeys(names, 1.0))
  assert not found.root.any()
  assert not found.right[found.right > -np.inf].any()
  assert dependency_trees.is_tree(HEADS)
