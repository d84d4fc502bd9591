"""Tunes weights, with a decoder in the loop or on given k-best lists.

    python launch/tune.py --method=mert --grammar=G --lm=LM.arpa \
      --input=dev.src --references=dev.ref --workdir=runs/tune --output=W
    python launch/tune.py --method=mert --kbest=dev.kbest.gz \
      --references=dev.ref --weights=start.txt --output=W

In the loop: decode, merge the k-best lists, optimise, and again; weights are
judged by decoding, and the best-judged ones are written. A run that was killed
resumes when it is started again. The workdir gets history.jsonl
and report.html. Without --weights it starts from documented defaults.

On given lists: reads those of jaxmt/cdec, Moses, Joshua and Travatar (told
apart by their first line), or Moses' FEATURES_TXT and SCORES_TXT. Several lists
are merged. `--method=none` only reads, scores and exports.

Settings of a method are changed with --option, e.g. --option=restarts=50.
Sparse features are those of --templates and any with a colon in their name.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import functools
import json
import pathlib
import sys
import time
from collections.abc import Mapping

import numpy as np
from absl import flags

from jaxmt.decode import candidate_lists
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.experiment.flags import (
  list_flags,
  method_flags,
  model_flags,
  search_flags,
)
from jaxmt.features import moses_ini
from jaxmt.features import weights as weight_files
from jaxmt.metrics import named_metrics
from jaxmt.runtime import checkpoint
from jaxmt.text import files, references
from jaxmt.tune import domains, methods, pool
from jaxmt.tune.formats import kbest_files, mert_data

flags.adopt_module_key_flags(list_flags)
flags.adopt_module_key_flags(method_flags)
flags.adopt_module_key_flags(model_flags)
flags.adopt_module_key_flags(search_flags)
_KBEST = flags.DEFINE_list("kbest", [], "k-best lists, merged in this order")
_INPUT = flags.DEFINE_string("input", "", "source text to tune on")
_WORKDIR = flags.DEFINE_string("workdir", "", "where the loop keeps its state")
_RESUME = flags.DEFINE_bool(
  "resume", True, "continue a run of the same settings in the workdir"
)
_ROUNDS = flags.DEFINE_integer(
  "rounds", 10, "optimisations at most", lower_bound=0
)
_PATIENCE = flags.DEFINE_integer(
  "patience",
  0,
  "stop after N rounds without a better score; 0: never",
  lower_bound=0,
)
_MIN_CHANGE = flags.DEFINE_float(
  "min_change",
  1e-6,
  "stop when no weight moves by more, relatively",
  lower_bound=0.0,
)
_MERGE = flags.DEFINE_bool("merge", True, "keep candidates of earlier rounds")
_BATCH_PASSES = flags.DEFINE_integer(
  "batch_passes", 1, "online: passes of a learner over a batch", lower_bound=1
)
_FORMAT = flags.DEFINE_enum(
  "kbest_format",
  None,
  list(kbest_files.FORMATS),
  "told from the first line if unset",
)
_REFERENCES = flags.DEFINE_list("references", [], "reference files")
_FEATURES = flags.DEFINE_string("moses_features", None, "FEATURES_TXT to read")
_SCORES = flags.DEFINE_string("moses_scores", None, "SCORES_TXT to read")
_WEIGHTS = flags.DEFINE_string("weights", None, "weights to start from")
_OUTPUT = flags.DEFINE_string(
  "output",
  None,
  "where to write the weights; with --dialect=moses, NAME.ini is a moses.ini",
)
_HISTORY = flags.DEFINE_string("history", None, "JSON lines of the search")
_EXPORT_FEATURES = flags.DEFINE_string(
  "export_features", None, "write the pool as FEATURES_TXT"
)
_EXPORT_SCORES = flags.DEFINE_string(
  "export_scores", None, "write the pool as SCORES_TXT"
)


def _read_pool() -> CandidateLists:
  if _FEATURES.value or _SCORES.value:
    features, scores = program.given(_FEATURES), program.given(_SCORES)
    if method_flags.METRIC.value != "bleu":
      raise InputError("Moses' files hold BLEU only: use --metric=bleu")
    return mert_data.parse_pool(
      files.read_lines(features),
      files.read_lines(scores),
      feature_path=features,
      score_path=scores,
    )
  program.required(kbest=_KBEST.value, references=_REFERENCES.value)
  lines = references.read_references(_REFERENCES.value)
  parts = []
  for path in _KBEST.value:
    part = kbest_files.parse_kbest(
      files.read_bytes(path), path=path, kind=_FORMAT.value
    )
    if part.sentences > len(lines):
      raise InputError(
        f"sentence {part.sentences - 1}, but there are references of"
        f" {len(lines)} only",
        path=path,
      )
    parts.append(part)
  joined = candidate_lists.concatenate(parts)
  if list_flags.DOMAINS.value:
    joined = domains.split_lists(joined, list_flags.read_domains(len(lines)))
  candidates = pool.make_pool(joined, sentences=len(lines))
  if not len(candidates):
    raise InputError("no usable candidates", path=_KBEST.value[0])
  return pool.with_statistics(candidates, lines, [method_flags.METRIC.value])


def _warn(text: str) -> None:
  print(f"tune.py: {text}", file=sys.stderr)


def _export(candidates: CandidateLists) -> None:
  if _EXPORT_FEATURES.value:
    lines = mert_data.format_features(candidates)
    files.write_lines(_EXPORT_FEATURES.value, lines)
  if _EXPORT_SCORES.value:
    if method_flags.METRIC.value != "bleu":
      raise InputError("--export_scores needs --metric=bleu")
    files.write_lines(_EXPORT_SCORES.value, mert_data.format_scores(candidates))


def _tune(
  method: methods.Method, candidates: CandidateLists, start: np.ndarray
) -> tuple[np.ndarray, list[dict], float]:
  """The best of all runs: `(weights, history, score)`."""
  metric = pool.find_metric(method_flags.METRIC.value)
  better = 1.0 if metric.higher_is_better else -1.0
  runs = []
  for run in range(max(1, method_flags.RUNS.value)):
    seed = method_flags.SEED.value + run
    tuned, history = methods.run(method, candidates, start, seed)
    score = pool.pool_score(candidates, tuned, method_flags.METRIC.value)
    runs.append((tuned, history, score))
  if len(runs) > 1:
    scores = [score for _, _, score in runs]
    print(
      f"{len(runs)} runs: {method_flags.METRIC.value} {np.mean(scores):.5f}"
      f" +- {np.std(scores, ddof=1):.5f}"
    )
  return max(runs, key=lambda run: better * run[2])


def _written(
  tuned: np.ndarray, candidates: CandidateLists, weights: Mapping[str, float]
) -> dict[str, float]:
  """The given file's order, its unused weights kept, new features last."""
  width = candidates.dense.shape[1]
  result = candidate_lists.from_vector(tuned, candidates.names, keep=width)
  listed = set(candidates.names)
  merged = {name: result.get(name, 0.0) for name in weights if name in listed}
  merged |= {name: v for name, v in weights.items() if name not in listed}
  return merged | {name: v for name, v in result.items() if name not in weights}


