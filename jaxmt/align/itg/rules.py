"""Phrase pairs and hierarchical pairs with their links, from an aligned bitext.

All pairs that are consistent with the links of a simpler aligner (Koehn, Och &
Marcu, 2003; Chiang, 2007), begin and end with linked words, and have at most
`max_words` words on either side: without a gap, or with one gap that is a
consistent pair itself and lies between words on at least one side. (With the
gap at an edge of both sides, a rule would be two neighbours, which the grammar
has already.) The links of a rule are those it is seen with most often.

With `blocks`, one or two neighbouring words may be linked with each of up to
four, whether or not the table has the pair: an addition for texts where links
of several words are frequent and the simpler aligner misses most of them. A
block with the words and links of a rule of the table is that rule, so that no
alignment has two derivations because of it.

A rule is known by 64-bit hashes of its sides, so a table of millions takes some
dozens of bytes each and matching is a search in sorted numbers. Two rules of
one hash would share counts; at 10^7 rules the chance of one such pair is about
10^-5.
"""

import dataclasses

import numpy as np

from jaxmt.align.itg.bispans import BiSpans, triangle
from jaxmt.align.itg.parse import Cores
from jaxmt.text.kernels import GOLDEN, grown, mixed, njit
from jaxmt.text.ragged import Ragged

