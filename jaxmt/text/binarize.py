"""Binarisation of trees, and the exact inverse of ours, which is left-heavy.

A node with more than two children gets intermediate nodes over its left part,
marked with `@`:

    (A c1 c2 c3 c4)  ->  (A (@A (@A c1 c2) c3) c4)

In preorder the intermediate nodes of A come right after A, so the new order is
the old one with n - 2 nodes inserted after every node of n > 2 children, and
all columns follow from where each old node went. Labels that begin with `@`
already are refused, since the inverse could not tell them apart.

Travatar's grammars are made of trees binarised to the left or to the right,
whose new nodes have the label of the old one and a bar:

    (A c1 c2 c3 c4)  ->  (A c1 (A' c2 (A' c3 c4)))
"""

from collections.abc import Callable

import numpy as np

from jaxmt.errors import InputError
from jaxmt.text import trees as tree_columns
from jaxmt.text.ragged import row_offsets
from jaxmt.text.trees import Trees

MARK = "@"
BAR = "'"
LEFT_HEAVY, LEFT, RIGHT = "left-heavy", "left", "right"
WAYS = (LEFT_HEAVY, LEFT, RIGHT)


def binarize(trees: Trees, how: str, *, path: str | None = None) -> Trees:
  """Returns the trees with at most two children per node.

  Args:
    trees: any trees.
    how: `LEFT_HEAVY`, or as Travatar does it `LEFT` or `RIGHT`; "" leaves them
      as they are.
    path: the file of the trees, for error messages.

  Raises:
    InputError: see `binarize_left_heavy`.
  """
  if how == LEFT_HEAVY:
    return binarize_left_heavy(trees, path=path)
  if how == LEFT:
    return _left(trees, lambda label: label + BAR)
  if how == RIGHT:
    return _right(trees, lambda label: label + BAR)
  if how:
    raise ValueError(f"binarisation {how!r} is none of {WAYS}")
  return trees


def binarize_left_heavy(trees: Trees, *, path: str | None = None) -> Trees:
  """Returns the trees with at most two children per node.

  Args:
    trees: any trees whose labels do not begin with `MARK`.
    path: the file of the trees, for error messages.

  Raises:
    InputError: naming file and line of the first label beginning with `MARK`.
  """
  marked = _marked(trees)
  if marked.any():
    _refuse(trees, marked, "begins with the mark of binarised trees", path)
  return _left(trees, lambda label: MARK + label)


def _left(trees: Trees, rename: Callable[[str], str]) -> Trees:
  """New nodes cover the left parts; `rename` gives their labels."""
  families = tree_columns.children(trees)
  extra = np.maximum(families.lengths - 2, 0)  # [M]
  moved = row_offsets(1 + extra)  # [M + 1], where the old nodes go
  sentence = np.repeat(trees.offsets[:-1], np.diff(trees.offsets))

  size = np.empty(moved[-1], np.int32)
  node = np.arange(len(trees.size))
  size[moved[:-1]] = moved[node + trees.size] - moved[:-1]
  # Intermediate node k = 1 .. n-2 covers all but the last k children: its
  # subtree ends where child n - k (from 0) begins.
  owner = np.repeat(node, extra)  # [E]
  step = np.arange(len(owner)) - np.repeat(np.cumsum(extra) - extra, extra) + 1
  place = moved[owner] + step
  follower = families.flat[families.offsets[owner + 1] - step]
  size[place] = moved[follower + sentence[owner]] - place

  return _assembled(
    trees, moved[:-1], place, owner, size, moved[trees.offsets], rename
  )


