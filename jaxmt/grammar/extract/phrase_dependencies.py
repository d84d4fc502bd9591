"""Phrase dependencies of word-aligned text with target trees.

Two target phrases of a sentence are a dependency of child and parent if both
are part of an extracted phrase pair, do not overlap, and the longest word arc
from a word of the child to its head in the parent is longer than the longest
arc the other way round ("d-consistent": Gimpel 2012, section 4.3). A phrase
with the root of the tree depends on `$`. All of them count, those of different
segmentations of one sentence, too. Contexts and outcomes of the events of each
(`dependency_events`) are counted as a map-reduce over shards: the map counts a
shard in a hash table; the reduce cuts the range of contexts into parts, whose
relative frequencies are estimated each for itself. Counts are whole numbers:
the result has the same bits for any shards, workers, memory and runner.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jaxmt.grammar import dependency_events as events
from jaxmt.grammar.dependency_table import DependencyTable, make_table
from jaxmt.grammar.extract.hiero import find_phrases
from jaxmt.grammar.extract.pair_arrays import pair_arrays, sentence_pair
from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.runner import Runner
from jaxmt.text import array_folder
from jaxmt.text.kernels import mixed, njit
from jaxmt.text.ragged import Ragged, select

_SHARD = 400  # sentence pairs
_ENTRY = 20  # bytes of a counted event


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParsedPairs:
  """B sentence pairs with links and target trees, as keys of words.

  Attributes:
    source: keys of source words, uint64, B rows.
    target: keys of target words, uint64, B rows.
    clusters: keys of the clusters of target words, uint64, B rows.
    heads: heads of target words, -1 is the root, int32, B rows.
    links: (source, target) positions, int32 `[L, 2]` in B rows.
  """

  source: Ragged
  target: Ragged
  clusters: Ragged
  heads: Ragged
  links: Ragged

  def __len__(self) -> int:
    return len(self.source)


@dataclasses.dataclass(frozen=True, kw_only=True)
class KnownPhrases:
  """Sorted keys of the phrases that a table is made for, uint64 each.

  Attributes:
    source: of source phrases.
    target: of target phrases.
    clusters: of target phrases as clusters.
  """

  source: np.ndarray
  target: np.ndarray
  clusters: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class DependencyOptions:
  """What is extracted, and how.

  Attributes:
    length: most words of a phrase.
    known: phrases that matter; None for all. Others count in the contexts of
      those that do.
    memory: bytes for counts in memory.
    spill: an existing folder for counts beyond that; "" for none.
  """

  length: int = 7
  known: KnownPhrases | None = None
  memory: int = 1 << 30
  spill: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EventCounts:
  """N distinct events and how often they occur, sorted by context.

  Attributes:
    context: uint64 `[N]`.
    outcome: 0 for outcomes that do not matter, uint64 `[N]`.
    count: int32 `[N]`.
  """

  context: np.ndarray
  outcome: np.ndarray
  count: np.ndarray

  def __len__(self) -> int:
    return len(self.context)


def split(pairs: ParsedPairs, *, size: int = _SHARD) -> Iterator[ParsedPairs]:
  """Cuts sentence pairs into shards."""
  fields = [field.name for field in dataclasses.fields(ParsedPairs)]
  for start in range(0, len(pairs), size):
    rows = np.arange(start, min(start + size, len(pairs)))
    yield ParsedPairs(
      **{name: select(getattr(pairs, name), rows) for name in fields}
    )


def extract(
  shards: Iterable[ParsedPairs], *, options: DependencyOptions, runner: Runner
) -> DependencyTable:
  """Returns the table of a corpus.

  Args:
    shards: the corpus, e.g. of `split`.
    options: what to extract.
    runner: where to work.
  """
  work = functools.partial(
    count_events, length=options.length, known=options.known
  )
  store = _Store(options)
  for counts in runner_lib.map_shards(work, shards, runner=runner):
    store.add(counts)
  # Probabilities of word arcs first: the lexical features need them.
  arcs = merged(
    [_kinds(run, events.WORD_ARC, events.KINDS) for run in store.runs()]
  )
  keys, logs, _ = _probabilities(arcs)
  order = np.argsort(keys)
  estimate = functools.partial(
    _estimated, arcs=keys[order], arc_logs=logs[order]
  )
  parts = runner_lib.map_shards(estimate, _cut(store, options), runner=runner)
  empty = (np.zeros(0, np.uint64), np.zeros(0), np.zeros(0, np.int8))
  return make_table(*map(np.concatenate, zip(empty, *parts, strict=True)))


def count_events(
  pairs: ParsedPairs, *, length: int, known: KnownPhrases | None
) -> EventCounts:
  """Returns the counted events of a shard."""
  keys = (np.zeros(0, np.uint64),) * 3
  if known is not None:
    keys = (known.source, known.target, known.clusters)
  counts = _count_pairs(
    pair_arrays(pairs.source, pairs.target, pairs.links, words=np.uint64),
    pairs.clusters.flat,
    pairs.heads.flat,
    length,
    known is not None,
    keys,
  )
  return _sorted(*counts)


def _sorted(context, outcome, count) -> EventCounts:
  order = np.lexsort((outcome, context))
  return EventCounts(
    context=context[order], outcome=outcome[order], count=count[order]
  )


def merged(runs: Sequence[EventCounts]) -> EventCounts:
  """Returns the sums of several counts."""
  join = lambda name, dtype: np.concatenate(
    [np.zeros(0, dtype), *(np.asarray(getattr(run, name)) for run in runs)]
  )
  return _sorted(
    *_summed(
      join("context", np.uint64),
      join("outcome", np.uint64),
      join("count", np.int32),
    )
  )


class _Store:
  """Counts of shards, merged; those beyond the memory go to disk."""

  def __init__(self, options: DependencyOptions):
    self._options = options
    self._pending: list[EventCounts] = []
    self._spilled: list[EventCounts] = []

  def add(self, counts: EventCounts) -> None:
    self._pending.append(counts)
    sizes = [len(run) for run in self._pending]
    # Runs of similar sizes become one.
    while len(sizes) > 1 and sizes[-2] < 2 * sizes[-1]:
      both = merged(self._pending[-2:])
      self._pending[-2:] = [both]
      sizes[-2:] = [len(both)]
    over = sum(sizes) * _ENTRY > self._options.memory // 4
    if self._options.spill and over:
      run = merged(self._pending)
      arrays = array_folder.spill(
        self._options.spill,
        f"counts{len(self._spilled):05}",
        {"context": run.context, "outcome": run.outcome, "count": run.count},
      )
      self._spilled.append(EventCounts(**arrays))
      self._pending = []

  def runs(self) -> list[EventCounts]:
    return self._spilled + self._pending

  @property
  def nbytes(self) -> int:
    return _ENTRY * sum(len(run) for run in self.runs())


def _kinds(run: EventCounts, low: int, high: int) -> EventCounts:
  """The events of some kinds."""
  shift = int(events.KIND_SHIFT)
  return _between(run, low << shift, high << shift)


def _between(run: EventCounts, low: int, high: int) -> EventCounts:
  """The events whose contexts are in a range."""
  start = np.searchsorted(run.context, np.uint64(low))
  stop = (
    len(run)
    if high >= 1 << 64
    else np.searchsorted(run.context, np.uint64(high))
  )
  return EventCounts(
    context=run.context[start:stop],
    outcome=run.outcome[start:stop],
    count=run.count[start:stop],
  )


def _cut(
  store: _Store, options: DependencyOptions
) -> Iterator[list[EventCounts]]:
  """Yields the runs' slices of parts of the range of contexts.

  Keys are evenly spread within a kind, so that equal ranges hold about as many.
  """
  parts = 1 + len(events.FEATURES) * store.nbytes // max(options.memory, 1)
  width = 1 << int(events.KIND_SHIFT)
  for kind in range(len(events.FEATURES)):
    for part in range(parts):
      low = kind * width + part * width // parts
      high = kind * width + (part + 1) * width // parts
      yield [_between(run, low, high) for run in store.runs()]


def _probabilities(counts: EventCounts):
  """Keys, log relative frequencies and kinds of events with an outcome."""
  starts = np.flatnonzero(
    np.diff(counts.context, prepend=~counts.context[:1]) != 0
  )
  sizes = np.diff(starts, append=len(counts))
  totals = np.add.reduceat(counts.count.astype(np.int64), starts)
  totals = np.repeat(totals if len(counts) else totals[:0], sizes)
  logs = np.log(counts.count / totals)
  real = counts.outcome != 0
  keys = event_keys(counts.context[real], counts.outcome[real])
  kinds = (counts.context[real] >> events.KIND_SHIFT).astype(np.int8)
  return keys, logs[real], kinds


def _estimated(slices: Sequence[EventCounts], *, arcs, arc_logs):
  """Keys, log probabilities and kinds of a part of the table."""
  counts = merged(slices)
  if not len(counts):
    return np.zeros(0, np.uint64), np.zeros(0), np.zeros(0, np.int8)
  kind = int(counts.context[0] >> events.KIND_SHIFT)
  if kind not in (events.WORD, events.WORD_CLUSTER):
    return _probabilities(counts)
  # Of each event of phrases the most frequent arc; of equals the likelier one.
  place = np.minimum(np.searchsorted(arcs, counts.outcome), len(arcs) - 1)
  logs = np.where(arcs[place] == counts.outcome, arc_logs[place], -np.inf)
  order = np.lexsort((counts.outcome, logs, counts.count, counts.context))
  last = np.flatnonzero(
    np.diff(counts.context[order], append=~counts.context[order][-1:]) != 0
  )
  best = order[last]
  kinds = np.full(len(best), kind, np.int8)
  return counts.context[best] | np.uint64(1), logs[best], kinds


@njit
def event_keys(contexts, outcomes):
  """Returns the keys of events, uint64 `[N]`; arcs between words are theirs."""
  out = np.empty(len(contexts), np.uint64)
  for row in range(len(contexts)):
    if contexts[row] >> events.KIND_SHIFT >= events.WORD_ARC:
      out[row] = outcomes[row]
    else:
      out[row] = events.event_key(contexts[row], outcomes[row])
  return out


# --- counting ---------------------------------------------------------------


@njit
def _new_counter(size):
  return (
    np.zeros(size, np.uint64),
    np.zeros(size, np.uint64),
    np.zeros(size, np.int32),
    np.zeros(1, np.int64),
  )


@njit
def _add(counter, context, outcome, count):
  """Adds to a counter with open addressing; returns it, or a larger one."""
  contexts, outcomes, counts, size = counter
  if 2 * (size[0] + 1) > len(contexts):
    larger = _new_counter(2 * len(contexts))
    for slot in range(len(contexts)):
      if counts[slot]:
        _put(larger, contexts[slot], outcomes[slot], counts[slot])
    counter = larger
  _put(counter, context, outcome, count)
  return counter


@njit
def _put(counter, context, outcome, count):
  contexts, outcomes, counts, size = counter
  mask = np.uint64(len(contexts) - 1)
  slot = mixed(context + outcome) & mask
  while counts[slot]:
    if contexts[slot] == context and outcomes[slot] == outcome:
      counts[slot] += count
      return
    slot = (slot + np.uint64(1)) & mask
  contexts[slot], outcomes[slot], counts[slot] = context, outcome, count
  size[0] += 1


@njit
def _entries(counter):
  contexts, outcomes, counts, _ = counter
  used = np.flatnonzero(counts)
  return contexts[used], outcomes[used], counts[used]


@njit
def _summed(context, outcome, count):
  counter = _new_counter(1024)
  for row in range(len(context)):
    counter = _add(counter, context[row], outcome[row], count[row])
  return _entries(counter)


@njit
def _if_known(key, known):
  """The key, 0 if it is not among the known ones."""
  place = np.searchsorted(known, key)
  if place < len(known) and known[place] == key:
    return key
  return np.uint64(0)


@njit
def _longest_arc(heads, child_begin, child_end, begin, end):
  """(length, word) of the longest arc from a child's word into a span."""
  longest, at = 0, -1
  for word in range(child_begin, child_end):
    head = heads[word]
    if begin <= head < end and abs(word - head) > longest:
      longest, at = abs(word - head), word
  return longest, at


