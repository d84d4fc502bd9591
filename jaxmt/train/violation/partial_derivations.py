"""Partial derivations by group: those of the reference, and those of beams.

A group N[i:j] holds the partial derivations with root label N over source words
i to j (the paper, section 3.1). Both sides of an update are forests whose nodes
belong to groups:

- *good*: forced forests. They are not pruned, and every node is part of a
  derivation of the whole reference.
- *searched*: every hypothesis of every beam, with its best derivation.

The score of a node leaves the words before it out on both sides alike: the
language model scores its first words without context in ordinary groups, after
`<s>` in glue groups, and also `</s>` at the goal.

Phrase-based hypotheses stand in groups by the number of words they cover, the
stacks of the search. All of them begin the sentence. A hypothesis is good if a
forced node has the same string, coverage and last phrase.

Whatever searches can be learned from if it gives such forests.
"""

import dataclasses

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode import model as models
from jaxmt.decode import translation_forest
from jaxmt.decode.chart import beam_forest
from jaxmt.decode.decoding import AnyResult
from jaxmt.decode.forced import forced_scores
from jaxmt.decode.forced.forced import ForcedForests
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase import chains, stack_forest
from jaxmt.decode.phrase.phrase_decoder import PhraseResult
from jaxmt.features.feature_keys import append, append_number, multiply
from jaxmt.grammar.match.matching import GOAL
from jaxmt.hypergraph import Forest, Viterbi
from jaxmt.hypergraph.derivations import string_range, symbol_at
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

_LABELS = _PLACES = 16  # bits of a group's number
_GROUPS = 2 + 2 * _PLACES + _LABELS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Partials:
  """Partial derivations of B sentences: N nodes of forests, in groups.

  Attributes:
    forest: nodes annotated with `Spans`, edges with `RuleUses`.
    sentence: the sentence of each forest; a sentence with several references
      has several forests. int64 `[forests]`.
    category: `ORDINARY`, `GLUE` or `GOAL`: the context that the language model
      knows, int8 `[N]`.
    string: key of the words under each node, and for phrases of what is
      covered, uint64 `[N]`.
    stack: words that phrase-based hypotheses cover, int32 `[N]`; None for
      charts.
  """

  forest: Forest
  sentence: np.ndarray
  category: np.ndarray
  string: np.ndarray
  stack: np.ndarray | None = None

  @property
  def node_sentence(self) -> np.ndarray:
    """The sentence of each node, int64 `[N]`."""
    return np.repeat(self.sentence, np.diff(self.forest.node_offsets))

  @property
  def group(self) -> np.ndarray:
    """The group of each node, int64 `[N]`; the same for both sides.

    Groups rise by sentence, and then in the order of search: ordinary ones by
    length, glue, goal.
    """
    nodes = self.forest.nodes
    length = nodes.end.astype(np.int64) - nodes.begin
    begin, label = nodes.begin, nodes.label
    if self.stack is not None:
      length, begin, label = self.stack, 0, 0
    out = self.node_sentence
    for value, bits in (
      (self.category, 2),
      (length, _PLACES),
      (begin, _PLACES),
      (label, _LABELS),
    ):
      out = (out << bits) | value
    return out


def group_sentence(group: np.ndarray) -> np.ndarray:
  """Returns the sentence of groups, int64."""
  return group >> _GROUPS


def group_category(group: np.ndarray) -> np.ndarray:
  """Returns the category of groups, int64."""
  return (group >> (2 * _PLACES + _LABELS)) & 3


def group_length(group: np.ndarray) -> np.ndarray:
  """Returns the number of source words of groups, int64."""
  return (group >> (_PLACES + _LABELS)) & ((1 << _PLACES) - 1)


