"""Translation by parsing phrase lattices: best trees and k-best lists.

The coarse pass is the phrase-based search. Its lattice is pruned to a number of
edges, and a path with a dependency tree over its phrases is found exactly
(Gimpel 2012, algorithm 3). The score of a tree is

    phrase_score * (score of the path in the coarse pass) + features of arcs,

so the fine copy of the phrase-based weights is the coarse one times a factor.
"""

import collections
import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode.dependency import (
  configurations,
  lattice_chart,
  lattice_forest,
)
from jaxmt.decode.dependency.configurations import ArcParts
from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.dependency.lattice_chart import Arcs
from jaxmt.decode.dependency.phrase_lattices import PhraseLattice
from jaxmt.hypergraph import EdgeStrings, Forest
from jaxmt.text import vocabulary
from jaxmt.text.ragged import Ragged, from_rows

PHRASE_SCORE = "phrase_score"
NAMES = (
  PHRASE_SCORE,
  *(name for group in configurations.NAMES.values() for name in group),
)


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


def scaled(lattice: Lattice, weights: Mapping[str, float]) -> Lattice:
  """Returns the lattice with its scores times the weight of `phrase_score`."""
  factor = np.float32(weights.get(PHRASE_SCORE, 1.0))
  # 0 times -inf is no number: nodes that are not final stay so.
  final = np.where(
    lattice.final > -np.inf, factor * np.maximum(lattice.final, -1e30), -np.inf
  )
  return dataclasses.replace(
    lattice, score=factor * lattice.score, final=final.astype(np.float32)
  )


def best(
  found: PhraseLattice, parts: ArcParts, weights: Mapping[str, float]
) -> PhraseTree | None:
  """Returns the best translation and tree; None if limits allow no tree.

  Args:
    found: the lattice.
    parts: of its arcs, see `configurations.arc_parts`.
    weights: by name, of `NAMES`.
  """
  arcs = configurations.scores(parts, weights)
  tree = lattice_chart.best_tree(scaled(found.lattice, weights), arcs)
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
    found: the lattice; it must be small, see `lattice_forest`.
    parts: of its arcs.
    weights: by name, of `NAMES`.
    size: k; fewer if there are fewer strings.

  Raises:
    ValueError: if the lattice is too large.
  """
  arcs: Arcs = configurations.scores(parts, weights)
  lattice = scaled(found.lattice, weights)
  forest = lattice_forest.forest(lattice, arcs)
  ids, words = vocabulary.intern(found.text)
  lists = hypergraph.kbest(
    forest, size=size, strings=_strings(ids, forest), unique=True
  )
  out = []
  for item in range(len(lists.score)):
    edges = lists.edges[item]
    out.append(
      Candidate(
        text=" ".join(words[word] for word in lists.words[item]),
        features=_features(found.lattice, parts, forest.edges, edges),
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


def _features(lattice, parts, added, edges) -> dict[str, float]:
  """Sums of feature values over a derivation."""
  sums: collections.defaultdict[str, float] = collections.defaultdict(float)
  path = added.edge[edges]
  path = path[path >= 0]
  last = path[np.argmax(lattice.end[path])]
  score = lattice.score[path].sum() + lattice.final[lattice.end[last]]
  sums[PHRASE_SCORE] = float(score)
  for edge in edges.tolist():
    child, head = int(added.child[edge]), int(added.head[edge])
    if child < 0:
      continue
    if head < 0:
      sums["dep_root-root"] += float(parts.has_root[child])
      continue
    rightward = bool(lattice.start[child] >= lattice.end[head])
    left, right = (head, child) if rightward else (child, head)
    named = configurations.values(parts, left, right, rightward=rightward)
    for name, value in named.items():
      sums[name] += value
  return {name: value for name, value in sums.items() if value}
