"""Similarity in meaning of the sides of a rule (Zhang et al. 2014).

`models.phrase_autoencoder` folds each side of a rule into a vector and maps it
into the space of the other language. The features of a rule are two cosines:

    SimilaritySource   cos(image of the source side, target side)
    SimilarityTarget   cos(image of the target side, source side)

They are the same in every sentence and are computed once for a table, in double
precision. A gap is a word of its own, `[X]` with its label, whose vector is
learned from the rules with gaps that forced decoding uses. Of sides longer than
`LONGEST` symbols the first ones count. Words that the model does not know share
a vector. Rules without a symbol on either side have features of 0.
"""

import dataclasses
import functools
import threading
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxmt.errors import InputError
from jaxmt.features.local_features import SentenceFeature
from jaxmt.grammar import table as tables
from jaxmt.grammar.extract import packed_rules
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.models import phrase_autoencoder
from jaxmt.models.phrase_autoencoder import SIDES, PhraseEncoder
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, UNK, Vocabulary

NAMES = ("SimilaritySource", "SimilarityTarget")
LONGEST = 16
_WIDTHS = (2, 4, 8, LONGEST)  # phrases are folded by length, for speed
_LAYERS = (
  *("vectors", "encoder", "encoder_bias", "decoder", "decoder_bias"),
  *("transform", "transform_bias"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarityModel:
  """Auto-encoders of both languages with their words, on the host.

  Attributes:
    words: of each side; those of gaps are `[X]` and its like.
    parameters: of each side's encoder.
    unit: whether vectors are scaled to length 1.
  """

  words: tuple[Vocabulary, Vocabulary]
  parameters: dict[str, Any]
  unit: bool

  def encoder(self, place: int) -> PhraseEncoder:
    """Returns the module of a side."""
    vectors = self.parameters[SIDES[place]]["params"]["vectors"]
    return PhraseEncoder(
      words=len(vectors), size=vectors.shape[1], unit=self.unit
    )

  def features(self) -> tuple[SentenceFeature, ...]:
    """Returns the two features as one."""
    return (
      SentenceFeature(
        name="Similarity",
        values=self.values,
        batch=lambda table, rules, rows, sentences: self.values(
          table, rules, ()
        ),
        columns=NAMES,
      ),
    )

  @functools.cached_property
  def _latest(self) -> dict[str, Any]:
    return {"lock": threading.Lock()}

  def values(
    self, table: RuleTable, rules: np.ndarray, sentence: tuple[str, ...]
  ) -> np.ndarray:
    """Returns the features of rules, float64 `[N, 2]`."""
    del sentence
    with self._latest["lock"]:  # searches run in threads
      latest = self._latest.get("values")
      if latest is None or latest[0] is not table:
        latest = (table, similarities(self, table))
        self._latest["values"] = latest
    return latest[1][rules].astype(np.float64)

  def check(self, table: RuleTable, path: str | None = None) -> None:
    """Refuses a grammar of other languages.

    Raises:
      InputError: if the model knows no word of one side of the rules.
    """
    for place, side in enumerate(SIDES):
      known = self.words[place].index
      words = getattr(table, f"{side}_words").words[len(SPECIALS) :]
      if words and not any(word in known for word in words):
        raise InputError(
          f"the similarities know no {side} word of the grammar", path=path
        )

  def to_values(self) -> dict[str, Any]:
    """Returns the model as named arrays and lists of strings."""
    values: dict[str, Any] = {
      f"similarity_{side}_{name}": np.asarray(
        self.parameters[side]["params"][name], np.float32
      )
      for side in SIDES
      for name in _LAYERS
    }
    values["similarity_unit"] = np.array([self.unit], np.int32)
    for place, side in enumerate(SIDES):
      lines = vocabulary.to_lines(self.words[place])
      values[f"similarity_{side}_words"] = lines
    return values


def phrase_lines(
  table: RuleTable, rules: np.ndarray
) -> tuple[list[str], list[str]]:
  """Spells both sides of rules, gaps as words; N lines each."""
  labels = [f"[{label}]" for label in table.labels]
  sites = tables.nonterminals(table)
  source, target = [], []
  for rule in rules.tolist():
    gaps = [labels[label] for label in sites[rule].tolist()]
    source.append(
      " ".join(
        table.source_words.words[s] if s >= 0 else labels[-1 - s]
        for s in table.source[rule].tolist()
      )
    )
    target.append(
      " ".join(
        table.target_words.words[s] if s >= 0 else gaps[-1 - s]
        for s in table.target[rule].tolist()
      )
    )
  return source, target


def side_ids(model: SimilarityModel, table: RuleTable, place: int) -> Ragged:
  """Returns the model's ids of one side of all rules, int32, R rows."""
  find = model.words[place].index.get
  gap = np.array([find(f"[{label}]", UNK) for label in table.labels], np.int32)
  words = (table.source_words, table.target_words)[place].words
  ids = np.array([find(word, UNK) for word in words], np.int32)
  ids[: len(SPECIALS)] = UNK
  rows = (table.source, table.target)[place]
  label = -1 - rows.flat
  if place:  # sites are numbered; their labels stand on the source side
    sites = tables.nonterminals(table)
    rule = np.repeat(np.arange(len(rows)), rows.lengths)
    site = sites.offsets[:-1][rule] + label
    padded = np.append(sites.flat, 0)
    label = padded[np.where(rows.flat < 0, site, len(sites.flat))]
  flat = np.where(
    rows.flat >= 0,
    ids[np.maximum(rows.flat, 0)],
    gap[np.where(rows.flat < 0, label, 0)],
  )
  return Ragged(flat=flat.astype(np.int32), offsets=rows.offsets)


def similarities(model: SimilarityModel, table: RuleTable) -> np.ndarray:
  """Returns the two cosines of all rules of a table, float32 `[R, 2]`."""
  side_vectors = []
  for place in range(2):
    rows = side_ids(model, table, place)
    group, first = packed_rules.group(rows)  # each phrase is folded once
    vectors, images = _fold(model, place, ragged.select(rows, first))
    side_vectors.append((vectors, images, group))
  out = np.zeros((len(table), 2), np.float32)
  for place in range(2):
    images, group = side_vectors[place][1:]
    vectors, _, other = side_vectors[1 - place]
    for start in range(0, len(table), 1 << 16):
      part = slice(start, start + (1 << 16))
      cosines = (images[group[part]] * vectors[other[part]]).sum(-1)
      out[part, place] = np.clip(cosines, -1.0, 1.0)
  return out


def _fold(model: SimilarityModel, place: int, rows: Ragged):
  """Vectors and images of phrases, of length 1 or 0, float32 `[N, D]`."""
  encoder = model.encoder(place)
  lengths = np.minimum(rows.lengths, LONGEST)
  vectors = np.zeros((len(rows), encoder.size), np.float32)
  images = np.zeros_like(vectors)
  # What a phrase is folded with must not change its bits: see the module.
  with jax.enable_x64(True):
    parameters = jax.tree.map(
      lambda leaf: jax.numpy.asarray(leaf, np.float64),
      model.parameters[SIDES[place]],
    )
    low = 0
    for width in _WIDTHS:
      chosen = np.flatnonzero((lengths > low) & (lengths <= width))
      low = width
      if not len(chosen):
        continue
      cut = ragged.select(rows, chosen)
      columns = cut.offsets[:-1, None] + np.arange(width)
      inside = np.arange(width) < lengths[chosen, None]
      ids = cut.flat[np.minimum(columns, len(cut.flat) - 1)]
      top, _, image = phrase_autoencoder.encode(
        encoder, parameters, np.where(inside, ids, 0).astype(np.int32)
      )
      for out, values in ((vectors, top), (images, image)):
        norm = np.sqrt((values**2).sum(-1, keepdims=True))
        out[chosen] = values / np.maximum(norm, 1e-30)
  return vectors, images


def prune(
  table: RuleTable,
  values: np.ndarray,
  *,
  threshold: float,
  best: int = 10,
) -> np.ndarray:
  """Returns which rules stay if those of small similarity go.

  A rule goes if both similarities are below the threshold, unless it is among
  the best of its source side by their sum.

  Args:
    table: R rules; glue and pass-through rules stay.
    values: similarities, `[R, 2]`.
    threshold: of similarities.
    best: rules of each source side that stay anyway.

  Returns:
    bool `[R]`.
  """
  group, _ = packed_rules.group(table.source)
  order = np.lexsort((np.arange(len(table)), -values.sum(1), group))
  sorted_group = group[order]
  starts = np.flatnonzero(np.diff(sorted_group, prepend=-1))
  sizes = np.diff(np.append(starts, len(order)))
  rank = np.empty(len(order), np.int64)
  rank[order] = np.arange(len(order)) - np.repeat(starts, sizes)
  always = np.isin(table.kind, [Kind.GLUE, Kind.PASS_THROUGH])
  return always | (values >= threshold).any(1) | (rank < best)


def to_lists() -> tuple[tuple[str, ...], tuple[str, ...]]:
  """Returns the names of the arrays and of the lists of strings."""
  arrays = [f"similarity_{side}_{name}" for side in SIDES for name in _LAYERS]
  return (
    (*arrays, "similarity_unit"),
    tuple(f"similarity_{side}_words" for side in SIDES),
  )


def from_values(
  values: Mapping[str, Any], *, path: str | None = None
) -> SimilarityModel:
  """Returns the model that `to_values` took apart.

  Raises:
    InputError: if shapes do not fit, or numbers are out of range.
  """
  source_words, target_words = (
    vocabulary.from_lines(list(values[f"similarity_{side}_words"]), path=path)
    for side in SIDES
  )
  first = np.asarray(values["similarity_source_vectors"])
  if first.ndim != 2:
    raise InputError("similarity_source_vectors has the wrong shape", path=path)
  size = first.shape[1]
  parameters = {}
  for side, words in zip(SIDES, (source_words, target_words), strict=True):
    shapes = {
      "vectors": (len(words), size),
      "encoder": (2 * size, size),
      "encoder_bias": (size,),
      "decoder": (size, 2 * size),
      "decoder_bias": (2 * size,),
      "transform": (size, size),
      "transform_bias": (size,),
    }
    layers = {}
    for name, shape in shapes.items():
      array = np.asarray(values[f"similarity_{side}_{name}"])
      whole = f"similarity_{side}_{name}"
      if array.dtype != np.float32 or array.shape != shape:
        raise InputError(f"{whole} has a wrong type or shape", path=path)
      if not (np.isfinite(array) & (np.abs(array) < 1e6)).all():
        raise InputError(f"{whole} holds no usable numbers", path=path)
      layers[name] = np.array(array)
    parameters[side] = {"params": layers}
  unit = np.asarray(values["similarity_unit"])
  if unit.shape != (1,) or unit.dtype != np.int32 or unit[0] not in (0, 1):
    raise InputError("similarity_unit is neither 0 nor 1", path=path)
  return SimilarityModel(
    words=(source_words, target_words),
    parameters=parameters,
    unit=bool(unit[0]),
  )
