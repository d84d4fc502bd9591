"""Lists of the k best derivations of each sentence.

Derivations are enumerated lazily, best first (Huang & Chiang 2005, "Better
k-best parsing", algorithm 3). The derivations of a node are records in falling
order of score, made when somebody asks for them: a record is an edge with one
record of each tail, and its successors take the next record of one tail. A
combination of ranks is reached only once, because a tail may advance only while
the tails before it are at their first record.

With `unique`, derivations with the words of a better one are left out, at every
node: the rest of a derivation adds the same to both, so the better one stands
for them wherever they could be used.

With `diversity`, the list is chosen greedily from ten times as many strings,
each next one by

    score - diversity · number of bigrams shared with those chosen before

(Gimpel et al. 2013, "A systematic exploration of diversity in machine
translation"; a bigram counts once for each earlier string that has it, the
ends of a string count as words). The choice is then listed by score.

Counters that kernels pass on begin as `np.int64(0)`: a literal 0 would have the
functions they are passed to compiled twice.
"""

import concurrent.futures

import numpy as np

from jaxmt.hypergraph.derivations import (
  EDGE,
  KIDS,
  LEFT,
  NEXT,
  RIGHT,
  DerivationLists,
  EdgeStrings,
  compare_strings,
  find_place,
  first_place,
  hash_string,
  list_item,
  no_strings,
  rehash,
  spell_item,
)
from jaxmt.hypergraph.forest import Forest, edge_scores
from jaxmt.hypergraph.host_passes import inside_max_between
from jaxmt.text import ragged
from jaxmt.text.kernels import grown, grown_rows, njit
from jaxmt.text.ragged import Ragged, row_offsets

_POOL = 10  # strings to choose from, for each one of a diverse list
_SKIPS = 200  # repeated strings per list entry before the list stays short
_LEAST_SKIPS = 20_000

# Columns of a node's state and the stages it goes through.
_STAGE, _HEAP, _FIRST, _LAST, _POPPED, _PLACE = 0, 1, 2, 3, 4, 5
_NEW, _READY, _OPEN, _DONE, _EMPTY = -1, 1, 2, 3, 4


def kbest(
  forest: Forest,
  *,
  size: int,
  strings: EdgeStrings | None = None,
  unique: bool = False,
  diversity: float = 0.0,
  scores: np.ndarray | None = None,
  threads: int = 1,
) -> DerivationLists:
  """Returns the best derivations of each sentence, best first.

  Args:
    forest: the forests.
    size: k, derivations per sentence; fewer if there are fewer.
    strings: what edges add to the strings of derivations, needed for `unique`
      and `diversity`.
    unique: whether all strings of a sentence differ. Lists may stay short if
      very many derivations yield the same string.
    diversity: penalty per shared bigram, see above; implies `unique`.
    scores: what each edge adds, `[E]`; `forest.score` if None. The lists are by
      these scores, and `DerivationLists.score` holds them.
    threads: sentences in work at a time.

  Raises:
    ValueError: for sizes that cannot be, or missing strings.
  """
  if size < 1:
    raise ValueError(f"k-best lists of size {size}")
  if not 0 <= diversity < np.inf:
    raise ValueError(f"diversity must be finite and not below 0: {diversity}")
  if strings is None and (unique or diversity):
    raise ValueError("unique and diverse lists need the strings of edges")
  strings = no_strings(forest) if strings is None else strings
  if len(strings.row) != forest.num_edges:
    raise ValueError(
      f"{len(strings.row)} edge strings for {forest.num_edges} edges"
    )
  lists = _enumerate(
    forest,
    strings,
    edge_scores(forest, scores),
    size=size * _POOL if diversity else size,
    unique=unique or diversity > 0,
    threads=threads,
  )
  if not diversity:
    return lists
  chosen = _choose_diverse(lists, size=size, weight=float(diversity))
  return DerivationLists(
    offsets=row_offsets(chosen)[lists.offsets],
    score=lists.score[chosen],
    edges=ragged.select(lists.edges, chosen),
    words=ragged.select(lists.words, chosen),
  )


