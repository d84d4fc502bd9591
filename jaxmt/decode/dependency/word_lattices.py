"""Word lattices of phrase lattices, for trees over words (Model W).

Every phrase becomes a chain of its words, each aligned to one source word: the
first one it is linked to inside the phrase. A word without links takes that of
the word before it, or else of the word after it (Gimpel 2012 aligns it to
NULL). Scores and features of the phrase stand at its first word.
"""

import dataclasses

import numpy as np

from jaxmt.decode.dependency.lattice import Lattice
from jaxmt.decode.dependency.phrase_lattices import PhraseLattice
from jaxmt.text.ragged import row_offsets


def split(found: PhraseLattice) -> PhraseLattice:
  """Returns the word lattice of a phrase lattice.

  A phrase without words stays an edge without words.
  """
  old = found.lattice
  size = np.maximum(old.words, 1)
  offsets = row_offsets(size)
  edge = np.repeat(np.arange(len(old)), size)
  place = np.arange(offsets[-1]) - offsets[edge]
  first, last = place == 0, place == size[edge] - 1
  # New nodes lie between the start of their phrase and the node after it.
  share = np.arange(offsets[-1]) / (offsets[-1] + 1.0)
  inner = old.start[edge] + (1.0 + share) / 2.0
  end = np.where(last, old.end[edge], inner)
  start = np.where(first, old.start[edge], np.roll(inner, 1))
  nodes = np.unique(np.concatenate([np.arange(len(old.final)), inner[~last]]))
  number = lambda at: np.searchsorted(nodes, at).astype(np.int32)
  order = np.argsort(start, kind="stable")
  whole = number(np.arange(len(old.final)))
  final = np.full(len(nodes), -np.inf, np.float32)
  final[whole] = old.final
  width = found.features.shape[1]
  final_features = np.zeros((len(nodes), width), np.float32)
  final_features[whole] = found.final_features
  words = [word for text in found.text for word in text.split() or [""]]
  aligned = found.aligned.flat[order]
  lattice = Lattice(
    start=number(start)[order],
    end=number(end)[order],
    score=np.where(first, old.score[edge], 0.0)[order].astype(np.float32),
    final=final,
    words=np.minimum(old.words[edge], 1)[order].astype(np.int32),
    span=np.stack([aligned, aligned + 1], 1).astype(np.int32),
  )
  features = np.where(first[:, None], found.features[edge], 0.0)
  return dataclasses.replace(
    found,
    lattice=lattice,
    text=tuple(words[row] for row in order.tolist()),
    features=features[order].astype(np.float32),
    final_features=final_features,
    aligned=dataclasses.replace(
      found.aligned, flat=aligned, offsets=np.arange(len(order) + 1)
    ),
  )
