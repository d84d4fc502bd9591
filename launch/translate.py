r"""Translates text with a grammar, a language model and weights.

    python launch/translate.py --grammar=G --lm=LM.arpa --weights=W \
        --input=S --output=H [--dialect=cdec] [--beam=30] [--pop=200] \
        [--nbest=F --nbest_size=100 --unique] [--forest=F] [--derivations=F]

One output line per input line. --dialect sets the format of the grammar and
the units of its features, so that weights tuned with that toolkit carry over.

Lines of over --max_words words are cut into pieces that are translated one by
one, with a warning; their n-best lists hold the best combinations of the
pieces' lists. They have no forest.

Weights of target n-grams (`ngram:...`), which the search does not know, choose
from the 100 best translations of each line, as in tuning. All outputs are then
those of the re-ranked list, where every translation stands once, except for
--forest: it is what the search kept.

--search_errors decodes once more with every beam of --error_beams and every
number of candidates of --error_pops, and says how often and by how much beam
search misses the best model score, which exact search finds. Rules are as
--targets leaves them; n-grams that re-rank do not count. Lines that take exact
search over --exact_steps candidates are left out, and said.

--forest writes JSON lines in the order of decoding (each says which line it
is), for a name in .npz arrays, for a folder's name ending in / Moses'
hypergraphs. --detokenize changes --output only.
"""

import dataclasses
import os

from absl import flags

from jaxmt.errors import InputError
from jaxmt.runtime import program, progress
from jaxmt.text import files

_RERANKED = 100  # translations of a line to choose from, at least
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
_BINARIZE = flags.DEFINE_bool(
  "binarize",
  False,
  "make trees binary, left-heavy, as those of the grammar were",
)
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
  "targets",
  None,
  "target sides per source pattern; 20 if not given, with --exact all",
  lower_bound=1,
)
_THRESHOLD = flags.DEFINE_float(
  "threshold", float("inf"), "drop hypotheses so far below the best of a cell"
)
_EXACT = flags.DEFINE_bool(
  "exact", False, "no pruning, nor of target sides: small inputs only"
)
_EXACT_STEPS = flags.DEFINE_integer(
  "exact_steps", 1 << 24, "candidates per sentence before --exact gives up"
)
_SEARCH_ERRORS = flags.DEFINE_string(
  "search_errors", "", "table of what beam search misses; see above"
)
_ERROR_BEAMS = flags.DEFINE_list(
  "error_beams", "1,10,30,100", "values of --beam in --search_errors"
)
_ERROR_POPS = flags.DEFINE_list(
  "error_pops", "30,200,1000", "values of --pop in --search_errors"
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Lists:
  """Which lists are needed.

  Attributes:
    size: translations per line.
    unique: whether they differ.
    orders: of the target n-grams that re-rank them; empty for none.
  """

  size: int
  unique: bool
  orders: tuple[int, ...]


def _start_jax() -> None:
  """Settings that must come before JAX is used."""
  import jax

  if _DEVICES.value > 1:
    jax.config.update("jax_num_cpu_devices", _DEVICES.value)
  if _CACHE.value:
    jax.config.update("jax_compilation_cache_dir", _CACHE.value)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)


def _read_weights() -> dict[str, float]:
  from jaxmt.features import weights as weight_files

  return weight_files.parse_weights(
    files.read_lines(_WEIGHTS.value), path=_WEIGHTS.value
  )


def _load_model(weights: dict[str, float], lines: list[str]):
  from jaxmt.decode import loading

  skipped = progress.Skipped() if _SKIP_BAD.value else None
  table = loading.read_table(
    _GRAMMAR.value, dialect=_DIALECT.value, on_bad=skipped
  )
  if skipped is not None:
    progress.say(f"{len(table):,} rules, {skipped.count} bad lines skipped")
  # Exact search copies what it knows of rules for every sentence.
  exact = _EXACT.value or _SEARCH_ERRORS.value
  return loading.make_model(
    table,
    _LM.value,
    weights=weights,
    dialect=_DIALECT.value,
    span=_SPAN.value,
    targets=_TARGETS.value or 20,
    lines=lines if exact else None,
  )


def _threads() -> int:
  from jaxmt.text import kernels as cores

  if _THREADS.value > 0:
    return _THREADS.value
  return 1 if _DEVICES.value > 1 else cores.available_threads()


def _decode_config(model, lists: _Lists | None):
  from jaxmt.decode.chart import decoder, search

  beam = _BEAM.value
  return decoder.DecodeConfig(
    search=search.make_config(
      beam=beam,
      pop=max(_POP.value, beam),
      labels=any(model.label_weights),
      forest=bool(lists or _FOREST.value),
    ),
    threshold=_THRESHOLD.value,
    batch_cells=_BATCH.value,
    threads=_threads(),
  )


