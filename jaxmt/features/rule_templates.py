"""Sparse features of rule applications.

    rule   Rule:X>ne_[X]_pas/did_not_[0]   one for each rule
    count  Count:3                         floor(log2(count)) of the rule
    shape  Shape:T0T/TT0                   terminals and non-terminals
    pairs  Lex:pas_not                     word links of the rule
    edges  Edge:fF:ne_did                  Word-Edges, see below
    bins   Bin_target_given_source_3       binned probabilities: `value_bins`

(survey, section 2.3.2; Word-Edges: Zhao et al. 2014, section 4.1). All of them
are local: they depend on the rule, its span and the source sentence. So they
take part in the search: those of the rule alone as part of its static score
(`rule_scores`), the others as a score of the application
(`application_scores`). N-grams of the target (`string_templates`) are not
local; they can only re-rank. Here are the templates that are compiled;
`local_features` says how others are added, and they are used by the same calls.

A Word-Edges feature combines some of these, written as letters:

    f, l  first and last symbol of the rule's source side
    F, L  first and last symbol of its target side
    b, a  the source words before and after the span
    n, c  number of words and of characters in the span
    h, e  first character of the span's first word, last of its last word

Glue rules and the goal have no sparse features. A copied word has its pair and
its Word-Edges. The table of features is their names (`feature_keys`): two
features are one if they are spelled alike, which words with `_` in them can
bring about.
"""

import dataclasses
import functools
from collections.abc import Iterable, Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.features import (
  feature_keys,
  local_features,
  rule_kernels,
  selection,
  sparse,
  value_bins,
)
from jaxmt.features.feature_keys import KeyTable, NamePieces
from jaxmt.features.local_features import LocalFeature
from jaxmt.features.rule_kernels import ATOMS, LITERALS, NUMBERS
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.ragged import Ragged, row_offsets

TEMPLATES = local_features.COMPILED
BINS = value_bins.NAME  # a template that is not compiled
_OF_RULES = tuple(name for name in TEMPLATES if name != "edges")
EDGES = tuple("fF lL fL lF fl FL bf la bF La ba c nF hF eL".split())
# Sets of Word-Edges by name: ends of both sides and the words around them; then
# lengths and characters, too, and combinations of three and four.
EDGE_SETS = {
  "simple": tuple("fF lL fl FL bf la bF La hF eL".split()),
  "full": (*EDGES, *"bfF laL flF flL FLn bfl fla bLa fFlL baFL".split()),
}
_SPACE = 12  # pieces of a name besides those of the rule's symbols


