"""Training θ on the training part: rule probabilities from derivations.

The first five features of the rules are estimated anew; the others stay.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.experiment.stages import decode, system
from jaxmt.experiment.stages.system import SearchStageConfig
from jaxmt.grammar import native
from jaxmt.metrics import evaluation
from jaxmt.runtime import parallel, progress
from jaxmt.runtime.runner import Runner
from jaxmt.train import baselines, shard_counting, shard_store
from jaxmt.train.checkpoint_store import Store
from jaxmt.train.config import ThetaConfig
from jaxmt.train.learn_theta import Before, Learned, Place
from jaxmt.train.shard_counting import Bitext


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThetaStageConfig:
  """How to train.

  Attributes:
    theta: the method and its settings, the sizes of the training search too.
    search: limits of matching; its beam is that of decoding, not used here.
    keep_own: whether to keep what each sentence gave, which another epoch
      that leaves own counts out needs to know.
  """

  theta: ThetaConfig = dataclasses.field(default_factory=ThetaConfig)
  search: SearchStageConfig = dataclasses.field(
    default_factory=SearchStageConfig
  )
  keep_own: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workplace:
  """Where training is done; has no influence on what it gives.

  Attributes:
    runner: "threads", "serial" or "ray": where shards are decoded.
    ray_address: a running Ray cluster; None starts a local one.
    devices: that search batches of a shard side by side; 0 for all there are.
      Of several processes each uses one device.
  """

  runner: str = "threads"
  ray_address: str | None = None
  devices: int = 1


def learn(
  config: ThetaStageConfig,
  *,
  corpus: dict[str, Any],
  grammar: dict[str, Any],
  lm: dict[str, Any],
  tuned: dict[str, Any],
  theta: dict[str, Any] | None = None,
  partial: Store | None = None,
  workplace: Workplace | None = None,
) -> dict[str, Any]:
  """Learns θ with fixed weights.

  Where several processes run, all of them call it and share the work; the
  first one reports.

  Args:
    config: see `ThetaStageConfig`.
    corpus: as `jaxmt.experiment.stages.corpus` makes it.
    grammar: from `jaxmt.experiment.stages.grammar`, R rules.
    lm: from `jaxmt.experiment.stages.lm`.
    tuned: "weights", from `jaxmt.experiment.stages.tune`.
    theta: "theta" to start from, if not the grammar's own; with "own_..." it
      is known what each sentence gave to it.
    partial: keeps finished shards and iterations, to go on from.
    workplace: see `Workplace`.

  Returns:
    "theta": natural logs, float32 `[R, 5]`; "counts": what they were estimated
    from in units of 2^-32, int64 `[R]`; "history": one record per iteration
    (see `learn_theta.describe`); "metrics": the same in short; if asked for
    and known, "own_rules", "own_offsets" and "own_units", what each sentence
    gave.
  """
  model, bitext = training_model(
    config.search,
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights=tuned["weights"],
    theta=theta,
  )
  place = _place(config.theta, workplace or Workplace())
  if place.process == 0:
    _warn(config.theta)
  options: dict[str, Any] = {
    "store": partial,
    "place": place,
    "before": _before(theta or {}),
    "keep_own": config.keep_own,
  }
  if place.process:
    learned = baselines.train(model, bitext, config.theta, **options)
  else:
    options["judge"] = lambda values: _tune_score(
      config.search,
      corpus=corpus,
      grammar=grammar,
      lm=lm,
      tuned=tuned,
      theta={"theta": values.astype(np.float32)},
    )
    learned = _reported(model, bitext, config.theta, options)
  history = list(learned.history)
  own = {}
  if learned.own is not None:
    own = shard_store.own_values(learned.own)
  return {
    "theta": learned.theta,
    "counts": learned.counts,
    "history": history,
    "metrics": _metrics(history),
    **{f"own_{name}": values for name, values in own.items()},
  }


def _before(theta: Mapping[str, Any]) -> Before | None:
  """What the epoch before left, if it left all."""
  if "own_rules" not in theta:
    return None
  names = ("rules", "offsets", "units")
  own = shard_store.own_of({name: theta[f"own_{name}"] for name in names})
  return Before(counts=np.asarray(theta["counts"]), own=own)


def _warn(config: ThetaConfig) -> None:
  """Says if ranks that matter lie behind the beam of training."""
  behind = config.k + config.margin
  if config.method != "loss-augmented" or not config.alpha1:
    return
  if config.train_beam <= behind:
    progress.say(
      f"  warning: the beam loss rises up to rank {behind} (k + margin), but"
      f" training keeps {config.train_beam} hypotheses (train_beam)"
    )


def _tune_score(config: SearchStageConfig, *, corpus, **made) -> dict[str, Any]:
  """BLEU of the tuning part with the θ of an iteration and the old weights.

  Nothing for a corpus without that part.
  """
  if "tune_source" not in corpus:
    return {}
  lines, _, _ = decode.translate_part(config, "tune", corpus=corpus, **made)
  [scored] = evaluation.evaluate(
    corpus["tune_references"],
    [lines],
    evaluation.Settings(metrics=("bleu",), tokenize="none"),
  )
  return {"tune_bleu": round(scored.corpus_score(0), 3)}


def _place(config: ThetaConfig, workplace: Workplace) -> Place:
  processes = jax.process_count()
  mesh = None
  if processes == 1 and workplace.devices != 1 and jax.device_count() > 1:
    mesh = parallel.make_mesh(workplace.devices)
  return Place(
    runner=Runner(
      kind=workplace.runner,
      workers=config.workers,
      address=workplace.ray_address,
    ),
    mesh=mesh,
    processes=processes,
    process=jax.process_index(),
    clock=progress.clock,
  )


def _reported(model, bitext, config: ThetaConfig, options) -> Learned:
  """Trains, and shows how far it is."""
  total = len(bitext) * config.iterations
  label = f"theta ({config.method})"
  with progress.steps(label=label, total=total) as advance:
    shown = dataclasses.replace(options["place"], on_shard=advance)
    return baselines.train(
      model,
      bitext,
      config,
      **(options | {"place": shown}),
      on_iteration=_say,
    )


def training_model(
  config: SearchStageConfig,
  *,
  corpus: Mapping[str, Any],
  grammar: Mapping[str, Any],
  lm: Mapping[str, Any],
  weights: Mapping[str, float],
  theta: Mapping[str, Any] | None = None,
) -> tuple[Model, Bitext]:
  """Returns the model of all rules, and the training text for it."""
  table = system.rule_table(grammar, theta)
  model = system.make_model(config, table=table, lm=lm, weights=weights)
  spans = system.constituents(
    model, corpus, "train", binarize=grammar["binarize"]
  )
  source = models.make_source(model, corpus["train_source"], spans=spans)
  provenance = None
  if "provenance_rules" in grammar:
    provenance = native.provenance_from_values(dict(grammar))
  bitext = shard_counting.make_bitext(
    model, source, corpus["train_target"], provenance=provenance
  )
  return model, bitext


def check(config: ThetaStageConfig, *, provenance: bool) -> None:
  """Raises `InputError` for settings that need what is not there."""
  try:
    baselines.check_needs(config.theta, provenance=provenance)
  except ValueError as error:
    raise InputError(f"config key 'theta': {error}") from error


def check_workplace(workplace: Workplace) -> None:
  """Raises `InputError` for a place that is not there."""
  there = jax.device_count()
  if not 0 <= workplace.devices <= there:
    raise InputError(f"{workplace.devices} devices wanted, there are {there}")
  if jax.process_count() > 1 and workplace.devices > 1:
    raise InputError("several processes: each uses one device")


def _say(record: dict[str, Any]) -> None:
  speed = record.get("sentences_per_second")
  progress.say(
    f"  iteration {record['iteration']}: {record['admissible']:,} of"
    f" {record['sentences']:,} sentences admissible,"
    f" {record['fallbacks']:,} fell back with"
    f" {100 * record['fallback_mass_share']:.1f} % of the counts,"
    f" model score {record['model_score']},"
    f" augmented {record['augmented_score']}"
    + (f", tune BLEU {record['tune_bleu']}" if "tune_bleu" in record else "")
    + (f", {speed:.1f} sentences/s" if speed else "")
  )


def _metrics(history: list[dict[str, Any]]) -> dict[str, Any]:
  if not history:
    return {"iterations": 0}
  last = history[-1]
  names = (
    "admissible_share",
    "fallbacks",
    "fallback_mass_share",
    "model_score",
    "augmented_score",
  )
  return {
    "iterations": len(history),
    **{name: last[name] for name in names},
    "model_scores": [record["model_score"] for record in history],
  }
