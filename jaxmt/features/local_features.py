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

Then `--templates=length,TopicMatch` tunes their weights with the others. Glue
rules and the goal have none of these features. A copied word has features of
applications; its rule is the word on both sides.

The features of `rule_templates` are compiled; their records have no function.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.features import feature_keys, sparse
from jaxmt.features.feature_keys import KeyTable
from jaxmt.features.sparse import SparseRows
from jaxmt.grammar.table import Kind, RuleTable
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
  """

  name: str
  values: Callable[[RuleTable, np.ndarray, tuple[str, ...]], np.ndarray]


LocalFeature = ApplicationFeature | SentenceFeature
_REGISTRY: dict[str, LocalFeature] = {}


def register(feature: LocalFeature) -> None:
  """Makes a feature known by its name.

  Raises:
    ValueError: if its name or prefix is taken, or has a colon.
  """
  heads = {head(known) for known in _REGISTRY.values()}
  if feature.name in _REGISTRY or head(feature) in heads:
    raise ValueError(f"feature '{feature.name}' exists already")
  if ":" in feature.name + head(feature)[:-1]:
    raise ValueError(f"feature '{feature.name}': no colon in names")
  _REGISTRY[feature.name] = feature


def head(feature: LocalFeature) -> str:
  """Returns what the names of a feature's weights begin with.

  That is the prefix with the colon, or the whole name of a sentence's feature.
  """
  if isinstance(feature, ApplicationFeature):
    return feature.prefix + ":"
  return feature.name


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
  for part, names in rows(features, sentences):
    keys = feature_keys.keys_of(names)
    vector = feature_keys.sum_rows(keys, np.arange(len(names) + 1), weights)
    total += sparse.dot(part, vector)
  return total


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
      rules[rule] = _spell(sentences, rule)
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
      if not name.startswith(head(feature)):
        raise ValueError(
          f"feature '{feature.name}': '{name}' lacks '{head(feature)}'"
        )
    ids.append([number.setdefault(name, len(number)) for name in names])
  flat = from_rows(ids)
  ones = np.ones(len(flat.flat))
  return sparse.canonical(flat.flat, ones, flat.offsets), tuple(number)


def _spell(sentences: Sentences, rule: int) -> tuple:
  """Label, source and target side of a rule or of a copied word."""
  table = sentences.table
  if rule > len(table):
    word = sentences.words[rule - len(table) - 1]
    return "X", (word,), (word,)
  source = [
    table.source_words.words[symbol]
    if symbol >= 0
    else f"[{table.labels[-1 - symbol]}]"
    for symbol in table.source[rule].tolist()
  ]
  target = [
    table.target_words.words[symbol] if symbol >= 0 else f"[{-1 - symbol}]"
    for symbol in table.target[rule].tolist()
  ]
  return table.labels[table.lhs[rule]], tuple(source), tuple(target)


def _valued_rows(
  feature: SentenceFeature, sentences: Sentences
) -> tuple[SparseRows, tuple[str, ...]]:
  """One value for each application of a rule of the table but glue."""
  table = sentences.table
  rule, row = sentences.applications[:, 0], sentences.applications[:, 3]
  values = np.zeros(len(rule))
  of_table = rule < len(table)
  of_table[of_table] = table.kind[rule[of_table]] != Kind.GLUE
  for number in np.unique(row[of_table]).tolist():
    places = np.flatnonzero(of_table & (row == number))
    used, place = np.unique(rule[places], return_inverse=True)
    numbers = np.asarray(
      feature.values(table, used, sentences.sentence(number)), np.float64
    )
    if numbers.shape != used.shape or not np.isfinite(numbers).all():
      raise ValueError(
        f"feature '{feature.name}' must give {len(used)} finite numbers"
      )
    values[places] = numbers[place]
  offsets = row_offsets(np.ones(len(rule), np.int64))
  ids = np.zeros(len(rule), np.int32)
  return sparse.canonical(ids, values, offsets), (feature.name,)


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
