"""The compiled kernel of exact search, for language model and labels.

Hypotheses of a cell are found through a hash table of their states. A record is
the language model's state and, in the column after it, the label.
"""

import numpy as np

from jaxmt.features.language_model import join_packed
from jaxmt.text.kernels import njit


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
    if slot < arity:
      part = records[which[slot], : width + 3]
    else:
      part = runs[rule, slot - arity]
    if started:
      gain += join_packed(record, part, table, width)
    else:
      record[: width + 3] = part
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
def _place(buckets, records, record, width):
  """The bucket of a record: that of an equal one, or an empty one."""
  mask = len(buckets) - 1
  place = _hash(record, width) & mask
  while buckets[place] >= 0 and not _equal(
    records[buckets[place]], record, width
  ):
    place = (place + 1) & mask
  return place


@njit
def _doubled(buckets, records, start, filled, width):
  """A hash table of twice the size with the cell's hypotheses."""
  buckets = np.full(2 * len(buckets), -1, np.int64)
  for item in range(start, filled):
    buckets[_place(buckets, records, records[item], width)] = item
  return buckets


@njit
def _next(rank, count):
  """Counts on to the next tuple of child ranks; whether there is one."""
  for part in range(len(rank)):
    rank[part] += 1
    if rank[part] < count[part]:
      return True
    rank[part] = 0
  return False


@njit
def search(matched, rules, table, width, weights, limit, batch):
  """Finds all hypotheses of all cells.

  Args:
    matched: offsets, local rule and child cells of applications; sentence of
      each cell.
    rules: slots, runs, static score, label and sites of the local rules.
    table: the columns `(check, follow, score)` of the language model.
    width: W, words in its states.
    weights: of the language model, of a match, and of a mismatch.
    limit: candidates a sentence may have.
    batch: number of sentences.

  Returns:
    Score, record and back pointers of the hypotheses; offsets of the cells
    among them; whether each sentence is complete.
  """
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
  count = np.zeros(arity, np.int64)
  rank = np.zeros(arity, np.int64)
  which = np.zeros(arity, np.int64)
  filled = 0
  for cell in range(cells):
    start = filled
    buckets = np.full(64, -1, np.int64)
    for application in range(offsets[cell], offsets[cell + 1]):
      # How many candidates the children make, and whether that is too many.
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
      rank[:] = 0
      while True:
        for part in range(arity):
          item = child[application, part]
          which[part] = -1 if item < 0 else ends[item] + rank[part]
        candidate, total = _candidate(
          application, which, matched, rules, (score, record), table, model
        )
        # The hypothesis of the same state, or a new one.
        if 2 * (filled - start) >= len(buckets):
          buckets = _doubled(buckets, record, start, filled, width)
        place = _place(buckets, record, candidate, width)
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
          record[item] = candidate
          back[item, 0] = application - offsets[cell]
          for part in range(arity):
            back[item, 1 + part] = rank[part]
        if not _next(rank, count):
          break
    # Best first, as in a beam.
    order = start + np.argsort(-score[start:filled, 0], kind="mergesort")
    score[start:filled] = score[order]
    record[start:filled] = record[order]
    back[start:filled] = back[order]
    ends[cell + 1] = filled
  return score[:filled, 0], record[:filled], back[:filled], ends, complete
