"""Learning weights on the training part by fixing violations."""

import dataclasses
from typing import Any

from jaxmt.experiment import learning_run
from jaxmt.experiment.stages import system
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.grammar import Grammar
from jaxmt.experiment.stages.lm import LanguageModel
from jaxmt.experiment.stages.system import SearchStageConfig, Tuned
from jaxmt.runtime import progress
from jaxmt.runtime.checkpoint import Store
from jaxmt.runtime.runner import Runner
from jaxmt.text import kernels
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.training import Resources
from jaxmt.train.violation.development import Development
from jaxmt.train.violation.learn_config import LearnConfig
from jaxmt.tune import kbest_decoder


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearningConfig:
  """Everything the stage depends on.

  Attributes:
    learn: how to learn; its `batch_cells` count in training.
    search: how to decode, in training and on the tuning part.
  """

  learn: LearnConfig
  search: SearchStageConfig


def learn(
  config: LearningConfig,
  *,
  corpus: Corpus,
  grammar: Grammar,
  lm: LanguageModel,
  start: Tuned | None = None,
  tune_grammar: Grammar | None = None,
  tune_lm: LanguageModel | None = None,
  partial: Store | None = None,
) -> Tuned:
  """Learns weights; the tuning part chooses the epoch.

  Args:
    config: see `LearningConfig`.
    corpus: the text.
    grammar: the rules.
    lm: the language model.
    start: weights to start from.
    tune_grammar: the rules that the weights are for, if not `grammar`.
    tune_lm: the language model that they are for, if not `lm`.
    partial: stores forced forests and states, to resume from.
  """
  # The rules that pairs gave are known by their numbers in the whole table.
  model, spans = system.part_model(
    config.search,
    "train",
    corpus=corpus,
    grammar=grammar,
    lm=lm,
    weights={},
    all_rules=config.learn.leave_one_out != "none",
  )
  tune_model, tune_spans = system.part_model(
    config.search,
    "tune",
    corpus=corpus,
    grammar=grammar if tune_grammar is None else tune_grammar,
    lm=lm if tune_lm is None else tune_lm,
    weights={},
  )
  weights = kbest_decoder.start_weights(model.feature_names)
  if start is not None:
    weights |= start.weights
  threads = config.search.threads or kernels.available_threads()
  task = learning_run.Task(
    model=model,
    lines=corpus.train_source,
    references=[[line] for line in corpus.train_target],
    start=weights,
    beam=config.search.beam,
    pop=config.search.pop,
    backend=config.search.backend,
    development=Development(
      model=tune_model,
      lines=corpus.tune_source,
      references=corpus.tune_references,
      config=system.decode_config(config.search, tune_model, forest=True),
      spans=tune_spans,
    ),
    spans=spans,
    provenance=grammar.provenance,
  )
  store = MemoryStore() if partial is None else partial
  setting, reached = learning_run.prepare(
    task, config.learn, store=store, threads=threads
  )
  learning_run.say_reachability(reached)
  learned = learning_run.run(
    setting,
    config.learn,
    store=store,
    resources=Resources(runner=Runner(workers=threads), clock=progress.clock),
  )
  best = learning_run.best_epoch(learned.history)
  metrics: dict[str, Any] = {
    "rounds": len(learned.history),
    "best_score": best["bleu"] / 100,
    "nonzero": len(learned.names) - len(model.feature_names),
    "reached_percent": reached.overall["reached %"],
    "words_reached_percent": reached.overall["words reached %"],
    "valid_percent": round(100 * best["valid_share"], 2),
  }
  speeds = [one.get("sentences_per_second") for one in learned.history]
  if any(speeds):
    metrics["learning_sentences_per_second"] = max(filter(None, speeds))
  return Tuned(
    weights=learned.weights,
    templates=list(config.learn.templates),
    history=[
      {**one, "round": one["epoch"], "score": one["bleu"] / 100}
      for one in learned.history
    ],
    metrics=metrics,
  )
