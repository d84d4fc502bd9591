"""Features of rule applications and of sentences, by name.

Two contracts, both for features that are local: they need no more than the
rule, where it is applied, and the source sentence. So they take part in the
search.

*Per application*: `names(application) -> names of features`, each with the
value 1. All names begin with the feature's prefix and a colon, by which weights
in a file bring their features along.

    local_features.register(ApplicationFeature(
      name="length",
      prefix="Length",
      names=lambda a: [f"Length:{a.end - a.begin}"],
    ))

*Per sentence*: `values(table, rules, sentence) -> [N]`, one number for each of
N rules of the table that are used in a sentence: how well a rule suits it.

    local_features.register(SentenceFeature(
      name="TopicMatch",
      values=lambda table, rules, sentence: topics[rules] @ topic_of(sentence),
    ))

A feature that is faster for many sentences together has the function
`batch(table, rules, rows, sentences) -> [N]`, too: the same numbers for pairs
of a rule and one of the sentences, whatever the other pairs are.

Then `--templates=length,TopicMatch` tunes their weights with the others. Glue
rules and the goal have none of these features. A copied word has features of
applications; its rule is the word on both sides.

The features of `rule_templates` are compiled; their records have no function.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.features import feature_keys, sparse
from jaxmt.features.feature_keys import KeyTable
from jaxmt.features.sparse import SparseRows
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, from_rows, row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class Application:
  """A rule applied to a span of a sentence.

  Attributes:
    lhs: the rule's label.
    source: its source side: words, and labels in brackets such as "[NP]".
    target: its target side: words, and numbers of sites such as "[0]".
    begin: first source word of the span.
    end: one past the last.
    sentence: words of the source sentence.
  """

  lhs: str
  source: tuple[str, ...]
  target: tuple[str, ...]
  begin: int
  end: int
  sentence: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ApplicationFeature:
  """A template of features of rule applications.

  Attributes:
    name: what `TemplateConfig.names` calls it.
    prefix: what its features' names begin with, before a colon.
    names: the features of an application; None for a compiled template.
  """

  name: str
  prefix: str
  names: Callable[[Application], Sequence[str]] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceFeature:
  """A real-valued feature of the rules used in a sentence.

  Attributes:
    name: of the feature and its weight; has no colon.
    values: `(table, rules [N], sentence) -> [N]`, see above.
    batch: the same, `(table, rules [N], rows [N], sentences) -> [N]`, or None.
    columns: names of C weights of a feature with several values, which are
      `[N, C]` then.
  """

  name: str
  values: Callable[[RuleTable, np.ndarray, tuple[str, ...]], np.ndarray]
  batch: (
    Callable[
      [RuleTable, np.ndarray, np.ndarray, Sequence[tuple[str, ...]]], np.ndarray
    ]
    | None
  ) = None
  columns: tuple[str, ...] = ()

  @property
  def names(self) -> tuple[str, ...]:
    """Names of its weights."""
    return self.columns or (self.name,)


LocalFeature = ApplicationFeature | SentenceFeature
_REGISTRY: dict[str, LocalFeature] = {}


def register(feature: LocalFeature) -> None:
  """Makes a feature known by its name.

  Raises:
    ValueError: if its name or prefix is taken, or has a colon.
  """
  known = {one for other in _REGISTRY.values() for one in heads(other)}
  if feature.name in _REGISTRY or known & {*heads(feature)}:
    raise ValueError(f"feature '{feature.name}' exists already")
  if ":" in feature.name + "".join(one[:-1] for one in heads(feature)):
    raise ValueError(f"feature '{feature.name}': no colon in names")
  _REGISTRY[feature.name] = feature


def heads(feature: LocalFeature) -> tuple[str, ...]:
  """Returns what the names of a feature's weights begin with.

  That is the prefix with the colon, or whole names of a sentence's feature.
  """
  if isinstance(feature, ApplicationFeature):
    return (feature.prefix + ":",)
  return feature.names


def registered() -> dict[str, LocalFeature]:
  """Returns all features by name."""
  return dict(_REGISTRY)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sentences:
  """Source sentences as strings, and N applications of a table's rules.

  Attributes:
    table: R rules.
    tokens: the word of each token, B rows of numbers below P.
    words: the P distinct words.
    applications: rule (R: the goal, R + 1 + p: copies word p), begin, end,
      sentence, int64 `[N, 4]`.
  """

  table: RuleTable
  tokens: Ragged
  words: tuple[str, ...]
  applications: np.ndarray

  def sentence(self, row: int) -> tuple[str, ...]:
    """Returns the words of a sentence."""
    return tuple(self.words[word] for word in self.tokens[row].tolist())

  @functools.cached_property
  def used(self) -> "UsedRules":
    """The rules of the table, but glue, that each sentence uses."""
    rule, row = self.applications[:, 0], self.applications[:, 3]
    of_table = rule < len(self.table)
    of_table[of_table] = self.table.kind[rule[of_table]] != Kind.GLUE
    places = np.flatnonzero(of_table)
    rules, rows, pair = _distinct(
      rule[places], row[places], len(self.table), len(self.tokens)
    )
    return UsedRules(rules=rules, rows=rows, places=places, pair=pair)


@dataclasses.dataclass(frozen=True, kw_only=True)
class UsedRules:
  """The U different pairs of a sentence and a rule that it uses, by sentence.

  Attributes:
    rules: of the table, int64 `[U]`.
    rows: sentences, rising, int64 `[U]`.
    places: of the P applications that have such a pair, int64 `[P]`.
    pair: of each of these, int64 `[P]`.
  """

  rules: np.ndarray
  rows: np.ndarray
  places: np.ndarray
  pair: np.ndarray


@njit
def _distinct(rules, rows, size, sentences):
  """Distinct pairs: `(rules, rows, the pair of each item)`.

  Args:
    rules: below `size`, `[P]`.
    rows: below `sentences`, `[P]`.
    size: number of rules.
    sentences: number of sentences.
  """
  # Items by sentence.
  ends = np.zeros(sentences + 1, np.int64)
  for row in rows:
    ends[row + 1] += 1
  for row in range(sentences):
    ends[row + 1] += ends[row]
  order = np.empty(len(rows), np.int64)
  for item in range(len(rows)):
    order[ends[rows[item]]] = item
    ends[rows[item]] += 1
  # The last pair of each rule, which counts if it is of the same sentence.
  latest = np.full(size, -1, np.int64)
  chosen = np.empty(len(rows), np.int64)
  pair = np.empty(len(rows), np.int64)
  count = 0
  for item in order:
    rule = rules[item]
    known = latest[rule]
    if known < 0 or rows[chosen[known]] != rows[item]:
      known = count
      latest[rule] = count
      chosen[count] = item
      count += 1
    pair[item] = known
  chosen = chosen[:count]
  return rules[chosen], rows[chosen], pair


def rows(
  features: Sequence[LocalFeature], sentences: Sentences
) -> list[tuple[SparseRows, tuple[str, ...]]]:
  """Returns the vectors of N applications, one part for each feature."""
  return [
    _named_rows(feature, sentences)
    if isinstance(feature, ApplicationFeature)
    else _valued_rows(feature, sentences)
    for feature in features
  ]


def scores(
  features: Sequence[LocalFeature], sentences: Sentences, weights: KeyTable
) -> np.ndarray:
  """Returns the summed weighted features of N applications, float64 `[N]`."""
  total = np.zeros(len(sentences.applications))
  for feature in features:
    if isinstance(feature, ApplicationFeature):
      part, names = _named_rows(feature, sentences)
      total += sparse.dot(part, _vector(names, weights))
      continue
    vector = _vector(feature.names, weights)
    if vector.any():  # networks are not computed for nothing
      used = sentences.used
      total[used.places] += (_values(feature, sentences) @ vector)[used.pair]
  return total


def _vector(names: Sequence[str], weights: KeyTable) -> np.ndarray:
  """The weights of names, float64."""
  keys = feature_keys.keys_of(names)
  return feature_keys.sum_rows(keys, np.arange(len(names) + 1), weights)


def _named_rows(
  feature: ApplicationFeature, sentences: Sentences
) -> tuple[SparseRows, tuple[str, ...]]:
  """Indicator features, numbered in order of first occurrence."""
  if feature.names is None:
    raise ValueError(f"feature '{feature.name}' is compiled")
  table = sentences.table
  number: dict[str, int] = {}
  texts: dict[int, tuple[str, ...]] = {}
  rules: dict[int, tuple] = {}
  ids = []
  for rule, begin, end, row in sentences.applications.tolist():
    if rule == len(table) or (
      rule < len(table) and table.kind[rule] == Kind.GLUE
    ):
      ids.append([])
      continue
    if row not in texts:
      texts[row] = sentences.sentence(row)
    if rule not in rules:
      rules[rule] = spell_rule(table, sentences.words, rule)
    lhs, source, target = rules[rule]
    application = Application(
      lhs=lhs,
      source=source,
      target=target,
      begin=begin,
      end=end,
      sentence=texts[row],
    )
    names = feature.names(application)
    for name in names:
      if not name.startswith(heads(feature)):
        raise ValueError(
          f"feature '{feature.name}': '{name}' lacks '{heads(feature)[0]}'"
        )
    ids.append([number.setdefault(name, len(number)) for name in names])
  flat = from_rows(ids)
  ones = np.ones(len(flat.flat))
  return sparse.canonical(flat.flat, ones, flat.offsets), tuple(number)


def spell_rule(
  table: RuleTable, words: Sequence[str], rule: int
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
  """Returns label, source and target side of a rule or of a copied word.

  Args:
    table: R rules.
    words: the P distinct words of the text.
    rule: below R, or R + 1 + p.
  """
  if rule > len(table):
    word = words[rule - len(table) - 1]
    return "X", (word,), (word,)
  source = tuple(
    table.source_words.words[symbol]
    if symbol >= 0
    else f"[{table.labels[-1 - symbol]}]"
    for symbol in table.source[rule].tolist()
  )
  target = tuple(
    table.target_words.words[symbol] if symbol >= 0 else f"[{-1 - symbol}]"
    for symbol in table.target[rule].tolist()
  )
  return table.labels[table.lhs[rule]], source, target


def _valued_rows(
  feature: SentenceFeature, sentences: Sentences
) -> tuple[SparseRows, tuple[str, ...]]:
  """The values of each application of a rule of the table but glue."""
  count, columns = len(sentences.applications), len(feature.names)
  values = np.zeros((count, columns))
  used = sentences.used
  values[used.places] = _values(feature, sentences)[used.pair]
  offsets = row_offsets(np.full(count, columns, np.int64))
  ids = np.tile(np.arange(columns, dtype=np.int32), count)
  return sparse.canonical(ids, values.reshape(-1), offsets), feature.names


def _values(feature: SentenceFeature, sentences: Sentences) -> np.ndarray:
  """The values of the U pairs of a sentence and a rule, float64 `[U, C]`."""
  used, table = sentences.used, sentences.table
  numbers = np.zeros((len(used.rules), len(feature.names)))
  cuts = np.flatnonzero(np.diff(used.rows, prepend=-1, append=-1))
  if feature.batch is not None:
    lines = [sentences.sentence(row) for row in used.rows[cuts[:-1]].tolist()]
    rows = np.repeat(np.arange(len(lines)), np.diff(cuts))
    computed = feature.batch(table, used.rules, rows, lines)
    numbers[:] = _checked(feature, computed, len(numbers))
    return numbers
  for low, high in itertools.pairwise(cuts.tolist()):
    sentence = sentences.sentence(int(used.rows[low]))
    computed = feature.values(table, used.rules[low:high], sentence)
    numbers[low:high] = _checked(feature, computed, high - low)
  return numbers


def _checked(feature: SentenceFeature, values, count: int) -> np.ndarray:
  """What a feature gave for some rules, float64 `[count, C]`."""
  values = np.asarray(values, np.float64)
  shape = (count, *([len(feature.columns)] if feature.columns else []))
  if values.shape != shape or not np.isfinite(values).all():
    raise ValueError(
      f"feature '{feature.name}' must give {count} finite numbers"
    )
  return values.reshape(count, -1)


# The compiled templates, in the order that the kernels number them.
for _name, _prefix in (
  ("rule", "Rule"),
  ("count", "Count"),
  ("shape", "Shape"),
  ("pairs", "Lex"),
  ("edges", "Edge"),
):
  register(ApplicationFeature(name=_name, prefix=_prefix))
COMPILED = tuple(_REGISTRY)
