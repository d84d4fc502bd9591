"""Experiments: which stages run, for which systems.

`launch/train.py` runs one experiment, `launch/sweep.py` many. An experiment is
described by an `ExperimentConfig`; the config files are in `configs/`.

    corpus -> align -> lm, grammar -> tune -> decode          the baseline
               weights -> theta -> mix -> tune -> decode      other systems
               weights -> learn -> decode             violation-fixing ones
               weights -> models -> tune -> decode    trained models
      parse, dependencies -> tune -> decode           trees over phrases
                                              -> evaluate -> inspect

Glossing, without grammar or search, is the floor under all systems.
"""

import dataclasses
import functools
import hashlib
from typing import Any

from jaxmt.experiment import config as config_lib
from jaxmt.experiment import (
  experiment_report,
  pipeline,
  system_stages,
  systems,
)
from jaxmt.experiment.experiment_config import (
  DataConfig,
  ExperimentConfig,
  defaults,
  freeze,
)
from jaxmt.experiment.outcome import (
  NeuralArtefacts,
  Outcome,
  SystemArtefacts,
  TreeArtefacts,
)
from jaxmt.experiment.pipeline import Artefact, Run
from jaxmt.experiment.stages import (
  align,
  corpus,
  evaluate,
  gloss,
  grammar,
  lm,
  neural,
  tree_parsing,
)
from jaxmt.experiment.stages import inspect as inspect_stage
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.inspect import Inspection, InspectionConfig
from jaxmt.runtime import checkpoint, code_versions

# What launch programs and config files need of an experiment.
__all__ = ("GLOSS", "ExperimentConfig", "defaults", "freeze", "run", "version")

GLOSS = "gloss"


def version(config: ExperimentConfig) -> str:
  """Returns a hash of config, code and input files."""
  paths = [
    *align.input_paths(config.align).values(),
    *grammar.input_paths(config.grammar).values(),
  ]
  if systems.PHRASE_DEPENDENCY in config.systems:
    paths += tree_parsing.input_paths(config.trees.parse).values()
    paths += tree_parsing.tree_paths(config.trees.parse).values()
  if {*systems.NEURAL} & {*config.systems}:
    paths += neural.input_paths(config.neural).values()
  if config.data.kind == "files":
    paths += corpus.input_paths(config.data.files).values()
  parts = {
    "config": config_lib.plain(config, essential=True),
    "code": code_versions.function_version(run),
    "files": {path: _content(path) for path in paths},
  }
  return hashlib.sha256(config_lib.to_json(parts).encode()).hexdigest()


@functools.cache
def _content(path: str) -> str:
  return checkpoint.file_digest(path)


def run(run: Run, config: ExperimentConfig) -> str:
  """Runs the unfinished stages; writes results and report.

  Returns:
    The comparison as a text table.
  """
  text = _corpus(run, config.data)
  links = _links(run, config, text)
  model = run.stage("lm", lm.language_model, config=config.lm, corpus=text)
  built: dict[str, SystemArtefacts] = {}
  others: dict[str, TreeArtefacts | NeuralArtefacts] = {}
  rules = None
  if config.systems:
    rules = system_stages.extract_rules(
      run, config, "grammar", corpus=text, links=links
    )
    shared = {"corpus": text, "grammar": rules, "lm": model}
    built, others = system_stages.build(run, config, links, shared)
  floor = run.stage(
    "gloss",
    gloss.gloss,
    config=gloss.GlossConfig(),
    corpus=text,
    links=links,
  )
  decoded: dict[str, Artefact[Any]] = {
    **{name: artefacts.decode for name, artefacts in built.items()},
    **{name: artefacts.decode for name, artefacts in others.items()},
  }
  translations = {name: decoded[name] for name in config.systems}
  scores = _scores(run, config, text, floor, translations)
  outcome = Outcome(
    config=config,
    corpus=text,
    described=run.stage("describe", corpus.describe, corpus=text),
    links=links,
    lm=model,
    grammar=rules,
    systems=built,
    translations={**translations, GLOSS: floor},
    scores=scores,
    inspection=_inspection(
      run,
      config,
      built,
      corpus=text,
      grammar=rules,
      lm=model,
      scores=scores["test"],
    ),
    others=others,
  )
  return experiment_report.publish(run, outcome)


def _links(run: Run, config: ExperimentConfig, text: Artefact) -> Artefact[Any]:
  """Aligns the words of the training part."""
  gold = {
    parameter: pipeline.source_file(path)
    for parameter, path in align.input_paths(config.align).items()
  }
  return run.stage(
    "align",
    align.align,
    config=config.align,
    resumable=False,
    corpus=text,
    **gold,
  )


def _scores(
  run: Run,
  config: ExperimentConfig,
  text: Artefact,
  floor: Artefact,
  translations: dict[str, Artefact],
) -> dict[str, Artefact]:
  """Scores the output of all systems, and the gloss, on both parts."""
  return {
    part: run.stage(
      f"evaluate-{part}",
      evaluate.evaluate,
      config=dataclasses.replace(config.evaluate, part=part),
      resumable=False,
      corpus=text,
      **translations,
      gloss=floor,
    )
    for part in corpus.PARTS
  }


def _inspection(
  run: Run,
  config: ExperimentConfig,
  built: dict[str, SystemArtefacts],
  **shared: Artefact | None,
) -> Artefact[Inspection] | None:
  """Looks inside the systems; None without any."""
  if not built:
    return None
  inputs = {name: one for name, one in shared.items() if one is not None}
  for name, artefacts in built.items():
    inputs[f"tuned-{name}"] = artefacts.tune
    inputs[f"decode-{name}"] = artefacts.decode
    if artefacts.theta is not None:
      inputs[f"theta-{name}"] = artefacts.theta
    if artefacts.learned is not None:
      inputs[f"learned-{name}"] = artefacts.learned
  return run.stage(
    "inspect",
    inspect_stage.inspect,
    config=InspectionConfig(inspect=config.inspect, search=config.search),
    resumable=False,
    **inputs,
  )


def _corpus(run: Run, config: DataConfig) -> Artefact[Corpus]:
  text = _given_corpus(run, config)
  if not config.reverse:
    return text
  return run.stage("reverse", corpus.reverse, corpus=text)


def _given_corpus(run: Run, config: DataConfig) -> Artefact[Corpus]:
  if config.kind == "synthetic":
    return run.stage("corpus", corpus.embedded, config=config.synthetic)
  inputs = {
    parameter: pipeline.source_file(path)
    for parameter, path in corpus.input_paths(config.files).items()
  }
  return run.stage(
    "corpus",
    corpus.from_files,
    config=config.files,
    resumable=False,
    **inputs,
  )
