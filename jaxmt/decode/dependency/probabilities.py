"""Probability features of phrase dependencies: what a parsed bitext says.

The 15 features of `grammar.dependency_events`, looked up in a table of
`grammar.dependency_table`. They depend on both phrase pairs, the direction and
the gaps of an arc, not on the edges of the lattice: many edges stand for one
phrase pair at one place (an *option*), so that scores are computed once for
each pair of options.

E: edges of the lattice. U: options.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.grammar import dependency_events as events
from jaxmt.grammar.dependency_table import DependencyTable
from jaxmt.grammar.extract import parsed_pairs
from jaxmt.text import vocabulary
from jaxmt.text.kernels import njit
from jaxmt.text.key_table import look_up

NAMES = {
  "target-tree": events.TARGET_TREE,
  "rules": events.STRING_TO_TREE,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dependencies:
  """A table, and the clusters of the words it was made with."""

  table: DependencyTable
  clusters: Mapping[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptionKeys:
  """The phrase pairs of a lattice.

  Attributes:
    option: number of each edge's option, int32 `[E]`.
    keys: of target phrase, target clusters and source phrase, uint64 `[U, 3]`.
    span: source words `[begin, end)`, int32 `[U, 2]`.
    table: where features are looked up.
  """

  option: np.ndarray
  keys: np.ndarray
  span: np.ndarray
  table: DependencyTable


def phrase_keys(
  phrases: Sequence[str], clusters: Mapping[str, str] | None
) -> np.ndarray:
  """Returns the keys of phrases, of their clusters if there are any."""
  ids, words = vocabulary.intern(phrases)
  if clusters is not None:
    words = parsed_pairs.cluster_names(words, clusters)
  keys = events.word_keys(words)
  return events.row_keys(keys[ids.flat], ids.offsets)


def option_keys(
  lattice: Lattice,
  text: Sequence[str],
  source: Sequence[str],
  dependencies: Dependencies,
) -> OptionKeys:
  """Returns the phrase pairs of a lattice.

  Args:
    lattice: the lattice.
    text: target words of each edge.
    source: words of the source sentence.
    dependencies: table and clusters.
  """
  places: dict[tuple[int, int, str], int] = {}
  option = np.array(
    [
      places.setdefault((int(begin), int(end), phrase), len(places))
      for (begin, end), phrase in zip(lattice.span, text, strict=True)
    ],
    np.int32,
  )
  target = [phrase for _, _, phrase in places]
  source_phrases = [" ".join(source[begin:end]) for begin, end, _ in places]
  keys = np.stack(
    [
      phrase_keys(target, None),
      phrase_keys(target, dependencies.clusters),
      phrase_keys(source_phrases, None),
    ],
    axis=1,
  )
  span = np.array([place[:2] for place in places], np.int32).reshape(-1, 2)
  return OptionKeys(
    option=option, keys=keys, span=span, table=dependencies.table
  )


def weight_vector(weights: Mapping[str, float]) -> np.ndarray:
  """Returns the weights of the features, float64 `[15]`."""
  return np.array([weights.get(name, 0.0) for name in events.FEATURES])


def scores(
  options: OptionKeys, linked: np.ndarray, weights: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray]:
  """Returns what the features add to the scores of arcs.

  Args:
    options: of the lattice.
    linked: pairs of options that arcs link, left and right one, by target gap,
      bool `[2, U, U]`.
    weights: by name.

  Returns:
    (of arcs by target gap, side of the child, left and right one, float32
    `[2, 2, U, U]`; of roots, float32 `[U]`).
  """
  size = len(options.keys)
  vector = weight_vector(weights)
  if not vector.any():
    return np.zeros((2, 2, size, size), np.float32), np.zeros(size, np.float32)
  _, cluster = np.unique(options.keys[:, 1], return_inverse=True)
  return _scores(
    options.keys, options.span, cluster.reshape(-1), options.table.slots,
    vector, linked,
  )  # fmt: skip


def values(
  options: OptionKeys, child: int, parent: int, *, direction: int, gap: int
) -> dict[str, float]:
  """Returns the features of an arc: names and values, without zeros.

  Args:
    options: of the lattice.
    child: edge of the dependent.
    parent: edge of the head, -1 for the root.
    direction: of `dependency_events`.
    gap: whether there may be target words between; not of the root.
  """
  out = np.zeros(len(events.FEATURES))
  own = options.option
  _values(
    options.keys, options.span, options.table.slots, own[child],
    own[parent] if parent >= 0 else -1, direction, gap,
    np.ones(len(out), np.bool_), out,
  )  # fmt: skip
  named = zip(events.FEATURES, out.tolist(), strict=True)
  return {name: value for name, value in named if value}


@njit
def _values(keys, span, slots, child, parent, direction, gap, used, out):
  """Sets the values of the features of an arc; False if all are 0.

  What was never seen as clusters was never seen as words, and what was never
  seen in the target tree has no event with both phrases.
  """
  out[:] = 0.0
  parts = np.zeros(events.PARTS, np.uint64)
  parts[0], parts[2], parts[4] = keys[child, 0], keys[child, 1], keys[child, 2]
  order, source_gap = events.ROOT, events.ROOT
  if parent < 0:
    parts[1] = parts[3] = parts[5] = np.uint64(events.ROOT_KEY)
    gap = events.ROOT
  else:
    parts[1], parts[3] = keys[parent, 0], keys[parent, 1]
    parts[5] = keys[parent, 2]
    after = span[child, 0] > span[parent, 0]
    order = np.int64(after != (direction == events.RIGHT))
    between = max(
      span[child, 0] - span[parent, 1], span[parent, 0] - span[child, 1]
    )
    source_gap = np.int64(between > 0)
  context, outcome = events.event(1, parts, direction, order, source_gap, gap)
  key = events.event_key(context, outcome)
  out[1] = look_up(key, slots)
  if out[1] == 0.0:
    return False
  lexical = events.lexical_context(events.WORD_CLUSTER, key) | np.uint64(1)
  out[events.WORD_CLUSTER] = look_up(lexical, slots)
  context, outcome = events.event(0, parts, direction, order, source_gap, gap)
  key = events.event_key(context, outcome)
  out[0] = look_up(key, slots)
  if out[0] != 0.0:
    lexical = events.lexical_context(events.WORD, key) | np.uint64(1)
    out[events.WORD] = look_up(lexical, slots)
  for kind in range(4, len(out)):
    mixed_kind = kind in (5, 7, 9, 11)  # with clusters
    if used[kind] and (mixed_kind or out[0] != 0.0):
      context, outcome = events.event(
        kind, parts, direction, order, source_gap, gap
      )
      out[kind] = look_up(events.event_key(context, outcome), slots)
  return True


@njit
def _seen(parts, child, parent, direction, slots):
  """Whether clusters of a child and of its parent were ever linked."""
  parts[events.CHILD_CLUSTERS] = child
  parts[events.PARENT_CLUSTERS] = parent
  context, outcome = events.event(1, parts, direction, 0, 0, 0)
  return look_up(events.event_key(context, outcome), slots) != 0.0


@njit
def _scores(keys, span, cluster, slots, weights, linked):
  """Scores of pairs of options, and of roots; see `scores`."""
  size = len(keys)
  out = np.zeros(len(weights))
  used = weights != 0.0
  score = np.zeros((2, 2, size, size), np.float32)
  root = np.zeros(size, np.float32)
  # Most pairs were not even seen as clusters, of which there are fewer: 0
  # unknown, 1 seen, -1 not; by direction, child and parent.
  kinds = cluster.max() + 1 if size else 0
  seen = np.zeros((2, kinds, kinds), np.int8)
  parts = np.zeros(events.PARTS, np.uint64)
  for gap in range(2):
    for one in range(size):
      for two in range(size):
        if not linked[gap, one, two]:
          continue
        for side in range(2):
          child, parent = (one, two) if side == 0 else (two, one)
          row, column = cluster[child], cluster[parent]
          if seen[side, row, column] == 0:
            is_seen = _seen(parts, keys[child, 1], keys[parent, 1], side, slots)
            seen[side, row, column] = 1 if is_seen else -1
          if seen[side, row, column] < 0:
            continue
          if _values(keys, span, slots, child, parent, side, gap, used, out):
            score[gap, side, one, two] = (weights * out).sum()
  for one in range(size):
    if _values(keys, span, slots, one, -1, events.ROOT, 2, used, out):
      root[one] = np.float32((weights * out).sum())
  return score, root
