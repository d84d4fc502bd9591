"""A translation model: rules, language model and weights, ready to decode.

The score of a derivation is `Σ_i λ_i φ_i`: rule features summed over its rules,
the number of words and of unknown words, and stateful features: the language
model, sites filled by their own or by another label, and any that are added
(see `features.stateful`). `features.weights.Units` says in which units features
are measured, so that weights tuned with another toolkit carry over.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmt.decode.phrase.markup import Marks, select_marks
from jaxmt.features import (
  feature_keys,
  frequent_events,
  language_model,
  local_features,
  rule_templates,
  string_templates,
)
from jaxmt.features import stateful as feature_base
from jaxmt.features.feature_keys import KeyedWeights
from jaxmt.features.language_model import LanguageModelFeature
from jaxmt.features.local_features import LocalFeature
from jaxmt.features.phrase_order import PhraseOrder, order_scores
from jaxmt.features.rule_templates import RuleTemplates, TemplateConfig
from jaxmt.features.stateful import (
  LabelMatch,
  RuleColumns,
  RuleSides,
  StatefulFeature,
)
from jaxmt.features.weights import DIALECTS, Units
from jaxmt.grammar import table as tables
from jaxmt.grammar.match import applications
from jaxmt.grammar.match import source_trie as tries
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.grammar.match.source_trie import Trie
from jaxmt.grammar.table import Kind, RuleTable
from jaxmt.lm.tables import BOS_WORD, EOS_WORD, UNK_WORD, Tables
from jaxmt.text import ragged, vocabulary
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
  """R rules with weights, and what decoding needs of them.

  Attributes:
    table: the rules, glue and pass-through among them.
    trie: their source sides.
    ranked: rules of each trie node, best first.
    features: the stateful features: language model, labels, then others.
    parameters: parameters of each, on the host; first the language model.
    units: see `Units`.
    weights: weight of every feature by name; missing ones are 0.
    columns: what the search knows of the rules and of the goal, R + 1 rows.
    counts: unknown words and word penalty of their targets, `[R + 1, 2]`.
    lm_words: language model ids of the target vocabulary, int32 `[V]`.
    copy_rule: the pass-through rule.
    arity: A.
    limits: how to match.
    templates: sparse features of rule applications, or None. Their weights are
      found in `weights` by name.
    local: features of rules in sentences that the model brings along, such as
      trained networks; their weights are found in `weights` by name, too.
    version: another object for other weights or feature values.
    order: of a phrase-based model, how phrases are ordered; None for a model
      that is searched in a chart.
    distortion: of a phrase-based model, weight of the distortion.
    order_scores: reordering logs times weights, float32 `[R + 1, 6]`; one row
      without phrases.
  """

  table: RuleTable
  trie: Trie
  ranked: Ragged
  features: tuple[StatefulFeature, ...]
  parameters: tuple[Any, ...]
  units: Units
  weights: Mapping[str, float]
  columns: RuleColumns
  counts: np.ndarray
  lm_words: np.ndarray
  copy_rule: int
  arity: int
  limits: MatchConfig
  templates: RuleTemplates | None = None
  local: tuple[LocalFeature, ...] = ()
  version: object = None
  order: PhraseOrder | None = None
  distortion: float = 0.0
  order_scores: np.ndarray = dataclasses.field(
    default_factory=lambda: np.zeros((1, 6), np.float32)
  )

  @property
  def phrase_order(self) -> PhraseOrder:
    """The order of a phrase-based model.

    Raises:
      ValueError: if the model is searched in a chart.
    """
    if self.order is None:
      raise ValueError("not a phrase-based model")
    return self.order

  @property
  def lm(self) -> Tables:
    """The language model."""
    return self.parameters[0]

  @property
  def extra(self) -> tuple[StatefulFeature, ...]:
    """The stateful features beside the language model and the labels."""
    return self.features[2:]

  @property
  def lm_weight(self) -> float:
    """Weight of ln p."""
    return self.weights.get(self.units.lm, 0.0) * self.units.lm_scale

  @property
  def label_weights(self) -> tuple[float, float]:
    """Scores of a matching and of another label."""
    return (
      self.weights.get(self.units.match, 0.0),
      self.weights.get(self.units.mismatch, 0.0),
    )

  @property
  def num_rules(self) -> int:
    """R; in numberings of applied rules, the goal."""
    return len(self.counts) - 1

  @functools.cached_property
  def feature_names(self) -> tuple[str, ...]:
    """Names of the values `translation_forest.derivation_features` gives."""
    search_names = self.units.search_names
    if self.order is not None:
      search_names = (*search_names, *self.order.names)
    added = (name for feature in self.extra for name in feature.names)
    return (
      *(n for n in self.table.feature_names if n not in search_names),
      *search_names,
      *added,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
  """Sentences to translate.

  Attributes:
    ids: source word ids, N rows.
    copies: which pass-through word each token is, int32, aligned with `ids`.
    words: the P distinct tokens.
    columns: what the search knows of copying them, P rows.
    counts: unknown words and word penalty of each, `[P, 2]`.
    target_words: their ids in the target vocabulary, -1 for none, int32 `[P]`.
    lm_words: their language model ids, int32 `[P]`.
    spans: constituents per sentence, or None.
    marks: walls, zones and marked translations of the sentences, for phrases,
      or None.
    version: of the model whose weights `columns.score` has.
  """

  ids: Ragged
  copies: np.ndarray
  words: tuple[str, ...]
  columns: RuleColumns
  counts: np.ndarray
  target_words: np.ndarray
  lm_words: np.ndarray
  spans: Ragged | None = None
  marks: Marks | None = None
  version: object = None

  def __len__(self) -> int:
    return len(self.ids)


def complete(
  table: RuleTable, units: Units, *, exact: bool = False
) -> RuleTable:
  """Adds the glue and pass-through rules a table lacks.

  Rules added have the indicator features `units.glue` (on `S -> S X`) and
  `units.pass_through`.

  Args:
    table: the rules.
    units: names of the indicator features.
    exact: whether trees are matched exactly, which needs rules that join the
      children of nodes that no rule matches. They have the features of the
      rule that copies a word.
  """
  added = tables.glue_rules(table.source_words, table.target_words)
  arities = tables.arity(table)
  glue = table.kind == Kind.GLUE
  exists = (
    np.any(glue & (arities == 1)),
    np.any(glue & (arities == 2)),
    np.any(table.kind == Kind.PASS_THROUGH),
  )
  missing = np.flatnonzero(~np.array(exists))
  if len(missing):
    added = tables.with_features(
      added,
      (units.glue, units.pass_through),
      np.array([[0, 0], [1, 0], [0, 1]], np.float32),
    )
    table = tables.concatenate([table, tables.select(added, missing)])
  copying = np.flatnonzero(table.kind == Kind.PASS_THROUGH)
  if exact and len(copying) == 1:
    joins = tables.joining_rules(table.source_words, table.target_words)
    values = np.tile(table.features[copying], (3, 1))
    values[2] = 0  # only one part of joining a long list of children counts
    joins = tables.with_features(joins, table.feature_names, values)
    table = tables.concatenate([table, joins])
  return table


def make_model(
  table: RuleTable,
  lm: Tables,
  *,
  weights: Mapping[str, float],
  units: Units = DIALECTS["jaxmt"],
  limits: MatchConfig | None = None,
  arity: int | None = None,
  features: Sequence[tuple[StatefulFeature, Any]] = (),
  local: Sequence[LocalFeature] = (),
  order: PhraseOrder | None = None,
) -> Model:
  """Prepares a table, completed if need be, for decoding.

  Args:
    table: the rules.
    lm: the language model.
    weights: weights by feature name.
    units: names and units of the other features.
    limits: how to match.
    arity: A, if it is to be more than the table needs.
    features: further stateful features, each with its parameters.
    local: features of rules in sentences beside the registered ones.
    order: of a phrase-based model, see `phrase.loading`.

  Raises:
    ValueError: if two features have one name.
  """
  limits = limits or MatchConfig()
  exact = limits.substitution == "exact"
  if order is None:
    table = complete(table, units, exact=exact)
  trie = tries.build_trie(table, exact=exact)
  arities = tables.arity(table)
  arity = max(int(arities[trie.end >= 0].max(initial=0)), 2, arity or 0)
  sides = _rule_sides(table, arity)
  if order is not None:
    sides = _after_others(sides, goal=True)
  every = (
    (
      LanguageModelFeature(
        names=(units.lm,),
        columns=language_model.state_columns(lm.order),
        scale=units.lm_scale,
      ),
      lm,
    ),
    (LabelMatch(names=(units.match, units.mismatch)), ()),
    *features,
  )
  model = Model(
    table=table,
    trie=trie,
    ranked=Ragged(flat=np.zeros(0, np.int32), offsets=np.zeros(1, np.int64)),
    features=tuple(feature for feature, _ in every),
    parameters=tuple(parameters for _, parameters in every),
    units=units,
    weights={},
    columns=_columns(every, sides),
    counts=word_features(language_model.word_ids(lm, sides), units),
    lm_words=language_model.vocabulary_ids(
      lm, sides.words, special=len(vocabulary.SPECIALS)
    ),
    copy_rule=int(np.flatnonzero(table.kind == Kind.PASS_THROUGH)[0]),
    arity=arity,
    limits=limits,
    local=tuple(local),
    order=order,
  )
  if len(set(model.feature_names)) < len(model.feature_names):
    raise ValueError(f"a name stands twice in {model.feature_names}")
  # Weights of sparse features say which features there are.
  model = with_templates(model, rule_templates.config_of(weights))
  return with_weights(model, weights)


def unknown_weights(model: Model, weights: Mapping[str, float]) -> list[str]:
  """Returns the names of weights that no feature of the model has."""
  known = {*model.feature_names}
  known |= {
    one for feature in model.local for one in local_features.heads(feature)
  }
  return [
    name
    for name in weights
    if name not in known
    and not string_templates.is_template_weight(name)
    and not frequent_events.is_event_weight(name)
    and not rule_templates.is_template_weight(name)
  ]


def device_parameters(model: Model) -> tuple[Any, ...]:
  """Returns the parameters of the stateful features, on the device."""
  pairs = zip(model.features, model.parameters, strict=True)
  return tuple(feature.to_device(one) for feature, one in pairs)


def host_parameters(model: Model) -> tuple[Any, ...]:
  """Returns the parameters of the stateful features for host kernels."""
  pairs = zip(model.features, model.parameters, strict=True)
  return tuple(feature.to_host(one) for feature, one in pairs)


def with_weights(model: Model, weights: Mapping[str, float]) -> Model:
  """Returns the same rules under other weights.

  Only static scores and the order of each pattern's rules are recomputed.
  Sentences made for the old model are rescored where they are used.
  """
  base = np.append(_rule_scores(model.table, weights), 0.0)
  if model.templates is not None:
    keyed = feature_keys.make_table(weights)
    base[:-1] += rule_templates.rule_scores(model.templates, keyed)
  columns = dataclasses.replace(
    model.columns,
    score=_static_scores(model, model.columns, model.counts, base, weights),
  )
  if model.order is not None:
    model = dataclasses.replace(
      model,
      distortion=weights.get(model.order.names[0], 0.0),
      order_scores=order_scores(model.order, weights),
    )
  return dataclasses.replace(
    model,
    version=object(),
    columns=columns,
    weights=weights if isinstance(weights, KeyedWeights) else dict(weights),
    ranked=ranked_rules(model.trie, columns, limit=model.limits.targets),
  )


def ranked_rules(trie: Trie, columns: RuleColumns, *, limit: int) -> Ragged:
  """Returns the rules of each trie node, best first; see `Model.ranked`."""
  rules, offsets = applications.rank_rules(
    trie, columns.score[:-1], limit=limit
  )
  return Ragged(flat=rules, offsets=offsets)


def with_templates(model: Model, config: TemplateConfig | None) -> Model:
  """Returns the model with other sparse features, or none.

  The weights it has already count for the new features, too. The model's own
  `local` features stay.
  """
  templates = None
  if config is None:
    config = TemplateConfig(names=())
  if config.names or model.local:
    templates = rule_templates.make_templates(
      model.table, config, local=model.local
    )
  model = dataclasses.replace(model, templates=templates)
  return with_weights(model, model.weights) if model.weights else model


def with_features(model: Model, features: np.ndarray) -> Model:
  """Returns the same rules and weights with other feature values.

  Args:
    model: R rules with F features, completed ones included.
    features: float `[R, F]`, columns as `model.table.feature_names`.

  Raises:
    ValueError: if the shape is another.
  """
  if features.shape != model.table.features.shape:
    raise ValueError(
      f"features {features.shape}, not {model.table.features.shape}"
    )
  values = np.asarray(features, np.float32)
  table = dataclasses.replace(model.table, features=values)
  return with_weights(dataclasses.replace(model, table=table), model.weights)


def make_source(
  model: Model, lines: Sequence[str], *, spans: Ragged | None = None
) -> Source:
  """Reads sentences: tokens between white space."""
  numbers, words = vocabulary.intern(lines)
  find = model.table.source_words.index.get
  ids = np.array([find(w, vocabulary.UNK) for w in words], np.int32)
  ids[ids < len(vocabulary.SPECIALS)] = vocabulary.UNK
  size = len(vocabulary.SPECIALS)
  single = Ragged(
    flat=np.arange(size, size + len(words), dtype=np.int32),
    offsets=np.arange(len(words) + 1),
  )
  spelled = (*vocabulary.SPECIALS, *words)
  sides = RuleSides(
    target=single,
    words=spelled,
    source=single,
    source_words=spelled,
    label=np.full(len(words), tables.X, np.int32),
    site=np.full((len(words), model.arity), -1, np.int32),
    values=np.tile(model.table.features[[model.copy_rule]], (len(words), 1)),
  )
  if model.order is not None:
    sides = _after_others(sides)
  source = Source(
    ids=Ragged(flat=ids[numbers.flat], offsets=numbers.offsets),
    copies=numbers.flat,
    words=tuple(words),
    columns=_columns(
      tuple(zip(model.features, model.parameters, strict=True)), sides
    ),
    counts=word_features(language_model.word_ids(model.lm, sides), model.units),
    target_words=_find_words(model.table.target_words, words),
    lm_words=language_model.vocabulary_ids(model.lm, words),
    spans=spans,
  )
  return rescore_source(model, source)


def _find_words(known: Vocabulary, words: Sequence[str]) -> np.ndarray:
  """The id of each word, -1 for unknown ones."""
  return np.array([known.index.get(word, -1) for word in words], np.int32)


def copy_scores(model: Model, source: Source) -> np.ndarray:
  """Returns static scores of copying each of the P tokens, float32 `[P]`.

  Costs nothing if the sentences have the model's weights already.

  Args:
    model: has the rules and stateful features that `source` was made for, maybe
      with other weights or feature values.
    source: from `make_source`.
  """
  if model.version is source.version and model.version is not None:
    return source.columns.score
  copied = np.array([model.copy_rule])
  base = _rule_scores(model.table, model.weights, copied)
  if model.templates is not None:
    keyed = feature_keys.make_table(model.weights)
    base = base + rule_templates.copy_scores(
      model.templates, source.words, keyed
    )
  return _static_scores(
    model, source.columns, source.counts, base, model.weights
  )


def rescore_source(model: Model, source: Source) -> Source:
  """Returns the sentences under the model's weights; see `copy_scores`."""
  if model.version is source.version and model.version is not None:
    return source
  columns = dataclasses.replace(
    source.columns, score=copy_scores(model, source)
  )
  return dataclasses.replace(source, columns=columns, version=model.version)