def _enumerate(
  forest, strings, scores, *, size, unique, threads
) -> DerivationLists:
  columns = (
    np.ascontiguousarray(forest.edge_offsets, np.int64),
    np.ascontiguousarray(forest.tails, np.int32),
    scores,
  )
  limit = max(_SKIPS * size, _LEAST_SKIPS)
  batch = len(forest)
  parts = max(min(threads, batch), 1)
  cuts = np.linspace(0, batch, parts + 1).astype(np.int64).tolist()

  def work(part: int):
    return _enumerate_forests(
      (cuts[part], cuts[part + 1]),
      np.ascontiguousarray(forest.node_offsets, np.int64),
      size,
      unique,
      limit,
      columns,
      strings.columns,
    )

  if parts == 1:
    done = [work(0)]
  else:
    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
      done = list(pool.map(work, range(parts)))
  counts, score, ends, edges, words = zip(*done, strict=True)
  return DerivationLists(
    offsets=row_offsets(np.concatenate(counts)),
    score=np.concatenate(score),
    edges=_joined(edges, [one[:, 0] for one in ends]),
    words=_joined(words, [one[:, 1] for one in ends]),
  )


def _joined(flats, ends) -> Ragged:
  """Rows laid end to end, each part with the ends of its own rows."""
  shift = row_offsets([len(flat) for flat in flats])
  moved = [one + base for one, base in zip(ends, shift[:-1], strict=True)]
  return Ragged(
    flat=np.concatenate(flats),
    offsets=np.concatenate([np.zeros(1, np.int64), *moved]),
  )


def _choose_diverse(
  lists: DerivationLists, *, size: int, weight: float
) -> np.ndarray:
  """Chooses strings of each sentence greedily.

  Args:
    lists: D candidates.
    size: how many to choose.
    weight: penalty of one bigram shared with one string chosen before.

  Returns:
    Which candidates are chosen, bool `[D]`.
  """
  words = lists.words
  rows = words.offsets + np.arange(len(words.offsets))
  ends = np.full((2, rows[-1]), -1, np.int64)  # a row of n words, n + 1 bigrams
  is_word = np.ones(rows[-1], bool)
  is_word[rows[1:] - 1] = False
  ends[1, is_word] = words.flat
  ends[0, np.flatnonzero(is_word) + 1] = words.flat
  kinds, bigrams = np.unique(
    (ends[0] + 1) << 32 | (ends[1] + 1), return_inverse=True
  )
  return _choose(
    lists.offsets, lists.score, bigrams, rows, len(kinds), size, weight
  )


@njit
def _choose(offsets, scores, bigrams, rows, kinds, size, weight):
  """Greedy choice of `size` strings per sentence with few bigrams in common.

  Args:
    offsets: candidates of each sentence, int64 `[B + 1]`.
    scores: their scores, `[D]`.
    bigrams: the number of each of their bigrams, below `kinds`.
    rows: offsets of the candidates in `bigrams`, int64 `[D + 1]`.
    kinds: how many different bigrams there are.
    size: how many to choose.
    weight: penalty of one bigram shared with one string chosen before.

  Returns:
    Which candidates are chosen, bool `[D]`.
  """
  chosen = np.zeros(len(scores), np.bool_)
  penalty = np.zeros(len(scores))
  holder = np.full(kinds, -1, np.int64)  # the last string chosen that has it
  for row in range(len(offsets) - 1):
    low, high = offsets[row], offsets[row + 1]
    for _ in range(min(size, high - low)):
      pick = np.int64(-1)
      for item in range(low, high):
        if not chosen[item] and (
          pick < 0
          or scores[item] - penalty[item] > scores[pick] - penalty[pick]
        ):
          pick = item
      chosen[pick] = True
      for place in range(rows[pick], rows[pick + 1]):
        holder[bigrams[place]] = pick
      for item in range(low, high):
        shared = 0
        for place in range(rows[item], rows[item + 1]):
          shared += holder[bigrams[place]] == pick
        penalty[item] += weight * shared
  return chosen


@njit
def _meld(records, scores, one, two):
  """Joins two skew heaps; of equal scores the older record comes first."""
  top = np.int32(-1)
  above = np.int32(-1)
  while one >= 0 and two >= 0:
    if scores[two] > scores[one] or (scores[two] == scores[one] and two < one):
      one, two = two, one
    if above < 0:
      top = one
    else:
      records[above, LEFT] = one
    right = records[one, RIGHT]
    records[one, RIGHT] = records[one, LEFT]
    records[one, LEFT] = -1
    above, one = one, right
  rest = one if one >= 0 else two
  if above < 0:
    return rest
  records[above, LEFT] = rest
  return top


