"""Feature differences Φ(d+) - Φ(d-) of chosen partial derivations."""

import dataclasses

import numpy as np

from jaxmt.decode import translation_forest
from jaxmt.decode.chart import chart_layout, feature_states
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase import chains
from jaxmt.decode.translation_forest import RuleUses
from jaxmt.features import local_features, rule_templates
from jaxmt.features.feature_keys import keys_of, look_up
from jaxmt.features.rule_templates import Applications
from jaxmt.grammar.match.matching import GOAL, ORDINARY
from jaxmt.hypergraph.derivations import list_items
from jaxmt.hypergraph.forest import Forest
from jaxmt.lm.tables import EOS_WORD, ROOT, advance
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, row_offsets
from jaxmt.train.violation.averaged_weights import WITNESS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chosen:
  """D partial derivations.

  Attributes:
    sentence: of the source, int64 `[D]`.
    category: of their top nodes, int8 `[D]`.
    edges: the rule applications of each in preorder, D rows of `Applications`
      numbered from 0.
    applications: all of them, T.
    uses: the same with their labels.
    arity: how many of the applications after it each one has as children.
    words: what each says, numbered as `derivation.Yields` does.
  """

  sentence: np.ndarray
  category: np.ndarray
  edges: Ragged
  applications: Applications
  uses: RuleUses
  arity: np.ndarray
  words: Ragged


def read_chosen(
  model: Model,
  source: Source,
  forest: Forest,
  back: np.ndarray,
  *,
  nodes: np.ndarray,
  sentence: np.ndarray,
  category: np.ndarray,
) -> Chosen:
  """Reads the best derivations of some nodes off a forest.

  Args:
    model: rules.
    source: B sentences.
    forest: N nodes.
    back: the edge at the top of each node's best derivation, int `[N]`.
    nodes: which nodes, int `[D]`.
    sentence: their sentences, int `[D]`.
    category: of all nodes, int8 `[N]`.
  """
  tails = np.where(forest.tails >= 0, forest.tails, 0)[back]
  items = np.concatenate([back[:, None], tails], axis=1).astype(np.int32)
  edges, words = list_items(
    forest,
    items,
    nodes,
    strings=translation_forest.edge_strings(model, source, forest),
  )
  heads = np.searchsorted(forest.edge_offsets, edges.flat, side="right") - 1
  rows = np.repeat(sentence, edges.lengths)
  uses = forest.edges
  return Chosen(
    sentence=np.asarray(sentence, np.int64),
    category=category[nodes],
    edges=Ragged(
      flat=np.arange(len(edges.flat), dtype=np.int32), offsets=edges.offsets
    ),
    applications=Applications(
      rule=uses.rule[edges.flat],
      begin=forest.nodes.begin[heads],
      end=forest.nodes.end[heads],
      sentence=rows,
    ),
    uses=RuleUses(
      rule=uses.rule[edges.flat],
      lm=np.zeros(len(edges.flat), np.float32),
      matched=uses.matched[edges.flat],
      mismatched=uses.mismatched[edges.flat],
    ),
    arity=(forest.tails[edges.flat] >= 0).sum(1),
    words=words,
  )


def join(first: Chosen, second: Chosen) -> Chosen:
  """Returns the derivations of both, those of `first` before the others."""
  both = lambda one, two: np.concatenate([one, two])
  records = lambda one, two: type(one)(
    **{
      field.name: None
      if getattr(one, field.name) is None
      else both(getattr(one, field.name), getattr(two, field.name))
      for field in dataclasses.fields(one)
    }
  )
  lengths = both(first.edges.lengths, second.edges.lengths)
  word_lengths = both(first.words.lengths, second.words.lengths)
  return Chosen(
    sentence=both(first.sentence, second.sentence),
    category=both(first.category, second.category),
    edges=Ragged(
      flat=np.arange(lengths.sum(), dtype=np.int32),
      offsets=row_offsets(lengths),
    ),
    applications=records(first.applications, second.applications),
    uses=records(first.uses, second.uses),
    arity=both(first.arity, second.arity),
    words=Ragged(
      flat=both(first.words.flat, second.words.flat),
      offsets=row_offsets(word_lengths),
    ),
  )


