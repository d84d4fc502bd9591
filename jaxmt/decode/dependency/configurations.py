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
tables of weights: no array has an axis of features. What depends on source
phrases only is computed once for each pair of spans.

E: edges of the lattice. S: distinct spans of them. n: source words.
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jaxmt.decode.dependency import arc_kernel, probabilities
from jaxmt.decode.dependency import lattice as lattices
from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.dependency.lattice_chart import ArcScores
from jaxmt.decode.dependency.probabilities import OptionKeys
from jaxmt.grammar import dependency_events

DIRECTIONS = ("left", "right")
ORIENTATIONS = ("same", "swap")
GAPS = ("no", "yes")
RELATIONS = (
  *("parent-child", "child-parent", "grandparent-grandchild", "sibling"),
  *("c-command", "other"),
)
assert RELATIONS[arc_kernel.OTHER] == "other"


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
    tree = heads[start : start + size]
    out.append(source_tree(tree) if size else None)
    start += size
  return out


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArcParts:
  """What the features of all arcs of a lattice are made of.

  Rows of arrays `[S, S]` are spans of left edges, columns those of right ones.
  The first axis of arrays `[2, S, S]` is the direction: dependents on the left,
  or on the right.

  Attributes:
    lattice: the lattice.
    longest: words on the longest path between two nodes, -1: none, `[V, V]`.
    limits: most source words and most target words between linked phrases.
    place: number of each edge's span, int32 `[E]`.
    gaps: source words between spans, -1 where they overlap, int32 `[S, S]`.
    swap: 1 if the source order is the other one, int8 `[S, S]`.
    relation: number in `RELATIONS`, int8 `[2, S, S]`; None without a tree.
    path: sums of inverse path lengths, float32 `[2, S, S]`; empty without a
      tree.
    directed_path: the same downwards only.
    has_root: whether an edge's phrase has the source's root, bool `[E]`.
    linked_options: pairs of options that arcs link, by target gap, bool
      `[2, U, U]`.
    options: for the probability features, or None.
    groups: of `GROUPS`, those that count.
  """

  lattice: Lattice
  longest: np.ndarray
  limits: tuple[int, int]
  place: np.ndarray
  gaps: np.ndarray
  swap: np.ndarray
  relation: np.ndarray | None
  path: np.ndarray
  directed_path: np.ndarray
  has_root: np.ndarray
  linked_options: np.ndarray
  options: OptionKeys | None = None
  groups: frozenset[str] = frozenset(GROUPS)

  @functools.cached_property
  def names(self) -> tuple[str, ...]:
    """Names of the features that count."""
    return tuple(
      name for group in GROUPS if group in self.groups for name in NAMES[group]
    )

  @functools.cached_property
  def known(self) -> frozenset[str]:
    """The same as a set."""
    return frozenset(self.names)

  def arguments(self) -> tuple:
    """Returns what all kernels over arcs begin with."""
    lattice = self.lattice
    option = np.zeros(len(lattice), np.int32)
    if self.options is not None:
      option = self.options.option
    return (
      *(lattice.start, lattice.end, self.place, option),
      *(self.longest, self.gaps, *self.limits),
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
    source_limit: most source words between two phrases, see
      `lattice.allowed_arcs`.
    target_limit: most target words between them.

  Raises:
    ValueError: for an unknown group.
  """
  for group in groups:
    if group not in NAMES:
      raise ValueError(f"no group '{group}'; there are: {', '.join(GROUPS)}")
  limit = lambda given: arc_kernel.NO_LIMIT if given is None else given
  spans, place = np.unique(lattice.span, axis=0, return_inverse=True)
  begin = spans[:, 0]
  nothing = np.zeros((2, 0, 0), np.float32)
  parts = ArcParts(
    lattice=lattice,
    longest=lattices.longest_paths(lattice),
    limits=(limit(source_limit), limit(target_limit)),
    place=place.reshape(-1).astype(np.int32),
    gaps=lattices.span_gaps(spans),
    swap=(begin[:, None] > begin[None]).astype(np.int8),
    relation=None,
    path=nothing,
    directed_path=nothing,
    has_root=np.zeros(len(lattice), bool),
    linked_options=nothing,
    options=options,
    groups=frozenset(groups),
  )
  linked, pairs = arc_kernel.linked_pairs(
    *parts.arguments(), 1 if options is None else len(options.keys)
  )
  parts = dataclasses.replace(parts, linked_options=pairs)
  if tree is None:
    return parts
  relation, path, directed = arc_kernel.relations(
    spans, tree.heads, tree.depth, linked
  )
  root = int(np.flatnonzero(tree.heads == -1)[0])
  return dataclasses.replace(
    parts,
    relation=relation,
    path=path,
    directed_path=directed,
    has_root=(lattice.span[:, 0] <= root) & (root < lattice.span[:, 1]),
  )


def scores(parts: ArcParts, weights: Mapping[str, float]) -> ArcScores:
  """Returns the scores of arcs; weights that are not given are 0."""
  weights = {name: weights.get(name, 0.0) for name in parts.names}
  weight = lambda name: np.float32(weights.get(name, 0.0))
  root = weight("dep_root-root") * parts.has_root.astype(np.float32)
  pairs = np.zeros((2, 2, 1, 1), np.float32)
  if parts.options is not None:
    pairs, roots = probabilities.scores(
      parts.options, parts.linked_options, weights
    )
    root += roots[parts.options.option]
  left, right = arc_kernel.add_up(
    *parts.arguments(),
    *(_span_scores(parts, weight), pairs, weight("dep_target_length")),
  )
  return ArcScores(left=left, right=right, root=root)


def _span_scores(parts: ArcParts, weight) -> np.ndarray:
  """What arcs have from their spans and target gap, `[2, 2, S, S]`."""
  table = lambda pattern, *axes: np.array(
    [weight(pattern.format(*names)) for names in itertools.product(*axes)]
  ).reshape([len(axis) for axis in axes])
  words = np.maximum(parts.gaps, 0)
  far = (words > 0).astype(np.int8)
  out = np.zeros((2, 2, *parts.gaps.shape), np.float32)
  for side, direction in enumerate(DIRECTIONS):
    order = table(f"dep_{direction}_{{}}", ORIENTATIONS)
    gaps = table(f"dep_{direction}_{{}}_{{}}_{{}}", ORIENTATIONS, GAPS, GAPS)
    out[side] += weight("dep_source_length") * words + order[parts.swap]
    for gap in range(2):
      out[side, gap] += gaps[parts.swap, far, gap]
    if parts.relation is None:
      continue
    relation = parts.relation[side]
    out[side] += (
      table(f"dep_{{}}_{direction}", RELATIONS)[relation]
      + table("dep_{}_{}", RELATIONS, ORIENTATIONS)[relation, parts.swap]
      + weight("dep_path") * parts.path[side]
      + weight("dep_directed_path") * parts.directed_path[side]
    )
    for gap in range(2):
      out[side, gap] += table("dep_{}_{}_{}", RELATIONS, GAPS, GAPS)[
        relation, far, gap
      ]
  return out


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
  at = (parts.place[left], parts.place[right])
  end, start = parts.lattice.end[left], parts.lattice.start[right]
  words, target_gap = max(int(parts.gaps[at]), 0), int(end != start)
  direction = DIRECTIONS[rightward]
  order = ORIENTATIONS[parts.swap[at]]
  gaps = f"{GAPS[words > 0]}_{GAPS[target_gap]}"
  features = {
    "dep_source_length": float(words),
    "dep_target_length": float(parts.longest[end, start]),
    f"dep_{direction}_{order}": 1.0,
    f"dep_{direction}_{order}_{gaps}": 1.0,
  }
  if parts.relation is not None:
    side = (int(rightward), *at)
    relation = RELATIONS[parts.relation[side]]
    features |= {
      f"dep_{relation}_{direction}": 1.0,
      f"dep_{relation}_{order}": 1.0,
      f"dep_{relation}_{gaps}": 1.0,
      "dep_path": float(parts.path[side]),
      "dep_directed_path": float(parts.directed_path[side]),
    }
  if parts.options is not None:
    child, parent = (right, left) if rightward else (left, right)
    features |= probabilities.values(
      *(parts.options, child, parent),
      direction=int(rightward),
      gap=target_gap,
    )
  return _counting(parts, features)


def root_values(parts: ArcParts, edge: int) -> dict[str, float]:
  """Returns the features of the arc to the root of a tree."""
  features = {"dep_root-root": float(parts.has_root[edge])}
  if parts.options is not None:
    features |= probabilities.values(
      parts.options, edge, -1, direction=dependency_events.ROOT, gap=0
    )
  return _counting(parts, features)


def _counting(parts: ArcParts, found: dict[str, float]) -> dict[str, float]:
  """Without zeros and without groups that do not count."""
  return {n: value for n, value in found.items() if value and n in parts.known}
