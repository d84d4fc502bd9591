"""Translation options of sentences, laid out for the search over stacks.

An *option* is a phrase pair on a source span. Spans are numbered begin * L +
length - 1, L being the longest phrase. The options of a span are listed three
times, for each orientation towards the phrase before: what the orientation
costs changes their order. The future cost of a span is an upper bound of what
its best options score, without the language model's context and reordering.
"""

import dataclasses

import jax
import numpy as np

from jaxmt.decode.chart.chart_layout import NONE
from jaxmt.decode.model import Model, Source
from jaxmt.decode.phrase.markup import Marks, no_marks
from jaxmt.grammar.match.source_trie import step
from jaxmt.grammar.table import Kind
from jaxmt.text import ragged
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

Array = jax.Array | np.ndarray

_SIZES = (8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseChart:
  """Options of B sentences of up to N words: S = N * L spans, T options each.

  Attributes:
    length: words of each sentence, int32 `[B]`.
    rule: applied rule of each option, best static score first, -1 for none,
      int32 `[B, S, T]`.
    ranked: scores of the options with each backward orientation, falling,
      `NONE` for none, float32 `[B, S, 3, T]`.
    order: which option each of these is, int32 `[B, S, 3, T]`.
    future: best score of each span `[i, j)`, float32 `[B, N + 1, N + 1]`.
    reach: where phrases must end while a word is the first gap (walls), int32
      `[B, N + 1]`.
    zones: begin and end of spans that are translated without a break, (0, 0)
      for none, int32 `[B, Z, 2]`.
  """

  length: Array
  rule: Array
  ranked: Array
  order: Array
  future: Array
  reach: Array
  zones: Array

  @property
  def longest(self) -> int:
    """L, the most words of a phrase."""
    return self.rule.shape[1] // (self.future.shape[1] - 1)


def padded_length(words: int) -> int:
  """Returns N for sentences of up to `length` words."""
  for size in _SIZES:
    if words <= size:
      return size
  return -(-words // 64) * 64


def find_options(
  model: Model, source: Source, *, excluded: Ragged | None = None
) -> np.ndarray:
  """Returns the rules of the options of sentences, -1 for none, `[B, S, T]`.

  Args:
    model: phrases with an order.
    source: B sentences under the model's weights.
    excluded: rules that each sentence must not use, B rising rows.
  """
  lengths = source.ids.lengths
  size = padded_length(int(lengths.max(initial=1)))
  longest = longest_phrase(model)
  most = int(np.diff(model.ranked.offsets).max(initial=1))
  width = min(model.limits.targets, ragged.bucket(max(most, 2)))
  if source.marks is not None:
    width += _most_marked(source.marks.options)
  rule = np.full((len(source), size * longest, width), -1, np.int32)
  _find_options(
    np.ascontiguousarray(source.ids.flat, np.int32),
    source.ids.offsets,
    np.ascontiguousarray(source.copies, np.int32),
    (model.trie.keys, model.trie.children),
    (model.ranked.flat, model.ranked.offsets),
    len(model.table),
    longest,
    model.limits.pass_through == "all",
    rule,
  )
  if excluded is not None:
    _drop_rules(
      rule,
      source.ids.offsets,
      np.ascontiguousarray(source.copies, np.int32),
      np.ascontiguousarray(excluded.flat, np.int32),
      np.asarray(excluded.offsets, np.int64),
      (len(model.table), longest),
    )
  if source.marks is not None:
    _drop_crossing(rule, source.marks.zones, longest)
    _add_marked(rule, source.marks, longest, len(model.table))
  return rule


def _drop_crossing(rule: np.ndarray, zones: Ragged, longest: int) -> None:
  """Takes away the options that cross part of a zone's border."""
  span = np.arange(rule.shape[1])
  begin = span // longest
  end = begin + span % longest + 1
  row = np.repeat(np.arange(len(zones)), zones.lengths)
  for sentence, (first, last) in zip(row, zones.flat, strict=True):
    enters = (begin < first) & (end > first) & (end < last)
    leaves = (begin > first) & (begin < last) & (end > last)
    rule[sentence, enters | leaves] = -1


def _most_marked(options: Ragged) -> int:
  """The most translations that are marked for one span, one of few sizes."""
  row = np.repeat(np.arange(len(options)), options.lengths)
  spans = np.column_stack([row, options.flat[:, :2]])
  _, counts = np.unique(spans, axis=0, return_counts=True)
  most = int(counts.max(initial=0))
  return ragged.bucket(most) if most else 0


def _add_marked(
  rule: np.ndarray, marks: Marks, longest: int, size: int
) -> None:
  """Adds marked translations; exclusive ones alone remain where they are."""
  span = np.arange(rule.shape[1])
  begin = span // longest
  end = begin + span % longest + 1
  row = np.repeat(np.arange(len(marks)), marks.options.lengths)
  if marks.exclusive:
    for sentence, (first, last, _) in zip(row, marks.options.flat, strict=True):
      rule[sentence, (begin < last) & (end > first)] = -1
  for sentence, (first, last, number) in zip(
    row, marks.options.flat, strict=True
  ):
    own = rule[sentence, first * longest + last - first - 1]
    # A word with a translation is not copied.
    place = 0 if own[0] > size else int(np.argmax(own < 0))
    own[place] = number


def longest_phrase(model: Model) -> int:
  """Returns L: the most source words of a phrase, at most the span limit."""
  usable = model.table.source.lengths[model.table.kind == Kind.HIERO]
  return int(np.clip(usable.max(initial=1), 1, model.limits.span))


def score_chart(
  model: Model,
  source: Source,
  rule: np.ndarray,
  *,
  extra: np.ndarray | None = None,
) -> PhraseChart:
  """Returns the chart of given options.

  Args:
    model: phrases with an order.
    source: B sentences under the model's weights.
    rule: of the options, as `find_options` has them.
    extra: scores of options beyond those of their rules, float32 `[B, S, T]`.
  """
  batch, spans, width = rule.shape
  size = spans // longest_phrase(model)
  ranked = np.full((batch, spans, 3, width), NONE, np.float32)
  order = np.zeros((batch, spans, 3, width), np.int32)
  future = np.full((batch, size + 1, size + 1), NONE, np.float32)
  lengths = source.ids.lengths.astype(np.int32)
  if extra is None:
    extra = np.zeros((1, 1, 1), np.float32)
  limits = source.marks or no_marks(len(source))
  _score_options(
    lengths,
    rule,
    model.columns.score,
    source.columns.score,
    model.order_scores,
    extra,
    ranked,
    order,
    future,
  )
  return PhraseChart(
    length=lengths,
    rule=rule,
    ranked=ranked,
    order=order,
    future=future,
    reach=_reaches(limits.walls, lengths, size),
    zones=_padded_zones(limits.zones),
  )


def _reaches(walls: Ragged, lengths: np.ndarray, size: int) -> np.ndarray:
  """The first wall after each word, or the end of its sentence."""
  reach = np.repeat(lengths[:, None], size + 1, axis=1).astype(np.int32)
  row = np.repeat(np.arange(len(walls)), walls.lengths)
  # Later walls first, so that the nearest one stays.
  for item in np.argsort(-walls.flat, kind="stable").tolist():
    wall = walls.flat[item]
    reach[row[item], :wall] = wall
  return reach


def _padded_zones(zones: Ragged) -> np.ndarray:
  """Zones as `[B, Z, 2]`; Z is one of few sizes."""
  most = int(zones.lengths.max(initial=0))
  out = np.zeros((len(zones), ragged.bucket(most) if most else 1, 2), np.int32)
  row = np.repeat(np.arange(len(zones)), zones.lengths)
  place = np.arange(len(row)) - zones.offsets[row]
  out[row, place] = zones.flat
  return out


@njit
def _find_options(
  words, offsets, copies, trie, ranked, size, longest, copy_all, rule
):
  """Fills in the rules of all options."""
  keys, children = trie
  width = rule.shape[2]
  for sentence in range(len(offsets) - 1):
    first, end = offsets[sentence], offsets[sentence + 1]
    for begin in range(first, end):
      node = np.int32(0)
      for place in range(begin, min(begin + longest, end)):
        node = step(keys, children, node, words[place])
        if node < 0:
          break
        span = (begin - first) * longest + place - begin
        low, high = ranked[1][node], ranked[1][node + 1]
        for item in range(min(high - low, width)):
          rule[sentence, span, item] = ranked[0][low + item]
      # A word that no phrase translates alone is copied.
      span = (begin - first) * longest
      if rule[sentence, span, 0] < 0:
        rule[sentence, span, 0] = size + 1 + copies[begin]
      elif copy_all:
        for item in range(1, width):
          if rule[sentence, span, item] < 0:
            rule[sentence, span, item] = size + 1 + copies[begin]
            break


@njit
def _drop_rules(rule, offsets, copies, excluded, starts, sizes):
  """Takes excluded rules away; a word left without options is copied."""
  size, longest = sizes
  for sentence in range(len(rule)):
    own = excluded[starts[sentence] : starts[sentence + 1]]
    if len(own) == 0:
      continue
    for span in range(rule.shape[1]):
      row = rule[sentence, span]
      kept, there = 0, row[0] >= 0
      for item in range(len(row)):
        place = np.searchsorted(own, row[item])
        if row[item] < 0 or (place < len(own) and own[place] == row[item]):
          continue
        row[kept] = row[item]
        kept += 1
      row[kept:] = -1
      if there and kept == 0 and span % longest == 0:
        row[0] = size + 1 + copies[offsets[sentence] + span // longest]


@njit
def _score_options(
  lengths, rule, scores, copied, order_scores, extra, ranked, order, future
):
  """Ranks the options of each span, and bounds the future of all spans."""
  batch, spans, width = rule.shape
  size = future.shape[1] - 1
  longest = spans // size
  num_rules = len(scores) - 1
  for sentence in range(batch):
    length = lengths[sentence]
    for begin in range(length):
      future[sentence, begin, begin] = 0.0
      for more in range(min(longest, length - begin)):
        span = begin * longest + more
        best = NONE
        for item in range(width):
          number = rule[sentence, span, item]
          if number < 0:
            break
          if number > num_rules:
            static = copied[number - num_rules - 1]
          else:
            static = scores[number]
          if len(extra) > 1 or extra.shape[1] > 1:
            static += extra[sentence, span, item]
          best = max(best, static)
          # Insertion: lists are short, and nearly sorted.
          for kind in range(3):
            value = static + order_scores[min(number, num_rules), kind]
            row = ranked[sentence, span, kind]
            place = item
            while place > 0 and row[place - 1] < value:
              row[place] = row[place - 1]
              order[sentence, span, kind, place] = order[
                sentence, span, kind, place - 1
              ]
              place -= 1
            row[place] = value
            order[sentence, span, kind, place] = item
        future[sentence, begin, begin + more + 1] = best
    future[sentence, length, length] = 0.0
    # Longer spans: the best split.
    for more in range(2, length + 1):
      for begin in range(length - more + 1):
        best = future[sentence, begin, begin + more]
        for middle in range(begin + 1, begin + more):
          best = max(
            best,
            future[sentence, begin, middle]
            + future[sentence, middle, begin + more],
          )
        future[sentence, begin, begin + more] = best
