"""Translation by parsing phrase lattices: best trees and k-best lists.

The coarse pass is the phrase-based search. Its lattice is pruned to a number of
edges, and a path with a dependency tree over its phrases is found exactly
(Gimpel 2012, algorithm 3). The score of a tree is that of the path, with a copy
of the phrase-based weights of its own, and that of its arcs.
"""

import collections
import dataclasses
import functools
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
_EDGES, _LEAST_EDGES = 200, 10_000  # of a forest: for each entry of a list
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
class Candidate:
  """An entry of a k-best list: text, feature values by name, score."""

  text: str
  features: Mapping[str, float]
  score: float


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
) -> list[Candidate]:
  """Returns the best translations, each with its best tree, best first.

  Args:
    found: the lattice.
    parts: of its arcs.
    weights: by name, see `fine_weights`.
    size: k; fewer if there are fewer strings, or fewer in the part of the
      forest that is looked at (`lattice_best.best_forest`).
  """
  arcs: ArcScores = configurations.scores(parts, weights)
  forest = lattice_best.best_forest(
    scored(found, weights), arcs, max_edges=max(_LEAST_EDGES, _EDGES * size)
  )
  ids, words = vocabulary.intern(found.text)
  lists = hypergraph.kbest(
    forest, size=size, strings=_strings(ids, forest), unique=True
  )
  out = []
  # The same arcs occur in many entries.
  arc_values = functools.cache(functools.partial(_arc_values, parts))
  for item in range(len(lists.score)):
    edges = lists.edges[item]
    out.append(
      Candidate(
        text=" ".join(words[word] for word in lists.words[item]),
        features=_features(found, forest.edges, edges, arc_values),
        score=float(lists.score[item]),
      )
    )
  return out


def _strings(ids: Ragged, forest: Forest) -> EdgeStrings:
  """Words of edges that add one; both tails of others, or nothing."""
  count = len(ids)
  rows = from_rows([*(ids[row] for row in range(count)), [-1, -2], []])
  # Axioms of left sides add nothing and have no tails.
  row = np.where(forest.tails[:, 0] >= 0, count, count + 1)
  row = np.where(forest.edges.edge >= 0, forest.edges.edge, row)
  return EdgeStrings(row=row.astype(np.int32), symbols=rows)


def _arc_values(parts: ArcParts, child: int, head: int) -> dict[str, float]:
  """Feature values of an arc; the head is negative for the root."""
  if head < 0:
    return configurations.root_values(parts, child)
  lattice = parts.lattice
  rightward = bool(lattice.start[child] >= lattice.end[head])
  left, right = (head, child) if rightward else (child, head)
  return configurations.values(parts, left, right, rightward=rightward)


def _features(found, added, edges, arc_values) -> dict[str, float]:
  """Sums of feature values over a derivation."""
  sums: collections.defaultdict[str, float] = collections.defaultdict(float)
  lattice = found.lattice
  path = added.edge[edges]
  path = path[path >= 0]
  last = lattice.end[path[np.argmax(lattice.end[path])]]
  values = found.features[path].sum(0) + found.final_features[last]
  sums.update(zip(found.names, values.tolist(), strict=True))
  for edge in edges.tolist():
    child, head = int(added.child[edge]), int(added.head[edge])
    if child >= 0:
      for name, value in arc_values(child, head).items():
        sums[name] += value
  return {name: value for name, value in sums.items() if value}
