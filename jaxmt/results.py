"""What the functions of `jaxmt.api` return."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmt.decode.candidate_lists import CandidateLists, decoded
from jaxmt.decode.derivation_text import Node
from jaxmt.decode.model import Source
from jaxmt.decode.translate import Pieces, Translation
from jaxmt.decode.translator import Translator
from jaxmt.hypergraph.forest import Forest
from jaxmt.inspection import list_views
from jaxmt.report import html


@dataclasses.dataclass(frozen=True)
class Derivation:
  """How a line was translated; draws itself as a tree in a notebook.

  Attributes:
    trees: one tree; several if the line was cut into pieces.
  """

  trees: tuple[Node, ...]

  def __str__(self) -> str:
    return " ".join(map(str, self.trees)) or "()"

  def _repr_html_(self) -> str:
    return html.derivation(self.trees)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decoded:
  """Translations of N lines, and the forests that the search kept.

  Attributes:
    model: what they were decoded with.
    pieces: the lines; those of too many words in pieces.
    source: the pieces as the decoder sees them.
    translations: N translations with scores, features and links.
    kept: the forests of all pieces, or None.
  """

  model: Translator
  pieces: Pieces
  source: Source
  translations: tuple[Translation, ...]
  kept: Forest | None

  def __len__(self) -> int:
    return len(self.translations)

  @property
  def forests(self) -> Forest:
    """All derivations that the search kept, a forest for each piece.

    `forests[0]` is that of the first line, unless lines were cut.

    Raises:
      ValueError: if they were not kept.
    """
    if self.kept is None:
      raise ValueError("no forests: decode(..., forests=True)")
    return self.kept

  @property
  def text(self) -> list[str]:
    """The translations, tokenised."""
    return [one.text for one in self.translations]

  @property
  def scores(self) -> np.ndarray:
    """Their model scores, float64 `[N]`."""
    return np.array([one.score for one in self.translations])

  @property
  def features(self) -> list[Mapping[str, float]]:
    """Their feature values by name, without zeros."""
    return [one.features for one in self.translations]

  @property
  def derivations(self) -> list[Derivation]:
    """How they were derived."""
    return [Derivation(one.derivation) for one in self.translations]


@dataclasses.dataclass(frozen=True, kw_only=True)
class KBestLists:
  """The best translations of B lines, at most K each.

  The padded arrays are what `jaxmt.losses` takes.

  Attributes:
    flat: all translations one after the other, with features and links.
    sizes: how many each line has, int64 `[B]`.
    errors: sentence-level error of each, float64; None without references.
    weights: that the lists were made with, by name; empty if not known.
  """

  flat: CandidateLists
  sizes: np.ndarray
  errors: np.ndarray | None
  weights: Mapping[str, float] = dataclasses.field(default_factory=dict)

  def __len__(self) -> int:
    return len(self.sizes)

  @property
  def mask(self) -> Array:
    """Which candidates exist, bool `[B, K]`."""
    return jnp.asarray(self._exists())

  @property
  def scores(self) -> Array:
    """Model scores, float32 `[B, K]`, best first."""
    return self._padded(decoded(self.flat)[0])

  @property
  def costs(self) -> Array:
    """Sentence-level errors, lower is better, float32 `[B, K]`.

    Raises:
      ValueError: if the lists were made without references.
    """
    if self.errors is None:
      raise ValueError("costs need references: kbest(out, references=...)")
    return self._padded(self.errors)

  @property
  def names(self) -> tuple[str, ...]:
    """The F features."""
    return self.flat.names

  @property
  def features(self) -> Array:
    """Feature values, float32 `[B, K, F]`."""
    rows = self.flat.features
    dense = np.zeros((len(self.flat), len(self.names)))
    row = np.repeat(np.arange(len(self.flat)), np.diff(rows.offsets))
    dense[row, rows.ids] = rows.values
    return self._padded(dense)

  @property
  def lines(self) -> list[list[str]]:
    """The translations of each line, best first."""
    return self._split(self.flat.lines)

  @property
  def derivations(self) -> list[list[Derivation]]:
    """The derivation of each, if asked for; else empty ones."""
    return self._split([Derivation(one) for one in decoded(self.flat)[2]])

  def _exists(self) -> np.ndarray:
    return np.arange(self.sizes.max(initial=0)) < self.sizes[:, None]

  def _padded(self, values: np.ndarray) -> Array:
    mask = self._exists()
    out = np.zeros((*mask.shape, *values.shape[1:]), np.float32)
    out[mask] = values
    return jnp.asarray(out)

  def _split(self, items: Sequence[Any]) -> list[list[Any]]:
    ends = np.cumsum(self.sizes)
    return [
      list(items[end - size : end])
      for end, size in zip(ends.tolist(), self.sizes.tolist(), strict=True)
    ]

  def _repr_html_(self) -> str:
    columns: dict[str, list] = {"score": decoded(self.flat)[0].tolist()}
    if self.errors is not None:
      columns["cost"] = self.errors.tolist()
    columns["translation"] = self.flat.lines
    rows = list(zip(*columns.values(), strict=True))
    plain = html.kbest_table(self._split(rows), list(columns))
    if not len(self) or not self.weights:
      return plain
    views = list_views.kbest_views(self.flat, self.names, costs=self.errors)
    data = {
      "features": list(self.names),
      "weights": [self.weights.get(name, 0.0) for name in self.names],
      "list": views[0].values(),
    }
    return html.component("kbest", data, plain)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Forced:
  """The derivations of given translations.

  Attributes:
    reached: whether the model can derive each, bool `[N]`.
    reasons: why not; empty where it can.
    derivations: the best one of each; None where there is none.
    forests: all of them.
  """

  reached: np.ndarray
  reasons: tuple[str, ...]
  derivations: list[Derivation | None]
  forests: Forest
