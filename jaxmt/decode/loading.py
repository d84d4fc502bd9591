"""Models from files, as the programs that decode are given them."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.model import Model
from jaxmt.decode.translator import Translator
from jaxmt.errors import InputError
from jaxmt.features import weights as weight_files
from jaxmt.grammar import filter as filter_lib
from jaxmt.grammar import native
from jaxmt.grammar import table as tables
from jaxmt.grammar.match import matching
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.table import RuleTable
from jaxmt.lm import arpa_read
from jaxmt.lm import tables as lm_tables
from jaxmt.text import binarize as binarize_lib
from jaxmt.text import files, trees, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.text.trees import Trees

_PHRASES = "PhrasePenalty0"


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
  targets: int = 20,
  lines: Sequence[str] | None = None,
  on_bad: Callable[[InputError], None] | None = None,
) -> Translator:
  """Returns a translator of files.

  Args:
    grammar: see `read_table`.
    lm: an ARPA file.
    weights: by feature name, or a file of them. A moses.ini also sets limits.
    dialect: format of the grammar and units of features and weights.
    span: longest Hiero span; that of a moses.ini, or else 10, if None.
    targets: target sides per source pattern.
    lines: keep only rules that these sentences can use.
    on_bad: see `read_table`.
  """
  limits: dict[str, int] = {}
  if isinstance(weights, str):
    limits = weight_files.moses_limits(files.read_lines(weights))
    weights = read_weights(weights)
  table = read_table(grammar, dialect=dialect, on_bad=on_bad)
  model = make_model(
    table,
    lm,
    weights=weights,
    dialect=dialect,
    span=span or limits.get("span", 10),
    targets=targets,
    lines=lines,
  )
  return Translator(model=model, pop=limits.get("pop", 200))


def make_model(
  table: RuleTable,
  lm_path: str,
  *,
  weights: Mapping[str, float],
  dialect: str,
  span: int,
  targets: int,
  lines: Sequence[str] | None = None,
) -> Model:
  """Returns the model of rules and a language model's file.

  Args:
    table: the rules.
    lm_path: an ARPA file.
    weights: by feature name.
    dialect: sets the units of features, and that cdec offers to copy every
      word.
    span: longest Hiero span.
    targets: target sides per source pattern.
    lines: keep only rules that these sentences can use.
  """
  if lines is not None:
    ids = vocabulary.encode(table.source_words, lines)
    table = filter_lib.filter_table(table, ids)
  if dialect == "moses" and _PHRASES in weights:
    # Moses counts every rule, glue and copied words included.
    table = tables.with_features(table, (_PHRASES,), np.ones((len(table), 1)))
  return models.make_model(
    table,
    lm_tables.build_tables(arpa_read.read_arpa(lm_path)),
    weights=weights,
    units=models.DIALECTS[dialect],
    limits=MatchConfig(
      span=span,
      targets=targets,
      pass_through="all" if dialect == "cdec" else "unknown",
    ),
  )


def read_trees(
  path: str,
  lines: Sequence[str],
  *,
  lines_path: str | None = None,
  binarize: bool = False,
) -> Trees:
  """Reads the trees of some sentences, one a line.

  Args:
    path: file of trees; a line without any label is a failed parse.
    lines: N tokenised sentences.
    lines_path: their file, for error messages.
    binarize: whether to make the trees binary, left-heavy.

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
  binarize: bool = False,
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
  binarize: bool,
) -> Trees:
  parsed = trees.parse_trees(tree_lines, path=path)
  trees.check_leaves(
    parsed, lines, path=path, lines_path=lines_path, unescape=True
  )
  if binarize:
    parsed = binarize_lib.binarize_left_heavy(parsed, path=path)
  return parsed


def read_spans(
  path: str, model: Model, lines: Sequence[str], **options
) -> Ragged:
  """Returns the constituents of each sentence's tree; see `read_trees`."""
  parsed = read_trees(path, lines, **options)
  return matching.constituents(parsed, model.table.labels)