def select_source(source: Source, rows: np.ndarray) -> Source:
  """Returns some of the sentences."""
  copies = Ragged(flat=source.copies, offsets=source.ids.offsets)
  return dataclasses.replace(
    source,
    ids=ragged.select(source.ids, rows),
    copies=ragged.select(copies, rows).flat,
    spans=None if source.spans is None else ragged.select(source.spans, rows),
    marks=None if source.marks is None else select_marks(source.marks, rows),
  )


def rule_column(
  model: Model,
  source: Source,
  rule: np.ndarray,
  pick: Callable[[RuleColumns], Any],
) -> Any:
  """Returns a column, or a tree of columns, for all kinds of rules alike.

  Args:
    model: the table's R rules and the goal.
    source: the pass-through words.
    rule: numbers as in `Matches.rule`, int `[N]`.
    pick: reads the column off `RuleColumns`.
  """
  return jax.tree.map(
    lambda own, copied: _either(own, copied, rule),
    pick(model.columns),
    pick(source.columns),
  )


def _either(table_rows, copied, rule):
  out = table_rows[np.minimum(rule, len(table_rows) - 1)]
  more = rule >= len(table_rows)
  if more.any():
    out[more] = copied[rule[more] - len(table_rows)]
  return out


def word_features(target: Ragged, units: Units) -> np.ndarray:
  """Unknown-word count and word penalty of target rows, float64 `[N, 2]`."""
  word = (target.flat >= 0) & (target.flat != BOS_WORD)
  word &= target.flat != EOS_WORD
  total = lambda flags: np.diff(ragged.row_offsets(flags)[target.offsets])
  unknown = total(target.flat == UNK_WORD)
  return np.stack([unknown, units.per_word * total(word)], axis=1)


