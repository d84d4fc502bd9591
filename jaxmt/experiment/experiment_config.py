"""Settings of an experiment: defaults for config files, checks, frozen form."""

import dataclasses
from collections.abc import Callable
from typing import Any

import ml_collections

from jaxmt.corpora import synthetic
from jaxmt.corpora.synthetic import SyntheticConfig
from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import systems
from jaxmt.experiment.stages import (
  align,
  corpus,
  evaluate,
  grammar,
  lm,
  neural,
  system,
)
from jaxmt.experiment.stages import dependency_trees as tree_stages
from jaxmt.experiment.stages import inspect as inspect_stage
from jaxmt.experiment.stages import theta as theta_stage
from jaxmt.experiment.stages import tune as tuning
from jaxmt.experiment.stages.align import AlignStageConfig
from jaxmt.experiment.stages.corpus import FilesConfig
from jaxmt.experiment.stages.dependency_trees import TreesConfig
from jaxmt.experiment.stages.evaluate import EvaluateConfig
from jaxmt.experiment.stages.grammar import GrammarStageConfig
from jaxmt.experiment.stages.inspect import InspectConfig
from jaxmt.experiment.stages.lm import LmStageConfig
from jaxmt.experiment.stages.neural import NeuralConfig
from jaxmt.experiment.stages.system import SearchStageConfig
from jaxmt.experiment.stages.theta import ThetaStageConfig
from jaxmt.experiment.stages.tune import TuneStageConfig
from jaxmt.features import frequent_events
from jaxmt.train.theta_config import OWN_COUNTS, ThetaConfig
from jaxmt.train.violation import learn_config
from jaxmt.train.violation.learn_config import LearnConfig

# Settings that follow from others; config files do not have them.
_DERIVED = (
  ("data", "synthetic", "seed"),
  ("theta", "method"),
  ("theta", "counts"),
  ("learn", "update"),
  ("learn", "seed"),
  *(("neural", *path) for path in neural.SEEDS),
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
    neural: settings of the systems with trained models.
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
  neural: NeuralConfig = dataclasses.field(default_factory=NeuralConfig)
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
  if frozen.theta.k == 0:
    theta = dataclasses.replace(frozen.theta, k=frozen.search.beam)
    frozen = dataclasses.replace(frozen, theta=theta)
  _check_stages(frozen)
  _check_learning(frozen)
  for name in frozen.systems:
    theta_stage.check(
      theta_settings(frozen, name), provenance=frozen.grammar.provenance
    )
  if not 0 <= frozen.interpolation <= 1:
    raise InputError("config key 'interpolation' is not between 0 and 1")
  if frozen.epochs < 1:
    raise InputError("config key 'epochs' must be at least 1")
  if not 0 <= frozen.seed < 2**32:
    raise InputError("config key 'seed' must be from 0 to 4294967295")
  seed = frozen.seed if frozen.data.seed < 0 else frozen.data.seed
  embedded = dataclasses.replace(frozen.data.synthetic, seed=seed)
  files = frozen.data.files
  if files.noise_seed < 0 or not files.noise:
    # Without noise it makes no difference.
    seed = frozen.seed if files.noise else 0
    files = dataclasses.replace(files, noise_seed=seed)
  data = dataclasses.replace(frozen.data, synthetic=embedded, files=files)
  return dataclasses.replace(frozen, data=data)


def _check_stages(frozen: ExperimentConfig) -> None:
  """Checks the settings of the stages that all systems share."""
  if frozen.data.kind not in ("synthetic", "files"):
    raise InputError(
      f"config key 'data.kind': '{frozen.data.kind}' is neither 'synthetic'"
      " nor 'files'"
    )
  _checked("data.synthetic", synthetic.check, frozen.data.synthetic)
  _checked("data.files", corpus.check, frozen.data.files)
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


def _check_learning(frozen: ExperimentConfig) -> None:
  """Checks the settings of systems that learn more than θ."""
  _checked("neural", neural.check, frozen.neural)
  neural.check_kinds(
    frozen.systems,
    grammar=frozen.grammar.kind,
    documents=frozen.data.kind == "files"
    and bool(frozen.data.files.train_documents),
    provenance=frozen.grammar.provenance,
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


def _has_trees(data: DataConfig) -> bool:
  given = data.kind == "synthetic" or bool(data.files.train_trees)
  return given and not data.reverse


def _checked(key: str, check: Callable[[Any], None], part: Any) -> None:
  try:
    check(part)
  except ValueError as error:
    raise InputError(f"config key '{key}': {error}") from error


def theta_settings(config: ExperimentConfig, name: str) -> ThetaStageConfig:
  """Returns a system's settings of θ training, the same for all epochs.

  So runs of more epochs can share the first ones.
  """
  theta = systems.theta_config(name, config.theta)
  return ThetaStageConfig(
    theta=theta,
    search=config.search,
    keep_own=theta.leave_one_out in OWN_COUNTS and config.epochs > 1,
  )
