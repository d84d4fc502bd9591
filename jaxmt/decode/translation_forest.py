"""Translation forests: annotation, strings, k-best lists, feature values.

    lists = kbest(model, source, forest, size=100, unique=True)
    texts = strings(model, source, lists)
    values = sum_values(lists.edges, edge_features(model, source, forest))

Whatever translates annotates the nodes of its `Forest` with `Spans` and its
edges with `RuleUses`.
"""

import dataclasses
import itertools

import jax
import numpy as np

from jaxmt import hypergraph
from jaxmt.decode.chart import chart_layout, feature_states
from jaxmt.decode.derivation import Derivations
from jaxmt.decode.model import Model, Source, word_features
from jaxmt.decode.phrase import chains
from jaxmt.features import feature_keys, language_model, rule_templates
from jaxmt.features.rule_templates import Applications
from jaxmt.hypergraph.derivations import (
  DerivationLists,
  EdgeStrings,
  link_children,
)
from jaxmt.hypergraph.forest import Forest
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Spans:
  """What N nodes of translation forests stand for.

  Attributes:
    begin: first source word under each node, int32 `[N]`.
    end: one past its last, int32 `[N]`.
    label: left-hand side of each node, int32 `[N]`.
    rank: how many hypotheses of its cell have a better model score, by more
      than rounding (`search.TIE`), int32 `[N]`; 0 for goals.
  """

  begin: np.ndarray
  end: np.ndarray
  label: np.ndarray
  rank: np.ndarray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleUses:
  """The rule applications that E edges of translation forests are.

  Attributes:
    rule: rule of each edge as in `Matches.rule` (R: the goal; beyond: copied
      words), int32 `[E]`.
    lm: what it adds to ln p of the words (with `</s>` at the goal), `[E]`.
    matched: tails whose label is their site's, int32 `[E]`.
    mismatched: tails whose label is another, int32 `[E]`.
    augmented: of an augmented search, what the edge adds to the augmented
      score where its tails stand for their best derivations: the candidate's
      score minus its tails'. float32 `[E]`, or None.
  """

  rule: np.ndarray
  lm: np.ndarray
  matched: np.ndarray
  mismatched: np.ndarray
  augmented: np.ndarray | None = None


def derivation_ranks(forest: Forest, edges: np.ndarray) -> np.ndarray:
  """Returns where the parts of a derivation stood in the beams.

  Args:
    forest: forests of a search.
    edges: the derivation's edges, int `[D]`, of one or more sentences.

  Returns:
    (begin, end, label, rank) of the head of each edge, rank 0 being the best of
    its cell; without the goals', which are no cells of rules. int32 `[D', 4]`.
  """
  heads = np.searchsorted(forest.edge_offsets, edges, side="right") - 1
  heads = heads[~np.isin(heads, forest.roots)]
  at = forest.nodes
  columns = (at.begin, at.end, at.label, at.rank)
  return np.stack([column[heads] for column in columns], axis=1)


def applications(forest: Forest, edges: np.ndarray) -> Applications:
  """Returns the rule applications that some edges are."""
  head = np.searchsorted(forest.edge_offsets, edges, side="right") - 1
  return Applications(
    rule=forest.edges.rule[edges],
    begin=forest.nodes.begin[head],
    end=forest.nodes.end[head],
    sentence=np.searchsorted(forest.node_offsets, head, side="right") - 1,
  )


def application_scores(
  model: Model, source: Source, forest: Forest
) -> np.ndarray:
  """Returns what features of span or sentence add to edges, float64 `[E]`.

  See `chart_layout.score_chart`, which does the same for charts.

  Args:
    model: rules and weights.
    source: the forest's sentences.
    forest: E edges.

  Raises:
    ValueError: if sentences and forests are not as many.
  """
  if len(source) != len(forest):
    raise ValueError(f"{len(source)} sentences, {len(forest)} forests")
  if model.templates is None or not chart_layout.need_sentences(model):
    return np.zeros(forest.num_edges)
  return rule_templates.application_scores(
    model.templates,
    chart_layout.make_text(model.templates, source),
    applications(forest, np.arange(forest.num_edges)),
    feature_keys.make_table(model.weights),
  )