def dense_features(model: Model, source: Source, chosen: Chosen) -> np.ndarray:
  """Returns the dense features of D partial derivations, float64 `[D, F]`.

  Columns are `model.feature_names`. The language model reads the words of a
  derivation without context, after `<s>` in glue groups and at the goal, and
  with `</s>` at the goal.
  """
  size = len(chosen.applications)
  flat = Forest(
    node_offsets=np.zeros(1, np.int64),
    edge_offsets=np.arange(size + 1, dtype=np.int64),
    tails=np.zeros((size, 0), np.int32),
    score=np.zeros(size, np.float32),
    edges=chosen.uses,
  )
  values = translation_forest.edge_features(model, source, flat)
  if model.extra:
    added = _added_values(model, source, chosen)
    values[:, values.shape[1] - added.shape[1] :] = added
  out = np.zeros((len(chosen.sentence), values.shape[1]))
  owner = np.repeat(np.arange(len(out)), chosen.edges.lengths)
  np.add.at(out, owner, values)
  if model.order is not None:
    first = model.feature_names.index(model.order.names[0])
    orders = _order_values(model, chosen)
    out[:, first : first + orders.shape[1]] = orders
  lm = model.lm
  ids = translation_forest.lm_words(model, source, chosen.words)
  out[:, model.feature_names.index(model.units.lm)] = (
    model.units.lm_scale
    * _string_scores(
      ids.flat,
      ids.offsets,
      chosen.category,
      lm.columns,
      (lm.begin, ROOT),
    )
  )
  return out


def _added_values(model: Model, source: Source, chosen: Chosen) -> np.ndarray:
  """What each application adds to the added stateful features, `[T, X]`."""
  size = len(chosen.applications)
  # Backwards, children stand before their parents.
  values = feature_states.edge_values(
    model,
    source,
    edge_offsets=np.arange(size + 1, dtype=np.int64),
    rule=chosen.applications.rule[::-1].copy(),
    tails=_children(chosen.arity[::-1].copy(), model.arity),
  )
  return values[::-1]


@njit
def _children(arity, width):
  """Children of nodes that stand in reversed preorder, int32 `[T, width]`."""
  out = np.full((len(arity), width), -1, np.int32)
  waiting = np.empty(len(arity), np.int32)
  count = 0
  for node in range(len(arity)):
    for part in range(arity[node]):
      count -= 1
      out[node, part] = waiting[count]
    waiting[count] = node
    count += 1
  return out


def _order_values(model: Model, chosen: Chosen) -> np.ndarray:
  """Order features of chains of phrases, the last phrase first, `[D, F]`."""
  applications = chosen.applications
  phrase = applications.rule != len(model.table)
  return chains.chain_values(
    model,
    row_offsets(phrase)[chosen.edges.offsets],
    applications.rule[phrase],
    applications.begin[phrase],
    applications.end[phrase],
  )


@njit
def _string_scores(words, offsets, category, table, begins):
  """Natural log p of each row in the context of its category, float64."""
  out = np.zeros(len(offsets) - 1)
  for row in range(len(out)):
    state = np.int32(begins[1] if category[row] == ORDINARY else begins[0])
    for item in range(offsets[row], offsets[row + 1]):
      gain, state = advance(table, state, words[item])
      out[row] += gain
    if category[row] == GOAL:
      gain, state = advance(table, state, EOS_WORD)
      out[row] += gain
  return out


@dataclasses.dataclass(frozen=True, kw_only=True)
class SparseSums:
  """Sums of sparse features by sentence.

  Attributes:
    sentence: rising, int64 `[N]`.
    keys: rising within a sentence, uint64 `[N]`.
    values: not 0, float64 `[N]`.
    witness: sentence, rule, begin, end of an application with the feature, and
      which of its features it is; -1 there for one that is not compiled, whose
      name is in `names`. int32 `[N, 5]`.
    names: of features that are not compiled, by key.
  """

  sentence: np.ndarray
  keys: np.ndarray
  values: np.ndarray
  witness: np.ndarray
  names: dict[int, str]