@njit
def _count_pairs(bitext, clusters, heads, length, filtered, known):
  """Counts the events of sentence pairs.

  Args:
    bitext: the pairs, see `PairArrays`.
    clusters: of target words.
    heads: of target words.
    length: words of a phrase at most.
    filtered: whether only known phrases count.
    known: keys of known source phrases, target phrases and cluster strings.

  Returns:
    `(contexts, outcomes, counts)`.
  """
  counter = _new_counter(1 << 12)
  known_source, known_target, known_clusters = known
  for row in range(len(bitext.source_offsets) - 1):
    others, words, pairs = sentence_pair(bitext, row)
    begin, end = bitext.target_offsets[row], bitext.target_offsets[row + 1]
    tree, kinds = heads[begin:end], clusters[begin:end]
    counter = _count_arcs(counter, words, kinds, tree)
    spans, _ = find_phrases(
      len(others), len(words), pairs, length, length, False
    )
    # Keys of all phrase pairs: source, target, clusters.
    keys = np.zeros((len(spans), 3), np.uint64)
    for p in range(len(spans)):
      keys[p, 0] = events.phrase_key(others, spans[p, 0], spans[p, 1])
      keys[p, 1] = events.phrase_key(words, spans[p, 2], spans[p, 3])
      keys[p, 2] = events.phrase_key(kinds, spans[p, 2], spans[p, 3])
      if filtered:
        keys[p, 0] = _if_known(keys[p, 0], known_source)
        keys[p, 1] = _if_known(keys[p, 1], known_target)
        keys[p, 2] = _if_known(keys[p, 2], known_clusters)
    counter = _count_sentence(counter, words, kinds, tree, spans, keys)
  return _entries(counter)


