"""Forests to tune on: features of edges, words, references.

E: edges. F: features. B: sentences.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from jaxmt.decode import portable_forest
from jaxmt.decode.model import Model, Source
from jaxmt.decode.portable_forest import SpelledForest
from jaxmt.hypergraph import Forest, prune
from jaxmt.metrics import base, encoded_text
from jaxmt.text.ragged import Ragged
from jaxmt.tune.pool import find_metric


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestPool:
  """Forests of B sentences with features and references.

  Attributes:
    spelled: the forests; sentences are numbered from 0.
    references: for each sentence its references; none before `bind`.
    listed: (sentence, line) of the candidates in the k-best lists of the same
      decoding.
  """

  spelled: SpelledForest
  references: encoded_text.ReferenceLines = ()
  listed: frozenset[tuple[int, str]] = frozenset()

  @property
  def names(self) -> tuple[str, ...]:
    """Names of the F features."""
    return self.spelled.names

  def bind(self, references: encoded_text.ReferenceLines) -> "ForestPool":
    """Returns the pool with its references.

    Raises:
      ValueError: if they are not those of B sentences.
    """
    if len(references) != len(self.spelled):
      raise ValueError(
        f"{len(self.spelled)} sentences, references of {len(references)}"
      )
    return dataclasses.replace(self, references=references)

  def take(self, chosen: np.ndarray) -> "ForestPool":
    """Returns the forests of some sentences, renumbered."""
    some = portable_forest.select(self.spelled, chosen)
    some = dataclasses.replace(some, sentence=np.arange(len(chosen)))
    references = [self.references[row] for row in np.asarray(chosen).tolist()]
    place = {row: k for k, row in enumerate(np.asarray(chosen).tolist())}
    listed = frozenset(
      (place[row], line) for row, line in self.listed if row in place
    )
    return ForestPool(spelled=some, references=references, listed=listed)


def pruned(
  model: Model, source: Source, forest: Forest, *, density: float
) -> SpelledForest:
  """Spells forests with about `density` edges for each source word.

  Args:
    model: rules and weights.
    source: the sentences.
    forest: their forests.
    density: 0 keeps all edges.
  """
  if density > 0:
    edges = np.ceil(density * source.ids.lengths).astype(np.int64)
    forest, _ = prune(forest, edges=edges)
  return portable_forest.spell(model, source, forest)


def join(parts: Sequence[SpelledForest]) -> ForestPool:
  """Returns the forests of all parts, by sentence number."""
  every = portable_forest.concatenate(parts)
  number = np.arange(len(every))
  if not np.array_equal(every.sentence, number):
    raise ValueError("sentences are missing or there several times")
  return ForestPool(spelled=every)


class StringStatistics:
  """Computes statistics of word strings, given as numbers of words."""

  def __init__(self, pool: ForestPool, metric: str):
    """Encodes references and words.

    Args:
      pool: with references.
      metric: whose statistics.
    """
    self._kind = find_metric(metric)
    self._words = pool.spelled.words
    self._known = encoded_text.encode_references(
      pool.references, unit=self._kind.unit
    )
    self._prepared = self._kind.prepare(self._known.references)
    self._ids: np.ndarray | None = None
    if self._kind.unit == base.WORD:
      rows = self._known.encode(list(self._words))
      if (rows.lengths == 1).all():  # no word is several to the metric
        self._ids = rows.flat

  def __call__(self, words: Ragged, sentence: np.ndarray) -> np.ndarray:
    """Returns statistics `[L, S]` of L strings of the given sentences."""
    if self._ids is not None:
      ids = self._ids[words.flat]
      encoded = Ragged(flat=ids.astype(np.int32), offsets=words.offsets)
    else:
      names = np.array(self._words, dtype=object)[words.flat]
      cuts = words.offsets.tolist()
      encoded = self._known.encode(
        [" ".join(names[a:b]) for a, b in itertools.pairwise(cuts)]
      )
    return self._kind.statistics(self._prepared, encoded, sentence)
