"""Learns a non-linear re-ranker of k-best lists and applies it.

    python launch/rerank.py --model=additive|kernel|boosted --kbest=K
        --references=R1,R2 --weights=W [--apply=K2] --output=H

Prints the score of the best candidates by W and by the re-ranker, on the lists
it was learnt from; with --apply and --apply_references on others, too. H has
the best candidate of each sentence of K2, or of K. Lists as in tune.py.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

from collections.abc import Callable

import numpy as np
from absl import flags

from jaxmt.decode import candidate_lists
from jaxmt.decode.candidate_lists import CandidateLists
from jaxmt.errors import InputError
from jaxmt.features import weights as weight_files
from jaxmt.text import files, references
from jaxmt.tune import options, pool
from jaxmt.tune.formats import kbest_files

_MODEL = flags.DEFINE_enum(
  "model", "additive", ["additive", "kernel", "boosted"], "kind of re-ranker"
)
_KBEST = flags.DEFINE_list("kbest", [], "lists to learn from")
_REFERENCES = flags.DEFINE_list("references", [], "their reference files")
_APPLY = flags.DEFINE_list("apply", [], "lists to re-rank; --kbest if unset")
_APPLY_REFERENCES = flags.DEFINE_list(
  "apply_references", [], "their reference files, to print a score"
)
_WEIGHTS = flags.DEFINE_string("weights", None, "the linear model")
_OUTPUT = flags.DEFINE_string("output", None, "best candidates, one per line")
_METRIC = flags.DEFINE_string("metric", "bleu", "what to optimise")
_OPTIONS = flags.DEFINE_multi_string("option", [], "name=value, repeatable")
_SEED = flags.DEFINE_integer(
  "seed", 0, "of everything random", lower_bound=0, upper_bound=2**32 - 1
)


def _read(paths: list[str], reference_paths: list[str]) -> CandidateLists:
  parts = [
    kbest_files.parse_kbest(files.read_bytes(path), path=path) for path in paths
  ]
  lists = candidate_lists.concatenate(parts)
  lines = None
  if reference_paths:
    lines = references.read_references(reference_paths)
    if lists.sentences > len(lines):
      raise InputError(
        f"sentence {lists.sentences - 1}, but there are references of"
        f" {len(lines)} only",
        path=paths[0],
      )
  merged = pool.make_pool(lists, sentences=len(lines) if lines else None)
  if not len(merged):
    raise InputError("no usable candidates", path=paths[0])
  if lines is None:
    return merged
  return pool.with_statistics(merged, lines, [_METRIC.value])


def _learnt(
  train: CandidateLists,
  start_weights: dict[str, float],
  changes: dict[str, str],
) -> Callable[[CandidateLists], np.ndarray]:
  """A function from lists to the scores of their candidates."""
  from jaxmt.tune.lists import boosting, rerankers

  start = candidate_lists.to_vector(start_weights, train.names)
  changes = {"metric": _METRIC.value, **changes}
  if _MODEL.value == "boosted":
    config = options.change(boosting.BoostConfig(), changes)
    rankers, _ = boosting.boost(train, start, config, _SEED.value)

    def votes(lists: CandidateLists) -> np.ndarray:
      named = [
        (vote, dict(zip(train.names, weights.tolist(), strict=True)))
        for vote, weights in rankers
      ]
      return boosting.combined_scores(
        lists,
        [(v, candidate_lists.to_vector(w, lists.names)) for v, w in named],
      )

    return votes
  settings = options.change(rerankers.RerankConfig(model=_MODEL.value), changes)
  fitted = rerankers.fit(train, start, settings, _SEED.value)
  width = train.dense.shape[1]

  def values(lists: CandidateLists) -> np.ndarray:
    if lists.names[:width] != train.names[:width]:
      lists = pool.make_pool(lists, dense_names=train.names[:width])
    return rerankers.rerank_scores(lists, fitted)

  return values


def _report(what: str, lists, weights, values) -> None:
  from jaxmt.tune.lists.rerankers import chosen_score

  start = candidate_lists.to_vector(weights, lists.names)
  before = pool.pool_score(lists, start, _METRIC.value)
  after = chosen_score(lists, values, _METRIC.value)
  print(
    f"{_MODEL.value} on {what}: {_METRIC.value} {before:.5f} -> {after:.5f}"
  )


def main(argv: list[str]) -> None:
  """Learns, applies, writes."""
  del argv
  program.check_paths(
    outputs=("output",),
    inputs=("kbest", "references", "weights", "apply", "apply_references"),
  )
  program.required(
    kbest=_KBEST.value,
    references=_REFERENCES.value,
    weights=_WEIGHTS.value,
    output=_OUTPUT.value,
  )
  changes = {}
  for option in _OPTIONS.value:
    name, equals, value = option.partition("=")
    if not equals:
      raise InputError(f"--option={option}: expected name=value")
    changes[name] = value
  pool.find_metric(_METRIC.value)
  weights = program.given(_WEIGHTS)
  start = weight_files.parse_weights(files.read_lines(weights), path=weights)
  train = _read(_KBEST.value, _REFERENCES.value)
  score = _learnt(train, start, changes)
  values = score(train)
  _report("the training lists", train, start, values)
  target = train
  if _APPLY.value:
    target = _read(_APPLY.value, _APPLY_REFERENCES.value)
    values = score(target)
    if _APPLY_REFERENCES.value:
      _report("the other lists", target, start, values)
  lines = [""] * target.sentences
  for row in pool.best(values, target.offsets).tolist():
    lines[int(target.sentence[row])] = target.lines[row]
  files.write_lines(program.given(_OUTPUT), lines)


if __name__ == "__main__":
  program.run(main)