def _right(trees: Trees, rename: Callable[[str], str]) -> Trees:
  """New nodes cover the right parts; `rename` gives their labels.

  A new node stands right before every child that has an elder sibling and at
  least one younger, and ends where the parent does.
  """
  families = tree_columns.children(trees)
  sentence = np.repeat(trees.offsets[:-1], np.diff(trees.offsets))
  lengths = families.lengths
  order = np.arange(len(families.flat)) - np.repeat(
    families.offsets[:-1], lengths
  )
  chosen = (order > 0) & (order < np.repeat(lengths, lengths) - 1)
  owner = np.repeat(np.arange(len(lengths)), lengths)[chosen]
  child = families.flat[chosen] + sentence[owner]
  by_place = np.argsort(child)
  owner, child = owner[by_place], child[by_place]
  extra = np.zeros(len(trees.size), np.int64)
  extra[child] = 1
  before = row_offsets(extra)  # new nodes before each old one
  node = np.arange(len(trees.size))
  new = node + before[1:]
  ends = node + trees.size
  ends = ends + before[ends]
  size = np.empty(len(node) + len(child), np.int32)
  size[new] = ends - new
  place = new[child] - 1
  size[place] = ends[owner] - place
  offsets = trees.offsets + before[trees.offsets]
  return _assembled(trees, new, place, owner, size, offsets, rename)


def _assembled(trees, new, place, owner, size, offsets, rename) -> Trees:
  """Trees with new nodes at `place`, named after the old nodes `owner`.

  Args:
    trees: the old trees, M nodes.
    new: where the old nodes go, `[M]`.
    place: where the E new nodes go, `[E]`.
    owner: the old node that each belongs to, `[E]`.
    size: nodes of each subtree, int32 `[M + E]`.
    offsets: of the sentences.
    rename: an old node's label to that of its new nodes.
  """
  used, which = np.unique(trees.label[owner], return_inverse=True)
  names = {name: number for number, name in enumerate(trees.labels)}
  number = np.array(
    [names.setdefault(rename(trees.labels[old]), len(names)) for old in used],
    np.int32,
  )
  label = np.empty(len(size), np.int32)
  label[new] = trees.label
  label[place] = number[which]
  return tree_columns.assemble(
    labels=tuple(names),
    vocabulary=trees.vocabulary,
    offsets=offsets,
    label=label,
    size=size,
    word=trees.words.flat,
  )


def unbinarize(trees: Trees, *, path: str | None = None) -> Trees:
  """Returns the trees without the nodes whose label begins with `MARK`.

  Their children move up in their place. This undoes `binarize_left_heavy` and
  any other binarisation that marks its nodes so.

  Raises:
    InputError: if a marked node is a root or holds a word.
  """
  marked = _marked(trees)
  _refuse(trees, marked & (trees.parent < 0), "stands at the root", path)
  _refuse(trees, marked & (trees.size == 1), "holds a word", path)
  moved = row_offsets(~marked)
  node = np.arange(len(trees.size))
  size = moved[node + trees.size] - moved[:-1]
  keep = np.array([not name.startswith(MARK) for name in trees.labels], bool)
  number = np.cumsum(keep) - 1
  return tree_columns.assemble(
    labels=[
      name for name, is_kept in zip(trees.labels, keep, strict=True) if is_kept
    ],
    vocabulary=trees.vocabulary,
    offsets=moved[trees.offsets],
    label=number[trees.label[~marked]].astype(np.int32),
    size=size[~marked].astype(np.int32),
    word=trees.words.flat,
  )


def _marked(trees: Trees) -> np.ndarray:
  """Which nodes' labels begin with `MARK`, bool `[M]`."""
  names = np.array([name.startswith(MARK) for name in trees.labels], np.bool_)
  return names[trees.label]


def _refuse(
  trees: Trees, where: np.ndarray, cause: str, path: str | None
) -> None:
  """Raises at the first node of `where`, if there is one."""
  if not where.any():
    return
  node = int(np.argmax(where))
  row = int(np.searchsorted(trees.offsets, node, side="right")) - 1
  name = trees.labels[trees.label[node]]
  raise InputError(f"label '{name}' {cause}", path=path, line=row + 1)