MOST_WORDS = 4  # on a side: 16 cells of links fit a mask
_GAP = 0x7FFFFFFF  # stands for the gap among words
KINDS = ("phrases", "hierarchical")
# Blocks: source and target words, all linked with one another.
SHAPES = tuple(
  (words, others)
  for words in range(1, MOST_WORDS + 1)
  for others in range(1, MOST_WORDS + 1)
  if min(words, others) <= 2 and words + others > 2
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleOptions:
  """Which rules to collect.

  Attributes:
    phrases: whether to collect phrase pairs (P).
    hierarchical: whether to collect pairs with a gap (H).
    blocks: whether blocks may be linked that the table does not have.
    max_words: on either side, gap aside, at most `MOST_WORDS`.
    max_span: source words of a hierarchical pair, its gap included.
  """

  phrases: bool = True
  hierarchical: bool = True
  blocks: bool = False
  max_words: int = 3
  max_span: int = 10

  def __post_init__(self):
    if not 1 <= self.max_words <= MOST_WORDS:
      raise ValueError(f"max_words must be 1 to {MOST_WORDS}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ItgRuleTable:
  """P rules and, with `options.blocks`, `SHAPES` as D more; otherwise D = 0.

  Attributes:
    keys: hash of both sides, rising, uint64 `[P]`.
    sources: hashes of source sides, rising, distinct, uint64.
    targets: hashes of target sides, rising, distinct, uint64.
    links: bit `4 p + q`: the p-th source word is linked with the q-th target
      word, int32 `[P + D]`.
    count: times seen, 0 of blocks, int64 `[P + D]`.
    forward: ln p(target side | source side), 0 of blocks, float32 `[P + D]`.
    backward: ln p(source side | target side), likewise.
    options: what was collected.
  """

  keys: np.ndarray
  sources: np.ndarray
  targets: np.ndarray
  links: np.ndarray
  count: np.ndarray
  forward: np.ndarray
  backward: np.ndarray
  options: RuleOptions

  def __len__(self) -> int:
    return len(self.keys)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instances:
  """Distinct instances of rules in a part of a bitext, with their numbers.

  Attributes:
    source: hash of the source side, uint64 `[N]`.
    target: hash of the target side, uint64 `[N]`.
    links: see `ItgRuleTable.links`, int32 `[N]`.
    count: times seen, int64 `[N]`.
  """

  source: np.ndarray
  target: np.ndarray
  links: np.ndarray
  count: np.ndarray


def collect(
  source: Ragged, target: Ragged, links: Ragged, options: RuleOptions
) -> Instances:
  """Returns the rules that a part of a bitext has: the map step.

  Args:
    source: word ids, N rows.
    target: word ids, N rows.
    links: pairs (source, target), N rows.
    options: which rules.
  """
  found = _collect(
    np.ascontiguousarray(source.flat, np.int32),
    source.offsets,
    np.ascontiguousarray(target.flat, np.int32),
    target.offsets,
    np.ascontiguousarray(links.flat, np.int32).reshape(-1, 2),
    links.offsets,
    _limits(options),
  )
  number = np.ones(len(found[0]), np.int64)
  return _summed([_instances(found[0], found[1], found[2], number)])


def _instances(source, target, links, count) -> Instances:
  return Instances(source=source, target=target, links=links, count=count)


def table(parts: list[Instances], options: RuleOptions) -> ItgRuleTable:
  """Adds up instances and estimates probabilities: the reduce step."""
  whole = _summed(parts)
  # Counts of both sides together, with the most frequent links.
  keys = _pair_keys(whole.source, whole.target)
  order = np.lexsort((whole.links, -whole.count, keys))
  keys = keys[order]
  first = np.ones(len(keys), np.bool_)
  first[1:] = keys[1:] != keys[:-1]
  starts = np.flatnonzero(first)
  count = (
    np.add.reduceat(whole.count[order], starts)
    if len(starts)
    else (np.zeros(0, np.int64))
  )
  sources, source_of = np.unique(
    whole.source[order][starts], return_inverse=True
  )
  targets, target_of = np.unique(
    whole.target[order][starts], return_inverse=True
  )
  by_source = np.bincount(source_of, count, minlength=1)
  by_target = np.bincount(target_of, count, minlength=1)
  forward = np.log(count / by_source[source_of])
  backward = np.log(count / by_target[target_of])
  blocks = np.array([_block(*shape) for shape in SHAPES], np.int32)
  blocks = blocks if options.blocks else blocks[:0]
  pad = lambda column: np.pad(column, (0, len(blocks)))
  return ItgRuleTable(
    keys=keys[starts],
    sources=sources,
    targets=targets,
    links=np.append(whole.links[order][starts], blocks).astype(np.int32),
    count=pad(count),
    forward=pad(forward).astype(np.float32),
    backward=pad(backward).astype(np.float32),
    options=options,
  )


def _block(words: int, others: int) -> int:
  """Returns the links of a block; see `ItgRuleTable.links`."""
  return sum(1 << (4 * p + q) for p in range(words) for q in range(others))


def empty() -> ItgRuleTable:
  """Returns a table without rules: HP-ITG is then W-ITG."""
  none = np.zeros(0, np.uint64)
  nothing = _instances(none, none, np.zeros(0, np.int32), np.zeros(0, np.int64))
  return table(
    [nothing], RuleOptions(phrases=False, hierarchical=False, max_words=1)
  )


def _summed(parts: list[Instances]) -> Instances:
  """Adds up equal instances."""
  columns = [
    np.concatenate([getattr(part, name) for part in parts])
    for name in ("source", "target", "links", "count")
  ]
  order = np.lexsort((columns[2], columns[1], columns[0]))
  columns = [column[order] for column in columns]
  fresh = np.ones(len(order), np.bool_)
  for column in columns[:3]:
    if column is columns[0]:
      fresh[1:] = column[1:] != column[:-1]
    else:
      fresh[1:] |= column[1:] != column[:-1]
  starts = np.flatnonzero(fresh)
  if not len(starts):
    return _instances(*columns)
  counts = np.add.reduceat(columns[3], starts)
  first, second, links = (column[starts] for column in columns[:3])
  return _instances(first, second, links, counts)


def _limits(options: RuleOptions):
  return (
    options.phrases,
    options.hierarchical,
    options.max_words,
    options.max_span,
  )


def match(
  bispans: BiSpans, source: Ragged, target: Ragged, rules: ItgRuleTable
) -> Cores:
  """Finds where rules can stand in sentence pairs.

  Args:
    bispans: of B sentence pairs.
    source: their word ids, B rows.
    target: their word ids, B rows.
    rules: the table.
  """
  bispan, rule, gap = _match(
    bispans.spans,
    bispans.offsets,
    np.ascontiguousarray(source.flat, np.int32),
    source.offsets,
    np.ascontiguousarray(target.flat, np.int32),
    target.offsets,
    (rules.keys, rules.sources, rules.targets, rules.links),
    _limits(rules.options),
    _shape_rows(rules),
  )
  return Cores(bispan=bispan, rule=rule, gap=gap)


def _shape_rows(rules: ItgRuleTable) -> np.ndarray:
  """Returns the row of each block by its words and others, or -1; `[5, 5]`."""
  out = np.full((MOST_WORDS + 1, MOST_WORDS + 1), -1, np.int32)
  if rules.options.blocks:
    for number, shape in enumerate(SHAPES):
      out[shape] = len(rules) + number
  return out


# --- kernels ------------------------------------------------------------------


@njit
def _hash(words, start, gap_start, gap_end, end):
  """Hashes words around a gap; `gap_start < 0` for no gap."""
  value = GOLDEN
  place = start
  while place < end:
    if place == gap_start:
      value = mixed(value + np.uint64(_GAP) * GOLDEN)
      place = gap_end
      continue
    value = mixed(value + np.uint64(words[place] + 1) * GOLDEN)
    place += 1
  if gap_start == end:  # the gap is the last symbol
    value = mixed(value + np.uint64(_GAP) * GOLDEN)
  return value


@njit
def _pair_key(source, target):
  """Hashes both sides."""
  return mixed(source + mixed(target + GOLDEN))


@njit
def _pair_keys(sources, targets):
  """`_pair_key` of every row."""
  out = np.empty(len(sources), np.uint64)
  for row in range(len(sources)):
    out[row] = _pair_key(sources[row], targets[row])
  return out


@njit
def _tight(start, end, low, high, other_low, other_high):
  """Returns the target span consistent with a source span, or (-1, -1).

  Args:
    start: of the source span, whose first and last words must have links.
    end: of the source span.
    low: first target position linked to each source word; large without.
    high: last one; -1 without.
    other_low: first source position linked to each target word.
    other_high: last one.
  """
  if high[start] < 0 or high[end - 1] < 0:
    return -1, -1
  first, last = low[start], high[start]
  for place in range(start, end):
    first, last = min(first, low[place]), max(last, high[place])
  for place in range(first, last + 1):
    if other_high[place] >= 0 and (
      other_low[place] < start or other_high[place] >= end
    ):
      return -1, -1
  return first, last + 1


@njit
def _extremes(links, n, m):
  """First and last partner of every word: `(low, high)` of both sides."""
  low, high = np.full(n, 1 << 30, np.int64), np.full(n, -1, np.int64)
  other_low, other_high = (
    np.full(m, 1 << 30, np.int64),
    np.full(m, -1, np.int64),
  )
  for link in range(len(links)):
    s, t = links[link, 0], links[link, 1]
    low[s], high[s] = min(low[s], t), max(high[s], t)
    other_low[t], other_high[t] = min(other_low[t], s), max(other_high[t], s)
  return low, high, other_low, other_high


@njit
def _mask(links, outer, inner):
  """Links of an instance as bits; spans are (i, k, j, l), -1 for no gap."""
  out = 0
  for link in range(len(links)):
    s, t = links[link, 0], links[link, 1]
    if s < outer[0] or s >= outer[1] or t < outer[2] or t >= outer[3]:
      continue
    if inner[0] <= s < inner[1]:
      continue
    p = s - outer[0] - (inner[1] - inner[0] if s >= inner[1] else 0)
    q = t - outer[2] - (inner[3] - inner[2] if t >= inner[3] else 0)
    if inner[0] < 0:
      p, q = s - outer[0], t - outer[2]
    out |= 1 << (4 * p + q)
  return out


@njit
def _collect(
  source, offsets, target, target_offsets, links, link_offsets, limits
):
  """All instances: `(source hashes, target hashes, links)`."""
  phrases, gaps, most, widest = limits
  hashes = np.empty(4096, np.uint64)
  others = np.empty(4096, np.uint64)
  masks = np.empty(4096, np.int32)
  count = 0
  for row in range(len(offsets) - 1):
    words = source[offsets[row] : offsets[row + 1]]
    foreign = target[target_offsets[row] : target_offsets[row + 1]]
    own = links[link_offsets[row] : link_offsets[row + 1]]
    n = len(words)
    low, high, other_low, other_high = _extremes(own, n, len(foreign))
    # Consistent target spans of all short source spans.
    spans = np.full((n, widest + 1, 2), -1, np.int64)
    for i in range(n):
      for width in range(1, min(widest, n - i) + 1):
        j, l = _tight(i, i + width, low, high, other_low, other_high)
        spans[i, width, 0], spans[i, width, 1] = j, l
    for i in range(n):
      for width in range(1, min(widest, n - i) + 1):
        k = i + width
        j, l = spans[i, width, 0], spans[i, width, 1]
        if j < 0:
          continue
        room = count + 1 + (most + 1) * (most + 1)
        hashes = grown(hashes, room)
        others = grown(others, room)
        masks = grown(masks, room)
        if phrases and width <= most and l - j <= most and width + l - j > 2:
          hashes[count] = _hash(words, i, -1, -1, k)
          others[count] = _hash(foreign, j, -1, -1, l)
          masks[count] = _mask(own, (i, k, j, l), (-1, -1, -1, -1))
          count += 1
        if not gaps:
          continue
        # A gap that leaves `left` words before it and `right` after it.
        for left in range(most + 1):
          for right in range(most + 1 - left):
            size = width - left - right
            if left + right == 0 or size < 1:
              continue
            a, b = i + left, k - right
            c, d = spans[a, size, 0], spans[a, size, 1]
            if c < 0 or c < j or d > l:
              continue
            around = c - j + l - d
            inside = (left and right) or (c > j and d < l)
            if not inside or around < 1 or around > most:
              continue
            hashes[count] = _hash(words, i, a, b, k)
            others[count] = _hash(foreign, j, c, d, l)
            masks[count] = _mask(own, (i, k, j, l), (a, b, c, d))
            count += 1
  return hashes[:count], others[:count], masks[:count]


@njit
def _find(sorted_keys, key):
  """Returns the place of a key, or -1."""
  place = np.searchsorted(sorted_keys, key)
  if place < len(sorted_keys) and sorted_keys[place] == key:
    return place
  return -1


@njit
def _sides(words, known, most, widest, gaps):
  """Hashes of all sides that the table has, 0 of others.

  Returns:
    uint64 `[spans, most + 1, most + 1]`: of the words around a gap that leaves
    so many before and after it; [0, 0]: of the span without a gap.
  """
  n = len(words)
  out = np.zeros((n * (n + 1) // 2, most + 1, most + 1), np.uint64)
  for start in range(n):
    for end in range(start + 1, min(n, start + widest) + 1):
      span = triangle(start, end, n)
      if end - start <= most:
        value = _hash(words, start, -1, -1, end)
        if _find(known, value) >= 0:
          out[span, 0, 0] = value
      if not gaps:
        continue
      for left in range(most + 1):
        for right in range(most + 1 - left):
          if left + right and end - start > left + right:
            value = _hash(words, start, start + left, end - right, end)
            if _find(known, value) >= 0:
              out[span, left, right] = value
  return out


@njit
def _match(
  spans,
  offsets,
  source,
  source_offsets,
  target,
  target_offsets,
  tables,
  limits,
  shapes,
):
  """All places of rules: `(bi-spans, rules, gaps)`."""
  phrases, gaps, most, widest = limits
  keys, sources, targets, links = tables
  bispan = np.empty(1024, np.int64)
  rule = np.empty(1024, np.int32)
  gap = np.empty(1024, np.int64)
  count = 0
  if len(keys) == 0 and shapes.max() < 0:
    return bispan[:0], rule[:0], gap[:0]
  for pair in range(len(offsets) - 1):
    words = source[source_offsets[pair] : source_offsets[pair + 1]]
    foreign = target[target_offsets[pair] : target_offsets[pair + 1]]
    n, m = len(words), len(foreign)
    own = _sides(words, sources, most, widest, gaps)
    other = _sides(foreign, targets, most, m, gaps)
    place = np.full((n * (n + 1) // 2, m * (m + 1) // 2), -1, np.int32)
    for item in range(offsets[pair], offsets[pair + 1]):
      i, k, j, l = (
        spans[item, 0],
        spans[item, 1],
        spans[item, 2],
        spans[item, 3],
      )
      first, second = triangle(i, k, n), triangle(j, l, m)
      place[first, second] = item
      if k - i > max(widest, MOST_WORDS):
        continue
      room = count + (most + 1) ** 4 + 2
      bispan, rule, gap = (
        grown(bispan, room),
        grown(rule, room),
        grown(gap, room),
      )
      # Without a gap: of the table, then a block that is not the same.
      found = -1
      if phrases and own[first, 0, 0] and other[second, 0, 0]:
        found = _find(keys, _pair_key(own[first, 0, 0], other[second, 0, 0]))
        if found >= 0:
          bispan[count], rule[count], gap[count] = item, found, -1
          count += 1
      if k - i < len(shapes) and l - j < len(shapes):
        shape = shapes[k - i, l - j]
        if shape >= 0 and (found < 0 or links[found] != links[shape]):
          bispan[count], rule[count], gap[count] = item, shape, -1
          count += 1
      if not gaps or k - i > widest:
        continue
      # With a gap: words before and after it, on both sides.
      for left in range(most + 1):
        for right in range(most + 1 - left):
          if left + right == 0 or own[first, left, right] == 0:
            continue
          row = triangle(i + left, k - right, n)
          for below in range(most + 1):
            for above in range(most + 1 - below):
              if below + above == 0 or other[second, below, above] == 0:
                continue
              if not ((left and right) or (below and above)):
                continue
              inner = place[row, triangle(j + below, l - above, m)]
              if inner < 0:
                continue
              key = _pair_key(
                own[first, left, right], other[second, below, above]
              )
              found = _find(keys, key)
              if found >= 0:
                bispan[count], rule[count], gap[count] = item, found, inner
                count += 1
  return bispan[:count], rule[:count], gap[:count]
