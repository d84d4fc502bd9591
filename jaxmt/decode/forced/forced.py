"""Forced decoding: all derivations of a source that yield a given target.

    forced = force.force(model, source, references)
    forced.reached, forced.reason         which sentences, why not the others
    kbest.best(model, source, forced.forest, size=1)

The language model is replaced by one over positions of the reference (Zhao,
Huang, Mi & Ittycheriah 2014, "Hierarchical MT training using max-violation
perceptron", section 3): p(q | p) = 1 if q = p + 1 else 0. A hypothesis covers
one interval of the reference, a repeated word gives one hypothesis for each
place, and nothing is pruned: rules are filtered by the reference instead.
Phrase-based models are forced from left to right (`forced_phrases`).

Edges score as in the forests of the search: what the language model says of an
edge's interval, less what it said of its tails', is part of the score. So
derivations have their model scores, and the best score of a node compares with
those of hypotheses in the same cell of a beam.
"""

import concurrent.futures
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from jaxmt.decode.forced import (
  forced_kernel,
  forced_phrases,
  forced_scores,
)
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase import phrase_chart
from jaxmt.decode.translation_forest import RuleUses, Spans
from jaxmt.errors import InputError
from jaxmt.grammar import table as tables
from jaxmt.grammar.provenance import Provenance
from jaxmt.grammar.table import Kind
from jaxmt.hypergraph.forest import Forest
from jaxmt.lm import tables as lm_tables
from jaxmt.text import vocabulary
from jaxmt.text.ragged import Ragged, row_offsets

_CHUNK = 32  # sentences a thread takes at a time


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForceConfig:
  """Limits; a sentence beyond one is not reached, for the reason "limit".

  Attributes:
    span: longest span of Hiero rules; that of the model if None.
    words: longest sentence, source or reference.
    nodes: hypotheses of a sentence before those of no use are dropped.
    edges: likewise.
    steps: elementary steps of joining rules and hypotheses.
    threads: sentences in work at a time.
  """

  span: int | None = None
  words: int = 250
  nodes: int = 1 << 18
  edges: int = 1 << 20
  steps: int = 1 << 27
  threads: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForcedForests:
  """The derivations of B references.

  Attributes:
    forest: all derivations that yield the reference; N nodes, all of them part
      of one. Sentences not reached have no nodes.
    reached: whether there is one, bool `[B]`.
    reason: why there is none, "" if there is; B strings. What stands before a
      colon is the kind of reason.
    category: whether a node is `match.ORDINARY`, `GLUE` or `GOAL`, int8 `[N]`.
    first: first reference word under each node, -1 if there is no word under
      it, int32 `[N]`.
    last: one past its last, int32 `[N]`.
  """

  forest: Forest
  reached: np.ndarray
  reason: tuple[str, ...]
  category: np.ndarray
  first: np.ndarray
  last: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForceRules:
  """What forcing needs of a model's rules, whatever their weights.

  Attributes:
    patterns: all rules of each trie node, without limit.
    target: target sides, writable (kernels are compiled for that).
    glue: glue rules of arity 1, and of arity 2.
    longest: symbols of the longest target side.
  """

  patterns: Ragged
  target: Ragged
  glue: tuple[np.ndarray, np.ndarray]
  longest: int


def make_rules(model: Model) -> ForceRules:
  """Prepares a model's rules; for repeated calls of `force`."""
  table, end = model.table, model.trie.end
  rules = np.argsort(end, kind="stable")[int(np.sum(end < 0)) :]
  counts = np.bincount(end[rules], minlength=model.trie.num_nodes)
  glue, arities = table.kind == Kind.GLUE, tables.arity(table)
  return ForceRules(
    patterns=Ragged(
      flat=rules.astype(np.int32),
      offsets=row_offsets(counts),
    ),
    target=_writable(table.target),
    glue=(
      np.flatnonzero(glue & (arities == 1)).astype(np.int32),
      np.flatnonzero(glue & (arities == 2)).astype(np.int32),
    ),
    longest=int(table.target.lengths.max(initial=0)),
  )