def _rule_sides(table: RuleTable, arity: int) -> RuleSides:
  """What stateful features see: `<s>` before first glue; then the goal."""
  flat = table.target.flat
  # Markers written out in a rule are unknown words.
  special = (flat >= 0) & (flat < len(vocabulary.SPECIALS))
  flat = np.where(special, vocabulary.UNK, flat)
  first = (table.kind == Kind.GLUE) & (tables.arity(table) == 1)
  lengths = np.append(table.target.lengths + first, 2)
  offsets = ragged.row_offsets(lengths)
  out = np.empty(offsets[-1], np.int32)
  begins = offsets[:-2][first]
  keep = np.ones(len(out) - 2, bool)
  keep[begins] = False
  out[:-2][keep] = flat
  out[begins] = vocabulary.BOS
  out[-2:] = (-1, vocabulary.EOS)
  return RuleSides(
    target=Ragged(flat=out, offsets=offsets),
    words=table.target_words.words,
    source=Ragged(
      flat=np.append(table.source.flat, np.int32(-1)),
      offsets=np.append(table.source.offsets, table.source.offsets[-1] + 1),
    ),
    source_words=table.source_words.words,
    label=np.append(table.lhs, tables.S).astype(np.int32),
    site=_sites(table, arity),
    values=table.features,
  )


