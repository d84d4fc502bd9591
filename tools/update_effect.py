"""What the updates of violation-fixing learning are, at a baseline's weights.

    python tools/update_effect.py --config=configs/violation.py:tatoeba-part \
      [--updates=max-violation,local] [--config.a.b=v] [--json]

The stages of an experiment up to the tuned baseline, then one pass over the
sentences to learn from for each update, with steps of 0: nothing is learned.
A row for each update tells

- updates: sentences with an update, of those learned from, and how many of
  them are right already as a whole;
- to reference %: updates whose d+ is of a reference;
- words: source words of the groups; longer: target words d+ has more than d-;
- violation, and the norm of the difference of dense features;
- agreement: norm of the mean difference by mean norm; 1 if all point one way.

A second table has the mean difference of each dense feature over all sentences,
beside its weight: times `learn.dense_rate`, it is what a step adds.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import json

import numpy as np
from absl import flags
from ml_collections import config_flags

from jaxmt.errors import InputError
from jaxmt.experiment import config as config_lib
from jaxmt.experiment import experiment, learning_run
from jaxmt.experiment.stages import (
  align,
  corpus,
  grammar,
  held_out,
  lm,
  system,
  tune,
)
from jaxmt.experiment.stages.held_out import HoldOutConfig
from jaxmt.report import text_tables
from jaxmt.runtime.runner import Runner
from jaxmt.text import kernels
from jaxmt.train.shard_store import MemoryStore
from jaxmt.train.training import Resources
from jaxmt.train.violation import (
  averaged_weights,
  learn_config,
  learner,
  minibatch,
)

_CONFIG = config_flags.DEFINE_config_file("config", None, "the experiment")
_UPDATES = flags.DEFINE_list("updates", list(learn_config.UPDATES), "which")
_JSON = flags.DEFINE_bool("json", False, "print both tables as JSON")


def main(argv: list[str]) -> None:
  """Prints a row for each update, and one for each feature."""
  del argv
  base = experiment.freeze(config_lib.of_flag(program.given(_CONFIG)))
  for update in _UPDATES.value:
    if update not in learn_config.UPDATES:
      raise InputError(
        f"--updates: '{update}' is none of {', '.join(learn_config.UPDATES)}"
      )
  if base.held_out and not base.own_rules:
    raise InputError("--config: 'held_out' without 'own_rules' is not covered")
  task, threads = _task(base)
  resources = Resources(runner=Runner(workers=threads))
  rows, features = [], {name: {} for name in task.model.feature_names}
  store = MemoryStore()
  for update in _UPDATES.value:
    config = dataclasses.replace(
      base.learn, update=update, leave_one_out="none", rate=0.0, dense_rate=1.0
    )
    setting, _ = learning_run.prepare(
      task, config, store=store, threads=threads
    )
    row, means = _pass(setting, config, resources)
    rows.append({"update": update, **row})
    for name, weight, mean in zip(
      task.model.feature_names,
      [task.start.get(name, 0.0) for name in task.model.feature_names],
      means,
      strict=True,
    ):
      features[name] |= {"weight": round(weight, 4), update: round(mean, 3)}
  if _JSON.value:
    print(json.dumps({"updates": rows, "features": features}))
    return
  shown = [{"feature": name, **row} for name, row in features.items()]
  print(text_tables.text(rows), text_tables.text(shown), sep="\n\n")


def _task(base: experiment.ExperimentConfig):
  """Returns what to learn from, with the tuned weights, and threads."""
  text = _corpus(base)
  links = align.align(base.align, corpus=text)
  rules = grammar.extract(base.grammar, corpus=text, links=links)
  model = lm.language_model(base.lm, corpus=text)
  tuned_on, pairs = text, text
  if base.judged:
    others = HoldOutConfig(every=base.judged, held=False)
    tuned_on = held_out.tuning_sentences(others, corpus=text)
  if base.held_out:
    pairs = held_out.pairs(
      HoldOutConfig(every=base.held_out, held=True), corpus=text
    )
  tuned = tune.tune(
    tune.TuningConfig(tune=base.tune, search=base.search, seed=base.seed),
    corpus=tuned_on,
    grammar=rules,
    lm=model,
  )
  made, spans = system.part_model(
    base.search,
    "train",
    corpus=pairs,
    grammar=rules,
    lm=model,
    weights={},
    all_rules=False,
  )
  task = learning_run.Task(
    model=made,
    lines=pairs.train_source,
    references=[[line] for line in pairs.train_target],
    start=tuned.weights,
    beam=base.search.beam,
    pop=base.search.pop,
    backend=base.search.backend,
    spans=spans,
  )
  return task, base.search.threads or kernels.available_threads()


def _corpus(base: experiment.ExperimentConfig) -> corpus.Corpus:
  """Returns the text that the config describes."""
  if base.data.kind == "synthetic":
    return corpus.embedded(base.data.synthetic)
  return corpus.from_files(
    base.data.files, **corpus.input_paths(base.data.files)
  )


def _pass(
  setting: learner.LearningSetting,
  config: learn_config.LearnConfig,
  resources: Resources,
) -> tuple[dict[str, str], list[float]]:
  """Returns the row of an update and the mean dense difference."""
  names = setting.model.feature_names
  rows = learner.usable_rows(setting, config)
  weights = averaged_weights.begin(setting.start, names)
  work = learner.work_of(setting, config, weights.current)
  found = learner.contributions(setting, config, rows, work, resources, None)
  dense, whole = minibatch.total(found, len(rows))
  updated = whole.stats[:, minibatch.UPDATED] > 0
  count = max(int(updated.sum()), 1)
  of = lambda column: float(whole.stats[updated, column].sum() / count)
  # Differences come divided by the number of sentences.
  norms = len(rows) * np.linalg.norm(whole.dense[updated], axis=1).sum()
  together = len(rows) * np.linalg.norm(dense)
  right = updated & (whole.stats[:, minibatch.RIGHT] > 0)
  row = {
    "updates": f"{updated.sum()} of {len(rows)}",
    "right": str(int(right.sum())),
    "valid %": f"{100 * of(minibatch.VALID):.1f}",
    "to reference %": f"{100 * of(minibatch.TOWARDS):.1f}",
    "words": f"{of(minibatch.SPAN):.1f}",
    "longer": f"{of(minibatch.WORDS):.2f}",
    "violation": f"{of(minibatch.VIOLATION):.3f}",
    "norm": f"{norms / count:.2f}",
    "agreement": f"{together / max(norms, 1e-9):.2f}",
  }
  return row, dense.tolist()


if __name__ == "__main__":
  program.run(main)
