"""Trained models whose outputs are features of rules in sentences, in files.

A folder of arrays holds one or several of them, alone or beside the rules of a
grammar. A model of another kind is one more entry of `_kinds`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jaxmt.errors import InputError
from jaxmt.features.local_features import SentenceFeature
from jaxmt.features.maxent_reordering import ReorderingModel
from jaxmt.features.stateful import StatefulFeature
from jaxmt.grammar.table import RuleTable
from jaxmt.lm.tables import Tables
from jaxmt.text import array_folder

META = {"format": "jaxmt sentence models", "version": 1}
RECURSIVE = "RecursiveScore"  # weight of a network of derivations
# Of the names of all kinds.
_PREFIXES = ("scorer_", "topics_", "similarity_", "recursive_")


class SentenceModel(Protocol):
  """A trained model of rules in sentences."""

  def features(self) -> tuple[SentenceFeature, ...]:
    """Returns its features."""
    ...

  def check(self, table: RuleTable, path: str | None = None) -> None:
    """Raises `InputError` if it does not fit a grammar."""
    ...

  def to_values(self) -> dict[str, Any]:
    """Returns it as named arrays and lists of strings."""
    ...


def _kinds() -> dict[str, Any]:
  """The modules that read models, by the first array of each kind."""
  from jaxmt.features import (  # import JAX
    phrase_similarity,
    recursive_scores,
    rule_scores,
    topic_features,
  )

  kinds = (rule_scores, topic_features, phrase_similarity, recursive_scores)
  return {kind.to_lists()[0][0]: kind for kind in kinds}


def features(models: Sequence[SentenceModel]) -> tuple[SentenceFeature, ...]:
  """Returns the features of all models.

  Raises:
    InputError: if two have one name.
  """
  every = tuple(one for model in models for one in model.features())
  names = [name for feature in every for name in feature.names]
  for name in names:
    if names.count(name) > 1:
      raise InputError(f"two models have the feature '{name}'")
  return every


def stateful(
  models: Sequence[SentenceModel],
  table: RuleTable,
  lm: Tables,
  reordering: ReorderingModel | None,
) -> list[tuple[StatefulFeature, Any]]:
  """Returns the stateful features of models, as `make_model` takes them.

  Raises:
    InputError: if rules do not fit a network of derivations, or there are two.
  """
  if not models:
    return []
  from jaxmt.features import recursive_scores  # imports JAX

  out = []
  for model in models:
    if isinstance(model, recursive_scores.RecursiveModel):
      model.check(table)
      out.append(model.stateful(table, lm, reordering))
  if len(out) > 1:
    raise InputError("two models score derivations")
  return out


def to_values(models: Sequence[SentenceModel]) -> dict[str, Any]:
  """Returns models as named arrays and lists of strings."""
  return {
    name: value for model in models for name, value in model.to_values().items()
  }


def from_values(
  values: Mapping[str, Any], *, path: str | None = None
) -> tuple[SentenceModel, ...]:
  """Returns the models among named values; those of other names are left.

  Raises:
    InputError: if one is not whole, or makes no sense.
  """
  if not any(name.startswith(_PREFIXES) for name in values):
    return ()
  models = []
  for first, module in _kinds().items():
    if first not in values:
      continue
    for name in (name for names in module.to_lists() for name in names):
      if name not in values:
        raise InputError(f"lacks {name}", path=path)
    models.append(module.from_values(values, path=path))
  return tuple(models)


def read(path: str) -> tuple[SentenceModel, ...]:
  """Reads the models in a folder, which may be a grammar; none if none.

  Raises:
    InputError: naming what is missing or damaged.
  """
  folder = array_folder.open_folder(path, verify=True)
  values: dict[str, Any] = {}
  for name in sorted(folder.names):
    stem, _, ending = name.rpartition(".")
    if stem.startswith(_PREFIXES):
      values[stem] = (
        folder.array(stem) if ending == "npy" else folder.lines(stem)
      )
  return from_values(values, path=path)


def read_all(
  paths: Sequence[str], table: RuleTable
) -> tuple[SentenceModel, ...]:
  """Reads the models of several folders, for one grammar.

  Raises:
    InputError: if a folder has none, or one does not fit the grammar.
  """
  every: list[SentenceModel] = []
  for path in paths:
    models = read(path)
    if not models:
      raise InputError("has no model of rules in sentences", path=path)
    for model in models:
      model.check(table, path)
    every += models
  features(every)  # no name twice
  return tuple(every)


def similar_rules(
  models: Sequence[SentenceModel],
  table: RuleTable,
  *,
  threshold: float,
  best: int = 10,
) -> np.ndarray:
  """Returns which rules stay if dissimilar ones go, bool `[R]`.

  See `phrase_similarity.prune`.

  Raises:
    InputError: if none of the models knows similarities.
  """
  from jaxmt.features import phrase_similarity  # imports JAX

  for model in models:
    if isinstance(model, phrase_similarity.SimilarityModel):
      values = phrase_similarity.similarities(model, table)
      return phrase_similarity.prune(
        table, values, threshold=threshold, best=best
      )
  raise InputError("none of the models knows how similar sides of rules are")


def write(path: str, models: Sequence[SentenceModel]) -> None:
  """Writes models as a folder of their own."""
  with array_folder.open_writer(path) as folder:
    folder.meta.update(META)
    for name, value in to_values(models).items():
      if isinstance(value, np.ndarray):
        folder.append(name, value)
      else:
        folder.write_lines(name, value)
