"""Inputs of an augmented search: accumulators of rules for each reference."""

from collections.abc import Sequence

import numpy as np

from jaxmt.decode.chart.accumulators import EDGE, LANE, ORDER, AugmentInputs
from jaxmt.decode.chart.chart_layout import Chart
from jaxmt.decode.model import Model, Source
from jaxmt.grammar.match.matching import Matches
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged, bucket
from jaxmt.text.vocabulary import intern

_NOWHERE = -2  # a reference word that no derivation can write


def make_inputs(
  model: Model,
  sources: Sequence[Source],
  matches: Sequence[Matches],
  charts: Sequence[Chart],
  references: Sequence[Sequence[str]],
) -> tuple[AugmentInputs, ...]:
  """Prepares the references of a batch; all parts get the same shapes.

  Args:
    model: the model.
    sources: the sentences of each part of the batch.
    matches: their applications.
    charts: the charts.
    references: for each part, one reference line per sentence.
  """
  encoded = [
    encode(model, source, lines)
    for source, lines in zip(sources, references, strict=True)
  ]
  lanes = lanes_of(np.concatenate([rows.lengths for rows in encoded]))
  numbered = [
    _number(part.offsets, part.rule, part.sentence, part.rules)
    for part in matches
  ]
  size = max(len(sentence) for _, sentence, _ in numbered)
  size = max(bucket(size), *(len(chart.slots) for chart in charts))
  return tuple(
    _inputs(
      part,
      chart,
      rows,
      number,
      runs_of_rules(
        model,
        source,
        part.rules,
        (sentence, local),
        rows,
        lanes=lanes,
        arity=model.arity,
        size=size,
      ),
    )
    for source, part, chart, rows, (number, sentence, local) in zip(
      sources, matches, charts, encoded, numbered, strict=True
    )
  )


