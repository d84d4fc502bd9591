"""Translates text with a grammar, a language model and weights.

    python launch/translate.py --grammar=G --lm=LM.arpa --weights=W \
        --input=S --output=H [--dialect=cdec] [--beam=30] [--pop=200] \
        [--nbest=F --nbest_size=100 --unique] [--forest=F] [--derivations=F]

One output line per input line. --dialect sets the format of the grammar and
the units of its features, so that weights tuned with that toolkit carry over.

Lines of over --max_words words are cut into pieces that are translated one by
one, with a warning; their n-best lists hold the best combinations of the
pieces' lists. They have no forest.

--forest writes JSON lines in the order of decoding (each says which line it
is), for a name in .npz arrays, for a folder's name ending in / Moses'
hypergraphs. --detokenize changes --output only.
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
_DERIVATION_FORMAT = flags.DEFINE_enum(
  "derivation_format",
  "tree",
  ("tree", "rules"),
  "one bracketed tree per line; or one rule per line with the line's number",
)
_SCORES = flags.DEFINE_string(
  "scores", "", "number ||| translation ||| features ||| score"
)
_LINKS = flags.DEFINE_string("links", "", "word links, Pharaoh format")
_NBEST = flags.DEFINE_string("nbest", "", "n-best lists")
_NBEST_SIZE = flags.DEFINE_integer(
  "nbest_size", 100, "translations per line in --nbest", lower_bound=1
)
_NBEST_FORMAT = flags.DEFINE_enum(
  "nbest_format", None, _DIALECTS, "format of --nbest; that of --dialect"
)
_UNIQUE = flags.DEFINE_bool(
  "unique", False, "--nbest without derivations that say the same"
)
_DIVERSITY = flags.DEFINE_float(
  "diversity",
  0.0,
  "--nbest with a penalty for each bigram shared with an earlier translation",
  lower_bound=0.0,
)
_FOREST = flags.DEFINE_string("forest", "", "what the search kept; see above")
_DETOKENIZE = flags.DEFINE_string(
  "detokenize", "", "language of the output, e.g. en, de, zh: no tokens"
)
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


def _load_model():
  from jaxmt.chart import loading
  from jaxmt.features import weights as weight_files

  skipped = progress.Skipped() if _SKIP_BAD.value else None
  table = loading.read_table(
    _GRAMMAR.value, dialect=_DIALECT.value, on_bad=skipped
  )
  if skipped is not None:
    progress.say(f"{len(table):,} rules, {skipped.count} bad lines skipped")
  weights = weight_files.parse_weights(
    files.read_lines(_WEIGHTS.value), path=_WEIGHTS.value
  )
  return loading.make_model(
    table,
    _LM.value,
    weights=weights,
    dialect=_DIALECT.value,
    span=_SPAN.value,
    targets=_TARGETS.value,
  )


def _decode_config(model):
  from jaxmt import threads as cores
  from jaxmt.chart import decoder, search

  beam = _BEAM.value
  pop = max(_POP.value, beam)
  threads = _THREADS.value
  if threads <= 0:
    threads = 1 if _DEVICES.value > 1 else cores.available()
  return decoder.DecodeConfig(
    search=search.make_config(
      beam=beam,
      pop=pop,
      labels=any(model.label_weights),
      forest=bool(_NBEST.value or _FOREST.value),
    ),
    threshold=_THRESHOLD.value,
    batch_cells=_BATCH.value,
    threads=threads,
  )


def _derivations() -> str:
  return _DERIVATION_FORMAT.value if _DERIVATIONS.value else ""


def _translate_exactly(model, pieces, spans):
  """Translations, None where exact search takes too long."""
  from jaxmt.chart import translate

  done = translate.translate_exactly(
    model,
    pieces,
    spans=spans,
    limit=_EXACT_STEPS.value,
    derivations=_derivations(),
  )
  for row, one in enumerate(done):
    if one is None:
      progress.say(
        f"line {pieces.row[row] + 1}: too much for exact search; beam search"
      )
  return done


def _stream(model, pieces, spans, done, lists):
  """Fills translations and n-best lists; yields forests if they are wanted."""
  import numpy as np

  from jaxmt import parallel
  from jaxmt.chart import forest, nbest, spelled_forest, translate

  mesh = parallel.make_mesh(_DEVICES.value) if _DEVICES.value > 1 else None
  with progress.steps(label="translate", total=len(pieces.lines)) as advance:
    for part, read in translate.stream(
      model,
      pieces,
      config=_decode_config(model),
      mesh=mesh,
      spans=spans,
      derivations=_derivations(),
    ):
      for row, one in zip(part.rows.tolist(), read, strict=True):
        done[row] = done[row] or one
      advance(len(part.rows))
      if not (_NBEST.value or _FOREST.value):
        continue
      made = forest.extract(model, part)
      if _NBEST.value:
        lists.append(
          nbest.lists(
            model,
            part,
            size=_NBEST_SIZE.value,
            unique=_UNIQUE.value,
            diversity=_DIVERSITY.value,
            forests=made,
          )
        )
      if _FOREST.value:
        rows = pieces.row[part.rows]
        whole = np.flatnonzero(~np.isin(rows, pieces.cut))
        spelled = spelled_forest.spell(model, part.source, made, rows)
        yield spelled_forest.select(spelled, whole)


def _translate(model, pieces, spans) -> tuple[list, list]:
  """Translations of all pieces, and their n-best lists in parts."""
  done: list = [None] * len(pieces.lines)
  lists: list = []
  if _EXACT.value:
    done = _translate_exactly(model, pieces, spans)
    if None not in done:
      return done, lists
  forests = _stream(model, pieces, spans, done, lists)
  if _FOREST.value:
    from jaxmt.chart import forest_files

    forest_files.write(_FOREST.value, forests)
  for _ in forests:
    pass
  return done, lists


def _write_nbest(lists, pieces) -> None:
  from jaxmt.chart import nbest
  from jaxmt.tune import kbest, kbest_write

  if not lists:
    files.write_lines(_NBEST.value, [])
    return
  unique = _UNIQUE.value or _DIVERSITY.value > 0
  found = nbest.collect(lists, pieces, size=_NBEST_SIZE.value, unique=unique)
  candidates = kbest.from_dense(
    found.sentence, found.lines, found.features, found.names
  )
  lines = kbest_write.format_kbest(
    candidates,
    found.score,
    format=_NBEST_FORMAT.value or _DIALECT.value,
    links=found.links,
  )
  files.write_lines(_NBEST.value, lines)


def _write_details(model, whole) -> None:
  """Writes what was asked for besides the translations."""
  from jaxmt.chart import translate

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
    lines = [one.tree for one in whole]
    if _DERIVATION_FORMAT.value == "rules":
      lines = [
        f"{row} ||| {line}"
        for row, one in enumerate(whole)
        for line in one.derivation
      ]
    files.write_lines(_DERIVATIONS.value, lines)
  if _LINKS.value:
    files.write_lines(
      _LINKS.value,
      [
        " ".join(f"{one}-{two}" for one, two in item.links.tolist())
        for item in whole
      ],
    )


def _check_flags() -> None:
  from jaxmt.data import detokenize

  program.required(grammar=_GRAMMAR.value, lm=_LM.value, weights=_WEIGHTS.value)
  language = _DETOKENIZE.value
  if language and language not in detokenize.LANGUAGES:
    known = ", ".join(detokenize.LANGUAGES)
    raise InputError(f"--detokenize={language} is none of: {known}")
  if _EXACT.value and (_NBEST.value or _FOREST.value):
    raise InputError("--exact keeps no forest, as --nbest and --forest need")


def main(argv: list[str]) -> None:
  """Translates."""
  del argv
  _check_flags()
  _start_jax()
  from jaxmt.chart import loading, translate
  from jaxmt.data import detokenize

  model = _load_model()
  lines = files.read_lines(_INPUT.value)
  pieces = translate.cut_lines(lines, longest=_LONGEST.value)
  for row in pieces.cut:
    progress.say(
      f"warning: line {row + 1} has over {_LONGEST.value} words:"
      " translated in pieces" + ("; no forest" if _FOREST.value else "")
    )
  spans = None
  if _TREES.value:
    spans = loading.read_spans(
      _TREES.value, model, lines, lines_path=_INPUT.value
    )
  done, lists = _translate(model, pieces, spans)
  whole = translate.assemble(done, pieces, size=len(lines))
  out = [one.text for one in whole]
  if _DETOKENIZE.value:
    out = detokenize.detokenize(out, language=_DETOKENIZE.value)
  files.write_lines(_OUTPUT.value, out)
  if _NBEST.value:
    _write_nbest(lists, pieces)
  _write_details(model, whole)


if __name__ == "__main__":
  program.run(main)
