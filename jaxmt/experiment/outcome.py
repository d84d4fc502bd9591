"""Finished experiments: all artefacts, by what they are."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from jaxmt.experiment.pipeline import Artefact
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus, Description, Translations
from jaxmt.experiment.stages.dependency_trees import TreeTranslations
from jaxmt.experiment.stages.evaluate import Scores
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.inspect import Inspection
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import Theta, TrainedModels, Tuned
from jaxmt.experiment.stages.theta import LearnedTheta
from jaxmt.experiment.stages.tree_parsing import (
  LearnedParser,
  ParsedCorpus,
  PhraseDependencies,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemArtefacts:
  """The artefacts of one system.

  Attributes:
    learned: θ of the last epoch, None if the system trains none.
    theta: the same mixed with the baseline's, or None.
    tune: weights of the last epoch.
    decode: translations.
  """

  learned: Artefact[LearnedTheta] | None
  theta: Artefact[Theta] | None
  tune: Artefact[Tuned]
  decode: Artefact[Translations]

  @property
  def stages(self) -> dict[str, Artefact]:
    """The artefacts by name, without those that the system lacks."""
    names = [field.name for field in dataclasses.fields(self)]
    artefacts = {name: getattr(self, name) for name in names}
    return {name: one for name, one in artefacts.items() if one is not None}

  @property
  def history(self) -> list[dict[str, Any]]:
    """One record for each iteration of training θ."""
    return [] if self.learned is None else self.learned.value.history


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeuralArtefacts:
  """The artefacts of a system with a trained model.

  Attributes:
    models: the model.
    tune: weights, those of its features among them.
    decode: translations.
  """

  models: Artefact[TrainedModels]
  tune: Artefact[Tuned]
  decode: Artefact[Translations]

  @property
  def stages(self) -> dict[str, Artefact]:
    """The artefacts by name."""
    return {"models": self.models, "tune": self.tune, "decode": self.decode}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreeArtefacts:
  """The artefacts of the system with trees over phrases.

  Attributes:
    source_parser: None if none was learnt; also of drawn trees.
    target_parser: the same of the other side.
    parse: source and target trees.
    dependencies: of phrases, None without target trees.
    tune: weights of the fine pass.
    decode: translations with trees.
  """

  source_parser: Artefact[LearnedParser] | None
  target_parser: Artefact[LearnedParser] | None
  parse: Artefact[ParsedCorpus]
  dependencies: Artefact[PhraseDependencies] | None
  tune: Artefact[Tuned]
  decode: Artefact[TreeTranslations]

  @property
  def stages(self) -> dict[str, Artefact]:
    """The artefacts by name, without those that are not there."""
    names = [field.name for field in dataclasses.fields(self)]
    artefacts = {name: getattr(self, name) for name in names}
    return {name: one for name, one in artefacts.items() if one is not None}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
  """A finished experiment.

  Attributes:
    config: the `ExperimentConfig`.
    corpus: the text.
    described: sizes of the corpus.
    links: word links.
    lm: the language model.
    grammar: the rules, or None without any system.
    systems: the artefacts of each system of rules and weights alone.
    translations: of each system, and the glosses.
    scores: evaluation by part.
    inspection: views of single sentences; None without any system or chart.
    others: the artefacts of each system with trees over phrases or a trained
      model.
  """

  config: Any
  corpus: Artefact[Corpus]
  described: Artefact[Description]
  links: Artefact[Links]
  lm: Artefact[LanguageModel]
  grammar: Artefact[Grammar] | None
  systems: Mapping[str, SystemArtefacts]
  translations: Mapping[str, Artefact[Translations]]
  scores: Mapping[str, Artefact[Scores]]
  inspection: Artefact[Inspection] | None = None
  others: Mapping[str, TreeArtefacts | NeuralArtefacts] = dataclasses.field(
    default_factory=dict
  )

  @property
  def tuned(self) -> dict[str, Artefact[Tuned]]:
    """The weights of every system."""
    every = {**self.systems, **self.others}
    return {name: system.tune for name, system in every.items()}

  @property
  def system_stages(self) -> dict[str, dict[str, Artefact]]:
    """The artefacts of every system by stage."""
    every = {**self.systems, **self.others}
    return {name: system.stages for name, system in every.items()}

  @property
  def stages(self) -> dict[str, Artefact]:
    """All artefacts by the name of their stage."""
    artefacts: dict[str, Artefact | None] = {
      "corpus": self.corpus,
      "align": self.links,
      "lm": self.lm,
      "grammar": self.grammar,
    }
    for name, stages in self.system_stages.items():
      artefacts |= {f"{stage}-{name}": one for stage, one in stages.items()}
    artefacts |= {f"evaluate-{part}": one for part, one in self.scores.items()}
    artefacts["inspect"] = self.inspection
    return {name: one for name, one in artefacts.items() if one is not None}
