"""Cube pruning over phrase lattices with features that cross phrases.

The pipeline of Gimpel (2012), section 3.5.3: the search over stacks makes a
phrase lattice with the features it knows; edges of low max-marginals go; then a
second pass walks the lattice with n-grams and triggers as well, so that each
node has a list of its best paths (Huang & Chiang 2007, cube pruning). A path
carries its whole string. Nothing is recombined, since a trigger may look back
to the first word. In the end the lists of the root are k-best lists.

Sparse features that `features.rule_templates` knows belong to the first pass;
`features.frequent_events` are the second pass's.
"""

import dataclasses

import numpy as np

from jaxmt import hypergraph
from jaxmt.decode import translation_forest
from jaxmt.decode.model import Model, Source
from jaxmt.errors import InputError
from jaxmt.features import frequent_events, sparse
from jaxmt.features.frequent_events import EventTable, find_events, room
from jaxmt.features.sparse import SparseRows
from jaxmt.hypergraph.derivations import DerivationLists
from jaxmt.hypergraph.forest import Forest
from jaxmt.text import ragged
from jaxmt.text.kernels import grown, njit, pop_heap, push_heap
from jaxmt.text.ragged import Ragged, row_offsets


@dataclasses.dataclass(frozen=True, kw_only=True)
class LatticeOptions:
  """How the second pass prunes.

  Attributes:
    ratio: edges stay whose best path is at least so likely relative to the best
      path of all: a probability ratio, above 0.
    edges: edges of a sentence at most.
    width: paths of each node.
  """

  ratio: float = 0.01
  edges: int = 2000
  width: int = 200


def check_options(options: LatticeOptions) -> None:
  """Raises `ValueError` for settings that make no sense."""
  if not 0 < options.ratio <= 1:
    raise ValueError("ratio is not above 0 and at most 1")
  if options.edges < 1 or options.width < 1:
    raise ValueError("edges and width must be at least 1")


def check_model(model: Model) -> None:
  """Raises `InputError` if the model has no phrase lattices."""
  if model.order is None:
    raise InputError(
      f"features '{frequent_events.NAME}' are of phrase lattices: they need a"
      " phrase-based model"
    )


def prune(forest: Forest, options: LatticeOptions) -> tuple[Forest, np.ndarray]:
  """Drops unlikely edges by their max-marginals.

  Returns:
    The lattices, and which edge each of their edges was, int64.
  """
  through = hypergraph.max_marginals(forest)
  cuts = forest.edge_cuts
  row = np.repeat(np.arange(len(forest)), np.diff(cuts))
  best = np.full(len(forest), -np.inf)
  np.maximum.at(best, row, through)
  # A little less: rounding must not part the best path.
  least = best + np.log(options.ratio) - 1e-9 * (1.0 + np.abs(best))
  chosen = np.flatnonzero((through >= least[row]) & (through > -np.inf))
  small, again = hypergraph.prune(
    hypergraph.restrict(forest, chosen),
    edges=np.full(len(forest), options.edges),
  )
  return small, chosen[again]


def kbest(
  model: Model,
  source: Source,
  forest: Forest,
  events: EventTable,
  *,
  size: int,
  unique: bool = False,
  options: LatticeOptions | None = None,
) -> DerivationLists:
  """Returns the best paths of phrase lattices, events counted.

  Args:
    model: a phrase-based model; its weights score events, too.
    source: the sentences.
    forest: their phrase lattices.
    events: the events.
    size: paths of a sentence at most; no more than `options.width` are known.
    unique: whether all strings of a sentence differ.
    options: see `LatticeOptions`.
  """
  check_model(model)
  options = options or LatticeOptions()
  lattice, chosen = prune(forest, options)
  strings = _strings(model, source, lattice)
  weights = np.array([model.weights.get(name, 0.0) for name in events.names])
  known = _word_numbers(model, source, events)
  linked = _linked(model, lattice.edges.rule, events)
  row = np.repeat(np.arange(lattice.num_edges), linked.lengths)
  score = lattice.score.astype(np.float64) + np.bincount(
    row, weights[linked.flat], minlength=lattice.num_edges
  )
  paths, edges, edge_offsets = _search(
    lattice.node_offsets,
    lattice.edge_offsets,
    np.ascontiguousarray(lattice.tails[:, 0]),
    score,
    (known[strings.flat], strings.offsets),
    (events.table, events.ends, weights),
    options.width,
  )
  found = Ragged(flat=edges, offsets=edge_offsets)
  sentence, score = paths[:, 0].astype(np.int64), paths[:, 1]
  words = _spelled(found, strings)
  keep = _first_ones(sentence, words, size=size, unique=unique)
  found = ragged.select(found, keep)
  return DerivationLists(
    offsets=row_offsets(np.bincount(sentence[keep], minlength=len(forest))),
    score=score[keep],
    edges=Ragged(
      flat=chosen[found.flat].astype(np.int32), offsets=found.offsets
    ),
    words=ragged.select(words, keep),
  )


