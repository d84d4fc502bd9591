"""Training θ on the training part: rule probabilities from derivations.

The first five features of the rules are re-estimated; the others stay.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import jax
import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.experiment.stages import decode, system
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import SearchStageConfig, Theta, Tuned
from jaxmt.metrics import evaluation
from jaxmt.runtime import parallel, progress
from jaxmt.runtime.checkpoint import Store
from jaxmt.runtime.runner import Runner
from jaxmt.train import (
  beam_diagnosis,
  shard_counting,
  shard_store,
  theta_methods,
)
from jaxmt.train.counts import Contributions
from jaxmt.train.shard_counting import TrainingBitext
from jaxmt.train.theta_config import ThetaConfig
from jaxmt.train.training import Learned, PreviousEpoch, Resources, RunOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThetaStageConfig:
  """How to train.

  Attributes:
    theta: the method and its settings, the sizes of the training search too.
    search: limits of matching; its beam is that of decoding, not used here.
    keep_own: whether to return what each sentence gave to the counts. A later
      epoch needs it to leave a sentence's own counts out.
  """

  theta: ThetaConfig = dataclasses.field(default_factory=ThetaConfig)
  search: SearchStageConfig = dataclasses.field(
    default_factory=SearchStageConfig
  )
  keep_own: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResourceOptions:
  """Where training runs; results do not depend on it.

  Attributes:
    runner: "threads", "serial" or "ray": where shards are decoded.
    ray_address: a running Ray cluster; None starts a local one.
    devices: number of devices that search batches of a shard side by side; 0
      for all. With several processes, each uses one device.
  """

  runner: str = "threads"
  ray_address: str | None = None
  devices: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedTheta(Theta):
  """Trained rule probabilities.

  Attributes:
    theta: natural logs in the order of `estimate.THETA`, float32 `[R, 5]`.
    counts: what they were estimated from, in units of 2^-32, int64 `[R]`.
    history: one record per iteration, see `learn_theta.describe`.
    metrics: the same in short.
    own: what each sentence gave to the counts, N rows, or None.
  """

  counts: np.ndarray
  history: list[dict[str, Any]]
  metrics: dict[str, Any]
  own: Contributions | None = None

  def to_values(self) -> dict[str, Any]:
    """See `Record`; the arrays of `own` are values of their own."""
    values = {
      "theta": self.theta,
      "counts": self.counts,
      "history": self.history,
      "metrics": self.metrics,
    }
    if self.own is not None:
      arrays = shard_store.own_values(self.own)
      values |= {f"own_{name}": array for name, array in arrays.items()}
    return values

  @classmethod
  def from_values(cls, values: Mapping[str, Any]) -> Self:
    """See `Record`."""
    own = {
      name.removeprefix("own_"): array
      for name, array in values.items()
      if name.startswith("own_")
    }
    return cls(
      theta=values["theta"],
      counts=values["counts"],
      history=values["history"],
      metrics=values["metrics"],
      own=shard_store.own_of(own) if own else None,
    )


def learn(
  config: ThetaStageConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  tuned: Tuned,
  theta: LearnedTheta | None = None,
  partial: Store | None = None,
  resources: ResourceOptions | None = None,
) -> LearnedTheta:
  """Learns θ with fixed weights.

  Where several processes run, all of them call it and share the work; the
  first one reports.

  Args:
    config: see `ThetaStageConfig`.
    corpus: the text.
    grammar: the rules.
    lm: the language model.
    tuned: the weights.
    theta: what the epoch before learned, if not the first epoch.
    partial: stores finished shards and iterations, to resume from.
    resources: where to run.
  """
  model, bitext = training_model(
    config.search,
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights=tuned.weights,
    theta=theta,
  )
  options = RunOptions(
    store=partial,
    resources=_resources(config.theta, resources or ResourceOptions()),
    keep_own=config.keep_own,
  )
  previous = _previous(theta)
  if options.resources.process:
    learned = theta_methods.train(
      model, bitext, config.theta, options=options, previous=previous
    )
  else:
    _warn(config.theta)
    evaluate = lambda values: _tune_score(
      config.search,
      corpus=corpus,
      grammar=grammar,
      lm=lm,
      tuned=tuned,
      theta=Theta(theta=values.astype(np.float32)),
    )
    options = dataclasses.replace(options, evaluate=evaluate, on_iteration=_say)
    learned = _reported(model, bitext, config.theta, options, previous)
  history = list(learned.history)
  return LearnedTheta(
    theta=learned.theta,
    counts=learned.counts,
    history=history,
    metrics=_metrics(history, config.theta),
    own=learned.own,
  )


def _previous(theta: LearnedTheta | None) -> PreviousEpoch | None:
  """Returns the counts of the epoch before, if each sentence's are known."""
  if theta is None or theta.own is None:
    return None
  return PreviousEpoch(counts=np.asarray(theta.counts), own=theta.own)


def _warn(config: ThetaConfig) -> None:
  """Warns if ranks that the beam loss tells apart exceed the training beam."""
  last = config.k + config.margin
  augmented = theta_methods.find(config.method).search(config) is not None
  if augmented and config.alpha1 and config.train_beam <= last:
    progress.say(
      f"  warning: the beam loss rises up to rank {last} (k + margin), but"
      f" training keeps {config.train_beam} hypotheses (train_beam)"
    )


