r"""Forced decoding: derives given translations with a grammar.

    python launch/force.py --grammar=G --input=S --reference=T --output=D \
        [--kind=scfg|phrase|btg] [--reordering=R] [--distortion=6] \
        [--trees=P] [--lm=LM.arpa] [--weights=W] [--report] [--leave_one_out]

Writes the best derivation of each line, a tree of `(LHS[begin:end] source side
| target side ...)`, or `() reason` if the grammar cannot derive the reference.
Every derivation is considered: nothing is pruned; phrases (--kind=phrase) keep
to the distortion limit. A phrase-based derivation is a chain, the last phrase
outermost. --report says how many
sentences are reached, by length, and why the others are not.

Without --weights the probabilities of a jaxmt grammar (θ and lexical weights)
have weight 1 and everything else 0; with the grammars of other toolkits, whose
features may be costs, all weights are 0 and any derivation may stand for all.
The language model changes the scores only, by the same for all derivations.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import json

from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment.flags import model_flags
from jaxmt.runtime import progress
from jaxmt.text import files, kernels

_BLOCK = 500  # sentences whose forests are in memory at a time

flags.adopt_module_key_flags(model_flags)
_INPUT = flags.DEFINE_string("input", "", "source text")
_REFERENCE = flags.DEFINE_string("reference", "", "target text, line by line")
_OUTPUT = flags.DEFINE_string("output", "", "derivations; '-' for stdout")
_WEIGHTS = flags.DEFINE_string("weights", "", "file of lines 'name value'")
_NBEST = flags.DEFINE_integer(
  "nbest",
  1,
  "derivations per line; several are number ||| derivation ||| score",
  lower_bound=1,
)
_LEAVE_ONE_OUT = flags.DEFINE_bool(
  "leave_one_out",
  False,
  "leave out rules that only the sentence itself has; the grammar must be"
  " extracted from exactly these lines, with --provenance",
)
_LONGEST = flags.DEFINE_integer(
  "max_words", 250, "longest line to try", lower_bound=1
)
_EDGES = flags.DEFINE_integer(
  "max_edges",
  1 << 20,
  "give up a line whose chart has more edges",
  lower_bound=0,
)
_REPORT = flags.DEFINE_bool("report", False, "print reachability by length")
_JSON = flags.DEFINE_bool("json", False, "print the report as JSON")


def _read_references(*, size: int) -> list[str]:
  """Reads one reference for each of the input's lines."""
  lines = files.read_lines(_REFERENCE.value)
  if len(lines) != size:
    raise InputError(
      f"{len(lines)} lines, but {_INPUT.value} has {size}",
      path=_REFERENCE.value,
      line=min(len(lines), size) + 1,
    )
  return lines


def _read_trees(lines: list[str]):
  """Returns the trees of the lines, or None without --trees."""
  if not model_flags.TREES.value:
    return None
  from jaxmt.decode import loading

  return loading.read_trees(
    model_flags.TREES.value,
    lines,
    lines_path=_INPUT.value,
    binarize=model_flags.binarizer(),
  )


def _read_provenance(size: int):
  """Which rules come from which line, or None if it does not matter."""
  if not _LEAVE_ONE_OUT.value:
    return None
  if model_flags.DIALECT.value != "jaxmt":
    raise InputError("--leave_one_out needs a jaxmt grammar with provenance")
  from jaxmt.grammar import native

  origin = native.read_provenance(model_flags.GRAMMAR.value, verify=False)
  if len(origin) != size:
    raise InputError(
      f"was extracted from {len(origin)} lines, --input has {size}:"
      " --leave_one_out needs the same",
      path=model_flags.GRAMMAR.value,
    )
  return origin


