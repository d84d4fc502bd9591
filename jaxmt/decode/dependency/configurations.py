"""The 88 features of phrase dependencies.

Gimpel (2012), section 4.4: probabilities of target trees (4) and of
string-to-tree rules (11), see `probabilities`; lengths (2), string-to-tree
configurations (20), tree-to-tree configurations (49) and source path lengths
(2), the last two given a dependency tree of the source sentence. Groups of
features can be left out: without any, the model is the phrase-based one, with
the first four groups it is one of strings and target trees.

An arc links the phrases of two lattice edges. Its direction is the side of the
dependent; its orientation is same if the source phrases stand in the order of
the target phrases, else swap. There is a target gap if other phrases may stand
between both, and a source gap if words stand between their source phrases (the
thesis prints a test that always holds; this is the one it means).

Every feature is a sum over arcs, so scores of arcs are looked up in small
tables of weights: no array has an axis of features.

E: edges of the lattice. n: source words.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jaxmt.decode.dependency import lattice as lattices
from jaxmt.decode.dependency import probabilities
from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.dependency.lattice_chart import ArcScores
from jaxmt.decode.dependency.probabilities import OptionKeys
from jaxmt.grammar import dependency_events
from jaxmt.text.kernels import njit

DIRECTIONS = ("left", "right")
ORIENTATIONS = ("same", "swap")
GAPS = ("no", "yes")
RELATIONS = (
  *("parent-child", "child-parent", "grandparent-grandchild", "sibling"),
  *("c-command", "other"),
)
_OTHER = len(RELATIONS) - 1


def _names() -> dict[str, tuple[str, ...]]:
  pairs = list(itertools.product(DIRECTIONS, ORIENTATIONS))
  gaps = list(itertools.product(GAPS, GAPS))
  return {
    **probabilities.NAMES,
    "length": ("dep_source_length", "dep_target_length"),
    "string-to-tree": (
      *(f"dep_{d}_{o}" for d, o in pairs),
      *(f"dep_{d}_{o}_{s}_{t}" for d, o in pairs for s, t in gaps),
    ),
    "tree-to-tree": (
      "dep_root-root",
      *(f"dep_{r}_{d}" for r in RELATIONS for d in DIRECTIONS),
      *(f"dep_{r}_{o}" for r in RELATIONS for o in ORIENTATIONS),
      *(f"dep_{r}_{s}_{t}" for r in RELATIONS for s, t in gaps),
    ),
    "path": ("dep_path", "dep_directed_path"),
  }


NAMES = _names()
GROUPS = tuple(NAMES)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceTree:
  """What arcs need of a source tree.

  Attributes:
    heads: -1 is the root, int32 `[n]`.
    depth: arcs from the root, int32 `[n]`.
  """

  heads: np.ndarray
  depth: np.ndarray


def source_tree(heads: np.ndarray) -> SourceTree:
  """Returns the tree with these heads."""
  depth = np.zeros(len(heads), np.int32)
  for word in range(len(heads)):
    node = int(heads[word])
    while node >= 0:
      depth[word] += 1
      node = int(heads[node])
  return SourceTree(heads=np.asarray(heads, np.int32), depth=depth)


def source_trees(
  heads: np.ndarray, lines: Sequence[str]
) -> list[SourceTree | None]:
  """Returns the tree of each line.

  Args:
    heads: of all their words, or empty for no trees.
    lines: tokenised; those without words have no tree.
  """
  out: list[SourceTree | None] = []
  start = 0
  for line in lines:
    size = len(line.split()) if len(heads) else 0
    own = heads[start : start + size]
    out.append(source_tree(own) if size else None)
    start += size
  return out


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArcParts:
  """What the features of all arcs of a lattice are made of.

  Rows of arrays `[E, E]` are left edges, columns right ones. The first axis of
  arrays `[2, E, E]` is the direction: dependents on the left, or on the right.

  Attributes:
    allowed: pairs that may be linked, bool `[E, E]`.
    source_words: words between both source phrases, int32 `[E, E]`.
    target_words: most words between both on a path, int32 `[E, E]`.
    swap: 1 if the source order is the other one, int8 `[E, E]`.
    source_gap: 1 if there are words between, int8 `[E, E]`.
    target_gap: 1 if phrases may stand between, int8 `[E, E]`.
    relation: number in `RELATIONS`, int8 `[2, E, E]`; None without a tree.
    path: sums of inverse path lengths, float32 `[2, E, E]`; empty without a
      tree.
    directed_path: the same downwards only.
    has_root: whether an edge's phrase has the source's root, bool `[E]`.
    options: for the probability features, or None.
    groups: of `GROUPS`, those that count.
  """

  allowed: np.ndarray
  source_words: np.ndarray
  target_words: np.ndarray
  swap: np.ndarray
  source_gap: np.ndarray
  target_gap: np.ndarray
  relation: np.ndarray | None
  path: np.ndarray
  directed_path: np.ndarray
  has_root: np.ndarray
  options: OptionKeys | None = None
  groups: frozenset[str] = frozenset(GROUPS)

  @property
  def names(self) -> tuple[str, ...]:
    """Names of the features that count."""
    return tuple(
      name for group in GROUPS if group in self.groups for name in NAMES[group]
    )


def arc_parts(
  lattice: Lattice,
  *,
  tree: SourceTree | None = None,
  options: OptionKeys | None = None,
  groups: Iterable[str] = GROUPS,
  source_limit: int | None = None,
  target_limit: int | None = None,
) -> ArcParts:
  """Returns the parts of the features of a lattice's arcs.

  Args:
    lattice: the lattice.
    tree: of the source sentence; without it, "tree-to-tree" and "path" are not
      there.
    options: for the probability features; without it they are not there.
    groups: of `GROUPS`; features of others are left out.
    source_limit: most source words between two phrases, see `allowed_arcs`.
    target_limit: most target words between them.

  Raises:
    ValueError: for an unknown group.
  """
  for group in groups:
    if group not in NAMES:
      raise ValueError(f"no group '{group}'; there are: {', '.join(GROUPS)}")
  longest = lattices.longest_paths(lattice)
  allowed = lattices.allowed_arcs(
    lattice, longest, source_limit=source_limit, target_limit=target_limit
  )
  gaps = np.maximum(lattices.source_gaps(lattice), 0)
  relation, path, directed = None, np.zeros((2, 0, 0)), np.zeros((2, 0, 0))
  has_root = np.zeros(len(lattice), bool)
  if tree is not None:
    sides = [
      _relations(lattice.span, tree.heads, tree.depth, allowed, rightward)
      for rightward in (False, True)
    ]
    relation, path, directed = (
      np.stack(side) for side in zip(*sides, strict=True)
    )
    root = int(np.flatnonzero(tree.heads == -1)[0])
    has_root = (lattice.span[:, 0] <= root) & (root < lattice.span[:, 1])
  return ArcParts(
    allowed=allowed,
    source_words=gaps,
    target_words=np.maximum(longest[lattice.end][:, lattice.start], 0),
    swap=(lattice.span[:, None, 0] > lattice.span[None, :, 0]).astype(np.int8),
    source_gap=(gaps > 0).astype(np.int8),
    target_gap=(lattice.end[:, None] != lattice.start[None]).astype(np.int8),
    relation=relation,
    path=path,
    directed_path=directed,
    has_root=has_root,
    options=options,
    groups=frozenset(groups),
  )


def scores(parts: ArcParts, weights: Mapping[str, float]) -> ArcScores:
  """Returns the scores of arcs; weights that are not given are 0."""
  weights = {name: weights.get(name, 0.0) for name in parts.names}
  weight = lambda name: np.float32(weights.get(name, 0.0))
  table = lambda pattern, *axes: np.array(
    [weight(pattern.format(*names)) for names in itertools.product(*axes)]
  ).reshape([len(axis) for axis in axes])
  base = weight("dep_source_length") * parts.source_words
  base = base + weight("dep_target_length") * parts.target_words
  gap = (parts.source_gap, parts.target_gap)
  sides = []
  for number, direction in enumerate(DIRECTIONS):
    score = base + table(f"dep_{direction}_{{}}", ORIENTATIONS)[parts.swap]
    own = table(f"dep_{direction}_{{}}_{{}}_{{}}", ORIENTATIONS, GAPS, GAPS)
    score += own[parts.swap, *gap]
    if parts.relation is not None:
      relation = parts.relation[number]
      score += table(f"dep_{{}}_{direction}", RELATIONS)[relation]
      score += table("dep_{}_{}", RELATIONS, ORIENTATIONS)[relation, parts.swap]
      score += table("dep_{}_{}_{}", RELATIONS, GAPS, GAPS)[relation, *gap]
      score += weight("dep_path") * parts.path[number]
      score += weight("dep_directed_path") * parts.directed_path[number]
    sides.append(np.where(parts.allowed, score, -np.inf).astype(np.float32))
  root = weight("dep_root-root") * parts.has_root.astype(np.float32)
  if parts.options is not None:
    probabilities.add_scores(
      *(parts.options, parts.allowed, parts.target_gap, weights),
      *(sides[0], sides[1], root),
    )
  return ArcScores(left=sides[0], right=sides[1], root=root)


def values(
  parts: ArcParts, left: int, right: int, *, rightward: bool
) -> dict[str, float]:
  """Returns the features of one arc: names and values, without zeros.

  Args:
    parts: of the lattice.
    left: the left edge.
    right: the right edge.
    rightward: whether the dependent is the right one.
  """
  at = (left, right)
  direction = DIRECTIONS[rightward]
  order = ORIENTATIONS[parts.swap[at]]
  gaps = f"{GAPS[parts.source_gap[at]]}_{GAPS[parts.target_gap[at]]}"
  found = {
    "dep_source_length": float(parts.source_words[at]),
    "dep_target_length": float(parts.target_words[at]),
    f"dep_{direction}_{order}": 1.0,
    f"dep_{direction}_{order}_{gaps}": 1.0,
  }
  if parts.relation is not None:
    side = (int(rightward), *at)
    relation = RELATIONS[parts.relation[side]]
    found |= {
      f"dep_{relation}_{direction}": 1.0,
      f"dep_{relation}_{order}": 1.0,
      f"dep_{relation}_{gaps}": 1.0,
      "dep_path": float(parts.path[side]),
      "dep_directed_path": float(parts.directed_path[side]),
    }
  if parts.options is not None:
    child, parent = (right, left) if rightward else (left, right)
    found |= probabilities.values(
      *(parts.options, child, parent),
      direction=int(rightward),
      gap=int(parts.target_gap[at]),
    )
  return _counting(parts, found)


def root_values(parts: ArcParts, edge: int) -> dict[str, float]:
  """Returns the features of the arc to the root of a tree."""
  found = {"dep_root-root": float(parts.has_root[edge])}
  if parts.options is not None:
    found |= probabilities.values(
      parts.options, edge, -1, direction=dependency_events.ROOT, gap=0
    )
  return _counting(parts, found)


def _counting(parts: ArcParts, found: dict[str, float]) -> dict[str, float]:
  """Without zeros and without groups that do not count."""
  names = set(parts.names)
  return {n: value for n, value in found.items() if value and n in names}


@njit
def _relations(span, heads, depth, allowed, rightward):
  """Relation `[E, E]` int8, sums of 1 / path length, and of directed ones.

  Rows are the left edges of arcs. The relation is that of the word pair which
  stands farthest apart; words on the path between both must lie outside both
  phrases.
  """
  edges = len(span)
  relation = np.full((edges, edges), _OTHER, np.int8)
  path = np.zeros((edges, edges), np.float32)
  directed = np.zeros((edges, edges), np.float32)
  for left in range(edges):
    for right in range(edges):
      if not allowed[left, right]:
        continue
      parent, child = (left, right) if rightward else (right, left)
      far = -1
      for j in range(span[parent, 0], span[parent, 1]):
        for k in range(span[child, 0], span[child, 1]):
          steps, down = _path(heads, depth, j, k)
          if steps > 0:
            path[left, right] += np.float32(1.0 / steps)
            if down:
              directed[left, right] += np.float32(1.0 / steps)
          kind = _relation(heads, j, k, span[parent], span[child])
          if kind != _OTHER and abs(j - k) > far:
            far = abs(j - k)
            relation[left, right] = kind
  return relation, path, directed


@njit
def _outside(word, one, other):
  return word >= 0 and not (
    one[0] <= word < one[1] or other[0] <= word < other[1]
  )


@njit
def _relation(heads, j, k, parent, child):
  """How the words j of the parent and k of the child are related."""
  if heads[k] == j:
    return 0
  if heads[j] == k:
    return 1
  middle = heads[k]
  if _outside(middle, parent, child):
    if heads[middle] == j:
      return 2
    if middle == heads[j]:
      return 3
  # The parent of one is an ancestor of the other.
  for pair in range(2):
    one, other = (j, k) if pair == 0 else (k, j)
    top = heads[one]
    node = heads[other]
    while node >= 0:
      if node == top and _outside(top, parent, child):
        return 4
      node = heads[node]
  return _OTHER


@njit
def _path(heads, depth, j, k):
  """Arcs between two words, and whether j is an ancestor of k."""
  a, b, steps = j, k, 0
  while a != b:
    if depth[a] >= depth[b]:
      a = heads[a]
    else:
      b = heads[b]
    steps += 1
    if a < 0 or b < 0:
      return steps, False
  return steps, b == j
