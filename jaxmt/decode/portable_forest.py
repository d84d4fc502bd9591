"""Forests that need no grammar: with words, labels and feature values."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase import chains
from jaxmt.decode.translation_forest import edge_features
from jaxmt.hypergraph import Forest
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged

SPARSE = "Sparse"  # the sum of all sparse features, weights included


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpelledForest:
  """Forests of B sentences, E edges, with all that is to know of them.

  Attributes:
    forest: the forests.
    sentence: number of each sentence, int64 `[B]`.
    target: target side of each edge: a word is its number in `words`, the k-th
      tail is `-1 - k`. E rows of int32.
    words: target words.
    labels: names of the labels in `forest.nodes.label`.
    features: feature values of each edge, float64 `[E, F]`.
    names: their names.
    weights: weights by name; features times weights is the edge's score.
  """

  forest: Forest
  sentence: np.ndarray
  target: Ragged
  words: tuple[str, ...]
  labels: tuple[str, ...]
  features: np.ndarray
  names: tuple[str, ...]
  weights: Mapping[str, float]

  def __len__(self) -> int:
    return len(self.sentence)


def spell(
  model: Model,
  source: Source,
  forest: Forest,
  sentence: np.ndarray | None = None,
) -> SpelledForest:
  """Spells forests out.

  Args:
    model: rules, features and weights.
    source: the forests' sentences (`Result.source`).
    forest: B sentences.
    sentence: their numbers (`Result.rows`), int `[B]`; from 0 on if None.
  """
  values = edge_features(model, source, forest)
  names = model.feature_names
  weights = {name: float(model.weights.get(name, 0.0)) for name in names}
  if model.templates is not None:
    dense = values @ np.array([weights[name] for name in names])
    values = np.column_stack([values, forest.score - dense])
    names, weights = (*names, SPARSE), {**weights, SPARSE: 1.0}
  size = len(model.table.target_words)
  target = _targets(model, source, forest)
  used, place = np.unique(np.maximum(target.flat, -1), return_inverse=True)
  used, place = (used[1:], place - 1) if -1 in used[:1] else (used, place)
  spelling = lambda word: (
    model.table.target_words.words[word]
    if word < size
    else source.words[word - size]
  )
  flat = np.where(target.flat >= 0, place, target.flat).astype(np.int32)
  if sentence is None:
    sentence = np.arange(len(forest))
  return SpelledForest(
    forest=forest,
    sentence=np.asarray(sentence, np.int64),
    target=Ragged(flat=flat, offsets=target.offsets),
    words=tuple(map(spelling, used.tolist())),
    labels=model.table.labels,
    features=values,
    names=names,
    weights=weights,
  )


def _targets(model: Model, source: Source, forest: Forest) -> Ragged:
  """The target side of each edge; `V + c` is the c-th copied word."""
  if model.order is not None:
    row, symbols = chains.edge_rows(model, source, forest)
    return ragged.select(symbols, row)
  target = model.table.target
  size = len(model.table.target_words)
  copies = np.arange(size, size + len(source.words), dtype=np.int32)
  goal = np.array([-1], np.int32)
  sides = Ragged(
    flat=np.concatenate([target.flat.astype(np.int32), goal, copies]),
    offsets=np.concatenate(
      [target.offsets, target.offsets[-1] + np.arange(1, 2 + len(copies))]
    ),
  )
  return ragged.select(sides, forest.edges.rule)


def concatenate(parts: Sequence[SpelledForest]) -> SpelledForest:
  """Returns all sentences, by number.

  Raises:
    ValueError: if there are none, or their features or labels differ.
  """
  if not parts:
    raise ValueError("no forests")
  first = parts[0]
  for part in parts:
    if (part.names, part.labels) != (first.names, first.labels):
      raise ValueError("forests of different features or labels")
  numbers: dict[str, int] = {}
  flats = []
  for part in parts:
    table = [numbers.setdefault(word, len(numbers)) for word in part.words]
    table = np.array([*table, -1], np.int32)
    flat = part.target.flat
    flats.append(np.where(flat >= 0, table[np.maximum(flat, -1)], flat))
  lengths = np.concatenate([part.target.lengths for part in parts])
  joined = SpelledForest(
    forest=hypergraph.concatenate([part.forest for part in parts]),
    sentence=np.concatenate([part.sentence for part in parts]),
    target=Ragged(
      flat=np.concatenate(flats).astype(np.int32),
      offsets=ragged.row_offsets(lengths),
    ),
    words=tuple(numbers),
    labels=first.labels,
    features=np.concatenate([part.features for part in parts]),
    names=first.names,
    weights=first.weights,
  )
  return select(joined, np.argsort(joined.sentence, kind="stable"))


def select(spelled: SpelledForest, rows: np.ndarray) -> SpelledForest:
  """Returns some of the sentences, in the order of `rows`."""
  chosen, edges = hypergraph.select(spelled.forest, rows)
  return dataclasses.replace(
    spelled,
    forest=chosen,
    sentence=spelled.sentence[rows],
    target=ragged.select(spelled.target, edges),
    features=spelled.features[edges],
  )