def _tune_score(
  config: SearchStageConfig, *, corpus: Corpus, **inputs: Any
) -> dict[str, Any]:
  """Returns BLEU of the tuning part with a new θ and the old weights.

  Nothing for a corpus without that part.
  """
  if not corpus.tune_source:
    return {}
  done = decode.translate_part(config, "tune", corpus=corpus, **inputs)
  [scored] = evaluation.evaluate(
    corpus.tune_references,
    [done.lines],
    evaluation.Settings(metrics=("bleu",), tokenize="none"),
  )
  return {"tune_bleu": round(scored.corpus_score(0), 3)}


def _resources(config: ThetaConfig, resources: ResourceOptions) -> Resources:
  """Returns the devices and workers that the options stand for."""
  processes = jax.process_count()
  mesh = None
  if processes == 1 and resources.devices != 1 and jax.device_count() > 1:
    mesh = parallel.make_mesh(resources.devices)
  return Resources(
    runner=Runner(
      kind=resources.runner,
      workers=config.workers,
      address=resources.ray_address,
    ),
    mesh=mesh,
    processes=processes,
    process=jax.process_index(),
    clock=progress.clock,
  )


def _reported(
  model, bitext, config: ThetaConfig, options: RunOptions, previous
) -> Learned:
  """Trains θ and shows progress."""
  total = len(bitext) * theta_methods.find(config.method).passes(config)
  label = f"theta ({config.method})"
  with progress.steps(label=label, total=total) as advance:
    shown = dataclasses.replace(options.resources, on_shard=advance)
    options = dataclasses.replace(options, resources=shown)
    return theta_methods.train(
      model, bitext, config, options=options, previous=previous
    )


def training_model(
  config: SearchStageConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  weights: Mapping[str, float],
  theta: Theta | None = None,
) -> tuple[Model, TrainingBitext]:
  """Returns the model of all rules, and the training text for it."""
  model, spans = system.part_model(
    config,
    "train",
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights=weights,
    theta=theta,
  )
  source = models.make_source(model, corpus.train_source, spans=spans)
  bitext = shard_counting.make_bitext(
    model, source, corpus.train_target, provenance=grammar.provenance
  )
  return model, bitext


def check(config: ThetaStageConfig, *, provenance: bool) -> None:
  """Raises `InputError` for bad settings, or without needed provenance."""
  try:
    theta_methods.check(config.theta, provenance=provenance)
  except ValueError as error:
    raise InputError(f"config key 'theta': {error}") from error


def check_resources(resources: ResourceOptions) -> None:
  """Raises `InputError` if the requested devices do not exist."""
  count = jax.device_count()
  if not 0 <= resources.devices <= count:
    raise InputError(f"{resources.devices} devices requested, {count} exist")
  if jax.process_count() > 1 and resources.devices > 1:
    raise InputError("with several processes, each uses one device")


def _say(record: dict[str, Any]) -> None:
  speed = record.get("sentences_per_second")
  progress.say(
    f"  iteration {record['iteration']}: {record['admissible']:,} of"
    f" {record['sentences']:,} sentences admissible,"
    f" {record['fallbacks']:,} fell back with"
    f" {100 * record['fallback_mass_share']:.1f} % of the counts,"
    f" model score {record['model_score']},"
    f" augmented {record['augmented_score']}"
    + _beam_text(record)
    + (f", tune BLEU {record['tune_bleu']}" if "tune_bleu" in record else "")
    + (f", {speed:.1f} sentences/s" if speed else "")
  )


def _beam_text(record: dict[str, Any]) -> str:
  """Returns what the beam loss does, in words; nothing if it is not known."""
  if record.get("beam_changes") is None:
    return ""
  return (
    f", beam loss {record['beam_loss']:.4g} changes"
    f" {100 * record['beam_changes']:.2g} % of the counts"
  )


def _beyond(record: dict[str, Any], config: ThetaConfig) -> float | None:
  """Returns the share of chosen parts that the plain decoder ranks after k.

  As far as the bins tell: a bin counts if it begins after k. None if nothing
  was diagnosed.
  """
  ranks = record.get("plain_ranks")
  if not ranks:
    return None
  first = {name: beam_diagnosis.first_rank(name) for name in ranks}
  after = sum(ranks[name] for name in ranks if first[name] > config.k)
  return round(after / sum(ranks.values()), 6)


def _metrics(
  history: list[dict[str, Any]], config: ThetaConfig
) -> dict[str, Any]:
  if not history:
    return {"iterations": 0}
  last = history[-1]
  names = (
    "admissible_share",
    "fallbacks",
    "fallback_mass_share",
    "model_score",
    "augmented_score",
    "beam_loss",
    "beam_changes",
    "near_share",
  )
  return {
    "iterations": len(history),
    **{name: last[name] for name in names},
    "beyond_beam": _beyond(last, config),
    "model_scores": [record["model_score"] for record in history],
  }