def _tune_on_lists(
  method: methods.Method | None, weights: Mapping[str, float]
) -> None:
  """Reads lists, tunes once, writes."""
  output = "" if method is None else program.given(_OUTPUT)
  clock = time.perf_counter()
  candidates = _read_pool()
  read = time.perf_counter() - clock
  if candidates.dropped:
    _warn(
      f"left out {candidates.dropped} candidates with NaN or infinite features"
    )
  empty = int((candidates.offsets[1:] == candidates.offsets[:-1]).sum())
  if empty:
    _warn(f"{empty} sentences have no candidates and count for nothing")
  _warn_of_new(candidates.names, weights)
  _export(candidates)
  start = candidate_lists.to_vector(weights, candidates.names)
  before = pool.pool_score(candidates, start, method_flags.METRIC.value)
  print(
    f"pool: {candidates.sentences} sentences, {len(candidates)} candidates,"
    f" {len(candidates.names)} features, read in {read:.2f} s"
  )
  if method is None:
    print(f"{method_flags.METRIC.value} {before:.5f}")
    return
  clock = time.perf_counter()
  tuned, history, after = _tune(method, candidates, start)
  seconds = time.perf_counter() - clock
  if _HISTORY.value:
    files.write_lines(_HISTORY.value, [json.dumps(row) for row in history])
  _write(output, _written(tuned, candidates, weights), after)
  print(
    f"{method_flags.METHOD.value}: {method_flags.METRIC.value} {before:.5f}"
    f" -> {after:.5f}"
    f" in {seconds:.2f} s"
  )