def edge_strings(model: Model, source: Source, forest: Forest) -> EdgeStrings:
  """Returns the target sides of the edges; the rule table is not copied.

  Args:
    model: the rules.
    source: the sentences of the forest. Copied words that the target vocabulary
      has, too, stand under their id there, so that equal strings are equal
      rows.
    forest: with the rules of its edges.
  """
  if model.order is not None:
    row, symbols = chains.edge_rows(model, source, forest)
    return EdgeStrings(row=row, symbols=symbols)
  rule = forest.edges.rule
  first = model.num_rules + 1
  used = np.unique(rule[rule >= first] - first)
  size = int(used.max(initial=-1)) + 1
  extra = np.arange(-1, size, dtype=np.int32)  # the goal's one tail, then words
  extra[1:] += len(model.lm_words)
  known = used[source.target_words[used] >= 0]
  extra[1 + known] = source.target_words[known]
  return EdgeStrings(row=rule, symbols=model.table.target, extra=extra)


def kbest(
  model: Model,
  source: Source,
  forest: Forest,
  *,
  size: int,
  unique: bool = False,
  diversity: float = 0.0,
  scores: np.ndarray | None = None,
  threads: int = 1,
) -> DerivationLists:
  """Returns the best derivations of each sentence; see `hypergraph.kbest`.

  Words are as in `derivation.Yields`, but equal strings are equal rows: see
  `edge_strings`.

  Raises:
    ValueError: for sizes that cannot be.
  """
  if len(source) != len(forest):
    raise ValueError(f"{len(source)} sentences, {len(forest)} forests")
  return hypergraph.kbest(
    forest,
    size=size,
    strings=edge_strings(model, source, forest),
    unique=unique,
    diversity=diversity,
    scores=scores,
    threads=threads,
  )


def best_augmented(
  model: Model, source: Source, forest: Forest
) -> DerivationLists:
  """Returns the best derivation of each sentence by augmented score.

  Their scores are model scores. Sentences without a derivation have none.

  Args:
    model: the model.
    source: B sentences.
    forest: of an augmented search; of another one, the model score decides.
  """
  scores = forest.edges.augmented
  scores = forest.score if scores is None else scores
  best = hypergraph.viterbi(forest, scores)
  filled = np.diff(forest.node_offsets) > 0
  edges, words = hypergraph.best_derivations(
    forest,
    best,
    best.back[forest.node_offsets[1:][filled] - 1],
    strings=edge_strings(model, source, forest),
  )
  return DerivationLists(
    offsets=ragged.row_offsets(filled),
    score=hypergraph.sum_values(edges, forest.score.astype(np.float64)),
    edges=edges,
    words=words,
  )


def strings(model: Model, source: Source, lists: DerivationLists) -> list[str]:
  """Spells all derivations, words separated by spaces; D strings."""
  return spell(model, source, lists.words)


def lm_words(model: Model, source: Source, words: Ragged) -> Ragged:
  """Turns the ids of `derivation.Yields.words` into language model ids."""
  ids = np.concatenate([model.lm_words, source.lm_words])
  return Ragged(flat=ids[words.flat], offsets=words.offsets)


def spell(model: Model, source: Source, words: Ragged) -> list[str]:
  """Spells the ids of `derivation.Yields.words`, with spaces between words."""
  size = len(model.lm_words)
  seen = np.zeros(size + len(source.words), bool)
  seen[words.flat] = True
  used = np.flatnonzero(seen)
  known = model.table.target_words.words
  spelling = np.empty(len(seen), object)
  spelling[used] = [
    known[word] if word < size else source.words[word - size]
    for word in used.tolist()
  ]
  flat = spelling[words.flat].tolist()
  ends = words.offsets.tolist()
  return [" ".join(flat[begin:end]) for begin, end in itertools.pairwise(ends)]


