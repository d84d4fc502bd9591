"""The systems of an experiment: which stages train and decode each of them."""

import dataclasses

from jaxmt.experiment import pipeline, systems
from jaxmt.experiment.experiment_config import (
  ExperimentConfig,
  theta_settings,
)
from jaxmt.experiment.outcome import (
  NeuralArtefacts,
  SystemArtefacts,
  TreeArtefacts,
)
from jaxmt.experiment.pipeline import Artefact, Run
from jaxmt.experiment.stages import (
  decode,
  grammar,
  held_out,
  lm,
  mix_theta,
  neural,
  tree_parsing,
)
from jaxmt.experiment.stages import dependency_trees as tree_stages
from jaxmt.experiment.stages import learn as learning
from jaxmt.experiment.stages import theta as theta_stage
from jaxmt.experiment.stages import tune as tuning
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.held_out import HoldOutConfig
from jaxmt.experiment.stages.learn import LearningConfig
from jaxmt.experiment.stages.mix_theta import MixConfig
from jaxmt.experiment.stages.neural import NeuralStageConfig
from jaxmt.experiment.stages.system import Theta, Tuned
from jaxmt.experiment.stages.theta import LearnedTheta
from jaxmt.experiment.stages.tune import TuningConfig


def build(
  run: Run,
  config: ExperimentConfig,
  links: Artefact,
  shared: dict[str, Artefact],
) -> tuple[
  dict[str, SystemArtefacts], dict[str, TreeArtefacts | NeuralArtefacts]
]:
  """Trains and decodes the systems: those of rules alone, and all others."""
  learned_from, tuned_on = shared, shared["corpus"]
  if config.judged:
    judged, tuned_on = (
      run.stage(
        name,
        held_out.tuning_sentences,
        config=HoldOutConfig(every=config.judged, held=held),
        corpus=shared["corpus"],
      )
      for name, held in (("judged-part", True), ("tuned-part", False))
    )
    learned_from = {**shared, "corpus": judged}
  if config.held_out and any(map(systems.learns_weights, config.systems)):
    learned_from = _held_out(run, config, links, **learned_from)
  built = _systems(run, config, shared, learned_from, tuned_on)
  others: dict[str, TreeArtefacts | NeuralArtefacts] = {}
  for name in config.systems:
    tuned = built[systems.PRIMARY].tune
    if name == systems.PHRASE_DEPENDENCY:
      others[name] = _trees(run, config, links, coarse=tuned, **shared)
    elif name in systems.NEURAL:
      others[name] = _neural(run, config, name, tuned, shared, tuned_on)
  return built, others


def extract_rules(
  run: Run, config: ExperimentConfig, name: str, **inputs: Artefact
) -> Artefact[Grammar]:
  """Extracts rules from a corpus with its links."""
  manifests = {
    parameter: pipeline.source_file(path)
    for parameter, path in grammar.input_paths(config.grammar).items()
  }
  return run.stage(
    name,
    grammar.extract,
    config=config.grammar,
    resumable=False,
    **inputs,
    **manifests,
  )


def _held_out(
  run: Run, config: ExperimentConfig, links: Artefact, **whole: Artefact
) -> dict[str, Artefact]:
  """What learning reads if it learns from some pairs alone."""
  cut = lambda name, function, held, **inputs: run.stage(
    name,
    function,
    config=HoldOutConfig(every=config.held_out, held=held),
    **inputs,
  )
  text = whole["corpus"]
  pairs = cut("held-out-pairs", held_out.pairs, True, corpus=text)
  if config.own_rules:
    return {**whole, "corpus": pairs}
  others = cut("other-pairs", held_out.pairs, False, corpus=text)
  their_links = cut("other-links", held_out.links, False, links=links)
  return {
    "corpus": pairs,
    "grammar": extract_rules(
      run, config, "other-grammar", corpus=others, links=their_links
    ),
    "lm": run.stage(
      "other-lm", lm.language_model, config=config.lm, corpus=others
    ),
    "tune_grammar": whole["grammar"],
    "tune_lm": whole["lm"],
  }


