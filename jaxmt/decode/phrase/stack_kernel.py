"""The search over stacks as a host kernel: the same as `stack_search`.

Sentence by sentence and stack by stack; see `stack_search` for the algorithm.
*Items* are extensions of a hypothesis by a source span. A heap of them, each
with its next best option, gives the M best candidates of a stack.
"""

import numpy as np

from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE
from jaxmt.features.language_model import FULL
from jaxmt.lm.tables import advance
from jaxmt.text.kernels import GOLDEN, mixed, njit

# Columns of a hypothesis: first gap, coverage after it, begin and end of the
# last phrase, its rule, language model state, words of the reference so far.
GAP, MASK, BEGIN, END, RULE, STATE, PLACE = range(7)


@njit
def join(table, record, state):
  """What a run of words adds in a context: `(gain, next state)`.

  Args:
    table: columns of the language model.
    record: state of the run, see `features.language_model`.
    state: the automaton's state before it.
  """
  width = len(record) - 3
  total = np.float32(0.0)
  packed = record[width + 2]
  for place in range(packed & (FULL - 1)):
    gain, state = advance(table, state, record[place])
    total += gain
  if packed >= FULL:
    total += table[2][state]
    state = record[width]
  return total - record[width + 1 : width + 2].view(np.float32)[0], state


@njit
def cover(gap, mask, begin, size):
  """The coverage after words `[begin, begin + size)`: `(gap, mask)`."""
  bits = (np.int64(1) << size) - np.int64(1)
  shift = begin - gap
  if shift > 0:
    return gap, mask | (bits << (shift - 1))
  mask = (mask << 1) | bits
  while mask & 1:
    mask >>= 1
    gap += 1
  return gap, mask >> 1


@njit
def block_around(gap, mask, begin, end):
  """The run of covered words around the last phrase."""
  if end <= gap:
    return (0, gap) if end > 0 else (-1, 0)
  while begin - 1 > gap and (mask >> (begin - 2 - gap)) & 1:
    begin -= 1
  while (mask >> (end - 1 - gap)) & 1:
    end += 1
  return begin, end


@njit
def _sift(keys, items, size, place):
  """Restores the heap below `place`."""
  key, item = keys[place], items[place]
  child = 2 * place + 1
  while child < size:
    if child + 1 < size and keys[child + 1] > keys[child]:
      child += 1
    if keys[child] <= key:
      break
    keys[place], items[place] = keys[child], items[child]
    place = child
    child = 2 * place + 1
  keys[place], items[place] = key, item


@njit
def _slot_of(slots, entries, entry, classes, num_rules):
  """The slot of a hypothesis equal to `entry`, or a free one."""
  own = entries[entry]
  code = np.uint64(own[GAP]) * GOLDEN ^ np.uint64(own[MASK])
  code = mixed(code ^ (np.uint64(own[STATE]) << np.uint64(24)))
  kind = classes[min(own[RULE], num_rules)]
  code = mixed(code + np.uint64(own[END]) + (np.uint64(kind) << np.uint64(8)))
  size = np.uint64(len(slots) - 1)
  place = code & size
  while slots[place] >= 0:
    other = entries[slots[place]]
    if (
      other[GAP] == own[GAP]
      and other[MASK] == own[MASK]
      and other[END] == own[END]
      and other[STATE] == own[STATE]
      and other[PLACE] == own[PLACE]
      and other[BEGIN] == own[BEGIN]
      and classes[min(other[RULE], num_rules)] == kind
    ):
      break
    place = (place + np.uint64(1)) & size
  return place


