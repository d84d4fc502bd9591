"""Cube pruning as a host kernel: `beam_search`, one cell after another.

The array program (`beam_search`) knows every stateful feature, augmented
searches and all devices. The kernel knows the language model and labels, and
takes the candidates of a cell in a better order: at the same model score it is
several times faster on a CPU. Where both can be used they search the same
space of hypotheses, but may miss different ones.

A cell has two heaps. One holds the *corners*, best children only, of its
applications by their sums: all that is known before the language model joins
the parts. The other one holds neighbours of scored candidates. Whichever top is
better is scored, and its neighbours, each child one rank further down, enter
the second heap. They are expected to score like the candidate they come from,
but for the children's scores, with a share (`trust`) of what joining changed
there and, if known, of what it changed along the side of the cube. So every
candidate has its true score when its neighbours are ranked (Chiang 2007; Huang
& Chiang 2007), and nothing is scored that is not a candidate.

A neighbour moves on a child that is no further left than the last one that was
moved, so each tuple of ranks is reached once (Gesmundo & Henderson 2010).

M candidates are scored; those of equal states are merged, the best K stay.

C: cells of the chart. L: local rules. E: applications. M: candidates. K: beam.
A: arity. W: words in a language model state.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE, Chart
from jaxmt.decode.chart.search import (
  BACKENDS,
  Beams,
  Candidates,
  SearchConfig,
  Weights,
)
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.features.language_model import join_rows
from jaxmt.grammar.match.matching import Matches
from jaxmt.text.kernels import (
  GOLDEN,
  copy_row,
  mixed,
  njit,
  pop_heap,
  push_heap,
)


class CellApplications(NamedTuple):
  """What can be applied in each cell; see `chart_layout.Chart`."""

  rule: np.ndarray  # int32 [C, E]
  child: np.ndarray  # int32 [C, E, A]
  static: np.ndarray  # float32 [C, E]


class Rules(NamedTuple):
  """The local rules; see `chart_layout.Chart`."""

  slots: np.ndarray  # int32 [L, 2A + 1]
  runs: np.ndarray  # language model states, int32 [L (A + 1), W + 3]
  floats: np.ndarray  # the same memory as float32
  label: np.ndarray  # int32 [L]
  site: np.ndarray  # int32 [L, A]


class KernelWeights(NamedTuple):
  """What the search weighs; all float32 but `labels`."""

  lm: np.float32
  match: np.float32
  mismatch: np.float32
  threshold: np.float32
  trust: np.float32  # share of a candidate's gain that its neighbours expect
  labels: bool  # whether labels are scored


class Hypotheses(NamedTuple):
  """The beams of all cells."""

  score: np.ndarray  # float32 [C, K]
  fill: np.ndarray  # how many there are, int32 [C]
  states: np.ndarray  # language model states, int32 [C K, W + 3]
  floats: np.ndarray  # the same memory as float32
  label: np.ndarray  # int32 [C, K]
  back: np.ndarray  # application and child ranks, int32 [C, K, 1 + A]


class Entries(NamedTuple):
  """The scored candidates of one cell."""

  total: np.ndarray  # model scores, float32 [M]
  gain: np.ndarray  # Σ ln p that joining adds, float32 [M]
  application: np.ndarray  # int32 [M]
  rank: np.ndarray  # int32 [M, A]
  states: np.ndarray  # int32 [M, W + 3]
  floats: np.ndarray  # the same memory as float32
  code: np.ndarray  # hash of state and label, uint64 [M]
  member: np.ndarray  # which set of equal states it is in, int32 [M]
  best: np.ndarray  # the best candidate of each set, int32 [M]
  place: np.ndarray  # slot of each set, then its hypothesis or -1, int64 [M]
  slots: np.ndarray  # hash table of sets, -1 for none, int32
  sets: np.ndarray  # how many sets there are, int64 [1]


class Queue(NamedTuple):
  """The two heaps of one cell, largest key first."""

  corner_key: np.ndarray  # float32 [E]
  corner: np.ndarray  # applications, int32 [E]
  key: np.ndarray  # float32 [M A]
  item: np.ndarray  # int32 [M A]
  application: np.ndarray  # of each item, int32 [M A]
  rank: np.ndarray  # int32 [M A, A]
  first: np.ndarray  # the first child that may move on, int32 [M A]
  side: np.ndarray  # gains with one child off its best, float32 [E, A, K]
  stamp: np.ndarray  # cell for which `side` is set, int32 [E, A, K]


def on_host(model: Model, backend: str, *, augmented: bool = False) -> bool:
  """Returns whether the kernel searches the model's charts.

  Args:
    model: the model.
    backend: "host", "device", or "auto": the host where it can, on a CPU.
    augmented: whether the search adds losses.

  Raises:
    InputError: if the host is asked for and cannot.
  """
  if backend not in BACKENDS:
    raise InputError(f"backend '{backend}' is none of {', '.join(BACKENDS)}")
  able = not model.extra and not augmented
  if backend == "host" and not able:
    what = "adds losses" if augmented else f"scores {model.extra[0].names[0]}"
    raise InputError(f"a search that {what} does not run on the host")
  if backend == "auto":
    return able and jax.default_backend() == "cpu"
  return backend == "host"


def search(
  chart: Chart,
  matches: Matches,
  parameters: tuple[Any, ...],
  weights: Weights,
  config: SearchConfig,
) -> Beams:
  """Fills a chart with hypotheses, sentence by sentence.

  Args:
    chart: the cells and their applications, on the host.
    matches: the same, in an order in which children precede parents.
    parameters: of `decoder.search_parameters`, on the host.
    weights: weights that act during the search.
    config: beam, candidates, and whether all candidates are returned.
  """
  states, (label, site) = chart.inputs[0], chart.inputs[1]
  runs = np.ascontiguousarray(states).reshape(-1, states.shape[2])
  (lm_weight,), labels = weights.features[0] or (0.0,), weights.features[1]
  match, mismatch = (0.0, 0.0) if labels is None else labels
  rows, pop = len(chart.rule), config.pop
  whole = np.ascontiguousarray
  beams, application, ranks, head, values = _search_cells(
    matches.place,
    np.diff(matches.offsets),
    CellApplications(
      whole(chart.rule), whole(chart.child), whole(chart.static)
    ),
    Rules(
      whole(chart.slots),
      runs,
      runs.view(np.float32),
      whole(label),
      whole(site),
    ),
    KernelWeights(
      np.float32(lm_weight),
      np.float32(match),
      np.float32(mismatch),
      np.float32(weights.threshold),
      np.float32(config.trust),
      labels is not None,
    ),
    parameters[0],
    (config.beam, pop, rows if config.forest else 0),
  )
  candidates = None
  if config.forest:
    candidates = Candidates(
      application=application,
      ranks=ranks,
      head=head,
      gain=values[:, :, 0],
      score=values[:, :, 1],
    )
  return Beams(
    score=beams.score,
    order=beams.score,
    states=(
      beams.states.reshape(rows, config.beam, -1),
      beams.label[:, :, None],
    ),
    back=beams.back,
    candidates=candidates,
  )


@njit
def _site_score(site, label, weights):
  """Score of a child's label at a site of this label, -1 for any."""
  if site < 0:
    return np.float32(0.0)
  return weights[1] if label == site else weights[2]