def _after_others(sides: RuleSides, *, goal: bool = False) -> RuleSides:
  """Phrases as rules that say their child first; the goal does already."""
  size = len(sides) - goal

  def led(rows: Ragged) -> Ragged:
    first = rows.offsets[:size]
    lengths = np.diff(rows.offsets)
    lengths[:size] += 1
    return Ragged(
      flat=np.insert(rows.flat, first, -1), offsets=ragged.row_offsets(lengths)
    )

  return dataclasses.replace(
    sides, target=led(sides.target), source=led(sides.source)
  )


def start_states(model: Model) -> tuple[np.ndarray, ...]:
  """Returns the states of `<s>` of the added features, int32 `[S]` each."""
  if not model.extra:
    return ()
  none = Ragged(flat=np.zeros(0, np.int32), offsets=np.zeros(2, np.int64))
  sides = RuleSides(
    target=Ragged(
      flat=np.array([vocabulary.BOS], np.int32), offsets=np.array([0, 1])
    ),
    words=vocabulary.SPECIALS,
    source=none,
    source_words=vocabulary.SPECIALS,
    label=np.array([tables.S], np.int32),
    site=np.full((1, model.arity), -1, np.int32),
  )
  first = len(model.features) - len(model.extra)
  parameters = model.parameters[first:]
  found = []
  for feature, own in zip(model.extra, parameters, strict=True):
    inputs = feature.rule_inputs(sides, own).arrays
    if isinstance(feature, feature_base.StringFeature):
      found.append(np.asarray(inputs[0, 0], np.int32))
      continue
    tails = jnp.zeros((1, model.arity, feature.columns), jnp.int32)
    state, _ = feature.apply(feature.to_device(own), inputs, tails)
    found.append(np.asarray(state[0], np.int32))
  return tuple(found)