def _make_lists(weights: dict[str, float]) -> _Lists | None:
  """Says which lists are needed, or None for none."""
  from jaxmt.tune import sparse_decoding

  size = _NBEST_SIZE.value
  unique = _UNIQUE.value or _DIVERSITY.value > 0
  used = {name: value for name, value in weights.items() if value}
  orders = sparse_decoding.orders_of(used)
  if not orders:
    found = _Lists(size=size, unique=unique, orders=())
    return found if _NBEST.value else None
  for flag in (_EXACT, _DIVERSITY):
    if flag.value:
      raise InputError(
        f"weights of target n-grams choose from a list: no --{flag.name}",
        path=_WEIGHTS.value,
      )
  size = max(size if _NBEST.value else 0, _RERANKED)
  return _Lists(size=size, unique=True, orders=orders)


def _derivations() -> str:
  return _DERIVATION_FORMAT.value if _DERIVATIONS.value else ""


def _translate_exactly(model, pieces, spans):
  """Translations, None where exact search takes too long."""
  from jaxmt.decode import translate
  from jaxmt.decode.chart import exact as exact_decoder

  if _TARGETS.value is None:
    model = exact_decoder.without_limits(model)
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


def _stream(model, pieces, spans, done, lists, found):
  """Fills translations and n-best lists; yields forests if they are wanted."""
  from jaxmt.decode import translate
  from jaxmt.hypergraph import forest
  from jaxmt.runtime import parallel

  mesh = parallel.make_mesh(_DEVICES.value) if _DEVICES.value > 1 else None
  with progress.steps(label="translate", total=len(pieces.lines)) as advance:
    for part, read in translate.stream(
      model,
      pieces,
      config=_decode_config(model, lists),
      mesh=mesh,
      spans=spans,
      derivations=_derivations(),
    ):
      for row, one in zip(part.rows.tolist(), read, strict=True):
        done[row] = done[row] or one
      advance(len(part.rows))
      if not (lists or _FOREST.value):
        continue
      made = forest.extract(model, part)
      if lists:
        found.append(_part_lists(model, part, made, lists, pieces))
      if _FOREST.value:
        yield _spelled(model, part, made, pieces)


def _part_lists(model, part, made, lists: _Lists, pieces):
  """The lists of a decoded part."""
  from jaxmt.decode import nbest

  return nbest.lists(
    model,
    part,
    size=lists.size,
    unique=lists.unique,
    diversity=_DIVERSITY.value,
    forests=made,
    text=_derivations() if lists.orders else "",
    shift=pieces.first[part.rows],
  )


def _spelled(model, part, made, pieces):
  """The forests of a decoded part, without lines that were cut."""
  import numpy as np

  from jaxmt.decode import portable_forest

  rows = pieces.row[part.rows]
  whole = np.flatnonzero(~np.isin(rows, pieces.cut))
  spelled = portable_forest.spell(model, part.source, made, rows)
  return portable_forest.select(spelled, whole)


def _translate(model, pieces, spans, lists) -> tuple[list, list]:
  """Translations of all pieces, and their n-best lists in parts."""
  done: list = [None] * len(pieces.lines)
  found: list = []
  if _EXACT.value:
    done = _translate_exactly(model, pieces, spans)
    if None not in done:
      return done, found
  forests = _stream(model, pieces, spans, done, lists, found)
  if _FOREST.value:
    from jaxmt.decode import forest_files

    forest_files.write(_FOREST.value, forests)
  for _ in forests:
    pass
  return done, found


def _collect(parts, pieces, lists: _Lists, weights):
  """The lists of all lines, re-ranked if there is something to do it by."""
  from jaxmt.decode import nbest
  from jaxmt.tune import sparse_decoding

  found = nbest.collect(parts, pieces, size=lists.size, unique=lists.unique)
  if not lists.orders:
    return found
  grams = sparse_decoding.ngram_rows(found.lines, lists.orders)
  return nbest.rerank(found, grams, weights)


def _write_nbest(found) -> None:
  from jaxmt.decode import nbest
  from jaxmt.tune import kbest, kbest_write

  if found is None:
    files.write_lines(_NBEST.value, [])
    return
  found = nbest.shorten(found, _NBEST_SIZE.value)
  candidates = kbest.Candidates(
    sentence=found.sentence,
    lines=found.lines,
    features=found.features,
    names=found.names,
  )
  lines = kbest_write.format_kbest(
    candidates,
    found.score,
    format=_NBEST_FORMAT.value or _DIALECT.value,
    links=found.links,
  )
  files.write_lines(_NBEST.value, lines)