@njit
def _state_code(states, row, label):
  """Hash of a label and a state, but for its weight, which words determine."""
  last = states.shape[1] - 1
  code = np.uint64(label) + GOLDEN
  for column in range(last - 1):
    code = (code ^ np.uint64(states[row, column])) * GOLDEN
    code ^= code >> np.uint64(29)
  return mixed(code ^ np.uint64(states[row, last]))


@njit
def _slot_of(slots, best, codes, states, row):
  """The slot of the set of a candidate's state, or a free one.

  Every step of the hash is a bijection, so equal states with different labels
  never have equal codes.
  """
  mask = np.uint64(len(slots) - 1)
  weight = states.shape[1] - 2
  place = codes[row] & mask
  while slots[place] >= 0:
    other = best[slots[place]]
    same = codes[other] == codes[row]
    for column in range(states.shape[1]):
      same &= column == weight or states[other, column] == states[row, column]
    if same:
      break
    place = (place + np.uint64(1)) & mask
  return place


@njit
def _corners(cell, count, chart, rules, weights, beams, queue):
  """Makes the heap of corners by their sums; returns its size."""
  rule, child, static = chart
  score, label, site = beams.score, beams.label, rules.site
  size = 0
  for number in range(count):
    key = static[cell, number]
    if key < POSSIBLE:
      continue
    for part in range(child.shape[2]):
      below = child[cell, number, part]
      key += score[below, 0]
      if weights.labels and below > 0:
        site_label = site[rule[cell, number], part]
        key += _site_score(site_label, label[below, 0], weights)
    if key > POSSIBLE:
      size = push_heap(queue.corner_key, queue.corner, size, key, number)
  return size