def list_features(
  model: Model, source: Source, forest: Forest, lists: DerivationLists
) -> np.ndarray:
  """Returns the feature values of all derivations, float64 `[D, F]`.

  They are not sums over edges: what an edge says of the language model depends,
  in its last digits, on how the search came by it.
  """
  return derivation_features(
    model, source, derivations(forest, lists), lists.words
  )


def derivations(forest: Forest, lists: DerivationLists) -> Derivations:
  """Returns all as derivations, D of them, for words, links and trees."""
  rows, edges = lists.edges.offsets, lists.edges.flat
  goal = np.zeros(len(edges), bool)
  goal[rows[:-1]] = True
  below = edges[~goal]
  heads = (
    np.searchsorted(forest.edge_offsets, below, side="right").astype(np.int32)
    - 1
  )
  return Derivations(
    offsets=rows - np.arange(len(rows)),
    rule=forest.edges.rule[below],
    begin=forest.nodes.begin[heads],
    end=forest.nodes.end[heads],
    child=link_children(rows, edges, np.ascontiguousarray(forest.tails)),
    score=lists.score.astype(np.float32),
  )


def derivation_features(
  model: Model, source: Source, derivations: Derivations, words: Ragged
) -> np.ndarray:
  """Returns each derivation's feature values, float64 `[B, F]`.

  Columns are `model.feature_names`. Their product with the weights is the
  model score up to rounding; the language model is read again, left to right.
  """
  table, units = model.table, model.units
  size = model.num_rules
  rules = np.where(derivations.rule < size, derivations.rule, model.copy_rule)
  lengths = np.diff(derivations.offsets)
  total = len(lengths)
  batch = np.repeat(np.arange(total), lengths)
  names = model.feature_names
  out = np.zeros((total, len(names)))
  for column, name in enumerate(table.feature_names):
    if name in names:
      out[:, names.index(name)] += np.bincount(
        batch, table.features[rules, column], minlength=total
      )
  ids = lm_words(model, source, words)
  ln_p, unknown = language_model.score_sentences(
    model.parameters[0], ids.flat, ids.offsets
  )
  out[:, names.index(units.lm)] = units.lm_scale * ln_p
  out[:, names.index(units.unknown)] += unknown
  out[:, names.index(units.words)] += units.per_word * np.diff(ids.offsets)
  matched, other = _label_counts(model, derivations)
  out[:, names.index(units.match)] += np.bincount(
    batch, matched, minlength=total
  )
  out[:, names.index(units.mismatch)] += np.bincount(
    batch, other, minlength=total
  )
  if model.order is not None:
    first = names.index(model.order.names[0])
    out[:, first : first + len(model.order.names)] = chains.chain_values(
      model,
      derivations.offsets,
      derivations.rule,
      derivations.begin,
      derivations.end,
    )
  if model.extra:
    added = _added_values(model, source, derivations)
    out[:, len(names) - added.shape[1] :] = added
  out[lengths == 0] = 0.0
  return out


def _added_values(model, source, derivations):
  """The stateful features of `model.extra`, float64 `[B, X]`."""
  size, offsets = len(derivations.rule), derivations.offsets
  filled = np.flatnonzero(np.diff(offsets) > 0)
  # Preorder backwards has children first; the goals stand after all of them.
  child = derivations.child[::-1]
  goals = np.full((len(filled), child.shape[1]), -1, np.int32)
  goals[:, 0] = size - 1 - offsets[filled]
  values = feature_states.edge_values(
    model,
    source,
    edge_offsets=np.arange(size + len(filled) + 1),
    rule=np.concatenate(
      [derivations.rule[::-1], np.full(len(filled), model.num_rules, np.int32)]
    ),
    tails=np.concatenate([np.where(child >= 0, size - 1 - child, -1), goals]),
  )
  batch = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
  out = np.zeros((len(offsets) - 1, values.shape[1]))
  np.add.at(out, np.concatenate([batch[::-1], filled]), values)
  return out