def event_rows(
  model: Model,
  source: Source,
  forest: Forest,
  lists: DerivationLists,
  events: EventTable,
) -> tuple[SparseRows, tuple[str, ...]]:
  """Returns the events of D paths: sparse vectors and the names of their ids.

  Args:
    model: a phrase-based model.
    source: the sentences.
    forest: their phrase lattices.
    lists: paths of them, with words as `translation_forest.kbest` gives them.
    events: the events.
  """
  rules = forest.edges.rule[lists.edges.flat]
  linked = _linked(model, rules, events)
  ids, offsets = _events(
    _word_numbers(model, source, events)[lists.words.flat],
    lists.words.offsets,
    linked.flat,
    linked.offsets[lists.edges.offsets],
    events.table,
    events.ends,
  )
  return sparse.canonical(ids, np.ones(len(ids)), offsets), events.names


def _word_numbers(
  model: Model, source: Source, events: EventTable
) -> np.ndarray:
  """The events' number of each target word and copied word."""
  known = model.table.target_words.words
  return events.number((*known, *source.words))


def _strings(model: Model, source: Source, forest: Forest) -> Ragged:
  """The target words of each edge."""
  strings = translation_forest.edge_strings(model, source, forest)
  words = strings.symbols.flat >= 0
  symbols = Ragged(
    flat=strings.symbols.flat[words],
    offsets=np.concatenate([[0], np.cumsum(words)])[strings.symbols.offsets],
  )
  return ragged.select(symbols, strings.row)


def _linked(model: Model, rule: np.ndarray, events: EventTable) -> Ragged:
  """The word pairs of each edge: numbers of events."""
  rules, place = np.unique(rule, return_inverse=True)
  found = frequent_events.linked_events(events, model.table, rules)
  return ragged.select(found, place.reshape(-1))


def _spelled(paths: Ragged, strings: Ragged) -> Ragged:
  """The words of paths, whose edges stand from the last to the first."""
  owner = np.repeat(np.arange(len(paths)), paths.lengths)
  place = np.arange(len(owner)) - paths.offsets[owner]
  said = paths.flat[paths.offsets[owner + 1] - 1 - place]
  flat = ragged.select(strings, said)
  return Ragged(flat=flat.flat, offsets=flat.offsets[paths.offsets])


def _first_ones(
  sentence: np.ndarray, words: Ragged, *, size: int, unique: bool
) -> np.ndarray:
  """The first paths of each sentence, of equal strings the first if asked."""
  keep: list[int] = []
  count, seen, last = 0, set(), -1
  for row, number in enumerate(sentence.tolist()):
    if number != last:
      count, seen, last = 0, set(), number
    text = words[row].tobytes() if unique else b""
    if count < size and not (unique and text in seen):
      seen.add(text)
      keep.append(row)
      count += 1
  return np.array(keep, np.int64)


@njit
def _write_string(item, edge_of, before, words, offsets, out):
  """Writes the words of a path to the front of `out`; returns their number."""
  size, step = 0, item
  while step >= 0:
    edge = edge_of[step]
    size += offsets[edge + 1] - offsets[edge]
    step = before[step]
  place, step = size, item
  while step >= 0:
    edge = edge_of[step]
    for word in range(offsets[edge + 1] - 1, offsets[edge] - 1, -1):
      place -= 1
      out[place] = words[word]
    step = before[step]
  return size


@njit
def _extended(item, edge, paths, strings, events, score, text, found):
  """The score of a path and one edge more, with the events that this adds."""
  edge_of, before, total = paths
  words, offsets = strings
  table, ends, weights = events
  first = _write_string(item, edge_of, before, words, offsets, text)
  size = first
  for word in range(offsets[edge], offsets[edge + 1]):
    text[size] = words[word]
    size += 1
  value = score[edge]
  if item >= 0:
    value += total[item]
  for place in range(find_events(text, first, size, table, ends, found)):
    value += weights[found[place]]
  return value


