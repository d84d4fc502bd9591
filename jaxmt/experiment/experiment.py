"""Experiments: which stages run, for which systems.

`launch/train.py` runs one experiment, `launch/sweep.py` many. An experiment is
described by an `ExperimentConfig`; the config files are in `configs/`.

    corpus -> align -> lm, grammar -> tune -> decode          the baseline
               weights -> theta -> mix -> tune -> decode      other systems
               weights -> learn -> decode             violation-fixing ones
      parse, dependencies -> tune -> decode           trees over phrases
                                              -> evaluate -> inspect

Glossing, without grammar or search, is the floor under all systems.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable
from typing import Any

import ml_collections

from jaxmt.corpora import synthetic
from jaxmt.corpora.synthetic import SyntheticConfig
from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import experiment_report, pipeline, systems
from jaxmt.experiment.outcome import (
  Outcome,
  SystemArtefacts,
  TreeArtefacts,
)
from jaxmt.experiment.pipeline import Artefact, Run
from jaxmt.experiment.stages import (
  align,
  corpus,
  decode,
  evaluate,
  gloss,
  grammar,
  held_out,
  lm,
  mix_theta,
  system,
  tree_parsing,
)
from jaxmt.experiment.stages import dependency_trees as tree_stages
from jaxmt.experiment.stages import inspect as inspect_stage
from jaxmt.experiment.stages import learn as learning
from jaxmt.experiment.stages import theta as theta_stage
from jaxmt.experiment.stages import tune as tuning
from jaxmt.experiment.stages.align import AlignStageConfig
from jaxmt.experiment.stages.corpus import Corpus, FilesConfig
from jaxmt.experiment.stages.dependency_trees import TreesConfig
from jaxmt.experiment.stages.evaluate import EvaluateConfig
from jaxmt.experiment.stages.grammar import Grammar, GrammarStageConfig
from jaxmt.experiment.stages.held_out import HoldOutConfig
from jaxmt.experiment.stages.inspect import (
  InspectConfig,
  Inspection,
  InspectionConfig,
)
from jaxmt.experiment.stages.learn import LearningConfig
from jaxmt.experiment.stages.lm import LmStageConfig
from jaxmt.experiment.stages.mix_theta import MixConfig
from jaxmt.experiment.stages.system import SearchStageConfig, Theta, Tuned
from jaxmt.experiment.stages.theta import LearnedTheta, ThetaStageConfig
from jaxmt.experiment.stages.tune import TuneStageConfig, TuningConfig
from jaxmt.features import frequent_events
from jaxmt.runtime import checkpoint, code_versions
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.violation import learn_config as learn_config
from jaxmt.train.violation.learn_config import LearnConfig

GLOSS = "gloss"
# Settings that follow from others; config files do not have them.
_DERIVED = (
  ("data", "synthetic", "seed"),
  ("theta", "method"),
  ("theta", "counts"),
  ("learn", "update"),
  ("learn", "seed"),
  ("evaluate", "part"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
  """Where the corpus comes from.

  Attributes:
    kind: "synthetic" for the embedded corpus, or "files".
    synthetic: the embedded corpus.
    seed: of the embedded corpus; a negative one means the experiment's.
    files: the files.
    reverse: translate from target to source, without trees.
  """

  kind: str = "synthetic"
  synthetic: SyntheticConfig = dataclasses.field(
    default_factory=SyntheticConfig
  )
  seed: int = -1
  files: FilesConfig = dataclasses.field(default_factory=FilesConfig)
  reverse: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
  """A whole experiment.

  Attributes:
    seed: of everything random.
    data: the corpus.
    align: how words are linked.
    lm: the language model.
    grammar: the rules.
    search: how to decode, in tuning and test.
    tune: how weights are tuned.
    systems: names of `jaxmt.experiment.systems.SYSTEMS`, the baseline first;
      without any, only glosses are evaluated.
    theta: settings that all systems with trained θ share; a `k` of 0 is the
      beam of `search`.
    interpolation: b of equation (12): share of the baseline's probabilities in
      the trained ones; 0 for none.
    epochs: T of figure 6: how often θ is trained and weights are tuned; only
      the last θ is mixed with the baseline's.
    learn: settings that all violation-fixing systems share.
    held_out: N: they learn from every N-th training pair alone, with rules and
      a language model of all other pairs; what they learn then serves the rules
      of all pairs. 0: they learn from all pairs with the rules of these.
    own_rules: whether they learn from the held-out pairs with the rules of all
      pairs after all. It tells what the rules of others give.
    judged: N: their epochs are judged, and their lengths set, on every N-th
      tuning sentence alone; the weights of all systems of rules are tuned on
      the others. 0: both use all tuning sentences.
    trees: settings of the system with trees over phrases.
    warm_start: whether tuning starts from the weights before, as in figure 6:
      the baseline's, or those of the epoch before. If not, every tuning starts
      from the same weights.
    evaluate: metrics and significance test.
    inspect: how much the report shows of single sentences.
  """

  seed: int = 0
  data: DataConfig = dataclasses.field(default_factory=DataConfig)
  align: AlignStageConfig = dataclasses.field(default_factory=AlignStageConfig)
  lm: LmStageConfig = dataclasses.field(default_factory=LmStageConfig)
  grammar: GrammarStageConfig = dataclasses.field(
    default_factory=GrammarStageConfig
  )
  search: SearchStageConfig = dataclasses.field(
    default_factory=SearchStageConfig
  )
  tune: TuneStageConfig = dataclasses.field(default_factory=TuneStageConfig)
  systems: tuple[str, ...] = (systems.PRIMARY,)
  theta: ThetaConfig = dataclasses.field(
    default_factory=lambda: ThetaConfig(k=0)
  )
  interpolation: float = 0.5
  epochs: int = 1
  learn: LearnConfig = dataclasses.field(default_factory=LearnConfig)
  held_out: int = 0
  own_rules: bool = False
  judged: int = 0
  trees: TreesConfig = dataclasses.field(default_factory=TreesConfig)
  warm_start: bool = True
  evaluate: EvaluateConfig = dataclasses.field(default_factory=EvaluateConfig)
  inspect: InspectConfig = dataclasses.field(default_factory=InspectConfig)


def defaults() -> ml_collections.ConfigDict:
  """Returns every setting with its default, for config files to change."""
  config = ml_collections.ConfigDict(_tree(ExperimentConfig()))
  for *parents, name in _DERIVED:
    node = config
    for parent in parents:
      node = node[parent]
    del node[name]
  return config


def _tree(value: Any) -> Any:
  """A dataclass as nested dicts; tuples stay, as flags want them."""
  if not dataclasses.is_dataclass(value):
    return value
  fields = dataclasses.fields(value)
  return {field.name: _tree(getattr(value, field.name)) for field in fields}


def freeze(config: ml_collections.ConfigDict) -> ExperimentConfig:
  """Returns the checked, frozen form of a config file's values."""
  frozen = config_lib.freeze(ExperimentConfig, config)
  if frozen.data.kind not in ("synthetic", "files"):
    raise InputError(
      f"config key 'data.kind': '{frozen.data.kind}' is neither 'synthetic'"
      " nor 'files'"
    )
  if frozen.theta.k == 0:
    theta = dataclasses.replace(frozen.theta, k=frozen.search.beam)
    frozen = dataclasses.replace(frozen, theta=theta)
  _checked("data.synthetic", synthetic.check, frozen.data.synthetic)
  _checked("align", align.check, frozen.align)
  _checked("lm", lm.check, frozen.lm)
  _checked("search", system.check, frozen.search)
  _checked("evaluate", evaluate.check, frozen.evaluate)
  _checked("inspect", inspect_stage.check, frozen.inspect)
  grammar.check(frozen.grammar)
  if frozen.systems and not _has_trees(frozen.data):
    grammar.check_without_trees(frozen.grammar)
  tuning.check(frozen.tune)
  systems.check(frozen.systems, frozen.theta)
  if (
    frozen.grammar.kind != "phrase"
    and frequent_events.NAME in frozen.tune.templates
  ):
    raise InputError(
      f"config key 'tune.templates': '{frequent_events.NAME}' needs a phrase"
      " table ('grammar.kind')"
    )
  _checked("learn", learn_config.check, frozen.learn)
  for name in ("held_out", "judged"):
    if getattr(frozen, name) < 2 and getattr(frozen, name) != 0:
      raise InputError(f"config key '{name}' must be 0 or at least 2")
  if frozen.own_rules and not frozen.held_out:
    raise InputError("config key 'own_rules' needs 'held_out'")
  if frozen.held_out and frozen.learn.leave_one_out != "none":
    raise InputError(
      "config key 'held_out': rules of others have no own ones for"
      " 'learn.leave_one_out' to leave out"
    )
  if systems.PHRASE_DEPENDENCY in frozen.systems:
    _checked("trees", tree_stages.check, frozen.trees)
    if frozen.grammar.kind != "phrase":
      raise InputError(
        f"config key 'systems': '{systems.PHRASE_DEPENDENCY}' needs a phrase"
        " table ('grammar.kind')"
      )
  for name in frozen.systems:
    theta_stage.check(
      _theta_config(frozen, name), provenance=frozen.grammar.provenance
    )
  if not 0 <= frozen.interpolation <= 1:
    raise InputError("config key 'interpolation' is not between 0 and 1")
  if frozen.epochs < 1:
    raise InputError("config key 'epochs' must be at least 1")
  if not 0 <= frozen.seed < 2**32:
    raise InputError("config key 'seed' must be from 0 to 4294967295")
  seed = frozen.seed if frozen.data.seed < 0 else frozen.data.seed
  embedded = dataclasses.replace(frozen.data.synthetic, seed=seed)
  data = dataclasses.replace(frozen.data, synthetic=embedded)
  return dataclasses.replace(frozen, data=data)