def sparse_sums(
  model: Model, source: Source, chosen: Chosen, sign: np.ndarray
) -> SparseSums:
  """Sums the sparse features of derivations, each times its sign.

  Args:
    model: with templates.
    source: B sentences.
    chosen: D derivations.
    sign: 1 or -1 of each, `[D]`.
  """
  if model.templates is None:
    return SparseSums(
      sentence=np.zeros(0, np.int64),
      keys=np.zeros(0, np.uint64),
      values=np.zeros(0),
      witness=np.zeros((0, WITNESS), np.int32),
      names={},
    )
  text = chart_layout.make_text(model.templates, source)
  rows = rule_templates.application_keys(
    model.templates, text, chosen.applications
  )
  where = np.repeat(np.arange(len(rows)), rows.lengths)
  slot = np.arange(len(where)) - np.repeat(rows.offsets[:-1], rows.lengths)
  signs = np.repeat(sign, chosen.edges.lengths).astype(np.float64)
  keys, values = rows.flat, signs[where]
  added, names = _added_rows(model, text, chosen)
  for part, part_keys in added:
    lengths = np.diff(part.offsets)
    place = np.repeat(np.arange(len(part)), lengths)
    where = np.concatenate([where, place])
    slot = np.concatenate([slot, np.full(len(place), -1)])
    keys = np.concatenate([keys, part_keys[part.ids]])
    values = np.concatenate([values, signs[place] * part.values])
  sentence = chosen.applications.sentence[where]
  # Equal keys of a sentence become one; those that cancel go.
  order = np.lexsort((keys, sentence))
  first = np.ones(len(order), bool)
  first[1:] = (np.diff(sentence[order]) != 0) | (
    keys[order][1:] != keys[order][:-1]
  )
  starts = np.flatnonzero(first)
  if not len(starts):
    totals = np.zeros(0)
  else:
    totals = np.add.reduceat(values[order], starts)
  alive = totals != 0
  shown = order[starts][alive]
  at = where[shown]
  applications = chosen.applications
  return SparseSums(
    sentence=sentence[shown].astype(np.int64),
    keys=keys[shown],
    values=totals[alive],
    witness=np.stack(
      [
        sentence[shown],
        applications.rule[at],
        applications.begin[at],
        applications.end[at],
        slot[shown],
      ],
      axis=1,
    ).astype(np.int32),
    names=names,
  )


def _added_rows(model: Model, text, chosen: Chosen):
  """Features that are not compiled: rows with keys, and names by key."""
  if not model.templates or not model.templates.added:
    return [], {}
  sentences = local_features.Sentences(
    table=model.templates.table,
    tokens=text.tokens,
    words=text.words,
    applications=chosen.applications.stacked(),
  )
  out, names = [], {}
  for part, rows in local_features.rows(model.templates.added, sentences):
    keys = keys_of(rows)
    out.append((part, keys))
    names |= dict(zip(keys.tolist(), rows, strict=True))
  return out, names


@njit
def weigh(sentence, keys, values, table, size):
  """Returns the summed weighted values of each sentence, float64 `[size]`."""
  out = np.zeros(size)
  for item in range(len(keys)):
    out[sentence[item]] += values[item] * look_up(keys[item], table)
  return out


def spell(model: Model, source: Source, witness: np.ndarray) -> tuple[str, ...]:
  """Returns the names of compiled features from their witnesses.

  Args:
    model: the rules, with templates.
    source: the text whose sentences the witnesses count.
    witness: see `SparseSums`; all slots are of compiled features.
  """
  if model.templates is None:
    return ()
  text = chart_layout.make_text(model.templates, source)
  rows = np.asarray(witness, np.int64)
  return rule_templates.spell(
    model.templates, text, rows[:, [1, 2, 3, 0]], rows[:, 4]
  )
