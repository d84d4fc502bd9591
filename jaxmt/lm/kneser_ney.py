r"""Modified Kneser-Ney estimation, interpolated, as KenLM's lmplz does it.

With a(g) the adjusted count of an n-gram g = c w: its count in the text if it
has the highest order or starts with `<s>`, otherwise the number of different
words seen before it. Then (Chen & Goodman 1998; Heafield, Pouzyrevsky, Clark &
Koehn, ACL 2013)

    p(w | c) = (a(c w) - D(a(c w))) / sum_x a(c x) + b(c) p(w | c')    (1)
    b(c)     = (sum_i D_i N_i(c) + sum of pruned a(c x)) / sum_x a(c x) (2)

with c' the context without its first word, N_i(c) the number of kept c x with
adjusted count i (3: three or more), the unigrams interpolated with a uniform
distribution over the words without `<s>`, and per order, from the numbers t_j
of n-grams with adjusted count j (Chen & Goodman equation 26),

    D_i = i - (i + 1) t_1 / (t_1 + 2 t_2) * t_(i+1) / t_i.               (3)

Arithmetic is float32 in lmplz's order of operations, so that equal texts give
equal files.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from jaxmt.errors import InputError
from jaxmt.lm import ngram_counts as counts_lib
from jaxmt.lm import ngram_model as model_lib
from jaxmt.lm.ngram_counts import BOS, EOS, SPECIALS, UNK, NgramCounts
from jaxmt.lm.ngram_model import Level, NgramModel
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

FALLBACK = (0.5, 1.0, 1.5)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EstimateConfig:
  """How to estimate.

  Attributes:
    order: length of the longest n-grams, 1 to 6.
    prune: n-grams seen at most this often are dropped, by order; the last
      value holds for the orders after it. Must not fall.
    fallback: discounts for adjusted counts 1, 2, 3 and more, where equation
      (3) has no answer; None makes that an error.
  """

  order: int
  prune: tuple[int, ...] = ()
  fallback: tuple[float, float, float] | None = None


def estimate(
  sentences: Ragged, words: Sequence[str], config: EstimateConfig
) -> NgramModel:
  """Estimates a model.

  Args:
    sentences: ids into `words` per sentence, without `<s>` and `</s>`.
    words: the distinct words of the text; none may be a special one.
    config: order, pruning, discounts.

  Returns:
    The model. Its words are `<unk>`, `<s>`, `</s>`, then `words`; its n-grams
    stand in suffix order (last word first).

  Raises:
    InputError: if the text is empty or too small for its discounts, or the
      config is wrong.
  """
  thresholds = check(config)
  specials = (model_lib.UNKNOWN, model_lib.BEGIN, model_lib.END)
  for special in specials:
    if special in words:
      raise InputError(f"{special} stands in the text as a word")
  if not len(sentences):
    raise InputError("the text is empty: nothing to estimate from")
  shifted = Ragged(flat=sentences.flat + SPECIALS, offsets=sentences.offsets)
  levels = counts_lib.count_ngrams(
    shifted, types=len(words) + SPECIALS, order=config.order
  )
  adjusted = _adjusted_counts(levels)
  keep = [
    level.count > threshold
    for level, threshold in zip(levels, thresholds, strict=True)
  ]
  keep[0][:SPECIALS] = True
  discounts = [
    _discounts(_count_of_counts(levels, adjusted, k), k + 1, config.fallback)
    for k in range(config.order)
  ]
  return _interpolate(
    levels, adjusted, keep, discounts, words=(*specials, *words)
  )


def check(config: EstimateConfig) -> tuple[int, ...]:
  """Returns one pruning threshold per order; `InputError` if one is wrong."""
  model_lib.check_order(config.order)
  prune = config.prune or (0,)
  if len(prune) > config.order:
    raise InputError(
      f"prune has {len(prune)} thresholds for a model of order {config.order}"
    )
  if min(prune) < 0 or any(a > b for a, b in itertools.pairwise(prune)):
    raise InputError(
      "prune thresholds must be at least 0 and must not fall: "
      + ",".join(map(str, prune))
    )
  if config.fallback is not None:
    for number, discount in enumerate(config.fallback, start=1):
      if not 0 <= discount <= number:
        raise InputError(
          f"fallback discount {discount} for count {number} is not in 0 .."
          f" {number}"
        )
  return prune + prune[-1:] * (config.order - len(prune))


def _adjusted_counts(levels: Sequence[NgramCounts]) -> list[np.ndarray]:
  """Returns a(g) of every n-gram, int64 `[n]` per order."""
  adjusted = []
  for level, longer in itertools.pairwise(levels):
    left = np.bincount(longer.suffix, minlength=len(level.word))
    starts_sentence = level.first == BOS
    if len(adjusted) == 0:  # <s> itself is never predicted
      starts_sentence = np.zeros_like(starts_sentence)
      left[BOS] = 0
    adjusted.append(np.where(starts_sentence, level.count, left))
  adjusted.append(levels[-1].count)
  return adjusted


def _count_of_counts(
  levels: Sequence[NgramCounts], adjusted: Sequence[np.ndarray], k: int
) -> np.ndarray:
  """Returns t_0 .. t_4 of order k + 1, int64 `[5]`."""
  totals = np.bincount(np.minimum(adjusted[k], 5), minlength=6)
  # lmplz writes out the last n-gram of the text in suffix order with its count
  # in the text where the adjusted count belongs, at each order below the
  # highest until one starts with <s>. One n-gram per order is nothing on real
  # text; we follow it so that small texts agree as well.
  if k < len(levels) - 1 and all(
    level.first[-1] != BOS for level in levels[:k]
  ):
    totals[min(adjusted[k][-1], 5)] -= 1
    totals[min(levels[k].count[-1], 5)] += 1
  return totals[:5]


def _discounts(
  totals: np.ndarray, order: int, fallback: Sequence[float] | None
) -> np.ndarray:
  """Returns D_0 .. D_3 by equation (3), float32 `[4]`; D_0 is 0."""
  fault = ""
  discounts = np.zeros(4, np.float32)
  t = totals.astype(np.float32)
  missing = np.flatnonzero(totals[1:4] == 0)
  if missing.size:
    fault = f"no {order}-gram has adjusted count {missing[0] + 1}"
  else:
    y = t[1] / np.float32(totals[1] + 2.0 * totals[2])
    for i in (1, 2, 3):
      discounts[i] = np.float32(i) - np.float32(i + 1) * y * t[i + 1] / t[i]
      if not 0 <= discounts[i] <= i:
        fault = (
          f"the {order}-gram discount for adjusted count {i} is"
          f" {discounts[i]:.4g}, outside 0 .. {i}"
        )
        break
  if fault and fallback is None:
    raise InputError(
      f"no Kneser-Ney discounts: {fault}; the text is too small or artificial"
      " (--discount_fallback gives fixed discounts)"
    )
  if fault:
    discounts[1:] = fallback
  return discounts


def _interpolate(
  levels: Sequence[NgramCounts],
  adjusted: Sequence[np.ndarray],
  keep_flags: Sequence[np.ndarray],
  discounts: Sequence[np.ndarray],
  *,
  words: tuple[str, ...],
) -> NgramModel:
  """Equations (1) and (2), order by order, then drops what is pruned."""
  renumber = [
    np.cumsum(keep, dtype=np.int32) - np.int32(1) for keep in keep_flags
  ]
  lower = np.full(1, 1 / np.float32(int(keep_flags[0].sum()) - 1), np.float32)
  probabilities, backoffs = [], []
  for k, level in enumerate(levels):
    contexts = len(levels[k - 1].word) if k else 1
    denominator, gamma = _context_sums(
      level.context, adjusted[k], keep_flags[k], discounts[k], contexts
    )
    discounted = adjusted[k].astype(np.float32)
    discounted -= discounts[k][np.minimum(adjusted[k], 3)]
    lower = (
      discounted / denominator[level.context]
      + gamma[level.context] * lower[level.suffix]
    )
    if k == 0:
      lower[BOS] = 1.0
    probabilities.append(lower)
    if k:
      backoffs.append(gamma)
  backoffs.append(np.ones(len(levels[-1].word), np.float32))
  result = []
  for k, (level, keep) in enumerate(zip(levels, keep_flags, strict=True)):
    below = renumber[k - 1] if k else np.zeros(len(level.word), np.int32)
    not_context = (level.word == EOS) | (level.word == UNK)
    result.append(
      Level(
        context=below[level.context[keep]],
        word=renumber[0][level.word[keep]],
        suffix=below[level.suffix[keep]],
        probability=np.minimum(_log10(probabilities[k][keep]), 0),
        backoff=_log10(np.where(not_context, 1, backoffs[k])[keep]),
      )
    )
  names = tuple(words[word] for word in np.flatnonzero(keep_flags[0]).tolist())
  return NgramModel(words=names, levels=tuple(result))


def _context_sums(
  context: np.ndarray,
  adjusted: np.ndarray,
  keep: np.ndarray,
  discounts: np.ndarray,
  contexts: int,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the denominators of (1) and b of (2), float32 `[contexts]`.

  A context without continuations has b = 1: all its mass goes to the back-off.
  """
  total = np.bincount(context, adjusted, minlength=contexts)
  denominator = np.where(total > 0, total, 1).astype(np.float32)
  gamma = np.zeros(contexts, np.float32)
  for i in (1, 2, 3):
    chosen = keep & (adjusted == i if i < 3 else adjusted >= 3)
    gamma += discounts[i] * np.bincount(
      context[chosen], minlength=contexts
    ).astype(np.float32)
  dropped = np.where(keep, 0, adjusted)
  gamma += np.bincount(context, dropped, minlength=contexts).astype(np.float32)
  gamma /= denominator
  return denominator, np.where(total > 0, gamma, np.float32(1))


def _log10(values: np.ndarray) -> np.ndarray:
  """log10 with the floor that ARPA files use for zero; float32 `[N]`."""
  return _log10_kernel(values, np.float32(model_lib.LOG_ZERO))


@njit
def _log10_kernel(values, floor):
  """The C library's log10, one by one.

  NumPy's own differs in the last digit from processor to processor.
  """
  out = np.empty(len(values), np.float32)
  for place in range(len(values)):
    value = values[place]
    out[place] = max(np.log10(value), floor) if value > 0 else floor
  return out
