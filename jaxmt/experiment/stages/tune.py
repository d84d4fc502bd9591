"""Tuning the weights of a system, with its decoder in the loop."""

import dataclasses
from collections.abc import Mapping, Sequence

from jaxmt.decode.phrase import lattice_search
from jaxmt.decode.phrase.lattice_search import LatticeOptions
from jaxmt.errors import InputError
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import (
  SearchStageConfig,
  Theta,
  TrainedModels,
  Tuned,
)
from jaxmt.features import frequent_events
from jaxmt.features.frequent_events import EventSizes
from jaxmt.metrics import named_metrics
from jaxmt.metrics.encoded_text import ReferenceLines
from jaxmt.runtime import progress
from jaxmt.runtime.checkpoint import Store
from jaxmt.train.violation import stage_lists
from jaxmt.tune import (
  feature_subset,
  kbest_decoder,
  list_sources,
  loop,
  methods,
  mixing,
  options,
)
from jaxmt.tune.methods import Method


@dataclasses.dataclass(frozen=True, kw_only=True)
class TuneStageConfig:
  """How to tune.

  Attributes:
    method: a name of `jaxmt.tune.methods`.
    space: what it sees of a sentence: "kbest", the list of `nbest`
      candidates, or "forest", all derivations of the decoder's forest.
    options: settings of the method, "name=value" each, as
      `launch/tune.py --option`.
    metric: what to optimise.
    rounds: optimisations; there is one decoding more.
    patience: stop after this many rounds without a better score; 0: never.
    min_change: stop when no weight moves by more, relative to the largest.
    held_out: N: every N-th tuning sentence only judges, see `loop.LoopConfig`.
    nbest: candidates per sentence and round.
    batch_size: 0 decodes all, then optimises; otherwise online learning on
      random batches of this size.
    batch_passes: of an online learner over a batch.
    merge: whether candidates of earlier rounds stay.
    unique: whether all strings of a list differ.
    templates: sparse features, see `jaxmt.tune.kbest_decoder`.
    min_count: leave out those that differ in lists of fewer sentences.
    keep_features: N: of the others, keep the N that differ in most sentences;
      0: all.
    candidates: where they come from, see `jaxmt.tune.list_sources`.
    stages: lists of partial translations of each sentence, see
      `train.violation.stage_lists`; 0: none.
    mixing: settings of `jaxmt.tune.mixing`, "name=value" each; none: the method
      sees all sentences together.
    events: how many events the template "frequent" has.
    lattice: how its pass over phrase lattices prunes.
  """

  method: str = "mert"
  space: str = "kbest"
  options: tuple[str, ...] = ()
  metric: str = "bleu"
  rounds: int = 6
  patience: int = 0
  min_change: float = 1e-6
  held_out: int = 0
  nbest: int = 100
  batch_size: int = 0
  batch_passes: int = 1
  merge: bool = True
  unique: bool = True
  templates: tuple[str, ...] = ()
  min_count: int = 0
  keep_features: int = 0
  candidates: tuple[str, ...] = ("kbest",)
  stages: int = 0
  mixing: tuple[str, ...] = ()
  events: EventSizes = dataclasses.field(default_factory=EventSizes)
  lattice: LatticeOptions = dataclasses.field(default_factory=LatticeOptions)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TuningConfig:
  """Everything the stage depends on.

  Attributes:
    tune: how to tune.
    search: how to decode.
    seed: of everything random.
  """

  tune: TuneStageConfig
  search: SearchStageConfig
  seed: int = 0


def check(config: TuneStageConfig) -> None:
  """Raises `InputError` for an unknown method, option or template."""
  kbest_decoder.split_templates(config.templates)
  named_metrics.find(config.metric)
  method = make_method(
    config.method, config.options, metric=config.metric, space=config.space
  )
  if config.templates and methods.forest_density(method) is not None:
    raise InputError("forests have dense features only: leave out templates")
  small = config.min_count or config.keep_features or config.mixing
  if config.batch_size and small:
    raise InputError(
      "batch_size cannot be combined with min_count, keep_features or mixing"
    )
  list_sources.check(config.candidates)
  try:
    frequent_events.check_sizes(config.events)
    lattice_search.check_options(config.lattice)
  except ValueError as error:
    raise InputError(f"config key 'tune': {error}") from error
  mixed(method, config.mixing, metric=config.metric)
  loop.check_stages(loop_config(config), config.stages > 0)
  loop.check_held_out(loop_config(config), method, config.stages > 0)
  for name, least in (
    *(("rounds", 0), ("nbest", 1), ("batch_passes", 1), ("stages", 0)),
  ):
    if getattr(config, name) < least:
      raise InputError(f"config key 'tune.{name}' must be at least {least}")


def make_method(
  name: str, changed: Sequence[str], *, metric: str, space: str = methods.KBEST
) -> Method:
  """Returns a method with settings given as "name=value".

  Raises:
    InputError: for an unknown method or setting.
  """
  changes = {"metric": metric, **_changes(changed)}
  return methods.configure(methods.find(name, space=space), changes)


def _changes(settings: Sequence[str]) -> dict[str, str]:
  """Settings given as "name=value", by name."""
  changes = {}
  for option in settings:
    key, equals, value = option.partition("=")
    if not equals:
      raise InputError(f"option '{option}': expected name=value")
    changes[key] = value
  return changes