@njit
def _candidates(
  cell, corners, chart, rules, weights, beams, entries, queue, lm
):
  """Scores the candidates of a cell, at most M; returns how many.

  Args:
    cell: row of the chart.
    corners: size of the heap of corners.
    chart: the applications of all cells.
    rules: the local rules.
    weights: what is weighed.
    beams: the hypotheses so far.
    entries: the candidates are written here.
    queue: the heaps.
    lm: the columns of the language model.
  """
  # Names for arrays: looking into a tuple costs more than the work in here.
  rule, child, static = chart
  slots, runs, run_floats, rule_label, site = rules
  beam_score, fill, beam_states, beam_floats, label, _ = beams
  total, gains, application, rank, states, floats, code = entries[:7]
  member, best, place_of, set_slots, num_sets = entries[7:]
  corner_key, corner, heap_key, heap, item_application = queue[:5]
  item_rank, item_first, side, stamp = queue[5:]
  scored_labels, lm_weight = weights.labels, weights.lm
  credit = weights.trust * lm_weight
  arity, beam, pop = child.shape[2], beam_score.shape[1], len(total)
  width = states.shape[1] - 3
  items, size, scored, sets = 0, 0, 0, 0
  while scored < pop and corners + size > 0:
    # The better of the best corner and the best neighbour.
    if size == 0 or (corners > 0 and corner_key[0] >= heap_key[0]):
      number, first = corner[0], 0
      for part in range(arity):
        rank[scored, part] = 0
      corners = pop_heap(corner_key, corner, corners)
    else:
      item = heap[0]
      number, first = item_application[item], item_first[item]
      for part in range(arity):
        rank[scored, part] = item_rank[item, part]
      size = pop_heap(heap_key, heap, size)
    # Join its parts from left to right, if there are any.
    local = rule[cell, number]
    for column in range(width + 3):
      states[scored, column] = 0
    gain = np.float32(0.0)
    for place in range(2 * arity + 1):
      slot = slots[local, place]
      if slot < 0:
        break
      if slot >= arity:
        right = local * (arity + 1) + slot - arity
        if place == 0:
          copy_row(states, scored, runs, right)
        else:
          gain += join_rows(states, floats, scored, runs, run_floats, right, lm)
      else:
        right = child[cell, number, slot] * beam + rank[scored, slot]
        if place == 0:
          copy_row(states, scored, beam_states, right)
        else:
          gain += join_rows(
            states, floats, scored, beam_states, beam_floats, right, lm
          )
    # Its score, and how many ranks are not 0.
    value = static[cell, number] + lm_weight * gain
    moved, last = 0, 0
    for part in range(arity):
      below, child_rank = child[cell, number, part], rank[scored, part]
      value += beam_score[below, child_rank]
      if scored_labels and below > 0:
        value += _site_score(
          site[local, part], label[below, child_rank], weights
        )
      if child_rank > 0:
        moved, last = moved + 1, part
    application[scored], gains[scored], total[scored] = number, gain, value
    # The set of candidates of the same state and label, maybe a new one.
    code[scored] = _state_code(states, scored, rule_label[local])
    spot = _slot_of(set_slots, best, code, states, scored)
    if set_slots[spot] < 0:
      set_slots[spot], place_of[sets] = sets, spot
      best[sets] = scored
      sets += 1
    member[scored] = set_slots[spot]
    if value > total[best[member[scored]]]:
      best[member[scored]] = scored
    # Remember what joining adds along the sides of the cube.
    for part in range(arity):
      if moved == 0 or (moved == 1 and part == last):
        side[number, part, rank[scored, part]] = gain
        stamp[number, part, rank[scored, part]] = cell
    # The neighbours enter the queue.
    for part in range(first, arity):
      below, child_rank = child[cell, number, part], rank[scored, part]
      if below == 0 or child_rank + 1 >= fill[below]:
        continue
      guess = value + (credit - lm_weight) * gain
      guess += beam_score[below, child_rank + 1] - beam_score[below, child_rank]
      if scored_labels:
        site_label = site[local, part]
        guess += _site_score(site_label, label[below, child_rank + 1], weights)
        guess -= _site_score(site_label, label[below, child_rank], weights)
      if moved and (
        stamp[number, part, child_rank + 1] == cell
        and stamp[number, part, child_rank] == cell
      ):
        more = (
          side[number, part, child_rank + 1] - side[number, part, child_rank]
        )
        guess += credit * more
      item_application[items] = number
      for other in range(arity):
        item_rank[items, other] = rank[scored, other]
      item_rank[items, part] += 1
      item_first[items] = part
      size = push_heap(heap_key, heap, size, guess, items)
      items += 1
    scored += 1
  num_sets[0] = sets
  return scored