def _systems(
  run: Run,
  config: ExperimentConfig,
  shared: dict[str, Artefact],
  learned_from: dict[str, Artefact],
  tuned_on: Artefact[Corpus],
) -> dict[str, SystemArtefacts]:
  """Builds every system of rules, the baseline first.

  All read `shared`; those that learn weights on the training text learn from
  `learned_from`, all others are tuned on `tuned_on`. The baseline, and with
  `warm_start` off every system, starts from `kbest_decoder.start_weights`.
  """
  built: dict[str, SystemArtefacts] = {}
  for name in config.systems:
    if not systems.has_rules_alone(name):
      continue
    baseline = built[systems.PRIMARY].tune if built else None
    if systems.learns_weights(name):
      start = _start(config, baseline)
      tuned = _learned_weights(run, config, name, learned_from, start)
      learned = mixed = None
    else:
      learned, mixed, tuned = _epochs(
        run, config, name, baseline, shared, tuned_on
      )
    built[name] = SystemArtefacts(
      learned=learned,
      theta=mixed,
      tune=tuned,
      decode=run.stage(
        f"decode-{name}",
        decode.translate,
        config=config.search,
        resumable=False,
        tuned=tuned,
        **shared,
        **_given_theta(mixed),
      ),
    )
  return built


def _start(
  config: ExperimentConfig, tuned: Artefact[Tuned] | None
) -> dict[str, Artefact]:
  """The weights that tuning starts from, as inputs of a stage."""
  return {"start": tuned} if tuned and config.warm_start else {}


def _given_theta(theta: Artefact | None) -> dict[str, Artefact]:
  return {} if theta is None else {"theta": theta}


def _epochs(
  run: Run,
  config: ExperimentConfig,
  name: str,
  baseline: Artefact[Tuned] | None,
  shared: dict[str, Artefact],
  tuned_on: Artefact[Corpus],
) -> tuple[
  Artefact[LearnedTheta] | None, Artefact[Theta] | None, Artefact[Tuned]
]:
  """Trains θ and tunes weights in turn; a baseline's weights are tuned once.

  LearnModel of figure 6: each epoch trains θ with the weights of the epoch
  before (in the first epoch the baseline's), then tunes weights for the new θ,
  starting from the same weights.

  Returns:
    θ of the last epoch, the same mixed with the baseline's, and the weights.
  """
  settings = TuningConfig(
    tune=config.tune, search=config.search, seed=config.seed
  )
  learned: Artefact[LearnedTheta] | None = None
  mixed: Artefact[Theta] | None = None
  tuned = baseline
  trained = systems.trained(name)
  for epoch in range(config.epochs if trained else 1):
    label = f"{name}-{epoch + 1}" if epoch else name
    start = _start(config, tuned)
    if trained:
      assert tuned is not None, "the baseline comes first"
      learned = _learned(run, config, name, label, tuned, learned, shared)
      if epoch == config.epochs - 1:
        mixed = _mixed(run, config, label, learned, shared)
    tuned = run.stage(
      f"tune-{label}",
      tuning.tune,
      config=settings,
      resumable=True,
      **{**shared, "corpus": tuned_on},
      **_given_theta(mixed or learned),
      **start,
    )
  assert tuned is not None
  return learned, mixed, tuned


def _neural(
  run: Run,
  config: ExperimentConfig,
  name: str,
  tuned: Artefact[Tuned],
  shared: dict[str, Artefact],
  tuned_on: Artefact[Corpus],
) -> NeuralArtefacts:
  """Trains a model with the baseline's weights, tunes again, translates."""
  models = run.stage(
    f"models-{name}",
    neural.train,
    config=NeuralStageConfig(
      kind=name, neural=config.neural, search=config.search, seed=config.seed
    ),
    resumable=True,
    tuned=tuned,
    **{**shared, "corpus": tuned_on},
    **_given(**neural.input_paths(config.neural)),
  )
  again = run.stage(
    f"tune-{name}",
    tuning.tune,
    config=TuningConfig(
      tune=config.tune, search=config.search, seed=config.seed
    ),
    resumable=True,
    models=models,
    **{**shared, "corpus": tuned_on},
    **_start(config, tuned),
  )
  decoded = run.stage(
    f"decode-{name}",
    decode.translate,
    config=config.search,
    resumable=False,
    tuned=again,
    models=models,
    **shared,
  )
  return NeuralArtefacts(models=models, tune=again, decode=decoded)


