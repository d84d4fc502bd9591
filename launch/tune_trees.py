r"""Learns the weights of trees over phrases, the lattice parser in the loop.

    python launch/tune_trees.py --method=ramp3 --grammar=G --lm=LM.arpa \
        --weights=W --input=S --references=R1,.. [--source_trees=CONLLU] \
        [--dependencies=T --clusters=C] --workdir=D --output=W2

Coarse-to-fine learning (Gimpel 2012, algorithm 4): W are the weights of the
phrase-based search, e.g. of tune.py; its lattices are made once and fixed. Then
k-best lists with distinct words are parsed from them with the present weights,
merged with those before, and any method of tune.py learns from them: weights of
arcs and a copy of the phrase-based weights of their own. W2 is for
translate_trees.py --dependency_weights. Killed and started again, it continues
with the last finished round.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import functools
import pathlib
import time

from absl import flags

from jaxmt.decode.dependency import tree_translator
from jaxmt.errors import InputError
from jaxmt.experiment import tuning_run
from jaxmt.experiment.flags import tree_flags
from jaxmt.experiment.stages import tune as tune_stage
from jaxmt.features import weights as weight_files
from jaxmt.runtime import checkpoint
from jaxmt.text import files, references
from jaxmt.tune import loop

flags.adopt_module_key_flags(tree_flags)
_INPUT = flags.DEFINE_string("input", "", "source text to tune on")
_REFERENCES = flags.DEFINE_list("references", [], "reference files")
_WORKDIR = flags.DEFINE_string("workdir", "", "where the loop keeps its state")
_OUTPUT = flags.DEFINE_string("output", "", "where to write the weights")
_METHOD = flags.DEFINE_string("method", "ramp3", "as in tune.py")
_OPTIONS = flags.DEFINE_multi_string("option", [], "name=value, repeatable")
_METRIC = flags.DEFINE_string("metric", "bleu", "what to optimise")
_NBEST = flags.DEFINE_integer(
  "nbest", 150, "candidates of a list", lower_bound=0
)
_ROUNDS = flags.DEFINE_integer("rounds", 10, "optimisations", lower_bound=0)
_PATIENCE = flags.DEFINE_integer(
  "patience",
  0,
  "stop after N rounds without a better score; 0: never",
  lower_bound=0,
)
_HELD_OUT = flags.DEFINE_integer(
  "held_out",
  0,
  "every N-th sentence only judges the weights; 0: all do both",
  lower_bound=0,
)
_SEED = flags.DEFINE_integer(
  "seed", 0, "of everything random", lower_bound=0, upper_bound=2**32 - 1
)
_RESUME = flags.DEFINE_bool("resume", True, "continue an unfinished run")


def main(argv: list[str]) -> None:
  """Learns weights."""
  del argv
  program.check_paths(
    outputs=("output",),
    inputs=(
      *("grammar", "lm", "weights", "reordering", "input", "references"),
      *("source_trees", "dependencies", "clusters", "dependency_weights"),
    ),
    folders=("workdir",),
  )
  program.required(
    grammar=tree_flags.GRAMMAR.value,
    lm=tree_flags.LM.value,
    weights=tree_flags.WEIGHTS.value,
    input=_INPUT.value,
    references=_REFERENCES.value,
    workdir=_WORKDIR.value,
    output=_OUTPUT.value,
  )
  for flag, least in ((_NBEST, 1), (_ROUNDS, 0)):
    if flag.value < least:
      raise InputError(f"--{flag.name} must be at least {least}")
  method = tune_stage.make_method(
    _METHOD.value, _OPTIONS.value, metric=_METRIC.value
  )
  folder = pathlib.Path(_WORKDIR.value)
  files.make_folder(_WORKDIR.value)
  with checkpoint.lock(folder / ".lock", wait=False, what=f"workdir {folder}"):
    states = tuning_run.open_workdir(
      _WORKDIR.value, about=_about(), resume_there=_RESUME.value
    )
    tuned = tuning_run.run(
      _setting(method),
      workdir=_WORKDIR.value,
      states=states,
      clock=time.perf_counter,
      say=functools.partial(print, flush=True),
    )
  best = tuned.score(tuned.best)
  comment = f"{_METHOD.value} {_METRIC.value} {best:.5f} seed {_SEED.value}"
  files.write_lines(
    _OUTPUT.value,
    weight_files.format_weights(tuned.best.best_weights, comment=comment),
  )
  first = tuned.states[0].history[0]["score"]
  print(f"{_METHOD.value}: {_METRIC.value} {first:.5f} -> {best:.5f}")


def _setting(method) -> tuning_run.TuningSetting:
  """Lattices, starting weights, and how to go on from them."""
  lines = files.read_lines(_INPUT.value)
  expected = references.read_references(
    _REFERENCES.value, expected=len(lines), expected_path=_INPUT.value
  )
  task = tree_flags.load_task(lines)
  given = tree_flags.read_given_weights(task.names)
  return tuning_run.TuningSetting(
    decode=tree_translator.make_decode(
      task, size=_NBEST.value, threads=tree_flags.THREADS.value
    ),
    references=expected,
    method=method,
    start=tree_translator.start_weights(task, given),
    loop=loop.LoopConfig(
      metric=_METRIC.value,
      rounds=_ROUNDS.value,
      patience=_PATIENCE.value,
      held_out=_HELD_OUT.value,
    ),
    seeds=(_SEED.value,),
  )


def _about() -> dict:
  """Everything the result depends on, files by their content."""
  inputs = [_INPUT.value, *_REFERENCES.value]
  for flag in (
    *(tree_flags.GRAMMAR, tree_flags.LM, tree_flags.WEIGHTS),
    *(tree_flags.REORDERING, tree_flags.SOURCE_TREES, tree_flags.DEPENDENCIES),
    *(tree_flags.CLUSTERS, tree_flags.DEPENDENCY_WEIGHTS),
  ):
    path = flag.value
    if path and pathlib.Path(path).is_dir():
      path = f"{path}/manifest.json"
    inputs += [path] if path else []
  settings = (
    *(_METHOD, _OPTIONS, _METRIC, _NBEST, _ROUNDS, _PATIENCE, _HELD_OUT, _SEED),
    *(tree_flags.DIALECT, tree_flags.DISTORTION, tree_flags.BEAM),
    *(tree_flags.EDGES, tree_flags.SOURCE_LIMIT, tree_flags.TARGET_LIMIT),
    *(tree_flags.GROUPS, tree_flags.UNIT),
  )
  return {
    "files": {path: checkpoint.file_digest(path) for path in inputs},
    "settings": {flag.name: flag.value for flag in settings},
  }


if __name__ == "__main__":
  program.run(main)