@njit
def _open_node(node, first, state, used, records, scores, through, forest):
  """Puts a record of each edge of a node on its heap; returns the number."""
  edge_offsets = forest[0]
  base = edge_offsets[first]
  heap = np.int32(-1)
  for edge in range(edge_offsets[node], edge_offsets[node + 1]):
    total = through[edge - base]
    if not total > -np.inf:  # impossible, or above a node without edges
      continue
    for column in range(records.shape[1]):
      records[used, column] = -1
    records[used, EDGE] = edge
    scores[used] = total
    heap = _meld(records, scores, heap, np.int32(used))
    used += 1
  state[node - first, _HEAP] = heap
  state[node - first, _STAGE] = _READY
  return used


@njit
def _successor(record, part, used, records, scores, forest):
  """Makes the record that takes the next one of tail `part`."""
  for column in range(records.shape[1]):
    records[used, column] = records[record, column]
  for column in range(LEFT, KIDS):
    records[used, column] = -1
  kid = records[record, KIDS + part]
  records[used, KIDS + part] = records[kid, NEXT]
  edge = records[record, EDGE]
  total = forest[2][edge]
  for item in range(forest[1].shape[1]):
    if forest[1][edge, item] < 0:
      break
    total += scores[records[used, KIDS + item]]
  scores[used] = total


@njit
def _push_successors(at, first, used, state, records, scores, forest):
  """Makes the successors of the record that a node took last.

  Returns:
    `(asked, used)`: the tail that must give its next record first, or -1; and
    the number of records.
  """
  tails = forest[1]
  record = state[at, _POPPED]
  edge = records[record, EDGE]
  for part in range(state[at, _PLACE], tails.shape[1]):
    if tails[edge, part] < 0:
      break
    below = tails[edge, part] - first
    kid = records[record, KIDS + part]
    if records[kid, NEXT] < 0 and state[below, _STAGE] != _EMPTY:
      state[at, _PLACE] = part
      return np.int64(tails[edge, part]), used
    if records[kid, NEXT] >= 0:
      _successor(record, part, used, records, scores, forest)
      state[at, _HEAP] = _meld(
        records, scores, state[at, _HEAP], np.int32(used)
      )
      used += 1
    if kid != state[below, _FIRST]:
      break
  state[at, _STAGE] = _READY
  return np.int64(-1), used


@njit
def _take_best(at, state, records, scores):
  """Takes the best record off a node's heap, if there is one."""
  record = state[at, _HEAP]
  if record < 0:
    state[at, _STAGE] = _EMPTY
    return
  state[at, _HEAP] = _meld(
    records, scores, records[record, LEFT], records[record, RIGHT]
  )
  state[at, _POPPED] = record
  state[at, _STAGE] = _OPEN


@njit
def _find_kids(at, first, state, records, tails):
  """Names the tails' first records; returns a tail that has none yet or -1."""
  record = state[at, _POPPED]
  edge = records[record, EDGE]
  for part in range(tails.shape[1]):
    if tails[edge, part] < 0:
      break
    if records[record, KIDS + part] < 0:
      below = tails[edge, part] - first
      if state[below, _FIRST] < 0:
        return np.int64(tails[edge, part])
      records[record, KIDS + part] = state[below, _FIRST]
  state[at, _STAGE], state[at, _PLACE] = _DONE, 0
  return np.int64(-1)


@njit
def _append(at, state, records):
  """Puts the record that a node took at the end of its list."""
  record = state[at, _POPPED]
  if state[at, _LAST] < 0:
    state[at, _FIRST] = record
  else:
    records[state[at, _LAST], NEXT] = record
  state[at, _LAST] = record