def _trees(
  run: Run,
  config: ExperimentConfig,
  links: Artefact,
  **shared: Artefact,
) -> TreeArtefacts:
  """Parses, extracts phrase dependencies, learns weights and translates."""
  parsers, parsed = _parses(run, config, shared["corpus"])
  known = {}
  if config.trees.parse.target != tree_parsing.NONE:
    known["dependencies"] = run.stage(
      "dependencies",
      tree_parsing.extract,
      config=tree_parsing.ExtractionConfig(length=config.trees.length),
      corpus=shared["corpus"],
      grammar=shared["grammar"],
      links=links,
      parsed=parsed,
    )
  settings = tree_stages.TreeTuningConfig(
    trees=config.trees,
    search=config.search,
    metric=config.tune.metric,
    seed=config.seed,
  )
  inputs = {"parsed": parsed, **shared, **known}
  tuned = run.stage(
    f"tune-{systems.PHRASE_DEPENDENCY}",
    tree_stages.tune,
    config=settings,
    resumable=True,
    **inputs,
  )
  decoded = run.stage(
    f"decode-{systems.PHRASE_DEPENDENCY}",
    tree_stages.translate,
    config=settings,
    resumable=False,
    tuned=tuned,
    **inputs,
  )
  return TreeArtefacts(
    source_parser=parsers.get("source"),
    target_parser=parsers.get("target"),
    parse=parsed,
    dependencies=known.get("dependencies"),
    tune=tuned,
    decode=decoded,
  )


def _parses(
  run: Run, config: ExperimentConfig, text: Artefact
) -> tuple[dict[str, Artefact], Artefact]:
  """Learns the parsers of both sides, where needed, and parses the corpus."""
  how = config.trees.parse
  treebanks = tree_parsing.input_paths(how)
  parsers = {
    side: run.stage(
      f"{side}-parser",
      tree_parsing.learn,
      config=learning_config,
      resumable=False,
      **_given(bank=treebanks.get(side)),
    )
    for side, learning_config in tree_parsing.learning(how).items()
  }
  parsed = run.stage(
    "parse",
    tree_parsing.parse,
    config=how,
    resumable=False,
    corpus=text,
    **parsers,
    **_given(**tree_parsing.tree_paths(how)),
  )
  return parsers, parsed


def _given(**paths: str | None) -> dict[str, pipeline.SourceFile]:
  """Files as inputs of a stage, without those that there are not."""
  return {
    name: pipeline.source_file(path) for name, path in paths.items() if path
  }


def _learned_weights(
  run: Run,
  config: ExperimentConfig,
  name: str,
  learned_from: dict[str, Artefact],
  start: dict[str, Artefact],
) -> Artefact[Tuned]:
  """Learns weights on the training text, from the baseline's."""
  settings = dataclasses.replace(config.learn, update=name, seed=config.seed)
  return run.stage(
    f"tune-{name}",
    learning.learn,
    config=LearningConfig(learn=settings, search=config.search),
    resumable=True,
    **learned_from,
    **start,
  )


def _learned(
  run: Run,
  config: ExperimentConfig,
  name: str,
  label: str,
  tuned: Artefact[Tuned],
  previous: Artefact[LearnedTheta] | None,
  shared: dict[str, Artefact],
) -> Artefact[LearnedTheta]:
  """Trains θ with given weights, from the θ of the epoch before if any."""
  earlier = {} if previous is None else {"theta": previous}
  return run.shared_stage(
    f"theta-{label}",
    theta_stage.learn,
    config=theta_settings(config, name),
    tuned=tuned,
    **shared,
    **earlier,
  )


def _mixed(
  run: Run,
  config: ExperimentConfig,
  label: str,
  learned: Artefact[LearnedTheta],
  shared: dict[str, Artefact],
) -> Artefact[Theta]:
  """Mixes the θ of the last epoch with the grammar's own."""
  return run.stage(
    f"mix-{label}",
    mix_theta.mix,
    config=MixConfig(weight=config.interpolation),
    grammar=shared["grammar"],
    learned=learned,
  )
