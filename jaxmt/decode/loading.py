"""Models from files, as the programs that decode are given them."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.model import Model
from jaxmt.decode.phrase import phrase_model
from jaxmt.decode.translator import Translator
from jaxmt.errors import InputError
from jaxmt.features import maxent_reordering, phrase_order, sentence_models
from jaxmt.features import weights as weight_files
from jaxmt.features.maxent_reordering import ReorderingModel
from jaxmt.features.sentence_models import SentenceModel
from jaxmt.features.weights import Units
from jaxmt.grammar import btg, native
from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar import reordering as reordering_lib
from jaxmt.grammar import table as tables
from jaxmt.grammar.match import matching
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.lm import arpa_read
from jaxmt.lm import tables as lm_tables
from jaxmt.lm.tables import Tables
from jaxmt.text import binarize as binarize_lib
from jaxmt.text import files, trees, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.text.trees import Trees

KINDS = ("scfg", "phrase", "btg")

_BEAM, _POP = 100, 200  # sizes of stacks, if nothing says otherwise


def read_table(
  paths: str,
  *,
  dialect: str,
  on_bad: Callable[[InputError], None] | None = None,
) -> RuleTable:
  """Reads a grammar.

  Args:
    paths: a folder of our own format, or files of another, comma-separated.
    dialect: one of `units.DIALECTS`.
    on_bad: called with malformed lines of other formats; None raises.
  """
  if dialect == "jaxmt":
    return native.read(paths)
  from jaxmt.grammar import formats  # slow to load, seldom needed

  if on_bad is None:
    return formats.read_all(paths.split(","), dialect)
  return formats.read_all(paths.split(","), dialect, on_bad=on_bad)


def read_weights(path: str) -> dict[str, float]:
  """Reads a weights file; see `jaxmt.features.weights`."""
  return weight_files.parse_weights(files.read_lines(path), path=path)


def load_files(
  grammar: str,
  *,
  lm: str,
  weights: str | Mapping[str, float],
  dialect: str = "jaxmt",
  span: int | None = None,
  targets: int | None = None,
  lines: Sequence[str] | None = None,
  on_bad: Callable[[InputError], None] | None = None,
  kind: str = "scfg",
  reordering: str = "",
  distortion: int | None = None,
  orientation: str = "word",
  matching_of: str | None = None,
  folders: Sequence[str] = (),
) -> Translator:
  """Returns a translator of files.

  Args:
    grammar: see `read_table`.
    lm: an ARPA file.
    weights: by feature name, or a file of them. A moses.ini also sets limits, a
      travatar.ini how trees are made binary.
    dialect: format of the grammar and units of features and weights.
    span: longest Hiero span; that of a moses.ini, or else 10, if None.
    targets: target sides per source pattern; that of a moses.ini, or 20.
    lines: keep only rules that these sentences can use.
    on_bad: see `read_table`.
    kind: one of `KINDS`.
    reordering: for phrases the file of a reordering model in Moses' format;
      for a BTG see `read_maxent`.
    distortion: distortion limit of phrases, -1 for none; that of a moses.ini,
      or else 6, if None.
    orientation: kind of the reordering model, "word", "phrase" or
      "hierarchical".
    matching_of: the dialect whose decoder matches rules, see `make_model`.
    folders: those of `launch/embed.py` with features of rules in sentences,
      beside those in the grammar's folder.
  """
  limits: dict[str, int] = {}
  binarize = ""
  if isinstance(weights, str):
    lines_read = files.read_lines(weights)
    limits = weight_files.moses_limits(lines_read)
    binarize = weight_files.travatar_binarizer(lines_read, path=weights)
    weights = read_weights(weights)
  table = read_table(grammar, dialect=dialect, on_bad=on_bad)
  maxent = None
  if kind == "btg":
    maxent = read_maxent(grammar, reordering, dialect=dialect)
  elif reordering:
    table = with_reordering(
      table, reordering, kind=kind, dialect=dialect, on_bad=on_bad
    )
  if distortion is None:
    distortion = limits.get("distortion", phrase_order.DEFAULT_LIMIT)
  model = make_model(
    table,
    lm,
    weights=weights,
    dialect=dialect,
    span=span or limits.get("span", 10),
    targets=targets or limits.get("targets", 20),
    lines=lines,
    kind=kind,
    distortion=distortion,
    orientation=orientation,
    maxent=maxent,
    matching_of=matching_of,
    trained=read_trained(grammar, folders, table=table, dialect=dialect),
  )
  if kind == "phrase":
    beam = limits.get("beam", _BEAM)
    return Translator(model=model, beam=beam, pop=limits.get("pop", 2 * beam))
  return Translator(model=model, pop=limits.get("pop", 200), binarize=binarize)


def read_trained(
  grammar: str,
  folders: Sequence[str],
  *,
  table: RuleTable,
  dialect: str = "jaxmt",
) -> tuple[SentenceModel, ...]:
  """Returns the trained models whose outputs are features.

  Args:
    grammar: the rules; a folder of our own may hold models.
    folders: further folders that must hold some.
    table: the rules, all of them.
    dialect: format of the grammar.

  Raises:
    InputError: if a model is damaged or does not fit the rules.
  """
  beside = sentence_models.read(grammar) if dialect == "jaxmt" else ()
  given = sentence_models.read_all(folders, table)
  sentence_models.features([*beside, *given])  # no name twice
  return (*beside, *given)


def read_maxent(
  grammar: str, reordering: str = "", *, dialect: str = "jaxmt"
) -> ReorderingModel | None:
  """Returns the maximum-entropy reordering model of a BTG, if there is one.

  Args:
    grammar: the rules; a folder of our own may hold a model.
    reordering: a folder of `extract.py --kind=btg` to take it from instead.
    dialect: format of the grammar.

  Raises:
    InputError: if `reordering` has no model, or the model is damaged.
  """
  if not reordering:
    return maxent_reordering.read(grammar) if dialect == "jaxmt" else None
  model = maxent_reordering.read(reordering)
  if model is None:
    raise InputError("has no reordering model of a BTG", path=reordering)
  return model


def with_reordering(
  table: RuleTable,
  path: str,
  *,
  kind: str,
  dialect: str,
  on_bad: Callable[[InputError], None] | None = None,
) -> RuleTable:
  """Returns a phrase table with the reordering model of a file.

  Raises:
    InputError: if the file is malformed, or the table is not of phrases.
  """
  if kind != "phrase":
    raise InputError("a reordering model needs kind 'phrase'", path=path)
  model = reordering_lib.read(path, on_bad=on_bad)
  names = models.DIALECTS[dialect].reordering
  return reordering_lib.attach(table, model, names=names)


def make_model(
  table: RuleTable,
  lm: str | Tables,
  *,
  weights: Mapping[str, float],
  dialect: str,
  span: int,
  targets: int,
  lines: Sequence[str] | None = None,
  kind: str = "scfg",
  distortion: int = phrase_order.DEFAULT_LIMIT,
  orientation: str = "word",
  maxent: ReorderingModel | None = None,
  matching_of: str | None = None,
  trained: Sequence[SentenceModel] = (),
) -> Model:
  """Returns the model of rules and a language model.

  Args:
    table: the rules.
    lm: the language model, or an ARPA file.
    weights: by feature name.
    dialect: sets the units of features, that cdec offers to copy every word,
      and that Travatar matches tree fragments exactly.
    span: longest Hiero span.
    targets: target sides per source pattern.
    lines: keep only rules that these sentences can use.
    kind: one of `KINDS`.
    distortion: distortion limit of phrases, -1 for none.
    orientation: kind of the reordering model.
    maxent: reordering model of a BTG.
    matching_of: the dialect that says which words may be copied and how tree
      fragments match; `dialect` if None.
    trained: see `read_trained`. A network of derivations takes part if its
      weight is given and not 0: without recombination search would differ.

  Raises:
    InputError: for an unknown kind, or a network that it does not have.
  """
  if kind not in KINDS:
    raise InputError(f"kind '{kind}' is none of {', '.join(KINDS)}")
  if lines is not None:
    ids = vocabulary.encode(table.source_words, lines)
    table = filter_lib.filter_table(table, ids)
  if kind == "btg":
    table = btg.with_joining_rules(table)
  units = models.DIALECTS[dialect]
  decoder = matching_of or dialect
  if dialect == "moses":
    table = _counted_as_moses(table, units, weights, kind=kind)
  if isinstance(lm, str):
    lm = lm_tables.build_tables(arpa_read.read_arpa(lm))
  searched = bool(weights.get(sentence_models.RECURSIVE, 0.0))
  if searched and kind != "btg":
    raise InputError(f"weight '{sentence_models.RECURSIVE}' needs kind 'btg'")
  if kind == "phrase":
    return phrase_model.make_model(
      table,
      lm,
      weights=weights,
      units=units,
      distortion=distortion,
      targets=targets,
      orientation=orientation,
      local=sentence_models.features(trained),
    )
  stateful = []
  if searched:
    stateful = sentence_models.stateful(trained, table, lm, maxent)
  return models.make_model(
    table,
    lm,
    weights=weights,
    units=units,
    limits=MatchConfig(
      span=span,
      targets=targets,
      pass_through="all" if decoder == "cdec" else "unknown",
      substitution="exact" if decoder == "travatar" else "fuzzy",
      glue="needed" if kind == "btg" else "always",
    ),
    features=[*maxent_reordering.make_features(maxent), *stateful],
    local=sentence_models.features(trained),
  )


def _counted_as_moses(
  table: RuleTable, units: Units, weights: Mapping[str, float], *, kind: str
) -> RuleTable:
  """Adds what Moses counts that the search does not.

  PhrasePenalty, if it has a weight, counts every rule, glue and copied words
  included. moses_chart has rules of `<s>` and `</s>`, too: two rules and two
  words more, here of the first glue rule, which every derivation has once.
  """
  ends = np.zeros(len(table))
  if kind == "scfg":
    table = models.complete(table, units)
    first = (table.kind == Kind.GLUE) & (tables.arity(table) == 1)
    ends = np.where(first, 2.0, 0.0)
    penalty = units.per_word * ends[:, None]
    table = tables.with_features(table, (units.words,), penalty)
  if units.phrases in weights:
    table = tables.with_features(table, (units.phrases,), 1 + ends[:, None])
  return table


def read_trees(
  path: str,
  lines: Sequence[str],
  *,
  lines_path: str | None = None,
  binarize: str = "",
) -> Trees:
  """Reads the trees of some sentences, one a line.

  Args:
    path: file of trees; a line without any label is a failed parse.
    lines: N tokenised sentences.
    lines_path: their file, for error messages.
    binarize: how to make the trees binary, see `text.binarize`; "": not.

  Raises:
    InputError: if there are not N, if one is malformed, or if its leaves are
      not the words of its sentence.
  """
  return _parse_trees(
    files.read_lines(path), lines, path, lines_path, binarize=binarize
  )


def make_spans(
  model: Model,
  tree_lines: Sequence[str],
  lines: Sequence[str],
  *,
  binarize: str = "",
) -> Ragged:
  """Returns the constituents of sentences whose trees are given as lines.

  Raises:
    InputError: see `read_trees`.
  """
  parsed = _parse_trees(tree_lines, lines, None, None, binarize=binarize)
  return matching.constituents(parsed, model.table.labels)


def _parse_trees(
  tree_lines: Sequence[str],
  lines: Sequence[str],
  path: str | None,
  lines_path: str | None,
  *,
  binarize: str,
) -> Trees:
  parsed = trees.parse_trees(tree_lines, path=path)
  trees.check_leaves(
    parsed, lines, path=path, lines_path=lines_path, unescape=True
  )
  return binarize_lib.binarize(parsed, binarize, path=path)


def read_spans(
  path: str, model: Model, lines: Sequence[str], **options
) -> Ragged:
  """Returns the constituents of each sentence's tree; see `read_trees`."""
  parsed = read_trees(path, lines, **options)
  return matching.constituents(parsed, model.table.labels)