@dataclasses.dataclass(frozen=True, kw_only=True)
class TemplateConfig:
  """Which features a model has.

  Attributes:
    names: of registered features, see `local_features`.
    edges: combinations of letters, for the template "edges".
    min_count: rules seen less often have no feature of their own.
  """

  names: tuple[str, ...] = ("shape", "pairs")
  edges: tuple[str, ...] = EDGES
  min_count: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleTemplates:
  """Templates of the R rules of one table, as the kernels need them.

  Attributes:
    config: which templates.
    rules: columns of the table.
    table: the rules.
    added: features that are not compiled: those of the config, and others.
    used: which of the rule's own templates are in use, int64 `[4]`.
    pieces: parts of names: literals, combinations, labels, words.
    bases: the first piece of labels, source words, target words, and how many
      pieces there are.
    kinds: letters of Word-Edges by number, -1 beyond, int64 `[C, 10]`, and the
      piece that begins the names of each, int64 `[C]`.
    room: the most pieces in a name.
    local: keys of each rule's own features, uint64, R rows.
  """

  config: TemplateConfig
  rules: tuple[np.ndarray, ...]
  table: RuleTable
  added: tuple[LocalFeature, ...]
  used: np.ndarray
  pieces: NamePieces
  bases: tuple[int, int, int, int]
  kinds: tuple[np.ndarray, np.ndarray]
  room: int
  local: Ragged

  @property
  def need_sentences(self) -> bool:
    """Whether there are features beside the rules' own."""
    return len(self.kinds[1]) > 0 or len(self.added) > 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Text:
  """Source sentences; what compiled features read of them is made when asked.

  Attributes:
    templates: whose pieces those of the text follow.
    tokens: the word of each token, B rows of numbers below P.
    words: the P distinct words.
  """

  templates: RuleTemplates
  tokens: Ragged
  words: tuple[str, ...]

  @functools.cached_property
  def pieces(self) -> NamePieces:
    """Those of the templates, then words and their characters."""
    words = self.words
    characters = [word[0] for word in words] + [word[-1] for word in words]
    return feature_keys.join_pieces(
      self.templates.pieces, feature_keys.make_pieces([*words, *characters])
    )

  @functools.cached_property
  def columns(self) -> tuple[np.ndarray, ...]:
    """See `rule_kernels.write_edge`."""
    spans = np.array([len(word) for word in self.words], np.int64)
    flat = np.ascontiguousarray(self.tokens.flat, np.int64)
    lengths = np.zeros(len(flat) + 1, np.int64)
    lengths[1:] = np.cumsum(spans[flat]) if len(flat) else 0
    size = len(self.words)
    return (
      flat,
      np.asarray(self.tokens.offsets, np.int64),
      lengths,
      np.arange(size, 2 * size),
      np.arange(2 * size, 3 * size),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Applications:
  """N rule applications.

  Attributes:
    rule: rules of the table; R is the goal, R + 1 + p copies word p of the
      text; int `[N]`.
    begin: first source word, `[N]`.
    end: one past the last, `[N]`.
    sentence: of the text, `[N]`.
  """

  rule: np.ndarray
  begin: np.ndarray
  end: np.ndarray
  sentence: np.ndarray

  def __len__(self) -> int:
    return len(self.rule)

  def stacked(self) -> np.ndarray:
    """All columns, int64 `[N, 4]`."""
    columns = (self.rule, self.begin, self.end, self.sentence)
    return np.stack(columns, axis=1).astype(np.int64)


def check(config: TemplateConfig) -> None:
  """Raises InputError for an unknown template or letter."""
  registered = local_features.registered()
  for name in config.names:
    if name not in registered:
      known = ", ".join(registered)
      raise InputError(
        f"unknown feature template '{name}', not one of: {known}"
      )
  for letters in config.edges:
    if not letters or set(letters) - set(ATOMS):
      raise InputError(
        f"Word-Edges '{letters}': expected some of the letters {ATOMS}"
      )


def parse(names: Sequence[str]) -> TemplateConfig:
  """Reads names of templates; `edges:fF+lL` chooses Word-Edges.

  `edges:simple` and `edges:full` are sets of them.

  Raises:
    InputError: see `check`.
  """
  edges: list[str] = []
  kinds = []
  for name in names:
    kind, colon, letters = name.partition(":")
    kinds.append(kind if kind == "edges" else name)
    if colon and kind == "edges":
      edges += EDGE_SETS.get(letters) or letters.split("+")
  config = TemplateConfig(
    names=tuple(dict.fromkeys(kinds)),
    edges=tuple(dict.fromkeys(edges)) or EDGES,
  )
  check(config)
  return config


def config_of(weights: Iterable[str]) -> TemplateConfig:
  """Returns the templates that the features of some weights belong to."""
  heads: set[str] = set()  # with the colon, if there is one
  edges: dict[str, None] = {}
  for name in weights:
    head, colon, rest = name.partition(":")
    letters, more, _ = rest.partition(":")
    if head == "Edge" and more and letters and not set(letters) - set(ATOMS):
      edges[letters] = None
    elif head != "Edge":
      heads.add(head + colon)
  names = [
    name
    for name, feature in local_features.registered().items()
    if not heads.isdisjoint(local_features.heads(feature))
    or (name == "edges" and edges)
  ]
  return TemplateConfig(names=tuple(names), edges=tuple(edges))


def is_template_weight(name: str) -> bool:
  """Whether a weight's name is one that a template makes."""
  return bool(config_of([name]).names)


def make_templates(
  table: RuleTable,
  config: TemplateConfig,
  *,
  local: Sequence[LocalFeature] = (),
) -> RuleTemplates:
  """Prepares templates for the rules of a table.

  Args:
    table: the rules.
    config: which templates.
    local: features that are not registered, used with those of the config.

  Raises:
    InputError: see `check`.
  """
  check(config)
  edges = config.edges if "edges" in config.names else ()
  labels = len(LITERALS) + NUMBERS + len(edges)
  source = labels + len(table.labels)
  target = source + len(table.source_words)
  pieces = feature_keys.make_pieces(
    [
      *LITERALS,
      *map(str, range(NUMBERS)),
      *(f"Edge:{letters}:" for letters in edges),
      *table.labels,
      *table.source_words.words,
      *table.target_words.words,
    ]
  )
  bases = (labels, source, target, target + len(table.target_words))
  combinations = np.full((len(edges), len(ATOMS)), -1, np.int64)
  for row, letters in enumerate(edges):
    combinations[row, : len(letters)] = [ATOMS.index(c) for c in letters]
  rules = _columns(table, config)
  longest = table.source.lengths.max(initial=0)
  longest += table.target.lengths.max(initial=0)
  room = _SPACE + 4 * int(max(longest, len(ATOMS)))
  used = np.array([name in config.names for name in _OF_RULES], np.int64)
  registered = local_features.registered()
  templates = RuleTemplates(
    config=config,
    rules=rules,
    table=table,
    added=(
      *(registered[name] for name in config.names if name not in TEMPLATES),
      *local,
    ),
    used=used,
    pieces=pieces,
    bases=bases,
    kinds=(
      combinations,
      np.arange(labels - len(edges), labels, dtype=np.int64),
    ),
    room=room,
    local=Ragged(flat=np.zeros(0, np.uint64), offsets=np.zeros(1, np.int64)),
  )
  everything = np.zeros((len(table), 4), np.int64)
  everything[:, 0] = np.arange(len(table))
  nothing = Ragged(flat=np.zeros(0, np.int64), offsets=np.zeros(1, np.int64))
  keys, offsets = rule_kernels.keys_of(
    everything,
    (combinations[:0], np.zeros(0, np.int64)),
    *_rest(templates, make_text(templates, nothing, ())),
  )
  return dataclasses.replace(
    templates, local=Ragged(flat=keys, offsets=offsets)
  )


def _rest(templates: RuleTemplates, text: "Text"):
  """The arguments all kernels end with."""
  return (
    templates.rules,
    templates.used,
    templates.bases,
    text.columns,
    text.pieces,
    templates.room,
  )


def _columns(
  table: RuleTable, config: TemplateConfig
) -> tuple[np.ndarray, ...]:
  counts = np.asarray(table.counts, np.float64)
  return (
    np.ascontiguousarray(table.source.flat, np.int32),
    np.asarray(table.source.offsets, np.int64),
    np.ascontiguousarray(table.target.flat, np.int32),
    np.asarray(table.target.offsets, np.int64),
    np.ascontiguousarray(table.lhs, np.int32),
    np.ascontiguousarray(table.links.flat, np.int16).reshape(-1, 2),
    np.asarray(table.links.offsets, np.int64),
    np.asarray(table.kind == Kind.GLUE),
    counts >= config.min_count,
    np.log2(np.maximum(counts, 1.0)).astype(np.int64),
  )


def make_text(
  templates: RuleTemplates, tokens: Ragged, words: Sequence[str]
) -> Text:
  """Prepares source sentences.

  Args:
    templates: whose pieces those of the text follow.
    tokens: numbers of words, B rows.
    words: the P distinct words.
  """
  return Text(templates=templates, tokens=tokens, words=tuple(words))


def rule_scores(templates: RuleTemplates, table: KeyTable) -> np.ndarray:
  """Returns the summed weights of each rule's own features, float64 `[R]`."""
  local = templates.local
  return feature_keys.sum_rows(local.flat, local.offsets, table)


def copy_scores(
  templates: RuleTemplates, words: Sequence[str], table: KeyTable
) -> np.ndarray:
  """Returns the same of copying each of P words, float64 `[P]`."""
  if not templates.used[_OF_RULES.index("pairs")]:
    return np.zeros(len(words))
  keys = feature_keys.keys_of([f"Lex:{word}_{word}" for word in words])
  return feature_keys.sum_rows(keys, np.arange(len(words) + 1), table)


def application_scores(
  templates: RuleTemplates,
  text: Text,
  applications: Applications,
  table: KeyTable,
) -> np.ndarray:
  """Returns the summed weights of features that `rule_scores` leaves out.

  These are Word-Edges and features that are not compiled; float64 `[N]`.
  """
  total = np.zeros(len(applications))
  if len(templates.kinds[1]):
    total += rule_kernels.edge_scores(
      applications.stacked(),
      templates.kinds,
      templates.rules,
      templates.bases,
      text.columns,
      text.pieces,
      tuple(table),
    )
  if templates.added:
    sentences = _sentences(templates, text, applications)
    total += local_features.scores(templates.added, sentences, table)
  return total


def _sentences(
  templates: RuleTemplates, text: Text, applications: Applications
) -> local_features.Sentences:
  """What features that are not compiled read."""
  return local_features.Sentences(
    table=templates.table,
    tokens=text.tokens,
    words=text.words,
    applications=applications.stacked(),
  )


def application_keys(
  templates: RuleTemplates, text: Text, applications: Applications
) -> Ragged:
  """Returns the keys of each application's compiled features; uint64."""
  keys, offsets = rule_kernels.keys_of(
    applications.stacked(), templates.kinds, *_rest(templates, text)
  )
  return Ragged(flat=keys, offsets=offsets)


def extract(
  templates: RuleTemplates, text: Text, applications: Applications
) -> tuple[sparse.SparseRows, tuple[str, ...]]:
  """Returns the features of each application.

  Returns:
    `(rows, names)`: N sparse vectors, and names in order of first occurrence,
    those of compiled templates first.
  """
  keys = application_keys(templates, text, applications)
  _, first, ids = np.unique(keys.flat, return_index=True, return_inverse=True)
  order = np.argsort(first, kind="stable")
  rank = np.empty(len(order), np.int32)
  rank[order] = np.arange(len(order))
  shown = first[order]
  row = np.searchsorted(keys.offsets, shown, side="right") - 1
  names = spell(
    templates, text, applications.stacked()[row], shown - keys.offsets[row]
  )
  rows = sparse.canonical(rank[ids], np.ones(len(ids)), keys.offsets)
  if not templates.added:
    return rows, names
  sentences = _sentences(templates, text, applications)
  added = local_features.rows(templates.added, sentences)
  return selection.join([(rows, names), *added])


def spell(templates, text, applications, slots) -> tuple[str, ...]:
  """The names of features: `slots [N]` of `applications [N, 4]`."""
  if not len(slots):
    return ()
  data = rule_kernels.spell(
    applications, slots, templates.kinds, *_rest(templates, text)
  )
  return tuple(data.tobytes().decode("utf-8").split("\n")[:-1])


def sum_rows(rows: sparse.SparseRows, members: Ragged) -> sparse.SparseRows:
  """Returns the sum of some rows for each of D derivations.

  Args:
    rows: features of N applications.
    members: which applications, D rows.
  """
  lengths = np.diff(rows.offsets)[members.flat]
  taken = sparse.select(rows, members.flat)
  ends = row_offsets(lengths)
  return sparse.canonical(taken.ids, taken.values, ends[members.offsets])
