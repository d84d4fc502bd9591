"""NIST (Doddington, 2002), as mteval computes it.

A matching n-gram counts by its information in the references of the whole
corpus, `log2(count(w_1..w_{n-1}) / count(w_1..w_n))`, where the empty n-gram's
count is the number of reference words:

  NIST = sum_n (matched information_n / hypothesis n-grams_n) * penalty
  penalty = exp(-beta * ln(min(1, c / r))^2), one half at c / r = 2 / 3

with r the mean reference length. Matches are clipped as in BLEU.

Statistics, S = 2 * order + 1: `information_1.., n-grams_1.., r`.
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from jaxmt.metrics import base
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

_BETA = math.log(2) / math.log(1.5) ** 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreparedReferences:
  """References with the information of their n-grams.

  Attributes:
    references: as given, T tokens in all.
    information: of the n-gram of length k + 1 that begins at each token;
      float64 `[T, order]`, 0 where it would pass the end of the reference.
  """

  references: base.References
  information: np.ndarray


@njit
def _information(flat, offsets, order):
  out = np.zeros((len(flat), order), np.float64)
  if not len(flat):
    return out
  grams = base.allocate_trie(len(flat) * order)
  base.reset_trie(grams, len(flat) * order)
  keys, nodes, _, counts, state = grams
  for row in range(len(offsets) - 1):
    for position in range(offsets[row], offsets[row + 1]):
      node = np.int32(0)
      for index in range(position, min(position + order, offsets[row + 1])):
        node = base.find_or_add_child(grams, node, flat[index])
        counts[node] += 1
  mask = state[1]
  counts[0] = len(flat)
  for row in range(len(offsets) - 1):
    for position in range(offsets[row], offsets[row + 1]):
      node = np.int32(0)
      for length in range(min(order, offsets[row + 1] - position)):
        context = counts[node]
        node = base.find_child(keys, nodes, mask, node, flat[position + length])
        out[position, length] = np.log2(context / counts[node])
  return out


def prepare(
  references: base.References, *, order: int = 5
) -> PreparedReferences:
  """Computes the information weights from all references together."""
  information = _information(
    base.read_only(references.tokens.flat, np.int32),
    base.read_only(references.tokens.offsets, np.int64),
    order,
  )
  return PreparedReferences(references=references, information=information)


@njit
def _kernel(low, high, groups, hypotheses, references, information, out):
  sentences, starts, rows = groups
  flat, offsets = hypotheses
  ref_flat, ref_offsets, first = references
  order = information.shape[1]
  most = base.largest_group(groups, references, low, high)
  grams = base.allocate_trie(most * order)
  keys, nodes, limits, counts, state = grams
  weights = np.zeros(most * order + 1, np.float64)
  for group in range(low, high):
    begin = first[sentences[group]]
    end = first[sentences[group] + 1]
    words = ref_offsets[end] - ref_offsets[begin]
    base.reset_trie(grams, words * order)
    for row in range(begin, end):
      start, stop = ref_offsets[row], ref_offsets[row + 1]
      base.add_reference(grams, ref_flat, start, stop, order)
      for position in range(start, stop):
        node = np.int32(0)
        for length in range(min(order, stop - position)):
          token = ref_flat[position + length]
          node = base.find_child(keys, nodes, state[1], node, token)
          weights[node] = information[position, length]
    for item in range(starts[group], starts[group + 1]):
      row = rows[item]
      start, stop = offsets[row], offsets[row + 1]
      for position in range(start, stop):
        node = np.int32(0)
        for length in range(min(order, stop - position)):
          token = flat[position + length]
          node = base.find_child(keys, nodes, state[1], node, token)
          if not node:
            break
          if counts[node] < limits[node]:
            counts[node] += 1
            out[row, length] += weights[node]
      for node in range(state[0]):
        counts[node] = 0
      for length in range(order):
        out[row, order + length] = max(0, stop - start - length)
      out[row, 2 * order] = words / (end - begin)


def statistics(
  prepared: PreparedReferences,
  hypotheses: Ragged,
  sentence: np.ndarray,
  *,
  threads: int | None = None,
) -> np.ndarray:
  """Returns NIST's statistics, float64 `[H, 2 * order + 1]`."""
  order = prepared.information.shape[1]
  return base.run_kernel(
    _kernel,
    prepared.references,
    hypotheses,
    sentence,
    base.read_only(prepared.information, np.float64),
    size=2 * order + 1,
    threads=threads,
  )


def score(statistics: Any, *, order: int = 5) -> Any:
  """Returns the NIST score of statistics `[..., 2 * order + 1]`."""
  xp = base.array_module(statistics)
  information = statistics[..., :order]
  totals = statistics[..., order : 2 * order]
  length, reference = statistics[..., order], statistics[..., 2 * order]
  gain = xp.sum(information / xp.maximum(totals, 1), axis=-1)
  share = base.ratio(xp, length, reference)
  short = (share > 0) & (share < 1)
  log = xp.log(xp.where(short, share, 1.0))
  penalty = xp.where(short, xp.exp(-_BETA * log * log), 1.0)
  return xp.where(length > 0, gain * penalty, 0.0)


def metric(*, order: int = 5) -> base.Metric:
  """Returns NIST with n-grams up to `order`."""
  if order < 1:
    raise ValueError(f"order must be at least 1, not {order}")
  scorer = functools.partial(score, order=order)
  return base.Metric(
    name="nist",
    size=2 * order + 1,
    higher_is_better=True,
    percent=False,
    unit=base.WORD,
    prepare=functools.partial(prepare, order=order),
    statistics=statistics,
    corpus_score=scorer,
    sentence_score=scorer,
    settings=(("order", order),),
  )