def force(
  model: Model,
  source: Source,
  references: Sequence[str],
  *,
  config: ForceConfig | None = None,
  rules: ForceRules | None = None,
  excluded: Ragged | None = None,
  on_done: Callable[[int], object] | None = None,
) -> ForcedForests:
  """Finds all derivations of the references.

  The model's limits on target sides and applications do not hold here. Glue
  joins parts from left to right.

  Args:
    model: rules, language model, weights.
    source: B sentences, with their constituents for tree-to-string rules.
    references: B lines, words between white space.
    config: limits.
    rules: `make_rules(model)`, or of the model with other weights.
    excluded: rules each sentence must not use, B rising rows; see `own_rules`.
    on_done: called with numbers of sentences as they are done.

  Raises:
    InputError: if sentences have markup.
    ValueError: if the numbers of sentences differ.
  """
  config = config or ForceConfig()
  if source.marks is not None:
    raise InputError("forced decoding takes no markup")
  if len(references) != len(source):
    raise ValueError(f"{len(references)} references, {len(source)} sentences")
  if excluded is not None and len(excluded) != len(source):
    raise ValueError(f"{len(excluded)} lists of rules, {len(source)} sentences")
  rules = rules or make_rules(model)
  target, words = vocabulary.intern(references)
  parts = _run(model, source, target, words, rules, excluded, config, on_done)
  forest, (category, first, last), status = _assembled(parts)
  lines = _Lines(source=source, target=target, words=words)
  reached = np.diff(forest.node_offsets) > 0
  return ForcedForests(
    forest=forced_scores.scored(
      model,
      source,
      forest,
      reference=_lm_words(model, target, words),
      states=(category, first, last),
    ),
    reached=reached,
    reason=tuple(
      "" if is_reached else _reason(lines, row, status[row].tolist(), config)
      for row, is_reached in enumerate(reached.tolist())
    ),
    category=category.astype(np.int8),
    first=first,
    last=last,
  )


def _assembled(parts):
  """Joins what the kernel returned: `(forest, states of nodes, status)`.

  The forest has no scores yet. States are category, first and last reference
  word of each node.
  """
  nodes, node_counts, edges, edge_counts, status = (
    np.concatenate(columns) for columns in zip(*parts, strict=True)
  )
  begin, end, category, label, first, last = np.ascontiguousarray(nodes.T)
  node_offsets = row_offsets(node_counts)
  # Tails are numbered within their sentence.
  base = np.repeat(np.repeat(node_offsets[:-1], node_counts), edge_counts)
  tails = np.where(edges[:, 1:] >= 0, edges[:, 1:] + base[:, None], -1)
  none = np.zeros(len(edges), np.float32)
  forest = Forest(
    node_offsets=node_offsets,
    edge_offsets=row_offsets(edge_counts),
    tails=tails.astype(np.int32),
    score=none,
    nodes=Spans(
      begin=begin,
      end=end,
      label=label,
      rank=_rank(node_offsets, begin, end, category),
    ),
    edges=RuleUses(
      rule=edges[:, 0].copy(), lm=none, matched=none, mismatched=none
    ),
  )
  return forest, (category, first, last), status


def own_rules(provenance: Provenance) -> Ragged:
  """Lists each sentence's rules that no other sentence gave.

  For `force`: without them a sentence is derived as if it had not been seen.
  """
  rules = provenance.rules
  size = int(rules.flat.max(initial=-1)) + 1
  alone = np.bincount(rules.flat, minlength=size)[rules.flat] == 1
  return Ragged(
    flat=np.asarray(rules.flat[alone], np.int32),
    offsets=row_offsets(alone)[rules.offsets],
  )


def _writable(rows: Ragged) -> Ragged:
  """Rows as kernels are compiled for; memory maps would be another type."""
  return Ragged(
    flat=np.require(rows.flat, np.int32, ["C", "W"]),
    offsets=np.require(rows.offsets, np.int64, ["C", "W"]),
  )


def _lm_words(model: Model, target: Ragged, words: Sequence[str]) -> Ragged:
  """References as language model word ids."""
  known = lm_tables.word_map(model.lm, words)
  known[(known == lm_tables.BOS_WORD) | (known == lm_tables.EOS_WORD)] = (
    lm_tables.UNK_WORD
  )
  return Ragged(flat=known[target.flat], offsets=target.offsets)