@njit
def _push(
  sentence, stack, length, stacks, future, ranked, scores, numbers, buckets
):
  """Adds the extensions of a stack's hypotheses to the stacks they reach."""
  count, hypothesis, score, estimate = stacks
  order_scores, distortion, num_rules = scores
  limit, longest, hierarchical, reach, zones = numbers
  sizes, items, bases, ahead, keys = buckets
  ring = len(sizes)
  for rank in range(count[stack]):
    own = hypothesis[stack, rank]
    gap, mask, begin, end = own[GAP], np.int64(own[MASK]), own[BEGIN], own[END]
    forward = order_scores[min(own[RULE], num_rules)]
    low, high = begin, end
    if hierarchical:
      low, high = block_around(gap, mask, begin, end)
    # Walls, and zones that are begun but not finished.
    least, most_end = 0, reach[gap]
    for zone in range(len(zones)):
      first, last = zones[zone, 0], zones[zone, 1]
      done = 0
      for place in range(first, last):
        done += place < gap or (
          place > gap and ((mask >> (place - gap - 1)) & 1) == 1
        )
      if 0 < done < last - first:
        least, most_end = max(least, first), min(most_end, last)
    # Every uncovered word within the limit may come next.
    run_begin, run_end = gap, -1
    for offset in range(limit + 1):
      first = gap + offset
      if first >= length:
        break
      if offset > 0 and (mask >> (offset - 1)) & 1:
        run_begin, run_end = first + 1, -1
        continue
      if run_end < 0:
        # The uncovered run ends at the next covered word, or the sentence.
        rest = mask >> offset
        run_end = length
        if rest:
          run_end = first + 1
          while not rest & 1:
            rest >>= 1
            run_end += 1
      # Limits of the distortion, of zones, and of the length of a phrase.
      jump = abs(end - first)
      if jump > limit or first < least:
        continue
      whole = future[run_begin, run_end]
      left = future[run_begin, first]
      most = min(min(run_end, most_end) - first, longest)
      if offset > 0:
        most = min(most, limit - offset)
      # A phrase of each length: its orientation, its best option, the estimate.
      for size in range(1, most + 1):
        span = first * longest + size - 1
        kind = 2
        if first == high:
          kind = 0
        elif first + size == low:
          kind = 1
        top = ranked[span, kind, 0]
        if top < POSSIBLE:
          continue
        coming = estimate[stack, rank] - whole + left
        coming += future[first + size, run_end]
        base = score[stack, rank] - distortion * np.float32(jump)
        base += forward[3 + kind]
        # An item of the stack that it reaches.
        slot = (stack + size) % ring
        place = sizes[slot]
        sizes[slot] += 1
        items[slot, place, 0] = stack
        items[slot, place, 1] = rank
        items[slot, place, 2] = 3 * span + kind
        items[slot, place, 3] = 0
        bases[slot, place] = base
        ahead[slot, place] = coming
        keys[slot, place] = base + coming + top