def _whole_numbers(flag) -> list[int]:
  """The values of a list of numbers from 1 on."""
  if not flag.value or not all(text.isdecimal() for text in flag.value):
    raise InputError(f"--{flag.name}={','.join(flag.value)}: not whole numbers")
  numbers = [int(text) for text in flag.value]
  if min(numbers) < 1:
    raise InputError(f"--{flag.name}: {min(numbers)} is less than 1")
  return numbers


def _error_sizes() -> list[tuple[int, int]]:
  """The sizes to compare: beams and at least as many candidates."""
  beams, pops = map(_whole_numbers, (_ERROR_BEAMS, _ERROR_POPS))
  sizes = [(beam, pop) for beam in beams for pop in pops if pop >= beam]
  if not sizes:
    raise InputError("--error_pops: all less than --error_beams")
  return sizes


def _write_search_errors(model, pieces, spans) -> None:
  """Writes what beam search misses, a row for each of its sizes."""
  import numpy as np

  from jaxmt.decode import model as models
  from jaxmt.decode import search_report, translate
  from jaxmt.report import tables

  source = translate.piece_source(model, pieces, spans)
  source = models.select_source(source, np.flatnonzero(source.ids.lengths))
  report = search_report.search_error_report(
    model,
    source,
    sizes=_error_sizes(),
    limit=_EXACT_STEPS.value,
    config=_decode_config(model, None),
  )
  left = len(source) - report[0][2].sentences
  lines = [
    *tables.text(search_report.as_rows(report)).split("\n"),
    f"{left:,} of {len(source):,} sentences not compared: too large for exact"
    f" search (over {_EXACT_STEPS.value:,} candidates)",
  ]
  files.write_lines(_SEARCH_ERRORS.value, lines)


def _write_details(whole) -> None:
  """Writes what was asked for besides the translations."""
  from jaxmt.decode import translate

  if _SCORES.value:
    files.write_lines(
      _SCORES.value,
      [
        f"{row} ||| {one.text} ||| "
        f"{translate.feature_text(one.features)} ||| {one.score:.6g}"
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
  from jaxmt.text import detokenize

  program.required(grammar=_GRAMMAR.value, lm=_LM.value, weights=_WEIGHTS.value)
  language = _DETOKENIZE.value
  if language and language not in detokenize.LANGUAGES:
    known = ", ".join(detokenize.LANGUAGES)
    raise InputError(f"--detokenize={language} is none of: {known}")
  if _EXACT.value and (_NBEST.value or _FOREST.value):
    raise InputError("--exact keeps no forest, as --nbest and --forest need")
  if _BINARIZE.value and not _TREES.value:
    raise InputError("--binarize needs --trees")
  if _SEARCH_ERRORS.value:
    _error_sizes()
  if _SEARCH_ERRORS.value == _OUTPUT.value == "-":
    raise InputError("--output and --search_errors both go to standard output")


def _read_input():
  """The lines, their pieces, and their trees or None."""
  from jaxmt.decode import loading, translate

  lines = files.read_lines(_INPUT.value)
  pieces = translate.cut_lines(lines, longest=_LONGEST.value)
  for row in pieces.cut:
    progress.say(
      f"warning: line {row + 1} has over {_LONGEST.value} words:"
      " translated in pieces" + ("; no forest" if _FOREST.value else "")
    )
  trees = None
  if _TREES.value:
    trees = loading.read_trees(
      _TREES.value, lines, lines_path=_INPUT.value, binarize=_BINARIZE.value
    )
  return lines, pieces, trees


def _write(whole) -> None:
  """Writes the translations."""
  from jaxmt.text import detokenize

  out = [one.text for one in whole]
  if _DETOKENIZE.value:
    out = detokenize.detokenize(out, language=_DETOKENIZE.value)
  files.write_lines(_OUTPUT.value, out)


def main(argv: list[str]) -> None:
  """Translates."""
  del argv
  _check_flags()
  _start_jax()
  from jaxmt.decode import nbest, translate
  from jaxmt.grammar.match import matching

  weights = _read_weights()
  lists = _make_lists(weights)
  lines, pieces, trees = _read_input()
  model = _load_model(weights, lines)
  spans = None
  if trees is not None:
    spans = matching.constituents(trees, model.table.labels)
  if _SEARCH_ERRORS.value:
    _write_search_errors(model, pieces, spans)
  done, parts = _translate(model, pieces, spans, lists)
  whole = translate.assemble(done, pieces, size=len(lines))
  found = None
  if lists and parts:
    found = _collect(parts, pieces, lists, weights)
    whole = nbest.best(found) if lists.orders else whole
  _write(whole)
  if _NBEST.value:
    _write_nbest(found)
  _write_details(whole)


if __name__ == "__main__":
  program.run(main)