def mixed(method: Method, settings: Sequence[str], *, metric: str) -> Method:
  """Returns the method on shards, if there are settings of mixing.

  Raises:
    InputError: for an unknown setting, or one that does not fit.
  """
  if not settings:
    return method
  config = options.change(
    mixing.MixingConfig(metric=metric), _changes(settings)
  )
  values = dataclasses.asdict(config)
  return mixing.wrap(method, **values)


def loop_config(settings: TuneStageConfig) -> loop.LoopConfig:
  """Returns the settings of the loop."""
  return loop.LoopConfig(
    metric=settings.metric,
    rounds=settings.rounds,
    merge=settings.merge,
    batch_size=settings.batch_size,
    batch_passes=settings.batch_passes,
    min_change=settings.min_change,
    patience=settings.patience,
    held_out=settings.held_out,
  )


def tune(
  config: TuningConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  theta: Theta | None = None,
  start: Tuned | None = None,
  models: TrainedModels | None = None,
  partial: Store | None = None,
) -> Tuned:
  """Tunes weights on the tuning part.

  Args:
    config: see `TuningConfig`.
    corpus: the text.
    grammar: the rules.
    lm: the language model.
    theta: rule probabilities, if not the grammar's own.
    start: weights to start from.
    models: trained features beside those of the grammar.
    partial: stores the state after each round, to resume from.
  """
  settings = config.tune
  grammar = system.with_models(grammar, models)
  model, spans = system.part_model(
    config.search,
    "tune",
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights={},
    theta=theta,
  )
  weights = kbest_decoder.start_weights(model.feature_names)
  if start is not None:
    weights |= start.weights
  if models is not None:
    weights |= models.start
  method = _whole_method(settings)
  lists = kbest_decoder.ListOptions(
    size=settings.nbest,
    unique=settings.unique,
    templates=settings.templates,
    density=methods.forest_density(method),
    sources=list_sources.Sources(
      names=settings.candidates,
      references=corpus.tune_references,
      seed=config.seed,
    ),
    stages=settings.stages,
    stage_lists=stage_lists.of_decoder(settings.stages, settings.nbest),
    events=_events(settings, corpus, grammar),
    lattice=settings.lattice,
  )
  decode = kbest_decoder.make_decode(
    model,
    corpus.tune_source,
    lists,
    config=system.decode_config(config.search, model, forest=True),
    spans=spans,
  )
  return learn_weights(
    decode,
    weights,
    corpus.tune_references,
    settings,
    seed=config.seed,
    partial=partial,
    method=method,
    stages=stage_lists.of_lines(corpus.tune_source, settings.stages),
  )


def _whole_method(settings: TuneStageConfig) -> Method:
  """The method with its options, mixing, and choice of features."""
  method = make_method(
    settings.method,
    settings.options,
    metric=settings.metric,
    space=settings.space,
  )
  return feature_subset.wrap(
    mixed(method, settings.mixing, metric=settings.metric),
    metric=settings.metric,
    min_count=settings.min_count,
    keep=settings.keep_features,
  )


def _events(
  settings: TuneStageConfig, corpus: Corpus, grammar: Grammar
) -> tuple[str, ...]:
  """The names of the frequent events, if the templates ask for them."""
  if frequent_events.NAME not in settings.templates:
    return ()
  return frequent_events.choose(
    grammar.table, corpus.train_target, settings.events
  )


def learn_weights(
  decode: loop.Decode,
  weights: Mapping[str, float],
  references: ReferenceLines,
  settings: TuneStageConfig,
  *,
  seed: int,
  partial: Store | None = None,
  method: Method | None = None,
  stages: loop.Stages | None = None,
) -> Tuned:
  """Runs the loop of a tuning method with any decoder.

  Args:
    decode: see `loop.Decode`.
    weights: to start from.
    references: of each sentence.
    settings: see `TuneStageConfig`.
    seed: of everything random.
    partial: stores the state after each round, to resume from.
    method: that of the settings if None.
    stages: see `loop.run`.
  """
  if method is None:
    method = make_method(
      settings.method, settings.options, metric=settings.metric
    )
  begun = None
  if partial is not None:
    begun = loop.restore(partial, prefix="round", rounds=settings.rounds)

  def on_round(state: loop.LoopState) -> None:
    if partial is not None:
      loop.save(partial, state, prefix="round")
    _say(state)

  state = loop.run(
    decode,
    references,
    method,
    loop.begin(weights) if begun is None else begun[0],
    loop_config(settings),
    seed,
    stages=stages,
    on_round=on_round,
  )
  return _tuned(state, settings)


def _tuned(state: loop.LoopState, settings: TuneStageConfig) -> Tuned:
  """Returns what the loop ends with."""
  history = list(state.history)
  return Tuned(
    weights=state.best_weights,
    history=history,
    templates=list(settings.templates),
    metrics={
      "rounds": len(history),
      "start_score": history[0]["score"],
      "best_score": loop.best_of(history, settings.metric),
      "pool": history[-1]["pool"],
      "features": history[-1]["features"],
      "nonzero": sum(v != 0 for v in state.best_weights.values()),
    },
    lattice=dataclasses.asdict(settings.lattice),
  )


def _say(state: loop.LoopState) -> None:
  last = state.history[-1]
  progress.say(
    f"  round {last['round']}: score {last['score']:.4f}, length ratio"
    f" {last['length_ratio']:.3f}, pool {last['pool']:,}"
  )
