"""Tuning the weights of a system, with its decoder in the loop."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from jaxmt.errors import InputError
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.system import SearchStageConfig
from jaxmt.metrics import registry
from jaxmt.runtime import progress
from jaxmt.tune import (
  feature_subset,
  kbest_decoder,
  loop,
  methods,
  resume,
  sparse_decoding,
)
from jaxmt.tune.methods import Method


@dataclasses.dataclass(frozen=True, kw_only=True)
class TuneStageConfig:
  """How to tune.

  Attributes:
    method: a name of `jaxmt.tune.methods`.
    options: settings of the method, "name=value" each, as
      `launch/tune.py --option`.
    metric: what to optimise.
    rounds: optimisations; there is one decoding more.
    patience: stop after so many rounds without a better score; 0: never.
    min_change: stop when no weight moves by more, relative to the largest.
    nbest: candidates per sentence and round.
    batch_size: 0 decodes all, then optimises; otherwise online learning on
      random batches of this size.
    batch_passes: of an online learner over a batch.
    merge: whether candidates of earlier rounds stay.
    unique: whether all strings of a list differ.
    templates: sparse features, see `jaxmt.tune.sparse_decoding`.
    min_count: leave out those that differ in lists of fewer sentences.
    keep_features: of the others, keep so many that differ in most sentences;
      0: all.
  """

  method: str = "mert"
  options: tuple[str, ...] = ()
  metric: str = "bleu"
  rounds: int = 6
  patience: int = 0
  min_change: float = 1e-6
  nbest: int = 100
  batch_size: int = 0
  batch_passes: int = 1
  merge: bool = True
  unique: bool = True
  templates: tuple[str, ...] = ()
  min_count: int = 0
  keep_features: int = 0


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
  """Raises `InputError` if there is no such method, option or template."""
  sparse_decoding.split(config.templates)
  registry.find(config.metric)
  make_method(config.method, config.options, metric=config.metric)
  if config.batch_size and (config.min_count or config.keep_features):
    raise InputError("batch_size goes without min_count and keep_features")
  for name, least in (("rounds", 0), ("nbest", 1), ("batch_passes", 1)):
    if getattr(config, name) < least:
      raise InputError(f"config key 'tune.{name}' must be at least {least}")


def make_method(name: str, options: Sequence[str], *, metric: str) -> Method:
  """Returns a method with settings given as "name=value".

  Raises:
    InputError: if there is no such method or setting.
  """
  changes = {"metric": metric}
  for option in options:
    key, equals, value = option.partition("=")
    if not equals:
      raise InputError(f"option '{option}': expected name=value")
    changes[key] = value
  return methods.configure(methods.find(name), changes)


def tune(
  config: TuningConfig,
  *,
  corpus: dict[str, Any],
  grammar: dict[str, Any],
  lm: dict[str, Any],
  theta: dict[str, Any] | None = None,
  start: dict[str, Any] | None = None,
  partial: resume.Store | None = None,
) -> dict[str, Any]:
  """Tunes weights on the tuning part.

  Args:
    config: see `TuningConfig`.
    corpus: as `jaxmt.experiment.stages.corpus` makes it.
    grammar: from `jaxmt.experiment.stages.grammar`.
    lm: from `jaxmt.experiment.stages.lm`.
    theta: "theta", if not the grammar's own.
    start: "weights" to start from, as this stage returns them.
    partial: keeps the state after each round, to go on from.

  Returns:
    "weights": a JSON object, name to weight; "history": a list of records, one
    for each decoding; "templates": the config's; "metrics": the best score and
    what it took.
  """
  wanted = config.tune
  lines = corpus["tune_source"]
  table = system.rule_table(grammar, theta, lines=lines)
  model = system.make_model(config.search, table=table, lm=lm, weights={})
  weights = kbest_decoder.start_weights(model.feature_names)
  if start is not None:
    weights |= start["weights"]
  method = feature_subset.wrap(
    make_method(wanted.method, wanted.options, metric=wanted.metric),
    metric=wanted.metric,
    min_count=wanted.min_count,
    keep=wanted.keep_features,
  )
  decode = kbest_decoder.make_decode(
    model,
    lines,
    config=system.decode_config(config.search, model, forest=True),
    size=wanted.nbest,
    unique=wanted.unique,
    spans=system.constituents(
      model, corpus, "tune", binarize=grammar["binarize"]
    ),
    templates=wanted.templates,
    density=methods.forest_density(method),
  )
  begun = None
  if partial is not None:
    begun = resume.restore(partial, prefix="round", rounds=wanted.rounds)

  def on_round(state: loop.LoopState) -> None:
    if partial is not None:
      resume.save(partial, state, prefix="round")
    _say(state)

  state = loop.run(
    decode,
    corpus["tune_references"],
    method,
    loop.begin(weights) if begun is None else begun[0],
    loop.LoopConfig(
      metric=wanted.metric,
      rounds=wanted.rounds,
      merge=wanted.merge,
      batch_size=wanted.batch_size,
      batch_passes=wanted.batch_passes,
      min_change=wanted.min_change,
      patience=wanted.patience,
    ),
    config.seed,
    on_round=on_round,
  )
  history = list(state.history)
  return {
    "weights": state.best_weights,
    "history": history,
    "templates": list(wanted.templates),
    "metrics": {
      "rounds": len(history),
      "start_score": history[0]["score"],
      "best_score": loop.best_of(history, wanted.metric),
      "pool": history[-1]["pool"],
      "features": history[-1]["features"],
      "nonzero": sum(v != 0 for v in state.best_weights.values()),
    },
  }


def _say(state: loop.LoopState) -> None:
  last = state.history[-1]
  progress.say(
    f"  round {last['round']}: score {last['score']:.4f}, length ratio"
    f" {last['length_ratio']:.3f}, pool {last['pool']:,}"
  )
