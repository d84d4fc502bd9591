"""Tunes weights on a k-best list.

    python launch/tune.py --method=mert --kbest=dev.kbest.gz \
      --references=dev.ref --weights=start.txt --output=tuned.txt

Reads k-best lists of jaxmt/cdec, Moses, Joshua and Travatar (told apart by
their first line), or Moses' FEATURES_TXT and SCORES_TXT. Several lists are
merged. `--method=none` only reads, scores and exports. Settings of a method are
changed with --option, e.g. --option=restarts=50 --option=variant=best.
"""

import functools
import json
import sys
import time
from collections.abc import Mapping

import numpy as np
from absl import flags

from jaxmt import program
from jaxmt.data import files, references
from jaxmt.errors import InputError
from jaxmt.features import weights as weight_files
from jaxmt.metrics import registry
from jaxmt.tune import kbest, mert_data, methods, mixing, pool, scoring

_METHOD = flags.DEFINE_string(
  "method", None, f"none, or one of: {', '.join(methods.names())}"
)
_KBEST = flags.DEFINE_list("kbest", [], "k-best lists, merged in this order")
_FORMAT = flags.DEFINE_enum(
  "kbest_format", None, list(kbest.FORMATS), "told from the first line if unset"
)
_REFERENCES = flags.DEFINE_list("references", [], "reference files")
_FEATURES = flags.DEFINE_string("moses_features", None, "FEATURES_TXT to read")
_SCORES = flags.DEFINE_string("moses_scores", None, "SCORES_TXT to read")
_WEIGHTS = flags.DEFINE_string("weights", None, "weights to start from")
_OUTPUT = flags.DEFINE_string("output", None, "where to write the weights")
_METRIC = flags.DEFINE_string("metric", "bleu", "what to optimise")
_SEED = flags.DEFINE_integer("seed", 0, "of everything random")
_OPTIONS = flags.DEFINE_multi_string("option", [], "name=value, repeatable")
_DEVICES = flags.DEFINE_integer(
  "devices", 1, "that gradient methods spread the sentences over"
)
_RUNS = flags.DEFINE_integer(
  "runs", 1, "tune with so many seeds from --seed on; report mean and deviation"
)
_SHARDS = flags.DEFINE_integer(
  "shards", 1, "tune on so many parts of the sentences and mix their weights"
)
_MIX_ROUNDS = flags.DEFINE_integer("mix_rounds", 1, "how often to mix")
_MIX_KEEP = flags.DEFINE_integer(
  "mix_keep", 0, "sparse features kept when mixing; 0 keeps all"
)
_HISTORY = flags.DEFINE_string("history", None, "JSON lines of the search")
_EXPORT_FEATURES = flags.DEFINE_string(
  "export_features", None, "write the pool as FEATURES_TXT"
)
_EXPORT_SCORES = flags.DEFINE_string(
  "export_scores", None, "write the pool as SCORES_TXT"
)


def _given(flag: flags.FlagHolder[str | None]) -> str:
  """The value of a flag that must be given."""
  if not flag.value:
    raise InputError(f"--{flag.name} is required")
  return flag.value


def _read_pool() -> pool.KBestPool:
  if _FEATURES.value or _SCORES.value:
    features, scores = _given(_FEATURES), _given(_SCORES)
    if _METRIC.value != "bleu":
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
    part = kbest.parse_kbest(
      files.read_bytes(path), path=path, kind=_FORMAT.value
    )
    if len(part) and part.sentence.max() >= len(lines):
      raise InputError(
        f"sentence {part.sentence.max()}, but there are references of"
        f" {len(lines)} only",
        path=path,
      )
    parts.append(part)
  found = pool.make_pool(kbest.concatenate(parts), sentences=len(lines))
  if not len(found):
    raise InputError("no usable candidates", path=_KBEST.value[0])
  return pool.with_statistics(found, lines, [_METRIC.value])


def _warn(text: str) -> None:
  print(f"tune.py: {text}", file=sys.stderr)


def _export(found: pool.KBestPool) -> None:
  if _EXPORT_FEATURES.value:
    lines = mert_data.format_features(found)
    files.write_lines(_EXPORT_FEATURES.value, lines)
  if _EXPORT_SCORES.value:
    if _METRIC.value != "bleu":
      raise InputError("--export_scores needs --metric=bleu")
    files.write_lines(_EXPORT_SCORES.value, mert_data.format_scores(found))