def _columns(
  features: Sequence[tuple[StatefulFeature, Any]], sides: RuleSides
) -> RuleColumns:
  """What the search knows of rules, not scored yet."""
  return RuleColumns(
    slots=feature_base.target_slots(sides.target, sides.arity),
    inputs=tuple(
      feature.rule_inputs(sides, parameters) for feature, parameters in features
    ),
    score=np.zeros(len(sides), np.float32),
    label=sides.label,
    site=sides.site,
  )


def _rule_scores(
  table: RuleTable,
  weights: Mapping[str, float],
  rules: np.ndarray | slice = slice(None),
) -> np.ndarray:
  """Rule features times weights of all or some rules, float64 `[N]`."""
  chosen = table.features[rules]
  total = np.zeros(len(chosen))
  for column, name in enumerate(table.feature_names):
    if weights.get(name, 0.0):  # a sum of columns: no float64 copy of all
      total += weights[name] * chosen[:, column].astype(np.float64)
  return total


def _sites(table: RuleTable, arity: int) -> np.ndarray:
  """Labels of the sites of rules and goal, -1: any is right, `[R + 1, A]`."""
  arities = tables.arity(table)
  site = np.full((len(table) + 1, arity), -1, np.int32)
  scored = ~np.isin(table.kind, [Kind.GLUE, Kind.PASS_THROUGH])
  scored &= arities <= arity
  labels = tables.nonterminals(table)
  row = np.repeat(np.arange(len(table)), arities)
  place = np.arange(len(row)) - np.repeat(labels.offsets[:-1], arities)
  use = scored[row]
  site[row[use], place[use]] = labels.flat[use]
  return site


def _static_scores(
  model: Model,
  columns: RuleColumns,
  counts: np.ndarray,
  base: np.ndarray,
  weights: Mapping[str, float],
) -> np.ndarray:
  """Static scores, float32: base, words, and the rules' own values."""
  units = model.units
  vector = np.array(
    [weights.get(units.unknown, 0.0), weights.get(units.words, 0.0)]
  )
  score = base + counts @ vector
  for feature, inputs in zip(model.features, columns.inputs, strict=True):
    for place, name in enumerate(feature.names):
      weight = weights.get(name, 0.0) * feature.scale
      if weight:
        score = score + weight * inputs.values[:, place]
  return score.astype(np.float32)