def _warn_of_new(names, weights: Mapping[str, float]) -> None:
  new = [name for name in names if name not in weights]
  if new:
    _warn(f"{len(new)} features without a weight start at 0 ({new[0]}, ...)")


def _write(
  output: str,
  weights: Mapping[str, float],
  score: float,
  *,
  order: int | None = None,
) -> None:
  """Writes weights, as a moses.ini if the name says so.

  Args:
    output: where.
    weights: by name.
    score: what they reached.
    order: of the language model, where the decoder was in the loop.
  """
  name, metric = method_flags.METHOD.value, method_flags.METRIC.value
  comment = f"{name} {metric} {score:.5f} seed {method_flags.SEED.value}"
  if output.endswith(moses_ini.SUFFIX) and model_flags.DIALECT.value == "moses":
    files.write_lines(output, [f"# {comment}", *_ini(weights, order)])
    return
  files.write_lines(
    output, weight_files.format_weights(weights, comment=comment)
  )


def _ini(weights: Mapping[str, float], order: int | None) -> list[str]:
  """The given moses.ini with other weights, or one of the flags."""
  given = files.read_lines(_WEIGHTS.value) if _WEIGHTS.value else []
  if any(line.strip() == "[weight]" for line in given):
    return moses_ini.replace_weights(given, weights)
  if order is None:
    raise InputError("a moses.ini is written with --grammar, or from another")
  phrases = model_flags.KIND.value == "phrase"
  limit = model_flags.DISTORTION.value
  return moses_ini.make(
    weights,
    moses_ini.MosesFiles(
      table=model_flags.GRAMMAR.value,
      lm=model_flags.LM.value,
      order=order,
      reordering=model_flags.REORDERING.value,
      orientation=model_flags.ORIENTATION.value,
      span=0 if phrases else model_flags.SPAN.value,
      distortion=6 if limit is None else limit,
      stack=search_flags.BEAM.value,
      pop=search_flags.POP.value,
    ),
  )


def _about(weights: Mapping[str, float] | None) -> dict:
  """Everything the result of the loop depends on, files by their content."""
  inputs = [model_flags.LM.value, _INPUT.value, *_REFERENCES.value]
  for flag in (
    *(model_flags.TREES, model_flags.REORDERING),
    *(list_flags.DOMAINS, list_flags.EVENTS),
  ):
    inputs += [flag.value] if flag.value else []
  for path in model_flags.GRAMMAR.value.split(","):
    folder = pathlib.Path(path)
    inputs.append(str(folder / "manifest.json") if folder.is_dir() else path)
  settings = (
    *method_flags.SETTINGS,
    *list_flags.SETTINGS,
    *(_ROUNDS, _PATIENCE, _MIN_CHANGE, _MERGE, _BATCH_PASSES),
    *(search_flags.BEAM, search_flags.POP, search_flags.BACKEND),
    *(search_flags.TARGETS, model_flags.DIALECT, model_flags.SPAN),
    *(model_flags.KIND, model_flags.DISTORTION, model_flags.ORIENTATION),
    *(model_flags.MODELS, model_flags.BINARIZE),
  )
  return {
    "files": {path: checkpoint.file_digest(path) for path in inputs},
    "weights": weights,
    "settings": {flag.name: flag.value for flag in settings},
  }


def _loop_model(weights: Mapping[str, float] | None):
  """The model, source lines and starting weights."""
  from jaxmt.tune import kbest_decoder

  lines = files.read_lines(_INPUT.value)
  phrases = weight_files.DIALECTS[model_flags.DIALECT.value].phrases
  model = model_flags.load_model(
    # A name that no column has tells that every phrase counts.
    weights={phrases: 0.0} if phrases in (weights or ()) else {},
    targets=search_flags.TARGETS.value or 20,
    lines=lines,
  )
  if weights is None:
    start = kbest_decoder.start_weights(model.feature_names, model.units)
  else:
    _warn_of_new(model.feature_names, weights)
    new = [name for name in model.feature_names if name not in weights]
    start = {**weights, **dict.fromkeys(new, 0.0)}
  return model, lines, start