@njit
def _count_arcs(counter, words, clusters, heads):
  """Counts the arcs between the words of a sentence."""
  one = np.int32(1)
  for word in range(len(words)):
    head = heads[word]
    side = events.ROOT if head < 0 else np.int64(head < word)
    for kind in (events.WORD_ARC, events.CLUSTER_ARC):
      text = words if kind == events.WORD_ARC else clusters
      parent = events.ROOT_KEY if head < 0 else text[head]
      context = events.context_key(
        kind, parent, np.uint64(1), np.uint64(1), side
      )
      outcome = events.arc_key(text[word], parent, side)
      counter = _add(counter, context, outcome, one)
  return counter


@njit
def _count_sentence(counter, words, clusters, heads, spans, keys):
  """Counts all phrase dependencies of a sentence."""
  out = np.zeros((2, len(events.FEATURES)), np.uint64)
  parts = np.zeros(events.PARTS, np.uint64)
  # Target spans with several source spans are one phrase to the target tree.
  first = np.ones(len(spans), np.bool_)
  for p in range(len(spans)):
    for q in range(p):
      if spans[p, 2] == spans[q, 2] and spans[p, 3] == spans[q, 3]:
        first[p] = False
  for c in range(len(spans)):
    low, high = spans[c, 2], spans[c, 3]
    parts[0], parts[2], parts[4] = keys[c, 1], keys[c, 2], keys[c, 0]
    for word in range(low, high):
      if heads[word] < 0:
        root = np.uint64(events.ROOT_KEY)
        parts[1] = parts[3] = parts[5] = root
        _set_events(parts, 2, 2, 2, 2, out)
        counter = _count_one(
          counter, out, first[c], words, clusters, heads, word
        )
    for p in range(len(spans)):
      begin, end = spans[p, 2], spans[p, 3]
      if begin < high and low < end:
        continue
      longest, word = _longest_arc(heads, low, high, begin, end)
      if longest == 0:
        continue
      if _longest_arc(heads, begin, end, low, high)[0] >= longest:
        continue
      # Source phrases that overlap are no part of one segmentation.
      apart = spans[c, 1] <= spans[p, 0] or spans[p, 1] <= spans[c, 0]
      unique = first[c] and first[p]
      if not apart and not unique:
        continue
      parts[1], parts[3], parts[5] = keys[p, 1], keys[p, 2], keys[p, 0]
      right = low >= end
      order = np.int64((spans[c, 0] > spans[p, 0]) != right)
      target_gap = (low - end if right else begin - high) > 0
      gap = max(spans[c, 0] - spans[p, 1], spans[p, 0] - spans[c, 1])
      _set_events(
        parts, np.int64(right), order, np.int64(gap > 0), np.int64(target_gap),
        out,
      )  # fmt: skip
      if not apart:
        out[0, 4:] = 0
      counter = _count_one(counter, out, unique, words, clusters, heads, word)
  return counter