def _derivation_lines(model, source, forced, first: int) -> list[str]:
  """The output lines of a block that begins with line `first`."""
  from jaxmt.decode import derivation_text, translation_forest

  lists = translation_forest.kbest(
    model, source, forced.forest, size=_NBEST.value
  )
  trees = derivation_text.tree_lines(
    model, source, translation_forest.derivations(forced.forest, lists)
  )
  out = []
  for row, reason in enumerate(forced.reason):
    items = range(lists.offsets[row], lists.offsets[row + 1])
    if _NBEST.value == 1:
      out += [trees[item] for item in items] or [f"() {reason}"]
      continue
    number = first + row
    out += [
      f"{number} ||| {trees[item]} ||| {lists.score[item]:.6g}"
      for item in items
    ] or [f"{number} ||| () ||| {reason}"]
  return out


def _force(model, lines, references, trees, origin):
  """Forces everything; returns output lines and reachability."""
  import numpy as np

  from jaxmt.decode import model as models
  from jaxmt.decode.forced import forced as force
  from jaxmt.decode.forced import reachability
  from jaxmt.grammar.match import matching
  from jaxmt.text import ragged

  spans = None
  if trees is not None:
    spans = matching.constituents(trees, model.table.labels)
  excluded = None if origin is None else force.own_rules(origin)
  rules = force.make_rules(model)
  config = force.ForceConfig(
    words=_LONGEST.value,
    edges=_EDGES.value,
    threads=model_flags.THREADS.value or kernels.available_threads(),
  )
  out, lengths, reached, reasons = [], [], [], []
  with progress.steps(label="force", total=len(lines)) as advance:
    for start in range(0, len(lines), _BLOCK):
      rows = np.arange(start, min(start + _BLOCK, len(lines)))
      part = lambda whole, rows=rows: (
        None if whole is None else ragged.select(whole, rows)
      )
      source = models.make_source(
        model, lines[start : start + _BLOCK], spans=part(spans)
      )
      forced = force.force(
        model,
        source,
        references[start : start + _BLOCK],
        config=config,
        rules=rules,
        excluded=part(excluded),
        on_done=advance,
      )
      out += _derivation_lines(model, source, forced, start)
      lengths += source.ids.lengths.tolist()
      reached += forced.reached.tolist()
      reasons += forced.reason
  return out, reachability.summarize(lengths, reached, reasons)


def _print_report(summary) -> None:
  from jaxmt.report import text_tables

  if _JSON.value:
    print(json.dumps(dataclasses.asdict(summary), ensure_ascii=False))
    return
  print(text_tables.text([*summary.rows, summary.overall]))
  for name, counts in (
    ("not reached because", summary.kinds),
    ("most frequent", summary.words),
  ):
    if counts:
      rows = [{name: k, "sentences": count} for k, count in counts.items()]
      print("\n" + text_tables.text(rows))


def main(argv: list[str]) -> None:
  """Forces."""
  del argv
  program.check_paths(
    outputs=("output",),
    inputs=(
      "grammar",
      "input",
      "reference",
      "trees",
      "lm",
      "weights",
      "reordering",
      "models",
    ),
  )
  program.required(
    grammar=model_flags.GRAMMAR.value,
    input=_INPUT.value,
    reference=_REFERENCE.value,
    output=_OUTPUT.value,
  )
  report = _REPORT.value or _JSON.value
  if report and _OUTPUT.value == "-":
    raise InputError("--output=- and the report both go to standard output")
  lines = files.read_lines(_INPUT.value)
  references = _read_references(size=len(lines))
  trees = _read_trees(lines)
  origin = _read_provenance(len(lines))
  model = model_flags.load_forced_model(_WEIGHTS.value)
  out, summary = _force(model, lines, references, trees, origin)
  files.write_lines(_OUTPUT.value, out)
  if report:
    _print_report(summary)
  row = summary.overall
  progress.say(
    f"{row['reached']:,} of {row['sentences']:,} references reached"
    f" ({row['reached %']} %), {row['words reached %']} % of source words"
  )


if __name__ == "__main__":
  program.run(main)