def of_forced(
  model: Model,
  forced: ForcedForests,
  references: Ragged,
  sentence: np.ndarray,
) -> Partials:
  """Returns the good side.

  Args:
    model: the rules.
    forced: forced forests, one for each reference.
    references: the references as `edge_selection.encode_references` numbers
      their words, a row for each forest.
    sentence: the sentence of each, int `[forests]`.
  """
  partials = Partials(
    forest=forced.forest,
    sentence=np.asarray(sentence, np.int64),
    category=forced.category,
    string=_interval_keys(
      np.asarray(references.flat, np.int32),
      np.asarray(references.offsets, np.int64),
      forced.forest.node_offsets,
      forced.first,
      forced.last,
    ),
  )
  return _with_stacks(model, partials)


def of_beams(model: Model, result: AnyResult) -> Partials:
  """Returns the searched side of a decoded batch; sentences are its rows."""
  if isinstance(result, PhraseResult):
    forest, category = stack_forest.hypotheses(model, result)
  else:
    forest, category = beam_forest.hypotheses(model, result)
  strings = translation_forest.edge_strings(model, result.source, forest)
  partials = Partials(
    forest=forest,
    sentence=np.arange(len(forest), dtype=np.int64),
    category=category,
    string=_string_keys(forest.edge_offsets, forest.tails, strings.columns),
  )
  return _with_stacks(model, partials)


def _with_stacks(model: Model, partials: Partials) -> Partials:
  """Adds what phrase-based hypotheses have covered."""
  if model.order is None:
    return partials
  count, key = chains.covered(model, partials.forest)
  # The goal has one coverage, whatever its last phrase.
  key[partials.category == GOAL] = 0
  return dataclasses.replace(
    partials, string=partials.string ^ key, stack=count.astype(np.int32)
  )


def score_good(model: Model, source: Source, good: Partials) -> Viterbi:
  """Finds the best derivation of every node of forced forests.

  Args:
    model: rules and weights.
    source: the B sentences that `good.sentence` counts.
    good: the good side.
  """
  text = models.select_source(source, good.sentence)
  scores = forced_scores.edge_scores(model, text, good.forest)
  return hypergraph.viterbi(good.forest, scores)


def take(partials: Partials, rows: np.ndarray) -> Partials:
  """Returns the forests of some rows; sentences are their places in `rows`.

  Costs what the rows have, whatever the size of the whole; arrays may be maps
  of files.

  Args:
    partials: one or more forests for each sentence, sentences rising.
    rows: sentences, int `[B]`.
  """
  low = np.searchsorted(partials.sentence, rows, side="left")
  high = np.searchsorted(partials.sentence, rows, side="right")
  forests = _ranges(low, high)
  whole = partials.forest
  starts, ends = whole.node_offsets[forests], whole.node_offsets[forests + 1]
  nodes = _ranges(starts, ends)
  first, last = whole.edge_offsets[starts], whole.edge_offsets[ends]
  edges = _ranges(first, last)
  counts, sizes = ends - starts, last - first
  offsets = lambda sizes: np.concatenate([[0], np.cumsum(sizes)]).astype(
    np.int64
  )
  node_offsets, edge_cuts = offsets(counts), offsets(sizes)
  # Numbers within the whole become numbers within the part.
  node_shift = np.repeat(node_offsets[:-1] - starts, sizes)
  edge_shift = np.repeat(edge_cuts[:-1] - first, counts)
  tails = whole.tails[edges]
  moved = np.where(tails >= 0, tails + node_shift[:, None], -1)
  pick = lambda record, items: type(record)(
    **{
      field.name: None
      if getattr(record, field.name) is None
      else getattr(record, field.name)[items]
      for field in dataclasses.fields(record)
    }
  )
  return Partials(
    forest=Forest(
      node_offsets=node_offsets,
      edge_offsets=np.append(
        whole.edge_offsets[nodes] + edge_shift, edge_cuts[-1]
      ),
      tails=moved.astype(np.int32),
      score=whole.score[edges],
      nodes=pick(whole.nodes, nodes),
      edges=pick(whole.edges, edges),
    ),
    sentence=np.repeat(np.arange(len(rows)), high - low),
    category=partials.category[nodes],
    string=partials.string[nodes],
    stack=None if partials.stack is None else partials.stack[nodes],
  )


