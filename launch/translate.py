"""Translates text with a grammar, a language model and weights.

    python launch/translate.py --grammar=G --lm=LM.arpa --weights=W \
        --input=S --output=H [--dialect=cdec] [--beam=30] [--pop=200]

One output line per input line. --dialect sets the format of the grammar and
the units of its features, so that weights tuned with that toolkit carry over.
"""

import os

from absl import flags

from jaxmt import program, progress
from jaxmt.data import files
from jaxmt.errors import InputError

_DIALECTS = ("jaxmt", "cdec", "moses", "joshua", "travatar")

_GRAMMAR = flags.DEFINE_string(
  "grammar", "", "rule table; other dialects: several files, comma-separated"
)
_SKIP_BAD = flags.DEFINE_bool(
  "skip_bad", False, "skip malformed rule lines and count them"
)
_LM = flags.DEFINE_string("lm", "", "language model, ARPA")
_WEIGHTS = flags.DEFINE_string("weights", "", "lines 'name value'")
_INPUT = flags.DEFINE_string(
  "input", "-", "source text; '-' for standard input"
)
_OUTPUT = flags.DEFINE_string("output", "-", "translations")
_TREES = flags.DEFINE_string("trees", "", "source trees, for tree-to-string")
_DIALECT = flags.DEFINE_enum(
  "dialect", "jaxmt", _DIALECTS, "format of the grammar and units of features"
)
_BEAM = flags.DEFINE_integer("beam", 30, "hypotheses per cell", lower_bound=1)
_POP = flags.DEFINE_integer(
  "pop",
  200,
  "candidates scored with the language model per cell",
  lower_bound=1,
)
_SPAN = flags.DEFINE_integer("span", 10, "longest Hiero span", lower_bound=1)
_TARGETS = flags.DEFINE_integer(
  "targets", 20, "target sides per source pattern", lower_bound=1
)
_THRESHOLD = flags.DEFINE_float(
  "threshold", float("inf"), "drop hypotheses so far below the best of a cell"
)
_EXACT = flags.DEFINE_bool("exact", False, "no pruning: small inputs only")
_EXACT_STEPS = flags.DEFINE_integer(
  "exact_steps", 1 << 24, "candidates per sentence before --exact gives up"
)
_DERIVATIONS = flags.DEFINE_string("derivations", "", "derivation per line")
_SCORES = flags.DEFINE_string(
  "scores", "", "number ||| translation ||| features ||| score"
)
_LINKS = flags.DEFINE_string("links", "", "word links, Pharaoh format")
_LONGEST = flags.DEFINE_integer(
  "max_words", 250, "longer lines are cut, with a warning", lower_bound=1
)
_BATCH = flags.DEFINE_integer(
  "batch_cells", 4096, "cells searched together", lower_bound=1
)
_THREADS = flags.DEFINE_integer(
  "threads", 0, "batches at a time; 0: one for each core, on CPUs"
)
_DEVICES = flags.DEFINE_integer("devices", 1, "devices to split batches over")
_CACHE = flags.DEFINE_string(
  "compile_cache",
  os.path.expanduser("~/.cache/jaxmt/compiled"),
  "where compiled programs are kept; '' for nowhere",
)


def _start_jax() -> None:
  """Settings that must come before JAX is used."""
  import jax

  if _DEVICES.value > 1:
    jax.config.update("jax_num_cpu_devices", _DEVICES.value)
  if _CACHE.value:
    jax.config.update("jax_compilation_cache_dir", _CACHE.value)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)


def _read_foreign(paths: list[str], dialect: str):
  from jaxmt.grammar import formats

  if not _SKIP_BAD.value:
    return formats.read_all(paths, dialect)
  skipped = progress.Skipped()
  table = formats.read_all(paths, dialect, on_bad=skipped)
  progress.say(f"{len(table):,} rules, {skipped.count} bad lines skipped")
  return table