@njit
def _merge(cell, chart, rules, weights, beams, entries, queue):
  """Writes the hypotheses of a cell: the best K of different states."""
  rule, rule_label = chart.rule, rules.label
  score, fill, beam_states, _, label, back = beams
  total, _, application, rank, states = entries[:5]
  best, place, slots, sets = entries[8:]
  keys, items = queue.key, queue.item
  beam = score.shape[1]
  size = 0
  for number in range(sets[0]):
    size = push_heap(keys, items, size, total[best[number]], number)
    slots[place[number]] = -1
    place[number] = -1
  count = 0
  while count < beam and size > 0:
    number = items[0]
    entry = best[number]
    if count and total[entry] < score[cell, 0] - weights.threshold:
      break
    size = pop_heap(keys, items, size)
    place[number] = count
    score[cell, count] = total[entry]
    label[cell, count] = rule_label[rule[cell, application[entry]]]
    copy_row(beam_states, cell * beam + count, states, entry)
    back[cell, count, 0] = application[entry]
    for part in range(rank.shape[1]):
      back[cell, count, 1 + part] = rank[entry, part]
    count += 1
  fill[cell] = count


@njit
def _room(pop, beam, arity, columns, applications):
  """Room for the candidates and the heaps of a cell."""
  slots = 4
  while slots < 2 * pop:
    slots *= 2
  items = pop * arity + 1
  states = np.zeros((pop, columns), np.int32)
  entries = Entries(
    np.zeros(pop, np.float32),
    np.zeros(pop, np.float32),
    np.zeros(pop, np.int32),
    np.zeros((pop, arity), np.int32),
    states,
    states.view(np.float32),
    np.zeros(pop, np.uint64),
    np.zeros(pop, np.int32),
    np.zeros(pop, np.int32),
    np.zeros(pop, np.int64),
    np.full(slots, -1, np.int32),
    np.zeros(1, np.int64),
  )
  queue = Queue(
    np.zeros(applications, np.float32),
    np.zeros(applications, np.int32),
    np.zeros(items, np.float32),
    np.zeros(items, np.int32),
    np.zeros(items, np.int32),
    np.zeros((items, arity), np.int32),
    np.zeros(items, np.int32),
    np.zeros((applications, arity, beam), np.float32),
    np.zeros((applications, arity, beam), np.int32),
  )
  return entries, queue


@njit
def _search_cells(cells, counts, chart, rules, weights, lm, sizes):
  """Searches cells in order; children stand before parents.

  Args:
    cells: rows of the chart, int `[N]`.
    counts: applications of each, int `[N]`.
    chart: the applications.
    rules: the local rules.
    weights: what is weighed.
    lm: the columns of the language model.
    sizes: K, M, and how many rows have room for their candidates: C, or 0.

  Returns:
    `(Hypotheses, application [C, M], ranks [C, M, A], head [C, M], values
    [C, M, 2])`; values are gain and score.
  """
  beam, pop, listed = sizes
  rows, most, arity = chart.child.shape
  columns = rules.runs.shape[1]
  states = np.zeros((rows * beam, columns), np.int32)
  beams = Hypotheses(
    np.full((rows, beam), NONE, np.float32),
    np.zeros(rows, np.int32),
    states,
    states.view(np.float32),
    np.zeros((rows, beam), np.int32),
    np.zeros((rows, beam, 1 + arity), np.int32),
  )
  # The null cell has the empty hypothesis.
  beams.score[0, 0] = 0.0
  beams.fill[0] = 1
  application = np.zeros((listed, pop), np.int32)
  rank = np.zeros((listed, pop, arity), np.int32)
  head = np.full((listed, pop), -1, np.int32)
  values = np.full((listed, pop, 2), NONE, np.float32)
  entries, queue = _room(pop, beam, arity, columns, most)
  for place in range(len(cells)):
    cell = cells[place]
    corners = _corners(cell, counts[place], chart, rules, weights, beams, queue)
    count = _candidates(
      cell, corners, chart, rules, weights, beams, entries, queue, lm
    )
    _merge(cell, chart, rules, weights, beams, entries, queue)
    if listed:
      for entry in range(count):
        application[cell, entry] = entries.application[entry]
        head[cell, entry] = entries.place[entries.member[entry]]
        values[cell, entry, 0] = entries.gain[entry]
        values[cell, entry, 1] = entries.total[entry]
        for part in range(arity):
          rank[cell, entry, part] = entries.rank[entry, part]
  return beams, application, rank, head, values
