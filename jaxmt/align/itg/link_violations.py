"""The pruner of Haghighi, Blitzer, DeNero & Klein (2009): links left out.

Links that the HMM is sure of are almost always right, so a bi-span is a bad one
if every derivation that has it must leave out many of these. A dynamic program
knows the fewest: inside, the most links that an ITG tree over a bi-span keeps;
outside, the most that a tree around it keeps.

  in(x)  = 1 if x has one link, else max over splits of in(left) + in(right)
  out(x) = max over parents and siblings of out(parent) + in(sibling)
  left out with x = links - in(x) - out(x)

Both see only which links a bi-span has. So they work on boxes: intervals of the
links by source and by target word, many fewer than bi-spans. Where as many
links are left out, what counts is the posterior ratio inside minus that of what
leaves the bi-span (`pruning.FEATURES` 7 and 8).

N: sentence pairs. Q: source spans. K: links of a pair.
"""

import numpy as np

from jaxmt.text.kernels import njit

_MOST_LINKS = 40  # the surest; time grows with their sixth power


def best_spans(
  posterior: np.ndarray,
  source_lengths: np.ndarray,
  target_lengths: np.ndarray,
  *,
  confident: float,
  beam: int,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the best target spans of all source spans.

  Args:
    posterior: of links, `[N, W, W]` (source x target).
    source_lengths: words, int `[N]`.
    target_lengths: words, int `[N]`.
    confident: least posterior of a link that counts, above one half; so no
      two of them share a word.
    beam: target spans of each source span, at most.

  Returns:
    Scores, float32 `[N, Q, beam]`, -inf for none; and `first * W + last` of the
    target span, int32 of the same shape. Source spans are in the order of
    `np.triu_indices`.
  """
  return _best_spans(
    np.ascontiguousarray(posterior, np.float32),
    np.asarray(source_lengths, np.int64),
    np.asarray(target_lengths, np.int64),
    np.float32(confident),
    beam,
  )


def left_out(source: np.ndarray, target: np.ndarray) -> np.ndarray:
  """Returns the fewest links that derivations with each box leave out.

  Args:
    source: source words of K links, rising, no two equal.
    target: their target words, no two equal.

  Returns:
    int16 `[K + 1, K + 1, K + 1, K + 1]`: links `a` to `b - 1` by source and `c`
    to `d - 1` by target, for `a <= b` and `c <= d`.
  """
  ranks = np.argsort(np.argsort(target)).astype(np.int64)
  return _left_out(ranks)


@njit
def _left_out(ranks):
  """See `left_out`; `ranks` are target ranks in order of source."""
  size = len(ranks) + 1
  inside = np.zeros((size, size, size, size), np.int16)
  outside = np.full((size, size, size, size), -1, np.int16)
  for width in range(1, size):
    for a in range(size - width):
      b = a + width
      for height in range(1, size):
        for c in range(size - height):
          d = c + height
          held = 0
          for link in range(a, b):
            held += c <= ranks[link] < d
          best = min(held, 1)
          for s in range(a, b + 1):
            if best == held:
              break
            for t in range(c, d + 1):
              straight = inside[a, s, c, t] + inside[s, b, t, d]
              inverted = inside[a, s, t, d] + inside[s, b, c, t]
              best = max(best, straight, inverted)
          inside[a, b, c, d] = best
  last = size - 1
  outside[0, last, 0, last] = 0
  for total in range(2 * last, 0, -1):
    for width in range(max(0, total - last), min(total, last) + 1):
      height = total - width
      for a in range(size - width):
        for c in range(size - height):
          _pass_down(inside, outside, a, a + width, c, c + height)
  out = np.zeros((size, size, size, size), np.int16)
  for a in range(size):
    for b in range(a, size):
      for c in range(size):
        for d in range(c, size):
          kept = inside[a, b, c, d] + outside[a, b, c, d]
          out[a, b, c, d] = last - kept
  return out


@njit
def _pass_down(inside, outside, a, b, c, d):
  """Raises the outside values of all parts of a box."""
  own = outside[a, b, c, d]
  for s in range(a, b + 1):
    for t in range(c, d + 1):
      for one_low, one_high, two_low, two_high in (
        (c, t, t, d),
        (t, d, c, t),
      ):
        first = inside[a, s, one_low, one_high]
        second = inside[s, b, two_low, two_high]
        outside[a, s, one_low, one_high] = max(
          outside[a, s, one_low, one_high], own + second
        )
        outside[s, b, two_low, two_high] = max(
          outside[s, b, two_low, two_high], own + first
        )


@njit
def _surest(posterior, n, m, confident):
  """Links above a posterior, by source: `(source [K], target [K])`."""
  found = np.empty((n * m, 2), np.int64)
  worth = np.empty(n * m)
  count = 0
  for i in range(n):
    for j in range(m):
      if posterior[i, j] >= confident:
        found[count, 0], found[count, 1] = i, j
        worth[count] = -posterior[i, j]
        count += 1
  chosen = np.argsort(worth[:count], kind="mergesort")[:_MOST_LINKS]
  chosen = np.sort(chosen)
  return found[chosen, 0], found[chosen, 1]


@njit
def _below(words, length):
  """How many links have a word before each place, int64 `[length + 1]`."""
  out = np.zeros(length + 1, np.int64)
  for word in words:
    out[word + 1 :] += 1
  return out


@njit
def _best_spans(posterior, source_lengths, target_lengths, confident, beam):
  """See `best_spans`."""
  pairs, width = posterior.shape[:2]
  spans = width * (width + 1) // 2
  scores = np.full((pairs, spans, beam), -np.inf, np.float32)
  places = np.zeros((pairs, spans, beam), np.int32)
  for pair in range(pairs):
    n, m = source_lengths[pair], target_lengths[pair]
    source, target = _surest(posterior[pair], n, m, confident)
    costs = _left_out(np.argsort(np.argsort(target)))
    rows, columns = _below(source, n), _below(target, m)
    # Sums of posteriors above and left of each place.
    sums = np.zeros((n + 1, m + 1))
    for i in range(n):
      line = 0.0
      for j in range(m):
        line += posterior[pair, i, j]
        sums[i + 1, j + 1] = sums[i, j + 1] + line
    own = np.empty(m * (m + 1) // 2)
    name = np.empty(m * (m + 1) // 2, np.int32)
    span = 0
    for i in range(width):
      for k in range(i + 1, width + 1):
        if k <= n:
          place = 0
          for j in range(m):
            for l in range(j + 1, m + 1):
              low, high = sums[k, m] - sums[i, m], sums[n, l] - sums[n, j]
              held = sums[k, l] - sums[i, l] - sums[k, j] + sums[i, j]
              ratio = 2.0 * (3.0 * held - low - high) / (k - i + l - j)
              cost = costs[rows[i], rows[k], columns[j], columns[l]]
              # Squashed to less than 1: a link outweighs all posteriors.
              own[place] = ratio / (1.0 + abs(ratio)) - 2.0 * cost
              name[place] = j * width + l - 1
              place += 1
          order = np.argsort(-own, kind="mergesort")[:beam]
          for rank in range(len(order)):
            scores[pair, span, rank] = own[order[rank]]
            places[pair, span, rank] = name[order[rank]]
        span += 1
  return scores, places
