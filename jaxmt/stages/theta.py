"""Training θ on the training part: rule probabilities from derivations.

The first five features of the rules are estimated anew; the others stay.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxmt import progress
from jaxmt.chart import model as models
from jaxmt.chart.model import Model
from jaxmt.data.ragged import Ragged
from jaxmt.errors import InputError
from jaxmt.grammar.provenance import Provenance
from jaxmt.runner import Runner
from jaxmt.stages import system
from jaxmt.stages.system import SearchStageConfig
from jaxmt.train import baselines, decoding
from jaxmt.train.config import ThetaConfig
from jaxmt.train.decoding import Bitext
from jaxmt.train.learn_theta import Place
from jaxmt.train.store import Store


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThetaStageConfig:
  """How to train.

  Attributes:
    theta: the method and its settings, the sizes of the training search too.
    search: limits of matching; its beam is that of decoding, not used here.
    runner: "threads" or "ray", where shards are decoded. The result does not
      depend on it.
  """

  theta: ThetaConfig = dataclasses.field(default_factory=ThetaConfig)
  search: SearchStageConfig = dataclasses.field(
    default_factory=SearchStageConfig
  )
  runner: str = "threads"


def learn(
  config: ThetaStageConfig,
  *,
  corpus: dict[str, Any],
  grammar: dict[str, Any],
  lm: dict[str, Any],
  tuned: dict[str, Any],
  theta: dict[str, Any] | None = None,
  partial: Store | None = None,
) -> dict[str, Any]:
  """Learns θ with fixed weights.

  Args:
    config: see `ThetaStageConfig`.
    corpus: as `jaxmt.stages.corpus` makes it.
    grammar: from `jaxmt.stages.grammar`, R rules.
    lm: from `jaxmt.stages.lm`.
    tuned: "weights", from `jaxmt.stages.tuning`.
    theta: "theta" to start from, if not the grammar's own.
    partial: keeps finished shards and iterations, to go on from.

  Returns:
    "theta": natural logs, float32 `[R, 5]`; "counts": what they were estimated
    from in units of 2^-32, int64 `[R]`; "history": one record per iteration
    (see `learn_theta.describe`); "metrics": the same in short.
  """
  model, bitext = training_model(
    config.search,
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights=tuned["weights"],
    theta=theta,
  )
  total = len(bitext) * config.theta.iterations
  label = f"theta ({config.theta.method})"
  with progress.steps(label=label, total=total) as advance:
    learned = baselines.train(
      model,
      bitext,
      config.theta,
      store=partial,
      place=Place(
        runner=Runner(kind=config.runner, workers=config.theta.workers),
        processes=jax.process_count(),
        process=jax.process_index(),
        clock=progress.clock,
        on_shard=advance,
      ),
      on_iteration=_say,
    )
  history = list(learned.history)
  return {
    "theta": learned.theta,
    "counts": learned.counts,
    "history": history,
    "metrics": _metrics(history),
  }


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
    provenance = Provenance(
      rules=Ragged(
        flat=np.asarray(grammar["provenance_rules"]),
        offsets=np.asarray(grammar["provenance_offsets"]),
      ),
      counts=np.asarray(grammar["provenance_counts"]),
    )
  bitext = decoding.make_bitext(
    model, source, corpus["train_target"], provenance=provenance
  )
  return model, bitext


def check(config: ThetaStageConfig, *, provenance: bool) -> None:
  """Raises `InputError` for settings that need what is not there."""
  try:
    baselines.check_needs(config.theta, provenance=provenance)
  except ValueError as error:
    raise InputError(f"config key 'theta': {error}") from error


def _say(record: dict[str, Any]) -> None:
  speed = record.get("sentences_per_second")
  progress.say(
    f"  iteration {record['iteration']}: {record['admissible']:,} of"
    f" {record['sentences']:,} sentences admissible,"
    f" {record['fallbacks']:,} fell back,"
    f" model score {record['model_score']},"
    f" augmented {record['augmented_score']}"
    + (f", {speed:.1f} sentences/s" if speed else "")
  )


def _metrics(history: list[dict[str, Any]]) -> dict[str, Any]:
  if not history:
    return {"iterations": 0}
  last = history[-1]
  names = ("admissible_share", "fallbacks", "model_score", "augmented_score")
  return {
    "iterations": len(history),
    **{name: last[name] for name in names},
    "model_scores": [record["model_score"] for record in history],
  }
