"""Exact search: every hypothesis of every cell, nothing pruned.

Hypotheses are still merged when their states are equal, which loses nothing.
The work grows with the product of the children's states, so this is for small
inputs: to measure what beam search misses, and to test it. A compiled host
kernel; the result has the same form as that of `search`.
"""

import dataclasses

import numpy as np

from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE, Layout, RuleColumns
from jaxmt.decode.chart.lm_records import FULL, context_size, extend
from jaxmt.decode.chart.search import Beams, Weights
from jaxmt.grammar.match.matching import Matches
from jaxmt.lm.tables import Tables
from jaxmt.text.kernels import njit


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExactResult:
  """Exact beams; cell c of `matches` is row c + 1 of the beams.

  Attributes:
    beams: all hypotheses, K being the most any cell has.
    counts: hypotheses of each cell, int64 `[C]`.
    complete: whether nothing was cut off, per sentence, bool `[B]`.
  """

  beams: Beams
  counts: np.ndarray
  complete: np.ndarray


def exact_search(
  matches: Matches,
  *,
  rules: RuleColumns,
  copies: RuleColumns,
  lm: Tables,
  weights: Weights,
  limit: int = 1 << 22,
) -> ExactResult:
  """Finds all hypotheses of all cells.

  Args:
    matches: applications of some sentences (match them without limits).
    rules: the table's rules and the goal.
    copies: the pass-through words.
    lm: the language model.
    weights: weights that act during the search; the threshold is not used.
    limit: candidates a sentence may have; beyond, the rest of its cells stay
      empty and it is not `complete`.
  """
  join = lambda pick: np.concatenate([pick(rules), pick(copies)])
  used = np.unique(matches.rule)
  mark = np.zeros(len(rules.score) + len(copies.score), np.int32)
  mark[used] = np.arange(len(used))
  take = lambda pick: np.ascontiguousarray(join(pick)[used])
  score, record, back, offsets, complete = _exact(
    (matches.offsets, mark[matches.rule], matches.child, matches.sentence),
    (
      take(lambda c: c.segments.slots),
      take(lambda c: c.segments.runs),
      take(lambda c: c.score),
      take(lambda c: c.label),
      take(lambda c: c.site),
    ),
    (lm.check, lm.follow, lm.score),
    context_size(lm.order),
    (float(weights.lm), float(weights.match), float(weights.mismatch)),
    limit,
    len(matches.goal),
  )
  counts = np.diff(offsets)
  width = max(int(counts.max(initial=0)), 1)
  cells = len(counts) + 1
  row = np.repeat(np.arange(1, cells), counts)
  column = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
  spread = lambda part, fill: _spread(part, row, column, cells, width, fill)
  scores = spread(score, NONE)
  scores[0, 0] = 0.0
  return ExactResult(
    beams=Beams(
      score=scores,
      order=scores,
      record=spread(record, 0),
      back=spread(back, 0),
    ),
    counts=counts,
    complete=complete,
  )


def identity_layout(matches: Matches) -> Layout:
  """Returns the numbering of exact beams, for `derivation.best`."""
  cells = np.arange(len(matches), dtype=np.int32)
  return Layout(
    cell=cells + 1,
    source=np.concatenate([[np.int32(-1)], cells]),
    rules=np.unique(matches.rule),
  )


def _spread(part, row, column, cells, width, fill):
  out = np.full((cells, width, *part.shape[1:]), fill, part.dtype)
  out[row, column] = part
  return out


@njit
def join(record, right, table, width):
  """Appends a segment to a record in place; returns what joining adds."""
  state = record[width]
  total = np.float32(0.0)
  for place in range(right[width + 2] & (FULL - 1)):
    gain, state = extend(table, record, state, right[place], width)
    total += gain
  if right[width + 2] >= FULL:
    behind = table[2][state]
    total += behind
    if record[width + 2] < FULL:
      record[width + 2] += FULL
      record[width + 1 : width + 2].view(np.float32)[0] += behind
    record[width] = right[width]
  return total - right[width + 1 : width + 2].view(np.float32)[0]


@njit
def _hash(record, width):
  value = np.uint64(1469598103934665603)
  for column in range(width + 4):
    if column != width + 1:
      value ^= np.uint64(np.uint32(record[column]))
      value *= np.uint64(1099511628211)
      value ^= value >> np.uint64(29)
  return np.int64(value >> np.uint64(1))


@njit
def _equal(one, two, width):
  for column in range(width + 4):
    if column != width + 1 and one[column] != two[column]:
      return False
  return True


@njit
def _more(rows, needed):
  if needed <= len(rows):
    return rows
  larger = np.zeros((max(needed, 2 * len(rows)), rows.shape[1]), rows.dtype)
  larger[: len(rows)] = rows
  return larger


