"""Translation by parsing phrase lattices: best trees and k-best lists.

The coarse pass is the phrase-based search. Its lattice is pruned to a number of
edges, and a path with a dependency tree over its phrases is found exactly
(Gimpel 2012, algorithm 3). The score of a tree is that of the path, with a copy
of the phrase-based weights of its own, and that of its arcs.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode.dependency import (
  configurations,
  lattice_best,
  lattice_chart,
)
from jaxmt.decode.dependency.configurations import ArcParts
from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.dependency.lattice_chart import ArcScores
from jaxmt.decode.dependency.phrase_lattices import PhraseLattice
from jaxmt.hypergraph import EdgeStrings, Forest
from jaxmt.text import vocabulary
from jaxmt.text.ragged import Ragged, from_rows

PHRASE_SCORE = "phrase_score"
# Edges of a forest: most for each entry of a list, but at least so many; with
# fewer for each entry a list is not made before there is no larger forest.
_EDGES, _LEAST_EDGES, _FEW_EDGES = 200, 10_000, 40
# Names of the 88 features of arcs.
NAMES = tuple(name for group in configurations.NAMES.values() for name in group)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseTree:
  """A translation with a dependency tree over its phrases.

  Attributes:
    phrases: target phrases in order.
    spans: source words `[begin, end)` of each, int32 `[n, 2]`.
    heads: place of each phrase's head, -1 is the root, int32 `[n]`.
    score: of the whole.
  """

  phrases: tuple[str, ...]
  spans: np.ndarray
  heads: np.ndarray
  score: float

  @property
  def text(self) -> str:
    """The translation."""
    return " ".join(phrase for phrase in self.phrases if phrase)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationList:
  """D different translations of a sentence, best first.

  Attributes:
    text: the translations.
    score: of each with its best tree, float64 `[D]`.
    values: of the features, float64 `[D, F]`.
    names: of the features: those of paths, then those of arcs.
  """

  text: tuple[str, ...]
  score: np.ndarray
  values: np.ndarray
  names: tuple[str, ...]

  def __len__(self) -> int:
    """Returns D."""
    return len(self.text)


def fine_weights(
  coarse: Mapping[str, float], given: Mapping[str, float]
) -> dict[str, float]:
  """Returns the weights of paths and arcs.

  Args:
    coarse: of the phrase-based features, as the coarse pass has them.
    given: of arcs, and of phrase-based features that have other weights here.
      `phrase_score` is a factor for all coarse weights.
  """
  factor = given.get(PHRASE_SCORE, 1.0)
  fine = {name: factor * weight for name, weight in coarse.items()}
  return fine | {n: w for n, w in given.items() if n != PHRASE_SCORE}


def scored(found: PhraseLattice, weights: Mapping[str, float]) -> Lattice:
  """Returns the lattice with the scores of these phrase-based weights."""
  vector = np.array([weights.get(name, 0.0) for name in found.names])
  lattice = found.lattice
  final = np.where(
    lattice.final > -np.inf, found.final_features @ vector, -np.inf
  )
  return dataclasses.replace(
    lattice,
    score=(found.features @ vector).astype(np.float32),
    final=final.astype(np.float32),
  )


def best(
  found: PhraseLattice, parts: ArcParts, weights: Mapping[str, float]
) -> PhraseTree | None:
  """Returns the best translation and tree; None if limits allow no tree.

  Args:
    found: the lattice.
    parts: of its arcs, see `configurations.arc_parts`.
    weights: by name, see `fine_weights`.
  """
  arcs = configurations.scores(parts, weights)
  tree = lattice_chart.best_tree(scored(found, weights), arcs)
  if tree is None:
    return None
  return PhraseTree(
    phrases=tuple(found.text[edge] for edge in tree.edges),
    spans=found.lattice.span[tree.edges],
    heads=tree.heads,
    score=tree.score,
  )


def kbest(
  found: PhraseLattice,
  parts: ArcParts,
  weights: Mapping[str, float],
  *,
  size: int,
) -> TranslationList:
  """Returns the best translations, each with its best tree.

  Forests of the best derivations grow until the list ends within the margin
  that their derivations have.

  Args:
    found: the lattice.
    parts: of its arcs.
    weights: by name, see `fine_weights`.
    size: k; fewer if there are fewer strings, or fewer in the part of the
      forest that is looked at (`lattice_best.best_forests`).
  """
  arcs: ArcScores = configurations.scores(parts, weights)
  ids, words = vocabulary.intern(found.text)
  listed = lambda forest: hypergraph.kbest(
    forest, size=size, strings=_strings(ids, forest), unique=True
  )
  forest, lists = None, None
  for forest, margin in lattice_best.best_forests(
    scored(found, weights), arcs, max_edges=max(_LEAST_EDGES, _EDGES * size)
  ):
    lists = None
    if forest.num_edges < _FEW_EDGES * size:
      continue  # too small for a whole list
    lists = listed(forest)
    count = len(lists.score)
    if count == size and lists.score[0] - lists.score[-1] <= margin:
      break
  assert forest is not None  # there is at least an empty one
  lists = lists or listed(forest)
  return TranslationList(
    text=tuple(
      " ".join(words[word] for word in lists.words[item])
      for item in range(len(lists.score))
    ),
    score=lists.score,
    values=_values(found, parts, forest.edges, lists.edges),
    names=(*found.names, *parts.names),
  )


def _strings(ids: Ragged, forest: Forest) -> EdgeStrings:
  """Words of edges that add one; both tails of others, or nothing."""
  count = len(ids)
  rows = from_rows([*(ids[row] for row in range(count)), [-1, -2], []])
  # Axioms of left sides add nothing and have no tails.
  row = np.where(forest.tails[:, 0] >= 0, count, count + 1)
  row = np.where(forest.edges.edge >= 0, forest.edges.edge, row)
  return EdgeStrings(row=row.astype(np.int32), symbols=rows)


def _values(
  found: PhraseLattice, parts: ArcParts, added, derivations: Ragged
) -> np.ndarray:
  """Sums of feature values over each derivation, `[D, F]`.

  Args:
    found: the lattice.
    parts: of its arcs.
    added: what each forest edge adds, see `lattice_forest.EdgeParts`.
    derivations: forest edges of each, D rows.
  """
  width = len(found.names) + len(parts.names)
  if not len(derivations):
    return np.zeros((0, width))
  owner = np.repeat(np.arange(len(derivations)), derivations.lengths)
  flat = derivations.flat
  # Of paths: their edges, and where they end.
  on_path = added.edge[flat] >= 0
  path = added.edge[flat[on_path]]
  first = np.searchsorted(owner[on_path], np.arange(len(derivations)))
  last = np.maximum.reduceat(found.lattice.end[path], first)
  paths = np.add.reduceat(found.features[path], first, dtype=np.float64)
  # Of arcs, of which the same occur in many derivations.
  linking = added.child[flat] >= 0
  child, head = added.child[flat[linking]], added.head[flat[linking]]
  size = len(found.lattice) + 1
  arcs, which = np.unique(
    child.astype(np.int64) * size + np.maximum(head, -1) + 1,
    return_inverse=True,
  )
  column = {name: place for place, name in enumerate(parts.names)}
  table = np.zeros((len(arcs), len(parts.names)))
  for row, (one, other) in enumerate(zip(*divmod(arcs, size), strict=True)):
    for name, value in _arc_values(parts, int(one), int(other) - 1).items():
      table[row, column[name]] = value
  first = np.searchsorted(owner[linking], np.arange(len(derivations)))
  trees = np.add.reduceat(table[which.reshape(-1)], first)
  return np.concatenate([paths + found.final_features[last], trees], axis=1)


def _arc_values(parts: ArcParts, child: int, head: int) -> dict[str, float]:
  """Feature values of an arc; the head is negative for the root."""
  if head < 0:
    return configurations.root_values(parts, child)
  lattice = parts.lattice
  rightward = bool(lattice.start[child] >= lattice.end[head])
  left, right = (head, child) if rightward else (child, head)
  return configurations.values(parts, left, right, rightward=rightward)
