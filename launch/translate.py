r"""Translates text with a grammar, a language model and weights.

    python launch/translate.py --grammar=G --lm=LM.arpa --weights=W \
        --input=S --output=H [--dialect=cdec] [--beam=30] [--pop=200] \
        [--nbest=F --nbest_size=100 --unique] [--forest=F] [--derivations=F]
    python launch/translate.py --workdir=D --system=S --input=- \
        [--source_language=de --target_language=en]

The second form translates with a finished run of launch/train.py, or with a
folder of launch/export.py. Flags of the search that are not given are then
those of the run. With --source_language the input is raw text, which is
tokenised and lower-cased as the run's training text was; with
--target_language the output is raw text.

One output line per input line. --dialect sets the format of the grammar and
the units of its features, so that weights tuned with that toolkit carry over.

Lines of over --max_words words are cut into pieces that are translated one by
one, with a warning; their n-best lists hold the best combinations of the
pieces' lists. They have no forest.

Weights of target n-grams (`ngram:...`), which the search does not know, choose
from the 100 best translations of each line, as in tuning; those of frequent
events (`Linked:`, `Ngram:`, `Trigger:`) from a second pass over the lattice of
--kind=phrase. All outputs are then
those of the re-ranked list, where every translation stands once, except for
--forest: it is what the search kept.

--search_errors decodes once more with every beam of --error_beams and every
number of candidates of --error_pops, and says how often and by how much beam
search misses the best model score, which exact search finds. Rules are as
--targets leaves them; n-grams that re-rank do not count. Lines that take exact
search over --exact_steps candidates are left out, and said.

--forest writes JSON lines in the order of decoding (each says which line it
is), for a name in .npz arrays, for a folder's name ending in / Moses'
hypergraphs. With --forest_format=openfst or slf it is a folder of lattices, one
word an arc, for --kind=phrase. --detokenize changes --output only.

--kind=phrase translates with a phrase table from left to right: --reordering
names its reordering model in Moses' format (tables of our own have it inside),
--distortion the distortion limit; --beam and --pop count for each stack.
"""

from __future__ import annotations

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment.flags import model_flags, search_flags
from jaxmt.features.weights import DIALECTS
from jaxmt.runtime import progress
from jaxmt.text import files, raw_text

if TYPE_CHECKING:  # slow to load, not needed for --help
  from jaxmt.decode.nbest import ListSettings
  from jaxmt.decode.translator import Translator