def _ranges(low: np.ndarray, high: np.ndarray) -> np.ndarray:
  """All numbers of the intervals `low : high`, int64."""
  sizes = high - low
  shift = np.repeat(low - (np.cumsum(sizes) - sizes), sizes)
  return np.arange(int(sizes.sum()), dtype=np.int64) + shift


def are_good(good: Partials, searched: Partials) -> np.ndarray:
  """Whether each hypothesis is y-good, bool `[N]`.

  It is if its string is that of a node of a forced forest in the same group of
  the same sentence: then its derivation is one of that node's, since nothing
  was pruned there. Strings are compared by 61-bit keys.

  Args:
    good: the good side.
    searched: N hypotheses of the same sentences.
  """
  group, string = good.group, good.string
  order = np.lexsort((string, group))
  return _contains(group[order], string[order], searched.group, searched.string)


def root_group(searched: Partials) -> tuple[np.ndarray, np.ndarray]:
  """Returns the hypotheses for whole sentences, and the best of each sentence.

  The language model has no more to say after a goal, so that search merges all
  goal hypotheses into one. The group is therefore that of its tail.

  Returns:
    `(nodes, best)`: nodes of these groups, rising, int64 `[H]`; the one that
    the best goal is made of, -1 without derivation, int64 `[B]`.
  """
  forest, roots = searched.forest, searched.forest.roots
  best = np.full(len(roots), -1, np.int64)
  exists = np.flatnonzero(roots >= 0)
  tails = forest.tails[forest.edge_offsets[roots[exists]], 0]
  best[exists] = np.where(tails >= 0, tails, roots[exists])
  group = searched.group
  return np.flatnonzero(np.isin(group, group[best[exists]])), best


@njit
def _contains(groups, strings, wanted_groups, wanted_strings):
  """Whether sorted pairs of group and string hold each of the wanted ones."""
  out = np.zeros(len(wanted_groups), np.bool_)
  for item in range(len(out)):
    group, string = wanted_groups[item], wanted_strings[item]
    low, high = 0, len(groups)
    while low < high:
      middle = (low + high) >> 1
      if groups[middle] < group or (
        groups[middle] == group and strings[middle] < string
      ):
        low = middle + 1
      else:
        high = middle
    out[item] = (
      low < len(groups) and groups[low] == group and strings[low] == string
    )
  return out


@njit
def _interval_keys(flat, offsets, node_offsets, first, last):
  """Keys of the words `first : last` of each node's reference, uint64 `[N]`."""
  out = np.zeros(len(first), np.uint64)
  for row in range(len(node_offsets) - 1):
    words = flat[offsets[row] : offsets[row + 1]]
    # Keys of the intervals from each begin on, made when first asked for.
    sums = np.zeros((len(words) + 1, len(words) + 1), np.uint64)
    done = np.zeros(len(words) + 1, np.bool_)
    for node in range(node_offsets[row], node_offsets[row + 1]):
      begin = first[node]
      if begin < 0:
        continue
      if not done[begin]:
        done[begin] = True
        key, power = np.uint64(0), np.uint64(1)
        for place in range(begin, len(words)):
          key, power = append_number(key, power, words[place])
          sums[begin, place + 1] = key
      out[node] = sums[begin, last[node]]
  return out


@njit
def _string_keys(edge_offsets, tails, strings):
  """Keys of the words of each node's first derivation, uint64 `[N]`."""
  row, flat, offsets, extra = strings
  size = len(edge_offsets) - 1
  keys, powers = np.zeros(size, np.uint64), np.ones(size, np.uint64)
  for node in range(size):
    edge = edge_offsets[node]
    key, power = np.uint64(0), np.uint64(1)
    low, high = string_range(row[edge], flat, offsets)
    for place in range(low, high):
      symbol = symbol_at(place, flat, extra)
      if symbol >= 0:
        key, power = append_number(key, power, symbol)
      else:
        tail = tails[edge, -1 - symbol]
        key = append(key, powers[tail], keys[tail])
        power = multiply(power, powers[tail])
    keys[node], powers[node] = key, power
  return keys
