"""Lattices of the phrase-based search, ready for dependency parsing."""

import dataclasses

import numpy as np

from jaxmt.decode import translation_forest
from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.model import Model, Source, select_source
from jaxmt.hypergraph import Forest
from jaxmt.text.ragged import Ragged, from_rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseLattice:
  """The lattice of a sentence, with words and features of its edges.

  Attributes:
    lattice: the lattice.
    text: target words of each edge, E strings.
    source: words of the source sentence.
    features: values of the phrase-based features, float32 `[E, F]`.
    final_features: what ending at a node adds to them, float32 `[V, F]`.
    names: of the features, F.
    aligned: the source word of each target word, E rows; of an edge without
      words its first source word.
  """

  lattice: Lattice
  text: tuple[str, ...]
  source: tuple[str, ...]
  features: np.ndarray
  final_features: np.ndarray
  names: tuple[str, ...]
  aligned: Ragged


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
  features = translation_forest.edge_features(model, source, forest)
  features = features.astype(np.float32)
  final_features = np.zeros((forest.num_nodes, features.shape[1]), np.float32)
  final_features[tail[goal] + 1] = features[goal]
  lattice = Lattice(
    start=(tail[edges] + 1).astype(np.int32),
    end=(head[edges] + 1).astype(np.int32),
    score=forest.score[edges].astype(np.float32),
    final=final,
    words=np.array([len(text.split()) for text in words], np.int32),
    span=np.stack([end - length, end], 1).astype(np.int32),
  )
  return PhraseLattice(
    lattice=lattice,
    text=words,
    source=_source_words(model, source),
    features=features[edges],
    final_features=final_features,
    names=tuple(model.feature_names),
    aligned=_aligned(model, rule, lattice),
  )


def _aligned(model: Model, rule: np.ndarray, lattice: Lattice) -> Ragged:
  """The source word of each target word, from the links of the phrase pairs."""
  links = model.table.links
  rows = []
  for edge, number in enumerate(rule.tolist()):
    size = max(int(lattice.words[edge]), 1)
    word = np.full(size, -1)
    if number < len(model.table):
      for source, target in links[number].tolist()[::-1]:
        if target < size:
          word[target] = source
    # Words without links: as the one before, or else as the one after.
    for place in range(1, size):
      word[place] = word[place - 1] if word[place] < 0 else word[place]
    for place in range(size - 2, -1, -1):
      word[place] = word[place + 1] if word[place] < 0 else word[place]
    rows.append(lattice.span[edge, 0] + np.maximum(word, 0))
  return from_rows(rows)


def _source_words(model: Model, source: Source) -> tuple[str, ...]:
  """The words of the only sentence."""
  known = model.table.source_words.words
  return tuple(
    known[word] if word < len(known) else source.words[word - len(known)]
    for word in source.ids[0].tolist()
  )


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