flags.adopt_module_key_flags(model_flags)
flags.adopt_module_key_flags(search_flags)
_LONG_INPUT = 2000  # lines from which a small heap is worth its system calls
_WORKDIR = flags.DEFINE_string(
  "workdir", "", "finished run, or exported folder, in place of --grammar"
)
_SYSTEM = flags.DEFINE_string(
  "system", "", "system of the run; its last one if not given"
)
_STORE = flags.DEFINE_string(
  "store", None, "the run's artefacts, if not in the workdir (as in a study)"
)
_SKIP_BAD = flags.DEFINE_bool(
  "skip_bad", False, "skip malformed rule lines and count them"
)
_WEIGHTS = flags.DEFINE_string(
  "weights", "", "lines 'name value'; or moses.ini: its weights and limits"
)
_INPUT = flags.DEFINE_string(
  "input", "-", "source text; '-' for standard input"
)
_OUTPUT = flags.DEFINE_string("output", "-", "translations")
_SOURCE_LANGUAGE = flags.DEFINE_string(
  "source_language", "", "the input is raw text of this language, e.g. de"
)
_TARGET_LANGUAGE = flags.DEFINE_string(
  "target_language", "", "write raw text of this language, e.g. en"
)
_DOMAIN = flags.DEFINE_string(
  "domain", "", "add the weights that tune.py --domains has learnt for it"
)
_THRESHOLD = flags.DEFINE_float(
  "threshold",
  float("inf"),
  "drop hypotheses so far below the best of a cell",
  lower_bound=0.0,
)
_EXACT = flags.DEFINE_bool(
  "exact", False, "no pruning, nor of target sides: small inputs only"
)
_EXACT_STEPS = flags.DEFINE_integer(
  "exact_steps",
  1 << 24,
  "candidates per sentence before --exact gives up",
  lower_bound=0,
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
  "nbest_format", None, list(DIALECTS), "format of --nbest; that of --dialect"
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
_FOREST_FORMAT = flags.DEFINE_enum(
  "forest_format",
  None,
  ("jsonl", "npz", "moses", "openfst", "slf"),
  "format of --forest, if not by its name; the last two: of phrase lattices",
)
_MARKUP = flags.DEFINE_bool(
  "markup",
  False,
  "read <wall/>, <zone> and marked translations (<n translation=...>) in the"
  " input of --kind=phrase",
)
_XML_INPUT = flags.DEFINE_enum(
  "xml_input",
  "exclusive",
  ("exclusive", "inclusive"),
  "of --markup: marked translations are used instead of phrases of the table,"
  " or beside them",
)
_DETOKENIZE = flags.DEFINE_string(
  "detokenize", "", "as --target_language, but letters stay as they are"
)
_LONGEST = flags.DEFINE_integer(
  "max_words", 250, "longer lines are cut, with a warning", lower_bound=1
)
_BATCH = flags.DEFINE_integer(
  "batch_cells", 4096, "cells searched together", lower_bound=1
)
_CACHE = flags.DEFINE_string(
  "compile_cache",
  None,
  "where compiled programs are kept; '' for nowhere; by default the user's"
  " cache",
)


def _load(lines: list[str]) -> Translator:
  """The translator, with the search that the flags ask for."""
  # Exact search copies what it knows of rules for every sentence.
  exact = _EXACT.value or _SEARCH_ERRORS.value
  known_lines = lines if exact and not _SOURCE_LANGUAGE.value else None
  if _WORKDIR.value:
    from jaxmt.experiment import saved_systems

    translator = saved_systems.load(
      _WORKDIR.value,
      _SYSTEM.value or None,
      store=_STORE.value,
      lines=known_lines,
    )
  else:
    skipped = progress.Skipped() if _SKIP_BAD.value else None
    translator = model_flags.load_translator(
      _WEIGHTS.value, lines=known_lines, on_bad=skipped
    )
    if skipped is not None:
      size = len(translator.model.table)
      progress.say(f"{size:,} rules, {skipped.count} bad lines skipped")
  return _with_flags(translator)


def _with_marked(translator: Translator, marks):
  """The translator with the translations that the input's markup gives."""
  from jaxmt.decode.phrase import phrase_model

  model, marks = phrase_model.with_marked(translator.model, marks)
  return dataclasses.replace(translator, model=model), marks


def _of_domain(weights: Mapping[str, float]) -> dict[str, float]:
  """The weights of --domain.

  Raises:
    InputError: if the file has none.
  """
  from jaxmt.tune import domains

  head = f"{domains.PREFIX}{_DOMAIN.value}:"
  if not any(name.startswith(head) for name in weights):
    raise InputError(
      f"no weights of the domain '{_DOMAIN.value}'", path=_WEIGHTS.value
    )
  return domains.effective(weights, _DOMAIN.value)


def _with_flags(translator: Translator) -> Translator:
  """The translator with weights and sizes that were given as flags."""
  from jaxmt.decode import loading, model
  from jaxmt.decode import translator as translators
  from jaxmt.features import rule_templates

  if _WEIGHTS.value:
    weights = loading.read_weights(_WEIGHTS.value)
    if _DOMAIN.value:
      weights = _of_domain(weights)
      found = rule_templates.config_of(weights)
      known = model.with_templates(translator.model, found)
      translator = dataclasses.replace(
        translator, model=model.with_weights(known, weights)
      )
    unknown = model.unknown_weights(translator.model, weights)
    if unknown:
      progress.say(
        f"warning: {_WEIGHTS.value}: no such features: {', '.join(unknown)}"
      )
    if _WORKDIR.value:
      translator = translators.with_weights(translator, weights)
  present = lambda *holders: {
    flag.name: flag.value for flag in holders if flags.FLAGS[flag.name].present
  }
  limits = present(
    model_flags.SPAN, search_flags.TARGETS, model_flags.DISTORTION
  )
  return dataclasses.replace(
    translators.with_limits(translator, **limits),
    **present(search_flags.BEAM, search_flags.POP, _THRESHOLD, _BATCH),
    backend=search_flags.BACKEND.value,
    max_words=_LONGEST.value,
    threads=_threads(),
    binarize=model_flags.binarizer() or translator.binarize,
  )


def _threads() -> int:
  """Batches at a time: 0 stands for one for each core."""
  return model_flags.THREADS.value or int(search_flags.DEVICES.value > 1)


def _make_lists(weights: Mapping[str, float]) -> ListSettings | None:
  """Which lists are needed, or None for none."""
  from jaxmt.decode import nbest

  lists = nbest.list_settings(
    weights,
    size=_NBEST_SIZE.value if _NBEST.value else 0,
    unique=_UNIQUE.value,
    diversity=_DIVERSITY.value,
  )
  for flag in (_EXACT, _DIVERSITY):
    if flag.value and lists and lists.choose:
      raise InputError(
        f"weights of whole candidates choose from a list: no --{flag.name}",
        path=_WEIGHTS.value or _WORKDIR.value,
      )
  return lists


def _derivations() -> str:
  return _DERIVATION_FORMAT.value if _DERIVATIONS.value else ""


def _translate_exactly(model, pieces, spans):
  """Translations, None where exact search takes too long."""
  from jaxmt.decode import translate
  from jaxmt.decode.chart import exact as exact_decoder

  if search_flags.TARGETS.value is None:
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


def _stream(translator, pieces, spans, marks, done, lists, candidates):
  """Fills translations and n-best lists; yields forests if they are needed."""
  from jaxmt.decode import decoding, nbest, translate
  from jaxmt.decode import translator as translators
  from jaxmt.runtime import parallel

  model, devices = translator.model, search_flags.DEVICES.value
  forests = bool(lists or _FOREST.value)
  with progress.steps(label="translate", total=len(pieces.lines)) as advance:
    for part, read in translate.stream(
      model,
      pieces,
      config=translators.decode_config(translator, forest=forests),
      mesh=parallel.make_mesh(devices) if devices > 1 else None,
      spans=spans,
      marks=marks,
      derivations=_derivations(),
    ):
      for row, one in zip(part.rows.tolist(), read, strict=True):
        done[row] = done[row] or _needed(one)
      advance(len(part.rows))
      if not forests:
        continue
      grown = decoding.forest(model, part)
      if lists:
        candidates.append(
          nbest.lists(
            model,
            part.source,
            grown,
            lists,
            rows=part.rows,
            text=_derivations() if lists.choose else "",
            shift=pieces.first[part.rows],
          )
        )
      if _FOREST.value:
        yield _spelled(model, part, grown, pieces)


def _needed(one):
  """A translation without what no output shows: text is all that piles up."""
  if not _SCORES.value:
    one = dataclasses.replace(one, features={})
  if not _LINKS.value:
    one = dataclasses.replace(one, links=one.links[:0].copy())
  return one


def _spelled(model, part, forest, pieces):
  """The forests of a decoded part, without lines that were cut."""
  import numpy as np

  from jaxmt.decode import portable_forest

  rows = pieces.row[part.rows]
  whole = np.flatnonzero(~np.isin(rows, pieces.cut))
  spelled = portable_forest.spell(model, part.source, forest, rows)
  return portable_forest.select(spelled, whole)


def _translate(translator, pieces, spans, marks, lists) -> tuple[list, list]:
  """Translations of all pieces, and their n-best lists in parts."""
  done: list = [None] * len(pieces.lines)
  candidates: list = []
  if _EXACT.value:
    done = _translate_exactly(translator.model, pieces, spans)
    if None not in done:
      return done, candidates
  forests = _stream(translator, pieces, spans, marks, done, lists, candidates)
  if _FOREST.value:
    from jaxmt.decode import forest_files, lattice_files

    if _FOREST_FORMAT.value in lattice_files.FORMATS:
      lattice_files.write(_FOREST.value, forests, format=_FOREST_FORMAT.value)
    else:
      forest_files.write(_FOREST.value, forests, format=_FOREST_FORMAT.value)
  for _ in forests:
    pass
  return done, candidates


def _write_nbest(candidates) -> None:
  from jaxmt.decode import candidate_lists
  from jaxmt.tune.formats import kbest_write

  if candidates is None:
    files.write_lines(_NBEST.value, [])
    return
  candidates = candidate_lists.shorten(candidates, _NBEST_SIZE.value)
  scores, links, _ = candidate_lists.decoded(candidates)
  lines = kbest_write.format_kbest(
    candidates,
    scores,
    format=_NBEST_FORMAT.value or model_flags.DIALECT.value,
    links=links,
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
  """The sizes to compare."""
  from jaxmt.decode.chart import search_report

  sizes = search_report.size_pairs(
    _whole_numbers(_ERROR_BEAMS), _whole_numbers(_ERROR_POPS)
  )
  if not sizes:
    raise InputError("--error_pops: all less than --error_beams")
  return sizes


def _write_search_errors(translator, pieces, spans) -> None:
  """Writes what beam search misses, a row for each of its sizes."""
  import numpy as np

  from jaxmt.decode import model as models
  from jaxmt.decode import translate
  from jaxmt.decode import translator as translators
  from jaxmt.decode.chart import search_report
  from jaxmt.report import text_tables

  source = translate.piece_source(translator.model, pieces, spans)
  source = models.select_source(source, np.flatnonzero(source.ids.lengths))
  report = search_report.search_error_report(
    translator.model,
    source,
    sizes=_error_sizes(),
    limit=_EXACT_STEPS.value,
    config=translators.decode_config(translator),
  )
  left = len(source) - report[0][2].sentences
  lines = [
    *text_tables.text(search_report.as_rows(report)).split("\n"),
    f"{left:,} of {len(source):,} sentences not compared: too large for exact"
    f" search (over {_EXACT_STEPS.value:,} candidates)",
  ]
  files.write_lines(_SEARCH_ERRORS.value, lines)


def _check_flags() -> None:
  if _WORKDIR.value:
    if model_flags.GRAMMAR.value or model_flags.LM.value:
      raise InputError("--workdir has its own --grammar and --lm")
  else:
    program.required(
      grammar=model_flags.GRAMMAR.value,
      lm=model_flags.LM.value,
      weights=_WEIGHTS.value,
    )
  if _DOMAIN.value and not _WEIGHTS.value:
    raise InputError("--domain needs --weights")
  raw_text.check(
    source_language=_SOURCE_LANGUAGE.value,
    target_language=_TARGET_LANGUAGE.value,
    detokenize=_DETOKENIZE.value,
  )
  if _MARKUP.value:
    if model_flags.KIND.value != "phrase" or _EXACT.value:
      raise InputError("--markup needs --kind=phrase, and no --exact")
    if _SOURCE_LANGUAGE.value:
      raise InputError("--markup needs tokenised input: no --source_language")
  if _FOREST_FORMAT.value in ("openfst", "slf"):
    if model_flags.KIND.value != "phrase" and not _WORKDIR.value:
      raise InputError(
        f"--forest_format={_FOREST_FORMAT.value} needs --kind=phrase"
      )
  if _EXACT.value and (_NBEST.value or _FOREST.value):
    raise InputError("--exact keeps no forest, as --nbest and --forest need")
  if model_flags.binarizer() and not model_flags.TREES.value:
    raise InputError("--binarize needs --trees")
  if _SEARCH_ERRORS.value:
    if model_flags.KIND.value == "phrase":
      raise InputError("--search_errors is of charts: no --kind=phrase")
    _error_sizes()
  if _SEARCH_ERRORS.value == _OUTPUT.value == "-":
    raise InputError("--output and --search_errors both go to standard output")


def _output_language() -> str:
  return _TARGET_LANGUAGE.value or _DETOKENIZE.value


def _cut(lines: list[str]):
  """The pieces of the lines, and what is to be said of it."""
  from jaxmt.decode import translate

  pieces = translate.cut_lines(lines, longest=_LONGEST.value)
  for row in pieces.cut:
    progress.say(
      f"warning: line {row + 1} has over {_LONGEST.value} words:"
      " translated in pieces" + ("; no forest" if _FOREST.value else "")
    )
  return pieces


def _spans(translator, lines: list[str]):
  """The constituents of the lines' trees, or None without trees."""
  from jaxmt.decode import loading

  if not model_flags.TREES.value:
    return None
  return loading.read_spans(
    model_flags.TREES.value,
    translator.model,
    lines,
    lines_path=_INPUT.value,
    binarize=translator.binarize,
  )


def _write(whole, translator) -> None:
  """Writes the translations, and what was asked for besides."""
  from jaxmt.decode import translate

  out = [one.text for one in whole]
  if _output_language():
    out = raw_text.detokenize(
      out,
      language=_output_language(),
      capitalize=bool(_TARGET_LANGUAGE.value)
      and raw_text.is_lower(translator.model.table.target_words.words),
    )
  files.write_lines(_OUTPUT.value, out)
  if _SCORES.value:
    files.write_lines(_SCORES.value, translate.score_lines(whole))
  if _DERIVATIONS.value:
    lines = translate.derivation_lines(whole, format=_DERIVATION_FORMAT.value)
    files.write_lines(_DERIVATIONS.value, lines)
  if _LINKS.value:
    files.write_lines(_LINKS.value, translate.link_lines(whole))


def main(argv: list[str]) -> None:
  """Translates."""
  del argv
  program.check_paths(
    outputs=(
      "output",
      "search_errors",
      "derivations",
      "scores",
      "links",
      "nbest",
      "forest",
    ),
    inputs=(
      *("grammar", "lm", "weights", "input", "trees", "reordering", "models"),
      *("workdir", "store"),
    ),
  )
  _check_flags()
  from jaxmt.decode import nbest, translate
  from jaxmt.runtime import compiling, parallel

  parallel.initialize(devices=search_flags.DEVICES.value, cache=_CACHE.value)
  lines = files.read_lines(_INPUT.value)
  if len(lines) >= _LONG_INPUT:
    compiling.bound_heap()
  marks = None
  if _MARKUP.value:
    from jaxmt.decode.phrase import markup

    lines, marks = markup.parse(
      lines,
      path=_INPUT.value,
      exclusive=_XML_INPUT.value == "exclusive",
    )
  translator = _load(lines)
  if marks is not None:
    translator, marks = _with_marked(translator, marks)
  lists = _make_lists(translator.weights)
  if _SOURCE_LANGUAGE.value:
    lines = raw_text.tokenize(
      lines,
      language=_SOURCE_LANGUAGE.value,
      words=translator.model.table.source_words.words,
    )
  pieces = _cut(lines)
  spans = _spans(translator, lines)
  if _SEARCH_ERRORS.value:
    _write_search_errors(translator, pieces, spans)
  done, parts = _translate(translator, pieces, spans, marks, lists)
  whole = translate.assemble(done, pieces, size=len(lines))
  candidates = None
  if lists and parts:
    candidates = nbest.collect(parts, pieces, lists, translator.weights)
    whole = nbest.best(candidates) if lists.choose else whole
  _write(whole, translator)
  if _NBEST.value:
    _write_nbest(candidates)


if __name__ == "__main__":
  program.run(main)
