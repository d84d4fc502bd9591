r"""Learns sparse and dense weights on a bitext by fixing violations.

    python launch/learn.py --update=max-violation --grammar=G --lm=LM.arpa \
      --weights=W --source=train.src --target=train.trg \
      --dev_source=dev.src --dev_references=dev.ref --templates=edges:simple \
      --epochs=10 --workdir=runs/learn --output=W2

Forced decoding finds all derivations of each target line; those it cannot
derive are counted, said and left out. Then the sentences are decoded again and
again, and where the search prefers a wrong partial derivation to the best right
one the weights are moved (Zhao, Huang, Mi & Ittycheriah 2014). After each epoch
the weight of the word feature is searched so that the output on the development
set has --length_ratio words per reference word, and that is decoded and scored.
The averaged weights of the best epoch are written. Without a development set
those of the last epoch are, and lengths stay as learned.

Rules and a language model that were estimated from the same lines know them
better than any new text. --grammar and --lm may come from other lines instead;
--dev_grammar and --dev_lm then name those that the weights are meant for.

A run that was killed continues where it stopped when it is started again. The
workdir gets history.jsonl, reachability.json and report.html. Several targets,
--target=T1,T2, are references of equal standing.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import json
import pathlib

from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment.flags import model_flags, search_flags
from jaxmt.features import weights as weight_files
from jaxmt.runtime import checkpoint, progress
from jaxmt.runtime import runner as runner_lib
from jaxmt.text import files, kernels, references
from jaxmt.train.violation import learn_config as learn_config
from jaxmt.train.violation.learn_config import LearnConfig

_DEFAULT = LearnConfig()

flags.adopt_module_key_flags(model_flags)
flags.adopt_module_key_flags(search_flags)
_SOURCE = flags.DEFINE_string("source", "", "source side of the bitext")
_TARGET = flags.DEFINE_list(
  "target", [], "target side, line by line; several files are references"
)
_DEV_SOURCE = flags.DEFINE_string("dev_source", "", "development source text")
_DEV_REFERENCES = flags.DEFINE_list(
  "dev_references", [], "reference files of the development text"
)
_DEV_TREES = flags.DEFINE_string(
  "dev_trees", "", "trees of the development text"
)
_DEV_GRAMMAR = flags.DEFINE_string(
  "dev_grammar", "", "rules for the development text, if not --grammar"
)
_DEV_LM = flags.DEFINE_string(
  "dev_lm", "", "language model for the development text, if not --lm"
)
_WEIGHTS = flags.DEFINE_string(
  "weights", "", "weights to start from; documented defaults if not given"
)
_WORKDIR = flags.DEFINE_string("workdir", "", "where the run keeps its state")
_OUTPUT = flags.DEFINE_string("output", "", "where to write the weights")
_RESUME = flags.DEFINE_bool(
  "resume", True, "continue a run of the same settings in the workdir"
)
_JSON = flags.DEFINE_bool("json", False, "print the result as JSON")
_UPDATE = flags.DEFINE_string(
  "update", _DEFAULT.update, f"one of: {', '.join(learn_config.UPDATES)}"
)
_ONLY_WRONG = flags.DEFINE_bool(
  "only_wrong",
  _DEFAULT.only_wrong,
  "leave sentences as they are whose best translation is a reference",
)
_MARGIN = flags.DEFINE_float(
  "margin",
  _DEFAULT.margin,
  "lead in score that good derivations must have; smaller ones are violations",
  lower_bound=0.0,
)
_TEMPLATES = flags.DEFINE_list(
  "templates",
  list(_DEFAULT.templates),
  "sparse features: edges:simple, edges:full, edges:fF+lL, rule, shape, pairs,"
  " count; empty for none",
)
_EPOCHS = flags.DEFINE_integer(
  "epochs", _DEFAULT.epochs, "passes at most", lower_bound=0
)
_MINIBATCH = flags.DEFINE_integer(
  "minibatch",
  _DEFAULT.minibatch,
  "sentences whose updates are averaged",
  lower_bound=0,
)
_RATE = flags.DEFINE_float(
  "rate", _DEFAULT.rate, "step of sparse weights", lower_bound=0.0
)
_DENSE_RATE = flags.DEFINE_float(
  "dense_rate", _DEFAULT.dense_rate, "step of dense weights", lower_bound=0.0
)
_DECAY = flags.DEFINE_float(
  "decay",
  _DEFAULT.decay,
  "steps of epoch e are divided by 1 + decay * e",
  lower_bound=0.0,
)
_LEAVE = flags.DEFINE_string(
  "leave_one_out",
  _DEFAULT.leave_one_out,
  "singletons: do without the rules that only the sentence itself has; the"
  " grammar must be extracted from these lines, with --provenance. Or none",
)
_RATIO = flags.DEFINE_float(
  "length_ratio",
  _DEFAULT.length_ratio,
  "of the development set",
  lower_bound=0.0,
)
_LENGTH = flags.DEFINE_string(
  "length_search",
  _DEFAULT.length_search,
  "forest: search the word weight by re-scoring forests; decode: by decoding"
  " again and again; none: leave it as learned",
)
_SHARES = flags.DEFINE_list(
  "shares",
  [f"{share:g}" for share in _DEFAULT.shares],
  "shares of the way from --weights to what was learned that are judged after"
  " each epoch; the best counts",
)
_PATIENCE = flags.DEFINE_integer(
  "patience",
  _DEFAULT.patience,
  "stop after N epochs without a better score; 0: never",
  lower_bound=0,
)
_LONGEST = flags.DEFINE_integer(
  "max_words",
  _DEFAULT.max_words,
  "longest sentence to learn from",
  lower_bound=0,
)
_CELLS = flags.DEFINE_integer(
  "batch_cells",
  _DEFAULT.batch_cells,
  "chart cells searched together",
  lower_bound=0,
)
_CHECKPOINT = flags.DEFINE_integer(
  "checkpoint",
  _DEFAULT.checkpoint,
  "minibatches between saved states",
  lower_bound=0,
)
_SEED = flags.DEFINE_integer(
  "seed",
  _DEFAULT.seed,
  "of the sentences' order",
  lower_bound=0,
  upper_bound=2**32 - 1,
)
_RUNNER = flags.DEFINE_enum(
  "runner", "threads", runner_lib.KINDS, "what decodes packs in parallel"
)
_RAY = flags.DEFINE_string(
  "ray_address", None, "address of a running Ray cluster"
)
_COORDINATOR = flags.DEFINE_string(
  "coordinator", "", "host:port of process 0 of a run of several processes"
)
_PROCESSES = flags.DEFINE_integer(
  "num_processes", 1, "processes of that run", lower_bound=1
)
_PROCESS = flags.DEFINE_integer(
  "process_id", 0, "number of this process", lower_bound=0
)


def _numbers(words: list[str]) -> tuple[float, ...]:
  try:
    return tuple(float(word) for word in words)
  except ValueError as error:
    raise InputError(f"--shares: {error}") from error


def _config() -> LearnConfig:
  config = LearnConfig(
    update=_UPDATE.value,
    only_wrong=_ONLY_WRONG.value,
    margin=_MARGIN.value,
    templates=tuple(name for name in _TEMPLATES.value if name),
    epochs=_EPOCHS.value,
    minibatch=_MINIBATCH.value,
    rate=_RATE.value,
    dense_rate=_DENSE_RATE.value,
    decay=_DECAY.value,
    leave_one_out=_LEAVE.value,
    length_ratio=_RATIO.value,
    length_search=_LENGTH.value,
    shares=_numbers(_SHARES.value),
    patience=_PATIENCE.value,
    max_words=_LONGEST.value,
    batch_cells=_CELLS.value,
    checkpoint=_CHECKPOINT.value,
    seed=_SEED.value,
  )
  try:
    learn_config.check(config)
  except ValueError as error:
    raise InputError(f"--{error}") from error
  return config


def _about(config: LearnConfig, weights: dict[str, float] | None) -> dict:
  """Everything the result depends on, files by their content."""
  inputs = [model_flags.LM.value, _SOURCE.value, *_TARGET.value]
  inputs += [_DEV_SOURCE.value, model_flags.TREES.value, _DEV_TREES.value]
  inputs += [*_DEV_REFERENCES.value, _DEV_LM.value]
  grammars = [
    *model_flags.GRAMMAR.value.split(","),
    *_DEV_GRAMMAR.value.split(","),
    model_flags.REORDERING.value,
  ]
  for path in filter(None, grammars):
    folder = pathlib.Path(path)
    inputs.append(str(folder / "manifest.json") if folder.is_dir() else path)
  settings = (
    *(model_flags.DIALECT, model_flags.SPAN, model_flags.BINARIZE),
    *(model_flags.KIND, model_flags.DISTORTION, model_flags.ORIENTATION),
    *(search_flags.BEAM, search_flags.POP, search_flags.TARGETS),
    search_flags.BACKEND,
  )
  plain = {
    name: list(value) if isinstance(value, tuple) else value
    for name, value in vars(config).items()
  }
  return {
    "files": {path: checkpoint.file_digest(path) for path in inputs if path},
    "weights": weights,
    "config": plain,
    "settings": {flag.name: flag.value for flag in settings},
  }


def _model(
  lines: list[str] | None,
  weights: dict[str, float] | None,
  *,
  grammar: str = "",
  lm: str = "",
):
  """The model, without the rules that the lines cannot use."""
  phrases = weight_files.DIALECTS[model_flags.DIALECT.value].phrases
  return model_flags.load_model(
    lm or None,
    grammar=grammar,
    # A name that no column has tells that every phrase counts.
    weights={phrases: 0.0} if phrases in (weights or ()) else {},
    targets=search_flags.TARGETS.value or 20,
    lines=lines,
  )


def _spans(trees: str, model, lines: list[str], path: str):
  from jaxmt.decode import loading

  if not trees:
    return None
  return loading.read_spans(
    trees, model, lines, lines_path=path, binarize=model_flags.BINARIZE.value
  )


def _development(weights):
  """The development set, or None."""
  if not _DEV_SOURCE.value:
    return None
  from jaxmt.experiment.stages import system
  from jaxmt.train.violation.development import Development

  lines = files.read_lines(_DEV_SOURCE.value)
  model = _model(lines, weights, grammar=_DEV_GRAMMAR.value, lm=_DEV_LM.value)
  settings = system.SearchStageConfig(
    beam=search_flags.BEAM.value,
    pop=search_flags.POP.value,
    backend=search_flags.BACKEND.value,
    threads=model_flags.THREADS.value,
  )
  return Development(
    model=model,
    lines=lines,
    references=references.read_references(
      _DEV_REFERENCES.value,
      expected=len(lines),
      expected_path=_DEV_SOURCE.value,
    ),
    config=system.decode_config(settings, model, forest=True),
    spans=_spans(_DEV_TREES.value, model, lines, _DEV_SOURCE.value),
  )


def _task(config: LearnConfig, weights: dict[str, float] | None):
  """Reads everything."""
  from jaxmt.experiment import learning_run
  from jaxmt.grammar import native
  from jaxmt.tune import kbest_decoder

  lines = files.read_lines(_SOURCE.value)
  targets = references.read_references(
    _TARGET.value, expected=len(lines), expected_path=_SOURCE.value
  )
  origin = None
  if config.leave_one_out != "none":
    if model_flags.DIALECT.value != "jaxmt":
      raise InputError("--leave_one_out needs a jaxmt grammar with provenance")
    origin = native.read_provenance(model_flags.GRAMMAR.value, verify=False)
    if len(origin) != len(lines):
      raise InputError(
        f"was extracted from {len(origin)} lines, --source has {len(lines)}:"
        " --leave_one_out needs the same",
        path=model_flags.GRAMMAR.value,
      )
  # Provenance numbers all rules, so none is filtered out.
  model = _model(None if origin is not None else lines, weights)
  start = kbest_decoder.start_weights(model.feature_names, model.units)
  if weights is not None:
    start = dict.fromkeys(start, 0.0) | weights
  return learning_run.Task(
    model=model,
    lines=lines,
    references=targets,
    start=start,
    beam=search_flags.BEAM.value,
    pop=search_flags.POP.value,
    backend=search_flags.BACKEND.value,
    development=_development(weights),
    spans=_spans(model_flags.TREES.value, model, lines, _SOURCE.value),
    provenance=origin,
  )


def _resources(workers: int):
  """Starts JAX and returns where to run."""
  import jax

  from jaxmt.runtime import parallel
  from jaxmt.train.training import Resources

  several = search_flags.DEVICES.value > 1
  mesh = parallel.make_mesh(search_flags.DEVICES.value) if several else None
  return Resources(
    runner=runner_lib.Runner(
      kind="serial" if mesh is not None else _RUNNER.value,
      workers=workers,
      address=_RAY.value,
    ),
    mesh=mesh,
    processes=jax.process_count(),
    process=jax.process_index(),
    clock=progress.clock,
  )


def _learn(config: LearnConfig, weights: dict[str, float] | None) -> None:
  import numpy as np

  from jaxmt.experiment import learning_run, tuning_run
  from jaxmt.runtime import parallel

  parallel.initialize(
    devices=search_flags.DEVICES.value,
    coordinator=_COORDINATOR.value,
    num_processes=_PROCESSES.value,
    process_id=_PROCESS.value,
  )
  workers = model_flags.THREADS.value or kernels.available_threads()
  resources = _resources(workers)
  wait = lambda: parallel.sum_over_processes(np.zeros(1, np.int64))
  workdir = pathlib.Path(_WORKDIR.value)
  if resources.process:
    wait()  # the first process opens the workdir and forces
    store = checkpoint.Partial(workdir / "state")
    task = _task(config, weights)
    setting, _ = learning_run.prepare(
      task, config, store=store, threads=workers
    )
    learning_run.run(
      setting, config, store=store, resources=resources, say=lambda text: None
    )
    return
  workdir.mkdir(parents=True, exist_ok=True)
  with checkpoint.lock(
    workdir / ".lock", wait=False, what=f"workdir {workdir}"
  ):
    store = tuning_run.open_workdir(
      str(workdir), about=_about(config, weights), resume_there=_RESUME.value
    )
    task = _task(config, weights)
    setting, reached = learning_run.prepare(
      task, config, store=store, threads=workers
    )
    learning_run.say_reachability(reached)
    if resources.processes > 1:
      wait()
    learned = learning_run.run(
      setting, config, store=store, resources=resources
    )
    learning_run.write(str(workdir), config, learned, reached)
  best = learning_run.best_epoch(learned.history)
  comment = f"{config.update} epoch {best['epoch']} bleu {best.get('bleu')}"
  files.write_lines(
    _OUTPUT.value,
    weight_files.format_pairs(learned.names, learned.values, comment=comment),
  )
  sparse = len(learned.names) - len(task.model.feature_names)
  if _JSON.value:
    result = {
      "best": best,
      "history": learned.history,
      "nonzero": sparse,
      "reachability": reached.overall,
    }
    print(json.dumps(result, ensure_ascii=False))
    return
  shown = f", dev BLEU {best['bleu']:.2f}" if "bleu" in best else ""
  print(
    f"{config.update}: epoch {best['epoch']}{shown}, {sparse:,} sparse features"
    f" with a weight, {best['valid_share']:.1%} of updates valid"
  )


def main(argv: list[str]) -> None:
  """Learns."""
  del argv
  program.check_paths(
    outputs=("output",),
    inputs=(
      *("grammar", "lm", "weights", "reordering", "source", "target", "trees"),
      *("dev_source", "dev_references", "dev_trees", "dev_grammar", "dev_lm"),
      "models",
    ),
    folders=("workdir",),
  )
  program.required(
    grammar=model_flags.GRAMMAR.value,
    lm=model_flags.LM.value,
    source=_SOURCE.value,
    target=_TARGET.value,
    workdir=_WORKDIR.value,
    output=_OUTPUT.value,
  )
  if bool(_DEV_SOURCE.value) != bool(_DEV_REFERENCES.value):
    raise InputError("--dev_source and --dev_references go together")
  if (_DEV_GRAMMAR.value or _DEV_LM.value) and not _DEV_SOURCE.value:
    raise InputError("--dev_grammar and --dev_lm need --dev_source")
  if _COORDINATOR.value and _RUNNER.value == "ray":
    raise InputError("--coordinator cannot be combined with --runner=ray")
  if search_flags.POP.value < search_flags.BEAM.value:
    raise InputError("--pop must be at least --beam")
  config = _config()
  weights = None
  if _WEIGHTS.value:
    weights = weight_files.parse_weights(
      files.read_lines(_WEIGHTS.value), path=_WEIGHTS.value
    )
  workers = model_flags.THREADS.value or kernels.available_threads()
  # Ray starts programs. That is unsafe once JAX has started its threads.
  with runner_lib.session(
    runner_lib.Runner(kind=_RUNNER.value, workers=workers, address=_RAY.value)
  ):
    _learn(config, weights)


if __name__ == "__main__":
  program.run(main)
