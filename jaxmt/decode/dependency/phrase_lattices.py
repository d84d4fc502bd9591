"""Lattices of the phrase-based search, ready for dependency parsing."""

import dataclasses

import numpy as np

from jaxmt.decode import translation_forest
from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.model import Model, Source, select_source
from jaxmt.hypergraph import Forest


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseLattice:
  """The lattice of a sentence, with the words of its edges.

  Attributes:
    lattice: the lattice.
    text: target words of each edge, E strings.
  """

  lattice: Lattice
  text: tuple[str, ...]


def from_forest(
  model: Model, source: Source, forest: Forest
) -> list[PhraseLattice | None]:
  """Returns the lattice of each sentence; None where there is no derivation.

  Args:
    model: a phrase-based model.
    source: the sentences.
    forest: what its search explored (`phrase.stack_forest`), possibly pruned.
  """
  return [
    _one(model, select_source(source, np.array([row])), forest[row])
    if forest.roots[row] >= 0
    else None
    for row in range(len(forest))
  ]


def _one(model: Model, source: Source, forest: Forest) -> PhraseLattice:
  size = len(model.table)
  rule, head = forest.edges.rule, forest.heads
  tail = forest.tails[:, 0]
  # The root's edges end a path: node t + 1 of the lattice is final.
  goal = rule == size
  final = np.full(forest.num_nodes, -np.inf, np.float32)
  final[tail[goal] + 1] = forest.score[goal]
  edges = np.flatnonzero(~goal)
  edges = edges[np.argsort(tail[edges], kind="stable")]
  rule = rule[edges]
  # A hypothesis knows where its last phrase ends, the rule how long it is.
  end = forest.nodes.end[head[edges]]
  known = np.minimum(rule, size - 1)
  length = np.where(rule > size, 1, model.table.source.lengths[known])
  words = _texts(model, source, forest, edges)
  lattice = Lattice(
    start=(tail[edges] + 1).astype(np.int32),
    end=(head[edges] + 1).astype(np.int32),
    score=forest.score[edges].astype(np.float32),
    final=final,
    words=np.array([len(text.split()) for text in words], np.int32),
    span=np.stack([end - length, end], 1).astype(np.int32),
  )
  return PhraseLattice(lattice=lattice, text=words)


def _texts(model, source, forest, edges) -> tuple[str, ...]:
  strings = translation_forest.edge_strings(model, source, forest)
  known = model.table.target_words.words
  offsets, flat = strings.symbols.offsets, strings.symbols.flat
  out = []
  for row in strings.row[edges].tolist():
    symbols = flat[offsets[row] : offsets[row + 1]].tolist()
    out.append(
      " ".join(
        known[s] if s < len(known) else source.words[s - len(known)]
        for s in symbols
        if s >= 0
      )
    )
  return tuple(out)