def lanes_of(lengths: np.ndarray) -> int:
  """Returns the lanes that references of these lengths need.

  A power of two, since each number of lanes is compiled.
  """
  longest = int(lengths.max(initial=1))
  return 1 << (-(-longest // LANE) - 1).bit_length()


def encode(model: Model, source: Source, lines: Sequence[str]) -> Ragged:
  """Returns references in the ids of `derivation.Yields`, or `_NOWHERE`."""
  ids, words = intern(lines)
  copied = {word: n for n, word in enumerate(source.words)}
  size = len(model.table.target_words)
  find = model.table.target_words.index.get
  numbers = np.array(
    [find(w, size + copied[w] if w in copied else _NOWHERE) for w in words],
    np.int32,
  )
  return Ragged(flat=numbers[ids.flat], offsets=ids.offsets)


def runs_of_rules(
  model: Model,
  source: Source,
  rules: np.ndarray,
  pairs: tuple[np.ndarray, np.ndarray],
  references: Ragged,
  *,
  lanes: int,
  arity: int,
  size: int | None = None,
) -> np.ndarray:
  """Returns accumulators of the runs of rules against references.

  Args:
    model: the model.
    source: the sentences.
    rules: applied rules.
    pairs: sentence, and which of the rules, int32 `[N]` each.
    references: of `encode`.
    lanes: see `lanes_of`.
    arity: runs of a rule, less one.
    size: rows of the result, those after the N-th are 0; N if None.

  Returns:
    int32 `[size, arity + 1, columns]`.
  """
  target, known = model.table.target, len(model.table.target_words)
  find = model.table.target_words.index.get
  # A copied word that the table knows too is that word.
  copied = np.array(
    [find(word, known + n) for n, word in enumerate(source.words)], np.int32
  )
  flat, offsets = _targets(
    target.flat, target.offsets, rules, len(model.table), copied
  )
  return _runs(
    flat,
    offsets,
    pairs,
    (references.flat, references.offsets),
    arity,
    lanes,
    len(pairs[1]) if size is None else size,
  )


def _inputs(matches, chart, references, number, runs):
  """The arrays as the search wants them: by chart cell, padded."""
  row = np.zeros(chart.rule.shape, np.int32)
  counts = np.diff(matches.offsets)
  place = np.repeat(matches.place, counts)
  column = np.arange(len(number)) - np.repeat(matches.offsets[:-1], counts)
  row[place, column] = number
  length = np.ones(len(chart.root), np.float32)
  length[: len(references)] = np.maximum(references.lengths, 1)
  words = np.ones(len(references), np.int32)
  np.maximum.at(words, matches.sentence, matches.end)
  share = np.ones(len(row), np.float32)
  share[matches.place] = (matches.end - matches.begin) / words[matches.sentence]
  return AugmentInputs(row=row, runs=runs, length=length, share=share)


@njit
def _targets(flat, offsets, rules, size, copied):
  """Target sides of local rules; the goal writes nothing."""
  rows = np.zeros(len(rules) + 1, np.int64)
  for item, rule in enumerate(rules):
    count = 1
    if rule < size:
      count = offsets[rule + 1] - offsets[rule]
    rows[item + 1] = rows[item] + count
  out = np.empty(rows[-1], np.int32)
  for item, rule in enumerate(rules):
    if rule < size:
      out[rows[item] : rows[item + 1]] = flat[offsets[rule] : offsets[rule + 1]]
    elif rule == size:
      out[rows[item]] = -1
    else:
      out[rows[item]] = copied[rule - size - 1]
  return out, rows


@njit
def _number(offsets, rules, sentence, local):
  """Numbers the different (sentence, rule) of applications.

  Cells stand sentence by sentence, so a stamp per rule will do.

  Returns:
    The number of each application; sentence and local rule of each number.
  """
  where = np.zeros(local.max() + 1 if len(local) else 1, np.int32)
  for item, rule in enumerate(local):
    where[rule] = item
  stamp = np.full(len(local), -1, np.int32)
  used = np.zeros(len(local), np.int32)
  number = np.empty(len(rules), np.int32)
  of_sentence = np.empty(len(rules), np.int32)
  of_rule = np.empty(len(rules), np.int32)
  count = 0
  for cell in range(len(sentence)):
    row = sentence[cell]
    for item in range(offsets[cell], offsets[cell + 1]):
      rule = where[rules[item]]
      if stamp[rule] != row:
        stamp[rule], used[rule] = row, count
        of_sentence[count], of_rule[count] = row, rule
        count += 1
      number[item] = used[rule]
  return number, of_sentence[:count].copy(), of_rule[:count].copy()


@njit
def _runs(flat, offsets, pairs, references, arity, lanes, size):
  """Accumulator rows of every run of every (sentence, rule), `size` rows."""
  sentence, local = pairs
  texts, starts = references
  side = EDGE * lanes
  out = np.zeros((size, arity + 1, 2 * side + 2 + 2 * ORDER), np.int32)
  # ends[n] has the places where the last n + 1 words end in the reference.
  ends = np.zeros((ORDER, lanes), np.uint32)
  here = np.zeros(lanes, np.uint32)
  for pair in range(len(local)):
    text = texts[starts[sentence[pair]] : starts[sentence[pair] + 1]]
    run = -1
    begin = offsets[local[pair]]
    for item in range(begin, offsets[local[pair] + 1]):
      word = flat[item]
      if word < 0:
        continue
      if item == begin or flat[item - 1] < 0:
        run += 1
        ends[:] = 0
      row = out[pair, run]
      here[:] = 0
      for place in range(len(text)):
        if text[place] == word:
          here[place // LANE] |= np.uint32(1) << np.uint32(place % LANE)
      row[2 * side] += 1
      _append(ends, here)
      for order in range(ORDER):
        count = _size(ends[order])
        row[2 * side + 1 + order] += count
        row[2 * side + 1 + ORDER + order] += count > 0
      bits = row[: 2 * side].view(np.uint32)
      length = row[2 * side]
      if length <= EDGE:
        start = (length - 1) * lanes
        bits[start : start + lanes] = ends[length - 1]
        for _ in range(length):
          _down(bits[start : start + lanes])
      for order in range(EDGE):
        start = side + order * lanes
        bits[start : start + lanes] = ends[order]
  return out


@njit
def _append(ends, here):
  """Moves on by a word that stands at the places `here`."""
  lanes = len(here)
  for order in range(ORDER - 1, 0, -1):
    carry = np.uint32(0)
    for lane in range(lanes):
      value = ends[order - 1, lane]
      ends[order, lane] = ((value << np.uint32(1)) | carry) & here[lane]
      carry = value >> np.uint32(LANE - 1)
  ends[0] = here


@njit
def _down(places):
  for lane in range(len(places)):
    over = np.uint32(0)
    if lane + 1 < len(places):
      over = places[lane + 1] << np.uint32(LANE - 1)
    places[lane] = (places[lane] >> np.uint32(1)) | over


@njit
def _size(places):
  count = 0
  for lane in range(len(places)):
    value = places[lane]
    while value:
      value &= value - np.uint32(1)
      count += 1
  return count