@njit
def search_batch(
  chart, rules, copies, language, order_scores, classes, weights, numbers
):
  """Searches B sentences.

  Args:
    chart: columns of the `PhraseChart`.
    rules: runs of the rules `[R + 1, ., W + 3]`, score of the goal.
    copies: runs of copied words `[P, ., W + 3]`.
    language: columns of the language model, state after `<s>`.
    order_scores: float32 `[R + 1, 6]`.
    classes: int32 `[R + 1]`.
    weights: of ln p, of the distortion, threshold.
    numbers: K, M, distortion limit, hierarchical.

  Returns:
    The arrays of `stack_beams.PhraseBeams`.
  """
  lengths, rule, ranked, order, future, reach, zones = chart
  runs, goal_score = rules
  table, start = language
  lm_weight, distortion, threshold = weights
  beam, pop, limit, hierarchical = numbers
  batch, spans, width = rule.shape
  size = future.shape[1] - 1
  longest = spans // size
  num_rules = len(runs) - 1
  # What is returned.
  out_score = np.full((batch, size + 1, beam), NONE, np.float32)
  out_last = np.zeros((batch, size + 1, beam, 7), np.int32)
  out_head = np.full((batch, size + 1, pop), -1, np.int32)
  out_back = np.zeros((batch, size + 1, pop, 2), np.int32)
  out_option = np.zeros((batch, size + 1, pop), np.int32)
  out_values = np.full((batch, size + 1, pop, 2), NONE, np.float32)
  out_final = np.full((batch, beam, 2), NONE, np.float32)
  # Room for one sentence.
  count = np.zeros(size + 1, np.int64)
  estimate = np.zeros((size + 1, beam), np.float32)
  ring = longest + 1
  room = longest * beam * (limit + 1)
  sizes = np.zeros(ring, np.int64)
  items = np.empty((ring, room, 4), np.int32)
  bases = np.empty((ring, room), np.float32)
  ahead = np.empty((ring, room), np.float32)
  keys = np.empty((ring, room), np.float32)
  heap = np.empty(room, np.int32)
  slots_size = 4
  while slots_size < 4 * pop:
    slots_size *= 2
  slots = np.full(slots_size, -1, np.int32)
  entries = np.zeros((pop, 7), np.int64)
  entry_item = np.zeros((pop, 2), np.int32)
  entry_score = np.zeros((pop, 3), np.float32)
  entry_rank = np.zeros(pop, np.int32)
  total = np.zeros(pop, np.float32)
  used = np.zeros(pop, np.uint64)
  for sentence in range(batch):
    length = lengths[sentence]
    if length == 0:
      continue
    # The empty hypothesis, and its extensions.
    score, last = out_score[sentence], out_last[sentence]
    count[:] = 0
    sizes[:] = 0
    count[0] = 1
    score[0, 0] = 0.0
    estimate[0, 0] = future[sentence, 0, length]
    last[0, 0, BEGIN] = -1
    last[0, 0, RULE] = num_rules
    last[0, 0, STATE] = start
    stacks = (count, last, score, estimate)
    scores = (order_scores, distortion, num_rules)
    limits = (
      limit,
      longest,
      hierarchical,
      reach[sentence],
      zones[sentence],
    )
    buckets = (sizes, items, bases, ahead, keys)
    _push(
      sentence,
      0,
      length,
      stacks,
      future[sentence],
      ranked[sentence],
      scores,
      limits,
      buckets,
    )
    for stack in range(1, length + 1):
      slot = stack % ring
      filled = sizes[slot]
      own, own_keys = items[slot], keys[slot]
      # A heap of the items by the estimate of their next option.
      for place in range(filled):
        heap[place] = place
      for place in range(filled // 2 - 1, -1, -1):
        _sift(own_keys, heap, filled, place)
      # Take the M best candidates; score them with the language model.
      found = 0
      while found < pop and filled > 0:
        item = heap[0]
        before, rank = own[item, 0], own[item, 1]
        span, kind = own[item, 2] // 3, own[item, 2] % 3
        option = order[sentence, span, kind, own[item, 3]]
        number = rule[sentence, span, option]
        value = ranked[sentence, span, kind, own[item, 3]]
        previous = last[before, rank]
        begin = span // longest
        end = begin + span % longest + 1
        if number > num_rules:
          record = copies[number - num_rules - 1, 0]
        else:
          record = runs[number, 0]
        gain, state = join(table, record, previous[STATE])
        gap, mask = cover(
          np.int64(previous[GAP]), np.int64(previous[MASK]), begin, end - begin
        )
        entry = entries[found]
        entry[GAP], entry[MASK] = gap, mask
        entry[BEGIN], entry[END] = begin, end
        entry[RULE], entry[STATE], entry[PLACE] = number, state, 0
        entry_item[found, 0] = item
        entry_item[found, 1] = span * width + option
        entry_score[found, 0] = bases[slot, item] + value + lm_weight * gain
        entry_score[found, 1] = gain
        entry_score[found, 2] = ahead[slot, item]
        total[found] = entry_score[found, 0] + ahead[slot, item]
        found += 1
        # The item's next option.
        own[item, 3] += 1
        value = NONE
        if own[item, 3] < width:
          value = ranked[sentence, span, kind, own[item, 3]]
        if value > POSSIBLE:
          own_keys[0] = bases[slot, item] + ahead[slot, item] + value
        else:
          filled -= 1
          own_keys[0], heap[0] = own_keys[filled], heap[filled]
        _sift(own_keys, heap, filled, 0)
      sizes[slot] = 0
      # Best first: equal hypotheses become one, the K best stay.
      ranking = np.argsort(-total[:found])
      kept = 0
      for position in range(found):
        entry = ranking[position]
        if total[entry] < total[ranking[0]] - threshold:
          break
        place = _slot_of(slots, entries, entry, classes, num_rules)
        head = slots[place]
        item = entry_item[entry, 0]
        if head < 0:
          if kept == beam:
            continue
          slots[place] = entry
          used[kept] = place
          entry_rank[entry] = kept
          score[stack, kept] = entry_score[entry, 0]
          estimate[stack, kept] = entry_score[entry, 2]
          for column in range(7):
            last[stack, kept, column] = entries[entry, column]
          out_head[sentence, stack, position] = kept
          kept += 1
        else:
          out_head[sentence, stack, position] = entry_rank[head]
        out_back[sentence, stack, position, 0] = own[item, 0]
        out_back[sentence, stack, position, 1] = own[item, 1]
        out_option[sentence, stack, position] = entry_item[entry, 1]
        out_values[sentence, stack, position, 0] = entry_score[entry, 0]
        out_values[sentence, stack, position, 1] = entry_score[entry, 1]
      for rank in range(kept):
        slots[used[rank]] = -1
      count[stack] = kept
      if stack < length:
        _push(
          sentence,
          stack,
          length,
          stacks,
          future[sentence],
          ranked[sentence],
          scores,
          limits,
          buckets,
        )
    # The end of the sentence.
    for rank in range(count[length]):
      gain, _ = join(table, runs[num_rules, 0], last[length, rank, STATE])
      out_final[sentence, rank, 0] = (
        score[length, rank] + goal_score + lm_weight * gain
      )
      out_final[sentence, rank, 1] = gain
  return (
    out_score,
    out_last,
    out_head,
    out_back,
    out_option,
    out_values,
    out_final,
  )