def _loop_config():
  from jaxmt.tune import loop

  return loop.LoopConfig(
    metric=method_flags.METRIC.value,
    rounds=_ROUNDS.value,
    merge=_MERGE.value,
    batch_size=method_flags.BATCH.value,
    batch_passes=_BATCH_PASSES.value,
    min_change=_MIN_CHANGE.value,
    patience=_PATIENCE.value,
  )


def _tune_in_loop(
  method: methods.Method, weights: Mapping[str, float] | None
) -> None:
  """Decodes, merges, optimises; resumable."""
  program.required(
    grammar=model_flags.GRAMMAR.value,
    lm=model_flags.LM.value,
    input=_INPUT.value,
    references=_REFERENCES.value,
    workdir=_WORKDIR.value,
    output=_OUTPUT.value,
  )
  from jaxmt.experiment import tuning_run
  from jaxmt.runtime import parallel
  from jaxmt.train.violation import stage_lists
  from jaxmt.tune import loop

  seed = method_flags.SEED.value
  list_flags.check(method, _INPUT.value)
  loop.check_stages(_loop_config(), list_flags.STAGES.value > 0)
  parallel.initialize(devices=search_flags.DEVICES.value)
  workdir = pathlib.Path(_WORKDIR.value)
  workdir.mkdir(parents=True, exist_ok=True)
  with checkpoint.lock(
    workdir / ".lock", wait=False, what=f"workdir {workdir}"
  ):
    states = tuning_run.open_workdir(
      str(workdir), about=_about(weights), resume_there=_RESUME.value
    )
    model, lines, start = _loop_model(weights)
    expected = references.read_references(
      _REFERENCES.value, expected=len(lines), expected_path=_INPUT.value
    )
    tuned = tuning_run.run(
      tuning_run.TuningSetting(
        decode=list_flags.make_decode(
          model, lines, method, expected, path=_INPUT.value, seed=seed
        ),
        references=expected,
        stages=stage_lists.of_lines(lines, list_flags.STAGES.value),
        method=method,
        start=start,
        loop=_loop_config(),
        seeds=tuple(range(seed, seed + max(1, method_flags.RUNS.value))),
      ),
      workdir=str(workdir),
      states=states,
      clock=time.perf_counter,
      say=functools.partial(print, flush=True),
    )
  best = tuned.score(tuned.best)
  _write(
    program.given(_OUTPUT), tuned.best.best_weights, best, order=model.lm.order
  )
  if len(tuned.scores) > 1:
    print(
      f"{len(tuned.scores)} runs: {method_flags.METRIC.value}"
      f" {np.mean(tuned.scores):.5f} +- {np.std(tuned.scores, ddof=1):.5f}"
    )
  first = tuned.states[0].history[0]["score"]
  print(
    f"{method_flags.METHOD.value}: {method_flags.METRIC.value} {first:.5f}"
    f" -> {best:.5f}"
  )


def main(argv: list[str]) -> None:
  """Tunes in the loop if there is a grammar, else on lists."""
  del argv
  program.check_paths(
    outputs=("output", "history", "export_features", "export_scores"),
    inputs=(
      "kbest",
      "grammar",
      "lm",
      "input",
      "trees",
      "references",
      "weights",
      "reordering",
      "events_text",
      "domains",
      "models",
      "moses_features",
      "moses_scores",
    ),
    folders=("workdir",),
  )
  named_metrics.find(method_flags.METRIC.value)  # names what is wrong with it
  in_loop = bool(model_flags.GRAMMAR.value)
  if in_loop and _KBEST.value:
    raise InputError("--grammar decodes, --kbest is given: choose one")
  if not in_loop:
    program.required(weights=_WEIGHTS.value)
    if method_flags.SPACE.value == methods.FOREST:
      raise InputError("--space=forest needs a decoder: give --grammar")
  method = (
    None
    if program.given(method_flags.METHOD) == "none"
    else method_flags.method()
  )
  weights = None
  if _WEIGHTS.value:
    weights = weight_files.parse_weights(
      files.read_lines(_WEIGHTS.value), path=_WEIGHTS.value
    )
  if in_loop:
    if method is None:
      raise InputError("--method=none has nothing to do in the loop")
    _tune_in_loop(method, weights)
  else:
    _tune_on_lists(method, weights or {})


if __name__ == "__main__":
  program.run(main)