def _load_model():
  from jaxmt.chart import model as models
  from jaxmt.features import weights as weight_files
  from jaxmt.grammar import native
  from jaxmt.grammar.match import MatchConfig
  from jaxmt.lm import arpa_read
  from jaxmt.lm import tables as lm_tables

  dialect = _DIALECT.value
  if dialect == "jaxmt":
    table = native.read(_GRAMMAR.value)
  else:
    table = _read_foreign(_GRAMMAR.value.split(","), dialect)
  weights = weight_files.parse_weights(
    files.read_lines(_WEIGHTS.value), path=_WEIGHTS.value
  )
  return models.make_model(
    table,
    lm_tables.build_tables(arpa_read.read_arpa(_LM.value)),
    weights=weights,
    units=models.DIALECTS[dialect],
    limits=MatchConfig(
      span=_SPAN.value,
      targets=_TARGETS.value,
      pass_through="all" if dialect == "cdec" else "unknown",
    ),
  )


def _spans(model, lines):
  """Constituents of each line, or None."""
  if not _TREES.value:
    return None
  from jaxmt.data import trees
  from jaxmt.grammar import match

  tree_lines = files.read_lines(_TREES.value)
  if len(tree_lines) != len(lines):
    raise InputError(
      f"{len(tree_lines)} trees for {len(lines)} lines",
      path=_TREES.value,
      line=min(len(tree_lines), len(lines)) + 1,
    )
  parsed = trees.parse_trees(tree_lines, path=_TREES.value)
  return match.constituents(parsed, model.table.labels)


def _decode_config(model):
  from jaxmt.chart import decoder, search

  beam = _BEAM.value
  pop = max(_POP.value, beam)
  threads = _THREADS.value
  if threads <= 0:
    threads = 1 if _DEVICES.value > 1 else os.cpu_count() or 1
  return decoder.DecodeConfig(
    search=search.make_config(
      beam=beam, pop=pop, labels=any(model.label_weights)
    ),
    threshold=_THRESHOLD.value,
    batch_cells=_BATCH.value,
    threads=threads,
  )


def _translate(model, pieces, spans):
  from jaxmt import parallel
  from jaxmt.chart import translate

  exact: list[translate.Translation | None] = [None] * len(pieces.lines)
  if _EXACT.value:
    exact = translate.translate_exactly(
      model, pieces, spans=spans, limit=_EXACT_STEPS.value
    )
    late = [row for row, one in enumerate(exact) if one is None]
    for row in late:
      progress.say(
        f"line {pieces.row[row] + 1}: too much for exact search; beam search"
      )
    if not late:
      return [one for one in exact if one is not None]
  mesh = parallel.make_mesh(_DEVICES.value) if _DEVICES.value > 1 else None
  with progress.steps(label="translate", total=len(pieces.lines)) as advance:
    found = translate.translate(
      model,
      pieces,
      config=_decode_config(model),
      mesh=mesh,
      spans=spans,
      on_batch=lambda parts: advance(sum(len(p.rows) for p in parts)),
    )
  both = zip(exact, found, strict=True)
  return [two if one is None else one for one, two in both]


def main(argv: list[str]) -> None:
  """Translates."""
  del argv
  program.required(grammar=_GRAMMAR.value, lm=_LM.value, weights=_WEIGHTS.value)
  _start_jax()
  from jaxmt.chart import translate

  model = _load_model()
  lines = files.read_lines(_INPUT.value)
  pieces = translate.cut_lines(lines, longest=_LONGEST.value)
  for row in pieces.cut:
    progress.say(
      f"warning: line {row + 1} has over {_LONGEST.value} words:"
      " translated in pieces"
    )
  done = _translate(model, pieces, _spans(model, lines))
  whole = translate.assemble(done, pieces, size=len(lines))
  files.write_lines(_OUTPUT.value, [one.text for one in whole])
  if _SCORES.value:
    files.write_lines(
      _SCORES.value,
      [
        f"{row} ||| {one.text} ||| "
        f"{translate.feature_text(model, one.features)} ||| {one.score:.6g}"
        for row, one in enumerate(whole)
      ],
    )
  if _DERIVATIONS.value:
    files.write_lines(_DERIVATIONS.value, [one.tree for one in whole])
  if _LINKS.value:
    files.write_lines(
      _LINKS.value,
      [
        " ".join(f"{one}-{two}" for one, two in item.links.tolist())
        for item in whole
      ],
    )


if __name__ == "__main__":
  program.run(main)