def _run(model, source, target, words, rules, excluded, config, on_done):
  """Runs the kernel on all sentences, some at a time."""
  index = model.table.target_words.index
  size = len(model.table.target_words)
  ids = np.array([index.get(word, -1) for word in words], np.int32)
  new = ids < 0  # only copied source words can be these
  extra = int(np.count_nonzero(new))
  ids[new] = size + np.arange(extra, dtype=np.int32)
  number = dict(zip(words, ids.tolist(), strict=True))
  copy_word = np.array(
    [number.get(word, -1) for word in source.words], np.int32
  )
  none = np.zeros(len(source) + 1, np.int64)
  spans = source.spans or Ragged(flat=np.zeros((0, 3), np.int32), offsets=none)
  banned = excluded or Ragged(flat=np.zeros(0, np.int32), offsets=none)
  pair = lambda rows: (rows.flat, rows.offsets)
  most = np.array([config.nodes, config.edges, config.steps], np.int64)
  copy_all = model.limits.pass_through == "all"
  said = (ids[target.flat], np.asarray(target.offsets, np.int64))
  if model.order is not None:
    columns = (
      pair(_writable(source.ids)),
      np.require(source.copies, np.int32, ["C", "W"]),
      said,
      pair(_writable(banned)),
      (
        (model.trie.keys, model.trie.children),
        pair(rules.patterns),
        pair(rules.target),
        copy_word,
        model.order.classes,
        (len(model.table), tables.X),
      ),
      size + extra,
      (
        phrase_chart.longest_phrase(model),
        copy_all,
        model.order.limit,
        most,
        config.words,
      ),
    )
    return _map(
      forced_phrases.force_batch, columns, len(source), config, on_done
    )
  columns = (
    pair(_writable(source.ids)),
    np.require(source.copies, np.int32, ["C", "W"]),
    pair(_writable(spans)),
    said,
    pair(_writable(banned)),
    (
      (model.trie.keys, model.trie.children),
      pair(rules.patterns),
      (
        np.require(model.table.lhs, np.int32, ["C", "W"]),
        *pair(rules.target),
        *rules.glue,
      ),
      copy_word,
      (len(model.table), tables.S),
    ),
    (size + extra, model.trie.num_nodes, rules.longest),
    (
      model.limits.span if config.span is None else config.span,
      copy_all,
      most,
      model.arity,
      config.words,
    ),
  )
  return _map(forced_kernel.force_batch, columns, len(source), config, on_done)


def _map(kernel, columns, size, config, on_done):
  """Calls a kernel for chunks of sentences, some at a time."""

  def work(start: int):
    stop = min(start + _CHUNK, size)
    done = kernel((start, stop), *columns)
    if on_done is not None:
      on_done(stop - start)
    return done

  starts = range(0, max(size, 1), _CHUNK)
  if config.threads == 1:
    return [work(start) for start in starts]
  with concurrent.futures.ThreadPoolExecutor(config.threads) as pool:
    return list(pool.map(work, starts))


def _rank(node_offsets, begin, end, category) -> np.ndarray:
  """Numbers the nodes of each cell, int32 `[N]`."""
  size = len(begin)
  sentence = np.repeat(np.arange(len(node_offsets) - 1), np.diff(node_offsets))
  changed = np.zeros(size, bool)
  changed[:1] = True
  for column in (sentence, begin, end, category):
    changed[1:] |= column[1:] != column[:-1]
  starts = np.flatnonzero(changed)
  lengths = np.diff(np.append(starts, size))
  return (np.arange(size) - np.repeat(starts, lengths)).astype(np.int32)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Lines:
  """Sentences and references, to quote from."""

  source: Source
  target: Ragged
  words: list[str]

  def quote_source(self, row: int, begin: int, end: int) -> str:
    """Spells source words."""
    first = self.source.ids.offsets[row]
    copies = self.source.copies[first + begin : first + end]
    return " ".join(self.source.words[word] for word in copies)

  def quote_target(self, row: int, begin: int, end: int) -> str:
    """Spells reference words."""
    return " ".join(self.words[word] for word in self.target[row][begin:end])


def _reason(
  lines: _Lines, row: int, status: list[int], config: ForceConfig
) -> str:
  """Says why a sentence has no derivation."""
  kind, one, two, begin, end = status
  length = int(lines.target.lengths[row])
  if kind == forced_kernel.EMPTY:
    sides = (int(lines.source.ids.lengths[row]), length)
    return f"empty: {'source' if not sides[0] else 'reference'}"
  if kind == forced_kernel.LONG:
    return f"limit: over {config.words} words"
  if kind == forced_kernel.LIMIT:
    return "limit: too many hypotheses"
  if kind == forced_kernel.WORD:
    return f"word not producible: '{lines.quote_target(row, one, one + 1)}'"
  if kind == forced_kernel.UNFIT:
    word = lines.quote_target(row, one, one + 1)
    return f"word only in rules that do not fit the reference: '{word}'"
  if kind == forced_kernel.UNCOVERED:
    return (
      f"no derivation covers source words: {_interval(one, two)}"
      f" '{lines.quote_source(row, one, two)}'"
    )
  if one < 0:
    return "reachable parts only: no word of the reference"
  return (
    f"reachable parts only: longest reference interval {_interval(one, two)}"
    f" of {length} words, from source words {_interval(begin, end)}"
  )


def _interval(begin: int, end: int) -> str:
  """Writes positions from 0, both ends included."""
  return f"{begin}" if end == begin + 1 else f"{begin}-{end - 1}"