def _label_counts(model, derivations):
  """Per node, sites filled by their own label and by another."""
  size = model.num_rules
  rules = np.minimum(derivations.rule, size)  # copies have no sites either
  site = model.columns.site[rules]
  lhs = model.columns.label[
    np.where(derivations.rule < size, derivations.rule, model.copy_rule)
  ]
  filled = (derivations.child >= 0) & (site >= 0)
  label = lhs[np.maximum(derivations.child, 0)]
  matched = (filled & (label == site)).sum(1)
  return matched, filled.sum(1) - matched


def edge_features(model: Model, source: Source, forest: Forest) -> np.ndarray:
  """Returns the feature values of each edge, float64 `[E, F]`.

  Columns are `model.feature_names`. Their product with the weights is
  `forest.score`; summed over the edges of a derivation they are
  `derivation_features`. What the language model says of `</s>` stands at the
  goal's edges.

  Args:
    model: rules and units; its weights do not matter.
    source: the sentences of the forests (`Result.source`).
    forest: E edges. Without annotated nodes, features of the order of phrases
      and stateful features that were added are 0.
  """
  names, units = model.feature_names, model.units
  size = model.num_rules
  column = lambda name: names.index(name)
  # Rules that occur at all, the copied words' one for each of its edges.
  occurs = np.zeros(size + 1, bool)
  base = np.where(forest.edges.rule > size, model.copy_rule, forest.edges.rule)
  occurs[base] = True
  rules = np.flatnonzero(occurs[:size])
  place = np.full(size + 1, len(rules), np.int32)  # the goal: a row of zeros
  place[rules] = np.arange(len(rules), dtype=np.int32)
  table = np.zeros((len(rules) + 1, len(names)))
  for number, name in enumerate(model.table.feature_names):
    if name in names:
      table[:-1, column(name)] += model.table.features[rules, number]
  counts = _word_counts(model, rules)
  table[:-1, column(units.unknown)] += counts[:, 0]
  table[:-1, column(units.words)] += counts[:, 1]
  out = table[place[base]]
  copied = np.flatnonzero(forest.edges.rule > size)
  if len(copied):
    extra_counts = _copied_counts(model, source)[
      forest.edges.rule[copied] - size - 1
    ]
    extra_counts = extra_counts - counts[place[model.copy_rule]]
    out[copied, column(units.unknown)] += extra_counts[:, 0]
    out[copied, column(units.words)] += extra_counts[:, 1]
  lm = forest.edges.lm.astype(np.float64)
  out[:, column(units.lm)] += units.lm_scale * lm
  out[:, column(units.match)] += forest.edges.matched
  out[:, column(units.mismatch)] += forest.edges.mismatched
  if model.order is not None and forest.nodes is not None:
    first = column(model.order.names[0])
    values = chains.edge_values(model, forest)
    out[:, first : first + values.shape[1]] = values
  if model.extra and forest.nodes is not None:
    added = feature_states.edge_values(
      model,
      source,
      edge_offsets=forest.edge_offsets,
      rule=forest.edges.rule,
      tails=forest.tails,
    )
    out[:, len(names) - added.shape[1] :] = added
  return out


def _word_counts(model: Model, rules: np.ndarray) -> np.ndarray:
  """Unknown words and word penalty of rules' target sides, `[N, 2]`."""
  target = ragged.select(model.table.target, rules)
  flat = target.flat
  flat = np.where(flat >= 0, model.lm_words[np.maximum(flat, 0)], flat)
  return word_features(Ragged(flat=flat, offsets=target.offsets), model.units)


def _copied_counts(model: Model, source: Source) -> np.ndarray:
  """The same of copied source words, `[P, 2]`."""
  known = source.lm_words
  offsets = np.arange(len(known) + 1, dtype=np.int64)
  return word_features(Ragged(flat=known, offsets=offsets), model.units)