@njit
def _enumerate_sentence(first, last, size, unique, limit, forest, strings):
  """The best derivations of one sentence with nodes `first` to `last`.

  Returns:
    `(found int32 [<= size], records, scores)`: the root's records, best first.
  """
  # Best scores below each node; room for records, which grows.
  edge_offsets, tails = forest[0], forest[1]
  arity = tails.shape[1]
  _, _, through = inside_max_between(
    first, last, edge_offsets, tails, forest[2]
  )
  state = np.full((last - first, 6), -1, np.int32)
  records = np.empty((4096, KIDS + arity), np.int32)
  scores = np.empty(4096, np.float64)
  hashes = np.empty((4096, 4), np.uint64)
  slots = np.full((1024, 2), -1, np.int32)
  buffers = (
    np.empty(64, np.int32),
    np.empty(64, np.int32),
    np.empty((64, 2), np.int64),
  )
  stack = np.empty(last - first + 1, np.int64)  # a path, so never deeper
  listed = np.empty(size, np.int32)
  count, used, hashed, skipped = 0, np.int64(0), 0, 0
  top = np.int64(0)
  stack[top] = last - 1
  # The node on top of the stack was asked for its next record.
  while count < size and skipped <= limit:
    node = stack[top]
    at = node - first
    # Room for what one step can add.
    room = arity + 1
    if state[at, _STAGE] == _NEW:
      room += edge_offsets[node + 1] - edge_offsets[node]
    if used + room > len(scores):
      records = grown_rows(records, used + room)
      scores = grown(scores, used + room)
      hashes = grown_rows(hashes, used + room)
    # One step of the node; it may ask a node below for a record.
    asked = np.int64(-1)
    if state[at, _STAGE] == _NEW:
      used = _open_node(
        node, first, state, used, records, scores, through, forest
      )
    elif state[at, _STAGE] == _DONE:
      asked, used = _push_successors(
        at, first, used, state, records, scores, forest
      )
    if asked < 0 and state[at, _STAGE] == _READY:
      _take_best(at, state, records, scores)
    if asked < 0 and state[at, _STAGE] == _OPEN:
      asked = _find_kids(at, first, state, records, tails)
    if asked >= 0:
      top += 1
      stack[top] = asked
      continue
    if state[at, _STAGE] == _EMPTY:
      if top == 0:
        break
      top -= 1
      continue
    # The node has taken a record: is its string new?
    if unique:
      record = state[at, _POPPED]
      hash_string(record, records, hashes, strings)
      place = first_place(record, node, slots, hashes)
      place = find_place(place, record, node, slots, hashes)
      # Equal hashes of 128 bits count as equal words below the root; at the
      # root, where strings are returned, words are compared.
      while top == 0 and slots[place, 0] >= 0:
        same, buffers = compare_strings(
          record, slots[place, 0], records, strings, buffers
        )
        if same:
          break
        place = (place + 1) & (len(slots) - 1)
        place = find_place(place, record, node, slots, hashes)
      if slots[place, 0] >= 0:
        skipped += 1
        continue
      slots[place, 0], slots[place, 1] = record, node
      hashed += 1
      if 2 * hashed > len(slots):
        slots = rehash(slots, hashes)
    # Append the record to the node's list and return to who asked for it.
    _append(at, state, records)
    if top == 0:
      listed[count] = state[at, _LAST]
      count += 1
    else:
      top -= 1
  return listed[:count], records, scores


@njit
def _enumerate_forests(
  sentences, node_offsets, size, unique, limit, forest, strings
):
  """Enumerates the best derivations of some sentences.

  Args:
    sentences: (first, one past the last).
    node_offsets: `Forest.node_offsets`.
    size: derivations per sentence.
    unique: whether derivations with words seen before are left out.
    limit: how many may be left out before the search gives up.
    forest: (edge_offsets, tails, scores of edges float64 `[E]`).
    strings: `EdgeStrings.columns`.

  Returns:
    `(counts int64 [sentences], scores [D], ends int64 [D, 2], edges, words)`:
    how many derivations each sentence has; their scores; where the edges and
    the words of each end; the edges and words of all.
  """
  low, high = sentences
  counts = np.zeros(high - low, np.int64)
  scores = np.empty(size * (high - low), np.float64)
  ends = np.empty((size * (high - low), 2), np.int64)
  edges = np.empty(1024, np.int32)
  words = np.empty(1024, np.int32)
  spelt = np.empty(64, np.int32)
  stack = np.empty((64, 2), np.int64)
  done, num_edges, num_words = 0, np.int64(0), np.int64(0)
  for row in range(low, high):
    first, last = node_offsets[row], node_offsets[row + 1]
    if first == last:
      continue
    listed, records, totals = _enumerate_sentence(
      first, last, size, unique, limit, forest, strings
    )
    counts[row - low] = len(listed)
    for record in listed:
      scores[done] = totals[record]
      length, spelt, stack = spell_item(
        record, records, KIDS, strings, spelt, stack
      )
      if num_words + length > len(words):
        words = grown(words, num_words + length)
      for place in range(length):
        words[num_words + place] = spelt[place]
      num_words += length
      num_edges, edges, stack = list_item(
        record, records, KIDS, forest[1], edges, num_edges, stack
      )
      ends[done, 0], ends[done, 1] = num_edges, num_words
      done += 1
  return (
    counts,
    scores[:done],
    ends[:done],
    edges[:num_edges],
    words[:num_words],
  )