def _method() -> methods.Method:
  changes = {"metric": _METRIC.value}
  for option in _OPTIONS.value:
    name, equals, value = option.partition("=")
    if not equals:
      raise InputError(f"--option={option}: expected name=value")
    changes[name] = value
  method = methods.find(_given(_METHOD))
  if hasattr(method.config, "devices"):
    # Only gradient methods use JAX; the others start without it.
    from jaxmt import parallel

    if _DEVICES.value < 1:
      raise InputError(f"--devices={_DEVICES.value}: at least 1")
    parallel.initialize(devices=_DEVICES.value)
    changes["devices"] = str(_DEVICES.value)
  return _mixed(methods.configure(method, changes))


def _mixed(method: methods.Method) -> methods.Method:
  """The method on shards, if there are several."""
  if _SHARDS.value <= 1:
    return method
  config = mixing.MixingConfig(
    inner=method.config,
    metric=_METRIC.value,
    shards=_SHARDS.value,
    rounds=_MIX_ROUNDS.value,
    keep=_MIX_KEEP.value,
  )
  optimise = functools.partial(mixing.optimise, method.optimise)
  return methods.Method(optimise=optimise, config=config)


def _tune(
  method: methods.Method, found: pool.KBestPool, start: np.ndarray
) -> tuple[np.ndarray, list[dict], float]:
  """The best of all runs: `(weights, history, score)`."""
  better = 1.0 if pool.find_metric(_METRIC.value).higher_is_better else -1.0
  runs = []
  for run in range(max(1, _RUNS.value)):
    seed = _SEED.value + run
    tuned, history = method.optimise(found, start, method.config, seed)
    score = scoring.pool_score(found, tuned, _METRIC.value)
    runs.append((tuned, history, score))
  if len(runs) > 1:
    scores = [score for _, _, score in runs]
    print(
      f"{len(runs)} runs: {_METRIC.value} {np.mean(scores):.5f}"
      f" +- {np.std(scores, ddof=1):.5f}"
    )
  return max(runs, key=lambda run: better * run[2])


def _written(
  tuned: np.ndarray, found: pool.KBestPool, given: Mapping[str, float]
) -> dict[str, float]:
  """The given file's order, its unused weights kept, new features last."""
  width = found.dense.shape[1]
  result = weight_files.from_vector(tuned, found.names, keep=width)
  there = set(found.names)
  merged = {name: result.get(name, 0.0) for name in given if name in there}
  merged |= {name: v for name, v in given.items() if name not in there}
  return merged | {name: v for name, v in result.items() if name not in given}


def main(argv: list[str]) -> None:
  """Reads, tunes, writes."""
  del argv
  weights_path = _given(_WEIGHTS)
  if _METRIC.value not in registry.METRICS:
    known = ", ".join(sorted(registry.METRICS))
    raise InputError(f"no metric '{_METRIC.value}'; there are: {known}")
  method = None if _given(_METHOD) == "none" else _method()
  output = "" if method is None else _given(_OUTPUT)
  given = weight_files.parse_weights(
    files.read_lines(weights_path), path=weights_path
  )
  clock = time.perf_counter()
  found = _read_pool()
  read = time.perf_counter() - clock
  if found.dropped:
    _warn(f"left out {found.dropped} candidates with NaN or infinite features")
  empty = int((found.offsets[1:] == found.offsets[:-1]).sum())
  if empty:
    _warn(f"{empty} sentences have no candidates and count for nothing")
  new = [name for name in found.names if name not in given]
  if new:
    _warn(f"{len(new)} features without a weight start at 0 ({new[0]}, ...)")
  _export(found)
  start = weight_files.to_vector(given, found.names)
  before = scoring.pool_score(found, start, _METRIC.value)
  print(
    f"pool: {found.sentences} sentences, {len(found)} candidates,"
    f" {len(found.names)} features, read in {read:.2f} s"
  )
  if method is None:
    print(f"{_METRIC.value} {before:.5f}")
    return
  clock = time.perf_counter()
  tuned, history, after = _tune(method, found, start)
  seconds = time.perf_counter() - clock
  if _HISTORY.value:
    files.write_lines(_HISTORY.value, [json.dumps(row) for row in history])
  merged = _written(tuned, found, given)
  comment = f"{_METHOD.value} {_METRIC.value} {after:.5f} seed {_SEED.value}"
  files.write_lines(
    output, weight_files.format_weights(merged, comment=comment)
  )
  print(
    f"{_METHOD.value}: {_METRIC.value} {before:.5f} -> {after:.5f}"
    f" in {seconds:.2f} s"
  )


if __name__ == "__main__":
  program.run(main)
