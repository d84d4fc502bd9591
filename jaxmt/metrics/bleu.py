"""BLEU (Papineni et al., 2002), its sentence-level smoothings, any order.

With n-gram matches m_n clipped by the largest count in any reference, n-grams
of the hypothesis c_n, and reference length r:

  BLEU = min(1, exp(1 - r / c_1)) * prod_n (m_n / c_n)^(1 / order)

Statistics, S = 2 * order + 1: `m_1..m_order, c_1..c_order, r`. Sums of them and
expectations of them are scored alike.

This is the definition. Where its arrays cannot go, the formula is written once
for each context: `bleu` for scalars in compiled loops that need it millions of
times (order 4, not smoothed: MERT's intervals, MIRA's pseudo-document);
`losses.expected_bleu.smooth_bleu` with a differentiable brevity penalty;
`decode.chart.augmentations.sentence_bleu` (BLEU+1 without clipping) and
`log_goodness` for partial translations on the device, the latter also as
`train.derivation_losses.bleu_loss` on the host.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from jaxmt.metrics import base
from jaxmt.text.kernels import njit
from jaxmt.text.ragged import Ragged

ORDER = 4
SIZE = 2 * ORDER + 1


@njit
def bleu(sums):
  """Returns BLEU in 0..1 of matches 1-4, totals 1-4, reference length."""
  above = 1.0
  below = 1.0
  for n in range(ORDER):
    above *= sums[n]
    below *= sums[ORDER + n]
  if above <= 0.0 or below <= 0.0:
    return 0.0
  precision = np.sqrt(np.sqrt(above / below))
  if sums[ORDER] < sums[2 * ORDER]:
    precision *= np.exp(1.0 - sums[2 * ORDER] / sums[ORDER])
  return precision


@njit
def bleu_rows(sums):
  """Returns BLEU of each row, `[I, 9] -> [I]`."""
  out = np.empty(len(sums), np.float64)
  for row in range(len(sums)):
    out[row] = bleu(sums[row])
  return out


@njit
def slopes(sums, out):
  """Fills the slopes of BLEU in matches 1-4 and totals 1-4; all sums above 0.

  Totals of order 1 are the length of the output, so the brevity penalty is in
  their slope.
  """
  value = bleu(sums)
  for n in range(ORDER):
    out[n] = value / (ORDER * sums[n])
    out[ORDER + n] = -value / (ORDER * sums[ORDER + n])
  if sums[ORDER] < sums[2 * ORDER]:
    out[ORDER] += value * sums[2 * ORDER] / sums[ORDER] ** 2


CLOSEST, SHORTEST, AVERAGE = 0, 1, 2
REFERENCE_LENGTHS = {
  "closest": CLOSEST,
  "shortest": SHORTEST,
  "average": AVERAGE,
}
METHODS = ("none", "floor", "add-k", "add-k-all", "exp")
_DEFAULT_VALUES = {"floor": 0.1, "add-k": 1.0, "add-k-all": 1.0}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Smoothing:
  """How BLEU treats orders without matches, and short output.

  `none`, `floor`, `add-k` and `exp` are sacreBLEU's (Chen and Cherry, 2014,
  methods 0 to 3); `add-k` adds to orders above one only, so that `add-k` with
  1 is BLEU+1 (Lin and Och, 2004); `add-k-all` adds to every order.
  The last four fields are the remedies of Nakov et al. (2012) against the short
  output that tuning for BLEU+1 gives; all are off by default.

  Attributes:
    method: one of `METHODS`.
    value: the floor or k; by default 0.1 or 1.
    effective_order: leave out orders the hypothesis is too short for.
    length_shift: added to the reference length (1 smooths the brevity penalty
      as the precisions are).
    length_scale: multiplies the reference length.
    clipped: whether the brevity penalty stops at 1; if not, longer output than
      the reference is rewarded.
    grounded: subtract the precision part that no match at all would have.
  """

  method: str = "exp"
  value: float | None = None
  effective_order: bool = False
  length_shift: float = 0.0
  length_scale: float = 1.0
  clipped: bool = True
  grounded: bool = False

  def __post_init__(self):
    if self.method not in METHODS:
      raise ValueError(f"smoothing '{self.method}' is none of {METHODS}")

  @property
  def amount(self) -> float:
    """The value in use."""
    if self.value is None:
      return _DEFAULT_VALUES.get(self.method, 0.0)
    return self.value


NONE = Smoothing(method="none")
EXPONENTIAL = Smoothing(method="exp")
SENTENCE = Smoothing(method="exp", effective_order=True)
PLUS_ONE = Smoothing(method="add-k", value=1.0)
PLUS_ONE_ALL = Smoothing(method="add-k-all", value=1.0)
GROUNDED = Smoothing(
  method="add-k-all", value=1.0, length_shift=1.0, grounded=True
)


@njit
def _reference_length(length, offsets, low, high, rule):
  """The effective length of references `low..high` for a hypothesis."""
  shortest = np.int64(1 << 62)
  closest = np.int64(1 << 62)
  total = 0
  for row in range(low, high):
    size = offsets[row + 1] - offsets[row]
    total += size
    shortest = min(shortest, size)
    gap = abs(size - length) - abs(closest - length)
    if gap < 0 or (gap == 0 and size < closest):
      closest = size
  if rule == CLOSEST:
    return np.float64(closest)
  if rule == SHORTEST:
    return np.float64(shortest)
  return total / (high - low)


@njit
def _kernel(low, high, groups, hypotheses, references, order, rule, out):
  sentences, starts, rows = groups
  flat, offsets = hypotheses
  ref_flat, ref_offsets, first = references
  most = base.largest_group(groups, references, low, high)
  grams = base.allocate_trie(most * order)
  for group in range(low, high):
    begin = first[sentences[group]]
    end = first[sentences[group] + 1]
    base.reset_trie(grams, (ref_offsets[end] - ref_offsets[begin]) * order)
    for row in range(begin, end):
      base.add_reference(
        grams, ref_flat, ref_offsets[row], ref_offsets[row + 1], order
      )
    for item in range(starts[group], starts[group + 1]):
      row = rows[item]
      length = offsets[row + 1] - offsets[row]
      base.count_matches(
        grams, flat, offsets[row], offsets[row + 1], order, out[row]
      )
      for n in range(order):
        out[row, order + n] = max(0, length - n)
      out[row, 2 * order] = _reference_length(
        length, ref_offsets, begin, end, rule
      )


def statistics(
  references: base.References,
  hypotheses: Ragged,
  sentence: np.ndarray,
  *,
  order: int = 4,
  reference_length: str = "closest",
  threads: int | None = None,
) -> np.ndarray:
  """Returns BLEU's statistics `[H, 2 * order + 1]`.

  Args:
    references: as ids shared with the hypotheses.
    hypotheses: H rows of ids.
    sentence: the sentence of each hypothesis, int `[H]`.
    order: the longest n-gram.
    reference_length: which length stands for several references: `closest`
      (to the hypothesis; ties to the shorter), `shortest` or `average`.
    threads: number of threads at most; all cores if None.

  Returns:
    int32; float64 for the average length.
  """
  rule = REFERENCE_LENGTHS[reference_length]
  out = base.run_kernel(
    _kernel,
    references,
    hypotheses,
    sentence,
    order,
    rule,
    size=2 * order + 1,
    threads=threads,
  )
  return out if rule == AVERAGE else out.astype(np.int32)


def brevity_penalty(
  xp: Any, length: Any, reference: Any, *, clipped: bool = True
) -> Any:
  """Returns `min(1, exp(1 - r / c))`; 0 for empty output with r > 0."""
  exponent = 1.0 - reference / xp.where(length > 0, length, 1)
  if clipped:
    exponent = xp.minimum(exponent, 0.0)
  return xp.where((length > 0) | (reference <= 0), xp.exp(exponent), 0.0)


def score(
  statistics: Any, *, smoothing: Smoothing = EXPONENTIAL, order: int = 4
) -> Any:
  """Returns BLEU in 0..1 of (summed) statistics `[..., 2 * order + 1]`.

  Equals sacreBLEU's `compute_bleu` / 100 for the smoothings it has. Nothing
  matching scores 0 under every smoothing but `add-k-all`.
  """
  xp = base.array_module(statistics)
  matches = statistics[..., :order]
  totals = statistics[..., order : 2 * order]
  length = statistics[..., order]
  reference = statistics[..., 2 * order] * smoothing.length_scale
  reference = reference + smoothing.length_shift
  penalty = brevity_penalty(xp, length, reference, clipped=smoothing.clipped)
  result = penalty * _precision_part(xp, matches, totals, smoothing)
  if smoothing.method != "add-k-all":
    result = xp.where(matches[..., 0] > 0, result, 0.0)
  if smoothing.grounded:
    nothing = xp.zeros_like(matches)
    ground = penalty * _precision_part(xp, nothing, totals, smoothing)
    result = xp.maximum(result - ground, 0.0)
  return result


def _precision_part(
  xp: Any, matches: Any, totals: Any, smoothing: Smoothing
) -> Any:
  """The geometric mean of smoothed precisions, `[...]`."""
  order = matches.shape[-1]
  amount = smoothing.amount
  if smoothing.method in ("add-k", "add-k-all"):
    added = np.full(order, amount)
    added[0] = amount if smoothing.method == "add-k-all" else 0.0
    matches = matches + added
    totals = totals + added
  defined = totals > 0
  below = xp.where(defined, totals, 1)
  precisions = matches / below
  if smoothing.method in ("exp", "floor"):
    matched = matches > 0
    above: Any = amount
    if smoothing.method == "exp":
      above = xp.exp2(-xp.cumsum((defined & ~matched) * 1.0, axis=-1))
    precisions = xp.where(matched, precisions, above / below)
  valid = defined & (precisions > 0)
  logs = xp.log(xp.where(valid, precisions, 1.0))
  if smoothing.effective_order:
    counted = xp.sum(defined * 1.0, axis=-1)
    usable = xp.all(valid | ~defined, axis=-1) & (counted > 0)
    mean = xp.sum(logs, axis=-1) / xp.maximum(counted, 1.0)
  else:
    usable = xp.all(valid, axis=-1)
    mean = xp.sum(logs, axis=-1) / order
  return xp.where(usable, xp.exp(mean), 0.0)


def metric(
  *,
  name: str = "bleu",
  order: int = 4,
  reference_length: str = "closest",
  smoothing: Smoothing = EXPONENTIAL,
  sentence_smoothing: Smoothing = SENTENCE,
) -> base.Metric:
  """Returns BLEU with these settings.

  Args:
    name: what to call it.
    order: the longest n-gram.
    reference_length: see `statistics`.
    smoothing: for corpus scores.
    sentence_smoothing: for sentence scores.
  """
  if order < 1:
    raise ValueError(f"order must be at least 1, not {order}")
  if reference_length not in REFERENCE_LENGTHS:
    raise ValueError(
      f"reference_length '{reference_length}' is none of "
      f"{tuple(REFERENCE_LENGTHS)}"
    )
  return base.Metric(
    name=name,
    size=2 * order + 1,
    higher_is_better=True,
    percent=True,
    unit=base.WORD,
    prepare=lambda references: references,
    statistics=functools.partial(
      statistics, order=order, reference_length=reference_length
    ),
    corpus_score=functools.partial(score, smoothing=smoothing, order=order),
    sentence_score=functools.partial(
      score, smoothing=sentence_smoothing, order=order
    ),
    settings=(
      ("order", order),
      ("reference_length", reference_length),
      ("smoothing", smoothing),
    ),
  )