@njit
def _set_events(parts, direction, order, source_gap, target_gap, out):
  """Sets contexts and outcomes of all but the lexical events."""
  for kind in range(out.shape[1]):
    if kind not in (events.WORD, events.WORD_CLUSTER):
      out[0, kind], out[1, kind] = events.event(
        kind, parts, direction, order, source_gap, target_gap
      )


@njit
def _count_one(counter, out, unique, words, clusters, heads, word):
  """Counts the events of a dependency; of the target tree if it is unique."""
  one = np.int32(1)
  head = heads[word]
  side = events.ROOT if head < 0 else np.int64(head < word)
  for kind in range(out.shape[1]):
    if kind in (events.WORD, events.WORD_CLUSTER):
      continue
    if kind < len(events.TARGET_TREE) and not unique:
      continue
    if out[0, kind] != 0:
      counter = _add(counter, out[0, kind], out[1, kind], one)
  if unique:
    # The word arcs of events of phrases, for the lexical features.
    for kind in (events.WORD, events.WORD_CLUSTER):
      phrases = kind - 2
      if out[0, phrases] == 0 or out[1, phrases] == 0:
        continue
      text = words if kind == events.WORD else clusters
      parent = events.ROOT_KEY if head < 0 else text[head]
      context = events.lexical_context(
        kind, events.event_key(out[0, phrases], out[1, phrases])
      )
      outcome = events.arc_key(text[word], parent, side)
      counter = _add(counter, context, outcome, one)
  return counter