@njit
def _candidate(application, which, matched, rules, hypotheses, table, model):
  """Builds one candidate: `(record, score)`."""
  _, local, child, _ = matched
  slots, runs, static, label, site = rules
  score, records = hypotheses
  width, lm_weight, match, mismatch = model
  arity = child.shape[1]
  rule = local[application]
  record = np.zeros(width + 4, np.int32)
  gain, started = np.float32(0.0), False
  for slot in slots[rule]:
    if slot < 0:
      break
    part = records[which[slot]] if slot < arity else runs[rule, slot - arity]
    if started:
      gain += join(record, part, table, width)
    else:
      record[:] = part
      started = True
  record[width + 3] = label[rule]
  total = np.float64(static[rule]) + lm_weight * gain
  for part in range(arity):
    if child[application, part] >= 0:
      total += score[which[part], 0]
      if site[rule, part] >= 0:
        same = records[which[part], width + 3] == site[rule, part]
        total += match if same else mismatch
  return record, np.float32(total)


@njit
def _exact(matched, rules, table, width, weights, limit, batch):
  offsets, _, child, sentence = matched
  arity = child.shape[1]
  cells = len(offsets) - 1
  model = (width, weights[0], weights[1], weights[2])
  score = np.zeros((256, 1), np.float32)
  record = np.zeros((256, width + 4), np.int32)
  back = np.zeros((256, 1 + arity), np.int32)
  ends = np.zeros(cells + 1, np.int64)
  complete = np.ones(batch, np.bool_)
  spent = np.zeros(batch, np.int64)
  filled = 0
  for cell in range(cells):
    start = filled
    buckets = np.full(64, -1, np.int64)
    for application in range(offsets[cell], offsets[cell + 1]):
      count = np.zeros(arity, np.int64)
      product = np.float64(1.0)
      for part in range(arity):
        item = child[application, part]
        count[part] = 1 if item < 0 else ends[item + 1] - ends[item]
        product *= count[part]
      if product == 0:
        continue
      if spent[sentence[cell]] + product > limit:
        complete[sentence[cell]] = False
        continue
      spent[sentence[cell]] += np.int64(product)
      rank = np.zeros(arity, np.int64)
      which = np.zeros(arity, np.int64)
      while True:
        for part in range(arity):
          item = child[application, part]
          which[part] = -1 if item < 0 else ends[item] + rank[part]
        made, total = _candidate(
          application, which, matched, rules, (score, record), table, model
        )
        if 2 * (filled - start) >= len(buckets):
          buckets = np.full(2 * len(buckets), -1, np.int64)
          for item in range(start, filled):
            place = _hash(record[item], width) & (len(buckets) - 1)
            while buckets[place] >= 0:
              place = (place + 1) & (len(buckets) - 1)
            buckets[place] = item
        place = _hash(made, width) & (len(buckets) - 1)
        while buckets[place] >= 0 and not _equal(
          record[buckets[place]], made, width
        ):
          place = (place + 1) & (len(buckets) - 1)
        item = buckets[place]
        fresh = item < 0
        if fresh:
          item = filled
          buckets[place] = item
          filled += 1
          score = _more(score, filled)
          record = _more(record, filled)
          back = _more(back, filled)
        if fresh or total > score[item, 0]:
          score[item, 0] = total
          record[item] = made
          back[item, 0] = application - offsets[cell]
          for part in range(arity):
            back[item, 1 + part] = rank[part]
        part = 0
        while part < arity:
          rank[part] += 1
          if rank[part] < count[part]:
            break
          rank[part] = 0
          part += 1
        if part == arity:
          break
    order = start + np.argsort(-score[start:filled, 0], kind="mergesort")
    score[start:filled] = score[order]
    record[start:filled] = record[order]
    back[start:filled] = back[order]
    ends[cell + 1] = filled
  return score[:filled, 0], record[:filled], back[:filled], ends, complete


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchErrors:
  """How far a search fell short of the exact one.

  Attributes:
    sentences: sentences compared (those the exact search completed).
    errors: share of them whose best score was missed.
    mean: mean shortfall over all of them.
    worst: largest shortfall.
  """

  sentences: int
  errors: float
  mean: float
  worst: float


def search_errors(
  found: np.ndarray,
  exact: np.ndarray,
  complete: np.ndarray,
  *,
  tolerance: float = 1e-3,
) -> SearchErrors:
  """Compares model scores `[B]` with the exact ones `[B]`."""
  use = np.asarray(complete) & (np.asarray(exact) > POSSIBLE)
  short = np.maximum(np.asarray(exact)[use] - np.asarray(found)[use], 0.0)
  missed = short > tolerance
  return SearchErrors(
    sentences=int(use.sum()),
    errors=float(missed.mean()) if use.any() else 0.0,
    mean=float(short.mean()) if use.any() else 0.0,
    worst=float(short.max(initial=0.0)),
  )