@njit
def _longest_text(edge_offsets, tail, offsets, low, high):
  """The most words of a path to any node from `low` to `high`."""
  words, most = np.zeros(high - low, np.int64), 0
  for node in range(low, high):
    for edge in range(edge_offsets[node], edge_offsets[node + 1]):
      own = offsets[edge + 1] - offsets[edge]
      if tail[edge] >= 0:
        own += words[tail[edge] - low]
      words[node - low] = max(words[node - low], own)
    most = max(most, words[node - low])
  return most


@njit
def _search(node_offsets, edge_offsets, tail, score, strings, events, width):
  """Finds up to `width` paths of every node, best first.

  Returns:
    `(paths, edges, offsets)`: sentence and score of the root's paths, their
    edges from the last to the first.
  """
  sentences = len(node_offsets) - 1
  result = np.empty((sentences * width, 2), np.float64)
  offsets = np.zeros(sentences * width + 1, np.int64)
  listed = np.empty(1024, np.int32)
  rows, filled = 0, 0
  most_in = 1
  for node in range(len(edge_offsets) - 1):
    most_in = max(most_in, edge_offsets[node + 1] - edge_offsets[node])
  keys = np.empty(most_in + 1, np.float64)
  heap = np.empty(most_in + 1, np.int64)
  rank = np.zeros(most_in, np.int64)
  own_total = np.empty(width, np.float64)
  own_edge, own_before = np.empty(width, np.int64), np.empty(width, np.int64)
  for sentence in range(sentences):
    low, high = node_offsets[sentence], node_offsets[sentence + 1]
    if low == high:
      continue
    longest = _longest_text(edge_offsets, tail, strings[1], low, high)
    text = np.zeros(longest + 1, np.int32)
    found = np.zeros(room(longest) + 1, np.int32)
    # The paths of all nodes: last edge, path before it, score.
    size = (high - low) * width
    paths = (
      np.empty(size, np.int64),
      np.empty(size, np.int64),
      np.empty(size, np.float64),
    )
    first = np.zeros(high - low + 1, np.int64)
    for node in range(low, high):
      begin, end = edge_offsets[node], edge_offsets[node + 1]
      # A heap of the next path through each edge, by its score.
      waiting = 0
      for edge in range(begin, end):
        rank[edge - begin] = 0
        item = first[tail[edge] - low] if tail[edge] >= 0 else -1
        value = _extended(
          item, edge, paths, strings, events, score, text, found
        )
        waiting = push_heap(keys, heap, waiting, value, edge)
      count = 0
      while waiting > 0 and count < width:
        edge, value = heap[0], keys[0]
        waiting = pop_heap(keys, heap, waiting)
        own_total[count], own_edge[count] = value, edge
        own_before[count] = -1
        if tail[edge] >= 0:
          below = tail[edge] - low
          own_before[count] = first[below] + rank[edge - begin]
          rank[edge - begin] += 1
          item = first[below] + rank[edge - begin]
          if item < first[below + 1]:
            value = _extended(
              item, edge, paths, strings, events, score, text, found
            )
            waiting = push_heap(keys, heap, waiting, value, edge)
        count += 1
      # Events make paths come out of order: sort them.
      order = np.argsort(-own_total[:count], kind="mergesort")
      start = first[node - low]
      for place in range(count):
        paths[0][start + place] = own_edge[order[place]]
        paths[1][start + place] = own_before[order[place]]
        paths[2][start + place] = own_total[order[place]]
      first[node - low + 1] = start + count
    # The root's paths.
    for item in range(first[high - low - 1], first[high - low]):
      result[rows, 0], result[rows, 1] = sentence, paths[2][item]
      step = item
      while step >= 0:
        listed = grown(listed, filled + 1)
        listed[filled] = paths[0][step]
        filled += 1
        step = paths[1][step]
      rows += 1
      offsets[rows] = filled
  return result[:rows], listed[:filled], offsets[: rows + 1]


@njit
def _events(words, offsets, linked, linked_offsets, table, ends):
  """Numbers of the events of D strings, and of the pairs they link."""
  total = len(linked)
  longest = 0
  for row in range(len(offsets) - 1):
    longest = max(longest, offsets[row + 1] - offsets[row])
    total += room(offsets[row + 1] - offsets[row])
  found = np.zeros(room(longest) + 1, np.int32)
  out = np.empty(total, np.int32)
  starts = np.zeros(len(offsets), np.int64)
  count = 0
  for row in range(len(offsets) - 1):
    low, high = offsets[row], offsets[row + 1]
    for place in range(
      find_events(words[low:high], 0, high - low, table, ends, found)
    ):
      out[count] = found[place]
      count += 1
    for place in range(linked_offsets[row], linked_offsets[row + 1]):
      out[count] = linked[place]
      count += 1
    starts[row + 1] = count
  return out[:count], starts