def _has_trees(data: DataConfig) -> bool:
  given = data.kind == "synthetic" or bool(data.files.train_trees)
  return given and not data.reverse


def _checked(key: str, check: Callable[[Any], None], part: Any) -> None:
  try:
    check(part)
  except ValueError as error:
    raise InputError(f"config key '{key}': {error}") from error


def version(config: ExperimentConfig) -> str:
  """Returns a hash of config, code and input files."""
  paths = [
    *align.input_paths(config.align).values(),
    *grammar.input_paths(config.grammar).values(),
  ]
  if systems.PHRASE_DEPENDENCY in config.systems:
    paths += tree_parsing.input_paths(config.trees.parse).values()
    paths += tree_parsing.tree_paths(config.trees.parse).values()
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
  trees: dict[str, TreeArtefacts] = {}
  rules = None
  if config.systems:
    rules = _rules(run, config, "grammar", corpus=text, links=links)
    shared = {"corpus": text, "grammar": rules, "lm": model}
    built, trees = _all_systems(run, config, links, shared)
  floor = run.stage(
    "gloss",
    gloss.gloss,
    config=gloss.GlossConfig(),
    corpus=text,
    links=links,
  )
  decoded: dict[str, Artefact[Any]] = {
    **{name: artefacts.decode for name, artefacts in built.items()},
    **{name: artefacts.decode for name, artefacts in trees.items()},
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
    trees=trees,
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


def _all_systems(
  run: Run,
  config: ExperimentConfig,
  links: Artefact,
  shared: dict[str, Artefact],
) -> tuple[dict[str, SystemArtefacts], dict[str, TreeArtefacts]]:
  """Trains and decodes the systems: those of rules, and trees over phrases."""
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
  trees = {}
  if systems.PHRASE_DEPENDENCY in config.systems:
    coarse = built[systems.PRIMARY].tune
    trees[systems.PHRASE_DEPENDENCY] = _trees(
      run, config, links, coarse=coarse, **shared
    )
  return built, trees


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


def _rules(
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
    "grammar": _rules(
      run, config, "other-grammar", corpus=others, links=their_links
    ),
    "lm": run.stage(
      "other-lm", lm.language_model, config=config.lm, corpus=others
    ),
    "tune_grammar": whole["grammar"],
    "tune_lm": whole["lm"],
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


def _systems(
  run: Run,
  config: ExperimentConfig,
  shared: dict[str, Artefact],
  learned_from: dict[str, Artefact],
  tuned_on: Artefact[Corpus],
) -> dict[str, SystemArtefacts]:
  """Builds every system.

  All read `shared`; those that learn weights on the training text learn from
  `learned_from`, all others are tuned on `tuned_on`.

  LearnModel of figure 6: each epoch trains θ with the weights of the epoch
  before (in the first epoch the baseline's), then tunes weights for the new θ,
  starting from the same weights. The baseline, and with `warm_start` off every
  system, starts from `kbest_decoder.start_weights`.
  """
  settings = TuningConfig(
    tune=config.tune, search=config.search, seed=config.seed
  )
  built: dict[str, SystemArtefacts] = {}
  for name in config.systems:
    if name == systems.PHRASE_DEPENDENCY:
      continue
    theta: dict[str, Artefact] = {}
    learned: Artefact[LearnedTheta] | None = None
    mixed: Artefact[Theta] | None = None
    tuned = built[systems.PRIMARY].tune if built else None
    trained = systems.trained(name)
    start = {"start": tuned} if tuned and config.warm_start else {}
    epochs = config.epochs if trained else 1
    for epoch in range(0 if systems.learns_weights(name) else epochs):
      label = f"{name}-{epoch + 1}" if epoch else name
      start = {"start": tuned} if tuned and config.warm_start else {}
      if trained:
        assert tuned is not None, "the baseline comes first"
        learned = _learned(run, config, name, label, tuned, learned, shared)
        theta = {"theta": learned}
        if epoch == config.epochs - 1:
          mixed = _mixed(run, config, label, learned, shared)
          theta = {"theta": mixed}
      tuned = run.stage(
        f"tune-{label}",
        tuning.tune,
        config=settings,
        resumable=True,
        **{**shared, "corpus": tuned_on},
        **theta,
        **start,
      )
    if systems.learns_weights(name):
      tuned = _learned_weights(run, config, name, learned_from, start)
    assert tuned is not None
    decoded = run.stage(
      f"decode-{name}",
      decode.translate,
      config=config.search,
      resumable=False,
      tuned=tuned,
      **shared,
      **theta,
    )
    built[name] = SystemArtefacts(
      learned=learned, theta=mixed, tune=tuned, decode=decoded
    )
  return built


def _trees(
  run: Run,
  config: ExperimentConfig,
  links: Artefact,
  **shared: Artefact,
) -> TreeArtefacts:
  """Parses, extracts phrase dependencies, learns weights and translates."""
  trees_config = config.trees
  treebanks = tree_parsing.input_paths(trees_config.parse)
  parsers = {
    side: run.stage(
      f"{side}-parser",
      tree_parsing.learn,
      config=how,
      resumable=False,
      **_given(bank=treebanks.get(side)),
    )
    for side, how in tree_parsing.learning(trees_config.parse).items()
  }
  parsed = run.stage(
    "parse",
    tree_parsing.parse,
    config=trees_config.parse,
    resumable=False,
    corpus=shared["corpus"],
    **parsers,
    **_given(**tree_parsing.tree_paths(trees_config.parse)),
  )
  known = {}
  if trees_config.parse.target != tree_parsing.NONE:
    known["dependencies"] = run.stage(
      "dependencies",
      tree_parsing.extract,
      config=tree_parsing.ExtractionConfig(length=trees_config.length),
      corpus=shared["corpus"],
      grammar=shared["grammar"],
      links=links,
      parsed=parsed,
    )
  settings = tree_stages.TreeTuningConfig(
    trees=trees_config,
    search=config.search,
    metric=config.tune.metric,
    seed=config.seed,
  )
  tuned = run.stage(
    f"tune-{systems.PHRASE_DEPENDENCY}",
    tree_stages.tune,
    config=settings,
    resumable=True,
    parsed=parsed,
    **shared,
    **known,
  )
  decoded = run.stage(
    f"decode-{systems.PHRASE_DEPENDENCY}",
    tree_stages.translate,
    config=settings,
    resumable=False,
    tuned=tuned,
    parsed=parsed,
    **shared,
    **known,
  )
  return TreeArtefacts(
    source_parser=parsers.get("source"),
    target_parser=parsers.get("target"),
    parse=parsed,
    dependencies=known.get("dependencies"),
    tune=tuned,
    decode=decoded,
  )


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


def _theta_config(config: ExperimentConfig, name: str) -> ThetaStageConfig:
  """Returns the same settings for all epochs of a system.

  So runs of more epochs can share the first ones.
  """
  theta = systems.theta_config(name, config.theta)
  return ThetaStageConfig(
    theta=theta,
    search=config.search,
    keep_own=theta.leave_one_out == "counts" and config.epochs > 1,
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
    config=_theta_config(config, name),
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
